-- batchresource.lua - how much of a node batch pods may have on top of what the others were promised:
--   batch = capacity - safety margin - system - what high-priority pods use (or asked for, by policy)
-- for the whole node, and for each NUMA zone where the node's topology is known.
-- High priority is every pod that is not koord-batch or koord-free.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local pods = require "pods"
local nodemetric = require "metric"
local reservation = require "reservation"
local colocation = require "colocation"

local dig = fields.dig

local M = {}

M.CPU, M.MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
M.NAMES = { M.CPU, M.MEMORY }

local NOTHING = amounts.new() -- constant
local DEGRADED = "degrade node resource because of abnormal nodeMetric, reason: degradedByBatchResource"

local function percent_left(strategy, field) return (100 - colocation.setting(strategy, field)) / 100.0 end

local function margin(strategy, capacity)
  return amounts.scale(capacity, percent_left(strategy, "cpuReclaimThresholdPercent"),
    percent_left(strategy, "memoryReclaimThresholdPercent"))
end

-- What high-priority pods ask for, use, and the larger of the two, as three sums.
local function sums() return { asked = amounts.new(), used = amounts.new(), most = amounts.new() } end

-- An LSE pod owns its processors: others may not use what it leaves idle. (sums_of_pods repeats this rule.)
local function used_by(facts, asked, used)
  if facts.qos == "LSE" then return amounts.new(asked.cpu, used.memory) end
  return used
end

local function count(sum, asked, used, most)
  amounts.accumulate(sum.asked, asked)
  amounts.accumulate(sum.used, used)
  amounts.accumulate(sum.most, most)
end

-- What counts, for the node and its zones alike, by its place: every active high-priority pod in the list of
-- pods (at), with its facts (pods.facts) and its place in the reports, or false; and each reported pod of
-- high priority that is not among the active ones, whatever became of it (dangling).
local function join(reports, known)
  local load = { facts = {}, reported = {}, at = {}, dangling = {} }
  local seen, n = {}, 0
  for i, facts in ipairs(known) do
    if facts.active then
      local at = reports.at[facts.key] or false
      if at then seen[at] = true end
      if not pods.low_priority(facts.class) then
        n = n + 1
        load.at[n], load.facts[n], load.reported[n] = i, facts, at
      end
    end
  end
  for _, at in pairs(reports.at) do -- sums of integers: any order gives the same
    if not seen[at] and not pods.low_priority(reports.class[at]) then table.insert(load.dangling, at) end
  end
  return load
end

-- The load of a node. As long as neither its pods nor the reported ones change, they are joined once.
local function read_load(list, metric, known, place)
  local reports = nodemetric.reports(metric, place)
  if reports.joined_to ~= known then reports.joined, reports.joined_to = join(reports, known), known end
  local load = reports.joined
  return { list = list, facts = load.facts, reported = load.reported, at = load.at, dangling = load.dangling,
    cpu = reports.cpu, memory = reports.memory }
end

local function reported(load, at) return { cpu = load.cpu[at], memory = load.memory[at] } end

-- The arithmetic of one place, node or zone. `system` is what the system uses or is owed, `margin` what is
-- never given away.
local cpu_policies = {
  usage = { "systemUsageOrNodeReserved", "system", "podHPUsed", "used" },
  maxUsageRequest = { "systemUsageOrNodeReserved", "system", "podHPMaxUsedRequest", "most" },
}
local memory_policies = {
  usage = { "systemUsage", "system", "podHPUsed", "used" },
  request = { "nodeReserved", "reserved", "podHPRequest", "asked" },
  maxUsageRequest = { "systemUsage", "system", "podHPMaxUsedRequest", "most" },
}

-- What is left, and a function that says how.
local function by_policy(policies, name, threshold, unit, place, scale, shown, label)
  local policy = policies[name] or policies.usage
  local capacity, safe, kept, taken = place.capacity[unit], place.margin[unit], place[policy[2]][unit],
    place.sum[policy[4]][unit]
  local left = math.max(capacity - safe - kept - taken, 0)
  if threshold then left = math.min(left, scale(capacity, threshold / 100.0)) end
  return left, function()
    local formula = ("nodeCapacity:%d - nodeSafetyMargin:%d - %s:%d - %s:%d"):format(
      shown(capacity), shown(safe), policy[1], shown(kept), policy[3], shown(taken))
    if threshold then
      formula = ("min(nodeCapacity:%d * thresholdRatio:%s, %s)"):format(shown(capacity),
        amounts.ratio(threshold / 100.0), formula)
    end
    return ("%s:%d = %s"):format(label, shown(left), formula)
  end
end

local function milli(n) return n end

-- Returns the amounts left for batch, and for each a function that returns a line with the sum.
function M.left(strategy, place)
  place.system = amounts.max(place.system, place.reserved)
  local cpu, cpu_message = by_policy(cpu_policies, strategy.cpuCalculatePolicy,
    strategy.batchCPUThresholdPercent,
    "cpu", place, amounts.scale_cpu, milli, "batchAllocatable[CPU(Milli-Core)]")
  local memory, memory_message = by_policy(memory_policies, strategy.memoryCalculatePolicy,
    strategy.batchMemoryThresholdPercent,
    "memory", place, amounts.scale_memory, amounts.giga, "batchAllocatable[Mem(GB)]")
  return amounts.new(cpu, memory), cpu_message, memory_message
