-- metric.lua - reads a NodeMetric: whether it is fresh, what the system uses, what each pod uses.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local pods = require "pods"

local dig = fields.dig

local M = {}

local MINUTE = 60

-- ---------------------------------------------------------------- once for each report

-- What is read of a NodeMetric is remembered under the name of its node until the next report. Tables are
-- read each time: nobody knows whether they changed.
local last, last_place, last_memory -- several calculations ask for the same

local function memory(metric, place)
  if place and metric == last and place == last_place then return last_memory end
  if not place or not kube.is_view(metric) then return {} end
  local known = pods.recall(place)
  if known.metric ~= metric then known.metric, known.of_metric = metric, {} end
  last, last_place, last_memory = metric, place, known.of_metric
  return last_memory
end

-- ---------------------------------------------------------------- its parts

-- The time of the report in seconds; nil if it was never valid.
local function updated(metric)
  local text = dig(metric, "status", "updateTime")
  -- An updateTime without a measurement makes Koordinator crash; here it counts as no measurement.
  if text == nil or dig(metric, "status", "nodeMetric") == nil then return nil end
  return kube.time(text):unix()
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

-- The amounts at two paths, and whether both are there.
local function usage_at(metric, cpu_path, memory_path)
  local cpu, memory_used = kube.pick(metric, cpu_path, memory_path)
  return { cpu = amounts.milli(cpu), memory = amounts.milli(memory_used) }, cpu ~= nil and memory_used ~= nil
end

local function applications(metric, class)
  local used = amounts.new()
  for _, app in ipairs(dig(metric, "status", "hostApplicationMetric") or {}) do
    if (pods.default_priority[app.priority] or 0) > pods.default_priority[class] then
      amounts.accumulate(used, (usage_at(app, "usage.resources.cpu", "usage.resources.memory")))
    end
  end
  return used
end

-- System usage, including host applications of a class above `class`, which live on the node's reserve. An
-- application without a class is below all classes. Callers must not change it.
---@param place string?
function M.system_used(metric, class, place)
  local known = memory(metric, place)
  if not known.system then
    known.system = usage_at(metric, "status.nodeMetric.systemUsage.resources.cpu",
      "status.nodeMetric.systemUsage.resources.memory")
    known.alone = dig(metric, "status", "hostApplicationMetric") == nil -- in most clusters
  end
  if known.alone then return known.system end
  known[class] = known[class] or amounts.add(known.system, applications(metric, class))
  return known[class]
end

-- What the node uses, or nil if that is not completely known; and what prod pods are predicted not to need.
-- Callers must not change them.
---@param place string?
function M.idle(metric, place)
  local known = memory(metric, place)
  if not known.reclaimable then
    local used, complete = usage_at(metric, "status.nodeMetric.nodeUsage.resources.cpu",
      "status.nodeMetric.nodeUsage.resources.memory")
    known.used = complete and used or nil
    known.reclaimable = usage_at(metric, "status.prodReclaimableMetric.resource.resources.cpu",
      "status.prodReclaimableMetric.resource.resources.memory")
  end
  return known.used, known.reclaimable
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

-- The priority class of the i-th of the reported pods, as reported.
function M.reported_class(of, i) return of.list[i].priority end

return M
