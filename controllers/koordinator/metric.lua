-- metric.lua - what a NodeMetric says: is it fresh, what does the system use, what does each pod use.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local pods = require "pods"

local dig = fields.dig

local M = {}

local MINUTE = 60

-- When the metric stops being trusted, in seconds; nil when it never was. At that very second it still is:
-- Koordinator compares strictly.
function M.expires(metric, minutes)
  local updated = dig(metric, "status", "updateTime")
  -- An updateTime without a measurement makes Koordinator crash; here it is no measurement.
  if updated == nil or dig(metric, "status", "nodeMetric") == nil then return nil end
  return kube.time(updated):unix() + minutes * MINUTE
end

function M.stale(metric, minutes, now)
  local expires = M.expires(metric, minutes)
  return expires == nil or now > expires
end

-- A Koordinator ResourceMap: { resources = { cpu, memory, ... } }.
function M.usage(map) return amounts.of(dig(map, "resources")) end

-- System usage, and with it the host applications of a class above `class`: they live on what the node
-- keeps for itself. An application without a class stands below all.
function M.system_used(metric, class)
  local used = M.usage(dig(metric, "status", "nodeMetric", "systemUsage"))
  for _, app in ipairs(dig(metric, "status", "hostApplicationMetric") or {}) do
    if (pods.default_priority[app.priority] or 0) > pods.default_priority[class] then
      used = amounts.add(used, M.usage(app.usage))
    end
  end
  return used
end

-- The reported pods by "namespace/name": { used = amounts, class = priority class as reported }.
function M.pods(metric)
  local reported = {}
  for _, info in ipairs(dig(metric, "status", "podsMetric") or {}) do
    reported[(info.namespace or "") .. "/" .. (info.name or "")] = { used = M.usage(info.podUsage),
      class = info.priority }
  end
  return reported
end

return M
