-- pods.lua - the reconciler that the measurements give every peer: read the pod, touch spec.nodeName and
-- one label.

local kube = require "kubelua"

return kube.controller {
  name = "bench",
  resource = "v1/Pod",
  reconcile = function(pod)
    assert(#pod.spec.nodeName + #pod.metadata.labels.app > 0)
  end,
}
