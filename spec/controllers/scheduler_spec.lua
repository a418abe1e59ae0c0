-- scheduler_spec.lua - the scheduler's policies as functions: nodes with enough resources, overused nodes,
-- the best node, the message for a pod that fits nowhere, gangs; and properties over random clusters from
-- fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local gang = require "scheduler.gang"
local lists = require "lib.lists"
local loadaware = require "scheduler.loadaware"
local reserved = require "scheduler.reservation.reserved"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local snapshot = require "scheduler.snapshot"
local template = require "scheduler.reservation.template"

local NOW = 1767225600 -- 2026-01-01T00:00:00Z
local JUST_NOW = "2025-12-31T23:59:30Z"
local LONG_AGO = "2025-12-31T20:00:00Z"

local function node(name, more)
  local n = { metadata = { name = name, labels = {}, annotations = {} }, spec = {},
    status = { allocatable = { cpu = "10", memory = "10Gi", pods = "10" } } }
  for key, value in pairs(more or {}) do n.spec[key] = value end
  return n
end

local function pod(name, requests, more)
  local p = { metadata = { name = name, namespace = "ns", labels = {} },
    spec = { containers = { { name = "c", resources = { requests = requests or {} } } } },
    status = { conditions = { { type = "PodScheduled", status = "True", lastTransitionTime = LONG_AGO } } } }
  for key, value in pairs(more or {}) do p.spec[key] = value end
  return p
end

local function metric(name, cpu, memory, more)
  local m = { metadata = { name = name }, spec = {}, status = { updateTime = JUST_NOW, podsMetric = {},
    nodeMetric = { nodeUsage = { resources = { cpu = cpu, memory = memory } } } } }
  for key, value in pairs(more or {}) do m.status[key] = value end
  return m
end

local function run(p, nodes, o)
  o = o or {}
  local state = { now = NOW, pods_on = o.pods_on or {}, metrics = o.metrics }
  return cycle.run(p, nodes, state, o.args), state
end

describe("a pod fits a node", function()
  it("that has its requests, batch resources and devices included, and a free pod slot", function()
    local n = node "n"
    n.status.allocatable["kubernetes.io/batch-cpu"] = "1000"
    local batch = pod("p", { ["kubernetes.io/batch-cpu"] = "600" })
    assert.equal(n, run(batch, { n }).node)
    local full = { pods_on = { n = { pod("q", { ["kubernetes.io/batch-cpu"] = "500" }) } } }
    assert.equal("0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu.",
      run(batch, { n }, full).message)
    assert.equal("0/1 nodes are available: 1 Insufficient koordinator.sh/gpu.",
      run(pod("p", { ["koordinator.sh/gpu"] = "50" }), { n }).message)
    local ten = {}
    for i = 1, 10 do ten[i] = pod("q" .. i) end
    assert.equal("0/1 nodes are available: 1 Too many pods.", run(pod "p", { n },
      { pods_on = { n = ten } }).message)
    ten[1].status.phase = "Succeeded"
    assert.equal(n, run(pod "p", { n }, { pods_on = { n = ten } }).node)
  end)

  it("that its selector selects and whose taints it tolerates; each node reports its first reason", function()
    local a, b, c = node "a", node("b", { taints = { { key = "k", value = "v", effect = "NoSchedule" } } }),
      node("c", { unschedulable = true })
    a.metadata.labels.zone = "x"
    local elsewhere = pod("p", { cpu = "1" }, { nodeSelector = { zone = "y" } })
    local result = run(elsewhere, { a, b, c })
    assert.equal("0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
      .. "1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable.", result.message)
    assert.same({ plugin = "TaintToleration", reasons = { "node(s) had untolerated taint {k: v}" } },
      result.refused.b)
    assert.equal("a", run(pod("p", { cpu = "1" }, { nodeSelector = { zone = "x" } }),
      { a, b, c }).node.metadata.name)
  end)

  it("whose host ports are free, for their protocol and address", function()
    local function listening(name, port, more)
      local p = pod(name)
      p.spec.containers[1].ports = { { hostPort = port, containerPort = port,
        protocol = more and more.protocol,
        hostIP = more and more.ip } }
      return p
    end
    local function place(first, second)
      return run(second, { node "n" }, { pods_on = { n = { first } } })
    end
    assert.equal("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
      place(listening("a", 80), listening("b", 80)).message)
    assert.is_truthy(place(listening("a", 80), listening("b", 81)).node)
    assert.is_truthy(place(listening("a", 80), listening("b", 80, { protocol = "UDP" })).node)
    assert.is_truthy(place(listening("a", 80, { ip = "10.0.0.1" }),
      listening("b", 80, { ip = "10.0.0.2" })).node)
    assert.is_nil(place(listening("a", 80, { ip = "10.0.0.1" }), listening("b", 80, { ip = "0.0.0.0" })).node)
    assert.is_truthy(place(pod "a", listening("b", 80)).node)
  end)

  it("names everything that is missing, with the number of nodes", function()
    local result = run(pod("p", { cpu = "11", memory = "11Gi" }), { node "a", node "b" })
    assert.equal("0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.", result.message)
    assert.equal("0/0 nodes are available.", run(pod "p", {}).message)
  end)
end)

describe("a pod prefers", function()
  local function named(name, labels, taints)
    local n = node(name, { taints = taints })
    n.metadata.labels = labels
    return n
  end

  local function choose(p, ...) return cycle.run(p, { ... }, { pods_on = {}, now = NOW }) end

  it("nodes that match its preferred terms, by weight", function()
    local function prefers(...)
      return pod("p", {}, { affinity = { nodeAffinity = {
        preferredDuringSchedulingIgnoredDuringExecution = { ... } } } })
    end
    local function term(weight, key, value)
      return { weight = weight, preference = { matchExpressions = { { key = key, operator = "In",
        values = { value } } } } }
    end
    local result = choose(prefers(term(20, "disk", "ssd"), term(5, "zone", "a")), named("a", { zone = "a" }),
      named("b", { disk = "ssd" }), named("c", {}))
    assert.equal("b", result.node.metadata.name)
    local scores = cycle.scores(result)
    assert.same({ 25, 100, 0 },
      { scores.a.by.NodeAffinity, scores.b.by.NodeAffinity, scores.c.by.NodeAffinity })
    assert.is_nil(cycle.scores(choose(pod("p", {}), node "a")).a.by.NodeAffinity)
  end)

  it("nodes that it leaves balanced, among those with the same free part", function()
    local all, BALANCED = { node "a", node "b", node "c" }, "NodeResourcesBalancedAllocation"
    all[3].status.allocatable.memory = nil
    local state = { now = NOW, pods_on = { a = { pod("q", { cpu = "4", memory = "0" }) },
      b = { pod("q", { cpu = "2", memory = "2Gi" }) } } }
    local function scores(asked)
      local result, out = cycle.run(pod("p", asked), all, state), {}
      for i, name in ipairs { "a", "b", "c" } do
        local one = cycle.scores(result)[name]
        out[i] = one and one.by[BALANCED] or false
      end
      return out, result
    end
    local got, result = scores { cpu = "1", memory = "1Gi" }
    assert.same({ 80, 100, false }, got)
    assert.equal("b", result.node.metadata.name)
    assert.same({ 70, 90, 100 }, (scores { cpu = "2" }), "a resource that the node lacks does not count")
    assert.same({ 95, 85, false }, (scores { memory = "3Gi" }))
    assert.same({ 79, 99, 100 }, (scores { cpu = "1m" }), "rounded down")
    assert.same({ false, false, false }, (scores { ["kubernetes.io/batch-cpu"] = "0" }))
    -- A node that pods exceed counts as full.
    state = { now = NOW, pods_on = { a = { pod("q", { cpu = "30", memory = "1Gi" }) } } }
    assert.same({ 60, 95, false }, (scores { memory = "1Gi" }))
  end)

  it("nodes without PreferNoSchedule taints", function()
    local soft = { { key = "old", effect = "PreferNoSchedule" } }
    local result = choose(pod("p", {}), named("a", {}, soft), named("b", {}))
    assert.equal("b", result.node.metadata.name)
    local tolerant = pod("p", {}, { tolerations = { { key = "old", operator = "Exists" } } })
    assert.equal("a", choose(tolerant, named("a", {}, soft), named("b", {})).node.metadata.name)
    assert.equal("a", choose(pod("p", {}), named("a", {}, soft)).node.metadata.name)
  end)
end)

