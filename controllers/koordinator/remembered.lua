-- remembered.lua - what is read of a node and of its NodeMetric is read once for each of their versions, and
-- kept under the name of the node until the next one. Tables are read each time: nobody knows whether they
-- changed.

local kube = require "kubelua"
local fields = require "fields"
local pods = require "pods"

local M = {}

-- Several calculations in a row ask for the same object. `new` lists the usual fields, so that the table has
-- room for them.
local function memory_of(kind, new)
  local last, last_place, last_own
  return function(object, place)
    if object ~= nil and object == last and place == last_place then return last_own end
    local name = kube.is_view(object) and (place or kube.pick(object, "metadata.name"))
    if not name then return {} end
    local known = pods.recall(name)
    local own = known[kind]
    if not own or own.object ~= object then
      own = new(object)
      known[kind] = own
    end
    last, last_place, last_own = object, place, own
    return own
  end
end

-- A table for what is read of a node. Its fields belong to the module that sets them.
---@type fun(node: any): table
M.of_node = memory_of("of_node", function(node)
  return { object = node, sized = nil, cfg = nil, strategy = nil, reserved = nil, capacity = nil,
    annotations = nil, labels = nil, allocatable = nil, usable = nil, has_devices = nil, only_ours = nil,
    normalized_by = nil, normalized = nil, amplified_by = nil, amplified = nil, mid_by = nil, mid = nil,
    margin_by = nil, margin = nil }
end)

-- The same of a NodeMetric. place: the name of its node; nil: nothing is remembered.
local of_metric = memory_of("of_metric", function(metric)
  return { object = metric, updated = nil, system = nil, used = nil, reclaimable = nil, alone = nil }
end)

---@param place string?
function M.of_metric(metric, place) return place and of_metric(metric, place) or {} end

-- The node's annotations, labels and allocatable amounts as plain tables; empty if there are none. Callers
-- must not change them.
local function part(name, ...)
  local path = { ... }
  return function(node)
    local own = M.of_node(node)
    own[name] = own[name] or fields.copy(fields.dig(node, table.unpack(path))) or {}
    return own[name]
  end
end

M.annotations = part("annotations", "metadata", "annotations")
M.labels = part("labels", "metadata", "labels")
M.allocatable = part("allocatable", "status", "allocatable")

return M
