-- pod-cleanup.lua - deletes finished pods after a time that an annotation of the pod or a param sets.

local kube = require "kubelua"

local TTL = "examples.kubelua.dev/ttl"

local function ended_at(pod)
  local last
  for _, c in ipairs(pod("status.containerStatuses") or {}) do
    local at = c("state.terminated.finishedAt")
    if at and (not last or kube.time(at) > last) then last = kube.time(at) end
  end
  return last or kube.time(pod.metadata.creationTimestamp)
end

return kube.controller {
  name = "pod-cleanup",
  resource = "v1/Pod",
  when = { "status.phase", "annotations" },
  fields = { "status.phase", "status.containerStatuses", "metadata.annotations",
    "metadata.creationTimestamp" },
  params = { succeeded = "10m", failed = "24h" },

  reconcile = function(pod, ctx)
    local phase = pod("status.phase")
    local usual = phase == "Succeeded" and ctx.params.succeeded or phase == "Failed" and ctx.params.failed
    if not usual or pod("metadata.deletionTimestamp") then return end
    local text = pod("metadata.annotations", TTL) or usual
    local ok, ttl = pcall(kube.duration, text)
    if not ok then return kube.fail(("%s is %q: expected a duration such as 10m"):format(TTL, text)) end
    local left = ended_at(pod) + ttl - ctx:now()
    if left > 0 then return { requeue_after = left } end
    ctx:delete(pod, { uid = pod.metadata.uid })
  end,
}
