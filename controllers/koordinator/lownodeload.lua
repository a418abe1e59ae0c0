-- lownodeload.lua - Koordinator's LowNodeLoad: pods move away from nodes that are used too much, by
-- PodMigrationJobs. The policy is in lownodeload/, as pure functions.
--
--   kubelua run controllers/koordinator/lownodeload.lua
--
-- Each interval looks at all pools of nodes in their order.

local balance = require "lownodeload.balance"
local descheduling = require "lib.descheduling"
local fields = require "fields"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local INTERVAL = 60 -- seconds, as the descheduler's

local function by_name(ctx, kind)
  local out = {}
  for object in ctx:each(kind) do out[object.metadata.name] = object end
  return out
end

local function pass(ctx, settings, cluster)
  -- Who was seen overloaded how often outlives reloads.
  local detectors = fields.copy(ctx.memo.detectors or {})
  local processed, metrics = {}, by_name(ctx, METRIC)
  for i, pool in ipairs(settings.nodePools) do
    local key = pool.name or tostring(i)
    detectors[key] = detectors[key] or { node = {}, prod = {} }
    local result = balance.pass {
      pool = pool,
      nodes = balance.nodes_of(pool, cluster.nodes, processed),
      pods_on = cluster.pods_on,
      metrics = metrics,
      now = ctx:now():unix(),
      expiration = settings.nodeMetricExpirationSeconds,
      node_fit = settings.nodeFit,
      number_of_nodes = settings.numberOfNodes,
      detectors = detectors[key],
      evictable = cluster.evictable,
    }
    for name in pairs(result.processed) do processed[name] = true end
    for _, move in ipairs(result.moves) do cluster.move(move) end
  end
  ctx.memo.detectors = detectors
end

return descheduling.controller {
  name = "lownodeload",
  plugin = "LowNodeLoad",
  interval = INTERVAL,
  reads = { METRIC },
  pass = pass,
  params = { -- as in LowNodeLoadArgs
    paused = false,
    dryRun = false,
    numberOfNodes = 0,
    nodeMetricExpirationSeconds = 180,
    nodeFit = true,
    jobMode = "ReservationFirst",
    jobTTL = "5m0s",
    nodePools = { {
      name = "all",
      lowThresholds = { cpu = 45, memory = 55 },
      highThresholds = { cpu = 75, memory = 80 },
      anomalyCondition = { timeout = "1m", consecutiveAbnormalities = 5, consecutiveNormalities = 3 },
    } },
  },
}
