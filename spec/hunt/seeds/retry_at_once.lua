-- A key that comes back as soon as it has run: the round of a worker ended only when no key was ready.
local kube = require "kubelua"
return kube.controller {
  name = "hunt", resource = "example.com/v1/Widget",
  reconcile = function() return kube.retry(0) end,
}