end

-- Of a node's pods. Koordinator leaves a pod without a report out of `most` here, though not in the zones.
local function sums_of_pods(load)
  local sum, max = sums(), math.max
  local asked, used, most = sum.asked, sum.used, sum.most
  local all_cpu, all_memory, reports = load.cpu, load.memory, load.reported
  local asked_cpu, asked_memory, used_cpu, used_memory, most_cpu, most_memory = 0, 0, 0, 0, 0, 0
  for k, facts in ipairs(load.facts) do
    local a, at = facts.request, reports[k]
    local cpu, memory = a.cpu, a.memory
    asked_cpu, asked_memory = asked_cpu + cpu, asked_memory + memory
    if at then
      local u = all_cpu[at]
      most_cpu, most_memory = most_cpu + max(cpu, u), most_memory + max(memory, all_memory[at])
      if facts.qos ~= "LSE" then cpu = u end
      memory = all_memory[at]
    end
    used_cpu, used_memory = used_cpu + cpu, used_memory + memory
  end
  asked.cpu, asked.memory = asked_cpu, asked_memory
  used.cpu, used.memory = used_cpu, used_memory
  most.cpu, most.memory = most_cpu, most_memory
  return sum
end

local function on_node(strategy, node, load, metric)
  local sum = sums_of_pods(load)
  for _, at in ipairs(load.dangling) do
    local used = reported(load, at)
    count(sum, NOTHING, used, used)
  end
  local capacity = amounts.of(dig(node, "status", "capacity"))
  return M.left(strategy, {
    capacity = capacity,
    margin = margin(strategy, capacity),
    reserved = reservation.of(node),
    system = nodemetric.system_used(metric, "koord-batch"),
    sum = sum,
  })
end

-- The zones of a NodeResourceTopology, or nil while none of them carries cpu or memory.
local function zone_capacities(topology)
  local capacities, known = {}, false
  for i, zone in ipairs(dig(topology, "zones") or {}) do
    local list = {}
    for _, info in ipairs(zone.resources or {}) do
      if info.name == "cpu" or info.name == "memory" then
        list[info.name] = info.allocatable
        known = true
      end
    end
    capacities[i] = { name = zone.name, capacity = amounts.of(list) }
  end
  return known and capacities or nil
end

-- Nobody measures usage per zone: the system, reservations and pods bound to no zone are spread evenly.
local function on_zones(strategy, node, load, metric, topology)
  local zones = zone_capacities(topology)
  if not zones then return nil end
  local n = #zones
  local reserved = amounts.share(reservation.of(node), n)
  local system = amounts.share(nodemetric.system_used(metric, "koord-batch"), n)
  for _, zone in ipairs(zones) do zone.sum = sums() end
  for k, facts in ipairs(load.facts) do
    local part = pods.spread(load.list[load.at[k]], n)
    local used = load.reported[k] and reported(load, load.reported[k])
    for i, zone in ipairs(zones) do
      local a, u = part(facts.request, i - 1), used and part(used, i - 1)
      if u then
        count(zone.sum, a, used_by(facts, a, u), amounts.max(a, u))
      else
        count(zone.sum, a, a, a)
      end
    end
  end
  for _, at in ipairs(load.dangling) do
    local part = amounts.share(reported(load, at), n)
    for _, zone in ipairs(zones) do count(zone.sum, NOTHING, part, part) end
  end
  local out = {}
  for _, zone in ipairs(zones) do
    local left = M.left(strategy, {
      capacity = zone.capacity, margin = margin(strategy, zone.capacity), reserved = reserved,
      system = system, sum = zone.sum,
    })
    out[zone.name] = { [M.CPU] = left.cpu, [M.MEMORY] = kube.milli(left.memory) }
  end
  return out
end

-- Withdraws both resources.
function M.reset(message)
  local function say() return message end
  return {
    resets = { [M.CPU] = true, [M.MEMORY] = true },
    messages = { [M.CPU] = say, [M.MEMORY] = say },
  }
end

-- input: strategy, node, pods (of this node), nodeMetric, nodeResourceTopology (may be absent), now
-- (seconds), facts (pods.facts; may be absent), place (the node's name, under which facts are remembered; may
-- be absent). Returns { resources, zones, messages } or { resets, messages }, where a message is a function
-- that returns the text: few are read. nil and why when something essential is missing.
function M.calculate(input)
  local strategy, node, list, metric = input.strategy, input.node, input.pods, input.nodeMetric
  if strategy == nil or node == nil or list == nil or metric == nil then
    return nil, "batch resources need a strategy, a node, its pods and a NodeMetric"
  end
  if nodemetric.stale(metric, colocation.setting(strategy, "degradeTimeMinutes"), input.now) then
    return M.reset(DEGRADED)
  end
  local load = read_load(list, metric, input.facts or pods.facts(list), input.place)
  local left, cpu_message, memory_message = on_node(strategy, node, load, metric)
  return {
    resources = { [M.CPU] = left.cpu, [M.MEMORY] = amounts.bytes(left.memory) },
    zones = on_zones(strategy, node, load, metric, input.nodeResourceTopology),
    messages = { [M.CPU] = cpu_message, [M.MEMORY] = memory_message },
  }
end

return M
