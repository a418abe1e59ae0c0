-- scheduler.lua - plays kube-scheduler: a pod goes to the node with the most room of those that it selects,
-- whose taints it tolerates, where what it requests fits and whose pods its (anti-)affinity lets it join.
--
-- Decisions come one after the other, each with what the last one wrote in view. There is no preemption, and
-- preferences and spread constraints are not looked at.

local kube = require "kubelua"
local conditions = require "lib.conditions"
local placement = require "lib.placement"

local POD, NODE, CLAIM = "v1/Pod", "v1/Node", "v1/PersistentVolumeClaim"
local NAME = "default-scheduler"
local CORDON = { key = "node.kubernetes.io/unschedulable", effect = "NoSchedule" }

local function is_waiting(pod)
  return (pod("spec.nodeName") or "") == "" and not pod("metadata.deletionTimestamp")
    and pod("spec.schedulerName") == NAME and #(pod("spec.schedulingGates") or {}) == 0
end

local function ended(pod) return pod("status.phase") == "Succeeded" or pod("status.phase") == "Failed" end

local function every_waiting_pod(_, ctx)
  local keys = {}
  for pod in ctx:each(POD, { index = { place = "" } }) do
    keys[#keys + 1] = pod.metadata.namespace .. "/" .. pod.metadata.name
  end
  return keys
end

-- ---------------------------------------------------------------- one node

-- The meaning of an affinity term: a function of another pod.
local function meant_by(term, pod)
  local selector = term("labelSelector") and kube.selector(term.labelSelector)
  local named = {}
  for _, name in ipairs(term("namespaces") or { pod.metadata.namespace }) do named[name] = true end
  return function(other)
    return selector ~= nil and named[other.metadata.namespace]
      and selector:matches(other("metadata.labels") or {})
  end
end

-- Whether some pod that the term means is in the node's topology, and whether there is one at all.
local function has_neighbour(term, pod, node, ctx)
  local means, domain, some = meant_by(term, pod), node("metadata.labels", term.topologyKey), false
  for other in ctx:each(POD, { index = { place = { ne = "" } } }) do
    local at = ctx:get(NODE, other.spec.nodeName)
    if at and not ended(other) and means(other) then
      if domain ~= nil and at("metadata.labels", term.topologyKey) == domain then return true, true end
      some = true
    end
  end
  return false, some
end

local function is_welcome(pod, node, ctx)
  local rule = ".requiredDuringSchedulingIgnoredDuringExecution"
  for _, term in ipairs(pod("spec.affinity.podAntiAffinity" .. rule) or {}) do
    if has_neighbour(term, pod, node, ctx) then return false end
  end
  for _, term in ipairs(pod("spec.affinity.podAffinity" .. rule) or {}) do
    local here, some = has_neighbour(term, pod, node, ctx)
    -- the first of a group that wants to be together may go anywhere
    if not here and (some or not meant_by(term, pod)(pod)) then return false end
  end
  return true
end

-- The least share of a resource that stays free with the pod there; nil and the resource that is missing.
local function room(pod, node, ctx)
  local wanted, used, least = placement.requests(pod), {}, 1
  for other in ctx:each(POD, { index = { place = node.metadata.name } }) do
    if not ended(other) then
      for name, amount in pairs(placement.requests(other)) do used[name] = (used[name] or 0) + amount end
    end
  end
  for name, amount in pairs(wanted) do
    local q = node("status.allocatable", name)
    local has, needs = q and kube.qty(q):milli() or 0, amount + (used[name] or 0)
    if amount > 0 and needs > has then
      return nil, name == "pods" and "Too many pods" or "Insufficient " .. name
    end
    if has > 0 then least = math.min(least, 1 - needs / has) end
  end
  return least
end

local function judge(pod, node, ctx)
  if not conditions.holds(node, "Ready") then return nil, "node(s) were not ready" end
  local tolerations = pod("spec.tolerations")
  if node("spec.unschedulable") and not placement.tolerates(tolerations, CORDON) then
    return nil, "node(s) were unschedulable"
  end
  local taint = placement.repelled(tolerations, node, { "NoSchedule", "NoExecute" })
  if taint then
    return nil, ("node(s) had untolerated taint {%s: %s}"):format(taint.key, taint("value") or "")
  end
  if not placement.selects(pod.spec, node) then
    return nil, "node(s) didn't match Pod's node affinity/selector"
  end
  if not is_welcome(pod, node, ctx) then return nil, "node(s) didn't match pod affinity rules" end
  return room(pod, node, ctx)
end

-- ---------------------------------------------------------------- all of them

-- The node, or nil and the message that kube-scheduler has for it.
local function choose(pod, ctx)
  local best, most, all, reasons = nil, nil, 0, {}
  for node in ctx:each(NODE) do
    local free, why = judge(pod, node, ctx)
    all = all + 1
    if why then reasons[why] = (reasons[why] or 0) + 1 end
    if free and (most == nil or free > most) then best, most = node.metadata.name, free end
  end
  if best then return best end
  local parts = {}
  for why, n in pairs(reasons) do parts[#parts + 1] = ("%d %s"):format(n, why) end
  table.sort(parts)
  return nil, ("0/%d nodes are available: %s."):format(all, table.concat(parts, ", "))
end

local function unbound_claim(pod, ctx)
  for _, volume in ipairs(pod("spec.volumes") or {}) do
    local name = volume("persistentVolumeClaim.claimName")
    local claim = name and ctx:get(CLAIM, pod.metadata.namespace, name)
    if name and not claim then return ("persistentvolumeclaim %q not found"):format(name) end
    if claim and claim("status.phase") ~= "Bound" then
      return "pod has unbound immediate PersistentVolumeClaims"
    end
  end
end

local function refuse(pod, ctx, why)
  local before = conditions.find(pod, "PodScheduled")
  if before == nil or before("message") ~= why then
    ctx:warn({ reason = "FailedScheduling", action = "Scheduling" }, "%s", why)
  end
  ctx:patch_status(pod, function(draft)
    draft.status.conditions = conditions.with(draft("status.conditions"),
      { { type = "PodScheduled", status = "False", reason = "Unschedulable", message = why } },
      conditions.now(ctx))
  end)
end

return kube.controller {
  name = "simulate-scheduler",
  resource = POD,
  when = { "spec", "metadata.deletionTimestamp" },
  indexes = { place = function(pod)
    if (pod("spec.nodeName") or "") ~= "" then return pod.spec.nodeName end
    return is_waiting(pod) and "" or nil
  end },
  watches = {
    [NODE] = { every_waiting_pod, when = { "labels", "spec", "status.allocatable", "status.conditions" } },
    [CLAIM] = { every_waiting_pod, when = { "status.phase" } },
  },
  serial = function(pod) return is_waiting(pod) and "one decision at a time" or nil end,
  backoff = { base = "250ms", max = "5s" },
  reconcile = function(pod, ctx)
    if not is_waiting(pod) then return end
    local node, why = nil, unbound_claim(pod, ctx)
    if not why then node, why = choose(pod, ctx) end
    if not node then
      refuse(pod, ctx, why)
      return { requeue = true } -- a pod that ends elsewhere makes room
    end
    ctx:bind(pod, node)
    ctx:event({ reason = "Scheduled", action = "Binding" }, "Successfully assigned %s to %s", ctx.key, node)
  end,
}
