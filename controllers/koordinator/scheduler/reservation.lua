-- reservation.lua - Reservations: resources of a node (a room) for the pods that the owners of a Reservation
-- select. For all other pods, the unused part of a room counts as taken. On each node a pod is nominated to
-- one room: of those that it matches and fits, the one with the lowest order, or else the one that it fills
-- most.
--
-- A room is { object, uid, name, once, allocatable, allocated, pods }: allocated and pods are the requests
-- and the number of the pods on the node that use it. The processors and devices of a Reservation are in
-- numa.lua and deviceshare.lua.

local fields = require "fields"
local kube = require "kubelua"
local lifecycle = require "reservations.lifecycle"
local lists = require "lib.lists"
local nodefit = require "lib.nodefit"
local scores = require "scheduler.scores"

local dig = fields.dig

local M = { name = "Reservation" }

M.KIND = "scheduling.koordinator.sh/v1alpha1/Reservation"

local AFFINITY = "scheduling.koordinator.sh/reservation-affinity"
local EXACT = "scheduling.koordinator.sh/exact-match-reservation"
local RESTRICTED = "scheduling.koordinator.sh/reservation-restricted-options"
local IGNORED = "scheduling.koordinator.sh/reservation-ignored"
local ORDER = "scheduling.koordinator.sh/reservation-order"
local CORDON = { key = "node.kubernetes.io/unschedulable", effect = "NoSchedule" }
local MAX, PREFERRED = 100, 1000
local REQUIRED = "scheduling.koordinator.sh/pre-allocation-required"
local UNSUPPORTED = "node(s) reservation pre allocation is unsupported with current attributes"
local NO_OWNER = "node(s) no pod(s) to meet the pre-allocation requirements"

-- ---------------------------------------------------------------- rooms

-- The available Reservations by node, for state.reservations_on.
function M.index(reservations)
  local out = {}
  for _, reservation in ipairs(reservations) do
    local node = dig(reservation, "status", "nodeName") or ""
    if node ~= "" and dig(reservation, "status", "phase") == "Available" then
      out[node] = out[node] or {}
      table.insert(out[node], reservation)
    end
  end
  return out
end

function M.rooms(reservations)
  local out = {}
  for i, reservation in ipairs(reservations or {}) do
    out[i] = {
      object = reservation,
      uid = reservation.metadata.uid,
      name = reservation.metadata.name,
      once = dig(reservation, "spec", "allocateOnce") ~= false,
      allocatable = lists.of(dig(reservation, "status", "allocatable")),
      allocated = {},
      pods = 0,
    }
  end
  return out
end

-- Whether a room with allocateOnce is used, and holds nothing any more.
function M.is_spent(room) return room.once and room.pods > 0 end

-- Whether a pod may take only from the room what the room has, and nothing of it from the node.
function M.is_restricted(room) return dig(room.object, "spec", "allocatePolicy") == "Restricted" end

-- The unused part of a room, with `pods` = 1.
local function remaining(room)
  if M.is_spent(room) then return {} end
  local out = {}
  for name, n in pairs(room.allocatable) do out[name] = math.max(n - (room.allocated[name] or 0), 0) end
  out.pods = 1
  return out
end

-- Adds a pod to the room that it uses (plus), or removes it.
function M.count(info, uid, request, plus)
  for _, room in ipairs(info.rooms) do
    if room.uid == uid then
      local change = plus and lists.add or lists.sub
      room.allocated = change(room.allocated, lists.mask(request, room.allocatable))
      room.pods = room.pods + (plus and 1 or -1)
    end
  end
end

-- ---------------------------------------------------------------- its own placement

-- Whether a Reservation waits for a node from this scheduler.
function M.is_waiting(object, scheduler)
  local phase = dig(object, "status", "phase") or ""
  return (dig(object, "status", "nodeName") or "") == "" and (phase == "" or phase == "Pending")
    and object.metadata.deletionTimestamp == nil
    and dig(object, "spec", "template", "spec", "schedulerName") == scheduler
end

local function said_by(object, what)
  return fields.merge(dig(object, "spec", "template", "metadata", what) or {},
    dig(object, "metadata", what) or {})
end

-- The annotations of a Reservation, in the form of a pod.
function M.says(object) return { metadata = { annotations = said_by(object, "annotations") } } end

