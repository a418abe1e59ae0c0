-- Leaked a draft, whose finaliser was called where the stack was used up.
local kube = require "kubelua"
local K, H, count = {}, {}, 0
local function P(f, ...)
  local ok, x = pcall(f, ...)
end
function H.recurse(...) return (H.recurse(..., 1)) end
local c = kube.controller {
  name = "hunt",
  resource = "apps/v1/Deployment",
  reconcile = function(obj, ctx, ...)
P(function(...)
  ctx[{ kind = "v1/Secret", name = "*t", metadata = kube.id(ctx) }] = obj.managedFields
end, ...)
P(function(...) return ctx:create_or_patch(obj, H.recurse, nil) end, ...)
end,
}
return c
