-- replicasets.lua - plays the ReplicaSet controller: as many pods as the set wants, made out of its template.

local kube = require "kubelua"
local pods = require "lib.pods"

local POD = "v1/Pod"

-- The order of deletion: pods without a node, not ready, young first.
local function is_before(a, b)
  local at, bt = a("spec.nodeName") ~= nil, b("spec.nodeName") ~= nil
  if at ~= bt then return bt end
  if pods.is_ready(a) ~= pods.is_ready(b) then return pods.is_ready(b) end
  if a.metadata.creationTimestamp ~= b.metadata.creationTimestamp then
    return a.metadata.creationTimestamp > b.metadata.creationTimestamp
  end
  return a.metadata.name > b.metadata.name
end

local function scale(set, active, ctx)
  for _ = #active + 1, set.spec.replicas do
    active[#active + 1] = ctx:create(kube.from_template(set.spec.template, { apiVersion = "v1", kind = "Pod",
      metadata = { generateName = set.metadata.name .. "-", namespace = set.metadata.namespace } }))
  end
  table.sort(active, is_before)
  for _ = set.spec.replicas + 1, #active do
    pods.delete(table.remove(active, 1), ctx)
  end
end

return kube.controller {
  name = "simulate-replicasets",
  resource = "apps/v1/ReplicaSet",
  owns = {
    [POD] = { when = { "labels", "status.phase", "status.conditions", "metadata.deletionTimestamp" } },
  },
  reconcile = function(set, ctx)
    if set("metadata.deletionTimestamp") then return end
    local active = {}
    for _, pod in ipairs(ctx:claim(POD, { labels = set.spec.selector })) do
      if pods.is_active(pod) then active[#active + 1] = pod end
    end
    scale(set, active, ctx)
    local n = pods.count(active, ctx, set("spec.minReadySeconds"))
    ctx:patch_status(set, { replicas = #active, fullyLabeledReplicas = #active, readyReplicas = n.ready,
      availableReplicas = n.available, observedGeneration = set.metadata.generation })
    return n.again
  end,
}
