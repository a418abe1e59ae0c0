-- allocate.lua - the devices of a node that a pod gets, of all types that it asks for.
--
--   NPUs, parts   by a template (templates.lua), then like GPUs
--   whole GPUs    a free partition (partitions.lua)
--   GPUs          those near each other (scopes.lua), if the Device says where they are
--   all others    the `count` devices with enough free: first those of the pod's Reservation, or behind the
--                 PCIe switches of the devices that they belong to, then those with the best score
--
-- Joint allocation (the annotation device-joint-allocate): the first type is allocated, then the others
-- behind its PCIe switches, one device for each switch. With requiredScope SamePCIe they must be there.

local fields = require "fields"
local inventory = require "scheduler.devices.inventory"
local lists = require "lib.lists"
local partitions = require "scheduler.devices.partitions"
local requests = require "scheduler.devices.request"
local scopes = require "scheduler.devices.scopes"
local scores = require "scheduler.scores"
local templates = require "scheduler.devices.templates"

local M = {}

local MEMORY, RATIO, MAX = requests.MEMORY, requests.RATIO, 100

-- The score of a device or a node with these total and free amounts after the request is added.
function M.score(each, total, free, strategy)
  local sum, weights = 0, 0
  for _, resource in ipairs(strategy.resources) do
    local name = resource.name
    local all, left = total[name] or 0, free[name] or 0
    if all > 0 then
      local used = all >= left and all - left + (each[name] or 0) or all
      sum, weights = sum + resource.weight * scores.points(strategy, used, all), weights + resource.weight
    end
  end
  return weights > 0 and sum // weights or 0
end

-- ---------------------------------------------------------------- one type

-- Adds the memory to a memory ratio, or the ratio to the memory, from the GPU's total.
local function complete(each, total)
  local out, memory = lists.copy(each), total[MEMORY] or 0
  if out[RATIO] and not out[MEMORY] then
    out[MEMORY] = out[RATIO] * memory // MAX
  elseif out[MEMORY] and not out[RATIO] and memory > 0 then
    out[RATIO] = math.floor(out[MEMORY] / memory * MAX)
  end
  return out
end

-- Sorts devices by their PCIe switches: the best one of each wanted switch, then the second ones; at the end
-- those of other switches. devices: list of { minor, ... }, the best first.
local function by_switch(devices, wanted, about)
  local seen, round, at = {}, {}, {}
  for i, one in ipairs(devices) do
    local pcie = about[one.minor].pcie
    if pcie and wanted[pcie] then seen[pcie] = (seen[pcie] or 0) + 1 end
    round[one], at[one] = pcie and seen[pcie] or math.huge, i
  end
  table.sort(devices, function(a, b)
    if round[a] ~= round[b] then return round[a] < round[b] end
    return at[a] < at[b]
  end)
end

-- All devices of the pool, the preferred ones first, as { minor, fits, first, score }.
local function ranked(pool, request, strategy)
  local out, first = {}, pool.first
  for i, minor in ipairs(pool.minors) do
    local free = pool.free[minor]
    out[i] = { minor = minor, fits = not lists.is_zero(free) and scopes.has(free, request.each),
      first = first and first[minor] ~= nil or false,
      score = strategy and M.score(request.each, pool.stock.total[minor], free, strategy) or 0 }
  end
  table.sort(out, function(a, b)
    if a.first ~= b.first then return a.first end
    if a.score ~= b.score then return a.score > b.score end
    return a.minor < b.minor
  end)
  return out
end

