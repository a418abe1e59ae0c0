-- balance.lua - one pass over a pool of nodes: chooses pods of overloaded nodes that fit elsewhere, until the
-- node is fine or the others have no room. The caller moves the pods.

local anomaly = require "lownodeload.anomaly"
local fields = require "fields"
local lists = require "lib.lists"
local measure = require "lownodeload.load"
local pools = require "lownodeload.pools"
local victims = require "lownodeload.victims"

local M = {}

-- ---------------------------------------------------------------- which node first

local function node_score(usage, allocatable, weights)
  local sum, all = 0, 0
  for name, used in pairs(usage) do
    local weight, capacity = weights[name] or 0, allocatable[name] or 0
    if capacity > 0 then sum = sum + math.min(used, capacity) * 1000 // capacity * weight end
    all = all + weight
  end
  return all == 0 and 0 or sum // all
end

-- The most used first; by name where Koordinator's order is random.
local function by_usage(loads, weights, prod)
  local scores = {}
  for _, load in ipairs(loads) do
    scores[load] = node_score(prod and load.prod_usage or load.usage, load.allocatable, weights)
  end
  table.sort(loads, function(a, b)
    if scores[a] ~= scores[b] then return scores[a] > scores[b] end
    return a.name < b.name
  end)
end

-- ---------------------------------------------------------------- how much room there is

local function room(targets, names, prod)
  local sum = {}
  for name in pairs(names) do
    sum[name] = 0
    for _, load in ipairs(targets) do
      local limit, usage = prod and load.prod_high or load.high, prod and load.prod_usage or load.usage
      sum[name] = sum[name] + limit[name] - usage[name]
    end
  end
  return sum
end

local function smaller(a, b)
  local out = {}
  for name, n in pairs(a) do out[name] = math.min(n, b[name]) end
  return out
end

local function join(a, b) return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})) end

-- ---------------------------------------------------------------- moving

local function reason(load, percents, prod)
  local parts, usage = {}, prod and load.prod_usage or load.usage
  for _, name in ipairs(measure.over(load, prod)) do
    local total = load.allocatable[name] or 0
    parts[#parts + 1] = ("%s %s usage(%.2f%%)>threshold(%.2f%%)"):format(prod and "prod" or "node", name,
      total == 0 and 0 or 100 * usage[name] / total, percents[name] or 0)
  end
  return "node is overutilized, " .. table.concat(parts, ", ")
end

local function excess(load, prod)
  local usage, limit, out = prod and load.prod_usage or load.usage, prod and load.prod_high or load.high, {}
  for _, name in ipairs(measure.over(load, prod)) do out[name] = usage[name] - limit[name] end
  return out
end

