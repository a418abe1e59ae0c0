-- loadaware.lua - LoadAwareScheduling: refuses overused nodes, and prefers the least used ones. The usage of
-- a node is that in its NodeMetric, plus an estimate for pods that are too new for the report:
--
--   estimate(pod)   = max(request, limit) of the class's cpu and memory · 85 %, 70 %, at most the limit
--   estimated(node) = reported usage + Σ max(estimate − reported usage of the pod, 0) of late pods
--   filter          : round(100 · (estimated(node) + estimate(pod)) / allocatable) > threshold
--   score           = Σ weight · (100 · (allocatable − estimated) // allocatable) // Σ weight

local kube = require "kubelua"
local fields = require "fields"
local lists = require "lib.lists"
local nodes = require "lib.nodes"
local pods = require "pods"

local dig = fields.dig

local M = { name = "LoadAwareScheduling" }

-- As LoadAwareSchedulingArgs, which also has: prodUsageThresholds, aggregated = { usageThresholds,
-- usageAggregationType, usageAggregatedDuration, scoreAggregationType, scoreAggregatedDuration },
-- scoreAccordingProdUsage, prodUsageIncludeSys, estimatedSecondsAfterPodScheduled,
-- estimatedSecondsAfterInitialized, allowCustomizeEstimation, supportedResources.
M.DEFAULTS = {
  filterExpiredNodeMetrics = true,
  enableScheduleWhenNodeMetricsExpired = false,
  nodeMetricExpirationSeconds = 180,
  resourceWeights = { cpu = 1, memory = 1 },
  dominantResourceWeight = 0,
  usageThresholds = { cpu = 65, memory = 95 },
  estimatedScalingFactors = { cpu = 85, memory = 70 },
}

local MAX = 100
local REPORT_INTERVAL = 60 -- seconds, the default of a NodeMetric
local UNASKED = { cpu = 250, memory = 200 * 1024 * 1024 } -- of a pod without requests and limits
local TRANSLATED = { ["koord-batch"] = "batch-", ["koord-mid"] = "mid-" }
local CUSTOM = "scheduling.koordinator.sh/usage-thresholds"
local OWN_FACTORS = "scheduling.koordinator.sh/load-estimated-scaling-factors"
local OWN_SECONDS = "scheduling.koordinator.sh/load-estimated-seconds-after-"

local function is_prod(pod) return pods.class(pod) == "koord-prod" end
local function round(x) return math.floor(x + 0.5) end
local function empty(map) return #lists.names(map or {}) == 0 end

-- The resources that count: cpu, memory, and those that the args name.
local function resources_of(args)
  local names = { cpu = true, memory = true }
  for _, map in ipairs { args.usageThresholds, args.prodUsageThresholds or {}, args.resourceWeights,
    dig(args.aggregated, "usageThresholds") or {}, args.estimatedScalingFactors } do
    for name in pairs(map) do names[name] = true end
  end
  for _, name in ipairs(args.supportedResources or {}) do names[name] = true end
  return lists.names(names)
end

-- The args with defaults for missing and null ones; `resources` lists the resources that count.
function M.args(given)
  local out = fields.copy(M.DEFAULTS)
  for key, value in pairs(fields.copy(given or {})) do
    if key == "estimatedScalingFactors" then
      for name, factor in pairs(value) do out[key][name] = factor end
    elseif type(value) ~= "table" or next(value) ~= nil then
      out[key] = value
    end
  end
  local weighted = given and (not empty(given.resourceWeights) or (given.dominantResourceWeight or 0) == 0)
  if given and not weighted then out.resourceWeights = {} end
  out.resources = resources_of(out)
  return out
end

-- ---------------------------------------------------------------- estimates

local function estimate_one(name, class, requests, limits, factor)
  if class == "koord-free" then return 0 end -- it has no resources of its own
  local prefix = TRANSLATED[class]
  local real = prefix and ("kubernetes.io/" .. prefix .. name) or name
  local limit = limits[real] or 0
  local most = math.max(limit, requests[real] or 0)
  -- Koordinator has no such default for mid resources.
  if most == 0 then return class ~= "koord-mid" and UNASKED[name] or 0 end
  local n = round(most * 1.0 * factor / 100)
  return limit > 0 and math.min(n, limit) or n
end

-- The scaling factors of a pod: those in its annotation, if the args allow it, over those in the args.
local function factors_of(pod, args)
  local text = args.allowCustomizeEstimation and fields.annotation(pod, OWN_FACTORS)
  local said = text and fields.json(text)
  local own = said and fields.map_of("integer")(said)
  return own and fields.merge(args.estimatedScalingFactors, own) or args.estimatedScalingFactors
end

-- The estimated usage of a pod, as a list of amounts.
function M.estimate(pod, args)
  local requests, limits = lists.of(kube.requests(pod)), lists.of(kube.limits(pod))
  local out, class = {}, pods.class(pod)
  for name, factor in pairs(factors_of(pod, args)) do
    out[name] = estimate_one(name, class, requests, limits, factor)
  end
  return out
end

local function condition(pod, type)
  for _, one in ipairs(dig(pod, "status", "conditions") or {}) do
    if one.type == type and one.status == "True" and one.lastTransitionTime ~= nil then
      return kube.time(one.lastTransitionTime):unix()
    end
  end
end

-- The seconds for which the estimate counts after an event: from the pod's annotation, if the args allow it,
-- or from the args.
local function seconds_after(pod, annotation, args, field)
  local text = args.allowCustomizeEstimation and fields.annotation(pod, OWN_SECONDS .. annotation)
  local own = text and text:find "^[+-]?%d+$" and math.tointeger(tonumber(text))
  return own and own >= 0 and own or args[field] or 0
end

-- The time until which the estimate counts even if the pod is in the report.
local function deadline(pod, at, args)
  local initialized = condition(pod, "Initialized")
  local after = seconds_after(pod, "initialized", args, "estimatedSecondsAfterInitialized")
  if after > 0 and initialized then return initialized + after end
  after = seconds_after(pod, "pod-scheduled", args, "estimatedSecondsAfterPodScheduled")
  return after > 0 and at + after or -math.huge
end

-- ---------------------------------------------------------------- the usage of a node

-- The contents of a NodeMetric, parsed once: the usage of the pods, which of them are prod, the usage of the
-- node and the system, and the time.
local function reported(info)
  local metric = info.metric
  local known = info.reported
  if known and known.metric == metric then return known end
  local time = dig(metric, "status", "updateTime")
  known = { metric = metric, used = nodes.used_by_pods(metric), prod = {},
    updated = time and kube.time(time):unix() or -math.huge,
    interval = dig(metric, "spec", "metricCollectPolicy", "reportIntervalSeconds") or REPORT_INTERVAL,
    usage = lists.of(dig(metric, "status", "nodeMetric", "nodeUsage", "resources")),
    system = lists.of(dig(metric, "status", "nodeMetric", "systemUsage", "resources")) }
  for _, report in ipairs(dig(metric, "status", "podsMetric") or {}) do
    known.prod[(report.namespace or "") .. "/" .. (report.name or "")] = report.priority == "koord-prod"
  end
  info.reported = known
  return known
end

-- The facts of a pod on the node, computed once.
local function known_of(entry, args)
  local known = entry.known
  if known and known.args == args then return known end
  entry.known = { args = args, estimate = M.estimate(entry.pod, args), prod = is_prod(entry.pod),
    scheduled = condition(entry.pod, "PodScheduled") }
  return entry.known
end

local function add_delta(sum, estimate, used)
  for name, n in pairs(estimate) do
    sum[name] = (sum[name] or 0) + math.max(n - (used and used[name] or 0), 0)
  end
end

-- Adds a pod to the sums of load_of.
local function add_to(load, entry, report, state, args)
  local key = pods.key(entry.pod)
  local known, mine = known_of(entry, args), report.used[key]
  if mine and next(mine) == nil then mine = nil end
  local at = known.scheduled or entry.at or state.now
  load.guessed = load.guessed or at == state.now and not known.scheduled
  local late = mine == nil or report.updated - report.interval < at
    or deadline(entry.pod, at, args) > report.updated
  local estimate, prod = known.estimate, known.prod
  local counted = prod and report.prod[key] and mine
  if late then add_delta(load.delta, estimate, mine) end
  lists.accumulate(load.estimated, estimate)
  if counted then lists.accumulate(load.prod, mine) end
  if prod and not counted then
    add_delta(load.prod, estimate, nil)
  elseif prod and late then
    add_delta(load.prod, estimate, mine)
  end
end

-- { usage, delta, estimated, prod, total }: the reported usage, the additional estimate of late pods, the
-- estimate of all pods, the usage and estimate of prod pods, and the first two together, once they are
-- needed. Pods that were added since the last call are added to the sums.
local function load_of(info, state, args)
  local load, report, added = info.load, reported(info), info.added
  if not load then
    load = { usage = report.usage, delta = {}, estimated = {}, prod = {} }
    if args.prodUsageIncludeSys then load.prod = lists.copy(report.system) end
    for _, entry in pairs(info.pods) do add_to(load, entry, report, state, args) end
    info.load = load
  elseif added then
    load.total = nil
    for i = 1, #added do add_to(load, added[i], report, state, args) end
  end
  info.added = nil
  return load
end

-- The aggregate of a type, such as "p95", over a duration. Without a duration: the longest reported one, or
-- the current usage. Nil: that duration is not reported.
local function aggregated(metric, type, duration)
  local wanted = duration and kube.duration(duration) or 0
  local longest, found = -1, nil
  for _, entry in ipairs(dig(metric, "status", "nodeMetric", "aggregatedNodeUsages") or {}) do
    local resources, seconds = dig(entry, "usage", type, "resources"), kube.duration(entry.duration or "0s")
    local fits = wanted == 0 and seconds >= longest or wanted ~= 0 and seconds == wanted
    if not empty(resources) and fits then longest, found = seconds, lists.of(resources) end
  end
  if found or wanted ~= 0 then return found end
  return lists.of(dig(metric, "status", "nodeMetric", "nodeUsage", "resources"))
end

-- The usage of the node, and the estimate of the pod that would add to it. which: "prod", { type, duration }
-- or nil.
local function used_on(pod, info, cycle, which)
  local load = load_of(info, cycle.state, cycle.args.loadaware)
  cycle.estimate = cycle.estimate or M.estimate(pod, cycle.args.loadaware)
  if which == "prod" then return load.prod, cycle.estimate end
  if which then
    local base = aggregated(info.metric, which.type, which.duration)
    return base and lists.add(base, load.delta) or load.estimated, cycle.estimate
  end
  load.total = load.total or lists.add(load.usage, load.delta)
  return load.total, cycle.estimate
end

-- ---------------------------------------------------------------- filter and score

-- The state of a node's report: "fresh", "expired" or "unknown".
local function state_of(info, now, args)
  if info.metric == nil then return "unknown" end
  local updated, limit = reported(info).updated, args.nodeMetricExpirationSeconds
  local old = updated == -math.huge or limit > 0 and now - updated >= limit
  if old then return "expired" end
  return dig(info.metric, "status", "nodeMetric") ~= nil and "fresh" or "unknown"
end

local function complete(aggregate)
  return aggregate and not empty(aggregate.usageThresholds) and (aggregate.usageAggregationType or "") ~= ""
end

-- The thresholds of a node: for each kind, those in its annotation, or else those in the args.
local function thresholds_of(node, args)
  local text = fields.annotation(node, CUSTOM)
  local own = text and fields.json(text) or {}
  local aggregate = complete(own.aggregatedUsage) and own.aggregatedUsage
    or complete(args.aggregated) and args.aggregated or nil
  return {
    all = empty(own.usageThresholds) and args.usageThresholds or own.usageThresholds,
    prod = empty(own.prodUsageThresholds) and args.prodUsageThresholds or own.prodUsageThresholds,
    aggregate = aggregate,
  }
end

local function of_daemon_set(pod)
  for _, owner in ipairs(dig(pod, "metadata", "ownerReferences") or {}) do
    if owner.kind == "DaemonSet" then return true end
  end
  return false
end

-- Whether there is no threshold above 0.
local function none(thresholds, args)
  for _, name in ipairs(args.resources) do
    if thresholds and (thresholds[name] or 0) ~= 0 then return false end
  end
  return true
end

local function which_thresholds(pod, limits, args)
  if not none(limits.prod, args) and is_prod(pod) then return limits.prod, "prod" end
  local aggregate = limits.aggregate
  if aggregate then
    return aggregate.usageThresholds, { type = aggregate.usageAggregationType,
      duration = aggregate.usageAggregatedDuration }
  end
  return limits.all, nil
end

local function allocatable_of(info)
  if not info.raw then
    info.raw = lists.copy(info.allocatable)
    for name, n in pairs(nodes.raw_allocatable(info.node) or {}) do info.raw[name] = n end
  end
  return info.raw
end

-- A report expires; and a pod without the time at which it was scheduled counts as scheduled now.
function M.age(info, now, args)
  if info.metric == nil then return nil end
  return info.load and info.load.guessed and now or state_of(info, now, args.loadaware)
end

function M.filter(pod, info, cycle)
  if info.metric == nil then return nil end
  local args = cycle.args.loadaware
  if info.limits_of ~= args then info.limits, info.limits_of = thresholds_of(info.node, args), args end
  local thresholds, which = which_thresholds(pod, info.limits, args)
  if of_daemon_set(pod) or none(thresholds, args) then return nil end
  if state_of(info, cycle.state.now, args) == "expired" and args.filterExpiredNodeMetrics then
    local passes = args.enableScheduleWhenNodeMetricsExpired
    return not passes and { "node(s) nodeMetric expired" } or nil
  elseif dig(info.metric, "status", "nodeMetric") == nil then
    return nil
  end
  local all, used, more = allocatable_of(info), used_on(pod, info, cycle, which)
  for _, name in ipairs(args.resources) do
    local total, threshold = all[name] or 0, thresholds[name] or 0
    local n = (used[name] or 0) + (more[name] or 0)
    if threshold ~= 0 and total ~= 0 and round(n / total * 100) > threshold then
      local what = type(which) == "table" and "aggregated usage" or "usage"
      return { ("node(s) %s %s exceed threshold"):format(name, what) }
    end
  end
  return nil
end

-- Whether a message contains a refusal of this plugin.
function M.refuses(message)
  return message:find("usage exceed threshold", 1, true) ~= nil
    or message:find("nodeMetric expired", 1, true) ~= nil
end

-- Whether a new report may let refused pods fit: the usage fell, or the previous report was old.
function M.eases(now, old)
  local function used(metric)
    return lists.of(dig(metric, "status", "nodeMetric", "nodeUsage", "resources"))
  end
  local at, before = dig(now, "status", "updateTime"), dig(old, "status", "updateTime")
  if at == nil or before == nil then return at ~= nil end
  local gap = kube.time(at):unix() - kube.time(before):unix()
  return gap >= M.DEFAULTS.nodeMetricExpirationSeconds or not (lists.within(used(old), used(now)))
end

local function least_used(used, all)
  if all == 0 or used > all then return 0 end
  return (all - used) * MAX // all
end

-- 0 for a node without a fresh report.
function M.score(pod, info, cycle)
  local args = cycle.args.loadaware
  if state_of(info, cycle.state.now, args) ~= "fresh" then return 0 end
  local which, aggregate = nil, args.aggregated
  if args.scoreAccordingProdUsage and is_prod(pod) then
    which = "prod"
  elseif aggregate and (aggregate.scoreAggregationType or "") ~= "" then
    which = { type = aggregate.scoreAggregationType, duration = aggregate.scoreAggregatedDuration }
  end
  local all, used, more = allocatable_of(info), used_on(pod, info, cycle, which)
  local dominant = args.dominantResourceWeight
  local sum, weights, least = 0, dominant, MAX
  for _, name in ipairs(args.resources) do
    local weight, n = args.resourceWeights[name] or 0, (used[name] or 0) + (more[name] or 0)
    local score = least_used(n, all[name] or 0)
    sum, weights, least = sum + score * weight, weights + weight, math.min(least, score)
  end
  return weights > 0 and (sum + least * dominant) // weights or 0
end

return M
