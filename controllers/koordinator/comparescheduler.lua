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
local lasting = require "compare.lasting"
local pods = require "pods"
local placement = require "compare.placement"
local quota = require "elasticquota.quota"
local report = require "compare.report"
local reservation = require "scheduler.reservation"
local settings = require "scheduler.settings"
local whole = require "lib.whole"

local REPORT = "koordinator-compare-scheduler"
local TOLD = 200 -- disagreements about placements that are remembered

-- When a pod got its node, in seconds; nil if it has none.
local function bound_at(pod)
  if (pod("spec.nodeName") or "") == "" then return nil end
  local condition = kube.find_condition(pod, "PodScheduled")
  return condition and condition.status == "True" and condition.lastTransitionTime
    and kube.time(condition.lastTransitionTime):unix()
end

-- The pods that this scheduler bound from `since` on and before `now`, in that order; and those for which it
-- found no node.
local function decided_by(ctx, waiting, since, now)
  local placed, refused = {}, {}
  for pod in ctx:each(cluster.POD) do
    local at = pod("spec.schedulerName") == ctx.params.schedulerName and bound_at(pod)
    if at and at >= since and at < now then
      placed[#placed + 1] = { pod = pod, node = pod.spec.nodeName, at = at, key = pods.key(pod) }
    end
  end
  table.sort(placed, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.key < b.key
  end)
  for _, pod in ipairs(waiting) do
    local condition = kube.find_condition(pod, "PodScheduled")
    if condition and condition.status == "False" and condition.reason == "Unschedulable" then
      refused[#refused + 1] = pod
    end
  end
  return placed, refused
end

return whole.controller {
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
    local args, told = settings.args(params), fields.copy(memo.told or {})
    local cases, compared = fields.copy(memo.cases or {}), memo.compared or 0
    local placed, refused = decided_by(ctx, waiting, since, now)
    local judged = table.move(waiting, 1, #waiting, 1, {})
    for _, one in ipairs(placed) do judged[#judged + 1] = one.pod end
    state.volumes = cluster.volumes_of(ctx, judged, state.claiming)

    local found = placement.judge_all(placed, nodes, state, args, function(pod, one)
      return #cases < params.cases and placement.case(pod, one, nodes, state, { weights = params.weights,
        loadaware = params.loadaware, deviceshare = params.deviceshare, numa = params.numa }) or nil
    end)
    for _, one in ipairs(found) do
      cases[#cases + 1], one.case = one.case, nil
      told[#told + 1] = one
    end
    while #told > TOLD do table.remove(told, 1) end

    local waits = {}
    for _, pod in ipairs(refused) do
      local one = placement.judge(placement.undecided(pod), nil, nodes, state, args)
      if one then
        one.object = pods.key(pod)
        waits[#waits + 1] = one
      end
    end
    waits = lasting.look(ctx, waits)

    memo.looked_at, memo.told, memo.cases, memo.compared = now, told, cases, compared + #placed
    local all = table.move(waits, 1, #waits, #told + 1, fields.copy(told))
    report.write(ctx, REPORT, report.text(all, memo.compared + #refused, "decisions"), { ["placement.json"] =
      #cases > 0 and kube.encode { calc = "placement", cases = kube.array(cases) } or nil })
  end,
}
