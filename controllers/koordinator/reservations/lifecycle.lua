-- lifecycle.lua - the life of a Reservation that a scheduler put on a node: its users and their requests, its
-- expiry, and its deletion.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"

local M = {}

local dig = fields.dig

M.ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"

local function timestamp(now) return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(now)) end

function M.ended(reservation)
  local phase = dig(reservation, "status", "phase")
  return phase == "Failed" or phase == "Succeeded"
end

-- The uid of the Reservation that a pod uses, or nil.
function M.used_by(pod)
  local text = fields.annotation(pod, M.ALLOCATED)
  local said = text and fields.json(text)
  return said and said.uid or nil
end

-- ---------------------------------------------------------------- time

local function created(reservation) return kube.time(reservation.metadata.creationTimestamp):unix() end

-- The time at which it expires, in seconds; nil: never.
local function deadline(reservation)
  local expires, ttl = dig(reservation, "spec", "expires"), dig(reservation, "spec", "ttl")
  local seconds = ttl and kube.duration(ttl)
  if seconds == 0 then return nil end
  local a = expires and kube.time(expires):unix() or math.huge
  local b = seconds and created(reservation) + seconds or math.huge
  local first = math.min(a, b)
  return first < math.huge and first or nil
end

local function has_node(reservation) return (dig(reservation, "status", "nodeName") or "") ~= "" end

-- Seconds until one second after it expires; nil: it does not expire, or has ended, or has no node.
function M.next_look(reservation, now)
  local at = not M.ended(reservation) and has_node(reservation) and deadline(reservation)
  return at and math.max(at - now, 0) + 1 or nil
end

-- ---------------------------------------------------------------- status

-- Sets the condition Ready to False.
local function set_ready(status, reason, now)
  status.conditions = status.conditions or {}
  local at, old = #status.conditions + 1, nil
  for i, condition in ipairs(status.conditions) do
    if condition.type == "Ready" then at, old = i, condition end
  end
  local moved = not old or reason == "Expired" and old.status == "True"
  status.conditions[at] = { type = "Ready", status = "False", reason = reason,
    message = not moved and old.message or nil, lastProbeTime = timestamp(now),
    lastTransitionTime = moved and timestamp(now) or old.lastTransitionTime }
end

local function by_uid(list)
  table.sort(list, function(a, b) return (a.uid or "") < (b.uid or "") end)
  return list
end

-- References to the pods that use the Reservation, sorted by uid, and the sum of their requests.
local function use(reservation, pods, allocatable)
  local owners, sum = {}, {}
  for _, pod in ipairs(pods) do
    if M.used_by(pod) == reservation.metadata.uid then
      local meta = pod.metadata
      owners[#owners + 1] = { namespace = meta.namespace, name = meta.name, uid = meta.uid }
      lists.accumulate(sum, lists.of(kube.requests(pod)))
    end
  end
  return by_uid(owners), lists.mask(sum, allocatable)
end

-- The new status of a Reservation, or nil when it does not change. pods: those on its node; node_exists:
-- whether that node exists. A Reservation without a node is left to the scheduler, and does not expire.
function M.status(reservation, pods, node_exists, now)
  if M.ended(reservation) or not has_node(reservation) then return nil end
  local status, at = fields.copy(reservation.status), deadline(reservation)
  if at and now > at or not node_exists then
    status.phase = "Failed"
    set_ready(status, "Expired", now)
    return status
  end
  local owners, allocated = use(reservation, pods, lists.of(status.allocatable))
  local known = by_uid(status.currentOwners or {})
  if fields.equal(known, owners) and lists.same(allocated, lists.of(status.allocated)) then return nil end
  status.allocated, status.currentOwners = lists.texts(allocated), owners
  if dig(reservation, "spec", "allocateOnce") ~= false then
    status.phase = "Succeeded"
    set_ready(status, "Succeeded", now)
  end
  return status
end

-- ---------------------------------------------------------------- deletion

-- The time at which it expired or succeeded, in seconds, or nil.
local function ended_at(reservation)
  local phase = dig(reservation, "status", "phase")
  for _, condition in ipairs(dig(reservation, "status", "conditions") or {}) do
    local time
    if phase == "Failed" and condition.reason == "Expired" then time = condition.lastTransitionTime end
    if phase == "Succeeded" and condition.reason == "Succeeded" then time = condition.lastProbeTime end
    if time ~= nil then return kube.time(time):unix() end
  end
end

-- Seconds until the Reservation is deleted, 0 or less: now; nil: it has not ended, and stays. kept: seconds
-- from its end to its deletion.
function M.until_deleted(reservation, node_exists, now, kept)
  local at = ended_at(reservation)
  if not at then return nil end
  if not node_exists and has_node(reservation) then return 0 end
  return at + kept - now
end

return M
