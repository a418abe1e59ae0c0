-- load.lua - the loads of the nodes of a pool, and which of them are overloaded or underused. Amounts as in
-- lib/lists.lua.
--
--   low       nothing above its low threshold, and schedulable
--   high      something above its high threshold
--   prodHigh, prodLow, bothLow   the same of what pods of class prod use

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local nodes = require "lib.nodes"
local pods = require "pods"

local M = {}

local dig = fields.dig

-- ---------------------------------------------------------------- thresholds

local LISTS = { "lowThresholds", "highThresholds", "prodLowThresholds", "prodHighThresholds" }

-- The percentages of a pool with defaults filled in: a resource without a low threshold is never overloaded
-- or underused. Memory always counts.
function M.thresholds(pool)
  local all, names = {}, { memory = true }
  for _, which in ipairs(LISTS) do
    all[which] = {}
    for name, percent in pairs(pool[which] or {}) do
      all[which][name] = percent
      names[name] = true
    end
  end
  local idle = pool.useDeviationThresholds and 0 or 100
  for name in pairs(names) do
    for _, pair in ipairs { { "lowThresholds", "highThresholds" },
      { "prodLowThresholds", "prodHighThresholds" } } do
      if all[pair[1]][name] == nil then all[pair[1]][name], all[pair[2]][name] = idle, idle end
    end
  end
  return all
end

-- ---------------------------------------------------------------- usage

-- A function of a NodeMetric: whether it can be used. Many have the same time.
local function freshness(expiration, now)
  local is_fresh = {}
  return function(metric)
    if dig(metric, "status", "nodeMetric") == nil then return false end
    local updated = dig(metric, "status", "updateTime")
    if expiration == nil then return true end
    if updated == nil then return false end
    if is_fresh[updated] == nil then
      is_fresh[updated] = expiration <= 0 or now - kube.time(updated):unix() < expiration
    end
    return is_fresh[updated]
  end
end

local USAGE = "podUsage.resources" -- of a report of a pod

-- What is remembered of a version of a pod.
local function read(pod)
  local phase = dig(pod, "status", "phase")
  local counts = phase ~= "Succeeded" and phase ~= "Failed"
  return { key = pods.key(pod), counts = counts, prod = counts and pods.class(pod) == "koord-prod" }
end

-- The parts of a load that only few nodes need are read when they are first asked for.
local LAZY = {}

function LAZY.place(load) return "the load of " .. load.name end

