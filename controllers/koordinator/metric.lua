-- metric.lua - reads a NodeMetric: whether it is fresh, what the system uses, what each pod uses.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local colocation = require "colocation"
local pods = require "pods"
local remembered = require "remembered"

local dig = fields.dig

local M = {}

local MINUTE = 60
local memory = remembered.of_metric
local NOTHING = amounts.new() -- constant

local last_text, last_time -- many nodes report at the same time

-- The time of the report in seconds; nil if it was never valid.
local function updated(metric)
  local text = dig(metric, "status", "updateTime")
  -- An updateTime without a measurement makes Koordinator crash; here it counts as no measurement.
  if text == nil or dig(metric, "status", "nodeMetric") == nil then return nil end
  if text ~= last_text then last_text, last_time = text, kube.time(text):unix() end
  return last_time
end

-- When the metric expires, in seconds; nil if it was never valid. At that very second it is still valid:
-- Koordinator compares strictly. place: the name of the metric's node; nil: nothing is remembered.
---@param place string?
function M.expires(metric, minutes, place)
  local known = memory(metric, place)
  if known.updated == nil then known.updated = updated(metric) or false end
  return known.updated and known.updated + minutes * MINUTE or nil
end

---@param place string?
function M.stale(metric, minutes, now, place)
  local expires = M.expires(metric, minutes, place)
  return expires == nil or now > expires
end

-- The same of the input of a calculation, which may say it: several ask.
function M.is_stale(input)
  if input.stale ~= nil then return input.stale end
  return M.stale(input.nodeMetric, colocation.setting(input.strategy, "degradeTimeMinutes"), input.now,
    input.place)
end

-- The amounts at two paths.
local function usage_at(metric, cpu_path, memory_path)
  return amounts.new(kube.milli_pick(metric, cpu_path, memory_path))
end

local function applications(metric, class)
  local used = amounts.new()
  for _, app in ipairs(dig(metric, "status", "hostApplicationMetric") or {}) do
    if (pods.default_priority[app.priority] or 0) > pods.default_priority[class] then
      amounts.accumulate(used, usage_at(app, "usage.resources.cpu", "usage.resources.memory"))
    end
  end
  return used
end

-- The amounts of the node, read together.
local function amounts_of(metric, known)
  if not known.system then
    local system_cpu, system_memory, cpu, used, spare_cpu, spare_memory = kube.milli_pick(metric,
      "status.nodeMetric.systemUsage.resources.cpu", "status.nodeMetric.systemUsage.resources.memory",
      "status.nodeMetric.nodeUsage.resources.cpu", "status.nodeMetric.nodeUsage.resources.memory",
      "status.prodReclaimableMetric.resource.resources.cpu",
      "status.prodReclaimableMetric.resource.resources.memory")
    known.system, known.reclaimable = amounts.new(system_cpu, system_memory), NOTHING
    known.used = cpu and used and amounts.new(cpu, used)
    if spare_cpu or spare_memory then known.reclaimable = amounts.new(spare_cpu, spare_memory) end
    known.alone = dig(metric, "status", "hostApplicationMetric") == nil -- in most clusters
  end
  return known
end

-- System usage, including host applications of a class above `class`, which live on the node's reserve. An
-- application without a class is below all classes. Callers must not change it.
---@param place string?
function M.system_used(metric, class, place)
  local known = amounts_of(metric, memory(metric, place))
  if known.alone then return known.system end
  known[class] = known[class] or amounts.add(known.system, applications(metric, class))
  return known[class]
end

-- What the node uses, or nil if that is not completely known; and what prod pods are predicted not to need.
-- Callers must not change them.
---@param place string?
function M.idle(metric, place)
  local known = amounts_of(metric, memory(metric, place))
  return known.used or nil, known.reclaimable
end

-- ---------------------------------------------------------------- the reported pods

local function reports(metric)
  local list = dig(metric, "status", "podsMetric") or {}
  local out = { list = list }
  out.cpu, out.memory = kube.milli_columns(list, "podUsage.resources.cpu", "podUsage.resources.memory")
  out.at, out.n = kube.places(list, "namespace", "name")
  return out
end

-- The reported pods: at, the place of each by "namespace/name"; n, how many these are; cpu and memory,
-- columns of amounts. Callers must not change them.
---@param place string?
function M.reports(metric, place)
  local known = memory(metric, place)
  known.reports = known.reports or reports(metric)
  return known.reports
end

-- The sums of what the reported pods use, by their classes (kube.tally); nil if they have to be read one by
-- one.
---@param place string?
function M.count(metric, classes, place)
  if not place then return nil end
  local known = pods.recall(place)
  known.tally = known.tally or kube.tally { key = { "namespace", "name" },
    amounts = { "podUsage.resources.cpu", "podUsage.resources.memory" } }
  return known.tally:count(dig(metric, "status", "podsMetric"), classes) and known.tally or nil
end

-- The priority class of the i-th of the reported pods, as reported.
function M.reported_class(of, i) return of.list[i].priority end

return M
