-- Left the message of a spent budget behind, and the ceiling of memory off: its traceback did not fit below
-- the calls of C that were there.
local kube = require "kubelua"
local deeper
local level = setmetatable({}, { __index = function(_, ctx) return deeper(ctx) end })
function deeper(ctx)
  pcall(function() return level[ctx] end)
  for _, list in ipairs { level.list, ctx.each } do
  end
end
return kube.controller {
  name = "hunt",
  resource = "v1/ConfigMap",
  reconcile = function(_, ctx)
    string.gsub("x", "x", function() deeper(ctx) end)
  end,
}
