-- A request of an isolated script had a time-out below zero, for which the parent killed the script's
-- process.
local kube = require "kubelua"
return kube.controller {
  name = "hunt",
  resource = "batch/v1/Job",
  isolate = true,
  reconcile = function(_, ctx)
    pcall(ctx.live.get, ctx.live, "v1/Node", "a", { timeout = -1 })
  end,
}
