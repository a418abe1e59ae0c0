-- lownodeload_spec.lua - LowNodeLoad as functions: which pods may move and to which nodes, their order, when
-- a node counts as overloaded; and properties over random clusters from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local anomaly = require "lownodeload.anomaly"
local balance = require "lownodeload.balance"
local firstfit = require "lib.firstfit"
local kube = require "kubelua"
local measure = require "lownodeload.load"
local pods = require "pods"
local pools = require "lownodeload.pools"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local victims = require "lownodeload.victims"

local function node(name, more)
  local n = { metadata = { name = name, labels = {} }, spec = {},
    status = { allocatable = { cpu = "10", memory = "10Gi", pods = "100" } } }
  for key, value in pairs(more or {}) do n.spec[key] = value end
  return n
end

local function pod(name, more)
  local p = { metadata = { name = name, namespace = "ns", labels = {}, annotations = {},
    ownerReferences = { { kind = "ReplicaSet", name = "r" } } }, spec = { containers = {} },
    status = { phase = "Running" } }
  for key, value in pairs(more or {}) do p.spec[key] = value end
  return p
end

describe("a pod may be moved", function()
  it("unless nothing would recreate it, or it is bound to its node", function()
    assert.is_true(victims.evictable(pod "a"))
    local bare, daemon, mirror, going = pod "b", pod "d", pod "m", pod "g"
    bare.metadata.ownerReferences = nil
    daemon.metadata.ownerReferences[1].kind = "DaemonSet"
    mirror.metadata.annotations["kubernetes.io/config.mirror"] = "x"
    going.metadata.deletionTimestamp = "2026-01-01T00:00:00Z"
    for _, p in ipairs { bare, daemon, mirror, going, pod("c", { priority = 2000000000 }),
      pod("l", { volumes = { { name = "v", emptyDir = {} } } }) } do
      assert.is_false((victims.evictable(p)), p.metadata.name)
    end
    bare.metadata.annotations["descheduler.alpha.kubernetes.io/evict"] = ""
    assert.is_true(victims.evictable(bare))
  end)

  it("when the settings select its namespace and labels", function()
    local p = pod "a"
    p.metadata.labels.tier = "batch"
    local function chosen(settings) return victims.chosen(p, settings) end
    assert.is_true(chosen {})
    assert.is_false(chosen { evictableNamespaces = { exclude = { "ns" } } })
    assert.is_false(chosen { evictableNamespaces = { include = { "other" } } })
    assert.is_true(chosen { podSelectors = { { selector = { matchLabels = { tier = "batch" } } } } })
    assert.is_false(chosen { podSelectors = { { selector = { matchLabels = { tier = "web" } } } } })
  end)
end)

