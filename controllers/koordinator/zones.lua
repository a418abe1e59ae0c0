-- zones.lua - batch resources of each NUMA zone, on the node's NodeResourceTopology.
-- Koordinator means to set the zones of a degraded node to zero and does not (it changes a copy), so its
-- old values live on. Here they do become zero: a scheduler must not find room in a zone of a node that
-- offers none.

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

-- Sets one resource of a zone; says whether that changed anything worth a write.
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

-- The resource lists that should change, by the zone's place in the list; empty when all is close enough as
-- it is.
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
