-- preempt_spec.lua - the choice of victims for a pod of higher priority, as functions: within a quota, under
-- PodDisruptionBudgets, on the best of several nodes; and properties over random clusters from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cycle = require "scheduler.cycle"
local fields = require "fields"
local forest = require "elasticquota.forest"
local kube = require "kubelua"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local pods = require "pods"
local preempt = require "scheduler.preempt"
local quota = require "elasticquota.quota"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local snapshot = require "scheduler.snapshot"

local NOW = kube.time("2026-01-01T00:00:00Z"):unix()
local QUOTA = "quota.scheduling.koordinator.sh/"

local function node(name, cpu)
  return { metadata = { name = name, labels = {}, annotations = {} }, spec = {},
    status = { allocatable = { cpu = tostring(cpu), memory = "64Gi", pods = "20" } } }
end

local function pod(name, priority, cpu, o)
  o = o or {}
  return { metadata = { name = name, namespace = "ns", uid = name, labels = o.labels or {} },
    spec = { priority = priority, preemptionPolicy = o.policy, nodeSelector = o.selector,
      containers = { { name = "c", resources = { requests = { cpu = tostring(cpu) } } } } },
    status = { startTime = o.started or "2025-12-31T00:00:00Z", nominatedNodeName = o.nominated } }
end

local function budget(allowed, labels, more)
  local b = { metadata = { name = "b", namespace = "ns" }, spec = { selector = { matchLabels = labels } },
    status = { disruptionsAllowed = allowed } }
  for key, value in pairs(more or {}) do b.status[key] = value end
  return b
end

-- The sorted names of the victims, and the node; nil: there is no preemption.
local function victims(p, nodes, state, args)
  args = cycle.args(args)
  state.now = NOW
  local result = cycle.run(p, nodes, state, args)
  assert.is_nil(result.node)
  local found, names = preempt.find(p, result, state, args), {}
  if not found then return nil end
  for i, victim in ipairs(found.victims) do names[i] = victim.metadata.name end
  table.sort(names)
  return table.concat(names, " "), found.node.metadata.name, found
end

describe("preemption on a node", function()
  local n = node("n", 4)

  it("takes the least important, and no more than the pod needs", function()
    local on = { pods_on = { n = { pod("a", 10, 1), pod("b", 5, 1), pod("c", 5, 2) } } }
    assert.equal("c", (victims(pod("p", 100, 2), { n }, on)))
    assert.equal("b c", (victims(pod("p", 100, 3), { n }, on)))
    assert.equal("a b c", (victims(pod("p", 100, 4), { n }, on)))
    -- Of two pods with the same priority, the later one is preempted.
    local young = pod("young", 5, 2, { started = "2025-12-31T12:00:00Z" })
    assert.equal("young",
      (victims(pod("p", 100, 2), { n }, { pods_on = { n = { young, pod("old", 5, 2) } } })))
  end)

  it("takes no pod of the same or a higher priority, none in vain, and none for a pod without preemption",
    function()
    assert.is_nil(victims(pod("p", 10, 2), { n }, { pods_on = { n = { pod("a", 10, 2), pod("b", 20, 2) } } }))
    assert.is_nil(victims(pod("p", 100, 5), { n }, { pods_on = { n = { pod("a", 10, 4) } } }))
    assert.is_nil(victims(pod("p", 100, 2, { selector = { zone = "a" } }), { n },
      { pods_on = { n = { pod("a", 10, 4) } } }))
    assert.is_nil(victims(pod("p", 100, 2, { policy = "Never" }), { n },
      { pods_on = { n = { pod("a", 1, 4) } } }))
  end)

  it("spares pods whose budget is used up, if others suffice", function()
    local web = { labels = { app = "web" } }
    local on = { pods_on = { n = { pod("a", 5, 2, web), pod("b", 50, 2) } },
      budgets = { budget(0, { app = "web" }) } }
    assert.equal("b", (victims(pod("p", 100, 2), { n }, on)))
    assert.equal("a b", (victims(pod("p", 100, 4), { n }, on)))
    for _, b in ipairs { budget(1, { app = "web" }), budget(0, {}), budget(0, { app = "other" }),
      budget(0, { app = "web" }, { disruptedPods = { a = "2026-01-01T00:00:00Z" } }) } do
      on.budgets, on.sums = { b }, nil
      assert.equal("a", (victims(pod("p", 100, 2), { n }, on)))
    end
  end)

  it("leaves the state unchanged, and counts its result if told to", function()
    local on = { pods_on = { n = { pod("a", 5, 4) } } }
    local p = pod("p", 100, 3)
    local _, _, found = victims(p, { n }, on)
    assert.equal(4000, on.sums.n.requested.cpu)
    preempt.assume(on, p, found)
    assert.equal(3000, on.sums.n.requested.cpu)
    assert.is_truthy(cycle.run(pod("q", 0, 1), { n }, on).node)
    assert.is_nil(cycle.run(pod("q", 0, 2), { n }, on).node)
  end)

  it("waits while earlier victims are ending", function()
    local p = pod("p", 100, 2, { nominated = "n" })
    local going, on = pod("a", 5, 4), { pods_on = {} }
    on.pods_on.n = { going }
    victims(p, { n }, on)
    assert.is_false(preempt.waits(p, on))
    going.metadata.deletionTimestamp = "2026-01-01T00:00:00Z"
    assert.is_true(preempt.waits(p, on))
    assert.is_false(preempt.waits(pod("p", 5, 2, { nominated = "n" }), on))
    assert.is_false(preempt.waits(pod("p", 100, 2), on))
  end)
end)

