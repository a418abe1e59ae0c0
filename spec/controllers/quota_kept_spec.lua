-- quota_kept_spec.lua - quotas that are calculated again: over random changes of trees, their pods, the
--- total and the settings, what goes on with the calculation before says the same as one from the beginning.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local forest = require "elasticquota.forest"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local quota = require "elasticquota.quota"
local seeds = require "support.seeds"
local sizes = require "support.sizes"

local CASES, STEPS = sizes.of { short = 60, long = 2000 }, 12

local function amounts(most)
  return { cpu = math.random(0, most), memory = math.random(0, most), gpu = math.random(3) == 1 and 4 or nil }
end

-- A quota below the root, or below one with a lower number.
local function team(i)
  local parent, max = math.random(0, i - 1), amounts(400)
  return { name = "q" .. i, namespace = math.random(4) == 1 and "q" .. i or "x",
    parent = parent == 0 and quota.ROOT or "q" .. parent, tree = math.random(9) == 1 and "t" or "",
    lends = math.random(4) > 1, min = lists.cap(amounts(60), max), max = max,
    weight = math.random(3) == 1 and amounts(9) or max,
    namespaces = math.random(4) == 1 and { "n" .. i } or {} }
end

local function pod()
  return { label = math.random(3) > 1 and "q" .. math.random(12) or nil, namespace = "n" .. math.random(9),
    request = amounts(30), assigned = math.random(2) == 1, preemptible = math.random(4) > 1 }
end

local CHANGES = {
  function(w) w.pods[math.random(#w.pods + 1)] = pod() end,
  function(w) w.pods[#w.pods + 1] = pod() end,
  function(w) if #w.pods > 1 then table.remove(w.pods, math.random(#w.pods)) end end,
  function(w)
    local i = math.random(#w.quotas)
    w.quotas[i] = team(i)
  end,
  function(w) w.quotas[#w.quotas + 1] = team(#w.quotas + 1) end,
  function(w) if #w.quotas > 3 then table.remove(w.quotas) end end,
  function(w) w.total = amounts(600) end,
  function(w)
    local name = math.random(4) == 1 and "guarantee_usage" or "enable_min_quota_scale"
    w.params = { upstream = "main", multi_quota_tree = true, enable_min_quota_scale =
      w.params.enable_min_quota_scale, guarantee_usage = w.params.guarantee_usage }
    w.params[name] = not w.params[name]
  end,
}

describe("over random changes of quotas", function()
  it("the kept state equals a new calculation", function()
    seeds.each(CASES, function()
      local w = { quotas = {}, pods = {}, total = amounts(600),
        params = { upstream = "main", multi_quota_tree = true, enable_min_quota_scale = true } }
      for i = 1, 8 do w.quotas[i] = team(i) end
      for i = 1, 20 do w.pods[i] = pod() end
      local keep = forest.keeper()
      for _ = 1, STEPS do
        for _ = 1, math.random(0, 3) do CHANGES[math.random(#CHANGES)](w) end
        local index = members.index(w.quotas)
        local whole = forest.calculate(index, w.pods, w.total, w.params)
        assert.same(whole, keep(index, w.pods, w.total, w.params))
      end
    end)
  end)

  it("an unchanged entry keeps its table, and a changed one gets a new one", function()
    local quotas, pods = {}, {}
    for i, parent in ipairs { quota.ROOT, quota.ROOT, "a", "b" } do
      local max = { cpu = 100 }
      quotas[i] = { name = ("abcd"):sub(i, i), parent = parent, tree = "", lends = true, min = {}, max = max,
        weight = max, namespaces = {} }
      pods[i] = { label = quotas[i].name, namespace = "x", request = { cpu = 10 }, assigned = true,
        preemptible = true }
    end
    local index, keep = members.index(quotas), forest.keeper()
    local total, params = { cpu = 100 }, { upstream = "main" }
    local before = keep(index, pods, total, params)
    pods[3] = { label = "c", namespace = "x", request = { cpu = 20 }, assigned = true, preemptible = true }
    local now = keep(index, pods, total, params)
    assert.equal(before.b, now.b)
    assert.equal(before.d, now.d)
    assert.are_not.equal(before.a, now.a)
    assert.are_not.equal(before.c, now.c)
    assert.same({ 30, 20, 20, 10 }, { now.a.runtime.cpu, now.c.runtime.cpu, now.b.runtime.cpu,
      now.d.runtime.cpu })
    assert.same({ 20, 10 }, { before.a.runtime.cpu, before.c.runtime.cpu })
  end)
end)
