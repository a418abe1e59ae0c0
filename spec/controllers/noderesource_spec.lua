-- noderesource_spec.lua - the controller around the node resource policies, in a world of plain tables: its
-- reads, its writes, and the time of its next run. It reads views and edits drafts, as in a run.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local core = require "kubelua.core"
local kube = require "kubelua"

local NODE, NODE_METRIC = "v1/Node", "slo.koordinator.sh/v1alpha1/NodeMetric"
local TOPOLOGY = "topology.node.k8s.io/v1alpha1/NodeResourceTopology"
local DEVICE = "scheduling.koordinator.sh/v1alpha1/Device"
local BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
local ORIGIN, RATIO = "node.koordinator.sh/originExtendedAllocatable",
  "node.koordinator.sh/cpu-normalization-ratio"
local START = kube.time("2026-01-01T00:00:00Z"):unix()

local prepare = require "prepare"

describe("resources of a Device", function()
  it("are written under the names that policies know, and no others", function()
    local node = kube.decode '{"status":{"allocatable":{"cpu":"8"},"capacity":{"cpu":"8"}}}'
    local wanted = prepare.prepare(node, { resources = { ["koordinator.sh/gpu-core"] = kube.qty(100),
      ["example.com/mlu"] = kube.qty(8), cpu = kube.qty(1) } }).resources
    assert.truthy(wanted["koordinator.sh/gpu-core"])
    assert.is_nil(wanted["example.com/mlu"])
    assert.is_nil(wanted.cpu)
  end)
end)

local function view(object) return object and kube.decode(kube.encode(object)) end

local function merge(target, patch)
  for key, value in pairs(patch) do
    if value == nil then
      target[key] = nil
    elseif kube.is_view(value) and #value == 0 then
      target[key] = target[key] or {}
      merge(target[key], value)
    else
      target[key] = kube.copy(value)
    end
  end
end

