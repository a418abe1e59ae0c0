-- daemonsets.lua - plays the DaemonSet controller: a pod on each node that its template selects, updated a
-- few at a time. The scheduler binds them, as ever.

local kube = require "kubelua"
local placement = require "lib.placement"
local pods = require "lib.pods"
local revisions = require "lib.revisions"

local SET, POD, NODE = "apps/v1/DaemonSet", "v1/Pod", "v1/Node"
-- Taints that daemon pods tolerate, whatever their template says.
local BEARS = { { "not-ready", "NoExecute" }, { "unreachable", "NoExecute" },
  { "disk-pressure", "NoSchedule" }, { "memory-pressure", "NoSchedule" }, { "pid-pressure", "NoSchedule" },
  { "unschedulable", "NoSchedule" } }

local AWAY = { "NoSchedule", "NoExecute" }

local function tolerations_of(set)
  local list = kube.copy(set("spec.template.spec.tolerations") or kube.array {})
  for _, t in ipairs(BEARS) do
    list[#list + 1] = { key = "node.kubernetes.io/" .. t[1], operator = "Exists", effect = t[2] }
  end
  return list
end

-- The node of a pod, or the node that it is meant for.
local function home(pod)
  if pod("spec.nodeName") then return pod.spec.nodeName end
  local rule = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
  for _, term in ipairs(pod(rule) or {}) do
    local fields = term("matchFields") or {}
    if fields[1] then return fields[1].values[1] end
  end
end

local function make_pod(set, node, revision, tolerations, ctx)
  local pod = kube.from_template(set.spec.template, { apiVersion = "v1", kind = "Pod",
    metadata = { generateName = set.metadata.name .. "-", namespace = set.metadata.namespace,
      labels = { [revisions.HASH] = revisions.hash_of(revision),
        ["pod-template-generation"] = tostring(set.metadata.generation) } } })
  pod.spec.tolerations = tolerations
  pod.spec.affinity = kube.merge(pod.spec.affinity or {}, { nodeAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = { { matchFields = {
      { key = "metadata.name", operator = "In", values = { node } } } } } } } })
  return ctx:create(pod)
end

-- { [node] = true } for the nodes that should have a pod.
local function places(set, tolerations, ctx)
  local spec = set.spec.template.spec
  local list, n = {}, 0
  for node in ctx:each(NODE) do
    if placement.selects(spec, node) and not placement.repelled(tolerations, node, AWAY) then
      list[node.metadata.name], n = true, n + 1
    end
  end
  return list, n
end

-- Deletes old pods, as long as only a few nodes lack a pod that works.
local function roll(set, by, wanted, newest, ctx)
  local most = kube.share(set("spec.updateStrategy.rollingUpdate.maxUnavailable") or 1, wanted, "up")
  local working, old = 0, {}
  for _, pod in pairs(by) do
    local ready = pods.is_active(pod) and pods.is_ready(pod)
    if ready then working = working + 1 end
    if pods.is_active(pod) and pod("metadata.labels", revisions.HASH) ~= revisions.hash_of(newest) then
      if ready then old[#old + 1] = pod else pods.delete(pod, ctx) end
    end
  end
  table.sort(old, function(a, b) return a.metadata.name < b.metadata.name end)
  for i = 1, math.min(#old, most - (wanted - working)) do pods.delete(old[i], ctx) end
end

local function report(set, by, wanted, misplaced, newest, ctx)
  local list, updated = {}, 0
  for _, pod in pairs(by) do
    list[#list + 1] = pod
    if pods.is_active(pod) and pod("metadata.labels", revisions.HASH) == revisions.hash_of(newest) then
      updated = updated + 1
    end
  end
  local c = pods.count(list, ctx, set("spec.minReadySeconds"))
  ctx:patch_status(set, { observedGeneration = set.metadata.generation, desiredNumberScheduled = wanted,
    currentNumberScheduled = #list, numberMisscheduled = misplaced, numberReady = c.ready,
    numberAvailable = c.available, numberUnavailable = wanted - c.available,
    updatedNumberScheduled = updated })
  return c.again
end

return kube.controller {
  name = "simulate-daemonsets",
  resource = SET,
  owns = { POD, revisions.KIND },
  watches = { [NODE] = { pods.every(SET), when = { "labels", "spec.taints" } } },
  reconcile = function(set, ctx)
    if set("metadata.deletionTimestamp") then return end
    local all, newest = revisions.sync(set, ctx)
    local tolerations = tolerations_of(set)
    local where, wanted = places(set, tolerations, ctx)
    local by, used, misplaced = {}, { [revisions.hash_of(newest)] = true }, 0
    for _, pod in ipairs(ctx:claim(POD, { labels = set.spec.selector })) do
      local node = home(pod)
      used[pod("metadata.labels", revisions.HASH) or ""] = true
      if not node or not where[node] or pods.ended(pod) or by[node] then
        if pods.is_active(pod) and node and not where[node] then misplaced = misplaced + 1 end
        pods.delete(pod, ctx)
      else
        by[node] = pod
      end
    end
    for node in pairs(where) do
      if not by[node] then by[node] = make_pod(set, node, newest, tolerations, ctx) end
    end
    if set("spec.updateStrategy.type") ~= "OnDelete" then roll(set, by, wanted, newest, ctx) end
    revisions.prune(all, used, set("spec.revisionHistoryLimit") or 10, ctx)
    return report(set, by, wanted, misplaced, newest, ctx)
  end,
}
