-- comparescheduler.lua - runs the scheduler's plugins beside koord-scheduler and reports where they disagree:
-- our cycle gets each pod that koord-scheduler has just bound or found no node for, in the same cluster.
-- Nothing is bound, and pods are not written. The ConfigMap
-- koordinator-system/koordinator-compare-scheduler has the report, and the inputs of disagreements as cases
-- for `make fixtures`.
--
--   kubelua run controllers/koordinator/comparescheduler.lua --param schedulerName=koord-scheduler

local kube = require "kubelua"
local cluster = require "scheduler.cluster"
local fields = require "fields"
local kept_of = require "compare.kept"
local lasting = require "compare.lasting"
local pods = require "pods"
local placement = require "compare.placement"
local quota = require "elasticquota.quota"
local report = require "compare.report"
local reservation = require "scheduler.reservation"
local settings = require "scheduler.settings"
local whole = require "lib.whole"

local REPORT = "koordinator-compare-scheduler"
local RECENT = 60 -- seconds
local BOUND = "bound/" -- in kube.shared, with the uid of a pod: its resourceVersion when it was bound

-- When a pod got its node, in seconds; nil if it has none.
local function bound_at(pod)
  if (pod("spec.nodeName") or "") == "" then return nil end
  local condition = kube.find_condition(pod, "PodScheduled")
  return condition and condition.status == "True" and condition.lastTransitionTime
    and kube.time(condition.lastTransitionTime):unix()
end

-- Whether a resourceVersion is older: they are decimal numbers.
local function is_older(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

-- The pods that this scheduler bound from `since` on and before `now`, in that order; those for which it
-- found no node; and those that it bound from `now` on. What was noted of pods that it bound before `now` is
-- forgotten.
local function decided_by(ctx, waiting, since, now)
  local placed, refused, later, noted = {}, {}, {}, {}
  for _, name in ipairs(kube.shared:names(BOUND)) do noted[name] = kube.shared:get(name) end
  for pod in ctx:each(cluster.POD) do
    local at = pod("spec.schedulerName") == ctx.params.schedulerName and bound_at(pod)
    local name = BOUND .. pod.metadata.uid
    if at and at >= since and at < now then
      placed[#placed + 1] = { pod = pod, node = pod.spec.nodeName, at = at, key = pods.key(pod),
        version = noted[name] or pod.metadata.resourceVersion }
    elseif at and at >= now then
      noted[name] = nil
      later[#later + 1] = { pod = pod, node = pod.spec.nodeName }
    end
  end
  for name in pairs(noted) do kube.shared:set(name, nil) end
  table.sort(placed, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    if a.version ~= b.version then return is_older(a.version, b.version) end
    return a.key < b.key
  end)
  for _, pod in ipairs(waiting) do
    local condition = kube.find_condition(pod, "PodScheduled")
    if condition and condition.status == "False" and condition.reason == "Unschedulable" then
      refused[#refused + 1] = pod
    end
  end
  return placed, refused, later
end

-- Notes the resourceVersion of each pod that was just bound. Times of bindings are whole seconds, and the
-- version changes as soon as an agent writes the pod's status.
local noting = kube.controller {
  name = "compare-scheduler-order",
  resource = cluster.POD,
  when = function(now, old) return (now("spec.nodeName") or "") ~= (old("spec.nodeName") or "") end,
  workers = 1,
  params = { schedulerName = settings.PARAMS.schedulerName },

  reconcile = function(pod, ctx)
    local at = pod("spec.schedulerName") == ctx.params.schedulerName and bound_at(pod)
    if at and at >= ctx:now():unix() - RECENT then
      kube.shared:cas(BOUND .. pod.metadata.uid, nil, pod.metadata.resourceVersion)
    end
  end,
}

local comparing = whole.controller {
  name = "compare-scheduler",
  reads = settings.reads { cluster.POD, cluster.NODE, quota.KIND, reservation.KIND },
  every = "10s",
  params = kube.merge(settings.PARAMS, {
    percentageOfNodesToScore = kube.null, -- all nodes are scored
    patienceSeconds = 60, -- a pod that is pending there and not here is reported after this time
    cases = 10,           -- that are kept
  }),

  reconcile = function(_, ctx)
    local memo = ctx.memo
    local now = ctx:now():unix()
    local since = memo.looked_at or now -- earlier pods were placed in a cluster that has changed since
    local state, _, known, nodes = cluster.reader()(ctx)
    local params, waiting = fields.copy(ctx.params), {}
    for i, fact in ipairs(known) do waiting[i] = fact.pod end
    local args, kept = settings.args(params), kept_of.read()
    local placed, refused, later = decided_by(ctx, waiting, since, now)
    local judged = table.move(waiting, 1, #waiting, 1, {})
    for _, one in ipairs(placed) do judged[#judged + 1] = one.pod end
    state.volumes = cluster.volumes_of(ctx, judged, state.claiming)

    local found = placement.judge_all(placed, later, nodes, state, args, function(pod, one)
      return #kept.cases < params.cases and placement.case(pod, one, nodes, state, {
        weights = params.weights, loadaware = params.loadaware, deviceshare = params.deviceshare,
        numa = params.numa }) or nil
    end)
    for _, one in ipairs(found) do
      kept_of.add(kept, one.case, params.cases)
      one.case = nil
      kept_of.tell(kept, one)
    end

    local waits = {}
    for _, pod in ipairs(refused) do
      local one = placement.judge(placement.undecided(pod), nil, nodes, state, args)
      if one then
        one.object = pods.key(pod)
        waits[#waits + 1] = one
      end
    end
    waits = lasting.look(ctx, waits)

    kept_of.write(kept)
    memo.looked_at, memo.compared = now, (memo.compared or 0) + #placed
    local all = table.move(waits, 1, #waits, #kept.told + 1, fields.copy(kept.told))
    report.write(ctx, REPORT, report.text(all, memo.compared + #refused, "decisions"),
      { ["placement.json"] = kept_of.text(kept, "placement") })
  end,
}

return { comparing, noting }
