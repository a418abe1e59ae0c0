-- rooms_spec.lua - Reservations of processors, NUMA nodes and devices, as functions: their own pods get the
-- reserved ones, other pods do not, and over random nodes from fixed seeds nothing is allocated twice.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cpus = require "scheduler.numa.cpus"
local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local kube = require "kubelua"
local marks = require "scheduler.marks"
local reservation = require "scheduler.reservation"
local reserved = require "scheduler.reservation.reserved"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local snapshot = require "scheduler.snapshot"
local template = require "scheduler.reservation.template"

local NODE, SCHEDULING = "node.koordinator.sh/", "scheduling.koordinator.sh/"
local CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
local OTHERS = SCHEDULING .. "reservation-restricted-options"

-- A node of 2 NUMA nodes with `cores` of 2 threads each, and `gpus` GPUs; its objects by kind.
local function machine(cores, gpus)
  local detail, zones, devices = {}, {}, {}
  for id = 0, cores * 4 - 1 do
    detail[id + 1] = { id = id, core = id // 2, node = id // (cores * 2), socket = 0 }
  end
  for node = 0, 1 do
    zones[node + 1] = { name = "node-" .. node, type = "Node", resources = {
      { name = "cpu", allocatable = tostring(cores * 2) }, { name = "memory", allocatable = "8Gi" } } }
  end
  for minor = 0, (gpus or 0) - 1 do
    devices[minor + 1] = { type = "gpu", minor = minor, health = true,
      resources = { [CORE] = "100", [RATIO] = "100" } }
  end
  local n = { metadata = { name = "n", labels = {}, annotations = {} }, spec = {}, status = { allocatable = {
    cpu = tostring(cores * 4), memory = "16Gi", pods = "110", [CORE] = tostring((gpus or 0) * 100),
    [RATIO] = tostring((gpus or 0) * 100) } } }
  return { node = n, device = { metadata = { name = "n" }, spec = { devices = devices } },
    topology = { metadata = { name = "n", annotations = { [NODE .. "cpu-topology"] = kube.encode {
      detail = detail } } }, zones = zones } }
end

local function pod(name, requests, annotations, app)
  return { metadata = { name = name, namespace = "ns", uid = name, annotations = annotations or {},
    labels = { ["koordinator.sh/qosClass"] = "LSR", app = app } },
    spec = { containers = { { name = "c", resources = { requests = requests } } } }, status = {} }
end

local function web(name, requests, annotations) return pod(name, requests, annotations, "web") end

local function has(text, zones)
  return { [SCHEDULING .. "resource-status"] = kube.encode(kube.object { cpuset = text,
    numaNodeResources = zones }) }
end

local function with_gpus(...)
  local list = {}
  for i, one in ipairs { ... } do
    list[i] = { minor = one[1], resources = { [CORE] = tostring(one[2]), [RATIO] = tostring(one[2]) } }
  end
  return { [deviceshare.ANNOTATION] = deviceshare.text { gpu = list } }
end

local function using(uid, annotations)
  annotations[SCHEDULING .. "reservation-allocated"] = ('{"name":"x","uid":"%s"}'):format(uid)
  return annotations
end

-- A Reservation on the node for pods of the app "web".
local function room(name, requests, annotations, spec)
  local of_pod = pod(name, requests)
  spec = spec or {}
  spec.template = { metadata = { labels = of_pod.metadata.labels }, spec = of_pod.spec }
  spec.owners = { { labelSelector = { matchLabels = { app = "web" } } } }
  if spec.allocateOnce == nil then spec.allocateOnce = false end
  return { metadata = { name = name, uid = name, annotations = annotations or {} }, spec = spec,
    status = { phase = "Available", nodeName = "n", allocatable = requests } }
end

local function state(m, rooms, pods)
  return { now = 0, pods_on = { n = pods }, topologies = { n = m.topology }, devices = { n = m.device },
    reservations_on = reserved.index(rooms or {}) }
end

local function run(p, m, rooms, pods, args) return cycle.run(p, { m.node }, state(m, rooms, pods), args) end

-- The processors that a pod gets, as text, or the reason why it gets none; and the name of its Reservation.
local function processors(...)
  local result = run(...)
  if not result.node then return (result.message:match "available: 1 (.*)%.$" or result.message) end
  return cpus.text(result.numa.cpus), result.reservation and result.reservation.metadata.name
end

local function minors(...)
  local result, out = run(...), {}
  if not result.node then return (result.message:match "available: 1 (.*)%.$" or result.message) end
  for i, one in ipairs(result.devices.gpu) do out[i] = one.minor end
  return out, result.reservation and result.reservation.metadata.name
end

describe("a Reservation of processors", function()
  local m = machine(4)

  it("gets processors as its pod would, and records them as a pod does", function()
    local waits = room("r", { cpu = "4" })
    waits.status = {}
    local all = state(m)
    local result = cycle.run(template.as_pod(waits), { m.node }, all)
    local texts = marks.texts(cycle.got(result), template.says(waits))
    assert.equal('{"cpuset":"0-3"}', texts[SCHEDULING .. "resource-status"])
    assert.equal('{"preferredCPUBindPolicy":"FullPCPUs"}', texts[SCHEDULING .. "resource-spec"])
    assert.is_false(marks.says(waits, texts))
    snapshot.reserve(all, marks.on(waits, texts), m.node)
    assert.equal("8-11", cpus.text(cycle.run(pod("p", { cpu = "4" }), { m.node }, all).numa.cpus))
    assert.equal("0-3", cpus.text(cycle.run(web("p", { cpu = "4" }), { m.node }, all).numa.cpus))
    assert.is_nil(waits.metadata.annotations[SCHEDULING .. "resource-status"])
  end)

  it("keeps its free part from other pods", function()
    local rooms = { room("r", { cpu = "8" }, has "0-7") }
    assert.equal("8-15", processors(pod("p", { cpu = "8" }), m, rooms))
    assert.equal("Insufficient cpu", processors(pod("p", { cpu = "10" }), m, rooms))
    local there = { web("q", { cpu = "4" }, using("r", has "0-3")) }
    assert.same({ "4-7", "r" }, { processors(web("p", { cpu = "4" }), m, rooms, there) })
    assert.equal("8-15", processors(pod("p", { cpu = "8" }), m, rooms, there))
    assert.same({ "4-9", "r" }, { processors(web("p", { cpu = "6" }), m, rooms, there) })
    rooms[1].spec.allocateOnce = true
    assert.equal("8-15", processors(pod("p", { cpu = "8" }), m, rooms, there))
    assert.same({ "4-15" }, { processors(pod("p", { cpu = "12" }), m, rooms, there) })
  end)

  it("that is Restricted uses only its own", function()
    local rooms = { room("r", { cpu = "8", memory = "1Gi" }, has "0-7", { allocatePolicy = "Restricted" }) }
    rooms[1].metadata.annotations[OTHERS] = '{"resources":["memory"]}'
    local there = { web("q", { cpu = "4" }, using("r", has "0-3")) }
    assert.same({ "4-7", "r" }, { processors(web("p", { cpu = "4" }), m, rooms, there) })
    assert.equal("pod has a nominated reservation but cannot be allocated within its NUMA scope",
      processors(web("p", { cpu = "6" }), m, rooms, there))
    assert.same({ "8-13", "r" },
      { processors(web("p", { cpu = "6" }), m, rooms, there, { upstream = "v1.8.0" }) })
  end)

  it("is skipped by a pod whose processors it cannot provide", function()
    local required = kube.merge({ [SCHEDULING .. "resource-spec"] = '{"requiredCPUBindPolicy":"FullPCPUs"}' },
      { [SCHEDULING .. "reservation-affinity"] = "{}" })
    local odd = room("a", { cpu = "4", memory = "1Gi" }, has "0,2,4,6", { allocatePolicy = "Restricted" })
    assert.equal("node(s) no reservations match reservation affinity",
      processors(web("p", { cpu = "4" }, required), m, { odd }))
    assert.same({ "8-11", "b" }, { processors(web("p", { cpu = "4" }, required), m,
      { odd, room("b", { cpu = "4" }, has "8-11") }) })
  end)

  it("keeps its part of NUMA nodes, too", function()
    local zones = { { node = 0, resources = { cpu = "8", memory = "8Gi" } } }
    local rooms = { room("r", { cpu = "8", memory = "8Gi" }, has(nil, zones)) }
    local single = { [SCHEDULING .. "numa-topology-spec"] = '{"numaTopologyPolicy":"SingleNUMANode"}' }
    local function zone_of(p, pods)
      local result = run(p, m, rooms, pods)
      return result.node and result.numa.zones[1].node or result.message:match "cause"
    end
    assert.equal(1, zone_of(pod("p", { cpu = "2", memory = "2Gi" }, single)))
    assert.equal(0, zone_of(web("p", { cpu = "8", memory = "8Gi" }, single)))
    local taken = { node = 0, resources = { cpu = "4", memory = "6Gi" } }
    local q = web("q", { cpu = "4", memory = "6Gi" }, using("r", has("0-3", { taken })))
    assert.equal(1, zone_of(web("p", { cpu = "4", memory = "4Gi" }, single), { q }))
    rooms[1].spec.allocatePolicy = "Restricted"
    rooms[1].metadata.annotations[OTHERS] = '{"resources":["pods"]}'
    assert.is_nil(zone_of(web("p", { cpu = "4", memory = "4Gi" }, single), { q }))
  end)
end)

describe("a Reservation of devices", function()
  local m = machine(8, 4)
  local function asks(percent) return { [CORE] = tostring(percent), [RATIO] = tostring(percent) } end

  it("gets devices as its pod would, and keeps them from others", function()
    local waits = room("r", asks(200))
    waits.status = {}
    local all = state(m)
    local result = cycle.run(template.as_pod(waits), { m.node }, all)
    local texts = marks.texts(cycle.got(result), template.says(waits))
    assert.matches('"minor":0,.*"minor":1,', texts[deviceshare.ANNOTATION])
    snapshot.reserve(all, marks.on(waits, texts), m.node)
    local other = cycle.run(pod("p", asks(200)), { m.node }, all)
    assert.same({ 2, 3 }, { other.devices.gpu[1].minor, other.devices.gpu[2].minor })
    assert.is_nil(cycle.run(pod("p", asks(300)), { m.node }, all).node)
  end)

  it("offers its own free devices first, then the node's", function()
    local rooms = { room("r", asks(200), with_gpus({ 2, 100 }, { 3, 100 })) }
    assert.same({ { 2 }, "r" }, { minors(web("p", asks(100)), m, rooms) })
    local there = { web("q", asks(60), using("r", with_gpus { 2, 60 })) }
    assert.same({ { 3 }, "r" }, { minors(web("p", asks(100)), m, rooms, there) })
    assert.same({ { 2 }, "r" }, { minors(web("p", asks(40)), m, rooms,
      { there[1], web("q2", asks(100), using("r", with_gpus { 3, 100 })) }) })
    assert.same({ { 0, 3 }, "r" }, { minors(web("p", asks(200)), m, rooms, there) })
    assert.same({ { 0, 1 } }, { minors(pod("p", asks(200)), m, rooms, there) })
    assert.equal("Insufficient koordinator.sh/gpu-core, 1 Insufficient koordinator.sh/gpu-memory-ratio",
      minors(pod("p", asks(300)), m, rooms, there))
  end)

  it("that is Restricted uses only its own, and is skipped by larger pods", function()
    local rooms = { room("r", asks(200), with_gpus({ 2, 100 }, { 3, 100 }),
      { allocatePolicy = "Restricted" }) }
    rooms[1].metadata.annotations[OTHERS] = '{"resources":["pods"]}'
    assert.same({ { 2, 3 }, "r" }, { minors(web("p", asks(200)), m, rooms) })
    local there = { web("q", asks(60), using("r", with_gpus { 2, 60 })) }
    assert.same({ { 0, 1 } }, { minors(web("p", asks(200)), m, rooms, there) })
  end)
end)

describe("a Reservation that pre-allocates", function()
  local m = machine(4, 2)
  local LABEL = SCHEDULING .. "pre-allocation-required"

  local function waits(requests, spec, labels)
    spec = spec or {}
    spec.preAllocation, spec.allocatePolicy = true, spec.allocatePolicy or "Restricted"
    local out = room("r", requests, nil, spec)
    out.status, out.metadata.labels = {}, labels
    return out
  end

  local function there(name, requests, annotations, app)
    local p = pod(name, requests, annotations, app or "web")
    p.spec.nodeName = "n"
    return p
  end

  -- The names of the pods that the Reservation takes over, or the reason why it fits nowhere; the result and
  -- the state.
  local function place_it(object, pods, rooms, config)
    local all = state(m, rooms, pods)
    local args = cycle.args { preallocation = config and fields.merge(reservation.PREALLOCATION, config) }
    local result = cycle.run(template.as_pod(object), { m.node }, all, args)
    local names = {}
    for i, entry in ipairs(result.owners or {}) do names[i] = entry.pod.metadata.name end
    return result.node and names or result.message:match "available: 1? ?(.*)%.$", result, all
  end

  it("takes over the resources of a matching pod, and keeps the rest", function()
    local pods = { there("q", { cpu = "12" }, has "0-11"), there("o", { cpu = "2" }, has "12-13", "other") }
    local object = waits({ cpu = "14" })
    local names, result, all = place_it(object, pods)
    assert.same({ "q" }, names)
    assert.equal("0-11,14-15", cpus.text(result.numa.cpus))
    local texts = marks.texts(cycle.got(result), template.says(object))
    snapshot.reserve(all, marks.on(object, texts), m.node, result.owners)
    local info = snapshot.info(all, m.node)
    assert.same({ 12000, 1 }, { info.rooms[1].allocated.cpu, info.rooms[1].pods })
    assert.is_nil(cycle.run(pod("p", { cpu = "2" }), { m.node }, all).node)
    assert.equal("14-15", cpus.text(cycle.run(web("p", { cpu = "2" }), { m.node }, all).numa.cpus))
  end)

  it("is placed without such pods if there is room, unless it needs one", function()
    assert.same({}, (place_it(waits { cpu = "14" }, {})))
    assert.equal("node(s) no pod(s) to meet the pre-allocation requirements",
      (place_it(waits({ cpu = "2" }, nil, { [LABEL] = "true" }),
        { there("q", { cpu = "2" }, has "0-1", "other") })))
    assert.equal("Insufficient cpu",
      (place_it(waits { cpu = "15" }, { there("o", { cpu = "2" }, has "0-1", "other") })))
    -- A pod with a larger request, or with another Reservation, is not taken over.
    assert.equal("Insufficient cpu",
      (place_it(waits { cpu = "8" }, { there("q", { cpu = "10" }, has "0-9") })))
    local used = room("s", { cpu = "8" }, has "0-7")
    assert.equal("Insufficient cpu",
      (place_it(waits { cpu = "10" }, { there("q", { cpu = "8" }, using("s", has "0-7")) }, { used })))
  end)

  it("takes the pod that fills it most, or several if its policy says so", function()
    local pods = { there("a", { cpu = "4" }, has "0-3"), there("b", { cpu = "6" }, has "4-9") }
    assert.same({ "b" }, (place_it(waits { cpu = "8" }, pods)))
    assert.equal("Insufficient cpu", (place_it(waits { cpu = "14" }, pods)))
    assert.same({ "b", "a" }, (place_it(waits({ cpu = "14" },
      { preAllocationPolicy = { enableMultiple = true } }), pods)))
  end)

  it("takes all devices of the pod, and no fewer", function()
    local function asks(percent) return { [CORE] = tostring(percent), [RATIO] = tostring(percent) } end
    local pods = { there("q", asks(100), with_gpus { 1, 100 }) }
    local names, result = place_it(waits(asks(200)), pods)
    assert.same({ "q" }, names)
    assert.equal(2, #result.devices.gpu)
    names, result = place_it(waits(asks(100)), pods)
    assert.same({ { "q" }, 1 }, { names, result.devices.gpu[1].minor })
    assert.equal("Insufficient cpu", (place_it(waits { cpu = "17" }, pods)))
  end)

  it("must be Restricted", function()
    assert.equal("node(s) reservation pre allocation is unsupported with current attributes",
      (place_it(waits({ cpu = "2" }, { allocatePolicy = "Aligned" }))))
  end)

  it("takes labelled pods of any owner in mode Cluster, by their annotation, if that is allowed", function()
    local POD = "pod.koordinator.sh/"
    local function offered(name, cpu, priority, value)
      local p = there(name, { cpu = cpu }, { [POD .. "pre-allocatable-priority"] = priority }, "other")
      p.metadata.labels[POD .. "is-pre-allocatable"] = value or "true"
      return p
    end
    local function cluster(cpu, pods, config)
      return (place_it(waits({ cpu = cpu }, { preAllocationPolicy = { mode = "Cluster" } }), pods, nil,
        config or { enableClusterMode = true }))
    end
    local pods = { offered("a", "6"), offered("b", "4", "7"), offered("c", "5", "x"),
      offered("d", "1", nil, "false") }
    assert.equal("reservation requires cluster mode pre-allocation which is disabled", cluster("4", pods, {}))
    assert.same({ "b" }, cluster("4", pods))
    assert.same({ "a" }, cluster("6", pods), "b is too small for it")
    assert.same({ "c" }, cluster("5", { pods[1], pods[2], there("c", { cpu = "5" }, nil, "true") },
      { enableClusterMode = true, clusterLabelKey = "app", clusterPriorityAnnotationKey = "x" }))
    assert.equal("Insufficient cpu", cluster("7", { there("q", { cpu = "16" }) }), "owners do not matter")
  end)

  it("takes no pods if there is room without them and the args prefer that", function()
    local pods, prefer = { there("q", { cpu = "4" }, has "0-3") }, { preferNoPreAllocatedPods = true }
    assert.same({ "q" }, (place_it(waits { cpu = "8" }, pods)))
    assert.same({}, (place_it(waits { cpu = "8" }, pods, nil, prefer)))
    assert.same({ "q" }, (place_it(waits { cpu = "14" }, pods, nil, prefer)), "there is none")
    assert.same({ "q" }, (place_it(waits({ cpu = "8" }, nil, { [LABEL] = "true" }), pods, nil, prefer)))
  end)
end)

describe("laws of rooms:", function()
  local CASES = sizes.of { short = 60, long = 600 }

  -- Adds the unused processors and devices of Reservations: { [id] = uid }, { [minor] = percent }.
  local function add_rests(info, owner, used)
    for _, one in ipairs(info.rooms) do
      local says, taken, left = one.object.metadata.annotations, {}, {}
      local status = kube.decode(says[SCHEDULING .. "resource-status"] or "{}")
      local devices = kube.decode(says[deviceshare.ANNOTATION] or "{}")
      for _, gpu in ipairs(devices.gpu or {}) do left[gpu.minor] = tonumber(gpu.resources[CORE]) end
      for _, entry in pairs(info.pods) do
        if entry.uid == one.uid then
          for _, id in ipairs(entry.numa.cpus) do taken[id] = true end
          for _, gpu in ipairs(entry.devices.gpu or {}) do
            local n = left[gpu.minor]
            if n then left[gpu.minor] = math.max(n - tonumber(gpu.resources[CORE]), 0) end
          end
        end
      end
      if not reserved.is_spent(one) then
        for id in pairs(cpus.parse(status("cpuset"))) do
          if not taken[id] then
            assert.is_nil(owner[id], "processor " .. id)
            owner[id] = one.uid
          end
        end
        for minor, n in pairs(left) do used[minor] = (used[minor] or 0) + n end
      end
    end
  end

  it("no processor is used or reserved twice, and no GPU is overcommitted", function()
    local preallocated = 0
    seeds.each(CASES, function()
      local m = machine(math.random(1, 4), math.random(1, 3))
      m.node.metadata.labels[NODE .. "numa-topology-policy"] =
        ({ "", "BestEffort", "Restricted", "SingleNUMANode" })[math.random(4)]
      local all = state(m)
      for i = 1, 14 do
        local percent = tostring(math.random(0, 4) * 25)
        local asked = { cpu = tostring(math.random(1, 3)), [CORE] = percent, [RATIO] = percent }
        if percent == "0" then asked[CORE], asked[RATIO] = nil, nil end
        if math.random(3) == 1 then
          local waits = room("r" .. i, asked, nil, { allocateOnce = math.random(2) == 1,
            allocatePolicy = ({ "Restricted", "Aligned" })[math.random(3)],
            preAllocation = math.random(2) == 1,
            preAllocationPolicy = { enableMultiple = math.random(2) == 1 } })
          if math.random(2) == 1 then waits.spec.template.spec.containers[1].resources.requests.cpu = "6" end
          waits.status = {}
          local result = cycle.run(template.as_pod(waits), { m.node }, all)
          if result.node then
            local texts = marks.texts(cycle.got(result), template.says(waits))
            snapshot.reserve(all, marks.on(waits, texts), m.node, result.owners)
            preallocated = preallocated + #result.owners
          end
        else
          local p = (math.random(2) == 1 and web or pod)("p" .. i, asked)
          local result = cycle.run(p, { m.node }, all)
          if result.node then
            p.spec.nodeName = "n"
            snapshot.assume(all, p, m.node, cycle.got(result))
          end
        end
        local owner, used, info = {}, {}, snapshot.info(all, m.node)
        for key, entry in pairs(info.pods) do
          for _, id in ipairs(entry.numa.cpus) do
            assert.is_nil(owner[id], "processor " .. id)
            owner[id] = key
          end
          for _, gpu in ipairs(entry.devices.gpu or {}) do
            used[gpu.minor] = (used[gpu.minor] or 0) + tonumber(gpu.resources[CORE])
          end
        end
        add_rests(info, owner, used)
        for minor, n in pairs(used) do assert.is_true(n <= 100, "GPU " .. minor) end
      end
    end)
    assert.is_true(preallocated > 0)
  end)
end)
