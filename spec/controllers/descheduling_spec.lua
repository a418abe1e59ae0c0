-- descheduling_spec.lua - the descheduler's other plugins as functions: fragmentation, bin packing and custom
-- priority; and properties over random clusters from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local binpack = require "descheduling.binpack"
local fragmentation = require "descheduling.fragmentation"
local kube = require "kubelua"
local lists = require "lib.lists"
local priority = require "descheduling.priority"
local seeds = require "support.seeds"

local function node(name, labels, more)
  local n = { metadata = { name = name, labels = labels or {} }, spec = {},
    status = { allocatable = { cpu = "10", memory = "10Gi", pods = "20" } } }
  for key, value in pairs(more or {}) do n.spec[key] = value end
  return n
end

local function pod(name, cpu, memory, labels)
  return { metadata = { namespace = "ns", name = name, uid = name, labels = labels or {} },
    spec = { containers = { { name = "c", resources = { requests = { cpu = cpu, memory = memory } } } } },
    status = { phase = "Running" } }
end

local function anyone() return true end

local function names(moves)
  local out = {}
  for i, move in ipairs(moves) do out[i] = move.pod.metadata.name end
  return table.concat(out, " ")
end

-- A random cluster: nodes of several kinds, with pods.
local function cluster()
  local nodes, pods_on = {}, {}
  for i = 1, math.random(2, 6) do
    local name = "n" .. i
    nodes[i] = node(name, { kind = "k" .. math.random(3) }, { unschedulable = math.random(8) == 1 })
    pods_on[name] = {}
    for k = 1, math.random(0, 6) do
      pods_on[name][k] = pod(("%s-%d"):format(name, k), math.random(0, 15) .. "00m",
        math.random(0, 15) .. "00Mi", { app = "a" .. math.random(2) })
    end
  end
  return nodes, pods_on
end

