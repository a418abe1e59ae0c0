-- midresource.lua - how much of a node mid-priority pods may use: what prod pods requested and are predicted
-- not to need, as far as it is idle now, and a part of what is not requested; or, in static mode, a fixed
-- part of the node.
--   mid = min(min(reclaimable, unused) + unallocated * percent, capacity * threshold)

local fields = require "fields"
local amounts = require "amounts"
local pods = require "pods"
local nodemetric = require "metric"
local reservation = require "reservation"
local colocation = require "colocation"
local remembered = require "remembered"

local dig, max, min = fields.dig, math.max, math.min

local M = {}

M.CPU, M.MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
M.NAMES = { M.CPU, M.MEMORY }

local DEGRADED = "degrade node Mid resource because of abnormal nodeMetric, reason: degradedByMidResource"

local NOTHING = amounts.new() -- constant

local BELOW_PROD = { ["koord-mid"] = true, ["koord-batch"] = true, ["koord-free"] = true }

local function ratio(strategy, field) return colocation.setting(strategy, field) / 100.0 end

local function milli(n) return n end

-- Each resource, how it is shown in a message, and the settings that govern it.
local RESOURCES = {
  { unit = "cpu", name = M.CPU, label = "midAllocatable[CPU(milli-core)]", shown = milli,
    scale = amounts.scale_cpu,
    static = "midStaticCPUReservedPercent", threshold = "midCPUThresholdPercent" },
  { unit = "memory", name = M.MEMORY, label = "midAllocatable[Memory(GB)]", shown = amounts.giga,
    scale = amounts.scale_memory,
    static = "midStaticMemoryReservedPercent", threshold = "midMemoryThresholdPercent" },
}

local OF_CPU, OF_MEMORY = RESOURCES[1], RESOURCES[2]

-- Whether a pod counts as prod: it runs or will run, and has no lower class. facts: see pods.facts.
function M.is_prod(facts) return facts.active and not BELOW_PROD[facts.class] end

local function sum_of_prod(known)
  local is_prod, cpu, memory = M.is_prod, 0, 0
  for i = 1, #known do
    local facts = known[i]
    if is_prod(facts) then cpu, memory = cpu + facts.request.cpu, memory + facts.request.memory end
  end
  return amounts.new(cpu, memory)
end

-- Facts do not change, so one list of them has one sum.
local function prod_requests(known)
  known.prod_requests = known.prod_requests or sum_of_prod(known)
  return known.prod_requests
end

-- What the dynamic mode is made of, into `case`. What is idle now is 0 if the node's usage is not completely
-- known, to be on the safe side.
local function add_terms(case, input, reserved, capacity, known)
  local metric, place = input.nodeMetric, input.place
  local used, reclaimable = nodemetric.idle(metric, place)
  local system, asked = nodemetric.system_used(metric, "koord-mid", place), prod_requests(known)
  case.reclaimable = reclaimable
  case.idle = used and amounts.sub(capacity, used) or NOTHING
  case.unallocated = amounts.new(max(capacity.cpu - max(system.cpu, reserved.cpu) - asked.cpu, 0),
    max(capacity.memory - max(system.memory, reserved.memory) - asked.memory, 0))
end

-- What the strategy says of a node, made once: the most that it may lend, in static mode a fixed part, and
-- which part of what is not requested.
local function bounds(input, capacity)
  local own, strategy = remembered.of_node(input.node), input.strategy
  if own.mid_by ~= strategy then
    local out = { part = ratio(strategy, "midUnallocatedPercent") }
    for _, r in ipairs(RESOURCES) do
      local most = r.scale(capacity[r.unit], ratio(strategy, r.threshold))
      out[r.unit] = { most = most, fixed = min(r.scale(capacity[r.unit], ratio(strategy, r.static)), most) }
    end
    own.mid_by, own.mid = strategy, out
  end
  return own.mid
end

-- What is left of one resource: in static mode, without terms, a fixed part of the node; else the least of
-- what is predicted to be idle and what is idle now, and a part of what is not requested.
local function left_of(r, of, case)
  local unit = r.unit
  local bound, part = of[unit], of.part
  if not case.idle then return bound.fixed end
  local base = max(min(case.reclaimable[unit], case.idle[unit]), 0)
  return min(part == 0 and base or base + r.scale(case.unallocated[unit], part), bound.most)
end

-- The same as a line.
local function show(r, case)
  local unit, shown, strategy = r.unit, r.shown, case.strategy
  local cap, left, limit = shown(case.capacity[unit]), shown(case[unit]),
    amounts.ratio(ratio(strategy, r.threshold))
  if not case.idle then
    return ("%s:%d = min(nodeCapacity:%d * staticReservedPercent:%s, nodeCapacity:%d * thresholdRatio:%s)")
      :format(r.label, left, cap, amounts.ratio(ratio(strategy, r.static)), cap, limit)
  end
  return
    ("%s:%d = min(min(ProdReclaimable:%d, NodeUnused:%d) + Unallocated:%d * midUnallocatedRatio:%s, \z
    NodeCapacity:%d * thresholdRatio:%s)")
    :format(r.label, left, shown(case.reclaimable[unit]), shown(case.idle[unit]),
      shown(case.unallocated[unit]), amounts.ratio(ratio(strategy, "midUnallocatedPercent")), cap, limit)
end

function M.reset(message)
  local function say() return message end
  return {
    resets = { [M.CPU] = true, [M.MEMORY] = true },
    messages = { [M.CPU] = say, [M.MEMORY] = say },
  }
end

-- input: strategy, node, pods (of this node), nodeMetric, now (seconds), facts (pods.facts; may be absent).
-- Results as in batchresource.
function M.calculate(input)
  local strategy, node, list, metric = input.strategy, input.node, input.pods, input.nodeMetric
  if strategy == nil or dig(node, "status", "allocatable") == nil or list == nil or metric == nil then
    return nil, "mid resources need a strategy, a node with allocatable resources, its pods and a NodeMetric"
  end
  if nodemetric.is_stale(input) then
    return M.reset(DEGRADED)
  end
  local reserved, capacity = reservation.of(node)
  local of, case = bounds(input, capacity), { strategy = strategy, capacity = capacity, reclaimable = false,
    idle = false, unallocated = false, cpu = 0, memory = 0 } -- a table that grows costs more than the sums
  if strategy.midReclaimMode ~= "static" then
    add_terms(case, input, reserved, capacity, input.facts or pods.facts(list))
  end
  case.cpu, case.memory = left_of(OF_CPU, of, case), left_of(OF_MEMORY, of, case)
  return {
    resources = { [M.CPU] = case.cpu, [M.MEMORY] = amounts.bytes(case.memory) },
    messages = {
      [M.CPU] = function() return show(OF_CPU, case) end,
      [M.MEMORY] = function() return show(OF_MEMORY, case) end,
    },
  }
end

return M
