-- nodes.lua - amounts in a Node and in its NodeMetric, as lists (lib/lists.lua).

local fields = require "fields"
local lists = require "lib.lists"

local M = {}

M.RAW = "node.koordinator.sh/raw-allocatable"

-- The allocatable resources of a node before amplification.
function M.raw_allocatable(node)
  local text = fields.annotation(node, M.RAW)
  return text and lists.parse(text) or lists.of(fields.dig(node, "status", "allocatable"))
end

-- The usage of each reported pod, by "namespace/name".
function M.used_by_pods(metric)
  local out = {}
  for _, report in ipairs(fields.dig(metric, "status", "podsMetric") or {}) do
    out[(report.namespace or "") .. "/" .. (report.name or "")] =
      lists.of(fields.dig(report, "podUsage", "resources"))
  end
  return out
end

return M
