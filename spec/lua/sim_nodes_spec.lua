-- sim_nodes_spec.lua - what the pods of simulated nodes use, and what the nodes' agents report of them: C
-- (bindings/script/lnodes.c) gives the same numbers as the rules in Lua.

local core = require "kubelua.core"
local dice = require "kubelua.sim.dice"

local HELD = 0.7

-- 40 pods of three apps: some jobs, some that have just begun, some whose use or memory a trace has.
local function columns(seed)
  local pods = { n = 40, list = {}, class = {}, placed = {}, used = {}, cpu = {}, memory = {}, app = {},
    namespace = {}, name = {}, factor = {}, told = {}, holds = {} }
  for p = 1, pods.n do
    local chance = dice.unit(seed, p, 1)
    pods.list[p], pods.class[p] = p, chance < 0.2 and "batch" or chance < 0.3 and "mid" or "prod"
    pods.placed[p], pods.used[p] = p % 7 == 0 and 95 or p, -1
    pods.cpu[p], pods.memory[p], pods.app[p] = 500 + p, (p << 20) + 1, "app-" .. p % 3
    pods.namespace[p], pods.name[p] = "ns-" .. p % 2, "pod-" .. p
    pods.factor[p] = 1 + 0.2 * dice.normal(seed, p, 2)
    if p % 11 == 0 then pods.told[p] = p end
    if p % 5 == 0 then pods.holds[p] = 3.5 * p end
  end
  return pods
end

local function curves()
  local asked = {}
  return setmetatable({}, { __index = function(self, app)
    asked[app] = (asked[app] or 0) + 1
    self[app] = 0.01 * (2 + tonumber(app:match "%d+"))
    return self[app]
  end }), asked
end

local function prod_use(pods, told, holds, of, time)
  return core.prod_use(pods.list, pods.class, pods.placed, pods.used, pods.cpu, pods.memory, pods.app,
    pods.factor, told, holds, of, time, 17, 10, 0.05, 3, 1000)
end

