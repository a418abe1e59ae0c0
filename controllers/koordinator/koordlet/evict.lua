-- evict.lua - which pods the agent of a node would evict now, and for what: six reactions, three for cpu and
-- three for memory, each with a threshold, an amount to release, and an order of victims.

local fields = require "fields"
local lists = require "lib.lists"
local node_of = require "koordlet.node"

local M = {}

local BUFFER = 2                 -- percent below the threshold, if no lower threshold is set
local FULL_USE = 90              -- percent of its limit from which on BE counts as short of cpu
local MID_HIGHEST = 7999         -- above it are prod pods, which are never evicted by allocatable
local LOWER_MOST, UPPER_MOST = 60, 100 -- percent of BE's requests

-- ---------------------------------------------------------------- how much

-- The node's use is at or above the threshold: releases down to the lower one.
local function by_use(node, what, percent, lower)
  local t = node.threshold
  local threshold, bottom = t[percent], t[lower]
  if not threshold then return {} end
  bottom = bottom or threshold - BUFFER
  if threshold < 0 or bottom >= threshold then return nil, lower .. " is not below " .. percent end
  local used = node.used[what] * 100 // node.capacity[what]
  if used < threshold then return {} end
  return { [what] = node.capacity[what] * (used - bottom) // 100 },
    ("%s used %d%% >= %d%%"):format(what, used, threshold)
end

-- Requests of mid, batch or other pods exceed a share of what the node has for them.
local function by_allocatable(node, what, percent, lower)
  local t = node.threshold
  local threshold, bottom, highest = t[percent], t[lower], t.allocatableEvictPriorityThreshold
  if not threshold then return {} end
  if not bottom or not highest then
    return nil, lower .. " or allocatableEvictPriorityThreshold is not set"
  end
  if threshold < 0 or bottom >= threshold or highest > MID_HIGHEST then
    return nil, lower .. " is not below " .. percent .. ", or the priority is that of prod"
  end
  local asked, out, why = {}, {}, {}
  for _, pod in ipairs(node.pods) do
    if pod.priority <= highest then
      for name, n in pairs(pod.requests) do
        if M.is_of(name, what) then asked[name] = (asked[name] or 0) + n end
      end
    end
  end
  for _, name in ipairs(lists.names(asked)) do
    local n, there = asked[name], node.allocatable[name] or 0
    if there == 0 then
      out[name] = n > 0 and n or nil
    elseif n / there > threshold / 100 then
      out[name] = math.tointeger((n - bottom / 100 * there) // 1)
    end
    if out[name] then why[#why + 1] = ("%s asked %d of %d"):format(name, n, there) end
  end
  return out, table.concat(why, ", ")
end

-- BE pods get too little of the cpu that they request, and use all of it.
local function by_satisfaction(node, limit)
  local t = node.threshold
  local lower, upper = t.cpuEvictBESatisfactionLowerPercent, t.cpuEvictBESatisfactionUpperPercent
  if not lower and not upper then return {} end
  if not lower or not upper then return nil, "one of cpuEvictBESatisfaction...Percent is not set" end
  if lower <= 0 or lower > LOWER_MOST or upper >= UPPER_MOST or upper < lower then
    return nil, ("cpuEvictBESatisfaction: %d%% and %d%% are not a range"):format(lower, upper)
  end
  if t.cpuEvictPolicy == "evictByAllocatable" then
    limit = node.allocatable[node_of.BATCH_CPU] or -1
    if limit == 0 then limit = 1 end
  end
  local asked, used = 0, 0
  for _, pod in ipairs(node.pods) do
    if pod.qos == "BE" then
      asked, used = asked + pod.batch_cpu, used + (pod.used and pod.used.cpu or 0)
    end
  end
  if limit <= 0 or asked <= 0 then return {} end
  local full = limit < 1000 or used / limit >= (t.cpuEvictBEUsageThresholdPercent or FULL_USE) / 100
  local rate = limit / asked
  if not full or rate > lower / 100 then return {} end
  return { [node_of.BATCH_CPU] = math.tointeger((asked * (upper / 100 - rate)) // 1) },
    ("BE gets %d of its %d requested milli-cores"):format(limit, asked)
end

-- Whether a resource is cpu or memory, of whatever class.
function M.is_of(name, what)
  return name == what or name:sub(1, 14) == "kubernetes.io/" and name:match "%-(%a+)$" == what
end

-- ---------------------------------------------------------------- in which order

local function sorted(list, ...)
  local keys = { ... }
  table.sort(list, function(a, b)
    for _, key in ipairs(keys) do
      local x, y = key(a), key(b)
      if x ~= y then return x < y end
    end
    return a.key < b.key
  end)
  return list
end

local function be_pods(node, reaction, ...)
  local out = {}
  for _, pod in ipairs(node.pods) do
    if pod.qos == "BE" and node_of.allows(pod, reaction) then out[#out + 1] = pod end
  end
  return sorted(out, function(pod) return pod.spec_priority or 0 end, ...)
end

-- Measured pods up to a priority that allow eviction.
local function willing(node, reaction, highest, upstream, more)
  local out = {}
  for _, pod in ipairs(node.pods) do
    if pod.active and pod.evictable and pod.used and pod.priority <= highest
      and node_of.allows(pod, reaction) then
      out[#out + 1] = pod
    end
  end
  return sorted(out,
    function(pod) return upstream == "v1.8.0" and 0 or pod.eviction_priority end,
    function(pod) return pod.priority end,
    function(pod) return pod.label_priority end,
    more)
end

local function used(what) return function(pod) return -(pod.used and pod.used[what] or 0) end end
local function asks(what) return function(pod) return -pod.asked[what] end end
local function busy(pod)
  return pod.batch_cpu > 0 and -(pod.used and pod.used.cpu or 0) / pod.batch_cpu or 0
end

-- ---------------------------------------------------------------- the reactions

-- What an evicted pod releases: of the use, or of the requests.
local function gives_used(what, factor)
  return function(pod) return { [what] = (pod.used and pod.used[what] or 0) * factor } end
end

local function gives_asked(what)
  return function(pod, release)
    for name in pairs(release) do
      if node_of.class_of[name] == pod.class then return { [pod.names[what]] = pod.asked[what] } end
    end
    return {}
  end
end

-- In the two reactions for pods of any class Koordinator counts a pod's memory a thousandfold, so that one
-- victim is enough. This is kept, because the audit shows what Koordinator would do.
local THOUSANDFOLD = 1000

local function reactions(node, limit, upstream)
  local t = node.threshold
  local highest, allocatable = t.evictEnabledPriorityThreshold, t.allocatableEvictPriorityThreshold
  local function any(what, name, percent, lower, factor)
    return { name = name, target = "used", gives = gives_used(what, factor),
      release = function()
        if not highest then return {} end
        return by_use(node, what, percent, lower)
      end,
      victims = function() return willing(node, name, highest, upstream, used(what)) end }
  end
  local function lent(what, name, percent, lower)
    return { name = name, target = "asked", gives = gives_asked(what),
      release = function() return by_allocatable(node, what, percent, lower) end,
      victims = function() return willing(node, name, allocatable, upstream, asks(what)) end }
  end
  local cpu, memory = {
    { name = "BECPUEvict", target = "asked",
      gives = function(pod) return { [node_of.BATCH_CPU] = pod.batch_cpu } end,
      release = function() return by_satisfaction(node, limit) end,
      victims = function() return be_pods(node, "BECPUEvict", busy) end },
    lent("cpu", "CPUAllocatableEvict", "cpuAllocatableEvictThresholdPercent",
      "cpuAllocatableEvictLowerPercent"),
    any("cpu", "CPUEvict", "cpuEvictThresholdPercent", "cpuEvictLowerPercent", 1),
  }, {
    { name = "BEMemoryEvict", target = "used", gives = gives_used("memory", 1),
      release = function()
        return by_use(node, "memory", "memoryEvictThresholdPercent", "memoryEvictLowerPercent")
      end,
      victims = function() return be_pods(node, "BEMemoryEvict", used "memory") end },
    lent("memory", "MemoryAllocatableEvict", "memoryAllocatableEvictThresholdPercent",
      "memoryAllocatableEvictLowerPercent"),
    any("memory", "MemoryEvict", "memoryEvictThresholdPercent", "memoryEvictLowerPercent", THOUSANDFOLD),
  }
  return { cpu, memory }
end

-- ---------------------------------------------------------------- together

local function missing(release, given)
  for name, n in pairs(release) do
    if n > (given[name] or 0) then return true end
  end
  return false
end

-- An evicted pod releases, for each target, the most that a reaction of the resource counts.
local function count(ledger, tasks, pod)
  local most = {}
  for _, task in ipairs(tasks) do
    most[task.target] = lists.max(most[task.target] or {}, task.gives(pod, task.release))
  end
  for target, given in pairs(most) do lists.accumulate(ledger[target], given) end
end

local function is_going(pod) return fields.dig(pod.pod, "metadata", "deletionTimestamp") ~= nil end

local function pick(tasks)
  local ledger, gone = { used = {}, asked = {} }, {}
  for _, task in ipairs(tasks) do
    for _, pod in ipairs(task.victims) do
      if not missing(task.release, ledger[task.target]) then break end
      if not gone[pod.key] then
        gone[pod.key] = true
        -- A pod that is already terminating is waited for; no other pod is evicted in its place.
        if not is_going(pod) then table.insert(task.evicted, pod) end
        count(ledger, tasks, pod)
      end
    end
    task.enough = not missing(task.release, ledger[task.target])
  end
end

-- What the agent would evict now. limit: the cpu for BE pods, in milli-cores (suppress.lua); gates: the
-- enabled reactions; upstream: "v1.8.0" or "main". Returns a list of reactions with something to release:
--   { reaction, why, release = { [resource] = n }, evicted = { pods }, enough = whether that suffices }
-- and the reactions with contradictory settings, { [reaction] = why }. A reaction without its threshold, or
-- without its highest priority, is off.
function M.decide(node, limit, gates, upstream)
  local out, broken = {}, {}
  if node.threshold.enable ~= true then return out, broken end
  for _, family in ipairs(reactions(node, limit, upstream)) do
    local tasks = {}
    for _, reaction in ipairs(family) do
      local release, why
      if gates[reaction.name] then release, why = reaction.release() end
      if gates[reaction.name] and not release then broken[reaction.name] = why end
      if release and next(release) then
        tasks[#tasks + 1] = { reaction = reaction.name, why = why, release = release, evicted = {},
          target = reaction.target, gives = reaction.gives, victims = reaction.victims() }
      end
    end
    pick(tasks)
    for _, task in ipairs(tasks) do
      out[#out + 1] = { reaction = task.reaction, why = task.why, release = task.release,
        evicted = task.evicted, enough = task.enough }
    end
  end
  return out, broken
end

return M