-- A run's `ctx` over `world.objects[kind]["ns/name" or "name"]`. Writes change the world and are noted in
-- `world.writes`.
local function context(world)
  local ctx = { params = {}, log = { debug = function() end, warn = function(_, message)
    world.logged[#world.logged + 1] = message
  end } }
  function ctx.get(_, kind, namespace, name)
    return view((world.objects[kind] or {})[name and namespace .. "/" .. name or namespace])
  end
  function ctx.list(_, kind, how)
    assert.equal("v1/Pod", kind)
    assert.equal("node", how.index)
    local list = {}
    for _, pod in ipairs(world.pods) do
      if pod.spec.nodeName == how.value then list[#list + 1] = view(pod) end
    end
    return list
  end
  function ctx.each(_, kind)
    local name
    return function()
      local object
      name, object = next(world.objects[kind], name)
      return view(object)
    end
  end
  function ctx.now() return kube.time(START + world.seconds) end
  local function patch(what)
    local function note(object, changes)
      world.writes[#world.writes + 1] = object.kind .. " " .. what
      if changes then
        assert((changes.status ~= nil) == (what == "status"), "status and the rest are written apart")
        merge(world.objects[world.kinds[object.kind]][object.metadata.name], core.value(changes))
      end
    end
    return function(_, object, edit)
      if type(edit) == "table" then return note(object, what == "status" and { status = edit } or edit) end
      local draft = core.draft(object)
      local before = core.nil_swap(true) -- absent fields can be assigned below, as in a run
      local ok, why = pcall(edit, draft)
      core.nil_swap(before)
      assert(ok, why)
      note(object, (core.draft_patch(draft)))
    end
  end
  ctx.patch, ctx.patch_status = patch "itself", patch "status"
  return ctx
end

local function resource(name, n) return { name = name, capacity = n, allocatable = n, available = n } end

local function fresh_world()
  return {
    seconds = 0, logged = {}, writes = {}, pods = {},
    kinds = { Node = NODE, NodeResourceTopology = TOPOLOGY },
    objects = {
      [NODE] = { n = { kind = "Node", metadata = { name = "n" },
        status = { capacity = { cpu = "10", memory = "10Gi" },
          allocatable = { cpu = "10", memory = "10Gi" } } } },
      [NODE_METRIC] = { n = { metadata = { name = "n" },
        status = { updateTime = "2026-01-01T00:00:00Z", nodeMetric = {
        nodeUsage = { resources = { cpu = "1", memory = "1Gi" } },
        systemUsage = { resources = { cpu = "1", memory = "1Gi" } } } } } },
      [TOPOLOGY] = {},
      ["v1/ConfigMap"] = { ["koordinator-system/slo-controller-config"] = {
        metadata = { resourceVersion = "1" }, data = { ["colocation-config"] =
        '{"enable": true, "cpuReclaimThresholdPercent": 100, "memoryReclaimThresholdPercent": 100}' } } },
    },
  }
end

describe("the node resource controller", function()
  local script, world, ctx, node

  before_each(function()
    -- Loaded for each test: the state of a script belongs to one worker of one generation.
    script = dofile "controllers/koordinator/noderesource.lua"
    world = fresh_world()
    ctx, node = context(world), world.objects[NODE].n
  end)

  local function reconcile() return script.reconcile(view(node), ctx) end
  local function writes()
    local list = world.writes
    world.writes = {}
    return list
  end
  local function offered(name) return node.status.allocatable[name or BATCH_CPU] end

  it("writes status and metadata apart, and nothing when nothing moved", function()
    reconcile()
    assert.same({ "Node status", "Node itself" }, writes())
    assert.equal("9k", offered())
    assert.equal("9k", node.status.capacity[BATCH_CPU])
    assert.equal("9Gi", offered(BATCH_MEMORY))
    assert.equal("1.00", node.metadata.annotations[RATIO])
    assert.equal('{"resources":{"kubernetes.io/batch-cpu":"9k","kubernetes.io/batch-memory":"9Gi"}}',
      node.metadata.annotations[ORIGIN])
    reconcile()
    assert.same({}, writes())
  end)

  it("counts the pods of its node", function()
    for _, name in ipairs { "n", "other" } do
      world.pods[#world.pods + 1] = { metadata = { name = name, namespace = "ns",
        labels = { ["koordinator.sh/qosClass"] = "LS" } },
        spec = { nodeName = name, containers = { { resources = { requests = { cpu = "4" } } } } },
        status = { phase = "Running" } }
    end
    reconcile()
    assert.equal("5k", offered())
  end)

  it("lets small changes wait until the time for an update has passed", function()
    reconcile()
    local function use(cpu) world.objects[NODE_METRIC].n.status.nodeMetric.systemUsage.resources.cpu = cpu end
    writes()
    use "1500m"
    reconcile()
    assert.same({}, writes())
    assert.equal("9k", offered())
    world.seconds = 301
    reconcile()
    assert.same({ "Node status", "Node itself" }, writes())
    assert.equal("8500", offered())
    use "5"
    reconcile()
    assert.same({ "Node status", "Node itself" }, writes())
    assert.equal("5k", offered())
  end)

  it("looks again when the metric becomes stale, and withdraws then", function()
    assert.equal(15 * 60 + 1, reconcile())
    world.seconds = 15 * 60
    assert.equal(1, reconcile())
    assert.equal("9k", offered())
    world.seconds = 15 * 60 + 1
    assert.is_nil(reconcile())
    assert.is_nil(offered())
    assert.is_nil(node.status.capacity[BATCH_CPU])
    assert.matches('"kubernetes.io/batch-cpu":"0"', node.metadata.annotations[ORIGIN], 1, true)
  end)

  it("withdraws without a metric", function()
    reconcile()
    world.objects[NODE_METRIC] = {}
    reconcile()
    assert.is_nil(offered())
  end)

  it("withdraws when colocation is switched off, and leaves the ratio that it wrote", function()
    reconcile()
    local map = world.objects["v1/ConfigMap"]["koordinator-system/slo-controller-config"]
    map.metadata.resourceVersion, map.data["colocation-config"] = "2", '{"enable": false}'
    reconcile()
    assert.is_nil(offered())
    assert.equal("1.00", node.metadata.annotations[RATIO])
  end)

  it("keeps the last good configuration, and reports once why the new one is rejected", function()
    reconcile()
    local map = world.objects["v1/ConfigMap"]["koordinator-system/slo-controller-config"]
    map.metadata.resourceVersion, map.data["colocation-config"] = "2", '{"enable": 1}'
    world.logged = {}
    reconcile()
    reconcile()
    assert.equal("9k", offered())
    assert.equal(1, #world.logged)
    assert.matches("slo-controller-config is invalid", world.logged[1], 1, true)
    assert.matches("enable: expected boolean", world.logged[1], 1, true)
  end)

  it("touches nothing before the first good configuration", function()
    world.objects["v1/ConfigMap"]["koordinator-system/slo-controller-config"].data["colocation-config"] = "{"
    assert.is_nil(reconcile())
    assert.same({}, writes())
  end)

  it("touches nothing on a node that has not reported", function()
    node.status = {}
    assert.is_nil(reconcile())
    assert.same({}, writes())
  end)

  it("writes zones beside the node, once", function()
    local topology = { kind = "NodeResourceTopology", metadata = { name = "n" }, zones = {
      { name = "node-0", resources = { resource("cpu", "4"), resource("memory", "8Gi") } },
      { name = "node-1", resources = { resource("cpu", "6"), resource("memory", "2Gi") } } } }
    world.objects[TOPOLOGY].n = topology
    reconcile()
    assert.same({ "NodeResourceTopology itself", "Node status", "Node itself" }, writes())
    assert.same(resource(BATCH_CPU, "3500"), topology.zones[1].resources[2])
    assert.same(resource(BATCH_CPU, "5500"), topology.zones[2].resources[2])
    reconcile()
    assert.same({}, writes())
    world.objects[NODE_METRIC] = {}
    reconcile()
    assert.same(resource(BATCH_CPU, "0"), topology.zones[1].resources[2])
  end)

  it("counts a normalization from the next pass on for amplification", function()
    local map = world.objects["v1/ConfigMap"]["koordinator-system/slo-controller-config"]
    map.data["cpu-normalization-config"] = '{"enable": true, "defaultRatio": 1.5}'
    world.objects[TOPOLOGY].n = { metadata = { name = "n",
      annotations = { ["node.koordinator.sh/cpu-basic-info"] = "{}" } } }
    reconcile()
    assert.equal("1.50", node.metadata.annotations[RATIO])
    assert.equal("13500", offered())
    assert.is_nil(node.metadata.annotations["node.koordinator.sh/resource-amplification-ratio"])
    reconcile()
    assert.equal('{"cpu":1.50}',
      node.metadata.annotations["node.koordinator.sh/resource-amplification-ratio"])
  end)

  it("offers the healthy devices that the agent reports, and takes back what is gone", function()
    local function device(kind, health, resources)
      return { type = kind, health = health, resources = resources }
    end
    local one = { ["koordinator.sh/gpu-core"] = "100", ["koordinator.sh/gpu-memory"] = "16Gi" }
    world.objects[DEVICE] = { n = { metadata = { name = "n",
      labels = { ["node.koordinator.sh/gpu-model"] = "A100" } },
      spec = { devices = { device("gpu", true, one), device("gpu", true, one), device("gpu", false, one),
        device("rdma", true) } } } }
    reconcile()
    assert.equal("200", offered "koordinator.sh/gpu")
    assert.equal("200", node.status.capacity["koordinator.sh/gpu-core"])
    assert.equal("32Gi", offered "koordinator.sh/gpu-memory")
    assert.equal("100", offered "koordinator.sh/rdma")
    assert.is_nil(offered "koordinator.sh/gpu.shared")
    assert.equal("A100", node.metadata.labels["node.koordinator.sh/gpu-model"])
    writes()
    reconcile()
    assert.same({}, writes())
    local map = world.objects["v1/ConfigMap"]["koordinator-system/slo-controller-config"]
    map.metadata.resourceVersion, map.data["colocation-config"] = "2", '{"enable": false}'
    reconcile()
    assert.equal("200", offered "koordinator.sh/gpu", "devices are not lent")
    map.metadata.resourceVersion, map.data["colocation-config"] = "3", '{"enable": true}'
    world.objects[DEVICE] = nil
    reconcile()
    for _, name in ipairs { "gpu", "gpu-core", "gpu-memory", "rdma" } do
      assert.is_nil(offered("koordinator.sh/" .. name), name)
    end
    assert.equal("A100", node.metadata.labels["node.koordinator.sh/gpu-model"])
  end)

  it("offers NPUs by their own names, and shared GPUs if configured", function()
    ctx.params = { sync_gpu_shared = true }
    local npu = { type = "gpu", health = true,
      resources = { ["huawei.com/npu-core"] = "20", ["huawei.com/npu-dvpp"] = "100" } }
    world.objects[DEVICE] = { n = { metadata = { name = "n",
      labels = { ["node.koordinator.sh/gpu-vendor"] = "huawei" } }, spec = { devices = { npu } } } }
    reconcile()
    assert.equal("20", offered "huawei.com/npu-core")
    assert.equal("100", offered "koordinator.sh/gpu.shared")
    assert.is_nil(offered "koordinator.sh/gpu")
  end)

  it("runs every node when its ConfigMap changes, and no other", function()
    local map
    for _, watch in ipairs(script.watches) do
      if watch.kind == "v1/ConfigMap" then map = script.functions[watch.fn] end
    end
    assert.same({ "n" }, map({ metadata = { namespace = "koordinator-system",
      name = "slo-controller-config" } }, ctx))
    assert.same({}, map({ metadata = { namespace = "koordinator-system", name = "other" } }, ctx))
    assert.same({}, map({ metadata = { namespace = "default", name = "slo-controller-config" } }, ctx))
  end)
end)
