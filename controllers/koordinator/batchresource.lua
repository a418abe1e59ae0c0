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
local remembered = require "remembered"

local dig = fields.dig

local M = {}

M.CPU, M.MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
M.NAMES = { M.CPU, M.MEMORY }

local NOTHING = amounts.new() -- constant
local DEGRADED = "degrade node resource because of abnormal nodeMetric, reason: degradedByBatchResource"

local function percent_left(strategy, field) return (100 - colocation.setting(strategy, field)) / 100.0 end

local function margin_of(strategy, capacity)
  return amounts.scale(capacity, percent_left(strategy, "cpuReclaimThresholdPercent"),
    percent_left(strategy, "memoryReclaimThresholdPercent"))
end

-- The same of a node, made once.
local function margin(input, capacity)
  local own, strategy = remembered.of_node(input.node), input.strategy
  if own.margin_by ~= strategy then
    own.margin_by, own.margin = strategy, margin_of(strategy, capacity)
  end
  return own.margin
end

-- What high-priority pods ask for, use, and the larger of the two, as three sums.
local function sums() return { asked = amounts.new(), used = amounts.new(), most = amounts.new() } end

-- An LSE pod owns its processors: others may not use what it leaves idle. (used_by_pods repeats this rule.)
local function used_by(facts, asked, used)
  if facts.qos == "LSE" then return amounts.new(asked.cpu, used.memory) end
  return used
end

local function count(sum, asked, used, most)
  amounts.accumulate(sum.asked, asked)
  amounts.accumulate(sum.used, used)
  amounts.accumulate(sum.most, most)
end

local function reported(reports, at) return { cpu = reports.cpu[at], memory = reports.memory[at] } end