-- At least `how.least` and at most `how.most` devices of any place, with their virtual functions, if the
-- request is for some; nil: there are too few. how.switches: a set of PCIe switches, or nil.
local function anywhere(pool, request, how)
  local devices, out = ranked(pool, request, how.strategy), {}
  if how.switches and not pool.first then by_switch(devices, how.switches, pool.stock.about) end
  for _, one in ipairs(devices) do
    if #out == how.most then break end
    local vf = one.fits and request.vfs and inventory.vf(pool, request, one.minor)
    if one.fits and (vf or not request.vfs) then out[#out + 1] = { minor = one.minor, vf = vf } end
  end
  return #out >= how.least and out or nil
end

-- The GPUs of one partition or scope, as `anywhere` returns them; nil: any will do; nil and the reason.
local function together(pool, request, node, strategy)
  local minors, why = partitions.minors(pool, request, node)
  if not minors and not why then
    minors, why = scopes.minors(pool, request, function(minor)
      -- As upstream, which exchanges free and total here: a GPU in use counts as full.
      return strategy and M.score(request.each, pool.free[minor], pool.stock.total[minor], strategy) or 0
    end)
  end
  local out = {}
  for i, minor in ipairs(minors or {}) do out[i] = { minor = minor } end
  return minors and out, why
end

-- The same with the devices of the pod's Reservation alone; if these are too few, any will do, unless the
-- pod or the node wants them together.
local function gpus(pool, request, node, strategy)
  if not pool.first then return together(pool, request, node, strategy) end
  local own = setmetatable({ minors = {} }, { __index = pool })
  for _, minor in ipairs(pool.minors) do
    if pool.first[minor] then own.minors[#own.minors + 1] = minor end
  end
  local out, why = together(own, request, node, strategy)
  if out or not why or why == scopes.FEW then return out end
  return together(pool, request, node, strategy)
end

-- The devices of a type as the annotation lists them, sorted by minor; or nil and the reason. switches: those
-- that at least one device each is wanted for, or nil; all: whether each must get one.
local function choose(type, from, on, switches, all)
  local stock, request = on.known[type], on.requests[type]
  local template = templates.on(on.node, request)
  if template == false then return nil, templates.NONE end
  local pool = inventory.pool(stock, type, request, from, on.mask)
  local n, n_switches = inventory.count(stock, request), switches and #fields.names(switches) or 0
  local how = { least = all and math.max(n, n_switches) or n, most = math.max(n, n_switches),
    switches = switches, strategy = on.strategy }
  local chosen, why
  if type == "gpu" then
    how.switches = nil
    chosen, why = gpus(pool, request, on.node, on.strategy)
  end
  if not chosen and not why then chosen = anywhere(pool, request, how) end
  if not chosen then return nil, why or ("Insufficient %s devices"):format(type) end
  table.sort(chosen, function(a, b) return a.minor < b.minor end)
  local out = {}
  for i, one in ipairs(chosen) do
    local more = { vfs = one.vf and { one.vf } or nil, gpuSharedResourceTemplate = template }
    out[i] = { minor = one.minor, id = stock.about[one.minor].id, extension = next(more) and more or nil,
      resources = lists.texts(complete(request.each, stock.total[one.minor])) }
  end
  return out
end

-- ---------------------------------------------------------------- several types

local function switches_of(stock, devices)
  local out = {}
  for _, one in ipairs(devices) do
    local pcie = stock.about[one.minor].pcie
    if pcie then out[pcie] = true end
  end
  return out
end

-- The devices of the types that belong together, by type; or nil and the reason.
local function jointly(joint, from, on)
  local first = joint.types[1]
  local devices, why = choose(first, from, on)
  if not devices then return nil, why end
  local out, wanted = { [first] = devices }, switches_of(on.known[first], devices)
  for i = 2, #joint.types do
    local type = joint.types[i]
    out[type], why = choose(type, from, on, wanted, joint.same_pcie)
    if not out[type] then return nil, why end
    if joint.same_pcie and not fields.equal(switches_of(on.known[type], out[type]), wanted) then
      return nil, "node(s) Device Joint-Allocate rules violation"
    end
  end
  return out
end

local function has_vfs(stock)
  for _, about in pairs(stock.about) do
    if #about.groups > 0 then return true end
  end
  return false
end

-- Why the node has none of what the pod asks for, used or not: a list of reasons, or nil. on: see M.devices.
function M.lacking(on)
  local devices, vfs = {}, {}
  for _, type in ipairs(requests.TYPES) do
    local request, stock = on.requests[type], on.known[type]
    if request and (next(stock.total) == nil or inventory.count(stock, request) == 0) then
      devices[#devices + 1] = ("Insufficient %s devices"):format(type)
    elseif request and request.vfs and not has_vfs(stock) then
      vfs[#vfs + 1] = ("Insufficient %s VirtualFunctions"):format(type)
    end
  end
  return #devices > 0 and devices or #vfs > 0 and vfs or nil
end

-- The pod's devices by type, or nil and a list of reasons. from: see inventory.pool. on: { node, known =
-- inventory.of, requests, joint, strategy = of scores, or nil, mask = of NUMA nodes, or nil }.
function M.devices(from, on)
  local out, reasons = {}, M.lacking(on) or {}
  if #reasons > 0 then return nil, reasons end
  if on.joint and next(on.requests, next(on.requests)) ~= nil then
    local why
    out, why = jointly(on.joint, from, on)
    if not out then return nil, { why } end
  end
  for _, type in ipairs(requests.TYPES) do
    if on.requests[type] and not out[type] then
      local devices, why = choose(type, from, on)
      out[type] = devices
      if not devices then reasons[#reasons + 1] = why end
    end
  end
  if #reasons > 0 then return nil, reasons end
  return out
end

return M
