-- koordinator_policy_spec.lua - the node resource policies as functions: configuration, facts of pods, batch
-- and mid resources, cpu normalization, amplification, zones and the plan of a node.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local kube = require "kubelua"
local amounts = require "amounts"
local batchresource = require "batchresource"
local colocation = require "colocation"
local cpunormalization = require "cpunormalization"
local fields = require "fields"
local midresource = require "midresource"
local nodemetric = require "metric"
local plan = require "plan"
local pods = require "pods"
local prepare = require "prepare"
local reservation = require "reservation"
local resourceamplification = require "resourceamplification"
local settings = require "settings"
local zones = require "zones"

local NOW = kube.time("2026-01-01T00:15:00Z"):unix()
local MINUTES_AGO_15 = "2026-01-01T00:00:00Z"
local GIB = 1024 * 1024 * 1024

-- ---------------------------------------------------------------- builders

local function res(cpu, memory) return { cpu = cpu, memory = memory } end
local function usage(cpu, memory) return { resources = res(cpu, memory) } end

local function node_of(capacity, more)
  local node = { metadata = { name = "n", labels = {}, annotations = {} },
    status = { capacity = capacity, allocatable = capacity } }
  for k, v in pairs(more or {}) do node.metadata[k] = v end
  return node
end

local function pod_of(name, qos, request, more)
  local pod = {
    metadata = { name = name, namespace = "ns", labels = { ["koordinator.sh/qosClass"] = qos } },
    spec = { containers = { { name = "c", resources = { requests = request } } } },
    status = { phase = "Running" },
  }
  for k, v in pairs(more or {}) do pod[k] = v end
  return pod
end

local function metric_of(system, reports, more)
  local status = { updateTime = MINUTES_AGO_15, nodeMetric = { nodeUsage = usage("0", "0"),
    systemUsage = system }, podsMetric = reports }
  for k, v in pairs(more or {}) do status[k] = v end
  return { metadata = { name = "n" }, status = status }
end

local function report(name, cpu, memory, class)
  return { namespace = "ns", name = name, podUsage = usage(cpu, memory), priority = class }
end

-- Nothing is reserved, so the result is capacity minus the quantity under test.
local STRATEGY = { enable = true, cpuReclaimThresholdPercent = 100, memoryReclaimThresholdPercent = 100,
  degradeTimeMinutes = 15,
  resourceDiffThreshold = 0.1, updateTimeThresholdSeconds = 300 }

local function batch(input)
  input.strategy = input.strategy or STRATEGY
  input.node = input.node or node_of(res("10", "10Gi"))
  input.pods = input.pods or {}
  input.nodeMetric = input.nodeMetric or metric_of(usage("0", "0"))
  input.now = input.now or NOW
  return assert(batchresource.calculate(input))
end

local function batch_cpu(input) return batch(input).resources["kubernetes.io/batch-cpu"] end

-- ---------------------------------------------------------------- staleness