function LAZY.items(load) return table.move(load.on_node, 1, #load.on_node, 1, {}) end

function LAZY.facts(load) return pods.facts(load.on_node, load.place, read) end

local function chosen(load, field)
  local out = {}
  for i, fact in ipairs(load.facts) do
    if fact[field] then out[#out + 1] = load.items[i] end
  end
  return out
end

function LAZY.pods(load) return chosen(load, "counts") end

function LAZY.prod_pods(load) return chosen(load, "prod") end

function LAZY.fact_of(load)
  local out = {}
  for i, fact in ipairs(load.facts) do out[load.items[i]] = fact end
  return out
end

function LAZY.metrics(load)
  local out, at = {}, kube.places(load.reports, "namespace", "name")
  for key in pairs(at) do out[key] = {} end
  for _, name in ipairs(load.names) do
    local amounts = lists.given(name, load.reports, USAGE)
    for key, i in pairs(at) do out[key][name] = amounts[i] end
  end
  return out
end

function LAZY.prod_usage(load)
  local out = {}
  for _, name in ipairs(load.names) do out[name] = 0 end
  for _, fact in ipairs(load.facts) do
    if fact.prod then lists.accumulate(out, load.metrics[fact.key] or {}) end
  end
  if out.pods then out.pods = #load.prod_pods end
  return out
end

local Load = {}

function Load.__index(load, field)
  local part = LAZY[field]
  if not part then return nil end
  load[field] = part(load)
  return load[field]
end

-- names: a list.
local function of_node(node, on_node, metric, names)
  local system = dig(metric, "status", "nodeMetric", "systemUsage", "resources") or {}
  local load = setmetatable({ node = node, name = node.metadata.name, names = names, on_node = on_node,
    allocatable = nodes.raw_allocatable(node), reports = dig(metric, "status", "podsMetric") or {},
    usage = {}, low = false, high = false, prod_low = false, prod_high = false }, Load) -- M.limit sets these
  for _, name in ipairs(names) do
    local quantity = system[name]
    load.usage[name] = lists.sum(name, load.reports, USAGE) + (quantity and lists.amount(name, quantity) or 0)
  end
  if load.usage.pods then load.usage.pods = #load.pods end
  return load
end

-- The loads of nodes that report, by name: { name, node, allocatable, usage }, and, read when they are first
-- asked for: prod_usage, pods, prod_pods, metrics (by "namespace/name", the usage of what is in `names`), and
-- fact_of (what is remembered of each pod). pods_on: { [node name] = pods }; metrics: { [node name] =
-- NodeMetric }; names: the resources that count, "pods" is their number; expiration in seconds, nil: reports
-- never expire.
function M.loads(list, pods_on, metrics, names, expiration, now)
  local out, resources, fresh, sorted = {}, lists.names(names), freshness(expiration, now), true
  for _, node in ipairs(list) do
    local name = node.metadata.name
    if fresh(metrics[name]) then
      sorted = sorted and (#out == 0 or out[#out].name < name) -- as lists of a cache are
      out[#out + 1] = of_node(node, pods_on[name] or {}, metrics[name], resources)
    end
  end
  if not sorted then table.sort(out, function(a, b) return a.name < b.name end) end
  return out
end

-- ---------------------------------------------------------------- limits

-- In float64, truncated, as in Koordinator.
local function share(allocatable, name, percent)
  return math.tointeger(percent * 0.01 * (allocatable[name] or 0) // 1)
end

local function clamp(percent) return math.max(0, math.min(100, percent)) end

-- The average usage over all nodes, in percent of their capacity, of the resources with a low threshold.
local function averages(loads, what, low)
  local out = {}
  for name, percent in pairs(low) do
    out[name] = 0
    for _, load in ipairs(percent ~= 0 and loads or {}) do
      local total = load.allocatable[name] or 0
      if total ~= 0 then out[name] = out[name] + load[what][name] / total * 100.0 end
    end
    out[name] = out[name] / #loads
  end
  return out
end

-- One pair of limits of one node. With an average, thresholds are distances from it; a low one of 0
-- switches the resource off.
local function pair_of(load, low, high, average)
  local down, up = {}, {}
  for name, percent in pairs(low) do
    local above = high[name] or 0
    if not average then
      down[name] = share(load.allocatable, name, percent)
      up[name] = above == percent and down[name] or share(load.allocatable, name, above)
    elseif percent == 0 then
      down[name] = load.allocatable[name] or 0
      up[name] = down[name]
    else
      down[name] = share(load.allocatable, name, clamp(average[name] - percent))
      up[name] = share(load.allocatable, name, clamp(average[name] + above))
    end
  end
  return down, up
end

-- Puts low, high, prod_low and prod_high on each load.
function M.limit(loads, thresholds, deviation)
  local all = deviation and averages(loads, "usage", thresholds.lowThresholds)
  local prod = deviation and averages(loads, "prod_usage", thresholds.prodLowThresholds)
  for _, load in ipairs(loads) do
    load.low, load.high = pair_of(load, thresholds.lowThresholds, thresholds.highThresholds, all)
    load.prod_low, load.prod_high = pair_of(load, thresholds.prodLowThresholds, thresholds.prodHighThresholds,
      prod)
  end
end

-- ---------------------------------------------------------------- classes

-- The resources of which a node, or its pods of class prod, use too much.
function M.over(load, prod)
  local _, names = lists.within(prod and load.prod_usage or load.usage, prod and load.prod_high or load.high)
  return names
end

-- Pods of class prod use no more than all pods: where that is within a limit, nobody has to find out which
-- pods they are.
local function prod_within(load, limit)
  return lists.fits(load.usage, limit) or lists.fits(load.prod_usage, limit)
end

local function class_of(load)
  local schedulable = dig(load.node, "spec", "unschedulable") ~= true
  local is_low = schedulable and lists.fits(load.usage, load.low)
  if not is_low and not lists.fits(load.usage, load.high) then return "high" end
  if not prod_within(load, load.prod_high) then return "prodHigh" end
  local prod_low = schedulable and prod_within(load, load.prod_low)
  if is_low then return prod_low and "bothLow" or "low" end
  return prod_low and "prodLow" or "right"
end

-- { low, high, prodLow, prodHigh, bothLow, right }, each a list of loads by name.
function M.classify(loads)
  local classes = { low = {}, high = {}, prodLow = {}, prodHigh = {}, bothLow = {}, right = {} }
  for _, load in ipairs(loads) do table.insert(classes[class_of(load)], load) end
  return classes
end

return M
