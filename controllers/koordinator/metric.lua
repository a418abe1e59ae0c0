-- metric.lua - reads a NodeMetric: whether it is fresh, what the system uses, what each pod uses.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local pods = require "pods"

local dig = fields.dig

local M = {}

local MINUTE = 60

-- When the metric expires, in seconds; nil if it was never valid. At that very second it is still valid:
-- Koordinator compares strictly.
function M.expires(metric, minutes)
  local updated = dig(metric, "status", "updateTime")
  -- An updateTime without a measurement makes Koordinator crash; here it counts as no measurement.
  if updated == nil or dig(metric, "status", "nodeMetric") == nil then return nil end
  return kube.time(updated):unix() + minutes * MINUTE
end

function M.stale(metric, minutes, now)
  local expires = M.expires(metric, minutes)
  return expires == nil or now > expires
end

-- A Koordinator ResourceMap: { resources = { cpu, memory, ... } }.
function M.usage(map)
  return { cpu = amounts.milli(dig(map, "resources", "cpu")),
    memory = amounts.milli(dig(map, "resources", "memory")) }
end

-- System usage, including host applications of a class above `class`, which live on the node's reserve. An
-- application without a class is below all classes.
function M.system_used(metric, class)
  local used = M.usage(dig(metric, "status", "nodeMetric", "systemUsage"))
  for _, app in ipairs(dig(metric, "status", "hostApplicationMetric") or {}) do
    if (pods.default_priority[app.priority] or 0) > pods.default_priority[class] then
      used = amounts.add(used, M.usage(app.usage))
    end
  end
  return used
end

-- Whether the list is of the same pods as `reports`, in the same order and of the same classes.
local function is_of(list, reports)
  return kube.is_column(list, "name", reports.names) and kube.is_column(list, "namespace", reports.namespaces)
    and kube.is_column(list, "priority", reports.class)
end

local function read(list)
  local namespaces, names, class = kube.columns(list, "namespace", "name", "priority")
  local at = {}
  for i = 1, #list do at[(namespaces[i] or "") .. "/" .. (names[i] or "")] = i end
  return { namespaces = namespaces, names = names, class = class, at = at }
end

-- The reported pods, in columns: cpu and memory as amounts have them, class (priority class as reported), and
-- at: the place of each by "namespace/name". place: the name of the metric's node; nil: nothing is
-- remembered. As long as the reports of a place are of the same pods, it is the same table, with other cpu
-- and memory.
---@param metric table
---@param place string?
function M.reports(metric, place)
  local list, known = dig(metric, "status", "podsMetric") or {}, place and pods.recall(place) or {}
  if not known.reports or not is_of(list, known.reports) then known.reports = read(list) end
  local reports = known.reports
  reports.cpu, reports.memory = kube.milli_columns(list, "podUsage.resources.cpu",
    "podUsage.resources.memory")
  return reports
end

return M