-- The same by the rules.
local function by_rule(pods, told, holds, of, time)
  local used, memory, jobs = 0, 1000, nil
  for _, p in ipairs(pods.list) do
    if pods.class[p] ~= "prod" then
      jobs = jobs or {}
      jobs[#jobs + 1] = p
    elseif time < pods.placed[p] + 10 then
      pods.used[p] = 0
    else
      local share = of[pods.app[p]] * pods.factor[p] + 0.05 * dice.normal(3 + p, 17, 3)
      local u = told and told[p] or pods.cpu[p] * math.max(share, 0.01)
      pods.used[p] = u
      used = used + u
      memory = memory + (holds and holds[p] or pods.memory[p] * HELD)
    end
  end
  return used, memory, jobs
end

describe("what prod pods of a node use", function()
  for seed = 1, 5 do
    for _, traced in ipairs { false, true } do
      it(("follows the rules to the bit, seed %d, trace: %s"):format(seed, traced), function()
        local a, b = columns(seed), columns(seed)
        local told, holds = traced and a.told or nil, traced and a.holds or nil
        local of, asked = curves()
        local used, memory, jobs = prod_use(a, told, holds, of, 100)
        local want_used, want_memory, want_jobs = by_rule(b, told, holds, (curves()), 100)
        assert.equal(want_used, used)
        assert.equal(want_memory, memory)
        assert.same(want_jobs, jobs)
        assert.same(b.used, a.used)
        assert.same({ ["app-0"] = 1, ["app-1"] = 1, ["app-2"] = 1 }, asked) -- once for each app
      end)
    end
  end

  it("is nothing on an empty node, and of what is no list an error", function()
    local pods = columns(1)
    pods.list = {}
    local used, memory, jobs = prod_use(pods, nil, nil, {}, 100)
    assert.same({ 0, 1000 }, { used, memory })
    assert.is_nil(jobs)
    pods.list = 1
    assert.has_error(function() prod_use(pods, nil, nil, {}, 100) end)
  end)
end)

describe("sums of moments", function()
  it("are those of the last samples of each slot", function()
    local s, list, numbers = core.sums(), { 1, 3, 700 }, {}
    for moment = 1, 12 do
      for _, k in ipairs(list) do numbers[k] = k * moment end
      s:take(moment % 5 + 1, list, numbers)
    end
    for _, k in ipairs(list) do assert.equal(k * (8 + 9 + 10 + 11 + 12), s:get(k)) end
    assert.equal(0, s:get(2))
    assert.equal(0, s:get(100000))
    assert.equal(7, s:add(1, 2, 7))
    assert.equal(5, s:add(1, 2, 5))
    assert.equal(6, s:add(2, 2, 1))
  end)
end)

describe("a node's report", function()
  local KIND = "slo.koordinator.sh/v1alpha1/NodeMetric"

  local function reporter()
    local sim, pods, sums = core.sim(0.0, 1), columns(1), core.sums()
    sim:load_path "controllers/koordinator/crds"
    return {
      pods = pods, sums = sums,
      report = function(node, n, holds, name, created, amounts)
        sums:take(n, pods.list, pods.used)
        sim:report(node, name or "node-" .. node, created or "2026-01-01T00:00:00Z",
          ("2026-01-01T00:%02d:00Z"):format(n), amounts or { 1234.9, 5e9, 100, 2e9 }, pods.list,
          pods.namespace, pods.name, pods.class, pods.memory, holds, sums, n)
        return core.copy(sim:call { verb = "get", kind = KIND, name = name or "node-" .. node })
      end,
    }
  end

  local function assert_pods(r, got, n, holds)
    assert.equal(#r.pods.list, #got.status.podsMetric)
    for k, p in ipairs(r.pods.list) do
      local memory = r.pods.class[p] == "prod" and (holds and holds[p] or r.pods.memory[p] * HELD)
        or r.pods.memory[p]
      assert.same({ namespace = r.pods.namespace[p], name = r.pods.name[p], podUsage = { resources = {
        cpu = ("%dm"):format(r.sums:get(p) / n // 1 | 0), memory = ("%d"):format(memory // 1 | 0) } } },
        got.status.podsMetric[k])
    end
  end

  it("has the means of its pods, which come and go between two reports", function()
    local r = reporter()
    for n = 1, 6 do
      for p = 1, r.pods.n do r.pods.used[p] = 100 * p + 7.7 * n end
      if n == 2 then table.remove(r.pods.list, 5) end
      if n == 3 then r.pods.list[#r.pods.list + 1] = 5 end
      if n == 4 then r.pods.list = { 9, 8, 7 } end
      if n == 5 then r.pods.list = {} end
      if n == 6 then r.pods.list = { 7, 40 } end
      local holds = n >= 3 and r.pods.holds or nil
      local got = r.report(1, n, holds)
      assert_pods(r, got, n, holds)
      assert.equal("metric-node-1", got.metadata.uid)
      assert.equal("2026-01-01T00:00:00Z", got.metadata.creationTimestamp)
      assert.equal(("2026-01-01T00:%02d:00Z"):format(n), got.status.updateTime)
      assert.same({ nodeUsage = { resources = { cpu = "1234m", memory = "5000000000" } },
        systemUsage = { resources = { cpu = "100m", memory = "2000000000" } } }, got.status.nodeMetric)
    end
  end)

  it("is of its own node", function()
    local r = reporter()
    assert.equal("node-1", r.report(1, 1).metadata.name)
    r.pods.list = { 3 }
    assert_pods(r, r.report(90, 1), 1)
    assert.equal("metric-node-90", r.report(90, 1).metadata.uid)
    assert.equal("other", r.report(1, 2, nil, "other").metadata.name)
    for _, node in ipairs { 0, -1, (1 << 22) + 1, (1 << 31) - 1, math.maxinteger } do
      assert.has_error(function() r.report(node, 1) end)
    end
  end)

  it("begins with the node, also with one that comes back under its name", function()
    local r = reporter()
    assert.equal("2026-01-01T00:00:00Z", r.report(1, 1).metadata.creationTimestamp)
    local later = "2026-01-01T00:30:00Z"
    assert.equal(later, r.report(1, 2, nil, nil, later).metadata.creationTimestamp)
  end)

  it("cuts numbers that no integer holds", function()
    local r = reporter()
    r.pods.list, r.pods.class[1], r.pods.memory[1], r.pods.used[1] = { 1 }, "batch", math.huge, 0 / 0
    local got = r.report(1, 1, nil, nil, nil, { 0 / 0, math.huge, -math.huge, 1e300 })
    local most = ("%d"):format(math.maxinteger)
    assert.same({ cpu = "0m", memory = most }, got.status.nodeMetric.nodeUsage.resources)
    assert.same({ cpu = ("%dm"):format(math.mininteger), memory = most },
      got.status.nodeMetric.systemUsage.resources)
    assert.same({ cpu = "0m", memory = most }, got.status.podsMetric[1].podUsage.resources)
  end)
end)
