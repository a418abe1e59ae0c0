-- volume-claim.lua - a PersistentVolumeClaim for each EphemeralVolumeClaim, which may grow.

local kube = require "kubelua"

local CLAIM = "v1/PersistentVolumeClaim"

return kube.controller {
  name = "volume-claim",
  resource = "examples.kubelua.dev/v1/EphemeralVolumeClaim",
  owns = { CLAIM },

  reconcile = function(evc, ctx)
    local name, wanted = evc.metadata.name, kube.qty(evc.spec.size)
    local claim = ctx:get(CLAIM, name)
    if not claim then
      ctx:create { kind = CLAIM, name = name, labels = evc("metadata.labels"),
        spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = evc.spec.size } } } }
      ctx:event("Created", "the claim %s of %s", name, evc.spec.size)
    elseif wanted > kube.qty(claim.spec.resources.requests.storage) then
      ctx:patch(claim, { spec = { resources = { requests = { storage = evc.spec.size } } } })
    elseif wanted < kube.qty(claim.spec.resources.requests.storage) then
      return kube.fail("a volume does not shrink: it has " .. claim.spec.resources.requests.storage)
    end
    return { status = { claim = name, size = evc.spec.size } }
  end,
}
