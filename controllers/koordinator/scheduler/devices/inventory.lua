-- inventory.lua - the devices of a node: those of its Device object, without what its pods and Reservations
-- have.
--
-- info.devices is { [type] = stock, nodes = the NUMA nodes with devices, sorted }. A stock:
--   { about = { [minor] = { minor, id, labels, node = NUMA node or nil, pcie = its PCIe switch or nil,
--       placed = whether the Device says where it is, groups = of virtual functions } }
--     total, free = { [minor] = list of amounts }     an unhealthy device has none
--     rests = { [uid of a room] = { [minor] = list of amounts } }     what its pods do not use
--     vfs = { [minor] = { [bus id] = uid of the room that keeps the virtual function, or true } }
--     device = the Device }
--
-- A Reservation gets devices like its pod would, and has the same annotation. The part of them that its pods
-- do not use is closed to other pods. A pod that is nominated to the Reservation takes the Reservation's
-- devices first, then those of the node; if the Reservation is Restricted, only the former.

local fields = require "fields"
local lists = require "lib.lists"
local requests = require "scheduler.devices.request"
local reserved = require "scheduler.reservation.reserved"
local template = require "scheduler.reservation.template"

local dig = fields.dig

local M = {}

M.ANNOTATION = "scheduling.koordinator.sh/device-allocated"

local TYPES = requests.TYPES

-- ---------------------------------------------------------------- what pods have

-- The devices in a pod's annotation: { [type] = list of { minor, resources, extension } }.
function M.read(pod)
  local text = fields.annotation(pod, M.ANNOTATION)
  return text and fields.json(text) or {}
end

local function has_of(entry) return entry.devices or M.read(entry.pod) end

-- Subtracts amounts from those left of a device; nil: the device does not exist.
local function take(left, amounts)
  for name, n in pairs(left and amounts or {}) do
    if left[name] then left[name] = math.max(left[name] - n, 0) end
  end
end

-- Subtracts a list of devices from amounts by minor.
local function subtract(by_minor, list)
  for _, one in ipairs(list or {}) do
    local left = by_minor[one.minor or 0]
    take(left, left and lists.of(one.resources))
  end
end

-- Notes who has the virtual functions of a list of devices.
local function hold_vfs(stock, list, holder)
  for _, one in ipairs(list or {}) do
    local minor = one.minor or 0
    for _, vf in ipairs(dig(one, "extension", "vfs") or {}) do
      stock.vfs[minor] = stock.vfs[minor] or {}
      stock.vfs[minor][vf.busID or ""] = holder
    end
  end
end

-- Closes the devices of a room that its pods do not use. own: the room's devices; its_pods: those of each
-- pod.
local function hold_rest(known, uid, own, its_pods)
  for _, type in ipairs(TYPES) do
    local rest, stock = {}, known[type]
    for _, one in ipairs(dig(own, type) or {}) do rest[one.minor or 0] = lists.of(one.resources) end
    for _, has in ipairs(its_pods) do subtract(rest, has[type]) end
    if next(rest) then stock.rests[uid] = rest end
    for minor, amounts in pairs(rest) do take(stock.free[minor], amounts) end
    hold_vfs(stock, dig(own, type), uid)
    for _, has in ipairs(its_pods) do hold_vfs(stock, has[type], true) end
  end
end

-- ---------------------------------------------------------------- the devices of a node

local function add_device(stock, device, numa_nodes)
  local minor, place = device.minor or 0, device.topology
  local node = place and place.nodeID or nil
  stock.about[minor] = { minor = minor, id = device.id, labels = device.labels or {}, node = node,
    pcie = place and (place.pcieID or "") or nil, placed = place ~= nil, groups = device.vfGroups or {} }
  stock.total[minor] = device.health == true and lists.of(device.resources) or {}
  stock.free[minor] = lists.copy(stock.total[minor])
  if node and node >= 0 then numa_nodes[node] = true end
end

