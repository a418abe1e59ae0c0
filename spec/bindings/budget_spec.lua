-- budget_spec.lua - budgets of scripts in a process that is not kubelua: stock Lua, which handles its own
-- signals. kube.testing runs the script.

local kube = require "kubelua"

local SCRIPT = [[
local kube = require "kubelua"
local function forever() while true do end end
return {
  kube.controller { name = "budgets", resource = "v1/ConfigMap", cpu = "500ms", memory = "8Mi",
    reconcile = function(o, ctx)
      local name = o.metadata.name
      if name == "computes" then while true do pcall(forever) end end
      if name == "coroutine" then while true do pcall(coroutine.wrap(forever)) end end
      if name == "grows" then
        pcall(function() local t = {} while true do t[#t + 1] = ("x"):rep(65536) end end)
      end
      if name == "matches" then (("a"):rep(5000)):find(("a*"):rep(8) .. "b") end
      if not o("data.answer") then ctx:patch(o, function(m) m.data = { answer = "yes" } end) end
    end },
  kube.controller { name = "mapped", resource = "v1/ServiceAccount", cpu = "500ms", indexes = {
    first = function(o)
      if o.metadata.name == "endless" then forever() end
      return o.metadata.name:sub(1, 1)
    end,
  }, reconcile = function() end },
}
]]

describe("a script in a stock Lua", function()
  local t
  lazy_setup(function()
    t = kube.testing.start { source = SCRIPT }
  end)
  lazy_teardown(function() if t then t:stop() end end)

  local function last(key)
    local runs = t:runs(key, { controller = "budgets" })
    return runs[#runs]
  end

  for name, why in pairs {
    computes = "cpu budget of 500ms spent (`cpu` of budgets)",
    coroutine = "cpu budget of 500ms spent (`cpu` of budgets)",
    matches = "cpu budget of 500ms spent (`cpu` of budgets)",
    grows = "not enough memory: a worker's state may hold 8Mi (`memory` of budgets)",
  } do
    it("fails its key alone when it " .. name, function()
      t:create { kind = "v1/ConfigMap", name = name }
      local run = last("default/" .. name)
      assert.equal("error", run.result)
      assert.truthy(run.message:find(why, 1, true), run.message)
      t:create { kind = "v1/ConfigMap", name = "after-" .. name }
      assert.equal("yes", t:get("v1/ConfigMap", "after-" .. name).data.answer)
    end)
  end

  it("is parked when a function of the mapper never ends", function()
    t:create { kind = "v1/ServiceAccount", name = "endless" }
    local parked
    for _, c in ipairs(t:controllers()) do if c.name == "mapped" then parked = c end end
    assert.equal("parked", parked.state)
    assert.truthy(parked.message:find(
      "the function of index first failed for ServiceAccount default/endless: ", 1, true), parked.message)
    assert.truthy(parked.message:find("cpu budget of 500ms spent", 1, true), parked.message)
    t:create { kind = "v1/ConfigMap", name = "after-endless" }
    assert.equal("yes", t:get("v1/ConfigMap", "after-endless").data.answer)
  end)
end)
