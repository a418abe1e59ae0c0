-- predict.lua - the predictor of a node's agent: how much of their requests prod pods will not need. It
-- keeps a histogram of each pod's use, of all pods of a class together, and of the system.
--   peak        = percentile (cpu 95, memory 98) + margin
--   by pods     = sum of max(request - peak, 0), over prod pods with enough history
--   by classes  = max(requests of prod pods - peaks of the system, of prod pods, and of pods of no class, 0)
--   reclaimable = the smaller of both; each is at most the node's allocatable minus the peaks
-- A pod without a class counts as prod.

local histogram = require "lib.histogram"
local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local pods = require "pods"

local M = {}

local dig = fields.dig

local HOUR = 3600
local CLASSES = { "koord-prod", "none" }

-- The agent's constants.
local MODELS = {
  cpu = { shape = histogram.shape(25, 1024 * 1000, 1.05), half_life = 12 * HOUR, part = 0.95 },
  memory = { shape = histogram.shape(5 * 2 ^ 20, 2 * 2 ^ 40, 1.05), half_life = 24 * HOUR, part = 0.98 },
}
local EXPIRY = HOUR // 2
M.DEFAULTS = { coldStartSeconds = 24 * HOUR, safetyMarginPercent = 10 }

function M.new() return { seen = 0, models = {} } end

local function learn(state, name, used, at)
  local model = state.models[name]
  if not model then
    model = {}
    for what, m in pairs(MODELS) do model[what] = histogram.new(m.shape, m.half_life) end
    state.models[name] = model
  end
  model.seen = at
  for what in pairs(MODELS) do histogram.add(model[what], math.max(used[what] or 0, 0), 1.0, at) end
end

local function class_of(pod) return pods.raw_class(pod.pod) or "none" end

local function is_prod(pod) return class_of(pod) == "koord-prod" or class_of(pod) == "none" end

local function forget(state, at)
  for name, model in pairs(state.models) do
    if at - model.seen > EXPIRY then state.models[name] = nil end
  end
end

-- Adds the report of a moment, once. node as node.lua reads it; metric is its NodeMetric.
function M.sample(state, node, metric, at)
  if at <= state.seen then return false end
  state.seen = at
  local sums = {}
  for _, class in ipairs(CLASSES) do sums[class] = {} end
  for _, pod in ipairs(node.pods) do
    if pod.used then
      learn(state, "pod/" .. pod.pod.metadata.uid, pod.used, at)
      if sums[class_of(pod)] then lists.accumulate(sums[class_of(pod)], pod.used) end
    end
  end
  for class, used in pairs(sums) do learn(state, class, used, at) end
  learn(state, "system", lists.of(dig(metric, "status", "nodeMetric", "systemUsage", "resources")), at)
  forget(state, at)
  return true
end

-- The peak of a histogram with its margin, or nil if it is empty.
local function peak(state, name, what, margin)
  local model = state.models[name]
  if not model then return nil end
  return math.floor(histogram.percentile(model[what], MODELS[what].part) * (100 + margin) / 100)
end

local function cold(pod, now, o)
  local created = dig(pod.pod, "metadata", "creationTimestamp")
  return created == nil or now - kube.time(created):unix() <= o.coldStartSeconds
end

-- Both parts of one resource. Pods without enough history count with their request as their peak.
local function parts(state, node, what, now, o)
  local margin, known, peaks, requests = o.safetyMarginPercent, 0, 0, 0
  for _, pod in ipairs(node.pods) do
    local asked = is_prod(pod) and pod.active and pod.asked[what] or 0
    local going = dig(pod.pod, "metadata", "deletionTimestamp") ~= nil
    local one = not going and not cold(pod, now, o) and peak(state, "pod/" .. pod.pod.metadata.uid, what,
      margin)
    requests = requests + asked
    if is_prod(pod) and pod.active then peaks = peaks + (one or asked) end
    if one then known = known + math.max(asked - one, 0) end
  end
  local system, of_classes = peak(state, "system", what, margin) or 0, 0
  for _, class in ipairs(CLASSES) do of_classes = of_classes + (peak(state, class, what, margin) or 0) end
  return { by_pods = known, pods_peak = peaks, by_classes = math.max(requests - of_classes - system, 0),
    classes_peak = of_classes + system, requests = requests }
end

-- o: DEFAULTS. Returns { reclaimable = { cpu, memory },
-- parts = { [resource] = the numbers behind it } }.
function M.predict(state, node, now, o)
  -- The node's agent does not see amplified resources.
  local out, has = { reclaimable = {}, parts = {} }, node.raw_allocatable
  for what in pairs(MODELS) do
    local p, most = parts(state, node, what, now, o), has[what] or 0
    local by_pods = math.min(p.by_pods, most - p.pods_peak)
    local by_classes = math.min(p.by_classes, most - p.classes_peak)
    out.reclaimable[what] = math.max(math.min(by_pods, by_classes), 0)
    out.parts[what] = p
  end
  return out
end

-- Converts to and from values for JSON.
function M.save(state)
  local models = {}
  for name, model in pairs(state.models) do
    models[name] = { seen = model.seen }
    for what in pairs(MODELS) do models[name][what] = histogram.save(model[what]) end
  end
  return { seen = state.seen, models = models }
end

function M.load(saved)
  local state = M.new()
  if type(saved) ~= "table" or type(saved.models) ~= "table" then return state end
  state.seen = tonumber(saved.seen) or 0
  for name, model in pairs(saved.models) do
    local known = { seen = tonumber(model.seen) or 0 }
    for what, m in pairs(MODELS) do known[what] = histogram.load(m.shape, m.half_life, model[what]) end
    state.models[name] = known
  end
  return state
end

return M
