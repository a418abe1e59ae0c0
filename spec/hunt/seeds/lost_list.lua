-- Left the objects of lists behind: Lua gives up a finaliser that is called where the stack is used up. In a
-- callback of gsub a caught error leaves the calls below it on the stack.
local kube = require "kubelua"
local deeper
local level = setmetatable({}, { __index = function(_, ctx) return deeper(ctx) end })
function deeper(ctx)
  pcall(function() return level[ctx] end)
  for _, list in ipairs { ctx.list, ctx.each } do
    list(ctx, "v1/Pod")
    pcall(pcall, pcall, pcall, collectgarbage)
    pcall(pcall, pcall, collectgarbage)
    pcall(pcall, collectgarbage)
    pcall(collectgarbage)
    collectgarbage()
  end
end
return kube.controller {
  name = "hunt",
  resource = "v1/ConfigMap",
  reads = { "v1/Pod" },
  reconcile = function(_, ctx)
    string.gsub("x", "x", function() deeper(ctx) end)
  end,
}
