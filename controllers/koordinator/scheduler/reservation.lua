-- reservation.lua - Reservations: resources of a node (a room) for the pods that the owners of a Reservation
-- select. For all other pods, the unused part of a room counts as taken. On each node a pod is nominated to
-- one room: of those that it matches and fits, the one with the lowest order, or else the one that it fills
-- most.
--
--   reservation/reserved.lua   rooms
--   reservation/match.lua      which pods may use a room
--   reservation/template.lua   a Reservation that waits for its own node

local fields = require "fields"
local kube = require "kubelua"
local lifecycle = require "reservations.lifecycle"
local lists = require "lib.lists"
local match = require "scheduler.reservation.match"
local reserved = require "scheduler.reservation.reserved"
local scores = require "scheduler.scores"

local dig = fields.dig

local M = { name = "Reservation" }

M.KIND = "scheduling.koordinator.sh/v1alpha1/Reservation"
M.ignores = match.ignores

local RESTRICTED = "scheduling.koordinator.sh/reservation-restricted-options"
local ORDER = "scheduling.koordinator.sh/reservation-order"
local MAX, PREFERRED = 100, 1000
local REQUIRED = "scheduling.koordinator.sh/pre-allocation-required"
local UNSUPPORTED = "node(s) reservation pre allocation is unsupported with current attributes"
local NO_CLUSTER = "reservation requires cluster mode pre-allocation which is disabled"
local CLUSTER = "Cluster" -- a mode of preAllocationPolicy
local NO_OWNER = "node(s) no pod(s) to meet the pre-allocation requirements"

-- As preAllocationConfig of ReservationArgs.
M.PREALLOCATION = {
  enableClusterMode = false,
  clusterLabelKey = "pod.koordinator.sh/is-pre-allocatable",
  clusterPriorityAnnotationKey = "pod.koordinator.sh/pre-allocatable-priority",
  preferNoPreAllocatedPods = false, -- takes over no pods on nodes that have room as they are
}

-- ---------------------------------------------------------------- fit

local function fits_node(info, asked, taken)
  if taken.pods + 1 > (info.allocatable.pods or 0) then return false end
  for name, n in pairs(asked) do
    if n > 0 and n > (info.allocatable[name] or 0) - (taken[name] or 0) then return false end
  end
  return true
end

-- Whether the room has enough. Only a Restricted room limits a pod: to its unused part of the resources that
-- it restricts. With other rooms a pod may also take from the node.
local function fits_room(room, asked)
  if not reserved.is_restricted(room) then return true end
  local text = fields.annotation(room.object, RESTRICTED)
  local said = text and dig(fields.json(text), "resources")
  local names = said and #said > 0 and said or lists.names(room.allocatable)
  local left = reserved.remaining(room)
  for _, name in ipairs(names) do
    if (asked[name] or 0) > (left[name] or 0) and name ~= "pods" then return false end
  end
  return not room.allocatable.pods or room.pods + 1 <= room.allocatable.pods
end

local function shares(room, asked)
  for name in pairs(room.allocatable) do
    if asked[name] then return true end
  end
  return false
end

local function order_of(room)
  local n = math.tointeger(tonumber(fields.label(room.object, ORDER) or ""))
  return n and n ~= 0 and n or math.huge
end