describe("the search for the first bin with room", function()
  it("agrees with a linear search, over random bins", function()
    seeds.each(300, function()
      local rooms = {}
      for i = 1, math.random(20) do rooms[i] = { cpu = math.random(-2, 8), memory = math.random(0, 8) } end
      local bins = firstfit.new(rooms)
      for _ = 1, 30 do
        local from, wanted, expected = math.random(#rooms + 1), { cpu = math.random(-1, 4) }, nil
        if math.random(2) == 1 then wanted.memory = math.random(0, 4) end
        for i = from, #rooms do
          local room = rooms[i]
          local fits = room.cpu >= wanted.cpu and room.memory >= (wanted.memory or 0)
          expected = expected or fits and i or nil
        end
        assert.equal(expected, bins:next(from, wanted))
        assert.equal(bins:next(1, wanted), bins:first(wanted))
        if expected then
          bins:take(expected, wanted)
          local room = rooms[expected]
          room.cpu, room.memory = room.cpu - wanted.cpu, room.memory - (wanted.memory or 0)
        end
      end
    end)
  end)

  it("finds none among no bins", function() assert.is_nil(firstfit.new({}):first {}) end)
end)

describe("a pod fits a node", function()
  local function fits(p, n, on) return victims.fits(p, { node = n, pods = on or {} }) end

  it("that its selector and affinity select", function()
    local n = node "n"
    n.metadata.labels = { zone = "a", size = "8" }
    assert.is_true(fits(pod("p", { nodeSelector = { zone = "a" } }), n))
    assert.is_false(fits(pod("p", { nodeSelector = { zone = "b" } }), n))
    local function wanting(...)
      return pod("p", { affinity = { nodeAffinity = {
        requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = { ... } } } } })
    end
    local function term(key, operator, ...)
      return { matchExpressions = { { key = key, operator = operator, values = { ... } } } }
    end
    assert.is_true(fits(wanting(term("zone", "In", "b"), term("size", "Gt", "4")), n))
    assert.is_false(fits(wanting(term("zone", "NotIn", "a")), n))
    assert.is_true(fits(wanting(term("rack", "DoesNotExist")), n))
    assert.is_false(fits(wanting(term("size", "Lt", "8")), n))
    assert.is_true(fits(wanting { matchFields = { { key = "metadata.name", operator = "In",
      values = { "n" } } } }, n))
    assert.is_false(fits(wanting {}, n))
  end)

  it("whose taints it tolerates, and that has room", function()
    assert.is_false(fits(pod "p", node("n", { unschedulable = true })))
    local tainted = node("n", { taints = { { key = "a", value = "b", effect = "NoSchedule" } } })
    assert.is_false(fits(pod "p", tainted))
    assert.is_true(fits(pod("p", { tolerations = { { key = "a", operator = "Exists" } } }), tainted))
    assert.is_true(fits(pod("p", { tolerations = { { key = "a", value = "b", effect = "NoSchedule" } } }),
      tainted))
    assert.is_false(fits(pod("p", { tolerations = { { key = "a", value = "c" } } }), tainted))
    local big = pod("big", { containers = { { resources = { requests = { cpu = "6" } } } } })
    assert.is_true(fits(big, node "n"))
    assert.is_false(fits(big, node "n", { big }))
  end)
end)

