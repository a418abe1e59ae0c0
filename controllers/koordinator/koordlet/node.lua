-- node.lua - what the agent of a node (koordlet) knows when it decides, as far as the API has it: capacity,
-- reserve and use, and each pod with its use. cpu in milli-cores, memory in bytes.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local nodes = require "lib.nodes"
local pods = require "pods"
local reservation = require "reservation"

local M = {}

local dig = fields.dig

local EVICTABLE = "koordinator.sh/eviction-enabled"
local POLICY = "koordinator.sh/eviction-policy"
local FIRST = "koordinator.sh/eviction-priority"
local SUB_PRIORITY = "koordinator.sh/priority"

-- The resource names of cpu and memory in a class.
local NAMES = {
  ["koord-mid"] = { cpu = "kubernetes.io/mid-cpu", memory = "kubernetes.io/mid-memory" },
  ["koord-batch"] = { cpu = "kubernetes.io/batch-cpu", memory = "kubernetes.io/batch-memory" },
}
M.BATCH_CPU = NAMES["koord-batch"].cpu

-- The class whose pods request a resource.
M.class_of = {}
for class, names in pairs(NAMES) do
  for _, name in pairs(names) do M.class_of[name] = class end
end

local function usage(map) return lists.of(dig(map, "resources")) end

-- The sum of a resource over the containers that run together.
local function running_request(pod, name)
  local sum = 0
  for _, list in ipairs { "containers", "initContainers" } do
    for _, c in ipairs(dig(pod, "spec", list) or {}) do
      local q = dig(c, "resources", "requests", name)
      local counts = list == "containers" or c.restartPolicy == "Always"
      if q ~= nil and counts then sum = sum + math.max(lists.amount(name, q), 0) end
    end
  end
  return sum
end

-- A pod's request for "cpu" or "memory", in the resource of its class: name, amount.
local function asked(pod, class, what)
  local names = NAMES[class]
  if names then return names[what], running_request(pod, names[what]) end
  return what, lists.of(kube.requests(pod))[what] or 0
end

local function integer(text) return text and math.tointeger(tonumber(text)) end

local function read_pod(pod, used)
  local class, priority = pods.class(pod), dig(pod, "spec", "priority")
  local raw = pods.raw_qos(pod)
  if priority == nil or priority == 0 then priority = pods.default_priority[class] or 0 end
  local out = {
    pod = pod, key = pods.key(pod), class = class, qos = raw, priority = priority,
    spec_priority = dig(pod, "spec", "priority"),
    label_priority = integer(fields.label(pod, SUB_PRIORITY)) or priority,
    eviction_priority = integer(fields.annotation(pod, FIRST)) or 0,
    evictable = fields.label(pod, EVICTABLE) == "true",
    be = raw == "BE" or pods.kube_qos(pod) == "BestEffort",
    active = pods.active(pod), used = used, requests = {}, asked = {}, names = {},
    batch_cpu = running_request(pod, M.BATCH_CPU),
  }
  for _, what in ipairs { "cpu", "memory" } do
    local name, n = asked(pod, class, what)
    out.names[what], out.requests[name], out.asked[what] = name, n, n
  end
  return out
end

-- Whether the pod allows a reaction to evict it: its annotation, if present, names the allowed reactions.
function M.allows(pod, reaction)
  local text = fields.annotation(pod.pod, POLICY)
  if text == nil then return true end
  for _, name in ipairs(fields.json(text) or {}) do
    if name == reaction then return true end
  end
  return false
end

local function system_used(node_used, pods_used, hosts_used, reserved)
  return math.max(node_used - pods_used - hosts_used, reserved, 0)
end

-- A host application counts as BE if it says so and runs in the cgroup of BE pods.
local function host_apps(slo, metric)
  local is_be, all, not_be = {}, 0, 0
  for _, app in ipairs(dig(slo, "spec", "hostApplications") or {}) do
    is_be[app.name] = app.qos == "BE" and dig(app, "cgroupPath", "base") == "KubepodsBesteffort"
  end
  for _, app in ipairs(dig(metric, "status", "hostApplicationMetric") or {}) do
    if is_be[app.name] ~= nil then
      local cpu = usage(app.usage).cpu or 0
      all = all + cpu
      if not is_be[app.name] then not_be = not_be + cpu end
    end
  end
  return all, not_be
end

-- input: node, metric (NodeMetric), slo (NodeSLO), pods (those on the node). Returns the input of the
-- reactions, or nil and why: nothing was measured.
function M.read(input)
  local node, metric = input.node, input.metric
  local measured = dig(metric, "status", "nodeMetric", "nodeUsage")
  if measured == nil then return nil, "its NodeMetric has no measurement" end
  local capacity = lists.of(dig(node, "status", "capacity"))
  if (capacity.cpu or 0) <= 0 or (capacity.memory or 0) <= 0 then return nil, "it has no capacity" end
  local used, reports = usage(measured), nodes.used_by_pods(metric)
  local out = {
    name = node.metadata.name, capacity = capacity,
    allocatable = lists.of(dig(node, "status", "allocatable")),
    raw_allocatable = nodes.raw_allocatable(node),
    used = { cpu = used.cpu or 0, memory = used.memory or 0 }, pods = {},
    threshold = fields.copy(dig(input.slo, "spec", "resourceUsedThresholdWithBE")) or {},
    burst = fields.copy(dig(input.slo, "spec", "cpuBurstStrategy")),
  }
  local all, not_be, found = 0, 0, {}
  for i, pod in ipairs(input.pods) do
    local one = read_pod(pod, reports[pods.key(pod)])
    out.pods[i], found[one.key] = one, one
  end
  for key, report in pairs(reports) do
    local cpu = report.cpu or 0
    all = all + cpu
    -- A reported pod that does not exist counts as an important one.
    if not found[key] or not found[key].be then not_be = not_be + cpu end
  end
  local hosts, hosts_not_be = host_apps(input.slo, metric)
  out.reserved = reservation.of(node).cpu
  out.system = system_used(out.used.cpu, all, hosts, out.reserved)
  out.pods_not_be, out.hosts_not_be = not_be, hosts_not_be
  return out
end

return M