describe("a pod with volumes", function()
  local function claim(spec, annotations) return { metadata = { annotations = annotations }, spec = spec } end
  local BOUND = { ["pv.kubernetes.io/bind-completed"] = "yes" }

  local function said(known, claims, labels)
    local volumes, n = {}, node "n"
    for i, name in ipairs(claims) do
      volumes[i] = { name = "v" .. i, persistentVolumeClaim = { claimName = name } }
    end
    n.metadata.labels = labels or {}
    local result = cycle.run(pod("p", {}, { volumes = volumes }), { n },
      { pods_on = {}, now = NOW, volumes = known })
    return result.node and "fits" or result.message:match "available: (.*)%.$"
  end

  local function with_volume(volume)
    return { claims = { ["ns/c"] = claim({ volumeName = "v" }, BOUND) }, volumes = { v = volume } }
  end

  it("goes where the volumes of its claims are", function()
    local zoned = with_volume { metadata = { labels = { ["topology.kubernetes.io/zone"] = "a__b" } },
      spec = {} }
    assert.equal("fits", said(zoned, { "c" }))
    assert.equal("fits", said(zoned, { "c" }, { ["topology.kubernetes.io/zone"] = "b" }))
    assert.equal("1 node(s) had no available volume zone",
      said(zoned, { "c" }, { ["topology.kubernetes.io/zone"] = "c" }))
    local here = with_volume { metadata = {}, spec = { nodeAffinity = { required = { nodeSelectorTerms = {
      { matchExpressions = { { key = "disk", operator = "In", values = { "ssd" } } } } } } } } }
    assert.equal("fits", said(here, { "c" }, { disk = "ssd" }))
    assert.equal("1 node(s) didn't match PersistentVolume's node affinity", said(here, { "c" }))
    assert.equal("1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
      said(with_volume(nil), { "c" }))
  end)

  it("waits for claims that are missing, ending, or bound by others", function()
    assert.equal('persistentvolumeclaim "c" not found', said({ claims = {} }, { "c" }))
    local going = { metadata = { deletionTimestamp = "2026-01-01T00:00:00Z" }, spec = {} }
    assert.equal('persistentvolumeclaim "c" is being deleted',
      said({ claims = { ["ns/c"] = going } }, { "c" }))
    local unbound = "pod has unbound immediate PersistentVolumeClaims"
    assert.equal(unbound, said({ claims = { ["ns/c"] = claim {} } }, { "c" }))
    assert.equal(unbound, said({ claims = { ["ns/c"] = claim { volumeName = "v" } } }, { "c" }))
    assert.equal("fits", said(nil, { "c" }))
  end)

  it("goes where its class can provision a volume for its claim", function()
    local function waiting(class, annotations)
      class.volumeBindingMode = "WaitForFirstConsumer"
      return { claims = { ["ns/c"] = claim({ storageClassName = "s" }, annotations) },
        classes = { s = class } }
    end
    local none = "1 node(s) didn't find available persistent volumes to bind"
    assert.equal("fits", said(waiting { provisioner = "example.com/disks" }, { "c" }))
    assert.equal(none, said(waiting { provisioner = "kubernetes.io/no-provisioner" }, { "c" }))
    local some = { provisioner = "example.com/disks", allowedTopologies = { { matchLabelExpressions = {
      { key = "zone", values = { "a" } } } } } }
    assert.equal("fits", said(waiting(some), { "c" }, { zone = "a" }))
    assert.equal(none, said(waiting(some), { "c" }, { zone = "b" }))
    assert.equal(none, said(waiting({ provisioner = "example.com/disks" },
      { ["volume.kubernetes.io/selected-node"] = "m" }), { "c" }))
  end)
end)

describe("a scheduler of one plugin", function()
  it("decides with any plugin", function()
    for _, plugin in ipairs(cycle.PLUGINS) do
      local state = { pods_on = {}, now = NOW, devices = { n = { metadata = { name = "n" }, spec = {} } } }
      local result = cycle.run(pod("p", { cpu = "1" }), { node "n" }, state, { plugins = { plugin } })
      assert.equal("n", result.node.metadata.name, plugin.name)
    end
  end)
end)

