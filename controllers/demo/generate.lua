-- generate.lua - writes the demo cluster: lua5.4 controllers/demo/generate.lua [DIR]
--
-- The same numbers come out every time. Files are numbered in the order in which they must be created.
-- Nodes of six pools run a shop, its databases and agents; analytics and training fill what those leave.

local dir = arg and arg[1] or "controllers/demo"

local NOW = "2026-01-01T00:00:00Z" -- the demo's agents (cluster.touch) write the present time instead

-- ---------------------------------------------------------------- random numbers, the same each time

local state = 20260101
local function random(from, to)
  state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
  return from + (state >> 20) % (to - from + 1)
end
local function part(n, from, to) return n * random(from, to) // 100 end -- between `from` and `to` percent

-- ---------------------------------------------------------------- YAML, one short document per object

local files = {}

local function quoted(text) return "'" .. text:gsub("'", "''") .. "'" end

local function scalar(v)
  if type(v) ~= "string" then return tostring(v) end
  if v:find "^[%a][%w%-%._/]*$" and v ~= "true" and v ~= "false" and v ~= "null" then return v end
  return quoted(v)
end

-- Tables are written in one line; `pairs` of a list keep their order, keys of an object are sorted unless
-- it has `_order`.
local function flow(v)
  if type(v) ~= "table" then return scalar(v) end
  local parts = {}
  if #v > 0 then
    for i, item in ipairs(v) do parts[i] = flow(item) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  local names = {}
  for name in pairs(v) do if name ~= "_order" then names[#names + 1] = name end end
  local rank = {}
  for i, name in ipairs(v._order or {}) do rank[name] = i end
  table.sort(names, function(a, b)
    local ra, rb = rank[a] or 99, rank[b] or 99
    if ra ~= rb then return ra < rb end
    return a < b
  end)
  for i, name in ipairs(names) do parts[i] = scalar(name) .. ": " .. flow(v[name]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function write(file, ...)
  files[file] = files[file] or { "# Written by controllers/demo/generate.lua." }
  local lines = files[file]
  for _, line in ipairs { ... } do lines[#lines + 1] = line end
end

local function meta(t)
  t._order = { "name", "namespace", "labels", "annotations" }
  return flow(t)
end

local function cores(milli) return milli % 1000 == 0 and tostring(milli // 1000) or milli .. "m" end
local function mib(n) return n % 1024 == 0 and n // 1024 .. "Gi" or n .. "Mi" end
local function amounts(cpu, memory)
  return { cpu = cores(cpu), memory = mib(memory), _order = { "cpu", "memory" } }
end

-- ---------------------------------------------------------------- namespaces, priorities, configuration

local NAMESPACES = { "koordinator-system", "shop", "core", "platform", "analytics", "training" }
for _, name in ipairs(NAMESPACES) do
  write("10-cluster.yaml", "---", "apiVersion: v1", "kind: Namespace", "metadata: {name: " .. name .. "}")
end

local PRIORITY = { ["koord-prod"] = 9000, ["koord-mid"] = 7000, ["koord-batch"] = 5000,
  ["koord-free"] = 3000 }
for _, name in ipairs { "koord-prod", "koord-mid", "koord-batch", "koord-free" } do
  write("10-cluster.yaml", "---", "apiVersion: scheduling.k8s.io/v1", "kind: PriorityClass",
    "metadata: {name: " .. name .. "}",
    "value: " .. PRIORITY[name])
end

write("15-config.yaml", [[
---
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data:
  colocation-config: |
    {
      "enable": true,
      "cpuReclaimThresholdPercent": 65,
      "memoryReclaimThresholdPercent": 70,
      "degradeTimeMinutes": 15,
      "updateTimeThresholdSeconds": 300,
      "resourceDiffThreshold": 0.02,
      "midCPUThresholdPercent": 40,
      "midMemoryThresholdPercent": 40,
      "midUnallocatedPercent": 20,
      "nodeConfigs": [
        { "name": "highmem", "nodeSelector": { "matchLabels": { "pool": "highmem" } },
          "memoryCalculatePolicy": "request", "batchMemoryThresholdPercent": 50 },
        { "name": "edge", "nodeSelector": { "matchLabels": { "pool": "edge" } },
          "cpuReclaimThresholdPercent": 50, "cpuCalculatePolicy": "maxUsageRequest" },
        { "name": "reserve", "nodeSelector": { "matchLabels": { "pool": "reserve" } }, "enable": false }
      ]
    }
  cpu-normalization-config: |
    {
      "enable": false,
      "ratioModel": {
        "Xeon Platinum 8369B": { "baseRatio": 1.3, "hyperThreadEnabledRatio": 1.1,
                                 "turboEnabledRatio": 1.5, "hyperThreadTurboEnabledRatio": 1.2 },
        "EPYC 9654": { "baseRatio": 1.6, "hyperThreadEnabledRatio": 1.35,
                       "turboEnabledRatio": 1.8, "hyperThreadTurboEnabledRatio": 1.5 }
      },
      "nodeConfigs": [
        { "name": "measured",
          "nodeSelector": { "matchExpressions": [
            { "key": "pool", "operator": "In", "values": ["compute", "turbo"] } ] },
          "enable": true }
      ]
    }
  resource-amplification-config: |
    {
      "enable": false,
      "nodeConfigs": [
        { "name": "turbo", "nodeSelector": { "matchLabels": { "pool": "turbo" } },
          "enable": true, "resourceAmplificationRatio": { "memory": 1.25 } }
      ]
    }]])

-- ---------------------------------------------------------------- nodes

local POOLS = {
  { name = "general", count = 10, cpu = 32, gib = 128 },
  { name = "highmem", count = 4, cpu = 64, gib = 512 },
  { name = "compute", count = 4, cpu = 96, gib = 192, zones = 2, model = "Xeon Platinum 8369B",
    turbo = false },
  { name = "turbo", count = 3, cpu = 128, gib = 384, zones = 2, model = "EPYC 9654", turbo = true },
  { name = "edge", count = 2, cpu = 8, gib = 16 },
  { name = "reserve", count = 1, cpu = 32, gib = 128 },
}

-- What single nodes have in addition to their pool.
local SPECIAL = {
  ["general-02"] = { annotations = { ["node.koordinator.sh/reservation"] = '{"reservedCPUs":"0-3"}' } },
  ["general-03"] = { annotations = {
    ["node.koordinator.sh/reservation"] = '{"resources":{"cpu":"3","memory":"12Gi"}}' } },
  ["general-05"] = { labels = { ["node.koordinator.sh/cpu-reclaim-ratio"] = "0.8",
    ["node.koordinator.sh/memory-reclaim-ratio"] = "0.75" } },
  ["general-06"] = { annotations = { ["node.koordinator.sh/colocation-strategy"] =
    '{"midReclaimMode":"static","midStaticCPUReservedPercent":15,"midStaticMemoryReservedPercent":10}' } },
  ["highmem-02"] = { annotations = {
    ["node.koordinator.sh/thirdPartyAllocations"] = '{"allocations":[{"name":"hadoop-yarn",'
    .. '"priority":"koord-batch","resources":{"kubernetes.io/batch-cpu":"4000",'
    .. '"kubernetes.io/batch-memory":"32Gi"}}]}' } },
  ["compute-04"] = { labels = { ["node.koordinator.sh/cpu-normalization-enabled"] = "false" } },
  ["edge-02"] = { stale = true },
}

local nodes = {}
for _, pool in ipairs(POOLS) do
  for i = 1, pool.count do
    local name = ("%s-%02d"):format(pool.name, i)
    local special = SPECIAL[name] or {}
    local node = {
      name = name, pool = pool, stale = special.stale, pods = {}, cpu = pool.cpu * 1000,
      memory = pool.gib * 1024,
      room_cpu = pool.cpu * 900, room_memory = pool.gib * 900,
    }
    nodes[#nodes + 1] = node
    -- The kubelet keeps a little for itself.
    local allocatable = amounts(node.cpu - 500, node.memory - math.max(512, node.memory // 64))
    local capacity = amounts(node.cpu, node.memory)
    for _, list in ipairs { capacity, allocatable } do
      list.pods = 110
      list["ephemeral-storage"] = "200Gi"
    end
    local labels = { pool = pool.name, ["kubernetes.io/hostname"] = name, ["kubernetes.io/os"] = "linux",
      ["kubernetes.io/arch"] = "amd64" }
    for k, v in pairs(special.labels or {}) do labels[k] = v end
    write("20-nodes.yaml", "---", "apiVersion: v1", "kind: Node",
      "metadata: " .. meta { name = name, labels = labels, annotations = special.annotations },
      "status:", "  capacity: " .. flow(capacity), "  allocatable: " .. flow(allocatable),
      "  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: kubelet is posting ready \z
        status}]")

    if pool.zones then
      local info = ('{"cpuModel":"%s","hyperThreadEnabled":true,"turboEnabled":%s}'):format(pool.model,
        pool.turbo)
      write("25-topologies.yaml", "---", "apiVersion: topology.node.k8s.io/v1alpha1",
        "kind: NodeResourceTopology",
        "metadata: " .. meta { name = name, annotations = { ["node.koordinator.sh/cpu-basic-info"] = info } },
        "topologyPolicies: [None]", "zones:")
      for zone = 0, pool.zones - 1 do
        local cpu, memory = cores(node.cpu // pool.zones), mib(node.memory // pool.zones)
        write("25-topologies.yaml",
          ("- {name: node-%d, type: Node, resources: [{name: cpu, capacity: '%s', allocatable: '%s', \z
          available: '%s'},")
          :format(zone, cpu, cpu, cpu),
            ("    {name: memory, capacity: %s, allocatable: %s, available: %s}]}"):format(memory, memory,
            memory))
      end
    end
  end
end

-- ---------------------------------------------------------------- pods

local CLASS_OF = { LSE = "koord-prod", LSR = "koord-prod", LS = "koord-prod", SYSTEM = "koord-prod",
  BE = "koord-batch" }

-- on: pools where it may run; uses: the percentage of its request that it uses; milli-cores and MiB.
local WORKLOADS = {
  { app = "web", namespace = "shop", qos = "LS", count = 56,
    cpu = 2000, memory = 4096, uses = { 15, 55 }, on = { "general" }, burst = 2 },
  { app = "cart", namespace = "shop", qos = "LS", count = 24,
    cpu = 1500, memory = 3072, uses = { 20, 60 }, on = { "general", "edge" }, burst = 2 },
  { app = "search", namespace = "shop", qos = "LSR", count = 16,
    cpu = 6000, memory = 16384, uses = { 30, 60 }, on = { "compute", "turbo" } },
  { app = "payments", namespace = "shop", qos = "LS", count = 12,
    cpu = 1000, memory = 2048, uses = { 10, 40 }, on = { "general", "reserve" }, plain = true },
  { app = "orders-db", namespace = "core", qos = "LSE", count = 6,
    cpu = 8000, memory = 32768, uses = { 25, 60 }, on = { "compute", "highmem" }, pinned = true },
  { app = "cache", namespace = "core", qos = "LSR", count = 10,
    cpu = 4000, memory = 49152, uses = { 40, 80 }, on = { "highmem" } },
  { app = "queue", namespace = "core", qos = "LS", count = 9,
    cpu = 2000, memory = 8192, uses = { 25, 60 }, on = { "general", "turbo" }, burst = 2, sidecar = true },
  { app = "node-agent", namespace = "platform", qos = "SYSTEM", each_node = true,
    cpu = 250, memory = 512, uses = { 30, 90 } },
  { app = "log-shipper", namespace = "platform", qos = "LS", each_node = true,
    cpu = 100, memory = 256, uses = { 40, 90 }, plain = true },
  { app = "report", namespace = "analytics", qos = "BE", count = 64,
    cpu = 2000, memory = 4096, uses = { 40, 100 }, on = { "general", "highmem", "turbo" } },
  { app = "etl", namespace = "analytics", qos = "BE", count = 40,
    cpu = 4000, memory = 8192, uses = { 50, 100 }, on = { "compute", "turbo", "highmem" } },
  { app = "scan", namespace = "analytics", qos = "BE", count = 10,
    cpu = 0, memory = 0, uses = { 0, 0 }, on = { "general", "edge" }, class = "koord-free" },
  { app = "trainer", namespace = "training", qos = "LS", count = 12,
    cpu = 4000, memory = 16384, uses = { 60, 95 }, on = { "turbo", "compute" }, class = "koord-mid" },
  { app = "notebook", namespace = "training", qos = "BE", count = 18,
    cpu = 1000, memory = 4096, uses = { 5, 60 }, on = { "general", "turbo" }, class = "koord-mid" },
  { app = "migrate", namespace = "core", qos = "LS", count = 12,
    cpu = 1000, memory = 2048, uses = { 0, 0 }, on = { "general", "highmem" }, phase = "Succeeded" },
  { app = "rollout", namespace = "shop", qos = "LS", count = 8,
    cpu = 1500, memory = 3072, uses = { 0, 0 }, on = { "general" }, phase = "Pending" },
  { app = "backlog", namespace = "analytics", qos = "BE", count = 8,
    cpu = 8000, memory = 16384, uses = { 0, 0 }, phase = "Pending", nowhere = true },
}

-- Requests move to the extended resources of their class, as Koordinator's webhook would have moved them.
local PREFIX = { ["koord-mid"] = "kubernetes.io/mid-", ["koord-batch"] = "kubernetes.io/batch-" }

local function resources(class, cpu, memory, burst)
  if cpu == 0 then return nil end
  local prefix = PREFIX[class]
  if prefix then
    local list = { [prefix .. "cpu"] = cpu, [prefix .. "memory"] = mib(memory) }
    return { requests = list, limits = list }
  end
  return { _order = { "requests", "limits" }, requests = amounts(cpu, memory),
    limits = amounts(cpu * (burst or 1), memory * (burst or 1)) }
end

local function candidates(w)
  local list = {}
  for _, pool in ipairs(w.on or {}) do
    for _, node in ipairs(nodes) do
      if node.pool.name == pool then list[#list + 1] = node end
    end
  end
  return w.each_node and nodes or list
end

local function emit(w, i, node)
  local name = w.each_node and ("%s-%s"):format(w.app, node.name) or ("%s-%02d"):format(w.app, i)
  local class = w.class or CLASS_OF[w.qos]
  local pod = { name = name, namespace = w.namespace, class = class, qos = w.qos }
  local labels, annotations = { app = w.app }, nil
  -- Some workloads have no QoS label: Koordinator derives it from Kubernetes' QoS class.
  if not w.plain then labels["koordinator.sh/qosClass"] = w.qos end
  if w.pinned and node.pool.zones then
    annotations = { ["scheduling.koordinator.sh/resource-status"] = (
      '{"numaNodeResources":[{"node":%d}]}'):format(i % node.pool.zones) }
  end
  local container = { _order = { "name", "image", "resources" }, name = "main",
    image = "registry.example/" .. w.app .. ":1",
    resources = resources(class, w.cpu, w.memory, w.burst) }
  local spec = { _order = { "nodeName", "priorityClassName", "priority", "initContainers", "containers" },
    nodeName = node and node.name, priorityClassName = class, priority = PRIORITY[class],
    containers = { container } }
  if w.sidecar then
    spec.initContainers = { { _order = { "name", "image", "restartPolicy", "resources" }, name = "proxy",
      image = "registry.example/proxy:1",
      restartPolicy = "Always", resources = { requests = amounts(200, 256) } } }
  end
  write("40-pods.yaml", "---", "apiVersion: v1", "kind: Pod",
    "metadata: " .. meta { name = name, namespace = w.namespace, labels = labels, annotations = annotations },
    "spec: " .. flow(spec), "status: {phase: " .. (w.phase or "Running") .. "}")

  if node and not w.phase then
    pod.cpu, pod.memory = part(w.cpu, w.uses[1], w.uses[2]), part(w.memory, w.uses[1], w.uses[2])
    if w.cpu == 0 then pod.cpu, pod.memory = random(50, 400), random(100, 800) end
    node.pods[#node.pods + 1] = pod
  end
end

for _, w in ipairs(WORKLOADS) do
  local where = candidates(w)
  if w.each_node then
    for i, node in ipairs(where) do emit(w, i, node) end
  end
  local at = 0
  for i = 1, w.count or 0 do
    local node
    if not w.nowhere then
      -- Round robin over the nodes with enough room for its request; extended resources need no room.
      local extended = PREFIX[w.class or CLASS_OF[w.qos]] ~= nil
      for _ = 1, #where do
        at = at % #where + 1
        node = where[at]
        if extended or node.room_cpu >= w.cpu and node.room_memory >= w.memory then break end
        node = nil
      end
      assert(node, w.app .. " does not fit its pools")
      if not extended then
        node.room_cpu, node.room_memory = node.room_cpu - w.cpu, node.room_memory - w.memory
      end
    end
    emit(w, i, node)
  end
end

-- ---------------------------------------------------------------- what the agents measured

for _, node in ipairs(nodes) do
  local system_cpu, system_memory = node.cpu * random(2, 5) // 100, node.memory * random(2, 5) // 100
  local cpu, memory, prod_idle_cpu, prod_idle_memory = system_cpu, system_memory, 0, 0
  local lines = {}
  for _, pod in ipairs(node.pods) do
    cpu, memory = cpu + pod.cpu, memory + pod.memory
    if pod.class == "koord-prod" then
      prod_idle_cpu, prod_idle_memory = prod_idle_cpu + pod.cpu, prod_idle_memory + pod.memory
    end
    lines[#lines + 1] = "  - " .. flow { _order = { "namespace", "name", "priority", "qos", "podUsage" },
      namespace = pod.namespace,
      name = pod.name, priority = pod.class, qos = pod.qos,
      podUsage = { resources = amounts(pod.cpu, pod.memory) } }
  end
  local file = "30-nodemetrics.yaml"
  write(file, "---", "apiVersion: slo.koordinator.sh/v1alpha1", "kind: NodeMetric",
    "metadata: " .. meta { name = node.name, labels = node.stale and { ["demo/agent"] = "silent" } or nil },
    "spec: {metricCollectPolicy: {aggregateDurationSeconds: 300, reportIntervalSeconds: 60}}",
    "status:", "  updateTime: '" .. NOW .. "'", "  nodeMetric:",
    "    nodeUsage: " .. flow { resources = amounts(cpu, memory) },
    "    systemUsage: " .. flow { resources = amounts(system_cpu, system_memory) },
    "  prodReclaimableMetric: " .. flow { resource = {
      resources = amounts(prod_idle_cpu // 2, prod_idle_memory // 2) } })
  if node.name == "general-04" then
    write(file, "  hostApplicationMetric: [{name: nginx, priority: koord-prod, qos: LS, usage: {resources: \z
      {cpu: 800m, memory: 1Gi}}}]")
  end
  write(file, "  podsMetric:")
  write(file, table.unpack(lines))
end

for file, lines in pairs(files) do
  local out = assert(io.open(dir .. "/" .. file, "wb"))
  out:write(table.concat(lines, "\n"), "\n")
  out:close()
end
