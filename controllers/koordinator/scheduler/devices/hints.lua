-- hints.lua - the NUMA nodes whose devices suffice for a pod, for the NUMA policy of NodeNUMAResource.

local allocate = require "scheduler.devices.allocate"
local fields = require "fields"
local inventory = require "scheduler.devices.inventory"
local merge = require "scheduler.numa.merge"

local M = {}

local BEST = 500 -- the score of nodes with the GPUs that the whole node would give: more than any of cpu

-- Whether the NUMA nodes of the mask have as many devices of each type as the pod asks for; a type that none
-- of them has does not count.
local function are_there(on, mask)
  for type, request in pairs(on.requests) do
    local stock, n = on.known[type], 0
    for _, about in pairs(stock.about) do
      if about.node and about.node >= 0 and mask & (1 << about.node) ~= 0 then n = n + 1 end
    end
    if n > 0 and n < inventory.count(stock, request) then return false end
  end
  return true
end

local function gpus(devices)
  local out = {}
  for i, one in ipairs(devices.gpu or {}) do out[i] = one.minor end
  return out
end

-- { [type] = list of hints } as merge.merge takes them; nil: the devices are in no NUMA node; nil and a list
-- of reasons: not even all NUMA nodes together have them. from, on: see allocate.devices.
function M.of(from, on)
  if #on.known.nodes == 0 then return nil end
  local found, least, whole, reasons = {}, math.huge, nil, allocate.lacking(on)
  if reasons then return nil, reasons end
  for _, mask in ipairs(merge.masks(on.known.nodes)) do
    local devices
    if are_there(on, mask) then
      devices, reasons = allocate.devices(from, setmetatable({ mask = mask }, { __index = on }))
    else
      reasons = { "Insufficient NUMA Scoped Devices" }
    end
    whole = devices
    if devices then
      found[#found + 1] = { mask = mask, gpus = gpus(devices) }
      least = math.min(least, merge.count(mask))
    end
  end
  if not whole then return nil, reasons end
  local list, best = {}, gpus(whole)
  for i, one in ipairs(found) do
    list[i] = { mask = one.mask, score = fields.equal(one.gpus, best) and BEST or 0,
      preferred = merge.count(one.mask) == least }
  end
  local out = {}
  for type in pairs(on.requests) do out[type] = list end
  return out
end

return M
