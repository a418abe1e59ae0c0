-- hello.lua - the smallest controller: it greets every ConfigMap that asks for it.
--
--   kubelua run controllers/hello.lua
--   printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: card, labels: {hello: world}}\n' | kubectl apply -f -
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
