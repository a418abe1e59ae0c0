-- place.lua - allocates amounts of NUMA nodes and exclusive processors to a pod.
--
-- A view has the resources of a node and the allocations of its pods:
--   { topology, ratio = amplification of cpu, zones = list of { node, resources },
--     free = { [NUMA node] = list }, available = set of processors,
--     allocated = { [id] = exclusive policy of its pod }, status, strategy,
--     preferred = set of processors that are taken first, or nil,
--     limit = nil, or the most that a pod may get: { n = processors, free = { [NUMA node] = list } or
--       nil } }
-- A want is the request of a pod:
--   { request = list of amounts, bind = whether it gets exclusive processors,
--     policy = "FullPCPUs" or "SpreadByPCPUs", required = whether the policy must hold, exclusive,
--     n = number of processors }
-- The result is { cpus = ids, zones = list of { node, resources } }.

local lists = require "lib.lists"
local merge = require "scheduler.numa.merge"
local take = require "scheduler.numa.take"

local M = {}

local MILLI = 1000
local FEW = "not enough cpus available to satisfy request"
M.FEW = FEW

function M.amplify(n, ratio) return ratio and ratio > 1 and math.ceil(n * ratio) or n end

-- ---------------------------------------------------------------- the view

local function amplified(zones, ratios)
  local out = {}
  for i, zone in ipairs(zones) do
    local resources = {}
    for name, n in pairs(zone.resources) do resources[name] = M.amplify(n, ratios[name]) end
    out[i] = { node = zone.node, resources = resources }
  end
  return out
end

-- { [NUMA node] = "idle", "single" (its pods have processors only there) or "shared" }.
local function statuses(topology, placed)
  local single, shared, out = {}, {}, {}
  for _, one in ipairs(placed) do
    local nodes, n = {}, 0
    for _, id in ipairs(one.all or one.cpus) do
      local cpu = topology.cpus[id]
      if cpu and not nodes[cpu.node] then nodes[cpu.node], n = true, n + 1 end
    end
    for node in pairs(nodes) do (n > 1 and shared or single)[node] = true end
  end
  for _, zone in ipairs(topology.zones) do
    out[zone.node] = shared[zone.node] and "shared" or single[zone.node] and "single" or "idle"
  end
  return out
end