-- The usage of the room with the pod, from 0 to 100: the mean over its resources.
local function fill(room, asked)
  local sum, n = 0, 0
  for name, all in pairs(room.allocatable) do
    if all > 0 then
      local used = (room.allocated[name] or 0) + (asked[name] or 0)
      sum, n = sum + (used <= all and MAX * used // all or 0), n + 1
    end
  end
  return n > 0 and sum // n or 0
end

local function better(a, b, asked)
  if order_of(a) ~= order_of(b) then return order_of(a) < order_of(b) end
  local x, y = fill(a, asked), fill(b, asked)
  if x ~= y then return x > y end
  return a.name < b.name
end

-- Whether plugin[name](pod, theirs, ...) holds for all plugins that have this function.
local function agree(name, pod, theirs, info, cycle)
  for _, plugin in ipairs(cycle.args.plugins) do
    if plugin[name] and not plugin[name](pod, theirs, info, cycle) then return false end
  end
  return true
end

-- The room of a node that the pod would use, or nil.
function M.nominate(pod, info, cycle)
  if #info.rooms == 0 or match.ignores(pod) or pod.reserves then return nil end
  local mine = cycle.on[info.name]
  local best = mine.nominated
  if best == nil then
    best = false
    local asked, taken = cycle.request, lists.add(info.requested, reserved.sum(info))
    for _, room in ipairs(info.rooms) do
      if match.matches(pod, room, info, cycle) and (cycle.affinity or shares(room, asked))
        and fits_node(info, asked, lists.sub(taken, reserved.remaining(room))) and fits_room(room, asked)
        and (not best or better(room, best, asked)) and agree("fits_room", pod, room, info, cycle) then
        best = room
      end
    end
    mine.nominated = best
  end
  return best or nil
end

-- ---------------------------------------------------------------- pre-allocation

-- Whether and how much a pod of the node may become part of a Reservation, { entry, request, rank }; nil: it
-- may not. The rank is how far it fills the Reservation; in mode Cluster, whose pods have a label and no
-- owners in common, it is what their annotation says.
local function candidate(entry, room, info, cycle)
  local pod, config = entry.pod, cycle.args.preallocation
  if (dig(pod, "spec", "nodeName") or "") == "" or entry.uid or lifecycle.used_by(pod) then return nil end
  local anyones = cycle.mode == CLUSTER
  if anyones and fields.label(pod, config.clusterLabelKey) ~= "true" then return nil end
  local affinity, why = match.affinity_of(pod)
  local exact, not_read = match.exact_of(pod)
  local request = lists.of(kube.requests(pod))
  local wants = { affinity = affinity, exact = exact, request = request, anyones = anyones }
  if why or not_read or not match.matches(pod, room, info, wants) or not shares(room, request) then
    return nil
  end
  local said = anyones and fields.annotation(pod, config.clusterPriorityAnnotationKey) or ""
  return { entry = entry, request = request, rank = not anyones and fill(room, request)
    or said:find "^[+-]?%d+$" and math.tointeger(tonumber(said)) or 0 }
end

-- The candidates of the node, the first in rank first.
local function candidates(room, info, cycle)
  local out = {}
  for _, entry in pairs(info.pods) do out[#out + 1] = candidate(entry, room, info, cycle) end
  local by = cycle.mode == CLUSTER and "uid" or "name"
  table.sort(out, function(a, b)
    if a.rank ~= b.rank then return a.rank > b.rank end
    return (a.entry.pod.metadata[by] or "") < (b.entry.pod.metadata[by] or "")
  end)
  return out
end

local function is_required(pod) return fields.label(pod, REQUIRED) == "true" end

-- The candidates whose resources let the Reservation fit the node: the first one that suffices, or several
-- together, if the policy allows it.
local function owners_of(pod, info, cycle)
  local room = reserved.of({ pod.preallocates })[1]
  room.allocatable = cycle.request
  local several = dig(pod.preallocates, "spec", "preAllocationPolicy", "enableMultiple") == true
  local taken = lists.add(info.requested, reserved.sum(info))
  local without = cycle.args.preallocation.preferNoPreAllocatedPods and not is_required(pod)
  if without and fits_node(info, cycle.request, taken) then return { entries = {} } end
  local owners, sum = {}, {}
  for _, one in ipairs(candidates(room, info, cycle)) do
    local together = lists.add(sum, one.request)
    if fits_room(room, together) then
      local left = lists.sub(taken, together)
      left.pods = left.pods - #owners - 1
      owners[#owners + 1] = one.entry
      if fits_node(info, cycle.request, left) and agree("fits_owners", pod, owners, info, cycle) then
        return { entries = owners, taken = left, fill = fill(room, together) }
      end
      if several then sum = together else owners = {} end
    end
  end
  return { entries = {} }
end

-- The pods of the node that a Reservation takes over, as entries of info.pods; their resources count as its
-- own.
local function preallocated(pod, info, cycle)
  local mine = cycle.on[info.name]
  if not mine.preallocated then mine.preallocated = owners_of(pod, info, cycle) end
  return mine.preallocated
end

function M.owners(pod, info, cycle)
  return pod.preallocates and preallocated(pod, info, cycle).entries or {}
end

-- ---------------------------------------------------------------- taken resources

-- The resources of a node that are taken for this pod: by other pods, and by rooms that it does not use.
function M.taken(pod, info, cycle)
  local own = pod.preallocates and preallocated(pod, info, cycle)
  if own and own.taken then return own.taken end
  if #info.rooms == 0 or match.ignores(pod) then return info.requested end
  local taken, room = lists.add(info.requested, reserved.sum(info)), M.nominate(pod, info, cycle)
  return room and lists.sub(taken, reserved.remaining(room)) or taken
end

-- ---------------------------------------------------------------- the plugin

function M.prefilter(pod, cycle)
  local affinity, why = match.affinity_of(pod)
  if why then return "the annotation " .. match.AFFINITY .. " cannot be parsed: " .. why end
  cycle.affinity = affinity
  cycle.exact, why = match.exact_of(pod)
  if why then return "the annotation " .. match.EXACT .. " cannot be parsed: " .. why end
  local object = pod.preallocates
  if object then
    cycle.mode = dig(object, "spec", "preAllocationPolicy", "mode")
    if dig(object, "spec", "allocatePolicy") ~= "Restricted" then return UNSUPPORTED end
    if cycle.mode == CLUSTER and not cycle.args.preallocation.enableClusterMode then return NO_CLUSTER end
  end
  return nil
end

function M.agrees(pod, cycle) return cycle.affinity == nil and pod.preallocates == nil end

-- A pod with an affinity to Reservations fits only nodes where it has a room.
function M.filter(pod, info, cycle)
  if pod.preallocates and is_required(pod) and #M.owners(pod, info, cycle) == 0 then
    return { NO_OWNER }
  end
  if not cycle.affinity or M.nominate(pod, info, cycle) then return nil end
  return { "node(s) no reservations match reservation affinity" }
end

function M.silent(pod, cycle)
  return not pod.preallocates and next(cycle.state.reservations_on or {}) == nil
end

function M.score(pod, info, cycle)
  if pod.preallocates then return preallocated(pod, info, cycle).fill or 0 end
  local room = M.nominate(pod, info, cycle)
  if not room then return 0 end
  return fill(room, cycle.request)
end

-- The node with the room of the lowest order gets the highest score; then the scores are scaled to 100.
function M.normalize(given, cycle)
  local names, first = {}, nil
  for name in pairs(given) do names[#names + 1] = name end
  table.sort(names)
  local function order(name)
    local room = cycle.on[name].nominated
    return room and order_of(room) or math.huge
  end
  for _, name in ipairs(names) do
    if order(name) < (first and order(first) or math.huge) then first = name end
  end
  if first then given[first] = PREFERRED end
  scores.stretch(given)
end

return M
