-- scheduler_kept_spec.lua - the scheduler's reader goes on with what it knew: over random changes of a
--- cluster, each followed by decisions, it answers as a reader that sees the cluster for the first time, and
--- it sums up no node anew that stayed the same.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cluster = require "scheduler.cluster"
local cycle = require "scheduler.cycle"
local decided = require "scheduler.decided"
local deviceshare = require "scheduler.deviceshare"
local kube = require "kubelua"
local pods = require "pods"
local quota = require "elasticquota.quota"
local reservation = require "scheduler.reservation"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local snapshot = require "scheduler.snapshot"

local NOW = 1767225600 -- 2026-01-01T00:00:00Z
local CASES, STEPS = sizes.of { short = 40, long = 600 }, 12

-- What was decided is in kube.shared, which only a script has that kubelua runs: here it is in a table.
local assumed = {}
function decided.pods(world)
  local out = {}
  for key, what in pairs(assumed) do
    local one = world:get(decided.POD, key)
    if one and one.metadata.uid == what.uid and decided.is_waiting(one) then out[key] = what end
  end
  return out
end
function decided.reservations() return {} end

-- Caches of plain objects, which are read as views are: by fields, and by a path.
local Object = { __call = function(self, path)
  local at = self
  for name in path:gmatch "[^.]+" do at = type(at) == "table" and at[name] or nil end
  return at
end }

local World = {}
World.__index = World

local function new_world()
  assumed = {}
  return setmetatable({ kinds = {}, version = 0, time = NOW, params = { schedulerName = "koord-scheduler" } },
    World)
end

-- Each change of an object is another object, as in a cache.
function World:put(kind, object)
  self.version = self.version + 1
  local meta = {}
  for key, value in pairs(object.metadata) do meta[key] = value end
  meta.resourceVersion = tostring(self.version)
  meta.uid = meta.uid or "u" .. self.version
  local now = setmetatable({ metadata = meta, spec = object.spec or {}, status = object.status or {} },
    Object)
  self.kinds[kind] = self.kinds[kind] or {}
  self.kinds[kind][(meta.namespace and meta.namespace .. "/" or "") .. meta.name] = now
  return now
end