describe("what is remembered of a node", function()
  local function remembered(list)
    local out = {}
    for i, p in ipairs(list) do
      out[i] = kube.merge(p, { metadata = { uid = "of " .. p.metadata.name, resourceVersion = p.version } })
    end
    return out
  end

  local function seen(load)
    local keys = { pods = {}, prod_pods = {} }
    for which, list in pairs(keys) do
      for i, p in ipairs(load[which]) do list[i] = pods.key(p) end
    end
    return { load.usage, load.prod_usage, load.metrics, keys }
  end

  it("does not show in its load, over random changes of its pods and reports", function()
    local on, versions, n = {}, 0, node "remembered"
    local names = { cpu = true, memory = true }
    seeds.each(300, function()
      local at, p = math.random(6), pod("p" .. math.random(9))
      versions = versions + 1
      p.version = tostring(versions)
      p.status.phase = math.random(4) == 1 and "Succeeded" or "Running"
      p.metadata.labels["koordinator.sh/priority-class"] = math.random(2) == 1 and "koord-prod" or "koord-mid"
      on[math.min(at, #on + 1)] = math.random(3) > 1 and p or on[at]
      local reports = {}
      for i = 1, math.random(0, 6) do
        reports[i] = { namespace = "ns", name = "p" .. math.random(9),
          podUsage = { resources = { cpu = math.random(900) .. "m", memory = math.random(900) .. "Mi" } } }
      end
      local metrics = { remembered = { status = { podsMetric = reports,
        nodeMetric = { systemUsage = { resources = { cpu = "1" } } } } } }
      local known = measure.loads({ n }, { remembered = remembered(on) }, metrics, names, nil, 0)[1]
      local fresh = measure.loads({ n }, { remembered = on }, metrics, names, nil, 0)[1]
      assert.same(seen(fresh), seen(known))
    end)
  end)

  it("counts amounts whose thousandths do not fit 64 bits", function()
    local reports = { { namespace = "ns", name = "p", podUsage = { resources = { memory = "10P" } } } }
    local metric = { status = { nodeMetric = {}, podsMetric = reports } }
    local load = measure.loads({ node "n" }, {}, { n = metric }, { memory = true }, nil, 0)[1]
    assert.equal(10000000000000000, load.usage.memory)
  end)
end)

describe("the first to go", function()
  it("is of the lower class, then priority, then QoS, then cost, then the larger part of what is too much",
    function()
    local function labelled(name, class, more)
      local p = pod(name, more)
      p.metadata.labels["koordinator.sh/priority-class"] = class
      return p
    end
    local costly = labelled("costly", "koord-batch")
    costly.metadata.annotations["controller.kubernetes.io/pod-deletion-cost"] = "5"
    local list = { labelled("prod", "koord-prod"), labelled("big", "koord-batch"),
      labelled("small", "koord-batch"),
      costly, labelled("free", "koord-free"), labelled("urgent", "koord-batch", { priority = 9 }) }
    local load = { metrics = { ["ns/big"] = { cpu = 900 }, ["ns/small"] = { cpu = 100 },
      ["ns/costly"] = { cpu = 950 } } }
    victims.sort(list, load, { cpu = 1000 }, { cpu = 1 })
    local names = {}
    for i, p in ipairs(list) do names[i] = p.metadata.name end
    assert.same({ "free", "big", "small", "costly", "urgent", "prod" }, names)
  end)

  it("has a cost that Kubernetes accepts, or none", function()
    local p = pod "p"
    for text, cost in pairs { ["5"] = 5, ["-5"] = -5, ["0"] = 0, ["+5"] = 0, ["05"] = 0, ["5.0"] = 0, x = 0,
      [""] = 0,
      ["2147483647"] = 2147483647, ["2147483648"] = 0, ["99999999999999999999"] = 0 } do
      p.metadata.annotations.cost = text
      assert.equal(cost, pods.cost(p, "cost"), text)
    end
  end)
end)

describe("an anomaly", function()
  local condition = { timeout = "1m", consecutiveAbnormalities = 2, consecutiveNormalities = 1 }

  it("starts with one bad check more in a row than the condition says", function()
    local entry = {}
    assert.is_false(anomaly.mark(entry, false, 0, condition))
    assert.is_false(anomaly.mark(entry, false, 1, condition))
    assert.is_true(anomaly.mark(entry, false, 2, condition))
    entry = {}
    anomaly.mark(entry, false, 0, condition)
    anomaly.mark(entry, true, 1, condition)
    anomaly.mark(entry, false, 2, condition)
    assert.is_false(anomaly.mark(entry, false, 3, condition))
  end)

  it("ends by time, and by good checks", function()
    local entry = {}
    for now = 0, 2 do anomaly.mark(entry, false, now, condition) end
    assert.is_true(anomaly.mark(entry, false, 62, condition))
    assert.is_false(anomaly.mark(entry, false, 63, condition))
    entry = {}
    for now = 0, 2 do anomaly.mark(entry, false, now, condition) end
    assert.is_true(anomaly.mark(entry, true, 3, condition))
    assert.is_false(anomaly.mark(entry, true, 4, condition))
  end)

  it("is forgotten some time after the last bad check", function()
    local loads = { { name = "n" } }
    local function after(seconds, kept)
      local entries = {}
      for now = 0, 1 do anomaly.filter(loads, entries, now, condition, kept) end
      return #anomaly.filter(loads, entries, 1 + seconds, condition, kept)
    end
    assert.same({ 1, 0 }, { after(300), after(301) })
    assert.same({ 1, 0 }, { after(600, "10m"), after(601, "10m") })
  end)

  it("needs no wait without a condition", function()
    local loads = { { name = "n" } }
    assert.same(loads, anomaly.filter(loads, {}, 0, nil))
    assert.same({}, anomaly.filter(loads, {}, 0, condition))
  end)
end)

describe("thresholds", function()
  it("that are absent have no effect, except that memory's is 100 %", function()
    local t = measure.thresholds { lowThresholds = { cpu = 30 }, highThresholds = { cpu = 50 } }
    assert.same({ cpu = 30, memory = 100 }, t.lowThresholds)
    assert.same({ cpu = 100, memory = 100 }, t.prodHighThresholds)
    assert.same({ cpu = 0, memory = 0 }, measure.thresholds({ useDeviationThresholds = true,
      lowThresholds = { cpu = 5 }, highThresholds = { cpu = 5 } }).prodLowThresholds)
  end)
end)

describe("the pools of LowNodeLoadArgs", function()
  it("begin with the thresholds of all nodes, and take from these what they leave out", function()
    local list = pools.of { lowThresholds = { cpu = 10 }, highThresholds = { cpu = 20 },
      resourceWeights = { cpu = 3 }, anomalyCondition = {}, nodeSelector = {},
      nodePools = { { name = "own", highThresholds = { cpu = 90 }, lowThresholds = { cpu = 80 },
        anomalyCondition = { consecutiveAbnormalities = 2 } }, { name = "rest" } } }
    assert.equal(3, #list)
    assert.is_nil(list[1].nodeSelector)
    assert.same({ timeout = "1m", consecutiveAbnormalities = 5, consecutiveNormalities = 3 },
      list[1].anomalyCondition)
    assert.same({ cpu = 90 }, list[2].highThresholds)
    assert.same({ 2, 3 }, { list[2].anomalyCondition.consecutiveAbnormalities,
      list[2].anomalyCondition.consecutiveNormalities })
    assert.same({ cpu = 20 }, list[3].highThresholds)
    assert.same({ cpu = 3, memory = 1 }, list[3].resourceWeights)
  end)

  it("share the state of a node, under the condition of its first check", function()
    local entry = {}
    local once = { timeout = "1m", consecutiveAbnormalities = 2, consecutiveNormalities = 1 }
    local later = { timeout = "1m", consecutiveAbnormalities = 9, consecutiveNormalities = 1 }
    assert.is_false(anomaly.mark(entry, false, 0, once))
    assert.is_false(anomaly.mark(entry, false, 0, later))
    assert.is_true(anomaly.mark(entry, false, 1, later))
  end)
end)

-- ---------------------------------------------------------------- laws

describe("over random clusters", function()
  local CASES = sizes.of { short = 250, long = 1000 }
  local POOL = { lowThresholds = { cpu = 40, memory = 50 }, highThresholds = { cpu = 70, memory = 80 } }

  -- Nodes with pods; metrics() returns their current usage.
  local function cluster()
    local c = { nodes = {}, pods_on = {}, used = {} }
    for i = 1, math.random(2, 8) do
      local name = "n" .. i
      c.nodes[i], c.pods_on[name] = node(name, { unschedulable = math.random(8) == 1 }), {}
      local heavy = math.random(2) == 1 and 900 or 200
      for j = 1, math.random(0, 14) do
        local p = pod(name .. "-" .. j)
        table.insert(c.pods_on[name], p)
        c.used[p] = { cpu = math.random(0, heavy) .. "m", memory = math.random(0, heavy) .. "Mi" }
      end
    end
    return c
  end

  local function metrics(c)
    local out = {}
    for name, list in pairs(c.pods_on) do
      local reports = {}
      for i, p in ipairs(list) do
        reports[i] = { namespace = "ns", name = p.metadata.name, podUsage = { resources = c.used[p] } }
      end
      out[name] = { metadata = { name = name }, status = { nodeMetric = {}, podsMetric = reports } }
    end
    return out
  end

  local function pass(c)
    return balance.pass { pool = POOL, nodes = c.nodes, pods_on = c.pods_on, metrics = metrics(c), now = 0,
      node_fit = true,
      detectors = { node = {}, prod = {} }, move = function() return true end,
      evictable = function(p) return (victims.evictable(p)) end }
  end

  -- Moves the pods like a scheduler: to the target node with the most free resources.
  local function carry_out(c, result)
    for _, move in ipairs(result.moves) do
      for i, p in ipairs(c.pods_on[move.node]) do
        if p == move.pod then table.remove(c.pods_on[move.node], i) break end
      end
    end
    local placed = true
    for _, move in ipairs(result.moves) do
      local best, most
      local loads = measure.loads(c.nodes, c.pods_on, metrics(c), { cpu = true, memory = true }, nil, 0)
      measure.limit(loads, measure.thresholds(POOL), false)
      for _, load in ipairs(loads) do
        local used = measure.loads({ load.node }, { [load.name] = { move.pod } },
          { [load.name] = { status = { nodeMetric = {},
          podsMetric = { { namespace = "ns", name = "x",
            podUsage = { resources = c.used[move.pod] } } } } } },
          { cpu = true, memory = true }, nil, 0)[1].usage
        local left = math.min((load.high.cpu - load.usage.cpu - used.cpu) / load.allocatable.cpu,
          (load.high.memory - load.usage.memory - used.memory) / load.allocatable.memory)
        local open = not load.node.spec.unschedulable and load.name ~= move.node
        if open and left >= 0 and (not most or left > most) then best, most = load.name, left end
      end
      placed = placed and best ~= nil
      if best then table.insert(c.pods_on[best], move.pod) end
    end
    return placed
  end

  local function each_case(fn)
    seeds.each(CASES, function() fn(cluster()) end)
  end

  it("pods leave only overloaded nodes, and only while these are overloaded", function()
    each_case(function(c)
      local high, taken, result = {}, {}, pass(c)
      for _, load in ipairs(measure.classify(result.loads).high) do high[load.name] = true end
      for _, load in ipairs(result.classes.high) do high[load.name] = load end
      for _, move in ipairs(result.moves) do
        assert.is_truthy(high[move.node])
        taken[move.node] = taken[move.node] or {}
        table.insert(taken[move.node], move.pod)
      end
      -- Before the last eviction, each of them was still above its threshold.
      for name, list in pairs(taken) do
        local last = list[#list]
        for i, p in ipairs(c.pods_on[name]) do
          for k = 1, #list - 1 do
            if p == list[k] then c.pods_on[name][i] = false end
          end
        end
        local rest = {}
        for _, p in ipairs(c.pods_on[name]) do if p then rest[#rest + 1] = p end end
        c.pods_on[name] = rest
        local load = measure.loads({ high[name].node }, c.pods_on, metrics(c), { cpu = true, memory = true },
          nil, 0)
        measure.limit(load, measure.thresholds(POOL), false)
        assert.is_true(#measure.over(load[1]) > 0, last.metadata.name)
      end
    end)
  end)

  it("passes settle, and overload no other node", function()
    each_case(function(c)
      local rounds = 0
      repeat
        local before, result = {}, pass(c)
        for _, load in ipairs(result.classes.high) do before[load.name] = true end
        local placed = carry_out(c, result)
        local loads = measure.loads(c.nodes, c.pods_on, metrics(c), { cpu = true, memory = true }, nil, 0)
        measure.limit(loads, measure.thresholds(POOL), false)
        for _, load in ipairs(measure.classify(loads).high) do assert.is_true(before[load.name]) end
        rounds = rounds + 1
        assert.is_true(rounds < 200, "no rest after 200 passes")
      until #result.moves == 0 or not placed
    end)
  end)

  it("a pass does not change its input, and is repeatable", function()
    each_case(function(c)
      local a, b = {}, {}
      for i, move in ipairs(pass(c).moves) do a[i] = move.node .. " " .. move.pod.metadata.name end
      for i, move in ipairs(pass(c).moves) do b[i] = move.node .. " " .. move.pod.metadata.name end
      assert.same(a, b)
    end)
  end)
end)
