-- Left the message of an error behind, for which there was no room in the script's memory.
local kube = require "kubelua"
local giant = ("v1/Pod"):rep(1500000)
return kube.controller {
  name = "hunt",
  resource = "v1/ConfigMap",
  reconcile = function(_, ctx) ctx:get(giant, "default", "a") end,
  finalize = function(_, ctx) ctx:list(giant) end,
}
