-- reservations.lua - Koordinator's Reservation controller: it maintains the status of Reservations that a
-- scheduler put on nodes, ends them when they expire, and deletes them after a day. The policy is
-- reservations/lifecycle.lua.
--
--   kubelua run controllers/koordinator/reservations.lua

local kube = require "kubelua"
local lifecycle = require "reservations.lifecycle"

local NODE, POD = "v1/Node", "v1/Pod"
local RESERVATION = "scheduling.koordinator.sh/v1alpha1/Reservation"

-- A pod wakes the Reservation that it uses, by its annotation.
local function its_reservation(pod, ctx)
  local uid, keys = lifecycle.used_by(pod), {}
  if not uid then return keys end
  for _, reservation in ipairs(ctx:list(RESERVATION, { index = "uid", value = uid })) do
    keys[#keys + 1] = reservation.metadata.name
  end
  return keys
end

return kube.controller {
  name = "reservations",
  resource = RESERVATION,
  watches = { [POD] = its_reservation, [NODE] = { via = "node", when = "labels" } },
  indexes = {
    node = "status.nodeName",
    uid = "metadata.uid",
    [POD] = { node = "spec.nodeName" },
  },
  fields = { [POD] = { "metadata", "spec" }, [NODE] = { "metadata" } },
  workers = 1,
  -- As in ReservationArgs.
  params = { gcDurationSeconds = 86400, disableGarbageCollection = false },

  reconcile = function(reservation, ctx)
    local now, node = ctx:now():unix(), reservation("status.nodeName")
    local exists = node == nil or node == "" or ctx:get(NODE, node) ~= nil
    local left = not ctx.params.disableGarbageCollection
      and lifecycle.until_deleted(reservation, exists, now, ctx.params.gcDurationSeconds)
    if left and left <= 0 then
      ctx:delete(RESERVATION, reservation.metadata.name, { uid = reservation.metadata.uid })
      return nil
    elseif left then
      return left
    end
    local pods = node and node ~= "" and ctx:list(POD, { index = "node", value = node }) or {}
    local status = lifecycle.status(reservation, pods, exists, now)
    if status then
      ctx:patch_status(reservation, function(draft) draft.status = status end)
      return nil
    end
    return lifecycle.next_look(reservation, now)
  end,
}