-- The pod of a Reservation's template, for scheduling. `reserves` marks it: it uses no other room, and counts
-- in no quota. `preallocates` is the Reservation, if it may take over the resources of running pods.
function M.as_pod(object)
  local template = fields.copy(dig(object, "spec", "template")) or {}
  local said, meta = template.metadata or {}, object.metadata
  return {
    reserves = meta.uid,
    preallocates = dig(object, "spec", "preAllocation") == true and object or nil,
    metadata = { name = meta.name, uid = meta.uid, namespace = said.namespace or "default",
      labels = said_by(object, "labels"), annotations = said_by(object, "annotations"),
      ownerReferences = said.ownerReferences,
      creationTimestamp = meta.creationTimestamp },
    spec = template.spec or {},
    status = {},
  }
end

local function condition(type, status, reason, message, now)
  local at = os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(now))
  return { type = type, status = status, reason = reason, message = message, lastProbeTime = at,
    lastTransitionTime = at }
end

-- The status of a Reservation on a node: it holds the request of its pod.
function M.placed(object, node, now)
  return { phase = "Available", nodeName = node,
    allocatable = lists.texts(lists.of(kube.requests(M.as_pod(object)))),
    conditions = { condition("Scheduled", "True", "Scheduled", nil, now),
      condition("Ready", "True", "Available", nil, now) } }
end

-- The status of a Reservation that fits no node; nil: it has that status already.
function M.refused(object, message, now)
  for _, one in ipairs(dig(object, "status", "conditions") or {}) do
    local same = one.reason == "Unschedulable" and one.message == message
    if one.type == "Scheduled" and same then return nil end
  end
  return { phase = "Pending",
    conditions = { condition("Scheduled", "False", "Unschedulable", message, now) } }
end

-- ---------------------------------------------------------------- owners

local function named(value, wanted) return wanted == nil or wanted == "" or value == wanted end

local function is_object(pod, ref)
  return named(pod.metadata.uid, ref.uid) and named(pod.metadata.name, ref.name)
    and named(pod.metadata.namespace, ref.namespace) and named(pod.apiVersion or "v1", ref.apiVersion)
end

local function is_controlled(pod, ref)
  if not named(pod.metadata.namespace, ref.namespace) then return false end
  for _, owner in ipairs(dig(pod, "metadata", "ownerReferences") or {}) do
    local controls = ref.controller == nil or owner.controller == ref.controller
    if controls and named(owner.uid, ref.uid) and named(owner.name, ref.name) and named(owner.kind, ref.kind)
      and named(owner.apiVersion, ref.apiVersion) then
      return true
    end
  end
  return false
end

-- Whether one of the owners of a Reservation selects the pod; an empty owner selects all. An invalid owner
-- makes the Reservation unusable.
local function owned(reservation, pod)
  local found = false
  for _, owner in ipairs(dig(reservation, "spec", "owners") or {}) do
    local ok, selector = pcall(kube.selector, owner.labelSelector or {})
    if not ok then return false end
    found = found or selector:matches(dig(pod, "metadata", "labels") or {})
      and (owner.object == nil or is_object(pod, owner.object))
      and (owner.controller == nil or is_controlled(pod, owner.controller))
  end
  return found
end

-- The pod's affinity to Reservations, parsed once a cycle: { name, as }, or nil. `as` is a pod whose node
-- selector, affinity and tolerations are those of this pod for Reservations.
local function affinity_of(pod)
  local text = fields.annotation(pod, AFFINITY)
  if text == nil then return nil end
  local said, why = fields.json(text == "" and "{}" or text)
  if not said then return nil, why end
  local required = said.requiredDuringSchedulingIgnoredDuringExecution
  local as = { spec = { nodeSelector = said.reservationSelector, tolerations = said.tolerations } }
  if required then
    as.spec.affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = required.reservationSelectorTerms or {} } } }
  end
  return { name = (said.name or "") ~= "" and said.name or nil, as = as }
end

local NAMES = { resourceNames = fields.list_of "string" }

-- The resources of which the pod wants just what a Reservation has: a list, or nil for none; nil and why
-- where the annotation does not read.
local function exact_of(pod)
  local text = fields.annotation(pod, EXACT)
  if text == nil or text == "" then return nil end
  local said, why = fields.json(text)
  if said then said, why = fields.typed(said, NAMES) end
  return said and said.resourceNames, why
end

-- As upstream: the first name that neither has ends the comparison.
local function is_exact(names, request, allocatable)
  for _, name in ipairs(names or {}) do
    if request[name] == nil and allocatable[name] == nil then return true end
    if request[name] ~= allocatable[name] then return false end
  end
  return true
end

-- Whether the pod may have what is kept for others.
function M.ignores(pod) return fields.label(pod, IGNORED) == "true" end

