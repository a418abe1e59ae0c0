-- devices_spec.lua - which devices of a node DeviceShare gives a pod: hints, GPUs that are near or connected,
-- GPUs and RDMA cards together, virtual functions, and the NUMA nodes of all of them.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local kube = require "kubelua"
local merge = require "scheduler.numa.merge"
local seeds = require "support.seeds"
local snapshot = require "scheduler.snapshot"

local DOMAIN, NODE = "scheduling.koordinator.sh/", "node.koordinator.sh/"
local CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
local MEMORY, RDMA = "koordinator.sh/gpu-memory", "koordinator.sh/rdma"

local MOST = { type = "MostAllocated", resources = deviceshare.DEFAULTS.resources }

local function place(numa, pcie) return { socketID = 0, nodeID = numa, pcieID = pcie } end

local function gpu(minor, where, more)
  local out = { type = "gpu", minor = minor, health = true, topology = where,
    resources = { [CORE] = "100", [RATIO] = "100", [MEMORY] = "16Gi" } }
  for name, value in pairs(more or {}) do out[name] = value end
  return out
end

local function card(minor, where, more)
  local out = { type = "rdma", minor = minor, health = true, topology = where,
    resources = { [RDMA] = "100" } }
  for name, value in pairs(more or {}) do out[name] = value end
  return out
end

