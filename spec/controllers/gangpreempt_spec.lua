-- gangpreempt_spec.lua - the choice of victims for a whole gang, as functions, and properties over random
-- clusters from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cycle = require "scheduler.cycle"
local fields = require "fields"
local gangpreempt = require "scheduler.gangpreempt"
local lists = require "lib.lists"
local pods = require "pods"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local snapshot = require "scheduler.snapshot"

local function node(name, cpu)
  return { metadata = { name = name, labels = {}, annotations = {} }, spec = {},
    status = { allocatable = { cpu = tostring(cpu), memory = "64Gi", pods = "20" } } }
end

local function pod(name, priority, cpu, o)
  o = o or {}
  return { metadata = { name = name, namespace = "ns", uid = name, labels = o.labels or {} },
    spec = { priority = priority, preemptionPolicy = o.policy, containers = { { name = "c",
      resources = { requests = { cpu = tostring(cpu) } } } } },
    status = { nominatedNodeName = o.nominated } }
end

local function gang(n, priority, cpu, o)
  local out = {}
  for i = 1, n do out[i] = pod("g" .. i, priority, cpu, o) end
  return out
end

local function names(found)
  local out = {}
  for i, one in ipairs(found.victims) do out[i] = one.pod.metadata.name end
  table.sort(out)
  return table.concat(out, " ")
end

local function find(list, nodes, on)
  return gangpreempt.find(list, nodes, { now = 0, pods_on = on }, cycle.args())
end

describe("preemption for a gang", function()
  local two = { node("a", 4), node("b", 4) }

  it("takes no more than all of its pods need, on all nodes together", function()
    local on = { a = { pod("x1", 1, 2), pod("x2", 2, 2) }, b = { pod("y1", 1, 2), pod("y2", 2, 2) } }
    local found = find(gang(2, 9, 2), two, on)
    assert.equal("x1 x2", names(found))
    assert.same({ "a", "a" }, { found.nodes["ns/g1"].metadata.name, found.nodes["ns/g2"].metadata.name })
    found = find(gang(3, 9, 2), two, on)
    assert.equal("x1 x2 y1", names(found))
    assert.equal("b", found.nodes["ns/g3"].metadata.name)
  end)

  it("preempts none while a pod of the gang fits nowhere", function()
    local on = { a = { pod("x1", 1, 4) }, b = { pod("y1", 9, 4) } }
    assert.equal("x1", names(find(gang(2, 9, 2), two, on)))
    assert.is_nil(find(gang(3, 9, 2), two, on))
    assert.is_nil(find(gang(1, 9, 5), two, on))
  end)

  it("uses free room first, and places the whole gang", function()
    local found = find(gang(2, 9, 4), two, { a = { pod("x1", 1, 1) }, b = {} })
    assert.equal("x1", names(found))
    assert.same({ "a", "b" }, { found.nodes["ns/g2"].metadata.name, found.nodes["ns/g1"].metadata.name })
    assert.is_nil(find(gang(2, 9, 4), two, { a = {}, b = {} }))
  end)

  it("preempts none if all fit in the end, the first because of the second", function()
    local list, zoned = gang(2, 9, 1), node("a", 4)
    local beside = { topologyKey = "zone", labelSelector = { matchLabels = { app = "db" } } }
    list[1].spec.affinity = { podAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { beside } } }
    list[2].metadata.labels = { app = "db" }
    zoned.metadata.labels = { zone = "z" }
    assert.is_nil(find(list, { zoned }, { a = { pod("x1", 1, 1) } }))
  end)

  it("spares pods that opt out, and a gang that opts out preempts none", function()
    for label, value in pairs { ["quota.scheduling.koordinator.sh/preemptible"] = "false",
      ["scheduling.koordinator.sh/disable-preemptible"] = "true" } do
      local on = { a = { pod("x1", 1, 4, { labels = { [label] = value } }) }, b = { pod("y1", 1, 4) } }
      assert.equal("y1", names(find(gang(1, 9, 4), two, on)))
      assert.is_nil(find(gang(2, 9, 4), two, on))
    end
    local never = gang(1, 9, 4, { policy = "Never" })
    assert.is_nil(find(never, two, { a = { pod("x", 1, 1) }, b = { pod("y", 1, 1) } }))
  end)

  it("costs pods of one job once", function()
    local job = { labels = { ["scheduling.koordinator.sh/questioned-object-key"] = "ns/job" } }
    local on = { a = { pod("x1", 3, 2), pod("x2", 3, 2), pod("low", 1, 0) },
      b = { pod("y1", 3, 2, job), pod("y2", 3, 2, job), pod("low2", 1, 0) } }
    assert.equal("y1 y2", names(find(gang(1, 9, 4), two, on)))
  end)

  it("keeps the room while victims end, and tries again when all are gone", function()
    local on = { a = { pod("x1", 1, 4) }, b = { pod("y1", 1, 4) } }
    local list, args, known = gang(2, 9, 4), cycle.args(), {}
    local function rooms(pods_on)
      local state = { now = 0, pods_on = pods_on }
      cycle.run(list[1], two, state, args)
      known = gangpreempt.rooms(list, two, state, args, "ns/g2", function(p) return known[pods.key(p)] end)
      return state
    end
    rooms(on)
    assert.same({ ["ns/x1"] = "x1", ["ns/y1"] = "y1" }, known["ns/g2"].victims)
    assert.same({}, known["ns/g1"].victims)
    local before = known
    local state = rooms { a = {}, b = on.b }
    assert.equal(before["ns/g2"], known["ns/g2"])
    assert.is_nil(cycle.run(pod("thief", 0, 1), two, state, args).node)
    rooms { a = {}, b = {} }
    assert.same({}, known)
  end)
