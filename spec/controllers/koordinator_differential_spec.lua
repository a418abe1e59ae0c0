-- koordinator_differential_spec.lua - our policies and Koordinator's own functions (v1.8.0, called by the Go
-- program in spec/realserver/koordinator) return the same for the same random inputs, including the
-- explanations of the numbers.
-- not in check, asan, tsan: it reads what two programs say of thousands of inputs

package.path = "controllers/koordinator/?.lua;" .. package.path

local fields = require "fields"
local fixtures = require "support.fixtures"
local kube = require "kubelua"
local process = require "support.process"
local sizes = require "support.sizes"

local GO = process.run("ls build/assets/koordinator/koordinator 2>/dev/null"):match "%S+"
local CASES = sizes.of { short = 400, long = 10000 }
local NOW = "2026-01-01T00:00:00Z"
local random = math.random

local function chance(percent) return random(100) <= percent end
local function pick(list) return list[random(#list)] end
local function maybe(percent, fn, ...) if chance(percent) then return fn(...) end end

-- ---------------------------------------------------------------- nodes

local function cpu(most)
  return pick { ("%d"):format(random(0, most)), ("%dm"):format(random(0, most * 1000)) }
end

local function memory(most)
  return pick { ("%dGi"):format(random(0, most)), ("%dG"):format(random(0, most)),
    ("%d"):format(random(0, most << 30)), ("%dMi"):format(random(0, most << 10)) }
end

local function amount(cores, gib) return { cpu = cpu(cores), memory = memory(gib) } end
local function usage(cores, gib) return { resources = amount(cores, gib) } end

local CLASSES = { "koord-prod", "koord-mid", "koord-batch", "koord-free" }
local QOS = { "LSE", "LSR", "LS", "BE", "SYSTEM" }
local PRIORITIES = { 9999, 9000, 8500, 7000, 7999, 5000, 5999, 3000, 0, 10000 }

local function container(name)
  local asked = maybe(90, amount, 8, 16)
  return { name = name, resources = { requests = asked, limits = asked } }
end

local function pod(i)
  local class = maybe(50, pick, CLASSES)
  local labels = { ["koordinator.sh/qosClass"] = maybe(60, pick, QOS) }
  if chance(10) then labels["koordinator.sh/priority-class"] = pick(CLASSES) end
  local p = {
    metadata = { name = "p" .. i, namespace = "ns", labels = next(labels) and labels },
    spec = { containers = { container "a", maybe(30, container, "b") }, nodeName = "n",
      priorityClassName = class, priority = maybe(70, pick, PRIORITIES) },
    status = { phase = pick { "Running", "Running", "Running", "Pending", "Succeeded", "Failed" } },
  }
  if chance(10) then p.spec.initContainers = { container "init" } end
  if chance(10) then p.spec.overhead = amount(1, 1) end
  return p
end

local function node()
  local cores, gib = random(1, 128), random(1, 512)
  local capacity = { cpu = tostring(cores), memory = gib .. "Gi" }
  local allocatable = chance(50) and capacity or {
    cpu = ("%dm"):format(cores * 1000 - random(0, 1000)),
    memory = ("%d"):format((gib << 30) - random(0, 1 << 29)),
  }
  local annotations
  if chance(30) then
    annotations = { ["node.koordinator.sh/reservation"] = kube.encode { resources = amount(4, 8),
      applyPolicy = maybe(50, pick, { "Default", "ReservedCPUsOnly" }) } }
  end
  return { metadata = { name = "n", annotations = annotations },
    status = { capacity = capacity, allocatable = allocatable } }
end

local function strategy()
  local s = { enable = true, degradeTimeMinutes = random(5, 30), updateTimeThresholdSeconds = 300,
    resourceDiffThreshold = 0.1, cpuReclaimThresholdPercent = random(0, 100),
    memoryReclaimThresholdPercent = random(0, 100),
    cpuCalculatePolicy = maybe(50, pick, { "usage", "maxUsageRequest" }),
    memoryCalculatePolicy = maybe(50, pick, { "usage", "request", "maxUsageRequest" }),
    midCPUThresholdPercent = random(0, 100), midMemoryThresholdPercent = random(0, 100),
    midUnallocatedPercent = random(0, 100) }
  for _, name in ipairs { "batchCPUThresholdPercent", "batchMemoryThresholdPercent" } do
    s[name] = maybe(30, random, 0, 100)
  end
  if chance(10) then
    s.midReclaimMode = "static"
    s.midStaticCPUReservedPercent, s.midStaticMemoryReservedPercent = random(0, 100), random(0, 100)
  end
  return s
end

local function metric(pods)
  local reports = {}
  for _, p in ipairs(pods) do
    if chance(75) then
      reports[#reports + 1] = { name = p.metadata.name, namespace = "ns", podUsage = usage(8, 16),
        priority = p.spec.priorityClassName, qos = p.metadata.labels
          and p.metadata.labels["koordinator.sh/qosClass"] }
    end
  end
  if chance(20) then
    reports[#reports + 1] = { name = "gone", namespace = "ns", podUsage = usage(8, 16),
      priority = maybe(70, pick, CLASSES) }
  end
  local hosts = maybe(20, function()
    return { { name = "host", usage = usage(4, 8), priority = maybe(70, pick, CLASSES),
      qos = maybe(50, pick, QOS) } }
  end)
  return {
    metadata = { name = "n" },
    status = {
      -- Far from the limit in minutes, since the Go functions use their own clock.
      updateTime = chance(95) and "2025-12-31T23:59:30Z" or "2025-12-31T23:00:00Z",
      nodeMetric = { nodeUsage = usage(64, 256), systemUsage = usage(8, 16) },
      podsMetric = next(reports) and reports or nil,
      hostApplicationMetric = hosts,
      prodReclaimableMetric = maybe(70, function() return { resource = usage(32, 64) } end),
    },
  }
end

local function node_input()
  local pods = {}
  for i = 1, random(0, 8) do pods[i] = pod(i) end
  return { now = NOW, strategy = strategy(), node = node(), pods = pods, nodeMetric = metric(pods) }
end

-- ---------------------------------------------------------------- quotas

local LABEL = "quota.scheduling.koordinator.sh/"

local function quota(name, parent, is_parent)
  local min = { cpu = tostring(random(0, 40)), memory = tostring(random(0, 4000)) }
  local max = { cpu = tostring(min.cpu + random(0, 80)), memory = tostring(min.memory + random(0, 8000)) }
  local labels = { [LABEL .. "parent"] = parent, [LABEL .. "is-parent"] = tostring(is_parent),
    [LABEL .. "allow-lent-resource"] = tostring(chance(70)),
    [LABEL .. "enable-scale-min-quota"] = chance(60) and "true" or nil }
  local weight = maybe(40, function()
    return { [LABEL .. "shared-weight"] = kube.encode {
      cpu = tostring(random(1, 60)), memory = tostring(random(1, 6000)) } }
  end)
  return { apiVersion = "scheduling.sigs.k8s.io/v1alpha1", kind = "ElasticQuota",
    metadata = { name = name, namespace = "ns", labels = labels, annotations = weight },
    spec = { min = min, max = max } }
end

local function asked()
  return { cpu = tostring(random(60)), memory = tostring(random(6000)) }
end

local function part(list)
  local out = {}
  for _, name in ipairs(fields.names(list)) do
    out[name] = tostring(random(0, math.tointeger(tonumber(list[name]))))
  end
  return out
end

local function quota_input()
  local input = { op = "runtime", upstream = "v1.8.0", quotas = {}, podRequests = {}, podUsed = {},
    totalResource = { cpu = tostring(random(0, 200)), memory = tostring(random(0, 20000)) },
    scaleMinQuotaEnabled = chance(50) }
  local function leaf(name, parent)
    input.quotas[#input.quotas + 1] = quota(name, parent, false)
    input.podRequests[name] = asked()
    if chance(50) then input.podUsed[name] = part(input.podRequests[name]) end
  end
  for i = 1, random(1, 4) do
    local name = "q" .. i
    if chance(50) then
      input.quotas[#input.quotas + 1] = quota(name, "koordinator-root-quota", true)
      for k = 1, random(1, 4) do leaf(name .. "-" .. k, name) end
    else
      leaf(name, "koordinator-root-quota")
    end
  end
  return input
end

-- ---------------------------------------------------------------- LoadAwareScheduling

local SECONDS = kube.time(NOW):unix()
local DOMAIN = "scheduling.koordinator.sh/"

local function ago(seconds) return os.date("!%Y-%m-%dT%H:%M:%SZ", SECONDS - seconds) end

local function some(list) return next(list) and list or nil end

local function percents(least, most)
  return some { cpu = maybe(80, random, least, most), memory = maybe(80, random, least, most) }
end

local function thresholds() return chance(15) and { cpu = 0, memory = 0 } or percents(0, 100) end

local AGGREGATES, DURATIONS = { "avg", "p50", "p90", "p95", "p99" }, { "5m", "10m0s", "30m", "0s" }

local function aggregated_args()
  return some { usageThresholds = maybe(80, thresholds), usageAggregationType = maybe(80, pick, AGGREGATES),
    usageAggregatedDuration = maybe(50, pick, DURATIONS), scoreAggregationType = maybe(80, pick, AGGREGATES),
    scoreAggregatedDuration = maybe(50, pick, DURATIONS) }
end

local function load_args()
  return {
    filterExpiredNodeMetrics = maybe(30, chance, 50),
    enableScheduleWhenNodeMetricsExpired = maybe(30, chance, 50),
    nodeMetricExpirationSeconds = maybe(30, random, 1, 600),
    resourceWeights = maybe(40, percents, 1, 10),
    dominantResourceWeight = maybe(40, random, 0, 10),
    usageThresholds = maybe(50, thresholds),
    prodUsageThresholds = maybe(30, thresholds),
    prodUsageIncludeSys = maybe(30, chance, 50),
    scoreAccordingProdUsage = maybe(30, chance, 50),
    estimatedScalingFactors = maybe(40, percents, 1, 100),
    estimatedSecondsAfterPodScheduled = maybe(30, random, 0, 300),
    estimatedSecondsAfterInitialized = maybe(30, random, 0, 300),
    allowCustomizeEstimation = maybe(30, chance, 70),
    aggregated = maybe(40, aggregated_args),
  }
end

local function annotated_pod(name)
  local p = pod(name)
  local batch = maybe(20, function()
    return { ["kubernetes.io/batch-cpu"] = tostring(random(0, 4000)),
      ["kubernetes.io/batch-memory"] = memory(8),
      ["kubernetes.io/mid-cpu"] = tostring(random(0, 4000)) }
  end)
  if batch then p.spec.containers[1].resources = { requests = batch,
    limits = maybe(50, fields.copy, batch) } end
  if chance(30) then p.spec.containers[1].resources.limits = amount(8, 16) end
  p.metadata.uid = p.metadata.name
  p.metadata.annotations = some {
    [DOMAIN .. "load-estimated-scaling-factors"] = maybe(20, pick,
      { '{"cpu":50}', '{"memory":100,"x":3}', "{}",
      "no json", '{"cpu":"50"}' }),
    [DOMAIN .. "load-estimated-seconds-after-pod-scheduled"] = maybe(20, pick,
      { "0", "60", "-5", "600", "x" }),
    [DOMAIN .. "load-estimated-seconds-after-initialized"] = maybe(20, pick,
      { "0", "60", "-5", "600", "+9" }),
  }
  local conditions = {}
  for _, type in ipairs { "PodScheduled", "Initialized" } do
    if chance(70) then
      conditions[#conditions + 1] = { type = type, status = pick { "True", "True", "True", "False" },
        lastTransitionTime = ago(random(0, 400)) }
    end
  end
  p.status.conditions = some(conditions)
  return p
end

local function load_node()
  local n = node()
  n.metadata.annotations = some {
    [DOMAIN .. "usage-thresholds"] = maybe(30, function()
      if chance(10) then return "no json" end
      local aggregate = maybe(50, function()
        return some { usageThresholds = maybe(80, percents, 0, 100), usageAggregationType = maybe(80, pick,
          AGGREGATES), usageAggregatedDuration = maybe(50, pick, DURATIONS) }
      end)
      local said = { usageThresholds = maybe(50, percents, 0, 100),
        prodUsageThresholds = maybe(50, percents, 0, 100), aggregatedUsage = aggregate }
      return kube.encode(kube.object(said))
    end),
    ["node.koordinator.sh/raw-allocatable"] = maybe(20, function() return kube.encode(amount(64, 256)) end),
  }
  return n
end

local function aggregates()
  local out = {}
  for i = 1, random(1, 3) do
    local by = {}
    for _, type in ipairs(AGGREGATES) do by[type] = maybe(80, usage, 64, 256) end
    out[i] = { duration = pick(DURATIONS), usage = some(by) }
  end
  return out
end

local function load_metric(pods)
  local m = metric(pods)
  m.spec = { metricCollectPolicy = maybe(50,
    function() return { reportIntervalSeconds = random(1, 300) } end) }
  m.spec = some(m.spec)
  m.status.updateTime = maybe(95, ago, pick { 0, 20, 60, 120, 179, 180, 400 })
  m.status.nodeMetric.aggregatedNodeUsages = maybe(60, aggregates)
  for _, report in ipairs(m.status.podsMetric or {}) do
    if chance(10) then report.podUsage = nil end
  end
  if chance(3) then m.status.nodeMetric = nil end
  return m
end

local function load_input()
  local pods = {}
  for i = 1, random(0, 6) do pods[i] = annotated_pod(i) end
  local incoming = annotated_pod "new"
  incoming.spec.nodeName, incoming.status = nil, { phase = "Pending" }
  if chance(5) then incoming.metadata.ownerReferences = { { kind = "DaemonSet", name = "d" } } end
  return { now = NOW, args = load_args(), node = load_node(), pods = pods, pod = incoming,
    nodeMetric = maybe(95, load_metric, pods) }
end

-- ---------------------------------------------------------------- LowNodeLoad

local THRESHOLDS = { { "cpu", 90 }, { "memory", 90 }, { "pods", 40 } } -- a name, and its frequency in percent

local function low_and_high()
  local low, high = {}, {}
  for _, one in ipairs(THRESHOLDS) do
    local name, percent = table.unpack(one)
    if chance(percent) then
      low[name] = random(0, 50)
      high[name] = low[name] + random(0, 40)
    end
  end
  return low, high
end

local function prod_thresholds(pool)
  pool.prodLowThresholds, pool.prodHighThresholds = {}, {}
  for _, one in ipairs(THRESHOLDS) do
    local name, most = one[1], pool.highThresholds[one[1]]
    if most and chance(70) then
      pool.prodHighThresholds[name] = random(0, most)
      pool.prodLowThresholds[name] = random(0, pool.prodHighThresholds[name])
    end
  end
end

local function zone_selector() return { matchLabels = { zone = pick { "a", "b" } } } end

-- Adds thresholds to the args or to a pool.
local function add_thresholds(pool, percent, prod)
  pool.nodeSelector = maybe(20, zone_selector)
  pool.resourceWeights = maybe(30, function()
    return { cpu = random(1, 5), memory = random(1, 5), pods = 1 }
  end)
  pool.anomalyCondition = { timeout = "1h0m0s", consecutiveAbnormalities = pick { 1, 1, 1, 2, 3 },
    consecutiveNormalities = random(1, 3) }
  if chance(percent) then
    pool.lowThresholds, pool.highThresholds = low_and_high()
    if prod or chance(40) then prod_thresholds(pool) end
  end
  return pool
end

local function balance_args()
  local deviation = chance(25)
  local args = add_thresholds({ nodeFit = chance(60), numberOfNodes = maybe(10, random, 0, 2),
    nodeMetricExpirationSeconds = 180, nodePools = {}, useDeviationThresholds = deviation,
    evictableNamespaces = maybe(15, function()
      return chance(50) and { include = { "ns" } } or { exclude = { "ns" } }
    end),
    podSelectors = maybe(10, function()
      return { { name = "s", selector = { matchLabels = { ["koordinator.sh/qosClass"] = "BE" } } } }
    end) }, 60)
  for i = 1, random(args.lowThresholds and 0 or 1, 2) do
    -- The original copies shared thresholds into pools, so they must be of the same kind; and it rejects prod
    -- thresholds above the pool's own.
    args.nodePools[i] = add_thresholds({ name = "pool" .. i, useDeviationThresholds = deviation }, 90,
      args.prodHighThresholds ~= nil)
  end
  args.nodePools = some(args.nodePools)
  return args
end

local function balanced_node(i)
  local n = node()
  n.metadata = { name = "n" .. i, labels = { zone = pick { "a", "a", "b" } } }
  n.status.allocatable.pods, n.status.capacity.pods = tostring(random(8, 30)), "110"
  if chance(20) then
    n.metadata.annotations = { ["node.koordinator.sh/raw-allocatable"] = kube.encode(amount(64, 256)) }
  end
  n.spec = some { unschedulable = maybe(10, chance, 100), taints = maybe(10, function()
    return { { key = "t", value = "v", effect = pick { "NoSchedule", "NoExecute", "PreferNoSchedule" } } }
  end) }
  return n
end

local function balanced_pod(i, name)
  local p = pod(i)
  p.metadata.name, p.spec.nodeName = "p" .. i, name
  -- The last criterion of the order; among equal pods the original takes any.
  p.metadata.creationTimestamp = ago(60 * i)
  p.metadata.ownerReferences = maybe(90, function()
    return { { apiVersion = "apps/v1", kind = pick { "ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet" },
      name = "r", uid = "r" } }
  end)
  p.metadata.annotations = some {
    ["controller.kubernetes.io/pod-deletion-cost"] = maybe(10, pick, { "-5", "0", "7", "x", "+3", "03" }),
    ["scheduling.koordinator.sh/eviction-cost"] = maybe(10, pick, { "-5", "0", "7", "x" }),
    ["descheduler.alpha.kubernetes.io/evict"] = maybe(5, pick, { "", "true" }),
    ["kubernetes.io/config.source"] = maybe(5, pick, { "api", "file" }),
  }
  if chance(5) then p.spec.priority = 2000000000 end
  if chance(5) then p.spec.volumes = { { name = "v", emptyDir = kube.object {} } } end
  if chance(5) then p.metadata.deletionTimestamp = NOW end
  if chance(10) then p.spec.nodeSelector = { zone = pick { "a", "b" } } end
  if chance(10) then p.spec.tolerations = { { key = "t", operator = "Exists" } } end
  if chance(10) then p.metadata.namespace = "other" end
  return p
end

local function balanced_metric(n, pods)
  local m, busy = metric(pods), pick { 0, 1, 2, 4 }
  m.metadata.name = n.metadata.name
  m.status.updateTime = ago(pick { 10, 100, 170, 300 })
  for _, report in ipairs(m.status.podsMetric or {}) do
    if chance(5) then report.podUsage = usage(16, 32) else report.podUsage = usage(busy * 2, busy * 4) end
  end
  for i, p in ipairs(pods) do
    local report = m.status.podsMetric and m.status.podsMetric[i]
    if report and report.name == p.metadata.name then report.namespace = p.metadata.namespace end
  end
  m.status.nodeMetric.systemUsage = usage(busy * 4, busy * 8)
  if chance(3) then m.status.nodeMetric = nil end
  return m
end

local function balance_input()
  local input = { now = NOW, args = balance_args(), nodes = {}, pods = {}, nodeMetrics = {},
    passes = random(1, 4), maxEvictions = maybe(20, random, 0, 3) }
  for i = 1, random(2, 5) do
    local n, on = balanced_node(i), {}
    for _ = 1, random(0, 7) do
      local p = balanced_pod(#input.pods + 1, n.metadata.name)
      on[#on + 1] = p
      input.pods[#input.pods + 1] = p
    end
    input.nodes[i] = n
    if chance(95) then input.nodeMetrics[#input.nodeMetrics + 1] = balanced_metric(n, on) end
  end
  return input
end

-- ---------------------------------------------------------------- new pods and colocation profiles

local KEYS = { "a", "b", "example.com/c" }

local function pairs_of(most)
  local out = {}
  for _ = 1, random(0, most) do out[pick(KEYS)] = pick { "x", "y", "" } end
  return some(out)
end

-- From existing keys to new keys, so that no copy is copied again.
local function mapping()
  return some { a = maybe(50, pick, { "copy-a", "copy" }), b = maybe(50, pick, { "copy-b" }) }
end

local function label_selector()
  return { matchLabels = maybe(50, pairs_of, 2), matchExpressions = maybe(30, function()
    local operator = pick { "In", "NotIn", "Exists", "DoesNotExist" }
    return { { key = pick(KEYS), operator = operator,
      values = (operator == "In" or operator == "NotIn") and { "x", "y" } or nil } }
  end) }
end

local function selector_of(percent)
  return maybe(percent, function() return kube.object(label_selector()) end)
end

local function colocation_profile(i)
  local spec = {
    namespaceSelector = selector_of(40), selector = selector_of(50),
    probability = maybe(30, pick, { 0, 100, "0%", "100%" }),
    labels = maybe(50, pairs_of, 2), annotations = maybe(30, pairs_of, 2),
    labelKeysMapping = maybe(20, mapping), annotationKeysMapping = maybe(20, mapping),
    labelSuffixes = maybe(20, function() return { [pick(KEYS)] = "-suffix" } end),
    schedulerName = maybe(30, pick, { "koord-scheduler", "" }),
    qosClass = maybe(40, pick, QOS),
    priorityClassName = maybe(50, pick, { "koord-batch", "koord-mid", "koord-prod", "koord-free", "absent" }),
    koordinatorPriority = maybe(30, random, 0, 9999),
    patch = maybe(30, function()
      return { metadata = { labels = maybe(70, function() return { a = "patched", ["p" .. i] = "1" } end),
        annotations = maybe(50, function() return { patched = "yes" } end) },
        spec = maybe(50, function()
          return { terminationGracePeriodSeconds = random(1, 60), containers = maybe(50, function()
            return { { name = "a", env = { { name = "E" .. i, value = "v" } } } }
          end) }
        end) }
    end),
  }
  return { metadata = { name = "p" .. i, annotations = maybe(10, function()
    return { ["config.koordinator.sh/skip-update-resources"] = "true" }
  end) }, spec = kube.object(spec) }
end

local function gpus()
  return some {
    ["koordinator.sh/gpu"] = maybe(30, pick, { "50", "100", "200", "150" }),
    -- v1.8.0 divides a request of several GPUs by cores among none of them (docs/koordinator.md).
    ["koordinator.sh/gpu-core"] = maybe(30, pick, { "50", "100" }),
    ["koordinator.sh/gpu-memory-ratio"] = maybe(30, pick, { "50", "100", "200", "150", "400" }),
    ["koordinator.sh/gpu-memory"] = maybe(20, pick, { "4Gi" }),
    ["koordinator.sh/gpu.shared"] = maybe(15, pick, { "1", "2" }),
  }
end

local function new_pod()
  local p = pod "new"
  p.spec.nodeName, p.status = nil, nil
  p.spec.priority = maybe(50, pick, PRIORITIES)
  p.metadata.annotations = maybe(40, pairs_of, 2)
  for _, name in ipairs(KEYS) do
    if chance(30) then
      p.metadata.labels = p.metadata.labels or {}
      p.metadata.labels[name] = pick { "x", "y" }
    end
  end
  for _, one in ipairs(p.spec.containers) do
    if chance(20) then one.resources.requests = nil end
    if chance(10) then one.resources.limits = amount(8, 16) end
    local devices = maybe(20, gpus)
    for name, n in pairs(devices or {}) do
      one.resources.requests = one.resources.requests or {}
      one.resources.limits = one.resources.limits or {}
      one.resources.requests[name], one.resources.limits[name] = n, n
    end
  end
  return p
end

local function profile_input()
  local input = { pod = new_pod(), profiles = {}, rand = 50,
    namespaces = maybe(90, function() return { { metadata = { name = "ns", labels = pairs_of(2) } } } end),
    priorityClasses = {} }
  for i, name in ipairs(CLASSES) do
    input.priorityClasses[i] = { metadata = { name = name }, value = PRIORITIES[i * 2],
      preemptionPolicy = maybe(30, pick, { "Never" }) }
  end
  for i = 1, random(0, 3) do input.profiles[i] = colocation_profile(i) end
  return input
end

-- ---------------------------------------------------------------- NodeNUMAResource

local NUMA_POLICIES = { "BestEffort", "Restricted", "SingleNUMANode" }

-- A machine: processors by core, NUMA node and socket, and the resources of each NUMA node. With more than
-- two the original allocates shares in another order (docs/koordinator.md).
local function machine()
  local o = { nodes = pick { 1, 2, 2, 2 }, cores = random(1, 6), threads = pick { 1, 2, 2 },
    per_socket = pick { 1, 1, 2 } }
  local detail, zones, id = {}, {}, 0
  for zone = 0, o.nodes - 1 do
    for core = 0, o.cores - 1 do
      for _ = 1, o.threads do
        detail[#detail + 1] = { id = id, core = zone * o.cores + core, node = zone,
          socket = zone // o.per_socket }
        id = id + 1
      end
    end
    local gib = random(2, 16)
    zones[zone + 1] = { name = "node-" .. zone, type = "Node", resources = {
      { name = "cpu", capacity = tostring(o.cores * o.threads), allocatable = tostring(o.cores * o.threads),
        available = tostring(o.cores * o.threads) },
      { name = "memory", capacity = gib .. "Gi", allocatable = gib .. "Gi", available = gib .. "Gi" } } }
  end
  o.n = id
  o.object = { metadata = { name = "n", annotations = {
    ["node.koordinator.sh/cpu-topology"] = kube.encode { detail = detail },
    ["kubelet.koordinator.sh/cpu-manager-policy"] = maybe(20, function()
      return kube.encode(kube.object { policy = "static", reservedCPUs = maybe(50, pick, { "0", "0-1" }),
        options = maybe(40, function() return { ["full-pcpus-only"] = "true" } end) })
    end),
    ["node.koordinator.sh/reservation"] = maybe(10, pick, { '{"reservedCPUs":"1"}' }),
  } }, zones = zones,
    topologyPolicies = maybe(15, function()
      return { pick { "BestEffort", "Restricted", "SingleNUMANodePodLevel", "None" } }
    end) }
  return o
end

local function bind_spec()
  return kube.encode(kube.object {
    requiredCPUBindPolicy = maybe(30, pick, { "FullPCPUs", "SpreadByPCPUs", "Default" }),
    preferredCPUBindPolicy = maybe(60, pick, { "FullPCPUs", "SpreadByPCPUs", "Default", "ConstrainedBurst" }),
    preferredCPUExclusivePolicy = maybe(40, pick, { "PCPULevel", "NUMANodeLevel", "None" }) })
end

-- The share of a pod: processors of its own, or parts of NUMA nodes.
local function numa_pod(i, o, free)
  local status, wanted = {}, { cpu = "1", memory = "1Gi" }
  if chance(50) then
    local list = {}
    for _ = 1, math.min(random(1, 4), #free) do list[#list + 1] = table.remove(free, random(#free)) end
    table.sort(list)
    status.cpuset = some(list) and table.concat(list, ",")
    wanted.cpu = tostring(#list)
  end
  if chance(40) then
    status.numaNodeResources = { { node = random(0, o.nodes - 1),
      resources = { cpu = wanted.cpu, memory = "1Gi" } } }
  end
  return { metadata = { name = "p" .. i, namespace = "ns", uid = "p" .. i, annotations = {
      ["scheduling.koordinator.sh/resource-status"] = some(status) and kube.encode(kube.object(status)),
      ["scheduling.koordinator.sh/resource-spec"] = maybe(30, bind_spec) },
      labels = { ["koordinator.sh/qosClass"] = status.cpuset and "LSR" or "LS" } },
    spec = { nodeName = "n", priority = 9000,
      containers = { { name = "c", resources = { requests = wanted, limits = wanted } } } },
    status = { phase = "Running" } }
end

local function numa_input()
  local o, free = machine(), {}
  for id = 0, o.n - 1 do free[#free + 1] = id end
  local total = { cpu = tostring(o.n), memory = "64Gi", pods = "110" }
  local input = { node = { metadata = { name = "n",
      labels = some {
        ["node.koordinator.sh/numa-topology-policy"] = maybe(50, pick, NUMA_POLICIES),
        ["node.koordinator.sh/cpu-bind-policy"] = maybe(20, pick,
          { "FullPCPUsOnly", "SpreadByPCPUs", "None" }),
        ["node.koordinator.sh/numa-allocate-strategy"] = maybe(30, pick,
          { "MostAllocated", "LeastAllocated" }),
      } },
      status = { capacity = total, allocatable = total } },
    topology = maybe(97, function() return o.object end), pods = {} }
  for i = 1, random(0, 4) do input.pods[i] = numa_pod(i, o, free) end
  local wanted = { cpu = pick { "1", "2", "2", "3", "4", "6", "500m", "1500m" },
    memory = random(1, 12) .. "Gi" }
  input.pod = { metadata = { name = "new", namespace = "ns", uid = "new",
      labels = { ["koordinator.sh/qosClass"] = pick { "LSE", "LSR", "LSR", "LS" } },
      annotations = some {
        ["scheduling.koordinator.sh/resource-spec"] = maybe(50, bind_spec),
        ["scheduling.koordinator.sh/numa-topology-spec"] = maybe(25, function()
          return kube.encode(kube.object { numaTopologyPolicy = maybe(80, pick, NUMA_POLICIES),
            singleNUMANodeExclusive = maybe(30, pick, { "Required", "Preferred" }) })
        end),
      } },
    spec = { priority = pick { 9000, 9999, 9000, 5000 },
      containers = { { name = "c", resources = { requests = wanted, limits = wanted } } } } }
  return input
end

-- ---------------------------------------------------------------- DeviceShare

local GPU_AMOUNTS = { ["koordinator.sh/gpu-core"] = "100", ["koordinator.sh/gpu-memory-ratio"] = "100",
  ["koordinator.sh/gpu-memory"] = "16Gi" }

local function virtual_functions(minor)
  local groups = {}
  for g = 1, random(1, 2) do
    local vfs = {}
    for i = 1, random(1, 3) do vfs[i] = { minor = i - 1, busID = ("0000:%02d:%d.%d"):format(minor, g, i) } end
    groups[g] = { labels = { kind = pick { "fast", "slow" } }, vfs = vfs }
  end
  return groups
end

local function device_of(type, minor, place)
  return { type = type, minor = minor, health = not chance(5), id = type .. minor,
    labels = maybe(60, function() return { kind = pick { "a", "b" } } end), topology = place,
    resources = type == "gpu" and GPU_AMOUNTS or { ["koordinator.sh/" .. type] = "100" },
    vfGroups = type == "rdma" and maybe(60, virtual_functions, minor) or nil }
end

local function gpu_partitions(n)
  local out = {}
  for _, size in ipairs { 1, 2, 4, 8 } do
    local list = {}
    for from = 0, n - size, size do
      local minors = {}
      for i = 1, size do minors[i] = from + i - 1 end
      list[#list + 1] = { minors = minors, allocationScore = random(1, 2),
        ringBusBandwidth = maybe(60, pick, { "100Gi", "200Gi" }) }
    end
    if #list > 0 and chance(85) then out[tostring(size)] = list end
  end
  return kube.encode(out)
end

-- The devices of a machine of so many NUMA nodes: those of one PCIe switch are in one NUMA node.
local function device_object(n_nodes)
  local list, n, switches = {}, pick { 1, 2, 4, 4, 8 }, n_nodes * random(1, 2)
  local placed = chance(85)
  local function place(i, of)
    local switch = i * switches // of
    return placed and { socketID = 0, nodeID = switch * n_nodes // switches, pcieID = "s" .. switch } or nil
  end
  for i = 0, n - 1 do list[#list + 1] = device_of("gpu", i, place(i, n)) end
  local cards = pick { 0, 1, 2, 4 }
  for i = 0, cards - 1 do list[#list + 1] = device_of("rdma", i, place(i, cards)) end
  if chance(20) then list[#list + 1] = device_of("fpga", 0, place(0, 1)) end
  return { metadata = { name = "n", annotations = maybe(30, function()
      return { ["scheduling.koordinator.sh/gpu-partitions"] = gpu_partitions(n) }
    end), labels = maybe(20, function()
      return { ["node.koordinator.sh/gpu-partition-policy"] = pick { "Honor", "Prefer" } }
    end) }, spec = { devices = list } }
end

-- A pod with a part of some devices, as the annotation says it.
local function device_pod(i, object)
  local has = {}
  for _, device in ipairs(object.spec.devices) do
    if chance(20) then
      local percent, amounts = pick { 30, 50, 100 }, {}
      for name in pairs(device.resources) do
        amounts[name] = name:find "memory$" and ("%dMi"):format(16384 * percent // 100) or tostring(percent)
      end
      local group = device.vfGroups and pick(device.vfGroups)
      has[device.type] = has[device.type] or {}
      table.insert(has[device.type], { minor = device.minor, resources = amounts,
        extension = group and { vfs = { pick(group.vfs) } } })
    end
  end
  return { metadata = { name = "p" .. i, namespace = "ns", uid = "p" .. i, annotations = {
      ["scheduling.koordinator.sh/device-allocated"] = kube.encode(kube.object(has)) } },
    spec = { nodeName = "n", containers = { { name = "c" } } }, status = { phase = "Running" } }
end

local function device_requests()
  local out = { cpu = "1", memory = "1Gi" }
  if chance(85) then
    local n = pick { 100, 100, 200, 400, 800 }
    local share = pick { 20, 50 }
    local wished = pick {
      { ["koordinator.sh/gpu"] = n }, { ["nvidia.com/gpu"] = n // 100 },
      { ["koordinator.sh/gpu-core"] = n, ["koordinator.sh/gpu-memory-ratio"] = n },
      { ["koordinator.sh/gpu-core"] = share, ["koordinator.sh/gpu-memory-ratio"] = share },
      { ["koordinator.sh/gpu-memory"] = "4Gi" },
      { ["koordinator.sh/gpu.shared"] = 2, ["koordinator.sh/gpu-memory-ratio"] = 2 * share } }
    for name, many in pairs(wished) do out[name] = tostring(many) end
  end
  if chance(60) then out["koordinator.sh/rdma"] = pick { "1", "1", "2", "50", "100", "200" } end
  if chance(10) then out["koordinator.sh/fpga"] = pick { "50", "100" } end
  return out
end

local function device_hints()
  local function selector(value) return { matchLabels = { kind = value } } end
  return kube.encode(kube.object {
    gpu = maybe(60, function()
      return kube.object { selector = maybe(30, selector, "a"),
        requiredTopologyScope = maybe(60, pick, { "PCIe", "NUMANode", "Node", "Device" }) }
    end),
    rdma = maybe(70, function()
      return kube.object { selector = maybe(30, selector, "a"), vfSelector = maybe(50, selector, "fast"),
        allocateStrategy = maybe(60, pick, { "ApplyForAll", "RequestsAsCount" }),
        exclusivePolicy = maybe(40, pick, { "DeviceLevel", "PCIeLevel" }) }
    end) })
end

local function device_input()
  local o = machine()
  local object = device_object(o.nodes)
  local total = { cpu = "64", memory = "64Gi", pods = "110" }
  local input = { most = chance(30), device = object, topology = o.object, pods = {},
    node = { metadata = { name = "n", labels = some {
        ["node.koordinator.sh/numa-topology-policy"] = maybe(60, pick, NUMA_POLICIES),
        ["node.koordinator.sh/gpu-model"] = maybe(20, pick, { "H100", "A100" }),
        ["node.koordinator.sh/gpu-partition-policy"] = maybe(20, pick, { "Honor", "Prefer" }) } },
      status = { capacity = total, allocatable = total } } }
  o.object.metadata.annotations, o.object.topologyPolicies = {}, nil
  for i = 1, random(0, 3) do input.pods[i] = device_pod(i, object) end
  local wanted = device_requests()
  input.pod = { metadata = { name = "new", namespace = "ns", uid = "new", annotations = some {
      ["scheduling.koordinator.sh/device-allocate-hint"] = maybe(40, device_hints),
      ["scheduling.koordinator.sh/device-joint-allocate"] = maybe(40, function()
        return kube.encode(kube.object { deviceTypes = { "gpu", "rdma" },
          requiredScope = maybe(50, pick, { "SamePCIe" }) })
      end),
      ["scheduling.koordinator.sh/gpu-partition-spec"] = maybe(20, function()
        return kube.encode(kube.object { allocatePolicy = maybe(60, pick, { "Restricted", "BestEffort" }),
          ringBusBandwidth = maybe(40, pick, { "50Gi", "150Gi", "300Gi" }) })
      end) } },
    spec = { containers = { { name = "c", resources = { requests = wanted, limits = wanted } } } } }
  return input
end

-- ---------------------------------------------------------------- the comparison

-- The answers of the Go functions, in order.
local function ask(calc, inputs)
  local lines, answers = {}, {}
  for i, input in ipairs(inputs) do
    local sent = {} -- an empty list would be encoded as an object
    for name, v in pairs(input) do
      if type(v) ~= "table" or next(v) ~= nil then sent[name] = v end
    end
    lines[i] = kube.encode { calc = calc, input = sent }
  end
  local path = process.write(process.tmpname ".jsonl", table.concat(lines, "\n") .. "\n")
  local out, code = process.run(("%s <%s"):format(GO, process.quote(path)))
  assert.equal(0, code, out)
  for line in out:gmatch "[^\n]+" do answers[#answers + 1] = kube.decode(line) end
  assert.equal(#inputs, #answers)
  return answers
end

local function expected(input, answer)
  local plain = kube.copy(answer)
  local s = input.strategy or {}
  -- The original's text names the wrong one of two sums here (docs/koordinator.md); the number is that of the
  -- right one.
  if s.batchMemoryThresholdPercent and s.memoryCalculatePolicy ~= "request" and plain.messages then
    plain.messages["kubernetes.io/batch-memory"] = nil
  end
  if plain.error then
    assert.falsy(plain.error:find("input: ", 1, true), plain.error)
    return { error = true }
  end
  return plain
end

-- The number of repetitions of a case with a different answer: where the original depends on the order of a
-- Go map, it has several answers.
local LOOKS = 100

local function differ(calc, make, by_chance)
  local inputs = {}
  for seed = 1, CASES do
    math.randomseed(seed)
    inputs[seed] = make()
  end
  local function wrong_of(list, answers, say)
    for i, answer in ipairs(answers) do
      local said = fixtures.calcs[calc](list[i], expected(list[i], answer))
      if said then say(i, said) end
    end
  end
  local seeds, again, wrong, most = {}, {}, {}, 10
  local function note(seed, said)
    if #wrong < most then wrong[#wrong + 1] = ("seed %d: %s"):format(seed, said) end
  end
  wrong_of(inputs, ask(calc, inputs), function(seed, said)
    if not by_chance then return note(seed, said) end
    inputs[seed].looks = LOOKS
    seeds[#seeds + 1], again[#again + 1] = seed, inputs[seed]
  end)
  if #again > 0 then
    wrong_of(again, ask(calc, again), function(i, said) note(seeds[i], said) end)
  end
  assert.equal("", table.concat(wrong, "\n"))
end

-- Whether the program was built from these sources.
local function knows(calc)
  local out = process.run(("echo '{\"calc\":\"%s\"}' | %s"):format(calc, GO))
  return not out:find("no such calculation", 1, true)
end

describe("our policies agree with Koordinator's own functions", function()
  if not (GO and knows "devices") then
    local why = "Koordinator's functions are built by Go, of these sources: `make versions`"
    if os.getenv "CI" == "true" then
      it("from its module", function() error(why, 0) end)
    else
      pending(why)
    end
    return
  end

  it("for batch resources", function() differ("batchresource", node_input) end)
  it("for mid resources", function() differ("midresource", node_input) end)
  it("for a tree of quotas", function() differ("elastic_quota", quota_input) end)
  it("for LoadAwareScheduling's filter and score", function() differ("loadaware", load_input) end)
  it("for passes of LowNodeLoad", function() differ("low_node_load_passes", balance_input, true) end)
  it("for NodeNUMAResource's NUMA nodes, processors and score", function() differ("numa", numa_input) end)
  it("for DeviceShare's devices, on NUMA nodes, too", function() differ("devices", device_input) end)
  it("for new pods and colocation profiles", function() differ("pod_webhook", profile_input) end)
end)