-- wants: { affinity, exact = of exact_of, request }
local function matches(pod, room, info, wants)
  local object, affinity = room.object, wants.affinity
  if M.is_spent(room) or not owned(object, pod) then return false end
  if not is_exact(wants.exact, wants.request, room.allocatable) then return false end
  if affinity and affinity.name then return affinity.name == room.name end
  local as = affinity and affinity.as or {}
  local closed = dig(object, "spec", "unschedulable") == true or object.metadata.deletionTimestamp ~= nil
  if closed and not nodefit.tolerates(as, CORDON) then return false end
  local labels = fields.merge(dig(info.node, "metadata", "labels") or {},
    dig(object, "metadata", "labels") or {})
  local like_node = { metadata = { name = room.name, labels = labels },
    spec = { taints = dig(object, "spec", "taints") } }
  return not nodefit.repelling(as, like_node) and nodefit.selected(as, like_node)
end

-- ---------------------------------------------------------------- fit

local function held(info)
  local sum = {}
  for _, room in ipairs(info.rooms) do lists.accumulate(sum, remaining(room)) end
  return sum
end

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
  if not M.is_restricted(room) then return true end
  local text = fields.annotation(room.object, RESTRICTED)
  local said = text and dig(fields.json(text), "resources")
  local names = said and #said > 0 and said or lists.names(room.allocatable)
  local left = remaining(room)
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
  if #info.rooms == 0 or M.ignores(pod) or pod.reserves then return nil end
  local mine = cycle.on[info.name]
  local best = mine.nominated
  if best == nil then
    best = false
    local asked, taken = cycle.request, lists.add(info.requested, held(info))
    for _, room in ipairs(info.rooms) do
      if matches(pod, room, info, cycle) and (cycle.affinity or shares(room, asked))
        and fits_node(info, asked, lists.sub(taken, remaining(room))) and fits_room(room, asked)
        and (not best or better(room, best, asked)) and agree("fits_room", pod, room, info, cycle) then
        best = room
      end
    end
    mine.nominated = best
  end
  return best or nil
end

-- ---------------------------------------------------------------- pre-allocation

-- The pods of the node that may use the room, { entry, request, fill }, those that fill it most first.
local function candidates(room, info)
  local out = {}
  for _, entry in pairs(info.pods) do
    local pod = entry.pod
    if (dig(pod, "spec", "nodeName") or "") ~= "" and not entry.uid and not lifecycle.used_by(pod) then
      local affinity, why = affinity_of(pod)
      local exact, not_read = exact_of(pod)
      local request = lists.of(kube.requests(pod))
      local wants = { affinity = affinity, exact = exact, request = request }
      if not why and not not_read and matches(pod, room, info, wants) and shares(room, request) then
        out[#out + 1] = { entry = entry, request = request, fill = fill(room, request) }
      end
    end
  end
  table.sort(out, function(a, b)
    if a.fill ~= b.fill then return a.fill > b.fill end
    return a.entry.pod.metadata.name < b.entry.pod.metadata.name
  end)
  return out
end

-- The candidates whose resources let the Reservation fit the node: the first one that suffices, or several
-- together, if the policy allows it.
local function owners_of(pod, info, cycle)
  local room = M.rooms({ pod.preallocates })[1]
  room.allocatable = cycle.request
  local several = dig(pod.preallocates, "spec", "preAllocationPolicy", "enableMultiple") == true
  local taken = lists.add(info.requested, held(info))
  local owners, sum = {}, {}
  for _, one in ipairs(candidates(room, info)) do
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
  if #info.rooms == 0 or M.ignores(pod) then return info.requested end
  local taken, room = lists.add(info.requested, held(info)), M.nominate(pod, info, cycle)
  return room and lists.sub(taken, remaining(room)) or taken
end

-- ---------------------------------------------------------------- the plugin

function M.prefilter(pod, cycle)
  local affinity, why = affinity_of(pod)
  if why then return "the annotation " .. AFFINITY .. " cannot be parsed: " .. why end
  cycle.affinity = affinity
  cycle.exact, why = exact_of(pod)
  if why then return "the annotation " .. EXACT .. " cannot be parsed: " .. why end
  local object = pod.preallocates
  if object then
    local mode = dig(object, "spec", "preAllocationPolicy", "mode") or "Default"
    if dig(object, "spec", "allocatePolicy") ~= "Restricted" or mode ~= "Default" then return UNSUPPORTED end
  end
  return nil
end

function M.agrees(pod, cycle) return cycle.affinity == nil and pod.preallocates == nil end

-- A pod with an affinity to Reservations fits only nodes where it has a room.
function M.filter(pod, info, cycle)
  if pod.preallocates and fields.label(pod, REQUIRED) == "true" and #M.owners(pod, info, cycle) == 0 then
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