end)

describe("laws of preemption for a gang:", function()
  local CASES = sizes.of { short = 200, long = 4000 }

  it("the gang fits without its victims, needs each of them, and the state is unchanged", function()
    seeds.each(CASES, function()
      local nodes, state, args = {}, { now = 0, pods_on = {} }, cycle.args()
      for i = 1, math.random(1, 4) do nodes[i] = node("n" .. i, math.random(2, 10)) end
      for i = 1, 30 do
        local p = pod("p" .. i, math.random(0, 5), math.random(1, 4))
        local result = cycle.run(p, nodes, state, args)
        if result.node then snapshot.assume(state, p, result.node, cycle.got(result)) end
      end
      local list, before = gang(math.random(1, 4), math.random(0, 6), math.random(1, 6)), {}
      for name, info in pairs(state.sums) do before[name] = fields.copy(info.requested) end
      local found = gangpreempt.find(list, nodes, state, args)
      for name, info in pairs(state.sums) do assert.is_true(lists.same(before[name], info.requested)) end
      if not found then return end
      local function fits()
        for i, p in ipairs(list) do
          local n = found.nodes[pods.key(p)]
          if not cycle.fits(p, state.sums[n.metadata.name], state, args) then
            for k = 1, i - 1 do snapshot.take_out(state, list[k], found.nodes[pods.key(list[k])]) end
            return false
          end
          snapshot.assume(state, p, n)
        end
        for _, p in ipairs(list) do snapshot.take_out(state, p, found.nodes[pods.key(p)]) end
        return true
      end
      local entries = {}
      for i, one in ipairs(found.victims) do
        assert.is_true(one.pod.spec.priority < list[1].spec.priority)
        entries[i] = snapshot.take_out(state, one.pod, one.node)
      end
      assert.is_true(fits())
      for i, one in ipairs(found.victims) do
        snapshot.put_back(state, entries[i], one.node)
        assert.is_false(fits())
        snapshot.take_out(state, one.pod, one.node)
      end
    end)
  end)
end)