function World:list(kind)
  local keys, out = {}, {}
  for key in pairs(self.kinds[kind] or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do out[i] = self.kinds[kind][key] end
  return out
end

function World:each(kind)
  local list, i = self:list(kind), 0
  return function()
    i = i + 1
    return list[i]
  end
end

function World:get(kind, namespace, name)
  return (self.kinds[kind] or {})[name and namespace .. "/" .. name or namespace]
end

function World:now() return kube.time(self.time) end

local function any(map)
  local keys = {}
  for key in pairs(map or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  return #keys > 0 and map[keys[math.random(#keys)]] or nil
end

local function node(i)
  local taints = math.random(5) == 1 and { { key = "k", value = "v",
    effect = math.random(2) == 1 and "NoSchedule" or "PreferNoSchedule" } } or nil
  return { metadata = { name = "n" .. i, labels = { zone = "z" .. math.random(2), host = "h" .. i } },
    spec = { taints = taints },
    status = { allocatable = { cpu = tostring(math.random(4, 10)), memory = "10Gi", pods = "10" } } }
end

local function pod(name, on)
  local spec = { nodeName = on, schedulerName = "koord-scheduler", priority = 9000,
    containers = { { name = "c", resources = { requests = { cpu = math.random(3) * 500 .. "m" } } } } }
  if math.random(8) == 1 then spec.nodeSelector = { zone = "z1" } end
  if math.random(6) == 1 then
    spec.affinity = { podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { {
      topologyKey = "host", labelSelector = { matchLabels = { app = "shy" } },
      namespaceSelector = { matchLabels = { team = "a" } } } } } }
  end
  local at = { type = "PodScheduled", status = "True", lastTransitionTime = tostring(kube.time(NOW)) }
  local labels = { app = math.random(3) == 1 and "shy" or nil,
    ["quota.scheduling.koordinator.sh/name"] = math.random(4) == 1 and "team" .. math.random(3) or nil }
  return { metadata = { namespace = "ns", name = name, labels = labels },
    spec = spec, status = { conditions = math.random(4) > 1 and { at } or nil } }
end

local function namespace(team) return { metadata = { name = "ns", labels = { team = team } } } end

local function report(world, name)
  local usage = { cpu = math.random(0, 8000) .. "m", memory = "1Gi" }
  return { metadata = { name = name }, status = { podsMetric = {},
    updateTime = tostring(kube.time(world.time - math.random(0, 200))),
    nodeMetric = { nodeUsage = { resources = usage } } } }
end

local function room(world, name, on)
  return { metadata = { name = "r" .. world.version }, spec = { allocateOnce = false,
    template = { spec = {} }, owners = { { labelSelector = { matchLabels = { app = name } } } } },
    status = { phase = "Available", nodeName = on, allocatable = { cpu = "1" } } }
end

local CHANGES = {
  function(world) world:put(cluster.NODE, node(math.random(8))) end,
  function(world) world:put(cluster.METRIC, report(world, "n" .. math.random(8))) end,
  function(world) world:put(cluster.POD, pod("p" .. world.version, "n" .. math.random(8))) end,
  function(world) world:put(cluster.POD, pod("p" .. world.version)) end,
  -- What was decided of a pod is seen, or is given up.
  function(world)
    local mine = any(world.kinds[cluster.POD])
    local known = mine and assumed[pods.key(mine)]
    if not known then return end
    assumed[pods.key(mine)] = nil
    if math.random(3) == 1 then return end
    world:put(cluster.POD, { metadata = mine.metadata, status = mine.status,
      spec = kube.merge(mine.spec, { nodeName = known.node }) })
  end,
  function(world)
    local gone = any(world.kinds[cluster.POD])
    if gone then world.kinds[cluster.POD][pods.key(gone)] = nil end
  end,
  function(world)
    local over = any(world.kinds[cluster.POD])
    if over then
      world:put(cluster.POD, { metadata = over.metadata, spec = over.spec, status = { phase = "Succeeded" } })
    end
  end,
  function(world)
    local gone = math.random(4) == 1 and any(world.kinds[cluster.NODE])
    if gone then world.kinds[cluster.NODE][gone.metadata.name] = nil end
  end,
  function(world)
    local device = { type = "gpu", minor = 0, health = true,
      resources = { ["koordinator.sh/gpu-core"] = "100" } }
    world:put(deviceshare.KIND, { metadata = { name = "n" .. math.random(8) },
      spec = { devices = { device } } })
  end,
  function(world)
    local max = { cpu = math.random(1, 6) }
    world:put(quota.KIND, { metadata = { namespace = "ns", name = "team" .. math.random(3) },
      spec = { min = { cpu = 1 }, max = max } })
  end,
  function(world)
    local old = any(world.kinds[reservation.KIND])
    if old then
      world.kinds[reservation.KIND][old.metadata.name] = nil
    elseif math.random(6) == 1 then
      world:put(reservation.KIND, room(world, "shy", "n" .. math.random(8)))
    end
  end,
}

-- Decides for what is known of pods, and counts them: the node, or why there is none, and the scores.
local function decide(state, nodes, waiting, args)
  local out = {}
  for i, fact in ipairs(waiting) do
    local result = cycle.run(fact.pod, nodes, state, args)
    local name = result.node and result.node.metadata.name
    out[i] = { key = fact.key, pod = fact.pod, node = name, why = result.message,
      scores = cycle.scores(result) }
    if name then snapshot.assume(state, fact.pod, result.node, cycle.got(result)) end
  end
  return out
end

describe("over random changes of a cluster", function()
  it("the kept state equals a new reading", function()
    seeds.each(CASES, function()
      local world, args, kept = new_world(), cycle.args { percentage = 0 }, cluster.reader()
      world:put(cluster.NAMESPACE, namespace "a")
      for i = 1, 6 do
        world:put(cluster.NODE, node(i))
        world:put(cluster.METRIC, report(world, "n" .. i))
      end
      for _ = 1, STEPS do
        world.time = world.time + math.random(0, 60)
        if math.random(4) == 1 then world:put(cluster.NAMESPACE, namespace(any { a = "a", b = "b" })) end
        for _ = 1, math.random(0, 4) do CHANGES[math.random(#CHANGES)](world) end
        local state, _, waiting, nodes = kept(world, args)
        local fresh, _, same_waiting, same_nodes = cluster.reader()(world, args)
        for _, n in ipairs(nodes) do
          assert.same(snapshot.info(fresh, n).requested, snapshot.info(state, n).requested)
        end
        assert.same(fresh.infos, state.infos)
        local placed = decide(state, nodes, waiting, args)
        assert.same(decide(fresh, same_nodes, same_waiting, args), placed)
        for _, one in ipairs(placed) do
          if one.node and math.random(2) == 1 then
            assumed[one.key] = { uid = one.pod.metadata.uid, node = one.node, at = world.time }
          end
        end
      end
    end)
  end)

  it("labels of namespaces, taints and cordons count as they are now", function()
    local world, args, kept = new_world(), cycle.args(), cluster.reader()
    local shy = pod "shy"
    shy.metadata.labels, shy.spec.nodeSelector, shy.spec.affinity = { app = "shy" }, nil, nil
    local guard = pod("guard", "n1")
    guard.spec.affinity = { podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { {
      topologyKey = "host", labelSelector = { matchLabels = { app = "shy" } },
      namespaceSelector = { matchLabels = { team = "a" } } } } } }
    local function tainted(i, effect, cordoned)
      local n = node(i)
      n.spec = { taints = effect and { { key = "k", effect = effect } }, unschedulable = cordoned }
      n.status.allocatable.cpu = i == 1 and "100" or "4"
      world:put(cluster.NODE, n)
    end
    local function where()
      local state, _, waiting, nodes = kept(world, args)
      return decide(state, nodes, waiting, args)[1].node
    end
    for i = 1, 3 do tainted(i) end
    world:put(cluster.NAMESPACE, namespace "a")
    world:put(cluster.POD, guard)
    world:put(cluster.POD, shy)
    assert.equal("n2", where())
    world:put(cluster.NAMESPACE, namespace "b")
    assert.equal("n1", where())
    world.kinds[cluster.POD]["ns/guard"] = nil
    assert.equal("n1", where())
    for _, effect in ipairs { "PreferNoSchedule", "NoSchedule", "NoExecute" } do
      tainted(1, effect)
      assert.equal("n2", where(), effect)
      tainted(1, nil)
      assert.equal("n1", where())
    end
    tainted(1, nil, true)
    assert.equal("n2", where())
  end)

  it("nodes that were not among those of an earlier pod count with their taints", function()
    local state, args = { pods_on = {}, now = NOW }, cycle.args()
    local fine, tainted = node(1), node(2)
    fine.spec.taints, tainted.spec.taints = nil, { { key = "k", effect = "NoSchedule" } }
    local one = pod "one"
    one.spec.nodeSelector, one.spec.affinity = nil, nil
    assert.equal(fine, cycle.run(one, { fine }, state, args).node)
    assert.is_nil(cycle.run(one, { tainted }, state, args).node)
  end)

  it("a pod with a decided node counts as used by its quota as long as the decision stands", function()
    local world, kept = new_world(), cluster.reader()
    world:put(quota.KIND, { metadata = { namespace = "ns", name = "team1" }, spec = { max = { cpu = 8 } } })
    local one = pod "one"
    one.metadata.labels = { ["quota.scheduling.koordinator.sh/name"] = "team1" }
    one.spec.containers[1].resources.requests.cpu = "2"
    one = world:put(cluster.POD, one)
    local function used() return kept(world).infos.team1.used end
    assert.same({}, used())
    assumed["ns/one"] = { uid = one.metadata.uid, node = "n1", at = NOW }
    assert.same({ cpu = 2000 }, used())
    assert.same({ cpu = 2000 }, used())
    assumed["ns/one"] = nil
    assert.same({}, used())
  end)

  it("a node is summed up anew when it, its pods or its report changed, or when pods were counted there",
    function()
    local world, args, kept = new_world(), cycle.args(), cluster.reader()
    for i = 1, 5 do world:put(cluster.NODE, { metadata = { name = "n" .. i },
      status = { allocatable = { cpu = "4", pods = "10" } } }) end
    local one = world:put(cluster.POD, pod("one", "n1"))
    local function infos()
      local state, _, _, nodes = kept(world, args)
      local out = {}
      for i, n in ipairs(nodes) do out[i] = snapshot.info(state, n) end
      return out, state, nodes
    end
    local function anew(before, now)
      local out = {}
      for i, info in ipairs(now) do
        if info ~= before[i] then out[#out + 1] = info.name end
      end
      return table.concat(out, " ")
    end
    local before = infos()
    local now, state, nodes = infos()
    assert.equal("", anew(before, now))
    snapshot.assume(state, setmetatable(pod "two", Object), nodes[2], {})
    world:put(cluster.METRIC, report(world, "n3"))
    world:put(cluster.NODE, { metadata = { name = "n4" }, status = { allocatable = { cpu = "8" } } })
    before, now = now, infos()
    assert.equal("n2 n3 n4", anew(before, now))
    world.kinds[cluster.POD][pods.key(one)] = nil
    before, now = now, infos()
    assert.equal("n1", anew(before, now))
    assert.equal(now[5], (infos())[5])
  end)
end)
