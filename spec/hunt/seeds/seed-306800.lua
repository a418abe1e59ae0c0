-- Ended the process while it was loaded: what kube.controller returns could be written.
local kube = require "kubelua"
local function P(f, ...)
  local ok, x = pcall(f, ...)
end
local c = kube.controller {
  name = "hunt",
  resource = "apps/v1/Deployment",
  reconcile = function(obj, ctx, ...)
end,
}
P(function() c.watches = "kubelua.core" end)
return c
