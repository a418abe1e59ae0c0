-- nodes.lua - what a Node and its NodeMetric say, as lists of amounts (lib/lists.lua).

local fields = require "fields"
local lists = require "lib.lists"

local M = {}

M.RAW = "node.koordinator.sh/raw-allocatable"

-- What a node has before it was amplified.
function M.raw_allocatable(node)
  local text = fields.annotation(node, M.RAW)
  return text and lists.parse(text) or lists.of(fields.dig(node, "status", "allocatable"))
end

-- What each reported pod uses, by "namespace/name".
function M.used_by_pods(metric)
  local out = {}
  for _, report in ipairs(fields.dig(metric, "status", "podsMetric") or {}) do
    out[(report.namespace or "") .. "/" .. (report.name or "")] =
      lists.of(fields.dig(report, "podUsage", "resources"))
  end
  return out
end

return M
