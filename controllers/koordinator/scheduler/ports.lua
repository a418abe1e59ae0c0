-- ports.lua - NodePorts: no two pods use the same host port of a node. A port belongs to its protocol and
-- address; the address 0.0.0.0, or none, means all addresses. Those of a Reservation's template are kept
-- for its pods.

local fields = require "fields"
local reservation = require "scheduler.reservation"
local reserved = require "scheduler.reservation.reserved"

local dig = fields.dig

local M = { name = "NodePorts" }

local ALL = "0.0.0.0"
local REFUSAL = "node(s) didn't have free ports for the requested pod ports"

local function address(port)
  local ip = port.hostIP or ""
  return ip == "" and ALL or ip
end

-- Adds the host ports of containers as { number, protocol, ip }.
local function add(out, containers, counts)
  for _, container in ipairs(containers or {}) do
    for _, port in ipairs(counts(container) and container.ports or {}) do
      if (port.hostPort or 0) > 0 then
        out[#out + 1] = { number = port.hostPort, protocol = port.protocol or "TCP", ip = address(port) }
      end
    end
  end
end

local function always() return true end
local function sidecar(container) return container.restartPolicy == "Always" end

-- The host ports of a pod, including those of sidecars.
local function ports_of(pod)
  local out = {}
  add(out, dig(pod, "spec", "containers"), always)
  add(out, dig(pod, "spec", "initContainers"), sidecar)
  return out
end

local function taken(info)
  if not info.ports then
    info.ports = {}
    for _, entry in pairs(info.pods) do
      for _, port in ipairs(ports_of(entry.pod)) do info.ports[#info.ports + 1] = port end
    end
  end
  return info.ports
end

-- What a room keeps: its pods may have it.
local function kept(room)
  if not room.ports then room.ports = ports_of { spec = dig(room.object, "spec", "template", "spec") } end
  return room.ports
end

local function collide(a, b)
  return a.number == b.number and a.protocol == b.protocol and (a.ip == b.ip or a.ip == ALL or b.ip == ALL)
end

local function collides(wanted, list)
  for _, port in ipairs(list) do
    if collide(wanted, port) then return true end
  end
  return false
end

-- Whether the ports of the pod are free for one that uses the room, or none.
function M.fits_room(pod, room, info, cycle)
  for _, wanted in ipairs(cycle.ports) do
    if collides(wanted, taken(info)) then return false end
    for _, other in ipairs(reservation.ignores(pod) and {} or info.rooms) do
      if other ~= room and not reserved.is_spent(other) and collides(wanted, kept(other)) then
        return false
      end
    end
  end
  return true
end

function M.prefilter(pod, cycle)
  cycle.ports = ports_of(pod)
  return nil
end

function M.agrees(_, cycle) return #cycle.ports == 0 end

function M.filter(pod, info, cycle)
  local room = reservation.nominate(pod, info, cycle)
  return not M.fits_room(pod, room, info, cycle) and { REFUSAL } or nil
end

return M