-- The node's pods that may go and fit elsewhere, in the order of their eviction.
local function candidates(load, targets, context, prod)
  local out = {}
  for _, pod in ipairs(prod and load.prod_pods or load.pods) do
    local fact = load.fact_of[pod]
    local used = load.metrics[fact.key]
    local moves = context.evictable(pod, fact) and (not context.node_fit
      or used ~= nil and victims.place(pod, used, targets, victims.asked(pod, fact)))
    if moves then out[#out + 1] = pod end
  end
  local over = excess(load, prod)
  victims.sort(out, load, over, context.weights)
  return out
end

local function goes_on(load, available, context, prod)
  if #measure.over(load, prod) == 0 then
    anomaly.reset(load, prod and context.detectors.prod or context.detectors.node)
    return false
  end
  for name in pairs(context.names) do
    if available[name] <= 0 then return false end
  end
  return true
end

local function deduct(load, pod, available, prod)
  local used = load.metrics[load.fact_of[pod].key]
  if used == nil then return end
  for name in pairs(available) do
    local n = name == "pods" and 1 or used[name] or 0
    available[name] = available[name] - n
    load.usage[name] = load.usage[name] - n
    if prod then load.prod_usage[name] = load.prod_usage[name] - n end
  end
end

local function move(sources, loads, available, context, prod)
  if #sources == 0 or #loads == 0 then return end
  local targets = victims.targets(loads, prod)
  local percents = context.thresholds[prod and "prodHighThresholds" or "highThresholds"]
  for _, load in ipairs(sources) do
    local why
    for _, pod in ipairs(candidates(load, targets, context, prod)) do
      if not goes_on(load, available, context, prod) then break end
      if #context.moves < context.budget then
        why = why or reason(load, percents, prod)
        local one = { pod = pod, fact = load.fact_of[pod], node = load.name, reason = why }
        if context.move(one) then
          table.insert(context.moves, one)
          deduct(load, pod, available, prod)
          why = nil
        end
      end
    end
  end
end

local function balance(high, prod_high, classes, context)
  local names = context.names
  local both = room(classes.bothLow, names)
  local available = lists.add(room(classes.low, names), both)
  move(high, join(classes.low, classes.bothLow), available, context, false)
  if #prod_high == 0 then return end
  local both_prod = room(classes.bothLow, names, true)
  local prod_room = room(classes.prodLow, names, true)
  -- Nodes that are low in both respects serve both; room that was just taken is gone.
  local rest = smaller(both_prod, smaller(both, available))
  move(prod_high, join(classes.prodLow, classes.bothLow), lists.add(prod_room, rest), context, true)
end

-- ---------------------------------------------------------------- the pass

local function weights_of(pool, names)
  if pool.resourceWeights then return pool.resourceWeights end
  local out = {}
  for name in pairs(names) do out[name] = 1 end
  return out
end

local function keys(list)
  local out = {}
  for name in pairs(list) do out[name] = true end
  return out
end

-- The nodes of a pool that no earlier pool has processed.
function M.nodes_of(pool, nodes, processed)
  if pool.nodeSelector == nil then return nodes end
  local out = {}
  for _, node in ipairs(nodes) do
    local labels = fields.dig(node, "metadata", "labels") or {}
    if not processed[node.metadata.name] and fields.selects(pool.nodeSelector, labels) then
      out[#out + 1] = node
    end
  end
  return out
end

-- input: pool       thresholds, weights, anomalyCondition, as in LowNodeLoadArgs
--        nodes      of this pool
--        pods_on, metrics   { [node name] = pods }, { [node name] = NodeMetric }
--        now, expiration    seconds; expiration nil: reports stay good
--        node_fit   whether a pod must fit somewhere before it may go
--        number_of_nodes    with this many low nodes or fewer nothing moves
--        evictable  function(pod, fact): whether it may be moved now; fact: what is known of this version of
--                   the pod
--        move       function({ pod, fact, node, reason }), called for each pod as soon as it is chosen;
--                   returns whether it goes, as the moves before it count for the limits
--        budget     the most moves (nil: unlimited)
--        detectors  { node = {}, prod = {} }, changed: who was seen overloaded how often (anomaly.lua)
--        detectors_kept     how long after the last time, "5m" if nil
-- Returns { moves = the list of these, classes, loads, processed = { [node name] = true } }.
function M.pass(input)
  local thresholds = measure.thresholds(input.pool)
  local names = keys(thresholds.lowThresholds)
  local weights = weights_of(input.pool, names)
  local counted = weights.pods and fields.merge(names, { pods = true }) or names
  local loads = measure.loads(input.nodes, input.pods_on, input.metrics, counted, input.expiration, input.now)
  measure.limit(loads, thresholds, input.pool.useDeviationThresholds)
  local classes = measure.classify(loads)
  local out = { moves = {}, classes = classes, loads = loads, processed = {} }
  local condition, detectors = input.pool.anomalyCondition, input.detectors
  if #classes.high == 0 and #classes.prodHigh == 0 then return out end

  local kept = input.detectors_kept
  local high = anomaly.filter(classes.high, detectors.node, input.now, condition, kept)
  local prod_high = anomaly.filter(classes.prodHigh, detectors.prod, input.now, condition, kept)
  local low = #classes.low + #classes.prodLow + #classes.bothLow
  if #high + #prod_high == 0 or low == 0 then return out end
  for _, load in ipairs(join(classes.low, classes.bothLow)) do anomaly.reset(load, detectors.node) end
  for _, load in ipairs(classes.prodLow) do anomaly.reset(load, detectors.prod) end
  if low <= (input.number_of_nodes or 0) or low == #input.nodes then return out end

  local context = { names = names, thresholds = thresholds, weights = weights,
    moves = out.moves, move = input.move,
    evictable = input.evictable, node_fit = input.node_fit, budget = input.budget or math.huge,
    detectors = detectors }
  by_usage(high, weights, false)
  by_usage(prod_high, weights, true)
  balance(high, prod_high, classes, context)
  anomaly.eased(high, detectors.node, input.now)
  anomaly.eased(prod_high, detectors.prod, input.now)
  for _, load in ipairs(classes.high) do out.processed[load.name] = true end
  return out
end

-- Passes over all pools, in their order. settings: LowNodeLoadArgs. world: nodes, pods_on, metrics, now,
-- evictable, move, budget and detectors as above. Returns the result of each pass.
function M.all(settings, world)
  local processed, budget, results = {}, world.budget or math.huge, {}
  for _, pool in ipairs(pools.of(settings)) do
    local result = M.pass {
      pool = pool,
      nodes = M.nodes_of(pool, world.nodes, processed),
      pods_on = world.pods_on,
      metrics = world.metrics,
      now = world.now,
      expiration = settings.nodeMetricExpirationSeconds,
      node_fit = settings.nodeFit,
      number_of_nodes = settings.numberOfNodes,
      evictable = world.evictable,
      move = world.move,
      budget = budget,
      detectors = world.detectors,
      detectors_kept = settings.detectorCacheTimeout,
    }
    for name in pairs(result.processed) do processed[name] = true end
    budget = budget - #result.moves
    results[#results + 1] = result
  end
  return results
end

return M
