-- decided.lua - the scheduler's recent decisions, until the caches show them. They are in kube.shared, so
-- they survive a reload:
--
--   assumed/NAMESPACE/NAME   of a pod: { uid, node, got, room, at, by, held_until, bound }
--   reserved/NAME            of a Reservation: { uid, node, got, owners = list of { key, uid }, at }
--
-- at: the time of the decision; by: the key whose run binds the pod; held_until: the pod keeps its node
-- unbound until then (a gang that waits).

local fields = require "fields"
local kube = require "kubelua"
local reservation = require "scheduler.reservation"

local M = {}

M.POD = "v1/Pod"
local ASSUMED, RESERVED, DECIDING = "assumed/", "reserved/", "deciding"
local LONGEST = 30 -- seconds; a run that still decides after this time was killed

function M.is_waiting(pod)
  local node, phase = fields.dig(pod, "spec", "nodeName"), fields.dig(pod, "status", "phase")
  local gates = fields.dig(pod, "spec", "schedulingGates")
  return (node == nil or node == "") and phase ~= "Succeeded" and phase ~= "Failed"
    and pod.metadata.deletionTimestamp == nil and (gates == nil or #gates == 0)
end

local function known(name, uid)
  local what = kube.shared:get(name)
  return what and what.uid == uid and what or nil
end

function M.pod(key, uid) return known(ASSUMED .. key, uid) end
function M.assume(key, what) kube.shared:set(ASSUMED .. key, what) end
function M.reservation(name, uid) return known(RESERVED .. name, uid) end
function M.reserve(name, what) kube.shared:set(RESERVED .. name, what) end

-- Calls `decide` unless another run is deciding, and returns true and its result; otherwise false.
function M.alone(now, decide)
  local taken, other = kube.shared:cas(DECIDING, nil, { at = now })
  if not taken and now - other.at > LONGEST then taken = kube.shared:cas(DECIDING, other, { at = now }) end
  if not taken then return false end
  local ok, result = pcall(decide)
  kube.shared:set(DECIDING, nil)
  if not ok then error(result, 0) end
  return true, result
end

-- The decisions about objects of a kind, by key, for which waits(object, what) holds. Deletes all others.
local function current(ctx, prefix, kind, waits)
  local out = {}
  for _, name in ipairs(kube.shared:names(prefix)) do
    local key, what = name:sub(#prefix + 1), fields.copy(kube.shared:get(name))
    local object = what and ctx:get(kind, key)
    if object and object.metadata.uid == what.uid and waits(object, what) then
      out[key] = what
    else
      kube.shared:set(name, nil)
    end
  end
  return out
end

function M.pods(ctx, now)
  return current(ctx, ASSUMED, M.POD, function(pod, what)
    return M.is_waiting(pod) and (what.held_until == nil or now < what.held_until)
  end)
end

function M.reservations(ctx)
  return current(ctx, RESERVED, reservation.KIND, function(object)
    return (object("status.nodeName") or "") == ""
  end)
end

return M
