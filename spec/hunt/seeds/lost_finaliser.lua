-- Leaked what a value is built with: Lua gives up a finaliser that is called where the stack is used up.
local kube = require "kubelua"
local K, H, count = {}, {}, 0
local function P(f, ...)
  local ok, x = pcall(f, ...)
end
function H.recurse(...) return (H.recurse(..., 1)) end
local c = kube.controller {
  name = "hunt",
  resource = "v1/ConfigMap",
  serial = function(obj, ...)
end,
  reconcile = function(obj, ctx, ...)
P(function(...)
  return ctx:cluster(ctx:patch({ kind = "example.com/v1/Widget", name = "Ready", spec = 3,
    data = { a = 1/0 } }, kube.decode, { cert_data = 1/0 }))
end, ...)
P(H.recurse)
end,
}
return c
