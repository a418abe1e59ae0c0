-- catset.lua - pods with ordinals: each is created when the one before is ready, and the last one is deleted
-- first.

local kube = require "kubelua"

local POD = "v1/Pod"

local function is_ready(pod)
  local ready = kube.find_condition(pod, "Ready")
  return ready ~= nil and ready.status == "True" and not pod("metadata.deletionTimestamp")
end

local function cat(set, ordinal)
  return { kind = POD, name = ("%s-%d"):format(set.metadata.name, ordinal),
    namespace = set.metadata.namespace,
    labels = { catset = set.metadata.name }, spec = kube.copy(set.spec.template) }
end

return kube.controller {
  name = "catset",
  resource = "examples.kubelua.dev/v1/CatSet",
  owns = { POD },

  reconcile = function(set, ctx)
    local want, have, ready = set.spec.replicas, 0, 0
    while true do
      local pod = ctx:get(POD, ("%s-%d"):format(set.metadata.name, have))
      if not pod then break end
      have = have + 1
      if is_ready(pod) then ready = ready + 1 end
    end
    -- one step at a time: its effect (a pod is ready, a pod is gone) wakes the key again
    if have > want then
      ctx:delete(POD, ("%s-%d"):format(set.metadata.name, have - 1))
    elseif have < want and ready == have then
      ctx:create(cat(set, have))
    end
    return { status = { replicas = have, readyReplicas = ready } }
  end,
}
