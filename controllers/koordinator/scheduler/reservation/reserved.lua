-- reserved.lua - rooms: what the available Reservations of a node hold there. A room is { object, uid, name,
-- once, allocatable, allocated, pods }: allocated and pods are the requests and the number of the pods on the
-- node that use it. The processors and devices of a Reservation are in numa.lua and devices/inventory.lua.

local fields = require "fields"
local lists = require "lib.lists"

local dig = fields.dig

local M = {}

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

function M.of(reservations)
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
function M.remaining(room)
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

-- What all rooms of a node hold together.
function M.sum(info)
  local sum = {}
  for _, room in ipairs(info.rooms) do lists.accumulate(sum, M.remaining(room)) end
  return sum
end

return M
