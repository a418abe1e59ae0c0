-- fields.lua - the reconcile that reads ten fields of its object.

local kube = require "kubelua"

local function touch() end

return kube.controller {
  name = "fields", resource = "v1/Pod",
  reconcile = function(o)
    local m, s, st = o.metadata, o.spec, o.status
    touch(m.name, m.namespace, m.labels.app, s.nodeName, s.priority, s.serviceAccountName,
      s.containers[1].image, st.phase, st.podIP, st.qosClass)
  end,
}