-- The devices of the node (see the head), cached until it changes.
function M.of(info, state)
  if info.devices then return info.devices end
  local known, numa_nodes, object = {}, {}, dig(state.devices, info.name)
  for _, type in ipairs(TYPES) do
    known[type] = { about = {}, total = {}, free = {}, rests = {}, vfs = {}, device = object }
  end
  for _, device in ipairs(dig(object, "spec", "devices") or {}) do
    if known[device.type] then add_device(known[device.type], device, numa_nodes) end
  end
  local by_room = {}
  for _, entry in pairs(info.pods) do
    local has = has_of(entry)
    for _, type in ipairs(TYPES) do
      subtract(known[type].free, has[type])
      hold_vfs(known[type], has[type], true)
    end
    if entry.uid then
      by_room[entry.uid] = by_room[entry.uid] or {}
      table.insert(by_room[entry.uid], has)
    end
  end
  for _, room in ipairs(info.rooms) do
    if not reserved.is_spent(room) then
      hold_rest(known, room.uid, M.read(template.says(room.object)), by_room[room.uid] or {})
    end
  end
  known.nodes = fields.names(numa_nodes)
  info.devices = known
  return known
end

-- The devices of several pods, { [type] = { [minor] = list of amounts } }.
function M.of_pods(entries)
  local out = {}
  for _, entry in ipairs(entries) do
    local theirs = has_of(entry)
    for _, type in ipairs(TYPES) do
      for _, one in ipairs(dig(theirs, type) or {}) do
        out[type] = out[type] or {}
        local minor = one.minor or 0
        out[type][minor] = lists.add(out[type][minor] or {}, lists.of(one.resources))
      end
    end
  end
  return out
end

-- ---------------------------------------------------------------- what a pod may take

-- The free amounts for a pod that uses the room (or nil), and the minors that it takes first, or nil. theirs:
-- by minor, the amounts of the pods that a Reservation takes over.
local function free_for(stock, room, theirs)
  local rest = theirs or room and stock.rests[room.uid]
  if not rest then return stock.free, nil end
  local out = {}
  for minor, free in pairs(stock.free) do
    out[minor] = rest[minor] and lists.add(free, lists.mask(rest[minor], free)) or free
  end
  if room and reserved.is_restricted(room) then
    for minor in pairs(out) do
      out[minor] = rest[minor] and lists.mask(lists.cap(out[minor], rest[minor]), rest[minor]) or {}
    end
  end
  return out, rest
end

-- Whether the device is in one of the NUMA nodes of the mask (nil: in any) and has the labels.
local function suits(about, request, mask)
  if mask and not about.placed then return false end
  if mask and about.node >= 0 and mask & (1 << about.node) == 0 then return false end
  return not request.selector or request.selector:matches(about.labels)
end

-- What a pod may take of a stock:
--   { minors = sorted, of the devices that suit the request and the mask, stock, room,
--     free = { [minor] = list of amounts }, first = minors that are taken first, or nil,
--     busy = { [minor] = true } of all devices of the stock that are not wholly free }
-- from: { room, theirs = { [type] = amounts by minor } }, both optional.
function M.pool(stock, type, request, from, mask)
  local free, first = free_for(stock, from.room, from.theirs and from.theirs[type])
  local out = { minors = {}, stock = stock, room = from.room, free = free, first = first, busy = {} }
  for minor, about in pairs(stock.about) do
    if suits(about, request, mask) then out.minors[#out.minors + 1] = minor end
    for name, n in pairs(stock.total[minor]) do
      if (free[minor][name] or 0) < n then out.busy[minor] = true end
    end
  end
  table.sort(out.minors)
  return out
end

-- The number of devices that a request of the type means on this node.
function M.count(stock, request)
  if not request.for_all then return request.count end
  local n = 0
  for _, about in pairs(stock.about) do
    if suits(about, request, nil) then n = n + 1 end
  end
  return n
end

-- The free virtual function with the lowest bus id of a device, as the annotation has it; nil: there is none.
function M.vf(pool, request, minor)
  local best, taken = nil, pool.stock.vfs[minor] or {}
  for _, group in ipairs(pool.stock.about[minor].groups) do
    for _, vf in ipairs(request.vfs:matches(group.labels or {}) and group.vfs or {}) do
      local bus = vf.busID or ""
      local holder = taken[bus]
      local open = not holder or pool.room and holder == pool.room.uid
      if open and (not best or bus < best.busID) then
        best = { minor = vf.minor ~= 0 and vf.minor or nil, busID = bus }
      end
    end
  end
  return best
end

return M
