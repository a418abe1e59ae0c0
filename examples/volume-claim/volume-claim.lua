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
    local has = claim and kube.qty(claim.spec.resources.requests.storage)
    if not claim then
      ctx:create { kind = CLAIM, name = name, labels = evc("metadata.labels"),
        spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = evc.spec.size } } } }
      ctx:event("Created", "the claim %s of %s", name, evc.spec.size)
    elseif wanted > has then
      -- a claim cannot grow before it has a volume; when it has one, we run again
      if claim("status.phase") ~= "Bound" then return end
      ctx:patch(claim, { spec = { resources = { requests = { storage = evc.spec.size } } } })
    elseif wanted < has then
      return kube.fail(("a volume cannot shrink from %s to %s"):format(has, wanted))
    end
    return { status = { claim = name, size = evc.spec.size } }
  end,
}
