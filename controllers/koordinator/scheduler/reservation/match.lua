-- match.lua - which pods may use a Reservation: those that its owners select, and that want this one.

local fields = require "fields"
local kube = require "kubelua"
local nodefit = require "lib.nodefit"
local reserved = require "scheduler.reservation.reserved"

local dig = fields.dig

local M = {}

M.AFFINITY = "scheduling.koordinator.sh/reservation-affinity"
M.EXACT = "scheduling.koordinator.sh/exact-match-reservation"

local IGNORED = "scheduling.koordinator.sh/reservation-ignored"
local CORDON = { key = "node.kubernetes.io/unschedulable", effect = "NoSchedule" }

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
function M.affinity_of(pod)
  local text = fields.annotation(pod, M.AFFINITY)
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
function M.exact_of(pod)
  local text = fields.annotation(pod, M.EXACT)
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

-- wants: { affinity, exact = of M.exact_of, request, anyones = whether owners do not matter }
function M.matches(pod, room, info, wants)
  local object, affinity = room.object, wants.affinity
  if reserved.is_spent(room) or not (wants.anyones or owned(object, pod)) then return false end
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

return M