local function asked(list)
  local sum = { pods = #list }
  for _, one in ipairs(list) do lists.accumulate(sum, lists.of(kube.requests(one))) end
  return sum
end

describe("fragmentation", function()
  local function pass(nodes, pods_on, more)
    local input = { nodes = nodes, pods_on = pods_on, evictable = anyone, nodeFit = true,
      resources = { "cpu", "memory" }, imbalanceThreshold = 0.15, minImprovementThreshold = 0.02 }
    for key, value in pairs(more or {}) do input[key] = value end
    return fragmentation.pass(input)
  end

  it("is the deviation among the requested resources", function()
    local function imbalance(...) return fragmentation.imbalance(...) end
    local there = { cpu = 10, memory = 100 }
    assert.equal(0.0, imbalance({ cpu = 5, memory = 50 }, there, { "cpu", "memory" }))
    assert.equal(0.5, imbalance({ cpu = 10 }, there, { "cpu", "memory" }))
    assert.equal(0.0, imbalance({ cpu = 10 }, there, { "cpu", "gpu" }))
    assert.equal(0.0, imbalance({ cpu = 10 }, {}, { "cpu" }))
  end)

  it("evicts the pod whose move balances most, if it fits elsewhere", function()
    local nodes, list = { node "n", node "free" }, { pod("cpu", "5", "0"), pod("more", "2", "1Gi"),
      pod("memory", "0", "1Gi") }
    local moves = pass(nodes, { n = list })
    assert.equal("cpu", names(moves))
    assert.same({ "n", "fragmentation reduction: stdBefore=0.2500 stdAfter=0.0000 gain=0.2500" },
      { moves[1].node, moves[1].reason })
    assert.equal("more", names(pass(nodes, { n = list }, {
      evictable = function(one) return one.metadata.name ~= "cpu" end })))
    nodes[2].spec.unschedulable = true
    assert.equal("", names(pass(nodes, { n = list })))
    assert.equal("cpu", names(pass(nodes, { n = list }, { nodeFit = false })))
    assert.equal("", names(pass(nodes, { n = list }, { nodeFit = false, imbalanceThreshold = 0.25 })))
    assert.equal("", names(pass(nodes, { n = list }, { nodeFit = false, minImprovementThreshold = 0.3 })))
    assert.equal("", names(pass(nodes, { n = list }, { nodeFit = false,
      nodeSelector = { matchLabels = { a = "b" } } })))
    list[1].status.phase = "Succeeded"
    assert.equal("", names(pass(nodes, { n = list }, { nodeFit = false })))
  end)

  it("settles, and each move balances its node", function()
    seeds.each(500, function()
      local nodes, pods_on = cluster()
      local rounds, moves = 0
      repeat
        moves = pass(nodes, pods_on, { nodeFit = false })
        local of = {}
        for _, move in ipairs(moves) do
          assert.is_nil(of[move.node])
          of[move.node] = true
          local list, there = pods_on[move.node], { cpu = 10000, memory = 10 * 1024 ^ 3 }
          local before = fragmentation.imbalance(asked(list), there, { "cpu", "memory" })
          for i, one in ipairs(list) do if one == move.pod then table.remove(list, i) break end end
          local after = fragmentation.imbalance(asked(list), there, { "cpu", "memory" })
          assert.is_true(before > 0.15 and before - after > 0.02)
        end
        rounds = rounds + 1
        assert.is_true(rounds < 20)
      until #moves == 0
    end)
  end)
end)

describe("whole nodes to empty", function()
  local function rank(nodes, pods_on, more)
    local input = { nodes = nodes, pods_on = pods_on, evictable = anyone, resources = { "cpu", "memory" },
      target = function(one) return one.metadata.labels.app == "web" end }
    for key, value in pairs(more or {}) do input[key] = value end
    return binpack.rank(input)
  end
  local WEB = { app = "web" }

  it("are those with few other requests, then few pods, then the largest", function()
    local pods_on = {
      a = { pod("a1", "1", "1Gi", WEB), pod("a2", "1", "1Gi") },
      b = { pod("b1", "1", "1Gi", WEB), pod("b2", "2", "1Gi", WEB) },
      c = { pod("c1", "1", "1Gi", WEB) },
      d = { pod("d1", "0", "0", WEB), pod("d2", "1", "1Gi") },
      e = { pod("e1", "1", "1Gi") },
    }
    local nodes = { node "e", node "d", node "c", node "b", node "a" }
    local ranked = rank(nodes, pods_on)
    assert.equal("c1 b2 b1 a1 d1", names(ranked))
    assert.same({ 0.0, 1.0, math.huge }, { ranked[1].burden, ranked[4].burden, ranked[5].burden })
    local kept, skipped = rank(nodes, pods_on, { evictable = function(one)
      return one.metadata.name ~= "b1"
    end })
    assert.equal("c1 b2 a1 d1", names(kept))
    assert.same({ 1, "b1" }, { #skipped, skipped[1].metadata.name })
  end)

  it("exclude a pod that must stay, even if it is its node's only one", function()
    local pods_on = { a = { pod("a1", "1", "1Gi", WEB) }, b = { pod("b1", "1", "1Gi", WEB) } }
    local kept, skipped = rank({ node "a", node "b" }, pods_on, { evictable = function(one)
      return one.metadata.name ~= "a1"
    end })
    assert.equal("b1", names(kept))
    assert.same({ 1, "a1" }, { #skipped, skipped[1].metadata.name })
  end)

  it("give each pod one place, keep nodes apart, and come later with other pods", function()
    seeds.each(500, function()
      local nodes, pods_on = cluster()
      local ranked = rank(nodes, pods_on, { target = function(one)
        return one.metadata.labels.app == "a1"
      end })
      local seen, left, last = {}, {}, -1
      for i, one in ipairs(ranked) do
        assert.is_nil(seen[one.pod])
        seen[one.pod] = true
        if i > 1 and ranked[i - 1].node ~= one.node then left[ranked[i - 1].node] = true end
        assert.is_nil(left[one.node])
        assert.is_true(one.burden >= last)
        last = one.burden
      end
      for _, list in pairs(pods_on) do
        for _, one in ipairs(list) do
          assert.equal(one.metadata.labels.app == "a1" or nil, seen[one])
        end
      end
    end)
  end)
end)

describe("expensive nodes to drain", function()
  local function level(name) return { name = name, nodeSelector = { matchLabels = { kind = name } } } end

  local function pass(nodes, pods_on, more)
    local input = { nodes = nodes, pods_on = pods_on, evictable = anyone, nodeFit = true, mode = "BestEffort",
      evictionOrder = { level "k1", level "k2", level "k3" } }
    for key, value in pairs(more or {}) do input[key] = value end
    return priority.pass(input)
  end

  local function two()
    return { node("dear", { kind = "k1" }), node("cheap", { kind = "k3" }) },
      { dear = { pod("big", "6", "1Gi"), pod("small", "3", "1Gi") }, cheap = { pod("there", "5", "1Gi") } }
  end

  it("move the small pods first, as far as there is room for them", function()
    local nodes, pods_on = two()
    local moves = pass(nodes, pods_on)
    assert.equal("small", names(moves))
    assert.same({ "dear", "evicting from k1 priority resource to lower priority resource" },
      { moves[1].node, moves[1].reason })
    pods_on.dear[1] = pod("middle", "3", "2Gi")
    assert.equal("small", names(pass(nodes, pods_on)))
    assert.equal("small middle", names(pass(nodes, pods_on, { nodeFit = false })))
    assert.equal("", names(pass(nodes, pods_on, { evictionOrder = { level "k1" } })))
    assert.equal("", names(pass(nodes, pods_on, { evictionOrder = { level "k3", level "k2" } })))
  end)

  it("are drained completely or not at all, if configured", function()
    local nodes, pods_on = two()
    local moves, cordons = pass(nodes, pods_on, { mode = "DrainNode", autoCordon = true })
    assert.same({ 0, 0 }, { #moves, #cordons })
    pods_on.dear[1] = pod("middle", "2", "2Gi")
    moves, cordons = pass(nodes, pods_on, { mode = "DrainNode", autoCordon = true })
    assert.equal("middle small", names(moves))
    assert.same({ 1, "dear", "drain node dear (sourcePriority=k1)" },
      { #cordons, cordons[1].metadata.name, moves[1].reason })
    nodes[2].spec.unschedulable = true
    assert.equal("", names((pass(nodes, pods_on, { mode = "DrainNode" }))))
    assert.equal("middle small", names((pass(nodes, pods_on, { mode = "DrainNode", nodeFit = false }))))
  end)

  it("keep pods of the cheapest type, and move others to cheaper nodes with room", function()
    local moved = 0
    seeds.each(1000, function()
      local nodes, pods_on = cluster()
      local kind = {}
      for _, one in ipairs(nodes) do kind[one.metadata.name] = one.metadata.labels.kind end
      local mode = math.random(2) == 1 and "DrainNode" or "BestEffort"
      local moves = pass(nodes, pods_on, { mode = mode })
      moved = moved + #moves
      local gone = {}
      for _, move in ipairs(moves) do
        assert.is_nil(gone[move.pod])
        gone[move.pod] = true
        assert.is_true(kind[move.node] ~= "k3")
      end
      -- The moved pods together fit into the free resources of the cheaper nodes.
      local sum, room = {}, { cpu = 0, memory = 0 }
      for pod_gone in pairs(gone) do lists.accumulate(sum, lists.of(kube.requests(pod_gone))) end
      for _, one in ipairs(nodes) do
        if kind[one.metadata.name] ~= "k1" and not one.spec.unschedulable then
          local used = asked(pods_on[one.metadata.name])
          room.cpu = room.cpu + math.max(10000 - (used.cpu or 0), 0)
          room.memory = room.memory + math.max(10 * 1024 ^ 3 // 1 - (used.memory or 0), 0)
        end
      end
      assert.is_true((sum.cpu or 0) <= room.cpu and (sum.memory or 0) <= room.memory)
      if mode == "DrainNode" then
        for _, move in ipairs(moves) do
          for _, one in ipairs(pods_on[move.node]) do assert.is_true(gone[one]) end
        end
      end
    end)
    assert.is_true(moved > 100)
  end)
end)
