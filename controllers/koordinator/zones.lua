-- zones.lua - batch resources of each NUMA zone, on the node's NodeResourceTopology. Koordinator intends to
-- set the zones of a degraded node to zero, but changes a copy, so the old values stay. Here they become
-- zero, so that no scheduler uses a zone of a node that offers nothing.

local kube = require "kubelua"
local amounts = require "amounts"
local batchresource = require "batchresource"
local fields = require "fields"
local prepare = require "prepare"

local M = {}

local SIDES = { "capacity", "allocatable", "available" }

local function by_name(a, b) return a.name < b.name end

local function find(resources, name)
  for _, info in ipairs(resources) do
    if info.name == name then return info end
  end
end

-- Sets one resource of a zone; returns whether the change needs a write.
local function set(resources, name, quantity, threshold)
  local info = find(resources, name)
  if not info then
    local text = tostring(quantity)
    resources[#resources + 1] = { name = name, capacity = text, allocatable = text, available = text }
    table.sort(resources, by_name)
    return true
  end
  local changed = false
  for _, side in ipairs(SIDES) do
    if prepare.differs(info[side], quantity, threshold) then
      info[side] = tostring(quantity)
      changed = true
    end
  end
  return changed
end

local function clear(resources)
  local changed = false
  for _, name in ipairs(batchresource.NAMES) do
    local info = find(resources, name)
    for _, side in ipairs(info and SIDES or {}) do
      if info[side] ~= nil and not kube.qty(info[side]):is_zero() then
        info[side] = "0"
        changed = true
      end
    end
  end
  return changed
end

local function quantity_of(name, quantity, ratio)
  local milli = prepare.normalized(name, quantity, ratio)
  if milli % 1000 == 0 then return kube.qty(prepare.text(name, amounts.bytes(milli))) end
  return kube.milli(milli)
end

-- The resource lists that must be written, by the position of the zone; empty when no difference is above the
-- threshold.
function M.changes(zones, plan, threshold)
  local changes, ratio = {}, prepare.ratio(plan)
  for i, zone in ipairs(zones or {}) do
    local resources = fields.copy(zone.resources) or {}
    local wanted = plan.zones and plan.zones[zone.name]
    local changed = not wanted and clear(resources)
    for _, name in ipairs(wanted and batchresource.NAMES or {}) do
      if wanted[name] ~= nil and set(resources, name, quantity_of(name, wanted[name], ratio), threshold) then
        changed = true
      end
    end
    if changed then changes[i] = resources end
  end
  return changes
end

return M
