-- recommender.lua - computes Recommendations: the requests that the containers of a workload or of selected
-- pods should have, from their past usage. Koordinator defines the kind and has no controller for it. The
-- policy is in recommender/, with the constants of the vertical pod autoscaler.
--
--   kubelua run controllers/koordinator/recommender.lua

local kube = require "kubelua"
local checkpoint = require "lib.checkpoint"
local estimate = require "recommender.estimate"
local fields = require "fields"
local history = require "recommender.history"
local pods = require "pods"
local target = require "recommender.target"
local usage = require "recommender.usage"

local POD = target.POD
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local RECOMMENDATION = "analysis.koordinator.sh/v1alpha1/Recommendation"
local CONDITION = "Recommended"
local SURE = 1 -- days of confidence

local kept = checkpoint.keeper { prefix = "recommender-", load = history.load, save = history.save }

local function seconds(time) return kube.time(time):unix() end

local function world_of(ctx)
  return {
    controlled = function(kind, namespace, owner)
      return ctx:list(kind, { namespace = namespace, index = "controller", value = owner })
    end,
    selected = function(namespace, selector)
      local ok, labels = pcall(kube.selector, selector)
      if not ok then return nil, "target.podSelector: " .. tostring(labels) end
      return ctx:list(POD, { namespace = namespace, labels = labels })
    end,
  }
end

-- Adds the usage that the nodes of the pods reported since the last run to the history.
local function look(known, list, ctx)
  local reports, uids = {}, {}
  for _, pod in ipairs(list) do
    uids[pod.metadata.uid] = true
    local node = fields.dig(pod, "spec", "nodeName")
    if node and pods.active(pod) then
      reports[node] = reports[node] or table.pack(usage.reported(ctx:get(METRIC, node)))
      local at, used = table.unpack(reports[node])
      local own = used and used[pods.key(pod)]
      if own then history.sample(known, pod, own, at) end
    end
  end
  history.prune(known, uids)
end

local function condition(estimates, why, o)
  local first, surest = estimates[1], 0
  for _, e in ipairs(estimates) do surest = math.max(surest, e.confidence) end
  return { type = CONDITION, status = first ~= nil and not why,
    reason = why and "InvalidTarget" or not first and "NoSamples" or surest < SURE and "FewSamples"
    or "Sampled",
    message = why or first and estimate.explain(estimates, o)
      or "no node has reported the usage of a pod of the target" }
end

-- Whether the status needs a write: an amount or the reason changed, or the message did and the last write is
-- `seldom` seconds ago.
local function due(recommendation, statuses, found, now, seldom)
  local status = fields.copy(recommendation("status")) or {}
  local told = kube.find_condition(recommendation, CONDITION)
  local old = fields.dig(status, "podStatus", "containerStatuses") or {}
  return not status.updateTime or not told or told.reason ~= found.reason or not fields.equal(old, statuses)
    or told.message ~= found.message and now - seconds(status.updateTime) >= seldom
end

return kube.controller {
  name = "recommender",
  resource = RECOMMENDATION,
  when = "generation",
  reads = { METRIC },
  indexes = {
    [POD] = { controller = target.controller_name },
    ["apps/v1/ReplicaSet"] = { controller = target.controller_name },
    ["batch/v1/Job"] = { controller = target.controller_name },
  },
  fields = { ["apps/v1/ReplicaSet"] = { "metadata" }, ["batch/v1/Job"] = { "metadata" } },
  workers = 1,
  params = {
    targetPercentile = 90,
    lowerPercentile = 50,
    upperPercentile = 95,
    safetyMarginPercent = 15,
    minCPU = "25m",           -- of a pod, shared by its containers
    minMemory = "250Mi",
    intervalSeconds = 60,     -- between two runs: agents report once a minute
    checkpointSeconds = 600,  -- between two checkpoints, and between two messages for the same amounts
  },

  reconcile = function(recommendation, ctx)
    local namespace, now = recommendation.metadata.namespace, ctx:now()
    local params = ctx.params
    local known = kept:state(ctx, recommendation, namespace)
    local list, why = target.pods(recommendation, world_of(ctx))
    look(known, list or {}, ctx)
    kept:keep(ctx, recommendation, namespace, params.checkpointSeconds)
    local estimates = estimate.containers(known, params)
    local found, statuses = condition(estimates, why, params), estimate.statuses(estimates)
    local news = due(recommendation, statuses, found, now:unix(), params.checkpointSeconds)
    local status = news and { updateTime = tostring(now), conditions = { found },
      podStatus = { containerStatuses = statuses } } or nil
    return { status = status, requeue_after = params.intervalSeconds }
  end,
}
