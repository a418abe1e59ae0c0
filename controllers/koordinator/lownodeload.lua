-- lownodeload.lua - Koordinator's LowNodeLoad: pods move away from nodes that are used too much, by
-- PodMigrationJobs. The policy is in lownodeload/, as pure functions.
--
--   kubelua run controllers/koordinator/lownodeload.lua
--
-- One key, the namespace, stands for the cluster: each interval looks at all pools of nodes in their order.

local kube = require "kubelua"
local balance = require "lownodeload.balance"
local fields = require "fields"
local victims = require "lownodeload.victims"

local NAMESPACE = "koordinator-system"
local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local INTERVAL = 60 -- seconds, as the descheduler's

local function by_node(ctx)
  local out = {}
  for pod in ctx:each(POD) do
    local node = pod("spec.nodeName")
    if node then
      out[node] = out[node] or {}
      table.insert(out[node], pod)
    end
  end
  return out
end

local function by_name(ctx, kind)
  local out = {}
  for object in ctx:each(kind) do out[object.metadata.name] = object end
  return out
end

-- Uids of pods that a job is about to move.
local function under_way(ctx)
  local out = {}
  for job in ctx:each(JOB) do
    local phase, uid = job("status.phase"), job("spec.podRef.uid")
    if uid and phase ~= "Succeeded" and phase ~= "Failed" then out[uid] = true end
  end
  return out
end

-- The job is called after the pod: a second pass that decides the same makes no second one.
local function migrate(ctx, move, settings)
  local meta = move.pod.metadata
  ctx.log:info("%s/%s is to leave node %s: %s", meta.namespace, meta.name, move.node, move.reason)
  if settings.dryRun then return end
  local _, why = kube.try(ctx.create, ctx, { kind = JOB, name = "lownodeload-" .. meta.uid,
    annotations = { ["koordinator.sh/evict-reason"] = move.reason,
      ["koordinator.sh/evict-trigger"] = "LowNodeLoad" },
    spec = { podRef = { namespace = meta.namespace, name = meta.name, uid = meta.uid },
      mode = settings.jobMode,
      ttl = settings.jobTTL } })
  if why then ctx.log:warn("no PodMigrationJob for %s/%s: %s", meta.namespace, meta.name, tostring(why)) end
end

local function pass(ctx, settings, detectors)
  local nodes, processed, jobs = ctx:list(NODE), {}, under_way(ctx)
  local pods_on, metrics = by_node(ctx), by_name(ctx, METRIC)
  for i, pool in ipairs(settings.nodePools) do
    local key = pool.name or tostring(i)
    detectors[key] = detectors[key] or { node = {}, prod = {} }
    local result = balance.pass {
      pool = pool,
      nodes = balance.nodes_of(pool, nodes, processed),
      pods_on = pods_on,
      metrics = metrics,
      now = ctx:now():unix(),
      expiration = settings.nodeMetricExpirationSeconds,
      node_fit = settings.nodeFit,
      number_of_nodes = settings.numberOfNodes,
      detectors = detectors[key],
      evictable = function(pod)
        return not jobs[pod.metadata.uid] and victims.evictable(pod) and victims.chosen(pod, settings)
      end,
    }
    for name in pairs(result.processed) do processed[name] = true end
    for _, move in ipairs(result.moves) do
      migrate(ctx, move, settings)
      jobs[move.pod.metadata.uid] = true
    end
  end
end

return kube.controller {
  name = "lownodeload",
  resource = "v1/Namespace",
  selector = { fields = "metadata.name=" .. NAMESPACE },
  metadata = true,
  reads = { NODE, POD, METRIC, JOB },
  every = INTERVAL,
  workers = 1,
  cpu = "20s",
  memory = "2Gi",
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

  reconcile = function(_, ctx)
    local settings, now = fields.copy(ctx.params), ctx:now():unix()
    if settings.paused or now - (ctx.memo.last or -math.huge) < INTERVAL then return end
    -- Who was seen overloaded how often outlives reloads.
    local detectors = fields.copy(ctx.memo.detectors or {})
    pass(ctx, settings, detectors)
    ctx.memo.detectors, ctx.memo.last = detectors, now
  end,
}
