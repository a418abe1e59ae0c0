-- One write for each key.
local kube = require "kubelua"

return kube.controller {
  name = "writes", resource = "v1/Pod",
  reconcile = function(pod, ctx)
    ctx:apply { kind = "v1/ConfigMap", name = ctx.name,
      data = { node = pod.spec.nodeName, phase = pod.status.phase } }
  end,
}
