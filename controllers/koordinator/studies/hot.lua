-- hot.lua - a scenario for lownodeload.lua: unexpected demand. Half an hour after the start, the apps on one
-- node use `factor` times as much as before; an hour later those on another node do.

local function rise(node)
  return function(s)
    for _, app in ipairs(s:apps(node)) do s:boost(app, s.params.factor) end
  end
end

return {
  params = { factor = 2.6 },
  at = { ["30m"] = rise "node-001", ["90m"] = rise "node-002" },
}
