-- demo_spec.lua - the parts of controllers/demo as functions: the cluster, its agents and the table.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;controllers/demo/?.lua;" .. package.path

local kube = require "kubelua"
local cluster = require "cluster"
local colocation = require "colocation"
local fields = require "fields"
local plan = require "plan"
local pods = require "pods"
local prepare = require "prepare"
local process = require "support.process"
local settings = require "settings"

local FILES = { "10-cluster.yaml", "15-config.yaml", "20-nodes.yaml", "25-topologies.yaml",
  "30-nodemetrics.yaml", "40-pods.yaml" }
local NOW = "2026-06-01T12:00:00Z"

local objects, by_kind = {}, {}
for _, file in ipairs(FILES) do
  local path = "controllers/demo/" .. file
  for _, o in ipairs(kube.yaml(assert(process.read(path), path), path)) do
    objects[#objects + 1] = o
    by_kind[o.kind] = by_kind[o.kind] or {}
    table.insert(by_kind[o.kind], o)
  end
end

local function named(kind)
  local map = {}
  for _, o in ipairs(by_kind[kind]) do
    local namespace = o.metadata.namespace
    map[namespace and namespace .. "/" .. o.metadata.name or o.metadata.name] = o
  end
  return map
end

describe("the demo cluster", function()
  it("is what its generator writes", function()
    local dir = process.tmpname ".demo"
    process.run("mkdir -p " .. process.quote(dir))
    local out, status = process.run("lua5.4 controllers/demo/generate.lua " .. process.quote(dir))
    assert.equal(0, status, out)
    for _, file in ipairs(FILES) do
      assert.is_true(process.read(dir .. "/" .. file) == process.read("controllers/demo/" .. file),
        file .. ": run controllers/demo/generate.lua")
    end
  end)

  it("has twenty nodes and three hundred pods at least, of every QoS, class and phase", function()
    assert.is_true(#by_kind.Node >= 20)
    assert.is_true(#by_kind.Pod >= 300)
    local qos, class, phase = {}, {}, {}
    for _, pod in ipairs(by_kind.Pod) do
      qos[pods.qos(pod)], class[pods.class(pod)], phase[pod.status.phase] = true, true, true
    end
    assert.same({ LSE = true, LSR = true, LS = true, BE = true, SYSTEM = true }, qos)
    assert.same({ ["koord-prod"] = true, ["koord-mid"] = true, ["koord-batch"] = true,
      ["koord-free"] = true }, class)
    assert.same({ Running = true, Pending = true, Succeeded = true }, phase)
  end)

  it("names each object once, and whatever one refers to is there", function()
    local seen = {}
    for _, o in ipairs(objects) do
      local key = table.concat({ o.kind, o.metadata.namespace or "", o.metadata.name }, "/")
      assert.is_nil(seen[key], key)
      seen[key] = true
    end
    for _, pod in ipairs(by_kind.Pod) do
      assert.is_true(seen["Namespace//" .. pod.metadata.namespace])
      assert.is_true(seen["PriorityClass//" .. pod.spec.priorityClassName])
      assert.is_true(pod.spec.nodeName == nil or seen["Node//" .. pod.spec.nodeName])
      for _, c in ipairs(pod.spec.containers) do assert.is_string(c.image) end
    end
  end)

  it("has priorities that the classes agree with, or a real API server would refuse the pods", function()
    local classes = named "PriorityClass"
    for _, pod in ipairs(by_kind.Pod) do
      assert.equal(classes[pod.spec.priorityClassName].value, pod.spec.priority)
    end
  end)

  it("measures every node, and running pods only", function()
    local nodes, running = named "Node", named "Pod"
    assert.equal(#by_kind.Node, #by_kind.NodeMetric)
    for _, metric in ipairs(by_kind.NodeMetric) do
      assert.is_truthy(nodes[metric.metadata.name])
      local sum = kube.qty(metric.status.nodeMetric.systemUsage.resources.cpu):milli()
      for _, info in ipairs(metric.status.podsMetric) do
        local pod = running[info.namespace .. "/" .. info.name]
        assert.equal("Running", pod.status.phase)
        assert.equal(metric.metadata.name, pod.spec.nodeName)
        assert.equal(pods.class(pod), info.priority)
        sum = sum + kube.qty(info.podUsage.resources.cpu):milli()
      end
      assert.equal(kube.qty(metric.status.nodeMetric.nodeUsage.resources.cpu):milli(), sum)
    end
  end)

  it("overcommits no node", function()
    local asked = {}
    for _, pod in ipairs(by_kind.Pod) do
      if pod.spec.nodeName and pods.active(pod) then
        asked[pod.spec.nodeName] = (asked[pod.spec.nodeName] or 0) + pods.request(pod).cpu
      end
    end
    for _, node in ipairs(by_kind.Node) do
      assert.is_true((asked[node.metadata.name] or 0) <= kube.qty(node.status.allocatable.cpu):milli(),
        node.metadata.name)
    end
  end)

  it("works with the policy: every node offers resources except the silent and the reserve node", function()
    local known, refused = settings.sync(settings.new(), by_kind.ConfigMap[1])
    assert.same({}, refused)
    local metrics, topologies, on = named "NodeMetric", named "NodeResourceTopology", {}
    for _, pod in ipairs(by_kind.Pod) do
      local name = pod.spec.nodeName
      if name then
        on[name] = on[name] or {}
        table.insert(on[name], pod)
      end
    end
    local nothing, faster, in_zones = {}, 0, 0
    for _, node in ipairs(by_kind.Node) do
      local name = node.metadata.name
      local metric, strategy = metrics[name], colocation.strategy(known.colocation.cfg, node)
      if not cluster.silent(metric) then
        metric = { metadata = metric.metadata, status = cluster.touch(metric, NOW, 3) }
      end
      local decided, failed = plan.reset "off", {}
      if colocation.enabled(known.colocation.cfg, strategy) then
        decided, failed = plan.calculate { strategy = strategy, node = node, nodeMetric = metric,
          nodeResourceTopology = topologies[name],
          pods = on[name] or {}, now = kube.time(NOW):unix(), cpuNormalization = known.cpuNormalization,
          resourceAmplification = known.resourceAmplification }
      end
      assert.same({}, failed)
      local resources = prepare.prepare(node, decided).resources
      if not resources["kubernetes.io/batch-cpu"] then
        nothing[#nothing + 1] = name
      else
        -- No node of the demo has devices, so these resources are removed: their value is false.
        for resource, n in pairs(resources) do assert.is_true(not n or n > 0, name .. " " .. resource) end
      end
      if next(decided.zones) then in_zones = in_zones + 1 end
      if decided.annotations["node.koordinator.sh/cpu-normalization-ratio"] == "1.50" then
        faster = faster + 1
      end
    end
    assert.same({ "edge-02", "reserve-01" }, nothing)
    assert.equal(3, faster)
    assert.equal(#by_kind.NodeResourceTopology, in_zones)
  end)
end)

describe("the demo's agents", function()
  local function cpu(status) return kube.qty(status.nodeMetric.nodeUsage.resources.cpu):milli() end
  local metric = by_kind.NodeMetric[1]

  it("report the loaded values at tick 0, and others later", function()
    assert.equal(cpu(metric.status), cpu(cluster.touch(metric, NOW, 0)))
    assert.not_equal(cpu(metric.status), cpu(cluster.touch(metric, NOW, 4)))
    assert.equal(NOW, cluster.touch(metric, NOW, 4).updateTime)
  end)

  it("report the same for the same tick", function()
    assert.same(cluster.touch(metric, NOW, 7), cluster.touch(metric, NOW, 7))
  end)

  it("report a node as the sum of its parts, never negative, forever", function()
    for tick = 0, 2000, 97 do
      local status = cluster.touch(metric, NOW, tick)
      local sum = kube.qty(status.nodeMetric.systemUsage.resources.cpu):milli()
      for _, info in ipairs(status.podsMetric) do
        local n = kube.qty(info.podUsage.resources.cpu):milli()
        assert.is_true(n >= 0)
        sum = sum + n
      end
      assert.equal(cpu(status), sum)
      assert.is_true(sum < 3 * cpu(metric.status))
    end
  end)

  it("keep fields that they do not measure", function()
    local host
    for _, m in ipairs(by_kind.NodeMetric) do
      if m.status.hostApplicationMetric then host = m end
    end
    assert.equal("koord-prod", cluster.touch(host, NOW, 1).hostApplicationMetric[1].priority)
  end)
end)

describe("the demo's agent of a node", function()
  local agent, ctx, written
  before_each(function()
    agent, written = dofile "controllers/demo/demo.lua", nil
    ctx = {
      now = function() return kube.time(NOW) end,
      patch_status = function(_, _, edit)
        written = {}
        edit(written)
      end,
    }
  end)

  local function metric_at(text, labels)
    local metric = fields.copy(by_kind.NodeMetric[1])
    metric.metadata.labels, metric.status.updateTime = labels, text
    return kube.decode(kube.encode(metric))
  end

  it("reports when its period is over, and says when it will be", function()
    assert.equal(5, agent.reconcile(metric_at "2026-06-01T11:59:55Z", ctx))
    assert.equal(NOW, written.status.updateTime)
    written = nil
    assert.equal(3, agent.reconcile(metric_at "2026-06-01T11:59:58Z", ctx))
    assert.is_nil(written)
  end)

  it("is silent if told to be", function()
    assert.is_nil(agent.reconcile(metric_at("2026-01-01T00:00:00Z", { [cluster.SILENT] = "silent" }), ctx))
    assert.is_nil(written)
  end)

  it("varies around the first value, however often it reports", function()
    local first = metric_at "2026-01-01T00:00:00Z"
    agent.reconcile(first, ctx)
    local later = fields.copy(first)
    later.status = fields.copy(written.status)
    for _, info in ipairs(later.status.podsMetric) do info.podUsage.resources.cpu = "900" end
    later.status.updateTime = "2026-01-01T00:00:00Z"
    local before = fields.copy(written.status)
    agent.reconcile(kube.decode(kube.encode(later)), ctx)
    assert.same(before, fields.copy(written.status))
  end)
end)

describe("the demo's table", function()
  local node = { metadata = { name = "n", annotations = {
    ["node.koordinator.sh/cpu-normalization-ratio"] = "1.50" } },
    status = { capacity = { cpu = "8", memory = "16Gi" },
      allocatable = { ["kubernetes.io/batch-cpu"] = "1500", ["kubernetes.io/batch-memory"] = "3Gi",
      ["kubernetes.io/mid-cpu"] = "1k", ["kubernetes.io/mid-memory"] = "1536Mi" } } }
  local metric = { metadata = { name = "n" }, status = {
    nodeMetric = { nodeUsage = { resources = { cpu = "2500m", memory = "4Gi" } } } } }

  it("has a row per node", function()
    assert.same({ { node = "n", capacity = "8 / 16.0Gi", usage = "2.5 / 4.0Gi", batch_cpu = "1500",
      batch_memory = "3.0Gi", mid_cpu = "1000",
      mid_memory = "1.5Gi", note = "cpu x1.50" } }, cluster.rows({ node }, { metric }))
  end)

  it("shows before and after in columns", function()
    local bare = fields.copy(node)
    bare.status.allocatable, bare.metadata.annotations = {}, nil
    local text = cluster.format(cluster.rows({ bare }, {}), cluster.rows({ node }, { metric }))
    assert.equal(table.concat({
      "NODE    CAPACITY        USAGE  BATCH-CPU  BATCH-MEMORY    MID-CPU  MID-MEMORY",
      "n     8 / 16.0Gi  2.5 / 4.0Gi  - -> 1500    - -> 3.0Gi  - -> 1000  - -> 1.5Gi  cpu x1.50",
      "" }, "\n"), text)
  end)

  it("shows a dash for unknown values, and only current ones without earlier ones", function()
    local text = cluster.format(nil, cluster.rows({ { metadata = { name = "x" } } }, {}))
    assert.matches("\nx +%- +%- +%- +%- +%- +%-\n$", text)
  end)
end)
