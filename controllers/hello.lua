-- hello.lua - the smallest controller: it greets every ConfigMap that asks for it.
--
--   kubelua run controllers/hello.lua
--   kubectl create configmap card
--   kubectl label configmap card hello=world
--   kubectl get configmap card -o jsonpath='{.data.greeting}'

local kube = require "kubelua"

return kube.controller {
  name = "hello",
  resource = "v1/ConfigMap",

  reconcile = function(card, ctx)
    local who = card("metadata.labels", "hello")
    if not who then return end
    ctx:patch(card, function(c) c.data.greeting = "Hello, " .. who .. "!" end)
  end,
}