describe("a NodeMetric", function()
  it("is valid up to and including its last second", function()
    local metric = metric_of(usage("0", "0"))
    assert.is_false(nodemetric.stale(metric, 15, NOW))
    assert.is_true(nodemetric.stale(metric, 15, NOW + 1))
    assert.equal(NOW, nodemetric.expires(metric, 15))
  end)

  it("without a time, without a measurement, or that does not exist is stale", function()
    assert.is_true(nodemetric.stale({ status = { nodeMetric = {} } }, 15, 0))
    assert.is_true(nodemetric.stale({ status = { updateTime = MINUTES_AGO_15 } }, 15, 0))
    assert.is_true(nodemetric.stale({}, 15, 0))
  end)

  it("that is stale withdraws batch and mid", function()
    local input = { strategy = STRATEGY, node = node_of(res("10", "10Gi")), pods = {}, nodeMetric = {},
      now = NOW }
    local decided, failed = plan.calculate(input)
    assert.same({}, decided.resources)
    for _, name in ipairs { "batch-cpu", "batch-memory", "mid-cpu", "mid-memory" } do
      assert.is_true(decided.resets["kubernetes.io/" .. name], name)
    end
    assert.matches("degradedByBatchResource", decided.messages["kubernetes.io/batch-cpu"]())
    -- The two ratios have no configuration here: they are reported as failed, and the rest is correct.
    assert.equal(2, #failed)
    assert.matches("^cpu normalization: ", failed[1])
  end)
end)

-- ---------------------------------------------------------------- the strategy of a node

describe("a colocation strategy", function()
  local function cfg(...) return { enable = true, cpuReclaimThresholdPercent = 60, nodeConfigs = { ... } } end
  local function entry(percent, selector)
    return { cpuReclaimThresholdPercent = percent, nodeSelector = selector }
  end
  local node = node_of(res("1", "1Gi"), { labels = { pool = "a", zone = "x" } })
  local function percent(c, n) return colocation.strategy(c, n or node).cpuReclaimThresholdPercent end

  it("is that of the first entry that selects the node, in the order of the list", function()
    local broad, narrow = entry(10, { matchLabels = { pool = "a" } }),
      entry(20, { matchLabels = { pool = "a", zone = "x" } })
    assert.equal(10, percent(cfg(broad, narrow)))
    assert.equal(20, percent(cfg(narrow, broad)))
  end)

  it("ignores entries without a selector, and uses those with an empty one", function()
    assert.equal(60, percent(cfg(entry(10, nil))))
    assert.equal(10, percent(cfg(entry(10, {}))))
  end)

  it("supports expressions; a malformed one selects nothing", function()
    local function expr(...)
      return { matchExpressions = { { key = "pool", operator = (...), values = select(2, ...) } } }
    end
    assert.equal(10, percent(cfg(entry(10, expr("In", { "a", "b" })))))
    assert.equal(60, percent(cfg(entry(10, expr("NotIn", { "a" })))))
    assert.equal(10, percent(cfg(entry(10, expr("Exists")))))
    assert.equal(60, percent(cfg(entry(10, expr("DoesNotExist")))))
    assert.equal(60, percent(cfg(entry(10, expr("In", {})))))
    assert.equal(60, percent(cfg(entry(10, expr("Exists", { "a" })))))
    assert.equal(60, percent(cfg(entry(10, expr("Like", { "a" })))))
  end)

  it("truncates percentages from labels", function()
    for text, want in pairs { ["0.29"] = 28, ["0.7"] = 70, ["1.5"] = 150, ["0"] = 0, ["-0.1"] = 60,
      ["much"] = 60, [" 0.5"] = 60, ["0x1"] = 60 } do
      local labelled = node_of(res("1", "1Gi"), { labels = {
        ["node.koordinator.sh/cpu-reclaim-ratio"] = text } })
      assert.equal(want, percent({ enable = true, cpuReclaimThresholdPercent = 60 }, labelled), text)
    end
  end)

  it("prefers labels to the annotation, and the annotation to the ConfigMap", function()
    local own = node_of(res("1", "1Gi"), {
      labels = { ["node.koordinator.sh/memory-reclaim-ratio"] = "0.3" },
      annotations = { ["node.koordinator.sh/colocation-strategy"] = '{"cpuReclaimThresholdPercent": 11, \z
        "memoryReclaimThresholdPercent": 12}' },
    })
    local strategy = colocation.strategy(cfg(entry(10, {})), own)
    assert.equal(11, strategy.cpuReclaimThresholdPercent)
    assert.equal(30, strategy.memoryReclaimThresholdPercent)
  end)

  it("ignores an invalid annotation", function()
    for _, text in ipairs { "{]", "[]x", '{"cpuReclaimThresholdPercent": "11"}',
      '{"cpuReclaimThresholdPercent": 1.5}', "7" } do
      local own = node_of(res("1", "1Gi"), { annotations = {
        ["node.koordinator.sh/colocation-strategy"] = text } })
      assert.equal(60, percent({ enable = true, cpuReclaimThresholdPercent = 60 }, own), text)
    end
  end)

  it("is not changed by reading it for a node", function()
    local c = cfg(entry(10, {}))
    local before = fields.copy(c)
    colocation.strategy(c, node)
    assert.same(before, c)
  end)

  it("cannot be switched on by a node alone", function()
    assert.is_false(colocation.enabled({ enable = false }, { enable = true }))
    assert.is_false(colocation.enabled({ enable = true }, { enable = false }))
    assert.is_true(colocation.enabled({ enable = true }, { enable = true }))
  end)

  it("says which setting is out of its range", function()
    assert.is_true(colocation.valid(colocation.defaults()))
    local ok, why = colocation.valid { midCPUThresholdPercent = 101, zzz = 1 }
    assert.is_false(ok)
    assert.equal("midCPUThresholdPercent must not be 101", why)
    assert.is_false((colocation.valid { metricMemoryCollectPolicy = "" }))
    assert.is_false((colocation.valid { resourceDiffThreshold = 0 }))
    assert.is_true((colocation.valid { cpuReclaimThresholdPercent = 150 }))
  end)
end)

describe("the ConfigMap", function()
  local function map(data) return { metadata = { name = "slo-controller-config" }, data = data } end
  local good = map { ["colocation-config"] = '{"enable": true, "unheard": 1}' }

  it("that was never valid leaves no resources available", function()
    local known, refused = settings.sync(settings.new(), map { ["colocation-config"] = "{" })
    assert.is_false(known.colocation.available)
    assert.equal(1, #refused)
    assert.matches("^colocation%-config: ", refused[1])
  end)

  it("that becomes invalid keeps the last good one, and says why", function()
    local known = settings.sync(settings.new(), good)
    for _, text in ipairs { "{", '{"enable": "yes"}', '{"degradeTimeMinutes": 0}',
      '{"nodeConfigs": {"a": 1}, "enable": 1}', '{"nodeConfigs": [1]}' } do
      local later, refused = settings.sync(known, map { ["colocation-config"] = text })
      assert.same(known.colocation.cfg, later.colocation.cfg, text)
      assert.is_true(later.colocation.errorStatus)
      assert.equal(1, #refused)
    end
  end)

  it("loses unknown fields", function()
    assert.is_nil(settings.sync(settings.new(), good).colocation.cfg.unheard)
  end)

  it("that is deleted means defaults: colocation off", function()
    local known = settings.sync(settings.sync(settings.new(), good), nil)
    assert.same(colocation.defaults(), known.colocation.cfg)
    assert.is_true(known.colocation.available)
    assert.is_true(known.colocation.errorStatus)
  end)

  it("keeps the last good value of each part", function()
    local known, refused = settings.sync(settings.new(), map {
      ["colocation-config"] = '{"enable": true}',
      ["cpu-normalization-config"] = '{"enable": true, "ratioModel": {"m": {"baseRatio": "fast"}}}',
      ["resource-amplification-config"] = '{"enable": true, "resourceAmplificationRatio": {"cpu": 2}}',
    })
    assert.is_true(known.colocation.cfg.enable)
    assert.is_nil(known.cpuNormalization)
    assert.equal(2, known.resourceAmplification.resourceAmplificationRatio.cpu)
    assert.same({ "cpu-normalization-config: ratioModel: m.baseRatio: expected number, got string" }, refused)
  end)

  it("gives an entry that would be invalid the cluster's strategy", function()
    local known = settings.sync(settings.new(), map { ["colocation-config"] =
      '{"enable": true, "cpuReclaimThresholdPercent": 70, "nodeConfigs": [{"nodeSelector": {}, \z
        "midCPUThresholdPercent": 200, "enable": false}]}' })
    local strategy = colocation.strategy(known.colocation.cfg, node_of(res("1", "1Gi")))
    assert.equal(70, strategy.cpuReclaimThresholdPercent)
    assert.is_true(strategy.enable)
  end)
end)

-- ---------------------------------------------------------------- pods

describe("a pod", function()
  it("is read again when it has changed, and not before", function()
    local reads = 0
    local function version(n, uid, qos)
      local pod = pod_of("a", qos, res("1", "1Gi"))
      pod.metadata.uid, pod.metadata.resourceVersion = uid, n
      local status = pod.status
      pod.status = setmetatable({}, { __index = function(_, name)
        reads = reads + 1
        return status[name]
      end })
      return pods.facts({ pod_of("before", "BE", res("1", "1Gi")), pod }, "n1")[2]
    end
    local first = version("1", "read-once", "LS")
    local once = reads
    assert.is_true(once > 0)
    assert.equal(first, version("1", "read-once", "LS"))
    assert.equal(once, reads)
    assert.same({ "koord-batch", "koord-prod" }, { version("2", "read-once", "BE").class, first.class })
    assert.equal("koord-batch", version("1", "another one", "BE").class)
    assert.equal("koord-prod", version("1", nil, "LS").class) -- without a resourceVersion nothing is cached
    assert.equal("koord-batch", version("1", nil, "BE").class)
  end)

  local function request(spec) return pods.request { metadata = { name = "p" }, spec = spec } end
  local function c(cpu, policy)
    return { resources = { requests = { cpu = cpu } }, restartPolicy = policy }
  end

  it("requests the sum of its containers or the peak of initialization", function()
    assert.equal(300, request({ containers = { c "100m", c "200m" }, initContainers = { c "250m" } }).cpu)
    assert.equal(900, request({ containers = { c "100m", c "200m" },
      initContainers = { c "900m", c "50m" } }).cpu)
  end)

  it("keeps its sidecars throughout", function()
    assert.equal(400, request({ containers = { c "300m" },
      initContainers = { c("100m", "Always"), c "200m" } }).cpu)
    assert.equal(600, request({ containers = { c "300m" },
      initContainers = { c("100m", "Always"), c "500m" } }).cpu)
    assert.equal(500, request({ containers = { c "300m" },
      initContainers = { c "500m", c("100m", "Always") } }).cpu)
  end)

  it("adds overhead, and its own request replaces the sum of its containers'", function()
    assert.equal(350, request({ containers = { c "300m" }, overhead = { cpu = "50m" } }).cpu)
    assert.equal(1050, request({ containers = { c "300m" }, resources = { requests = { cpu = "1" } },
      overhead = { cpu = "50m" } }).cpu)
    assert.equal(0, request({ containers = { {} } }).cpu)
  end)

  it("takes its class from its label, else its priority, else its QoS", function()
    local function class(labels, priority, requests)
      return pods.class { metadata = { name = "p", labels = labels },
        spec = { priority = priority, containers = { { resources = { requests = requests } } } } }
    end
    assert.equal("koord-mid", class({ ["koordinator.sh/priority-class"] = "koord-mid" }, 9500))
    assert.equal("koord-free", class(nil, 3999))
    assert.equal("koord-batch", class(nil, 4500))
    assert.equal("koord-prod", class({ ["koordinator.sh/qosClass"] = "SYSTEM" }, 2000))
    -- An unknown class counts as none, whatever the priority.
    assert.equal("koord-batch", class({ ["koordinator.sh/priority-class"] = "gold" }, 9500))
    assert.equal("koord-prod", class(nil, nil, { cpu = "1" }))
  end)

  it("takes its QoS from its label, else its status, else its containers", function()
    local function qos(pod) return pods.qos(pod) end
    local full = { requests = res("1", "1Gi"), limits = res("1000m", "1024Mi") }
    local function of(resources, status, more)
      local pod = { metadata = { name = "p" }, spec = { containers = { { resources = resources } } },
        status = status }
      for k, v in pairs(more or {}) do pod.spec[k] = v end
      return qos(pod)
    end
    assert.equal("LSR", of(full))
    assert.equal("LS", of(full, { qosClass = "Burstable" }))
    assert.equal("LS", of { requests = res("1", "1Gi"), limits = res("2", "1Gi") })
    assert.equal("LS", of { limits = { cpu = "1" } })
    assert.equal("BE", of { requests = res("0", "0") })
    assert.equal("LS", of(full, nil, { initContainers = { {} } }))
    assert.equal("BE", qos { metadata = { name = "p", labels = { ["koordinator.sh/qosClass"] = "???" } },
      spec = { containers = { {} } } })
  end)

  it("spreads over its assigned zones, or over all if none exists", function()
    local function spread(text, n)
      local pod = { metadata = { name = "p", annotations = {
        ["scheduling.koordinator.sh/resource-status"] = text } } }
      local part, list = pods.spread(pod, n), {}
      for zone = 0, n - 1 do list[zone + 1] = part(amounts.new(1000, 0), zone).cpu end
      return list
    end
    assert.same({ 0, 1000 }, spread('{"numaNodeResources": [{"node": 1}]}', 2))
    assert.same({ 500, 0, 500 }, spread('{"numaNodeResources": [{"node": 0}, {"node": 2}]}', 3))
    assert.same({ 500, 500 }, spread('{"numaNodeResources": [{"node": 7}]}', 2))
    assert.same({ 500, 500 }, spread("{]", 2))
    assert.same({ 500, 500 }, spread('{"numaNodeResources": [3]}', 2))
    assert.same({ 334, 334, 334 }, spread(nil, 3))
  end)
end)

-- ---------------------------------------------------------------- batch

describe("batch resources", function()
  it("count a reported pod that ended as unknown", function()
    local done = pod_of("done", "LS", res("1", "1Gi"), { status = { phase = "Succeeded" } })
    assert.equal(7000, batch_cpu { pods = { done }, nodeMetric = metric_of(usage("0", "0"),
      { report("done", "3", "0") }) })
    assert.equal(10000, batch_cpu { nodeMetric = metric_of(usage("0", "0"),
      { report("gone", "3", "0", "koord-batch") }) })
    assert.equal(7000, batch_cpu { nodeMetric = metric_of(usage("0", "0"),
      { report("gone", "3", "0", "koord-mid") }) })
  end)

  it("never fall below 0", function()
    local left = batch { pods = { pod_of("a", "LS", res("20", "20Gi")) } }
    assert.same({ ["kubernetes.io/batch-cpu"] = 0, ["kubernetes.io/batch-memory"] = 0 }, left.resources)
  end)

  it("start from capacity, not from allocatable", function()
    local node = node_of(res("10", "10Gi"))
    node.status.allocatable = res("9", "10Gi")
    assert.equal(9000, batch_cpu { node = node })
    node.status.capacity = res("20", "10Gi")
    assert.equal(9000, batch_cpu { node = node }) -- the other 11 are the kubelet's
  end)

  it("count host applications above batch as system, and those without a class not at all", function()
    local function with(class)
      return batch_cpu { nodeMetric = metric_of(usage("1", "0"), nil, {
        hostApplicationMetric = { { name = "h", usage = usage("2", "0"), priority = class } } }) }
    end
    assert.equal(7000, with "koord-prod")
    assert.equal(7000, with "koord-mid")
    assert.equal(9000, with "koord-batch")
    assert.equal(9000, with(nil))
  end)

  it("leave an unreported pod out of the larger-of-both sum on the node, and count it in the zones",
    function()
    local strategy = fields.copy(STRATEGY)
    strategy.cpuCalculatePolicy = "maxUsageRequest"
    local result = batch { strategy = strategy, pods = { pod_of("new", "LS", res("4", "0")) },
      nodeResourceTopology = {
      zones = { { name = "node-0", resources = { { name = "cpu", allocatable = "5" } } },
        { name = "node-1", resources = { { name = "cpu", allocatable = "5" } } } } } }
    assert.equal(10000, result.resources["kubernetes.io/batch-cpu"])
    assert.equal(3000, result.zones["node-0"]["kubernetes.io/batch-cpu"])
  end)

  it("share the system among zones so that nothing is lost to rounding", function()
    local function zone(name)
      return { name = name, resources = { { name = "cpu", allocatable = "3" },
        { name = "memory", allocatable = "1000" } } }
    end
    local result = batch { nodeMetric = metric_of(usage("1", "100"), nil), node = node_of(res("9", "3000")),
      nodeResourceTopology = { zones = { zone "node-0", zone "node-1", zone "node-2" } } }
    for i = 0, 2 do
      local left = result.zones["node-" .. i]
      assert.equal(3000 - 334, left["kubernetes.io/batch-cpu"])
      assert.equal(1000000 - 33334, kube.qty(left["kubernetes.io/batch-memory"]):milli())
    end
  end)

  it("have no zones while the topology carries neither cpu nor memory", function()
    assert.is_nil(batch({ nodeResourceTopology = { zones = {
      { name = "node-0", resources = { { name = "gpu" } } } } } }).zones)
    assert.is_nil(batch({ nodeResourceTopology = { metadata = {} } }).zones)
    assert.is_nil(batch({}).zones)
  end)

  it("are absent without their inputs", function()
    local result, why = batchresource.calculate { strategy = STRATEGY, node = node_of(res("1", "1Gi")),
      pods = {}, now = NOW }
    assert.is_nil(result)
    assert.matches("NodeMetric", why)
  end)

  it("are capped by a threshold of capacity, and say so", function()
    local strategy = fields.copy(STRATEGY)
    strategy.batchCPUThresholdPercent, strategy.batchMemoryThresholdPercent = 29, 0
    local result = batch { strategy = strategy }
    assert.equal(2900, result.resources["kubernetes.io/batch-cpu"])
    assert.equal(0, result.resources["kubernetes.io/batch-memory"])
    assert.matches("thresholdRatio:0.29, ", result.messages["kubernetes.io/batch-cpu"](), 1, true)
  end)
end)

describe("an amount", function()
  it("is rounded away from zero", function()
    assert.equal(2, amounts.giga(1500000000000))
    assert.equal(-2, amounts.giga(-1500000000000))
    assert.equal(2, amounts.bytes(1001))
    assert.equal(-2, amounts.bytes(-1001))
  end)

  it("is scaled toward zero", function()
    assert.equal(28, amounts.scale_cpu(100, 0.29))
    assert.equal(-50, amounts.scale_cpu(101, -0.5))
    assert.equal(3000, amounts.scale_memory(6001, 0.5))
  end)

  it("shows a ratio in its shortest form", function()
    assert.equal("0.29", amounts.ratio(29 / 100.0))
    assert.equal("1", amounts.ratio(1.0))
    assert.equal("0.07", amounts.ratio(7 / 100.0))
  end)
end)

describe("a reservation", function()
  local function reserved(text)
    return reservation.annotated(node_of(res("1", "1"),
      { annotations = { ["node.koordinator.sh/reservation"] = text } }))
  end

  it("counts each named processor once", function()
    assert.equal(6, reservation.count_cpus "0-3,2-5")
    assert.equal(3, reservation.count_cpus "7,9,11")
    assert.equal(0, reservation.count_cpus "5-2")
    for _, bad in ipairs { "a", "1-", "1-2-3", "1,,2", "", "0-99999999" } do
      assert.is_nil(reservation.count_cpus(bad), bad)
    end
  end)

  it("takes named processors over an amount", function()
    assert.same({ cpu = 2000, memory = 0 }, reserved '{"resources": {"cpu": "8"}, "reservedCPUs": "0,1"}')
    assert.same({ cpu = 8000, memory = 0 }, reserved '{"resources": {"cpu": "8"}, "reservedCPUs": ""}')
  end)

  it("reserves nothing if it is invalid", function()
    for _, text in ipairs { "{]", '{"resources": {"cpu": "many"}}', '{"reservedCPUs": "x"}',
      '{"reservedCPUs": 3}', "7" } do
      assert.same({ cpu = 0, memory = 0 }, reserved(text), text)
    end
  end)
end)

-- ---------------------------------------------------------------- mid

describe("mid resources", function()
  local function mid(input)
    input.strategy = input.strategy or STRATEGY
    input.node, input.pods, input.now = node_of(res("10", "10Gi")), input.pods or {}, NOW
    return assert(midresource.calculate(input)).resources["kubernetes.io/mid-cpu"]
  end
  local function metric(reclaimable, used, app)
    return metric_of(usage("0", "0"), nil, { nodeMetric = { nodeUsage = usage(used, "0"),
      systemUsage = usage("0", "0") },
      prodReclaimableMetric = { resource = usage(reclaimable, "0") },
      hostApplicationMetric = app and { app } })
  end

  it("are reclaimable resources, as far as they are idle", function()
    assert.equal(4000, mid { nodeMetric = metric("4", "5") })
    assert.equal(1000, mid { nodeMetric = metric("4", "9") })
    assert.equal(0, mid { nodeMetric = metric("4", "12") })
  end)

  it("include their part of unrequested resources", function()
    local strategy = fields.copy(STRATEGY)
    strategy.midUnallocatedPercent = 50
    local list = { pod_of("a", "LS", res("4", "0")), pod_of("b", "BE", res("4", "0")) }
    assert.equal(4000, mid { strategy = strategy, pods = list, nodeMetric = metric("1", "0") })
    -- Only prod host applications reduce mid resources; mid ones use them.
    local app = { name = "h", usage = usage("2", "0"), priority = "koord-prod" }
    assert.equal(3000, mid { strategy = strategy, pods = list, nodeMetric = metric("1", "0", app) })
    app.priority = "koord-mid"
    assert.equal(4000, mid { strategy = strategy, pods = list, nodeMetric = metric("1", "0", app) })
  end)

  it("are absent on a node without allocatable resources", function()
    assert.is_nil(midresource.calculate { strategy = STRATEGY, node = { status = {} }, pods = {},
      nodeMetric = metric("1", "0"), now = NOW })
  end)
end)

-- ---------------------------------------------------------------- ratios

describe("the cpu normalization ratio", function()
  local function topology(info)
    return { metadata = { annotations = { ["node.koordinator.sh/cpu-basic-info"] = info } } }
  end
  local function calculate(config, labels, info)
    local node = node_of(res("1", "1"), { labels = labels })
    local result, why = cpunormalization.calculate { cpuNormalization = config, node = node,
      nodeResourceTopology = topology(info) }
    return result and result.annotations[cpunormalization.ANNOTATION], why
  end
  local LABEL = "node.koordinator.sh/cpu-normalization-enabled"

  it("comes from the node's label, whatever the configuration", function()
    assert.equal("1.00", calculate({ enable = true, defaultRatio = 2 }, { [LABEL] = "False" },
      '{"cpuModel": "m"}'))
    assert.equal("2.00", calculate({ enable = false, defaultRatio = 2 }, { [LABEL] = "1" },
      '{"cpuModel": "m"}'))
    local ratio, why = calculate({ enable = true, defaultRatio = 2 }, { [LABEL] = "yes" },
      '{"cpuModel": "m"}')
    assert.is_nil(ratio)
    assert.matches("must be true or false", why)
  end)

  it("is refused outside 1 to 5", function()
    assert.equal("5.00", calculate({ enable = true, defaultRatio = 5.0 }, nil, "{}"))
    assert.is_nil(calculate({ enable = true, defaultRatio = 5.01 }, nil, "{}"))
    assert.is_nil(calculate({ enable = true, defaultRatio = 0.99 }, nil, "{}"))
  end)

  it("of a node's entry replaces a model whole and keeps the others", function()
    local config = { enable = true, ratioModel = { m = { baseRatio = 2, turboEnabledRatio = 3 },
      other = { baseRatio = 4 } },
      nodeConfigs = { { nodeSelector = {}, ratioModel = { m = { baseRatio = 1.5 } } } } }
    assert.equal("1.50", calculate(config, nil, '{"cpuModel": "m"}'))
    assert.is_nil(calculate(config, nil, '{"cpuModel": "m", "turboEnabled": true}'))
    assert.equal("4.00", calculate(config, nil, '{"cpuModel": "other"}'))
  end)

  it("is written only when it moved by more than 0.01", function()
    local need = cpunormalization.differs
    assert.is_false(need("1.10", "1.10"))
    assert.is_false(need("1.105", "1.10"))
    assert.is_true(need("1.10", "1.12"))
    assert.is_true(need("1.12", "1.10"))
    assert.is_true(need("0", "1.12"))
    assert.is_false(need("1.10", "?"))
    assert.is_true(need(nil, "1.00"))
  end)
end)

describe("resource amplification", function()
  local function calculate(config, ratio)
    local node = node_of(res("1", "1"), { annotations = { [cpunormalization.ANNOTATION] = ratio } })
    local result, why = resourceamplification.calculate { resourceAmplification = config, node = node }
    return result and result.annotations[resourceamplification.ANNOTATION], why
  end

  it("is the node's normalization alone when nothing is configured", function()
    assert.equal('{"cpu":1.20}', calculate({ enable = false }, "1.20"))
    assert.is_nil(calculate({ enable = false }, "1.00"))
    local text, why = calculate({ enable = false }, "0.90")
    assert.is_nil(text)
    assert.is_nil(why)
  end)

  it("says which resource is below 1", function()
    local text, why = calculate { enable = true, resourceAmplificationRatio = { memory = 0.5 } }
    assert.is_nil(text)
    assert.matches("of memory must be at least 1, got 0.5", why)
  end)
end)

-- ---------------------------------------------------------------- what is written

describe("preparing a node", function()
  local BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
  local ORIGIN, THIRD = "node.koordinator.sh/originExtendedAllocatable",
    "node.koordinator.sh/thirdPartyAllocations"

  it("rounds what is not whole up", function()
    local desired = prepare.prepare(node_of(res("1", "1")),
      { resources = { [BATCH_CPU] = 10001, [BATCH_MEMORY] = kube.milli(1500) },
      annotations = { [cpunormalization.ANNOTATION] = "1.10" } })
    assert.equal(11002, desired.resources[BATCH_CPU])
    assert.equal(2, desired.resources[BATCH_MEMORY])
    assert.is_false(desired.resources["kubernetes.io/mid-cpu"])
  end)

  it("keeps entries of others in the origin annotation", function()
    local node = node_of(res("1", "1"), { annotations = {
      [ORIGIN] = '{"resources":{"example.com/gpu":"3","kubernetes.io/batch-cpu":"9"}}' } })
    local desired = prepare.prepare(node, { resources = { [BATCH_CPU] = 5000, [BATCH_MEMORY] = 2 * GIB } })
    assert.equal('{"resources":{"example.com/gpu":"3","kubernetes.io/batch-cpu":"5k",\z
      "kubernetes.io/batch-memory":"2Gi"}}', desired.annotations[ORIGIN])
  end)

  it("leaves nothing if third parties took more than the total, and ignores other classes",
    function()
    local node = node_of(res("1", "1"), { annotations = {
      [THIRD] = '{"allocations":[{"name":"a","priority":"koord-batch","resources":'
      .. '{"kubernetes.io/batch-cpu":"3k"}},{"name":"b","priority":"koord-batch",\z
        "resources":{"kubernetes.io/batch-cpu":"3k"}},'
      .. '{"name":"c","priority":"koord-mid","resources":{"kubernetes.io/batch-memory":"1"}}]}' } })
    local desired = prepare.prepare(node, { resources = { [BATCH_CPU] = 5000, [BATCH_MEMORY] = 7 } })
    assert.equal(0, desired.resources[BATCH_CPU])
    assert.equal(7, desired.resources[BATCH_MEMORY])
  end)

  it("subtracts nothing for an invalid annotation", function()
    for _, text in ipairs { "{]", '{"allocations": 3}',
      '{"allocations":[{"priority":"koord-batch","resources":{"kubernetes.io/batch-cpu":"x"}}]}',
      '{"allocations":[3]}' } do
      local node = node_of(res("1", "1"), { annotations = { [THIRD] = text } })
      assert.equal(5000, prepare.prepare(node, { resources = { [BATCH_CPU] = 5000,
        [BATCH_MEMORY] = 7 } }).resources[BATCH_CPU], text)
    end
  end)

  it("does not rewrite an equal value", function()
    local node = { metadata = { annotations = { a = "1", b = "2" } }, status = {
      capacity = { [BATCH_CPU] = "5000", [BATCH_MEMORY] = "1536Mi" },
      allocatable = { [BATCH_CPU] = "5000", ["koordinator.sh/gpu"] = "1" } } }
    local resources = { [BATCH_CPU] = 5000, [BATCH_MEMORY] = 3 * GIB // 2, ["koordinator.sh/gpu"] = false }
    assert.same({ allocatable = { [BATCH_MEMORY] = "1536Mi", ["koordinator.sh/gpu"] = kube.null } },
      prepare.status_patch(node, { resources = resources }))
    node.status.allocatable = node.status.capacity
    assert.is_nil(prepare.status_patch(node, { resources = resources }))
    assert.same({ metadata = { annotations = { a = kube.null, c = "3" } } },
      prepare.meta_patch(node, { labels = {}, annotations = { a = false, b = "2", c = "3", d = false } }))
    assert.is_nil(prepare.meta_patch({ metadata = {} }, { labels = {}, annotations = { d = false } }))
  end)

  it("is written when a value changed by more than the threshold, appeared or disappeared", function()
    assert.is_false(prepare.differs("100", "110", 0.1))
    assert.is_true(prepare.differs("100", "110001m", 0.1))
    assert.is_false(prepare.differs("0", 0, 0.1))
    assert.is_true(prepare.differs("0", "1m", 0.1))
    assert.is_true(prepare.differs(nil, "0", 0.1))
    assert.is_true(prepare.differs("0", nil, 0.1))
    assert.is_false(prepare.differs(nil, nil, 0.1))
  end)

  it("is due again when more than the time has passed", function()
    local same = { [BATCH_CPU] = "1" }
    assert.is_true(prepare.need_sync_status(STRATEGY, same, same, nil, NOW))
    assert.is_false(prepare.need_sync_status(STRATEGY, same, same, NOW - 300, NOW))
    assert.is_true(prepare.need_sync_status(STRATEGY, same, same, NOW - 301, NOW))
  end)

  it("asks for a write of the metadata as long as a ratio cannot be read", function()
    local RATIO = "node.koordinator.sh/cpu-normalization-ratio"
    local function asks(old, new)
      return prepare.need_sync_meta({ metadata = { annotations = { [RATIO] = old } } },
        { labels = {}, annotations = { [RATIO] = new } })
    end
    assert.is_true(asks "much")
    assert.is_true(asks("much", "1.20"))
    assert.is_true(asks(nil, "1.20"))
    assert.is_false(asks "1.20")
    assert.is_false(asks(nil, nil))
  end)
end)

describe("zones", function()
  local function resource(name, n) return { name = name, capacity = n, allocatable = n, available = n } end
  local function list(...) return { { name = "node-0", type = "Node", resources = { ... } } } end
  local function wanted(cpu, memory)
    return { zones = { ["node-0"] = { ["kubernetes.io/batch-cpu"] = cpu,
      ["kubernetes.io/batch-memory"] = memory } } }
  end

  it("get missing resources, sorted by name, and keep the rest", function()
    local out = zones.changes(list(resource("memory", "1Gi"), resource("cpu", "4")), wanted(2000, 1024), 0.1)
    local names = {}
    for i, info in ipairs(out[1]) do names[i] = info.name end
    assert.same({ "cpu", "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory", "memory" }, names)
    assert.same(resource("kubernetes.io/batch-memory", "1Ki"), out[1][3])
  end)

  it("are left alone while the difference is small", function()
    local now = list(resource("kubernetes.io/batch-cpu", "2k"), resource("kubernetes.io/batch-memory", "1Ki"))
    assert.same({}, zones.changes(now, wanted(2100, 1024), 0.1))
    assert.equal("2300", zones.changes(now, wanted(2300, 1024), 0.1)[1][1].available)
    assert.equal("2k", now[1].resources[1].available)
  end)

  it("count processors by the node's ratio", function()
    local decided = wanted(2000, 1024)
    decided.annotations = { [cpunormalization.ANNOTATION] = "1.50" }
    assert.equal("3k", zones.changes(list(resource("cpu", "4")), decided, 0.1)[1][2].capacity)
  end)

  it("offer nothing if the node offers nothing, and stay untouched if they never did", function()
    local reset = plan.reset "off"
    assert.equal("0", zones.changes(list(resource("kubernetes.io/batch-cpu", "2k")), reset,
      0.1)[1][1].available)
    assert.same({}, zones.changes(list(resource("kubernetes.io/batch-cpu", "0"), resource("cpu", "4")), reset,
      0.1))
    assert.same({}, zones.changes(nil, reset, 0.1))
  end)
end)

-- ---------------------------------------------------------------- all of them

describe("the plan of a node", function()
  local request = pods.request
  after_each(function() pods.request = request end)

  it("equals its single calculations, and reads each pod once", function()
    local function zone(name)
      return { name = name, resources = { { name = "cpu", allocatable = "5" },
        { name = "memory", allocatable = "5Gi" } } }
    end
    local input = { strategy = STRATEGY, now = NOW, node = node_of(res("10", "10Gi")),
      nodeResourceTopology = { zones = { zone "node-0", zone "node-1" } },
      pods = {
        pod_of("a", "LSE", res("3", "1Gi")),
        pod_of("b", "LS", res("2", "1Gi")),
        pod_of("c", "BE", res("1", "1Gi")),
        pod_of("d", "LS", res("1", "1Gi"), { status = { phase = "Failed" } }),
      },
      nodeMetric = metric_of(usage("0", "0"), { report("a", "1", "2Gi"), report("d", "1", "1Gi") }) }
    local apart = fields.merge(midresource.calculate(input).resources, batch(input).resources)
    local reads = {}
    pods.request = function(pod)
      local name = pod.metadata.name
      reads[name] = (reads[name] or 0) + 1
      return request(pod)
    end
    local decided = plan.calculate(input)
    assert.same({ a = 1, b = 1 }, reads)
    assert.same(apart, fields.merge(decided.resources, {}))
    assert.equal(4000, decided.resources["kubernetes.io/batch-cpu"])
    assert.is_nil(input.read)
    -- The next plan reads the pods again.
    plan.calculate(input)
    assert.same({ a = 2, b = 2 }, reads)
  end)
end)
