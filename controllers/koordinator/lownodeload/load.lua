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

-- What is remembered of a version of a pod.
local function read(pod)
  local phase = dig(pod, "status", "phase")
  local counts = phase ~= "Succeeded" and phase ~= "Failed"
  return { key = pods.key(pod), counts = counts, prod = counts and pods.class(pod) == "koord-prod" }
end

local function count(facts)
  local all, n_prod, prod = 0, 0, {}
  for _, fact in ipairs(facts) do
    if fact.counts then all = all + 1 end
    if fact.prod then
      n_prod = n_prod + 1
      prod[fact.key] = true
    end
  end
  return all, n_prod, prod
end

-- The numbers of pods of a node, and of each report the key of its pod and whether that is of class prod. As
-- long as neither the pods nor the reported ones change, they are joined once.
local function join(known, facts, reports)
  local is_same = known.joined_to == facts and kube.is_column(reports, "name", known.names)
    and kube.is_column(reports, "namespace", known.namespaces)
  if is_same then return known end
  local all, n_prod, prod = count(facts)
  known.joined_to, known.n, known.n_prod, known.keys, known.is_prod = facts, all, n_prod, {}, {}
  known.names, known.namespaces = kube.columns(reports, "name", "namespace")
  for i = 1, #reports do
    known.keys[i] = (known.namespaces[i] or "") .. "/" .. (known.names[i] or "")
    known.is_prod[i] = prod[known.keys[i]] or false
  end
  return known
end

-- What all reported pods use of a resource, and what those of class prod use.
local function sums(name, reports, is_prod)
  local all, prod = 0, 0
  local amounts = lists.column(name, reports, "podUsage.resources")
  for i = 1, #amounts do
    local n = amounts[i]
    all = all + n
    if is_prod[i] then prod = prod + n end
  end
  return all, prod
end

-- The parts of a load that only few nodes need are read when they are first asked for.
local LAZY = {}

function LAZY.items(load)
  local out = {}
  for i = 1, #load.on_node do out[i] = load.on_node[i] end
  return out
end

local function chosen(load, field)
  local out = {}
  for i, fact in ipairs(load.facts) do
    if fact[field] then out[#out + 1] = load.items[i] end
  end
  return out
end

function LAZY.pods(load) return chosen(load, "counts") end

function LAZY.prod_pods(load) return chosen(load, "prod") end

function LAZY.metrics(load)
  local out, used = {}, {}
  for i, key in ipairs(load.joined.keys) do
    used[i] = {}
    out[key] = used[i]
  end
  for _, name in ipairs(load.names) do
    local amounts = lists.given(name, load.reports, "podUsage.resources")
    for i = 1, #used do used[i][name] = amounts[i] end
  end
  return out
end

function LAZY.fact_of(load)
  local out = {}
  for i, fact in ipairs(load.facts) do out[load.items[i]] = fact end
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
  local name, system = node.metadata.name, dig(metric, "status", "nodeMetric", "systemUsage", "resources")
  local place, reports = "the load of " .. name, dig(metric, "status", "podsMetric") or {}
  local facts = pods.facts(on_node, place, read)
  local joined = join(pods.recall(place), facts, reports)
  local usage, prod_usage = {}, {}
  for i = 1, #names do
    local resource = names[i]
    local quantity = system and system[resource]
    local all, prod = sums(resource, reports, joined.is_prod)
    usage[resource], prod_usage[resource] = all + (quantity and lists.amount(resource, quantity) or 0), prod
  end
  usage.pods, prod_usage.pods = joined.n, joined.n_prod
  return setmetatable({ node = node, name = name, allocatable = nodes.raw_allocatable(node), names = names,
    reports = reports, on_node = on_node, facts = facts, joined = joined, usage = usage,
    prod_usage = prod_usage }, Load)
end

-- The loads of nodes that report, by name: { name, node, allocatable, usage, prod_usage }, and, read when
-- they are first asked for: pods, prod_pods, metrics (by "namespace/name", the usage of what is in `names`),
-- and fact_of (what is remembered of each pod). pods_on: { [node name] = pods }; metrics: { [node name] =
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