describe("of several nodes preemption takes", function()
  local p = pod("p", 100, 4)

  local function chosen(one, two, budgets)
    return select(2, victims(p, { node("one", 4), node("two", 4) },
      { pods_on = { one = one, two = two }, budgets = budgets }))
  end

  it("the one with the fewest broken budgets, then the least important victims, then the fewest", function()
    local web = { labels = { app = "web" } }
    assert.equal("two", chosen({ pod("a", 5, 4, web) }, { pod("b", 50, 4) }, { budget(0, { app = "web" }) }))
    assert.equal("two", chosen({ pod("a", 50, 4) }, { pod("b", 5, 4) }))
    assert.equal("two", chosen({ pod("a", 5, 2), pod("b", 5, 2) }, { pod("c", 5, 4) }))
    assert.equal("two", chosen({ pod("a", 5, 2), pod("b", 4, 2) }, { pod("c", 5, 2), pod("d", 3, 2) }))
  end)

  it("the one whose victims are newest, then the first by name", function()
    local late = { started = "2025-12-31T12:00:00Z" }
    assert.equal("two", chosen({ pod("a", 5, 4) }, { pod("b", 5, 4, late) }))
    assert.equal("one", chosen({ pod("a", 5, 4) }, { pod("b", 5, 4) }))
  end)
end)

describe("preemption within a quota", function()
  local function in_quota(name, more)
    local labels = { [QUOTA .. "name"] = name }
    for key, value in pairs(more or {}) do labels[QUOTA .. key] = value end
    return { labels = labels }
  end

  local function state(on)
    local list = {}
    for i, name in ipairs { "red", "blue", quota.DEFAULT } do
      list[i] = quota.read { metadata = { name = name, namespace = "koordinator-system" },
        spec = { min = { cpu = "4" }, max = { cpu = "4" } } }
    end
    local index, counted = members.index(list), {}
    for _, p in ipairs(on) do
      local read = members.read_pod(p)
      read.assigned, counted[#counted + 1] = true, read
    end
    return { pods_on = { n = on }, quotas = index,
      infos = forest.calculate(index, counted, { cpu = 20000 }, { upstream = "main" }) }
  end

  it("takes pods of the same quota, and of no other", function()
    local n = node("n", 20)
    local s = state { pod("a", 5, 4, in_quota "red"), pod("b", 1, 4, in_quota "blue") }
    assert.equal("a", (victims(pod("p", 100, 2, in_quota "red"), { n }, s)))
    -- A full quota does not cause preemption outside of it.
    s = state { pod("a", 500, 4, in_quota "red"), pod("b", 1, 4, in_quota "blue") }
    assert.is_nil(victims(pod("p", 100, 2, in_quota "red"), { n }, s))
  end)

  it("takes no non-preemptible pod, and none of the default quota", function()
    local n = node("n", 20)
    assert.is_nil(victims(pod("p", 100, 2, in_quota "red"), { n },
      state { pod("a", 5, 4, in_quota("red", { preemptible = "false" })) }))
    assert.is_nil(victims(pod("p", 100, 2), { n }, state { pod("a", 5, 4) }))
    assert.equal("a", (victims(pod("p", 100, 2), { n }, state { pod("a", 5, 4) },
      { quota = { disable_default_preemption = false } })))
  end)
end)

describe("laws of preemption:", function()
  local CASES = sizes.of { short = 200, long = 4000 }

  local function random_pod(i)
    return pod("p" .. i, math.random(0, 5), math.random(1, 4), {
      labels = { app = math.random() < 0.5 and "web" or nil },
      started = ("2025-12-31T%02d:00:00Z"):format(math.random(0, 23)) })
  end

  it("the pod fits without its victims, needs each of them, and the state is unchanged", function()
    seeds.each(CASES, function()
      local nodes, state = {}, { now = NOW, pods_on = {},
        budgets = { budget(math.random(0, 2), { app = "web" }) } }
      for i = 1, math.random(1, 4) do nodes[i] = node("n" .. i, math.random(2, 10)) end
      local args, i = cycle.args(), 0
      repeat
        i = i + 1
        local p = random_pod(i)
        local result = cycle.run(p, nodes, state, args)
        if result.node then snapshot.assume(state, p, result.node, cycle.got(result)) end
      until i == 30
      local p = pod("new", math.random(0, 6), math.random(1, 8))
      local result, before = cycle.run(p, nodes, state, args), {}
      for name, info in pairs(state.sums) do before[name] = fields.copy(info.requested) end
      local found = not result.node and preempt.find(p, result, state, args)
      for name, info in pairs(state.sums) do assert.is_true(lists.same(before[name], info.requested)) end
      if not found then return end
      local info = state.sums[found.node.metadata.name]
      local entries = {}
      for k, victim in ipairs(found.victims) do
        assert.is_true(victim.spec.priority < p.spec.priority)
        entries[k] = snapshot.take_out(state, victim, found.node)
      end
      assert.is_true(cycle.fits(p, info, state, args))
      for _, entry in ipairs(entries) do
        snapshot.put_back(state, entry, found.node)
        assert.is_false(cycle.fits(p, info, state, args))
        snapshot.take_out(state, entry.pod, found.node)
      end
      preempt.assume(state, p, { node = found.node, victims = {} })
      for name, n in pairs(info.requested) do assert.is_true(n <= info.allocatable[name], name) end
      assert.is_nil(info.pods[pods.key(found.victims[1])])
    end)
  end)
end)
