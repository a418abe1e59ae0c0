-- janitor.lua - deletes ConfigMaps and Secrets when the time in their annotation has passed. Of several
-- replicas one works, with a lease of its own.
--
--   kubelua run janitor.lua --leader-elect

local kube = require "kubelua"

local EXPIRES = "examples.kubelua.dev/expires"

return kube.controller {
  name = "janitor",
  resource = { "v1/ConfigMap", "v1/Secret" },
  metadata = true, -- nothing else of them is fetched: a Secret's data never comes here
  when = { "annotations" },
  leader = "own",

  reconcile = function(o, ctx)
    local text = o("metadata.annotations", EXPIRES)
    if not text or o("metadata.deletionTimestamp") then return end
    local ok, at = pcall(kube.time, text)
    if not ok then
      ctx:warn("BadExpiry", "%s is %q: expected a time such as 2026-01-31T12:00:00Z", EXPIRES, text)
      return kube.fail "the expiry cannot be parsed"
    end
    if at > ctx:now() then return { requeue_after = at - ctx:now() } end
    -- only this version of it: somebody may have given it more time meanwhile
    ctx:delete(o, { uid = o.metadata.uid, resourceVersion = o.metadata.resourceVersion })
    ctx:event("Expired", "it was wanted until %s", text)
  end,
}