describe("pods among others", function()
  local function in_zone(name, zone)
    local n = node(name)
    n.metadata.labels.zone = zone
    return n
  end

  local function labelled(name, app, spec)
    local p = pod(name, { cpu = "100m" }, spec)
    p.metadata.labels.app = app
    return p
  end

  local function of(app, more)
    local term = { topologyKey = "zone", labelSelector = { matchLabels = { app = app } } }
    for key, value in pairs(more or {}) do term[key] = value end
    return term
  end

  local function affinity(kind, term)
    return { affinity = { [kind] = { requiredDuringSchedulingIgnoredDuringExecution = { term } } } }
  end

  local function where(p, pods_on, state)
    state = state or {}
    state.now, state.pods_on = NOW, pods_on
    local result = cycle.run(p, { in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b"), node "none" },
      state)
    return result.node and result.node.metadata.name, result
  end

  it("follow required affinity within a domain, and may be the first of their group",
    function()
    local near = labelled("p", "web", affinity("podAffinity", of "db"))
    local name, result = where(near, { b1 = { labelled("q", "db") } })
    assert.equal("b1", name)
    assert.same({ "node(s) didn't match pod affinity rules" }, result.refused.a1.reasons)
    assert.is_nil((where(near, {})))
    near.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[1] = of "web"
    assert.equal("a1", (where(near, {})))
    assert.equal("b1", (where(near, { b1 = { labelled("q", "web") } })))
  end)

  it("match pods of their own namespace, or of named or selected namespaces", function()
    local there = labelled("q", "db")
    there.metadata.namespace = "other"
    local function near(more) return labelled("p", "web", affinity("podAffinity", of("db", more))) end
    assert.is_nil((where(near(), { b1 = { there } })))
    assert.equal("b1", (where(near { namespaces = { "other" } }, { b1 = { there } })))
    assert.equal("b1", (where(near { namespaceSelector = {} }, { b1 = { there } })))
    local team = near { namespaceSelector = { matchLabels = { team = "x" } } }
    assert.is_nil((where(team, { b1 = { there } }, { namespaces = { other = {} } })))
    assert.equal("b1", (where(team, { b1 = { there } }, { namespaces = { other = { team = "x" } } })))
  end)

  it("follow required anti-affinity, in both directions", function()
    local far = labelled("p", "web", affinity("podAntiAffinity", of "web"))
    local name, result = where(far, { a1 = { labelled("q", "web") } })
    assert.equal("b1", name)
    assert.same({ "node(s) didn't match pod anti-affinity rules" }, result.refused.a2.reasons)
    local shy = labelled("q", "db", affinity("podAntiAffinity", of "web"))
    name, result = where(labelled("p", "web"), { a1 = { shy } })
    assert.equal("b1", name)
    assert.same({ "node(s) didn't satisfy existing pods anti-affinity rules" }, result.refused.a2.reasons)
    assert.equal("a1", (where(labelled("p", "other"), { a1 = { shy } })))
  end)

  it("follow their own preferences", function()
    local function prefers(kind)
      return labelled("p", "web",
        { affinity = { [kind] = { preferredDuringSchedulingIgnoredDuringExecution = {
        { weight = 100, podAffinityTerm = of "db" } } } } })
    end
    assert.equal("b1", (where(prefers "podAffinity", { b1 = { labelled("q", "db") } })))
    assert.equal("b1", (where(prefers "podAntiAffinity", { a1 = { labelled("q", "db") } })))
  end)

  it("follow the preferences of existing pods", function()
    local function there(kind, how, term)
      return { b1 = { labelled("q", "web", { affinity = { [kind] = { [how] = { term } } } }) } }
    end
    local soft = "preferredDuringSchedulingIgnoredDuringExecution"
    local hard = "requiredDuringSchedulingIgnoredDuringExecution"
    local weighted = { weight = 100, podAffinityTerm = of "db" }
    local function score(node_name, on)
      local _, result = where(labelled("p", "db"), on)
      return cycle.scores(result)[node_name].by.InterPodAffinity
    end
    assert.equal("b1", (where(labelled("p", "db"), there("podAffinity", soft, weighted))))
    assert.equal(100, score("b1", there("podAffinity", soft, weighted)))
    assert.equal(100, score("b1", there("podAffinity", hard, of "db")))
    assert.equal(0, score("b1", there("podAntiAffinity", soft, weighted)))
    assert.is_nil(score("b1", there("podAffinity", soft, { weight = 100, podAffinityTerm = of "other" })))
  end)

  it("spread over domains: no more than maxSkew above the least", function()
    local function spread(when, skew)
      return labelled("p", "web", { topologySpreadConstraints = { { maxSkew = skew, topologyKey = "zone",
        whenUnsatisfiable = when, labelSelector = { matchLabels = { app = "web" } } } } })
    end
    local there = { a1 = { labelled("q", "web") } }
    local name, result = where(spread("DoNotSchedule", 1), there)
    assert.equal("b1", name)
    assert.same({ "node(s) didn't match pod topology spread constraints" }, result.refused.a2.reasons)
    assert.same({ "node(s) didn't match pod topology spread constraints (missing required label)" },
      result.refused.none.reasons)
    assert.equal("a1", (where(spread("DoNotSchedule", 2), there)))
    local other = spread("DoNotSchedule", 1)
    other.metadata.labels.app = "db" -- the constraint selects others: the pod adds nothing to a domain
    assert.equal("a1", (where(other, there)))
    assert.not_equal("a1", (where(spread("ScheduleAnyway", 1), { a1 = { labelled("q", "web") },
      a2 = { labelled("r", "web") } })))
  end)
end)

describe("A Reservation", function()
  local AFFINITY = "scheduling.koordinator.sh/reservation-affinity"

  local function room(name, on, allocatable, spec, labels)
    spec = spec or {}
    if spec.allocateOnce == nil then spec.allocateOnce = false end
    spec.owners = spec.owners or { { labelSelector = { matchLabels = { app = "web" } } } }
    return { metadata = { name = name, uid = "uid-" .. name, labels = labels }, spec = spec,
      status = { phase = "Available", nodeName = on, allocatable = allocatable } }
  end

  local function web(name, requests, annotations)
    local p = pod(name, requests)
    p.metadata.labels.app, p.metadata.annotations = "web", annotations
    return p
  end

  local function using(name, requests, uid)
    return web(name, requests, { ["scheduling.koordinator.sh/reservation-allocated"] =
      ('{"name":"x","uid":"%s"}'):format(uid) })
  end

  local function place(p, rooms, nodes, pods_on)
    local state = { now = NOW, pods_on = pods_on or {}, reservations_on = reserved.index(rooms) }
    local result = cycle.run(p, nodes or { node "a", node "b" }, state)
    return result.node and result.node.metadata.name, result.reservation and result.reservation.metadata.name,
      result, state
  end

  it("keeps its room for its owners, which are placed there", function()
    local rooms = { room("r", "b", { cpu = "8" }) }
    assert.equal("a", (place(pod("p", { cpu = "4" }), rooms)))
    assert.equal("0/1 nodes are available: 1 Insufficient cpu.",
      select(3, place(pod("p", { cpu = "4" }), rooms, { node "b" })).message)
    local name, got = place(web("p", { cpu = "4" }), rooms)
    assert.same({ "b", "r" }, { name, got })
    rooms[1].status.phase = "Succeeded"
    assert.equal("b", (place(pod("p", { cpu = "4" }), rooms, { node "b" })))
  end)

  it("holds its free part, and nothing once an allocate-once pod uses it", function()
    local rooms = { room("r", "b", { cpu = "8" }) }
    local there = { b = { using("q", { cpu = "3" }, "uid-r") } }
    assert.equal("b", (place(pod("p", { cpu = "2" }), rooms, { node "b" }, there)))   -- 10 - 8
    assert.is_nil((place(pod("p", { cpu = "3" }), rooms, { node "b" }, there)))
    assert.equal("b", (place(web("p", { cpu = "7" }), rooms, { node "b" }, there)))   -- 5 of it, and 2
    rooms[1].spec.allocateOnce = true
    assert.equal("b", (place(pod("p", { cpu = "7" }), rooms, { node "b" }, there)))
    local name, got = place(web("p", { cpu = "1" }), rooms, { node "b" }, there)
    assert.same({ "b" }, { name, got })
  end)

  it("that is Restricted offers no more than it has", function()
    local rooms = { room("r", "b", { cpu = "4" }, { allocatePolicy = "Restricted" }) }
    assert.equal("r", select(2, place(web("p", { cpu = "4", memory = "1Gi" }), rooms, { node "b" })))
    assert.is_nil(select(2, place(web("p", { cpu = "5" }), rooms, { node "b" })))
    assert.equal("b", (place(web("p", { cpu = "6" }), rooms, { node "b" })))
    assert.is_nil((place(web("p", { cpu = "7" }), rooms, { node "b" })))
  end)

  it("is chosen by the least order, then by how full the pod makes it", function()
    local rooms = { room("large", "b", { cpu = "6" }), room("small", "b", { cpu = "2" }),
      room("other", "a", { cpu = "2" }) }
    assert.equal("small", select(2, place(web("p", { cpu = "2" }), rooms, { node "b" })))
    rooms[1].metadata.labels = { ["scheduling.koordinator.sh/reservation-order"] = "5" }
    local name, got = place(web("p", { cpu = "2" }), rooms)
    assert.same({ "b", "large" }, { name, got })
    rooms[3].metadata.labels = { ["scheduling.koordinator.sh/reservation-order"] = "4" }
    assert.equal("other", select(2, place(web("p", { cpu = "2" }), rooms)))
  end)

  it("matches no pod with empty owners, or an object, a controller or all of them", function()
    local function got(owners)
      local p = web("p", { cpu = "1" })
      p.metadata.ownerReferences = { { kind = "ReplicaSet", name = "rs", controller = true } }
      return select(2, place(p, { room("r", "b", { cpu = "4" }, { owners = owners }) }))
    end
    assert.is_nil(got {})
    assert.equal("r", got { {} })
    assert.equal("r", got { { object = { name = "p", namespace = "ns" } } })
    assert.is_nil(got { { object = { name = "q" } } })
    assert.equal("r", got { { object = { name = "q" } }, { controller = { kind = "ReplicaSet", name = "rs",
      controller = true, namespace = "ns" } } })
    assert.is_nil(got { { controller = { name = "rs", namespace = "elsewhere" } } })
    assert.is_nil(got { { labelSelector = { matchLabels = { app = "web" } }, object = { name = "q" } } })
    assert.is_nil(got { { labelSelector = { matchExpressions = { { key = "app", operator = "Near" } } } } })
  end)

  it("is required by a pod's reservation affinity", function()
    local rooms = { room("r", "b", { cpu = "4" }, { taints = { { key = "k", effect = "NoSchedule" } } },
      { pool = "x" }), room("s", "a", { cpu = "4" }, { unschedulable = true }) }
    local function got(text)
      return select(2, place(web("p", { cpu = "1" }, { [AFFINITY] = text }), rooms))
    end
    local function why(text)
      return select(3, place(web("p", { cpu = "1" }, { [AFFINITY] = text }), rooms)).message
    end
    assert.is_nil(select(2, place(web("p", { cpu = "1" }), rooms)))
    assert.equal("0/2 nodes are available: 2 node(s) no reservations match reservation affinity.", why "{}")
    assert.equal("r", got '{"name":"r"}')
    assert.equal("r", got '{"tolerations":[{"key":"k","operator":"Exists"}]}')
    assert.is_nil(got '{"tolerations":[{"key":"k","operator":"Exists"}],"reservationSelector":{"pool":"y"}}')
    assert.equal("s", got '{"tolerations":[{"key":"node.kubernetes.io/unschedulable","operator":"Exists"}]}')
    assert.equal("r", got [[{"tolerations": [{"operator": "Exists"}],
      "requiredDuringSchedulingIgnoredDuringExecution": {"reservationSelectorTerms": [
        {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x"]}]}]}}]])
    assert.matches("cannot be parsed", why "{")
  end)

  it("equals the request of a pod with an exact match, in the named resources", function()
    local function got(text, allocatable, more)
      local annotations = { ["scheduling.koordinator.sh/exact-match-reservation"] = text, [AFFINITY] = more }
      local _, name, result = place(web("p", { cpu = "2", memory = "1Gi" }, annotations),
        { room("r", "b", allocatable) })
      return name or result.message and result.message:match "cannot be parsed" or false
    end
    local CPU = '{"resourceNames":["cpu"]}'
    assert.equal("r", got(CPU, { cpu = "2", memory = "3Gi" }))
    assert.equal("r", got(CPU, { cpu = "2000m" }))
    assert.is_false(got(CPU, { cpu = "3" }))
    assert.is_false(got(CPU, { memory = "1Gi" }))
    assert.is_false(got('{"resourceNames":["cpu","memory"]}', { cpu = "2", memory = "3Gi" }))
    assert.is_false(got('{"resourceNames":["cpu","gpu"]}', { cpu = "2", gpu = "1" }))
    assert.equal("r", got('{"resourceNames":["gpu","cpu"]}', { cpu = "3" })) -- as upstream: gpu ends it
    assert.equal("r", got("{}", { cpu = "3" }))
    assert.is_false(got(CPU, { cpu = "3" }, '{"name":"r"}'))
    assert.equal("r", got(CPU, { cpu = "2" }, '{"name":"r"}'))
    assert.equal("cannot be parsed", got('{"resourceNames":{"cpu"}}', { cpu = "2" }))
    assert.equal("cannot be parsed", got('{"resourceNames":"cpu"}', { cpu = "2" }))
  end)

  it("keeps the host ports of its template for its pods", function()
    local function listening(p, port)
      p.spec.containers[1].ports = { { hostPort = port } }
      return p
    end
    local with_port = { spec = { containers = { { name = "c", ports = { { hostPort = 80 } } } } } }
    local rooms = { room("r", "b", { cpu = "2" }, { template = with_port }) }
    local BUSY = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    local function why(p, pods_on)
      return select(3, place(p, rooms, { node "b" }, pods_on)).message
    end
    assert.equal(BUSY, why(listening(pod("p", { cpu = "1" }), 80)))
    assert.is_nil(why(listening(pod("p", { cpu = "1" }), 81)))
    assert.equal("r", select(2, place(listening(web("p", { cpu = "1" }), 80), rooms, { node "b" })))
    local there = { b = { listening(using("q", { cpu = "1" }, "uid-r"), 80) } }
    assert.equal(BUSY, why(listening(web("p", { cpu = "1" }), 80), there))
    local ignoring = listening(pod("p", { cpu = "1" }), 80)
    ignoring.metadata.labels["scheduling.koordinator.sh/reservation-ignored"] = "true"
    assert.is_nil(why(ignoring))
    rooms[2] = room("full", "b", { cpu = "1" })
    assert.equal("r", select(2, place(listening(web("p", { cpu = "1" }), 80), rooms, { node "b" })))
    assert.equal("full", select(2, place(web("p", { cpu = "1" }), rooms, { node "b" })))
    rooms[1].spec.allocateOnce = true
    assert.is_nil(why(listening(pod("p", { cpu = "1" }), 80), { b = { using("q", { cpu = "1" }, "uid-r") } }))
    assert.equal(BUSY, select(3, place(template.as_pod(room("s", nil, nil, { template = with_port })),
      { room("r", "b", { cpu = "2" }, { template = with_port }) }, { node "b" })).message)
  end)

  it("is skipped by a pod that ignores Reservations, and may lend its room to it", function()
    local p = web("p", { cpu = "9" })
    p.metadata.labels["scheduling.koordinator.sh/reservation-ignored"] = "true"
    local name, got = place(p, { room("r", "b", { cpu = "8" }) }, { node "b" })
    assert.same({ "b" }, { name, got })
  end)

  it("that waits is placed like its pod, outside other Reservations, and then keeps its room", function()
    local b, waits = node "b", room("r", nil, nil)
    waits.status, waits.spec.template = {}, { spec = { schedulerName = "s", containers = { { name = "c",
      resources = { requests = { cpu = "6" } } } } } }
    waits.spec.template.metadata = { labels = { app = "web" } }
    assert.is_true(template.is_waiting(waits, "s"))
    assert.is_false(template.is_waiting(waits, "other"))
    local full = { now = NOW, pods_on = {},
      reservations_on = reserved.index { room("q", "b", { cpu = "5" }) } }
    assert.equal("0/1 nodes are available: 1 Insufficient cpu.",
      cycle.run(template.as_pod(waits), { b }, full).message)
    local state = { now = NOW, pods_on = {} }
    local result = cycle.run(template.as_pod(waits), { b }, state)
    snapshot.reserve(state, waits, result.node)
    assert.is_nil(cycle.run(pod("p", { cpu = "5" }), { b }, state).node)
    assert.equal("r", cycle.run(web("p", { cpu = "5" }), { b }, state).reservation.metadata.name)
    local status = template.placed(waits, "b", NOW)
    assert.same({ "Available", "b", "6" }, { status.phase, status.nodeName, status.allocatable.cpu })
    assert.is_false(template.is_waiting({ metadata = {}, spec = waits.spec, status = status }, "s"))
    local why = template.refused(waits, "none", NOW)
    waits.status = why
    assert.is_true(template.is_waiting(waits, "s"))
    assert.is_nil(template.refused(waits, "none", NOW + 10))
  end)

  it("is held again when an assumption is undone", function()
    local b = node "b"
    local _, _, result, state = place(web("p", { cpu = "6" }), { room("r", "b", { cpu = "8" }) }, { b })
    local info, p = snapshot.info(state, b), web("p", { cpu = "6" })
    snapshot.assume(state, p, b, cycle.got(result))
    assert.same({ 6000, 1 }, { info.rooms[1].allocated.cpu, info.rooms[1].pods })
    snapshot.take_out(state, p, b)
    assert.same({ 0, 0 }, { info.rooms[1].allocated.cpu, info.rooms[1].pods })
  end)
end)

describe("DeviceShare", function()
  local CORE, MEMORY = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory"
  local RATIO, SHARED = "koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu.shared"

  local function device(name, n, sick)
    local list = {}
    for i = 1, n do
      list[i] = { type = "gpu", minor = i - 1, health = i ~= sick,
        resources = { [CORE] = "100", [RATIO] = "100", [MEMORY] = "10Gi" } }
    end
    return { metadata = { name = name }, spec = { devices = list } }
  end

  local function gpu_node(name)
    local n = node(name)
    for _, resource in ipairs { CORE, RATIO, "nvidia.com/gpu", "koordinator.sh/gpu", SHARED } do
      n.status.allocatable[resource] = "800"
    end
    n.status.allocatable[MEMORY] = "80Gi"
    return n
  end

  local function having(name, minor, percent)
    local p = pod(name, { [CORE] = tostring(percent), [RATIO] = tostring(percent) })
    p.metadata.annotations = { [deviceshare.ANNOTATION] = deviceshare.text { gpu = { { minor = minor,
      resources = {
      [CORE] = tostring(percent), [RATIO] = tostring(percent), [MEMORY] = percent // 10 .. "Gi" } } } } }
    return p
  end

  local function place(requests, o)
    o = o or {}
    local state = { now = NOW, pods_on = o.pods_on or {}, devices = o.devices or { n = device("n", 2) } }
    local nodes = o.nodes or { gpu_node "n" }
    local result = cycle.run(pod("p", requests), nodes, state, { deviceshare = o.strategy })
    return result.devices, result.message or result.node.metadata.name, result, state
  end

  local function minors(devices)
    local out = {}
    for i, one in ipairs(devices.gpu) do out[i] = one.minor end
    return out
  end

  local BINPACK = { type = "MostAllocated", resources = { { name = RATIO, weight = 1 } } }

  it("assigns a part of one GPU, by memory or by ratio", function()
    assert.same({ gpu = { { minor = 0,
      resources = { [CORE] = "50", [RATIO] = "25", [MEMORY] = "2560Mi" } } } },
      (place { [CORE] = "50", [RATIO] = "25" }))
    assert.same({ gpu = { { minor = 0, resources = { [MEMORY] = "1Gi", [RATIO] = "10" } } } },
      (place { [MEMORY] = "1Gi" }))
    assert.equal('{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory":"1Gi",'
      .. '"koordinator.sh/gpu-memory-ratio":"10"}}]}', deviceshare.text((place { [MEMORY] = "1Gi" })))
  end)

  it("assigns whole GPUs by any of their names, and several shared ones", function()
    for _, asked in ipairs { { ["nvidia.com/gpu"] = "2" }, { ["koordinator.sh/gpu"] = "200" },
      { [CORE] = "200", [RATIO] = "200" } } do
      local devices = place(asked)
      assert.same({ 0, 1 }, minors(devices))
      assert.same({ [CORE] = "100", [RATIO] = "100", [MEMORY] = "10Gi" }, devices.gpu[2].resources)
    end
    local shared = place { [SHARED] = "2", [CORE] = "60", [RATIO] = "40" }
    assert.same({ 0, 1 }, minors(shared))
    assert.same({ [CORE] = "30", [RATIO] = "20", [MEMORY] = "2Gi" }, shared.gpu[1].resources)
    assert.equal("0/1 nodes are available: 1 Insufficient gpu devices.",
      select(2, place { ["nvidia.com/gpu"] = "3" }))
  end)

  it("rejects invalid requests on every node", function()
    assert.equal("0/1 nodes are available: invalid resource device requests: [koordinator.sh/gpu-core].",
      select(2, place { [CORE] = "50" }))
    for _, asked in ipairs { { ["koordinator.sh/gpu"] = "150" }, { [SHARED] = "2", [RATIO] = "51" },
      { ["nvidia.com/gpu"] = "1", [MEMORY] = "1Gi" } } do
      local _, message = place(asked)
      assert.matches("invalid resource", message)
    end
  end)

  it("needs the part on one healthy GPU", function()
    local taken = { pods_on = { n = { having("a", 0, 60), having("b", 1, 60) } } }
    assert.equal("0/1 nodes are available: 1 Insufficient gpu devices.",
      select(2, place({ [CORE] = "50", [RATIO] = "50" }, taken)))
    assert.equal("n", select(2, place({ [CORE] = "40", [RATIO] = "40" }, taken)))
    assert.same({ 1 }, minors((place({ [RATIO] = "10" }, { devices = { n = device("n", 2, 1) } }))))
    assert.equal("0/1 nodes are available: 1 Insufficient gpu devices.",
      select(2, place({ [RATIO] = "10" }, { devices = { n = device("n", 1, 1) } })))
  end)

  it("spreads pods over GPUs and nodes, or fills them", function()
    local o = { pods_on = { n = { having("a", 0, 50) } } }
    assert.same({ 1 }, minors((place({ [RATIO] = "10" }, o))))
    o.strategy = BINPACK
    assert.same({ 0 }, minors((place({ [RATIO] = "10" }, o))))
    local two = { nodes = { gpu_node "m", gpu_node "n" }, pods_on = o.pods_on,
      devices = { m = device("m", 2), n = device("n", 2) } }
    local _, _, result = place({ [RATIO] = "50" }, two)
    assert.same({ 100, 71 }, { cycle.scores(result).m.by.DeviceShare, cycle.scores(result).n.by.DeviceShare })
    two.strategy = BINPACK
    _, _, result = place({ [RATIO] = "50" }, two)
    assert.same({ 50, 100 }, { cycle.scores(result).m.by.DeviceShare, cycle.scores(result).n.by.DeviceShare })
  end)

  it("counts assumed pods until the assumption is undone", function()
    local _, _, result, state = place { ["nvidia.com/gpu"] = "1" }
    local p, n = pod("p", { ["nvidia.com/gpu"] = "1" }), result.node
    snapshot.assume(state, p, n, cycle.got(result))
    assert.same({ 1 }, minors(cycle.run(pod("q", { ["nvidia.com/gpu"] = "1" }), { n }, state).devices))
    assert.is_nil(cycle.run(pod("q", { ["nvidia.com/gpu"] = "2" }), { n }, state).node)
    snapshot.take_out(state, p, n)
    assert.same({ 0, 1 }, minors(cycle.run(pod("q", { ["nvidia.com/gpu"] = "2" }), { n }, state).devices))
  end)

  it("assigns RDMA cards and FPGAs by hundredths or whole, beside GPUs", function()
    local RDMA, FPGA = "koordinator.sh/rdma", "koordinator.sh/fpga"
    local n, devices = gpu_node "n", device("n", 1)
    for _, name in ipairs { RDMA, FPGA } do n.status.allocatable[name] = "200" end
    for _, type in ipairs { "rdma", "fpga" } do
      for minor = 0, 1 do
        table.insert(devices.spec.devices, { type = type, minor = minor, health = true,
          resources = { ["koordinator.sh/" .. type] = "100" } })
      end
    end
    local function of(requests, pods_on)
      local got, said = place(requests, { nodes = { n }, devices = { n = devices }, pods_on = pods_on })
      return got and deviceshare.text(got) or said
    end
    local part = '{"minor":%d,"resources":{"koordinator.sh/%s":"%d"}}'
    assert.equal('{"rdma":[' .. part:format(0, "rdma", 30) .. "]}", of { [RDMA] = "30" })
    assert.equal('{"fpga":[' .. part:format(0, "fpga", 100) .. "," .. part:format(1, "fpga", 100) .. "]}",
      of { [FPGA] = "200" })
    assert.matches('^{"fpga":.*"gpu":.*"rdma":',
      of { [RDMA] = "1", [FPGA] = "1", [CORE] = "50", [RATIO] = "50" })
    assert.matches("invalid resource unit koordinator.sh/rdma: 150", of { [RDMA] = "150" })
    local function has_card(name, minor, hundredths)
      local p = pod(name, { [RDMA] = tostring(hundredths) })
      p.metadata.annotations = {
        [deviceshare.ANNOTATION] = '{"rdma":[' .. part:format(minor, "rdma", hundredths) .. "]}" }
      return p
    end
    local q = has_card("q", 0, 60)
    assert.equal('{"rdma":[' .. part:format(1, "rdma", 50) .. "]}", of({ [RDMA] = "50" }, { n = { q } }))
    assert.equal("0/1 nodes are available: 1 Insufficient rdma devices.",
      of({ [RDMA] = "100" }, { n = { q, has_card("r", 1, 10) } }))
  end)

  it("assigns whole NPUs, and parts by the templates of the node's model", function()
    local NPU, CPU, DVPP = "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp"
    local templates = deviceshare.templates [[
      huawei-Ascend-310P3:
        vir01: {huawei.com/npu-core: "1", huawei.com/npu-cpu: "1", koordinator.sh/gpu-memory: 3Gi}
        vir04: {huawei.com/npu-core: "4", huawei.com/npu-cpu: "4", huawei.com/npu-dvpp: "100",
          koordinator.sh/gpu-memory: 12Gi}
      huawei-Ascend-910B:
        vir05: {huawei.com/npu-core: "5", huawei.com/npu-cpu: "1", koordinator.sh/gpu-memory: 16Gi}
    ]]
    local n, list = gpu_node "n", {}
    n.metadata.labels = { ["node.koordinator.sh/gpu-vendor"] = "huawei",
      ["node.koordinator.sh/gpu-model"] = "Ascend-310P3" }
    for _, name in ipairs { NPU, CPU, DVPP } do n.status.allocatable[name] = "800" end
    for minor = 0, 1 do
      list[minor + 1] = { type = "gpu", minor = minor, health = true, resources = { [NPU] = "8", [CPU] = "7",
        [DVPP] = "100", [RATIO] = "100", [MEMORY] = "24Gi" } }
    end
    local device_of = { n = { metadata = { name = "n" }, spec = { devices = list } } }
    local function of(requests, pods_on)
      local state = { now = NOW, pods_on = pods_on or {}, devices = device_of, templates = templates }
      local result = cycle.run(pod("p", requests), { n }, state)
      return result.devices and deviceshare.text(result.devices) or result.message
    end
    local whole = '{"minor":%d,"resources":{"huawei.com/npu-core":"8","koordinator.sh/gpu-memory":"24Gi",'
      .. '"koordinator.sh/gpu-memory-ratio":"100"}}'
    assert.equal('{"gpu":[' .. whole:format(0) .. "]}", of { [NPU] = "8", [RATIO] = "100" })
    assert.equal('{"gpu":[' .. whole:format(0) .. "," .. whole:format(1) .. "]}",
      of { [NPU] = "16", [RATIO] = "200" })
    local small = { [SHARED] = "1", [NPU] = "1", [CPU] = "1", [MEMORY] = "3Gi" }
    local part = of(small)
    assert.equal('{"gpu":[{"minor":0,"resources":{"huawei.com/npu-core":"1","huawei.com/npu-cpu":"1",'
      .. '"koordinator.sh/gpu-memory":"3Gi","koordinator.sh/gpu-memory-ratio":"12"},'
      .. '"extension":{"gpuSharedResourceTemplate":"vir01"}}]}', part)
    local q = pod("q", small)
    q.metadata.annotations = { [deviceshare.ANNOTATION] = part }
    assert.matches('"minor":1', of({ [NPU] = "8", [RATIO] = "100" }, { n = { q } }))
    assert.matches('"vir04"',
      of { [SHARED] = "1", [NPU] = "4", [CPU] = "4", [DVPP] = "100", [MEMORY] = "12Gi" })
    local none = "no matched GPU shared resource template"
    assert.equal("0/1 nodes are available: " .. none .. ".",
      of { [SHARED] = "1", [NPU] = "2", [CPU] = "1", [MEMORY] = "3Gi" })
    assert.equal("0/1 nodes are available: 1 " .. none .. ".",
      of { [SHARED] = "1", [NPU] = "5", [CPU] = "1", [MEMORY] = "16Gi" })
    assert.matches("invalid resource", of { [SHARED] = "2", [NPU] = "2", [CPU] = "2", [MEMORY] = "6Gi" })
    assert.matches("invalid resource", of { [NPU] = "1", [CPU] = "1" })
    assert.is_nil((deviceshare.templates "{"))
    assert.is_nil((deviceshare.templates "model: {vir: {cpu: much}}"))
    assert.same({}, (deviceshare.templates(nil)))
  end)

  it("never overcommits a GPU", function()
    for seed = 1, 50 do
      math.randomseed(seed)
      local n, state = gpu_node "n", { now = NOW, pods_on = {}, devices = { n = device("n", 4) } }
      n.status.allocatable.pods = "100"
      local used = {}
      for i = 1, 20 do
        local percent = tostring(math.random(10) * 10)
        local p = pod("p" .. i, { [CORE] = percent, [RATIO] = percent })
        local result = cycle.run(p, { n }, state, { deviceshare = seed % 2 == 0 and BINPACK or nil })
        if result.node then snapshot.assume(state, p, n, cycle.got(result)) end
        for _, one in ipairs(result.devices and result.devices.gpu or {}) do
          used[one.minor] = (used[one.minor] or 0) + tonumber(one.resources[CORE])
        end
      end
      for _, sum in pairs(used) do assert.is_true(sum <= 100, "seed " .. seed) end
    end
  end)
end)

describe("LoadAware", function()
  local args = loadaware.args()

  it("estimates 85 % of cpu and 70 % of memory, of the larger of request and limit, at most the limit",
    function()
    assert.same({ cpu = 850, memory = 716800 }, loadaware.estimate(pod("p", { cpu = "1", memory = "1000Ki" }),
      args))
    local limited = pod("p", { cpu = "1", memory = "1000Ki" })
    limited.spec.containers[1].resources.limits = { cpu = "2", memory = "2000Ki" }
    assert.same({ cpu = 1700, memory = 1433600 }, loadaware.estimate(limited, args))
    assert.same({ cpu = 2000, memory = 2048000 }, loadaware.estimate(limited,
      loadaware.args { estimatedScalingFactors = { cpu = 150, memory = 150 } }))
  end)

  it("estimates 250m and 200Mi for a pod that asks for nothing, and batch pods by batch resources", function()
    assert.same({ cpu = 250, memory = 200 * 1024 * 1024 }, loadaware.estimate(pod "p", args))
    local batch = pod("p", { ["kubernetes.io/batch-cpu"] = "1000" }, { priority = 5500 })
    assert.same({ cpu = 850, memory = 200 * 1024 * 1024 }, loadaware.estimate(batch, args))
    local mid = pod("p", { ["kubernetes.io/mid-cpu"] = "1000" }, { priority = 7500 })
    assert.same({ cpu = 850, memory = 0 }, loadaware.estimate(mid, args))
  end)

  it("estimates a pod of class free at 0, and one by its own factors if allowed", function()
    local free = pod("p", { cpu = "1" }, { priority = 3500 })
    assert.same({ cpu = 0, memory = 0 }, loadaware.estimate(free, args))
    local own = pod("p", { cpu = "1", memory = "1000Ki" })
    own.metadata.annotations = { ["scheduling.koordinator.sh/load-estimated-scaling-factors"] = '{"cpu":50}' }
    assert.equal(850, loadaware.estimate(own, args).cpu)
    assert.same({ cpu = 500, memory = 716800 }, loadaware.estimate(own,
      loadaware.args { allowCustomizeEstimation = true }))
  end)

  local function filtered(p, m, more)
    return run(p, { node "n" }, { metrics = { n = m }, pods_on = more and more.pods_on,
      args = more and more.args })
  end

  it("refuses a node above a threshold, rounded to whole percents", function()
    local p = pod("p", { cpu = "1" })
    assert.is_truthy(filtered(p, metric("n", "5690m", "1Gi")).node) -- 65.4 %
    assert.equal("0/1 nodes are available: 1 node(s) cpu usage exceed threshold.",
      filtered(p, metric("n", "5700m", "1Gi")).message)             -- 65.5 %
    assert.equal("0/1 nodes are available: 1 node(s) memory usage exceed threshold.",
      filtered(p, metric("n", "1", "9900Mi")).message)
    p.metadata.ownerReferences = { { kind = "DaemonSet", name = "d" } }
    assert.is_truthy(filtered(p, metric("n", "9", "1Gi")).node)
  end)

  it("estimates pods that are missing in the report, or newer than its window", function()
    local p, late = pod("p", { cpu = "1" }), pod("late", { cpu = "4" })
    local there = { pods_on = { n = { late } } }
    assert.is_truthy(filtered(p, metric("n", "3100m", "1Gi")).node)
    assert.is_nil(filtered(p, metric("n", "3100m", "1Gi"), there).node)
    local reports = { podsMetric = { { namespace = "ns", name = "late",
      podUsage = { resources = { cpu = "100m", memory = "1Mi" } } } } }
    assert.is_truthy(filtered(p, metric("n", "3100m", "1Gi", reports), there).node)
    late.status.conditions[1].lastTransitionTime = "2025-12-31T23:59:00Z"
    assert.is_nil(filtered(p, metric("n", "3100m", "1Gi", reports), there).node)
  end)

  it("rejects a node whose report is too old, and accepts one without a report", function()
    local old = metric("n", "0", "0", { updateTime = "2025-12-31T23:57:00Z" })
    for _, m in ipairs { old, { metadata = { name = "n" }, spec = {} } } do
      assert.equal("0/1 nodes are available: 1 node(s) nodeMetric expired.",
        filtered(pod "p", m, { pods_on = { n = { pod "q" } } }).message)
    end
    assert.is_truthy(filtered(pod "p", old,
      { args = { loadaware = { enableScheduleWhenNodeMetricsExpired = true } } }).node)
    assert.is_truthy(filtered(pod "p", nil).node)
  end)

  it("has thresholds of prod pods, of aggregates, and of one node alone", function()
    local p = pod("p", { cpu = "1" }, { priority = 9500 })
    local prod = { args = { loadaware = { prodUsageThresholds = { cpu = 5 } } } }
    assert.equal("0/1 nodes are available: 1 node(s) cpu usage exceed threshold.",
      filtered(p, metric("n", "0", "0"), prod).message)
    local p95 = { args = { loadaware = { aggregated = { usageThresholds = { cpu = 50 },
      usageAggregationType = "p95" } } } }
    local m = metric("n", "1", "1Gi")
    m.status.nodeMetric.aggregatedNodeUsages = {
      { duration = "5m0s", usage = { p95 = { resources = { cpu = "1" } } } },
      { duration = "1h0m0s", usage = { p95 = { resources = { cpu = "6" } } } },
    }
    assert.equal("0/1 nodes are available: 1 node(s) cpu aggregated usage exceed threshold.",
      filtered(p, m, p95).message)
    p95.args.loadaware.aggregated.usageAggregatedDuration = "5m"
    assert.is_truthy(filtered(p, m, p95).node)
    local n = node "n"
    n.metadata.annotations["scheduling.koordinator.sh/usage-thresholds"] = '{"usageThresholds":{"cpu":10}}'
    assert.is_nil(run(p, { n }, { metrics = { n = metric("n", "2", "0") } }).node)
  end)

  it("scores the free part, and 0 without a report", function()
    local p = pod("p", { cpu = "1", memory = "1Gi" })
    local result = run(p, { node "a", node "b", node "c" },
      { metrics = { a = metric("a", "4", "1Gi"), b = metric("b", "1", "1Gi") } })
    -- b: cpu (10000 - 1000 - 850) * 100 // 10000 = 81, memory (10 - 1 - 0.7) * 10, cut to 82
    assert.equal((81 + 82) // 2, cycle.scores(result).b.by.LoadAwareScheduling)
    assert.equal((51 + 82) // 2, cycle.scores(result).a.by.LoadAwareScheduling)
    assert.equal(0, cycle.scores(result).c.by.LoadAwareScheduling)
    -- A resource that nobody uses is all free.
    local n = node "a"
    n.status.allocatable["ephemeral-storage"] = "10"
    local wide = run(p, { n }, { metrics = { a = metric("a", "4", "1Gi") },
      args = { loadaware = { resourceWeights = { cpu = 1, ["ephemeral-storage"] = 1 } } } })
    assert.equal((51 + 100) // 2, cycle.scores(wide).a.by.LoadAwareScheduling)
    assert.equal("b", result.node.metadata.name)
  end)
end)

describe("a quota", function()
  it("without room for the pod rejects it before any node is checked", function()
    local q = { name = "q", namespace = "ns", parent = "koordinator-root-quota", min = {},
      max = { cpu = 4000 }, namespaces = {} }
    local state = { now = NOW, pods_on = {},
      quotas = { by_name = { q = q }, by_namespace = {}, own_namespace = {} },
      infos = { q = { runtime = { cpu = 2000 }, used = { cpu = 1500 }, non_preemptible_used = {} } } }
    local p = pod("p", { cpu = "1" })
    p.metadata.labels["quota.scheduling.koordinator.sh/name"] = "q"
    assert.matches("^0/1 nodes are available: Insufficient quotas, quotaName: q, runtime: cpu:2",
      cycle.run(p, { node "n" }, state).message)
    assert.is_truthy(cycle.run(p, { node "n" }, state, { quota = { runtime_quota = false } }).node)
    p.metadata.labels["quota.scheduling.koordinator.sh/name"] = nil
    assert.is_truthy(cycle.run(p, { node "n" }, state).node)
  end)
end)

-- ---------------------------------------------------------------- laws

describe("over random clusters", function()
  local CASES = sizes.of { short = 60, long = 2000 }

  local function each_case(fn)
    seeds.each(CASES, function()
      local nodes, metrics = {}, {}
      for i = 1, math.random(1, 6) do
        local name = "n" .. i
        nodes[i] = node(name)
        nodes[i].status.allocatable["kubernetes.io/batch-cpu"] = tostring(math.random(0, 4000))
        if math.random(3) > 1 then metrics[name] = metric(name, math.random(0, 8000) .. "m", "1Gi") end
      end
      local queue = {}
      for i = 1, math.random(1, 40) do
        queue[i] = math.random(2) == 1
          and pod("p" .. i, { cpu = math.random(0, 3000) .. "m", memory = math.random(0, 3000) .. "Mi" })
          or pod("p" .. i, { ["kubernetes.io/batch-cpu"] = tostring(math.random(0, 2000)) },
            { priority = 5500 })
      end
      fn(nodes, metrics, queue)
    end)
  end

  local function schedule(nodes, metrics, queue)
    local state, placed = { now = NOW, pods_on = {}, metrics = metrics }, {}
    for i, p in ipairs(queue) do
      local result = cycle.run(p, nodes, state)
      placed[i] = result.node and result.node.metadata.name or result.message
      if result.node then snapshot.assume(state, p, result.node) end
    end
    return placed, state
  end

  it("no node is given more than it has, in any resource", function()
    each_case(function(nodes, metrics, queue)
      local _, state = schedule(nodes, metrics, queue)
      for _, n in ipairs(nodes) do
        local info = snapshot.info(state, n)
        assert.is_true((lists.within(info.requested, info.allocatable)))
      end
    end)
  end)

  it("decisions are repeatable, and undone ones leave no trace", function()
    each_case(function(nodes, metrics, queue)
      local first, state = schedule(nodes, metrics, queue)
      assert.same(first, (schedule(nodes, metrics, queue)))
      local by_name = {}
      for _, n in ipairs(nodes) do by_name[n.metadata.name] = n end
      for i, p in ipairs(queue) do
        if by_name[first[i]] then snapshot.take_out(state, p, by_name[first[i]]) end
      end
      for _, n in ipairs(nodes) do assert.is_true(lists.is_zero(snapshot.info(state, n).requested)) end
    end)
  end)

  it("cached answers for identical pods equal fresh ones", function()
    each_case(function(nodes, metrics, queue)
      local one, each = { now = NOW, pods_on = {}, metrics = metrics },
        { now = NOW, pods_on = {}, metrics = metrics }
      local args = cycle.args()
      for i, p in ipairs(queue) do
        local like = queue[math.random(i)]
        p.spec = like.spec
        if math.random(8) == 1 then p.metadata.labels = { app = "shy" } end
        if math.random(12) == 1 then
          p.spec = { containers = like.spec.containers, affinity = { podAntiAffinity = {
            requiredDuringSchedulingIgnoredDuringExecution = { { topologyKey = "host",
              labelSelector = { matchLabels = { app = "shy" } } } } } } }
        end
        for _, n in ipairs(nodes) do n.metadata.labels.host = n.metadata.name end
        each.kin = nil
        local a, b = cycle.run(p, nodes, one, args), cycle.run(p, nodes, each, args)
        assert.same(b.node and b.node.metadata.name or b.message,
          a.node and a.node.metadata.name or a.message)
        assert.same(cycle.scores(b), cycle.scores(a))
        if a.node then
          snapshot.assume(one, p, a.node)
          snapshot.assume(each, p, a.node)
        end
      end
    end)
  end)

  it("pods that differ only in the name of their token's volume count as identical", function()
    local function kinds(a, b)
      local state = { now = NOW, pods_on = {} }
      for _, name in ipairs { a, b } do
        cycle.run(pod("p", { cpu = "1" }, { volumes = { { name = name, projected = {} } } }), { node "n" },
          state)
      end
      return state.n_kin
    end
    assert.equal(1, kinds("kube-api-access-x7k2p", "kube-api-access-9qzzw"))
    assert.equal(2, kinds("kube-api-access-x7k2p", "kube-api-access-9qzzw-more"))
    assert.equal(2, kinds("data-x7k2p", "data-9qzzw"))
  end)

  it("with many kinds of pods some answers are cached, and all are right", function()
    local nodes, state, args = { node "a", node "b" }, { now = NOW, pods_on = {} }, cycle.args()
    for i = 1, 200 do
      local result = cycle.run(pod("p" .. i, { cpu = i .. "m" }), nodes, state, args)
      assert.equal(i % 2 == 1 and "a" or "b", result.node.metadata.name)
      snapshot.take_out(state, pod "there", nodes[i % 2 + 1])
      snapshot.assume(state, pod("there", { cpu = "1" }), result.node)
    end
    local n = 0
    for _ in pairs(state.kin) do n = n + 1 end
    assert.is_true(n > 1 and n < 200)
  end)

  it("with many nodes only enough are checked, and the next pod starts after them", function()
    local nodes, state = {}, { now = NOW, pods_on = {} }
    for i = 1, 400 do nodes[i] = node(("n%03d"):format(i)) end
    local function looked(args)
      local n = 0
      for _ in pairs(cycle.scores(cycle.run(pod("p", { cpu = "1" }), nodes, state, args))) do n = n + 1 end
      return n
    end
    assert.same({ 400, 188, 120 }, { looked(), looked { percentage = 0 }, looked { percentage = 30 } })
    assert.equal((188 + 120) % 400, state.begin_at)
  end)

  it("a gang is placed completely or not at all, and a rejected one leaves no trace", function()
    each_case(function(nodes, metrics, queue)
      local min = math.random(1, #queue)
      for _, p in ipairs(queue) do
        p.metadata.annotations = { ["gang.scheduling.koordinator.sh/name"] = "g",
          ["gang.scheduling.koordinator.sh/min-available"] = tostring(min) }
      end
      local state = { now = NOW, pods_on = {}, metrics = metrics,
        gangs = gang.index(queue, function() return false end) }
      local placements, why = gang.decide(queue[1], nodes, state)
      assert.is_true(#placements >= min or #placements == 0 and why ~= nil)
      for _, n in ipairs(nodes) do
        local info = snapshot.info(state, n)
        assert.is_true((lists.within(info.requested, info.allocatable)))
        assert.is_true(#placements > 0 or lists.is_zero(info.requested))
      end
    end)
  end)
end)

describe("a gang", function()
  it("of mode NonStrict keeps its nodes, unbound, until the others come", function()
    local members = {}
    for i = 1, 3 do
      members[i] = pod("p" .. i, { cpu = "6" })
      members[i].metadata.annotations = { ["gang.scheduling.koordinator.sh/name"] = "g",
        ["gang.scheduling.koordinator.sh/min-available"] = "3",
        ["gang.scheduling.koordinator.sh/mode"] = "NonStrict",
        ["gang.scheduling.koordinator.sh/waiting-time"] = "30s" }
    end
    local nodes = { node "a", node "b" }
    local state = { now = NOW, pods_on = {}, gangs = gang.index(members, function() return false end) }
    local placements, why, held = gang.decide(members[1], nodes, state)
    assert.same({}, placements)
    assert.matches("2 of 3 pods have a node", why)
    assert.same({ 2, 30.0 }, { #held.placements, held.seconds + 0.0 })
    assert.is_nil(cycle.run(pod("other", { cpu = "6" }), nodes, state).node)
    state.held = {}
    for _, one in ipairs(held.placements) do state.held["ns/" .. one.pod.metadata.name] = one end
    table.insert(nodes, node "c")
    placements = gang.decide(members[3], nodes, state)
    local on = {}
    for _, one in ipairs(placements) do on[one.pod.metadata.name] = one.node.metadata.name end
    assert.same({ p1 = "a", p2 = "b", p3 = "c" }, on)
  end)

  it("counts in its quota pod by pod", function()
    local q = { name = "q", namespace = "ns", parent = "koordinator-root-quota", min = {},
      max = { cpu = 2000 }, namespaces = {} }
    local infos = { q = { used = {}, non_preemptible_used = {} } }
    local members = {}
    for i = 1, 3 do
      members[i] = pod("p" .. i, { cpu = "1" })
      members[i].metadata.labels = { ["pod-group.scheduling.sigs.k8s.io"] = "g",
        ["quota.scheduling.koordinator.sh/name"] = "q" }
    end
    local function decide(min)
      local state = { now = NOW, pods_on = {}, infos = infos,
        groups = { ["ns/g"] = { metadata = {}, spec = { minMember = min } } },
        quotas = { by_name = { q = q }, by_namespace = {}, own_namespace = {} },
        gangs = gang.index(members, function() return false end) }
      return gang.decide(members[1], { node "n" }, state)
    end
    local placements, why = decide(3)
    assert.equal(0, #placements)
    assert.matches("Insufficient quotas.*Gang \"ns/g\" gets rejected: 2 of 3 pods have a node", why)
    assert.is_true(lists.is_zero(infos.q.used))
    assert.equal(2, #decide(2))
    assert.same({ cpu = 2000 }, infos.q.used)
  end)

  it("waits for the gangs of its group", function()
    local p = pod "a"
    p.metadata.annotations = { ["gang.scheduling.koordinator.sh/name"] = "a",
      ["gang.scheduling.koordinator.sh/min-available"] = "1",
      ["gang.scheduling.koordinator.sh/groups"] = '["ns/a","ns/b"]' }
    local state = { now = NOW, pods_on = {}, gangs = gang.index({ p }, function() return false end) }
    local placements, why = gang.decide(p, { node "n" }, state)
    assert.same({}, placements)
    assert.equal("gangGroup [ns/a ns/b] basic check: memberGangs [ns/b] doesn't exists, current gang: ns/a, "
      .. "podName: ns/a", why)
  end)
end)