local function give(view, room, limited)
  view.preferred = {}
  for _, id in ipairs(room.cpus) do view.preferred[id] = true end
  if not limited then return end
  view.limit = { n = #room.cpus }
  for _, zone in ipairs(room.zones) do
    view.limit.free = view.limit.free or {}
    view.limit.free[zone.node] = zone.resources
  end
end

-- placed: the shares { cpus, zones, exclusive } of the node's pods, and those of its Reservations without
-- their pods' shares, with all = all their processors. room: nil, or one of the latter, which the view may
-- allocate from; limited: and only from it. ratios: of the node, for a topology without ratios.
function M.view(topology, placed, ratios, strategy, room, limited)
  local all = topology.ratios or ratios or {}
  local view = { topology = topology, ratio = all.cpu, free = {}, available = {}, allocated = {}, under = {},
    zones = topology.ratios and topology.zones or amplified(topology.zones, all),
    status = statuses(topology, placed), strategy = strategy }
  local taken, bound = {}, {}
  if room then give(view, room, limited) end
  for _, one in ipairs(placed) do
    for _, id in ipairs(one ~= room and one.cpus or {}) do
      local cpu = topology.cpus[id]
      if cpu and view.allocated[id] == nil then bound[cpu.node] = (bound[cpu.node] or 0) + MILLI end
      view.allocated[id] = one.exclusive or ""
    end
    for _, zone in ipairs(one ~= room and one.zones or {}) do
      taken[zone.node] = taken[zone.node] or {}
      lists.accumulate(taken[zone.node], zone.resources)
    end
  end
  for id in pairs(topology.cpus) do
    if view.allocated[id] == nil and not topology.reserved[id] then view.available[id] = true end
  end
  for _, zone in ipairs(view.zones) do
    local used = taken[zone.node] or {}
    local own = used.cpu and bound[zone.node] or 0
    local free = {}
    for name, n in pairs(zone.resources) do
      local more = name == "cpu" and M.amplify(own, view.ratio) - own or 0
      free[name] = math.max(n - (used[name] or 0) - more, 0)
    end
    view.free[zone.node] = free
  end
  return view
end

-- ---------------------------------------------------------------- processors

-- The resources of a view under a required policy, cached: { set = processors, free = by NUMA node }.
local function under(view, want)
  if not want.required then return { set = view.available, free = view.free } end
  view.under[want.policy] = view.under[want.policy] or {}
  return view.under[want.policy]
end

-- The processors that the policy allows: those of whole free cores, or the first free one of each core.
local function allowed(view, want)
  local known = under(view, want)
  if known.set then return known.set end
  local cores, out = {}, {}
  for id in pairs(view.available) do
    local core = view.topology.cpus[id].core
    cores[core] = cores[core] or {}
    table.insert(cores[core], id)
  end
  for _, ids in pairs(cores) do
    table.sort(ids)
    if want.policy == "SpreadByPCPUs" then
      out[ids[1]] = true
    elseif want.policy ~= "FullPCPUs" or #ids == view.topology.per_core then
      for _, id in ipairs(ids) do out[id] = true end
    end
  end
  known.set = out
  return out
end

-- Whether the ids satisfy a required policy: whole cores, or one processor of each core.
local function holds(view, want, ids)
  if not want.required then return true end
  local cores, n = {}, 0
  for _, id in ipairs(ids) do
    local core = view.topology.cpus[id].core
    if not cores[core] then cores[core], n = true, n + 1 end
  end
  if want.policy == "FullPCPUs" then return n * view.topology.per_core == #ids end
  return want.policy ~= "SpreadByPCPUs" or n == #ids
end

local function within(view, set, node)
  local out, n = {}, 0
  for id in pairs(set) do
    if view.topology.cpus[id].node == node then out[id], n = true, n + 1 end
  end
  return out, n
end

local function some_of(view, want, set, n)
  return take.take { topology = view.topology, available = set, allocated = view.allocated, n = n,
    bind = want.policy, exclusive = want.exclusive, strategy = view.strategy }
end

-- n processors of the set, preferred ones first; nil: there are not enough.
local function some(view, want, set, n)
  local first, rest, known = {}, {}, 0
  for id in pairs(view.preferred or {}) do
    if set[id] then first[id], known = true, known + 1 end
  end
  if known == 0 then return some_of(view, want, set, n) end
  local out = some_of(view, want, first, math.min(n, known))
  if #out == n then return out end
  for id in pairs(set) do rest[id] = not first[id] or nil end
  local more = some_of(view, want, rest, n - #out)
  return more and table.move(more, 1, #more, #out + 1, out)
end

-- The processors of a pod in its NUMA nodes (in all, if it has none); or nil and the reason.
local function processors(view, want, zones)
  local set, out = allowed(view, want), {}
  if #zones == 0 then
    out = some(view, want, set, want.n)
  else
    for _, zone in ipairs(zones) do
      local here, n = within(view, set, zone.node)
      local ids = some(view, want, here, math.min(n, (zone.resources.cpu or 0) // MILLI))
      table.move(ids, 1, #ids, #out + 1, out)
    end
  end
  if not out or #out ~= want.n then return nil, FEW end
  if not holds(view, want, out) then
    return nil, "insufficient CPUs to satisfy required cpu bind policy " .. want.policy
  end
  table.sort(out)
  return out
end

-- ---------------------------------------------------------------- amounts

-- The free amounts by NUMA node; under a required policy, cpu is limited to the processors that it allows.
local function trimmed(view, want)
  local known = under(view, want)
  if known.free then return known.free end
  local set, out = allowed(view, want), {}
  for node, free in pairs(view.free) do
    out[node] = lists.copy(free)
    if (free.cpu or 0) > 0 then
      local _, n = within(view, set, node)
      out[node].cpu = math.min(free.cpu, n * MILLI)
    end
  end
  known.free = out
  return out
end

-- The part of an amount for one of n NUMA nodes; exclusive processors or cores are not divided.
local function part(view, want, name, amount, n)
  if name ~= "cpu" or not want.bind then return amount // n end
  local per_core = want.required and want.policy == "FullPCPUs" and view.topology.per_core or 1
  return -(-amount // MILLI) // per_core // n * per_core * MILLI
end

-- Divides each resource evenly among the NUMA nodes of a mask, those with the least of it first: the next
-- ones make up for what they lack. Returns a list of { node, resources }; or nil and a list of reasons.
local function distribute(view, want, mask)
  local free, by_node, out, reasons = trimmed(view, want), {}, {}, {}
  local known = {}
  for _, zone in ipairs(view.zones) do
    for name in pairs(zone.resources) do known[name] = true end
  end
  for _, name in ipairs(lists.names(want.request)) do
    local left, nodes = want.request[name], merge.bits(mask)
    local function of(node) return free[node] and free[node][name] or 0 end
    table.sort(nodes, function(a, b)
      if of(a) ~= of(b) then return of(a) < of(b) end
      return a < b
    end)
    for i, node in ipairs(known[name] and nodes or {}) do
      local got = math.min(part(view, want, name, left, #nodes - i + 1), of(node))
      if got > 0 then
        by_node[node] = by_node[node] or {}
        by_node[node][name], left = got, left - got
      end
    end
    if known[name] and left > 0 then reasons[#reasons + 1] = "Insufficient NUMA " .. name end
  end
  if #reasons > 0 then return nil, reasons end
  for _, node in ipairs(merge.bits(mask)) do
    if by_node[node] then out[#out + 1] = { node = node, resources = by_node[node] } end
  end
  return out
end

local function allocate_of(view, want, mask)
  local out = { cpus = {}, zones = {}, exclusive = want.exclusive }
  if mask then
    local zones, reasons = distribute(view, want, mask)
    if not zones then return nil, reasons end
    out.zones = zones
  end
  if want.bind then
    local ids, why = processors(view, want, out.zones)
    if not ids then return nil, { why } end
    out.cpus = ids
  end
  return out
end

-- The view with its NUMA nodes reduced to the limit.
local function limited(view)
  local free = view.limit.free
  if not free then return view end
  if not view.within then
    view.within = setmetatable({ free = {}, under = {} }, { __index = view })
    for _, zone in ipairs(view.zones) do view.within.free[zone.node] = free[zone.node] or {} end
  end
  return view.within
end

-- The pod's share in the NUMA nodes of a mask (nil: without NUMA nodes); or nil and a list of reasons.
function M.allocate(view, want, mask)
  local out, reasons = allocate_of(view, want, mask)
  if not out or not view.limit then return out, reasons end
  if want.bind and want.n > view.limit.n then return nil, { FEW } end
  return allocate_of(limited(view), want, mask)
end

-- ---------------------------------------------------------------- hints

local function sum_of(view, mask)
  local total, free = {}, {}
  for _, zone in ipairs(view.zones) do
    if mask & (1 << zone.node) ~= 0 then
      lists.accumulate(total, zone.resources)
      lists.accumulate(free, view.free[zone.node])
    end
  end
  return total, free
end

local function nodes_of(view)
  local out = {}
  for i, zone in ipairs(view.zones) do out[i] = zone.node end
  return out
end

local function lacks(view, mask, name)
  for _, node in ipairs(merge.bits(mask)) do
    if (view.free[node] and view.free[node][name] or 0) == 0 then return true end
  end
  return false
end

-- The hints of each resource: { [resource] = list of hints }. score(used, total) scores the NUMA nodes of a
-- mask.
local function hints(view, want, policy, score)
  local out, least, trim = {}, {}, { zones = view.zones, free = trimmed(view, want) }
  for _, mask in ipairs(merge.masks(nodes_of(view))) do
    local total, free = sum_of(trim, mask)
    for name in pairs(want.request) do
      if total[name] then out[name] = out[name] or {} end
    end
    if M.allocate(view, want, mask) then
      local points = score(lists.sub(total, free), total)
      for name, list in pairs(out) do
        if not lacks(trim, mask, name) then
          list[#list + 1] = { mask = mask, score = points }
          least[name] = math.min(least[name] or math.huge, merge.count(mask))
        end
      end
    end
  end
  for name, list in pairs(out) do
    for _, hint in ipairs(list) do
      hint.preferred = policy == "Restricted" or merge.count(hint.mask) == least[name]
    end
  end
  return out
end

-- The pod's share under a NUMA policy, or nil; a list of reasons, or nil; and the mask of its NUMA nodes, nil
-- for any. others: the hints of other plugins, { [name] = list of hints }.
function M.admit(view, want, policy, exclusive, score, others)
  if #view.zones == 0 then return nil, { "node(s) missing NUMA resources" } end
  local all = 0
  for _, zone in ipairs(view.zones) do all = all | 1 << zone.node end
  local of_all = hints(view, want, policy, score)
  for name, list in pairs(others) do of_all[name] = list end
  local mask, reasons = merge.merge(of_all,
    { policy = policy, all = all, exclusive = exclusive, status = view.status })
  if mask == false then return nil, reasons end
  local out, why = M.allocate(view, want, mask)
  return out, why, mask
end

return M
