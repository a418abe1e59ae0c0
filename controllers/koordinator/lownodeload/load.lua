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

local function fresh(metric, expiration, now)
  if dig(metric, "status", "nodeMetric") == nil then return false end
  local updated = dig(metric, "status", "updateTime")
  if expiration == nil then return true end
  if updated == nil then return false end
  return expiration <= 0 or now - kube.time(updated):unix() < expiration
end

local function add(sum, amounts, names)
  for i = 1, #names do
    local name = names[i]
    sum[name] = sum[name] + (amounts[name] or 0)
  end
end

local function zero(names)
  local out = {}
  for _, name in ipairs(names) do out[name] = 0 end
  return out
end

-- names: a list.
local function of_node(node, on_node, metric, names)
  local load = { node = node, name = node.metadata.name, allocatable = nodes.raw_allocatable(node), pods = {},
    prod_pods = {},
    metrics = {}, usage = zero(names), prod_usage = zero(names) }
  local prod = {}
  for _, pod in ipairs(on_node) do
    local phase = dig(pod, "status", "phase")
    if phase ~= "Succeeded" and phase ~= "Failed" then
      table.insert(load.pods, pod)
      if pods.class(pod) == "koord-prod" then
        table.insert(load.prod_pods, pod)
        prod[pods.key(pod)] = true
      end
    end
  end
  add(load.usage, lists.of(dig(metric, "status", "nodeMetric", "systemUsage", "resources")), names)
  for _, report in ipairs(dig(metric, "status", "podsMetric") or {}) do
    local key, used = (report.namespace or "") .. "/" .. (report.name or ""),
      lists.of(dig(report, "podUsage", "resources"))
    load.metrics[key] = used
    add(load.usage, used, names)
    if prod[key] then add(load.prod_usage, used, names) end
  end
  load.usage.pods, load.prod_usage.pods = #load.pods, #load.prod_pods
  return load
end

-- The loads of nodes that report, by name. pods_on: { [node name] = pods }; metrics: { [node name] =
-- NodeMetric }; expiration in seconds, nil: reports never expire.
function M.loads(list, pods_on, metrics, names, expiration, now)
  local out, resources = {}, lists.names(names)
  for _, node in ipairs(list) do
    local name = node.metadata.name
    if fresh(metrics[name], expiration, now) then
      out[#out + 1] = of_node(node, pods_on[name] or {}, metrics[name], resources)
    end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

-- ---------------------------------------------------------------- limits

-- In float64, truncated, as in Koordinator.
local function share(allocatable, name, percent)
  return math.tointeger(percent * 0.01 * (allocatable[name] or 0) // 1)
end

local function clamp(percent) return math.max(0, math.min(100, percent)) end

-- The average usage over all nodes, in percent of their capacity.
local function averages(loads, what)
  local sum = {}
  for _, load in ipairs(loads) do
    for name, used in pairs(load[what]) do
      local total = load.allocatable[name] or 0
      if total ~= 0 then sum[name] = (sum[name] or 0) + used / total * 100.0 end
    end
  end
  for name, percent in pairs(sum) do sum[name] = percent / #loads end
  return sum
end

-- One pair of limits of one node. With an average, thresholds are distances from it; a low one of 0
-- switches the resource off.
local function pair_of(load, low, high, average)
  local down, up = {}, {}
  for name, percent in pairs(low) do
    if average and percent == 0 then
      down[name] = load.allocatable[name] or 0
      up[name] = down[name]
    else
      local mean = average and (average[name] or 0)
      down[name] = share(load.allocatable, name, mean and clamp(mean - percent) or percent)
      up[name] = share(load.allocatable, name, mean and clamp(mean + (high[name] or 0)) or high[name] or 0)
    end
  end
  return down, up
end

-- Puts low, high, prod_low and prod_high on each load.
function M.limit(loads, thresholds, deviation)
  local all, prod = deviation and averages(loads, "usage"), deviation and averages(loads, "prod_usage")
  for _, load in ipairs(loads) do
    load.low, load.high = pair_of(load, thresholds.lowThresholds, thresholds.highThresholds, all)
    load.prod_low, load.prod_high = pair_of(load, thresholds.prodLowThresholds, thresholds.prodHighThresholds,
      prod)
  end
end

-- ---------------------------------------------------------------- classes

function M.over(load, prod)
  local _, names = lists.within(prod and load.prod_usage or load.usage, prod and load.prod_high or load.high)
  return names
end

local function below(load, usage, limit)
  return dig(load.node, "spec", "unschedulable") ~= true and (lists.within(usage, limit))
end

local function class_of(load)
  local is_low = below(load, load.usage, load.low)
  if not is_low and #M.over(load) > 0 then return "high" end
  if #M.over(load, true) > 0 then return "prodHigh" end
  local prod_low = below(load, load.prod_usage, load.prod_low)
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