-- The places of the reports of high priority that belong to none of the active pods, whatever became of
-- theirs. They count, too.
local function dangling(known, reports)
  local taken, out = {}, {}
  for _, facts in ipairs(known) do
    local at = facts.active and reports.at[facts.key]
    if at then taken[at] = true end
  end
  for _, at in pairs(reports.at) do -- for sums of integers: any order gives the same
    if not taken[at] and not pods.low_priority(nodemetric.reported_class(reports, at)) then
      out[#out + 1] = at
    end
  end
  return out
end

-- The policies of each resource: the names of what is subtracted in messages, and its places in `place` and
-- its sums. `system` is what the system uses or is owed, `margin` what is never given away.
local function milli(n) return n end

local RESOURCES = {
  { unit = "cpu", name = M.CPU, label = "batchAllocatable[CPU(Milli-Core)]", shown = milli,
    scale = amounts.scale_cpu, policy = "cpuCalculatePolicy", threshold = "batchCPUThresholdPercent",
    policies = {
      usage = { "systemUsageOrNodeReserved", "system", "podHPUsed", "used" },
      maxUsageRequest = { "systemUsageOrNodeReserved", "system", "podHPMaxUsedRequest", "most" },
    } },
  { unit = "memory", name = M.MEMORY, label = "batchAllocatable[Mem(GB)]", shown = amounts.giga,
    scale = amounts.scale_memory, policy = "memoryCalculatePolicy", threshold = "batchMemoryThresholdPercent",
    policies = {
      usage = { "systemUsage", "system", "podHPUsed", "used" },
      request = { "nodeReserved", "reserved", "podHPRequest", "asked" },
      maxUsageRequest = { "systemUsage", "system", "podHPMaxUsedRequest", "most" },
    } },
}

local OF_CPU, OF_MEMORY = RESOURCES[1], RESOURCES[2]

local function policy_of(r, strategy) return r.policies[strategy[r.policy]] or r.policies.usage end

-- The arithmetic of one resource of one place, node or zone.
local function left_of(r, strategy, place)
  local policy, unit, threshold = policy_of(r, strategy), r.unit, strategy[r.threshold]
  local capacity = place.capacity[unit]
  local left = math.max(
    capacity - place.margin[unit] - place[policy[2]][unit] - place.sum[policy[4]][unit], 0)
  return threshold and math.min(left, r.scale(capacity, threshold / 100.0)) or left
end

-- The same as a line, of what M.left keeps in the place.
local function show(r, place)
  local strategy, left = place.strategy, place.left[r.unit]
  local policy, unit, shown, threshold = policy_of(r, strategy), r.unit, r.shown, strategy[r.threshold]
  local capacity = shown(place.capacity[unit])
  local formula = ("nodeCapacity:%d - nodeSafetyMargin:%d - %s:%d - %s:%d"):format(capacity,
    shown(place.margin[unit]), policy[1], shown(place[policy[2]][unit]), policy[3],
    shown(place.sum[policy[4]][unit]))
  if threshold then
    formula = ("min(nodeCapacity:%d * thresholdRatio:%s, %s)"):format(capacity,
      amounts.ratio(threshold / 100.0), formula)
  end
  return ("%s:%d = %s"):format(r.label, shown(left), formula)
end

-- Returns the amounts left for batch, and for each a function that returns a line with the sum.
function M.left(strategy, place)
  local system, reserved = place.system, place.reserved
  if system.cpu < reserved.cpu or system.memory < reserved.memory then
    place.system = amounts.max(system, reserved)
  end
  place.strategy = strategy
  place.left = amounts.new(left_of(OF_CPU, strategy, place), left_of(OF_MEMORY, strategy, place))
  return place.left, function() return show(OF_CPU, place) end, function() return show(OF_MEMORY, place) end
end

-- What the pods of high priority use, as reported or else as requested; and how many active pods are
-- reported. Only facts of high-priority pods have a request.
local function used_by_pods(known, reports)
  local place_of, all_cpu, all_memory = reports.at, reports.cpu, reports.memory
  local cpu, memory, n_reported = 0, 0, 0
  for i = 1, #known do
    local facts = known[i]
    local request, at = facts.request, facts.active and place_of[facts.key]
    if at then n_reported = n_reported + 1 end
    if at and request then
      cpu = cpu + (facts.qos == "LSE" and request.cpu or all_cpu[at])
      memory = memory + all_memory[at]
    elseif request then
      cpu, memory = cpu + request.cpu, memory + request.memory
    end
  end
  return { cpu = cpu, memory = memory }, n_reported
end

-- What they request, a sum for each list of facts.
local function asked_by_pods(known)
  if not known.asked then
    known.asked = amounts.new()
    for _, facts in ipairs(known) do
      if facts.request then amounts.accumulate(known.asked, facts.request) end
    end
  end
  return known.asked
end

-- The larger of both for each of them. Koordinator leaves a pod without a report out here, though not in the
-- zones.
local function most_of_pods(known, reports)
  local sum = amounts.new()
  for _, facts in ipairs(known) do
    local at = facts.request and reports.at[facts.key]
    if at then amounts.accumulate(sum, amounts.max(facts.request, reported(reports, at))) end
  end
  return sum
end

-- The classes of pods by which reports are counted: high priority, LSE, and those that count for nothing.
local HIGH, EXCLUSIVE, LOW = 1, 2, 3

-- Of a list of facts: the class of each active pod by its key, how many are of high priority and how many of
-- those are LSE, and the processors that LSE pods own.
local function classes_of(known)
  if not known.classes then
    local of, high, exclusive, owned = {}, 0, 0, 0
    for i = 1, #known do
      local facts = known[i]
      local request = facts.request
      if request and facts.qos == "LSE" then
        exclusive, owned = exclusive + 1, owned + request.cpu
      elseif request then
        high = high + 1
      end
      if facts.active then of[facts.key] = request and (facts.qos == "LSE" and EXCLUSIVE or HIGH) or LOW end
    end
    known.classes = { of = of, high = high, exclusive = exclusive, owned = owned }
  end
  return known.classes
end

-- The same as used_by_pods, out of sums, if each report belongs to an active pod and each pod of high
-- priority has one; else nil.
local function used_by_reports(known, metric, place)
  local classes = classes_of(known)
  local counted = nodemetric.count(metric, classes.of, place)
  if not counted or counted:sum(0) > 0 then return nil end
  local n, cpu, memory = counted:sum(HIGH)
  local n_exclusive, _, more = counted:sum(EXCLUSIVE)
  if n ~= classes.high or n_exclusive ~= classes.exclusive then return nil end
  return { cpu = cpu + classes.owned, memory = memory + more }
end

-- The sums for a node, made once for the facts of its pods and a report; `most` and `asked` for policies that
-- ask for them. No two pods have the same key.
local function sums_of(known, metric, place, with_most, with_asked)
  local used = not with_most and used_by_reports(known, metric, place)
  if used then return { used = used, asked = with_asked and asked_by_pods(known) or nil } end
  local reports = nodemetric.reports(metric, place)
  local sum = reports.summed == known and reports.sums or { asked = asked_by_pods(known) }
  local others
  if not sum.used then
    local n_reported
    sum.used, n_reported = used_by_pods(known, reports)
    others = n_reported < reports.n and dangling(known, reports) or NOTHING
    reports.summed, reports.sums, reports.dangling = known, sum, others
    for _, at in ipairs(others) do amounts.accumulate(sum.used, reported(reports, at)) end
  end
  if with_most and not sum.most then
    sum.most = most_of_pods(known, reports)
    for _, at in ipairs(reports.dangling) do amounts.accumulate(sum.most, reported(reports, at)) end
  end
  return sum
end

local function on_node(input, known)
  local strategy = input.strategy
  local reserved, capacity = reservation.of(input.node)
  local by_cpu, by_memory = policy_of(OF_CPU, strategy)[4], policy_of(OF_MEMORY, strategy)[4]
  return M.left(strategy, {
    capacity = capacity,
    margin = margin(input, capacity),
    reserved = reserved,
    system = nodemetric.system_used(input.nodeMetric, "koord-batch", input.place),
    sum = sums_of(known, input.nodeMetric, input.place, by_cpu == "most" or by_memory == "most",
      by_memory == "asked"),
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
local function on_zones(input, known)
  local zones = zone_capacities(input.nodeResourceTopology)
  if not zones then return nil end
  local reports = nodemetric.reports(input.nodeMetric, input.place)
  local strategy, n = input.strategy, #zones
  local reserved = amounts.share(reservation.of(input.node), n)
  local system = amounts.share(nodemetric.system_used(input.nodeMetric, "koord-batch", input.place), n)
  for _, zone in ipairs(zones) do zone.sum = sums() end
  for k, facts in ipairs(known) do
    local part = facts.request and pods.spread(input.pods[k], n)
    local at = facts.request and reports.at[facts.key]
    local used = at and reported(reports, at)
    for i, zone in ipairs(part and zones or {}) do
      local a, u = part(facts.request, i - 1), used and part(used, i - 1)
      if u then
        count(zone.sum, a, used_by(facts, a, u), amounts.max(a, u))
      else
        count(zone.sum, a, a, a)
      end
    end
  end
  for _, at in ipairs(dangling(known, reports)) do
    local part = amounts.share(reported(reports, at), n)
    for _, zone in ipairs(zones) do count(zone.sum, NOTHING, part, part) end
  end
  local out = {}
  for _, zone in ipairs(zones) do
    local left = M.left(strategy, {
      capacity = zone.capacity, margin = margin_of(strategy, zone.capacity), reserved = reserved,
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
  if nodemetric.is_stale(input) then
    return M.reset(DEGRADED)
  end
  local known = input.facts or pods.facts(list)
  local left, cpu_message, memory_message = on_node(input, known)
  return {
    resources = { [M.CPU] = left.cpu, [M.MEMORY] = amounts.bytes(left.memory) },
    zones = on_zones(input, known),
    messages = { [M.CPU] = cpu_message, [M.MEMORY] = memory_message },
  }
end

return M
