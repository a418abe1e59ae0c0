-- hot.lua - a scenario for lownodeload.lua: demand rises where it was not foreseen. Half an hour after the
-- start the apps on one node want `factor` times as much as before, and an hour later those on another node.

local function rise(node)
  return function(s)
    for _, app in ipairs(s:apps(node)) do s:boost(app, s.params.factor) end
  end
end

return {
  params = { factor = 2.6 },
  at = { ["30m"] = rise "node-001", ["90m"] = rise "node-002" },
}