-- Two NUMA nodes of two PCIe switches each, with two GPUs and an RDMA card behind each.
local function machine()
  local out = {}
  for i = 0, 7 do out[#out + 1] = gpu(i, place(i // 4, "s" .. i // 2)) end
  for i = 0, 3 do out[#out + 1] = card(i, place(i // 2, "s" .. i)) end
  return out
end

local function pod(name, requests, annotations, labels)
  return { metadata = { name = name, namespace = "ns", uid = name, labels = labels or {},
    annotations = annotations or {} },
    spec = { containers = { { name = "c", resources = { requests = requests } } } }, status = {} }
end

-- A pod that has a part of each of these devices, "gpu 0" or "rdma 3 50".
local function using(...)
  local has = {}
  for _, text in ipairs { ... } do
    local type, minor, part = text:match "(%a+) (%d+) ?(%d*)"
    part = part ~= "" and part or "100"
    has[type] = has[type] or {}
    table.insert(has[type], { minor = math.tointeger(tonumber(minor)), resources = type == "rdma"
      and { [RDMA] = part } or { [CORE] = part, [RATIO] = part } })
  end
  local out = pod("there", {}, { [DOMAIN .. "device-allocated"] = kube.encode(kube.object(has)) })
  out.spec.nodeName = "n"
  return out
end

-- The pod's devices in short, as "gpu 0 1 rdma 2", or the reason why it has none. o: { devices, pods, labels
-- of the node, of_device = { labels, annotations }, topology, args }.
local function given(p, o)
  o = o or {}
  local n = { metadata = { name = "n", labels = o.labels or {} }, spec = {},
    status = { allocatable = { cpu = "64", pods = "110", [CORE] = "800", [RATIO] = "800", [RDMA] = "400",
      ["koordinator.sh/gpu"] = "800", ["koordinator.sh/gpu.shared"] = "800" } } }
  local of = o.of_device or {}
  local device = { metadata = { name = "n", labels = of.labels or {}, annotations = of.annotations or {} },
    spec = { devices = o.devices or machine() } }
  local state = { now = 0, pods_on = { n = o.pods or {} }, devices = { n = device },
    topologies = { n = o.topology } }
  local result = cycle.run(p, { n }, state, { deviceshare = o.args })
  if not result.node then return (result.message:match "available: 1? ?(.*)%.$"), result end
  local parts = {}
  for _, type in ipairs { "gpu", "rdma" } do
    for i, one in ipairs(result.devices[type] or {}) do
      if i == 1 then parts[#parts + 1] = type end
      parts[#parts + 1] = tostring(one.minor)
    end
  end
  return table.concat(parts, " "), result
end

local function whole(n) return { ["koordinator.sh/gpu"] = tostring(100 * n) } end
local function part(percent) return { [CORE] = tostring(percent), [RATIO] = tostring(percent) } end
local function hint(hints) return { [DOMAIN .. "device-allocate-hint"] = kube.encode(hints) } end

local function rows(table_of_rows, run)
  for i, row in ipairs(table_of_rows) do
    assert.equal(row[1], run(row, i), ("row %d: %s"):format(i, row.why or ""))
  end
end

describe("GPUs whose places are known", function()
  it("are taken behind one PCIe switch, in one NUMA node, or of the whole node", function()
    rows({
      { "gpu 0", whole(1) },
      { "gpu 0 1", whole(2) },
      { "gpu 0 1 2", whole(3) },
      { "gpu 0 1 2 3 4", whole(5) },
      { "gpu 3", whole(1), { using "gpu 2" }, why = "a switch in use first" },
      { "gpu 4 5", whole(2), { using("gpu 0", "gpu 2", "gpu 7") }, why = "near before in use" },
      { "gpu 4 5 6", whole(3), { using("gpu 0", "gpu 2") } },
      { "Insufficient GPU Devices", whole(8), { using "gpu 6 10" } },
      { "gpu 0", part(40), { using "gpu 1 50" }, why = "a free GPU behind a switch in use" },
      { "gpu 1", part(40), { using "gpu 1 50" }, args = MOST, why = "a GPU that is in use" },
    }, function(row)
      return (given(pod("p", row[2]), { pods = row[3], args = row.args }))
    end)
  end)

  it("may not be farther apart than the hint says", function()
    local function scoped(n, scope, pods)
      return (given(pod("p", whole(n), hint { gpu = { requiredTopologyScope = scope } }), pods))
    end
    local FAR = "Insufficient Topology Scoped GPU Devices"
    assert.equal("gpu 0 1", scoped(2, "PCIe"))
    assert.equal(FAR, scoped(3, "PCIe"))
    assert.equal("gpu 0 1 2", scoped(3, "NUMANode"))
    assert.equal(FAR, scoped(5, "NUMANode"))
    assert.equal("gpu 0 1 2 3 4", scoped(5, "Node"))
    assert.equal(FAR, scoped(1, "Device"))
    assert.equal(FAR, scoped(2, "PCIe", { pods = { using("gpu 0", "gpu 2", "gpu 4", "gpu 6") } }))
    assert.equal("node(s) missing GPU Device Topology Tree",
      scoped(1, "PCIe", { devices = { gpu(0), gpu(1, place(0, "s0")) } }))
    local shared = pod("p", { ["koordinator.sh/gpu.shared"] = "2", [RATIO] = "100" },
      hint { gpu = { requiredTopologyScope = "PCIe" } })
    assert.equal("node(s) Unsupported Multi-Shared GPU", (given(shared)))
  end)
end)

describe("a hint", function()
  it("selects devices by their labels", function()
    local devices = machine()
    for i = 5, 8 do devices[i].labels = { model = "new" } end
    local function chosen(n, value)
      return (given(pod("p", whole(n), hint { gpu = { selector = { matchLabels = { model = value } } } }),
        { devices = devices }))
    end
    assert.equal("gpu 4 5", chosen(2, "new"))
    assert.equal("Insufficient GPU Devices", chosen(5, "new"))
    assert.equal("Insufficient GPU Devices", chosen(1, "old"))
  end)

  it("asks for a part of each card, or for a number of cards", function()
    local function cards(n, one, o) return (given(pod("p", { [RDMA] = n }, hint { rdma = one }), o)) end
    assert.equal("rdma 0", cards("20", {}))
    assert.equal("rdma 0 1 2 3", cards("20", { allocateStrategy = "ApplyForAll" }))
    assert.equal("Insufficient rdma devices",
      cards("20", { allocateStrategy = "ApplyForAll" }, { pods = { using "rdma 2 90" } }))
    assert.equal("rdma 0 1 2", cards("3", { allocateStrategy = "RequestsAsCount" }))
    assert.equal("rdma 1 2 3", cards("3", { allocateStrategy = "RequestsAsCount",
      exclusivePolicy = "DeviceLevel" }, { pods = { using "rdma 0 1" } }))
    assert.equal("Insufficient rdma devices", cards("4", { allocateStrategy = "RequestsAsCount",
      exclusivePolicy = "DeviceLevel" }, { pods = { using "rdma 0 1" } }))
    assert.equal("rdma 0 1", cards("200", { allocateStrategy = "ApplyForAll" }), "whole cards are a number")
    local devices = machine()
    devices[12].labels = { speed = "high" }
    assert.equal("rdma 3", cards("20", { allocateStrategy = "ApplyForAll",
      selector = { matchLabels = { speed = "high" } } }, { devices = devices }))
  end)

  it("is rejected if it is invalid", function()
    for said, why in pairs {
      ["{"] = "invalid DeviceAllocateHint annotation, err: not valid JSON",
      ['{"gpu":{"selector":1}}'] =
        "invalid DeviceAllocateHint annotation, err: gpu: selector: expected object",
      ['{"gpu":{"selector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}}'] =
        "invalid Selector of DeviceHint, deviceType: gpu, err: ",
    } do
      local message = given(pod("p", whole(1), { [DOMAIN .. "device-allocate-hint"] = said }))
      assert.truthy(message:find(why, 1, true), message)
    end
    for name, what in pairs { ["device-joint-allocate"] = "DeviceJointAllocate",
      ["gpu-partition-spec"] = "GPUPartitionSpec" } do
      local message = given(pod("p", whole(1), { [DOMAIN .. name] = "[1" }))
      assert.truthy(message:find("invalid " .. what .. " annotation", 1, true), message)
    end
  end)
end)

describe("virtual functions", function()
  local function with_vfs()
    local devices = machine()
    for i = 9, 10 do
      devices[i].vfGroups = { { labels = { kind = "fast" }, vfs = {
        { minor = 1, busID = ("%02d:1"):format(i) }, { minor = 0, busID = ("%02d:0"):format(i) } } } }
    end
    return devices
  end

  it("are assigned by bus id, each to one pod", function()
    local asks = hint { rdma = { vfSelector = { matchLabels = { kind = "fast" } } } }
    local text, result = given(pod("p", { [RDMA] = "10" }, asks), { devices = with_vfs() })
    assert.equal("rdma 0", text)
    local written = deviceshare.text(result.devices)
    assert.equal('{"rdma":[{"minor":0,"resources":{"koordinator.sh/rdma":"10"},'
      .. '"extension":{"vfs":[{"busID":"09:0"}]}}]}', written)
    local function after(...)
      local pods = {}
      for i, bus in ipairs { ... } do
        local minor = tonumber(bus:sub(1, 2)) - 9
        pods[i] = pod("q" .. i, {}, { [DOMAIN .. "device-allocated"] = kube.encode { rdma = { {
          minor = math.tointeger(minor), resources = { [RDMA] = "1" },
          extension = { vfs = { { busID = bus } } } } } } })
      end
      local said, got = given(pod("p", { [RDMA] = "10" }, asks), { devices = with_vfs(), pods = pods })
      return got.devices and got.devices.rdma[1].extension.vfs[1].busID or said
    end
    assert.equal("10:0", after "09:0", "the freest card first")
    assert.equal("09:1", after("09:0", "10:0", "10:1"))
    assert.equal("Insufficient rdma devices", after("09:0", "09:1", "10:0", "10:1"))
  end)

  it("must belong to a card that has them", function()
    assert.equal("Insufficient rdma VirtualFunctions", (given(pod("p", { [RDMA] = "10" },
      hint { rdma = { vfSelector = {} } }))))
    assert.equal("Insufficient rdma devices", (given(pod("p", { [RDMA] = "10" },
      hint { rdma = { vfSelector = { matchLabels = { kind = "slow" } } } }), { devices = with_vfs() })))
  end)
end)

describe("joint allocation", function()
  local function jointly(gpus, cards, o)
    o = o or {}
    local requests = whole(gpus)
    requests[RDMA] = cards
    return (given(pod("p", requests, { [DOMAIN .. "device-joint-allocate"] = kube.encode(kube.object {
      deviceTypes = o.types or { "gpu", "rdma" }, requiredScope = o.scope }) }), o))
  end

  it("takes a card behind each PCIe switch of the GPUs", function()
    assert.equal("gpu 0 1 rdma 0", jointly(2, "1"))
    assert.equal("gpu 0 1 2 3 rdma 0 1", jointly(4, "1"))
    assert.equal("gpu 0 1 2 3 4 5 6 7 rdma 0 1 2 3", jointly(8, "1"))
    assert.equal("gpu 4 5 rdma 2", jointly(2, "1", { pods = { using("gpu 0", "gpu 2", "gpu 6") } }))
    assert.equal("gpu 0 1 rdma 1", jointly(2, "1", { pods = { using "rdma 0" } }), "elsewhere, if it must be")
  end)

  it("refuses a card elsewhere in the scope SamePCIe", function()
    local BROKEN = "node(s) Device Joint-Allocate rules violation"
    assert.equal("gpu 0 1 rdma 0", jointly(2, "1", { scope = "SamePCIe" }))
    assert.equal(BROKEN, jointly(2, "1", { scope = "SamePCIe", pods = { using "rdma 0" } }))
    assert.equal(BROKEN, jointly(2, "200", { scope = "SamePCIe" }), "two cards, one switch")
    assert.equal("Insufficient rdma devices", jointly(8, "1", { scope = "SamePCIe",
      pods = { using "rdma 3" } }))
    assert.equal("gpu 0 rdma 0", jointly(1, "1", { scope = "SamePCIe", types = { "rdma", "gpu" } }))
  end)

  it("refuses a node, as upstream, if the cards by number would be behind one switch", function()
    local a, b = place(0, "a"), place(0, "b")
    local devices = { gpu(0, a), gpu(1, b), card(0, a), card(1, a), card(2, b), card(3, b) }
    local function after(...)
      return jointly(2, "1", { scope = "SamePCIe", devices = devices, pods = { ... } })
    end
    assert.equal("gpu 0 1 rdma 0 2", after())
    assert.equal("gpu 0 1 rdma 0 2", after(using "rdma 3"))
    assert.equal("node(s) Device Joint-Allocate rules violation", after(using "rdma 2"))
    assert.equal("gpu 0 1 rdma 0 3", after(using "rdma 2 50"), "by score, if it has room by number")
    assert.equal("gpu 0 1 rdma 1 3", after(using("rdma 0", "rdma 2")))
  end)
end)

describe("partitions of GPUs", function()
  local SPEC = DOMAIN .. "gpu-partition-spec"
  local PAIRS = { annotations = { [DOMAIN .. "gpu-partitions"] = kube.encode {
    ["2"] = { { minors = { 0, 2 }, ringBusBandwidth = "200Gi", allocationScore = 1 },
      { minors = { 1, 3 }, ringBusBandwidth = "100Gi", allocationScore = 1 },
      { minors = { 4, 6 }, ringBusBandwidth = "400Gi", allocationScore = 2 } },
    ["4"] = { { minors = { 0, 1, 2, 3 }, allocationScore = 1 } } } } }

  it("are used whole, first those that keep more of the others whole", function()
    local H100 = { [NODE .. "gpu-model"] = "H100" }
    rows({
      { "gpu 0 2", 2, PAIRS },
      { "gpu 1 3", 2, PAIRS, { using "gpu 0" } },
      { "gpu 4 6", 2, PAIRS, { using("gpu 0", "gpu 1") }, why = "the group with another score" },
      { "gpu 0 1 2 3", 4, PAIRS },
      { "gpu 2 3", 2, PAIRS, { using("gpu 0", "gpu 1", "gpu 6") }, why = "none is free: near each other" },
      { "gpu 0 1 2", 3, PAIRS, why = "no partition of that number" },
      { "gpu 2 3", 2, nil, { using("gpu 0", "gpu 1") }, labels = H100, why = "keeps four together" },
      { "gpu 4 5 6 7", 4, nil, { using "gpu 3" }, labels = H100 },
    }, function(row)
      return (given(pod("p", whole(row[2])), { of_device = row[3], pods = row[4], labels = row.labels }))
    end)
  end)

  it("apply to a pod that asks for one, and to all pods of a node that honors them", function()
    local FULL, NONE = "Insufficient Partitioned GPU Devices", "node(s) missing GPU Partition Table"
    local function asking(n, spec, o)
      return (given(pod("p", whole(n), { [SPEC] = kube.encode(kube.object(spec)) }), o))
    end
    local policy = { [NODE .. "gpu-partition-policy"] = "Honor" }
    local honored = { annotations = PAIRS.annotations, labels = policy }
    local busy = { using("gpu 0", "gpu 1", "gpu 6") }
    assert.equal(FULL, asking(2, {}, { of_device = PAIRS, pods = busy }))
    assert.equal(FULL, (given(pod("p", whole(2)), { of_device = honored, pods = busy })))
    assert.equal("node(s) Unsupported number of GPU requests", asking(3, {}, { of_device = PAIRS }))
    assert.equal(NONE, asking(2, {}))
    assert.equal("gpu 4 6", asking(2, { ringBusBandwidth = "300Gi" }, { of_device = PAIRS }))
    assert.equal(FULL, asking(2, { ringBusBandwidth = "300Gi", allocatePolicy = "Restricted" },
      { of_device = PAIRS }))
    assert.equal("gpu 0", (given(pod("p", part(50)), { of_device = honored })), "a part needs no partition")
    assert.equal(NONE, (given(pod("p", whole(1)), { labels = policy })))
  end)
end)

describe("shared GPUs", function()
  it("need a node with the isolation provider, and a model that can be shared", function()
    local LABEL = "koordinator.sh/gpu-isolation-provider"
    local function isolated(requests, labels)
      return (given(pod("p", requests, nil, { [LABEL] = "HAMi-core" }), { labels = labels }))
    end
    assert.equal("GPUIsolationProviderHAMICore not found on the node", isolated(part(50)))
    assert.equal("gpu 0", isolated(part(50), { [LABEL] = "HAMi-core" }))
    assert.equal("gpu 0", isolated(whole(1)))
    local o = { labels = { [NODE .. "gpu-vendor"] = "huawei", [NODE .. "gpu-model"] = "310P" }, args = {
      type = "LeastAllocated", resources = deviceshare.DEFAULTS.resources,
      gpuShareUnsupportedModels = { { vendor = "huawei", model = "310P" } } } }
    assert.equal('model "310P" of vendor "huawei" does not support GPU Share', (given(pod("p", part(50)), o)))
    assert.equal("gpu 0", (given(pod("p", whole(1)), o)))
  end)
end)

describe("NUMA nodes and devices", function()
  local function topology()
    local zones = {}
    for i = 0, 1 do
      zones[i + 1] = { name = "node-" .. i, type = "Node",
        resources = { { name = "cpu", allocatable = "8" }, { name = "memory", allocatable = "32Gi" } } }
    end
    return { metadata = { name = "n" }, zones = zones }
  end

  -- The devices and the NUMA nodes of a pod that also wants `cpus`.
  local function aligned(policy, cpus, requests, o)
    o = o or {}
    local asked = { cpu = tostring(cpus) }
    for name, amount in pairs(requests) do asked[name] = amount end
    local text, result = given(pod("p", asked, o.annotations), { pods = o.pods, devices = o.devices,
      args = o.args, topology = topology(), labels = { [NODE .. "numa-topology-policy"] = policy } })
    local zones = {}
    for i, zone in ipairs(result.numa and result.numa.zones or {}) do zones[i] = zone.node end
    return text .. (#zones > 0 and " in " .. table.concat(zones, ",") or "")
  end

  local function taken(node, cpus)
    local out = pod("full", { cpu = tostring(cpus) }, { [DOMAIN .. "resource-status"] = kube.encode {
      numaNodeResources = { { node = node, resources = { cpu = tostring(cpus) } } } } })
    out.spec.nodeName = "n"
    return out
  end

  it("match under a policy", function()
    rows({
      { "gpu 0 1 in 0", "SingleNUMANode", 2, whole(2) },
      { "gpu 4 5 in 1", "SingleNUMANode", 2, whole(2), { taken(0, 8) }, why = "cpu is on node 1 only" },
      { "gpu 4 5 in 1", "SingleNUMANode", 2, whole(2), { using("gpu 0", "gpu 2") },
        why = "a pair of one switch is on node 1 only" },
      { "gpu 0 1 2 3 4 5 6 7 in 0,1", "BestEffort", 2, whole(8) },
      { "gpu 0 1 in 0,1", "BestEffort", 10, whole(2), why = "cpu needs both" },
      { "gpu 0 1 2 3 in 0", "Restricted", 4, whole(4) },
    }, function(row)
      return aligned(row[2], row[3], row[4], { pods = row[5] })
    end)
    assert.matches("^Unaligned NUMA Hint cause cpu prefer %[01 10%] among %[01 10 11%],gpu prefer %[11%]",
      aligned("SingleNUMANode", 2, whole(8)))
    assert.equal("Insufficient GPU Devices",
      aligned("SingleNUMANode", 2, whole(8), { pods = { using "gpu 0" } }))
  end)

  it("may differ when the args say so", function()
    local args = { type = "LeastAllocated", resources = deviceshare.DEFAULTS.resources,
      disableDeviceNUMATopologyAlignment = true }
    assert.equal("gpu 0 1 2 3 4 5 6 7 in 0", aligned("SingleNUMANode", 2, whole(8), { args = args }))
  end)

  it("exclude devices whose place is unknown", function()
    assert.equal("Insufficient gpu devices",
      aligned("Restricted", 2, whole(1), { devices = { gpu(0), gpu(1) } }))
    assert.equal("gpu 0 in 0", aligned("Restricted", 2, whole(1), { devices = { gpu(0, place(-1, "s")) } }))
  end)

  it("keep GPUs and cards in one node, over random machines", function()
    local placed = 0
    seeds.each(300, function()
      local busy, wanted = {}, whole(math.random(2))
      for i = 0, 7 do
        if math.random(3) == 1 then busy[#busy + 1] = "gpu " .. i end
        if i < 4 and math.random(3) == 1 then busy[#busy + 1] = "rdma " .. i end
      end
      wanted[RDMA] = "100"
      local text = aligned("SingleNUMANode", 2, wanted, { pods = { using(table.unpack(busy)) },
        annotations = { [DOMAIN .. "device-joint-allocate"] = '{"deviceTypes":["gpu","rdma"]}' } })
      local gpus, cards, node = text:match "^gpu ([%d ]+) rdma ([%d ]+) in (%d)$"
      for minor in (gpus or ""):gmatch "%d" do assert.equal(tonumber(node), tonumber(minor) // 4, text) end
      for minor in (cards or ""):gmatch "%d" do assert.equal(tonumber(node), tonumber(minor) // 2, text) end
      placed = placed + (node and 1 or 0)
    end)
    assert.is_true(placed > 100, placed)
  end)
end)

describe("masks of NUMA nodes", function()
  it("come with fewer nodes first", function()
    assert.same({ 1, 2, 8, 3, 9, 10, 11 }, merge.masks { 0, 1, 3 })
    assert.same({}, merge.masks {})
  end)
end)

describe("a Reservation of devices", function()
  it("offers its pods its own GPUs first, close together or not", function()
    local room = { metadata = { name = "r", uid = "r", annotations = {
        [DOMAIN .. "device-allocated"] = kube.encode { gpu = { { minor = 5, resources = { [CORE] = "100",
          [RATIO] = "100" } }, { minor = 6, resources = { [CORE] = "100", [RATIO] = "100" } } } } } },
      spec = { allocateOnce = false, owners = { { labelSelector = { matchLabels = { app = "web" } } } },
        template = { spec = {} } },
      status = { phase = "Available", nodeName = "n", allocatable = { ["koordinator.sh/gpu"] = "200" } } }
    local n = { metadata = { name = "n" }, spec = {},
      status = { allocatable = { pods = "110", ["koordinator.sh/gpu"] = "800" } } }
    local function gpus(count)
      local state = { now = 0, pods_on = { n = {} }, reservations_on = { n = { room } },
        devices = { n = { metadata = { name = "n" }, spec = { devices = machine() } } } }
      local result = cycle.run(pod("p", whole(count), nil, { app = "web" }), { n }, state)
      local out = {}
      for i, one in ipairs(result.devices.gpu) do out[i] = one.minor end
      snapshot.assume(state, pod("p", whole(count)), n, cycle.got(result))
      return table.concat(out, " ")
    end
    assert.equal("5", gpus(1))
    assert.equal("5 6", gpus(2))
    assert.equal("0 5 6", gpus(3))
  end)
end)
