-- lownodeload.lua - Koordinator's LowNodeLoad: pods move away from nodes that are used too much, by
-- PodMigrationJobs. The policy is in lownodeload/, as pure functions.
--
--   kubelua run controllers/koordinator/lownodeload.lua
--
-- Each interval looks at all pools of nodes in their order.

local balance = require "lownodeload.balance"
local descheduling = require "lib.descheduling"
local fields = require "fields"
local kube = require "kubelua"
local pools = require "lownodeload.pools"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local INTERVAL = 60 -- seconds, as the descheduler's

local function by_name(ctx, kind)
  local out = {}
  for object in ctx:each(kind) do out[object.metadata.name] = object end
  return out
end

local function pass(ctx, settings, cluster)
  -- Who was seen overloaded how often outlives reloads.
  local known = fields.copy(ctx.memo.detectors or {})
  local detectors = { node = known.node or {}, prod = known.prod or {} }
  balance.all(settings, {
    nodes = cluster.nodes,
    pods_on = cluster.pods_on,
    metrics = by_name(ctx, METRIC),
    now = ctx:now():unix(),
    evictable = cluster.evictable,
    detectors = detectors,
    move = cluster.move,
  })
  ctx.memo.detectors = detectors
end

return descheduling.controller {
  name = "lownodeload",
  plugin = "LowNodeLoad",
  interval = INTERVAL,
  reads = { METRIC },
  pass = pass,
  params = kube.merge(pools.PARAMS, {
    paused = false,
    dryRun = false,
    anomalyCondition = { timeout = "1m", consecutiveAbnormalities = 5, consecutiveNormalities = 3 },
    detectorCacheTimeout = "5m",
  }),
}
