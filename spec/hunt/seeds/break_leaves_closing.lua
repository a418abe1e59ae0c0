-- `break` left the closing value on Lua's list, and the next variable to be closed wrote outside of the
-- stack.
local kube = require "kubelua"
local o = setmetatable({}, { __close = function() end })
local function test()
  for k in next, { 1 }, nil, o do
    local function held() return k end
    if held() then break end
  end
  local y <close> = o
  return y
end
test()
return kube.controller { name = "a", resource = "v1/ConfigMap", reconcile = test }
