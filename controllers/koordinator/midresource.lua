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

local dig = fields.dig

local M = {}

M.CPU, M.MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
M.NAMES = { M.CPU, M.MEMORY }

local DEGRADED = "degrade node Mid resource because of abnormal nodeMetric, reason: degradedByMidResource"

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

-- Whether a pod counts as prod: it runs or will run, and has no lower class. facts: see pods.facts.
function M.is_prod(facts) return facts.active and not BELOW_PROD[facts.class] end

local function sum_of_prod(known)
  local sum, is_prod = amounts.new(), M.is_prod
  for _, facts in ipairs(known) do
    if is_prod(facts) then amounts.accumulate(sum, facts.request) end
  end
  return sum
end

-- Facts do not change, so one list of them has one sum.
local function prod_requests(known)
  known.prod_requests = known.prod_requests or sum_of_prod(known)
  return known.prod_requests
end

-- What is idle now; 0 if the node's usage is not completely known, to be on the safe side.
local function unused(capacity, metric)
  local used = dig(metric, "status", "nodeMetric", "nodeUsage", "resources")
  if used == nil or used.cpu == nil or used.memory == nil then return amounts.new() end
  return amounts.sub(capacity, amounts.of(used))
end

local function dynamic(strategy, capacity, node, known, metric)
  local reclaimable = amounts.of(dig(metric, "status", "prodReclaimableMetric", "resource", "resources"))
  local idle = unused(capacity, metric)
  local kept = amounts.max(nodemetric.system_used(metric, "koord-mid"), reservation.of(node))
  local unallocated = amounts.floor0(amounts.sub(amounts.sub(capacity, kept), prod_requests(known)))
  local share = ratio(strategy, "midUnallocatedPercent")
  return function(r)
    local u, shown, limit = r.unit, r.shown, ratio(strategy, r.threshold)
    local base = math.max(math.min(reclaimable[u], idle[u]), 0)
    local left = math.min(base + r.scale(unallocated[u], share), r.scale(capacity[u], limit))
    return left, function()
      return
        ("%s:%d = min(min(ProdReclaimable:%d, NodeUnused:%d) + Unallocated:%d * midUnallocatedRatio:%s, \z
        NodeCapacity:%d * thresholdRatio:%s)")
        :format(r.label, shown(left), shown(reclaimable[u]), shown(idle[u]), shown(unallocated[u]),
          amounts.ratio(share), shown(capacity[u]), amounts.ratio(limit))
    end
  end
end

local function static(strategy, capacity)
  return function(r)
    local cap, shown, part, limit = capacity[r.unit], r.shown, ratio(strategy, r.static),
      ratio(strategy, r.threshold)
    local left = math.min(r.scale(cap, part), r.scale(cap, limit))
    return left, function()
      return ("%s:%d = min(nodeCapacity:%d * staticReservedPercent:%s, nodeCapacity:%d * thresholdRatio:%s)")
        :format(r.label, shown(left), shown(cap), amounts.ratio(part), shown(cap), amounts.ratio(limit))
    end
  end
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
  if nodemetric.stale(metric, colocation.setting(strategy, "degradeTimeMinutes"), input.now) then
    return M.reset(DEGRADED)
  end
  local capacity = amounts.of(dig(node, "status", "capacity"))
  local left_of = strategy.midReclaimMode == "static" and static(strategy, capacity)
    or dynamic(strategy, capacity, node, input.facts or pods.facts(list), metric)
  local out = { resources = {}, messages = {} }
  for _, r in ipairs(RESOURCES) do
    local left, message = left_of(r)
    out.resources[r.name] = r.unit == "memory" and amounts.bytes(left) or left
    out.messages[r.name] = message
  end
  return out
end

return M
