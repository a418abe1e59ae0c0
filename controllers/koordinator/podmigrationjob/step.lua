-- step.lua - the next step of a PodMigrationJob.
--   waiting --arbitration--> Running --reserve--> reserved --scheduled--> evicting
--   evicting --gone--> evicted --bound--> bound --ready--> Succeeded
--   any of them --> Failed, with the reason
-- A step reads the objects and returns the status to write and at most one action. The job's status is the
-- only memory.

local fields = require "fields"
local kube = require "kubelua"
local arbitrate = require "podmigrationjob.arbitrate"
local filter = require "podmigrationjob.filter"
local reserve = require "podmigrationjob.reserve"
local workload = require "podmigrationjob.workload"

local M = {}

local dig = fields.dig

local GRACE, LONGEST = 300, 1800 -- seconds that a job is kept: after its ttl; in all, without a ttl

-- ---------------------------------------------------------------- status

local function timestamp(now) return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(now)) end

local function condition(status, type)
  for i, one in ipairs(status.conditions or {}) do
    if one.type == type then return one, i end
  end
end

-- Sets a condition. When it changes, the fields status, reason and message of the status repeat it, and the
-- result is true.
local function set(s, type, value, reason, message)
  local old, at = condition(s.status, type)
  local fresh = { type = type, status = value, reason = reason, message = message,
    lastTransitionTime = old and old.status == value and old.lastTransitionTime or timestamp(s.now) }
  if old and fields.equal(old, fresh) then return false end
  s.status.conditions = s.status.conditions or {}
  s.status.conditions[at or #s.status.conditions + 1] = fresh
  s.status.status, s.status.reason, s.status.message = type, reason, message
  return true
end

local function tell(s, kind, reason, note)
  table.insert(s.out.events, { type = kind, reason = reason, message = note })
end

local function fail(s, reason, message)
  s.status.phase, s.status.reason, s.status.message = "Failed", reason, message
  tell(s, "Warning", reason, message)
end

local function succeed(s, message)
  s.status.phase, s.status.status = "Succeeded", "Complete"
  s.status.reason, s.status.message = nil, message
  tell(s, "Normal", "Complete", message)
end

local function missing_pod(s) fail(s, "MissingPod", ("Abort job caused by missing Pod %q"):format(s.key)) end

-- ---------------------------------------------------------------- steps
-- Where a step returns a boolean, true means that the next step follows at once.

local function start(s)
  if s.job_stage == "waiting" then return false end
  if not s.key then
    fail(s, "InvalidPodRef", "Abort job caused by invalid PodRef")
  elseif not s.pod or s.stranger then
    missing_pod(s)
  else
    s.out.uid = s.pod.metadata.uid
    s.status.phase = "Running"
    return true
  end
  return false
end

local function evict(s)
  local old = condition(s.status, "Eviction")
  if old and old.status == "True" then return true end
  if not s.pod or s.stranger then
    if not old then
      missing_pod(s)
      return false
    end
    set(s, "Eviction", "True", "EvictComplete")
    tell(s, "Normal", "EvictComplete", ("Pod %q has been evicted"):format(s.key))
    return true
  end
  if old and old.reason == "Evicting" then return false end
  if s.reservation and dig(s.reservation, "status", "phase") == "Succeeded" then
    fail(s, "ForbiddenMigratePod", "Reservation is already bound by another Pod")
    return false
  end
  s.out.evict = s.pod
  s.out.evicted = ("Pod %q evicted from node %q by the reason %q"):format(s.key,
    dig(s.pod, "spec", "nodeName") or "", M.reason(s.job))
  return false
end

local function evict_directly(s)
  if evict(s) then succeed(s, ("Pod %q has been evicted"):format(s.key)) end
end

local function reserved(s)
  local ref = dig(s.job, "spec", "reservationOptions", "reservationRef")
  if ref == nil then
    if s.pod and not s.stranger then
      s.out.reserve = reserve.manifest(s.job, s.pod, s.now)
    else
      missing_pod(s)
    end
    return false
  end
  if not s.reservation then
    fail(s, "MissingReservation", ("Abort job caused by missing Reservation %q"):format(ref.name or ""))
    return false
  end
  if fields.label(s.reservation, reserve.ORDER) == nil then s.out.order = reserve.order(s.now) end
  if set(s, "ReservationCreated", "True") then
    tell(s, "Normal", "ReservationCreated", ("Successfully create Reservation %q"):format(ref.name or ""))
  end
  return true
end

local function scheduled(s)
  local known, why = condition(s.status, "ReservationScheduled"), reserve.unschedulable(s.reservation)
  if why and (not known or known.status == "False")
    and set(s, "ReservationScheduled", "False", "Unschedulable", why.message) then
    tell(s, "Warning", "Unschedulable", why.message or "the Reservation has no node")
  end
  local state, name = reserve.state(s.reservation), s.reservation.metadata.name
  if state == "pending" then return false end
  if state == "expired" then
    fail(s, "ReservationExpired", "Reservation expired")
    return false
  elseif state == "unscheduled" then
    fail(s, "Unschedulable", why and why.message or "")
    return false
  end
  local node = s.reservation.status.nodeName
  if (s.status.nodeName or "") ~= "" or known and known.status == "True" then return true end
  -- A pod that had no node may already use the Reservation, on its node.
  local moves = s.pod and not s.stranger and not reserve.for_pending(s.reservation)
  if moves and dig(s.pod, "spec", "nodeName") == node then
    fail(s, "ForbiddenMigratePod",
      ("Scheduler assigns the Reservation %q on the same node as the Pod"):format(name))
    return false
  end
  s.status.nodeName = node
  set(s, "ReservationScheduled", "True")
  tell(s, "Normal", "ReservationScheduled", ("Assigned Reservation %q to node %q"):format(name, node))
  return true
end

-- The last step of a pod that had no node: it gets the Reservation's node, and nothing is evicted.
local function pending_pod(s)
  if not s.pod or s.stranger then return missing_pod(s) end
  local value, found = workload.condition(s.pod, "PodScheduled")
  if value == nil or value == "False" then
    local bound = reserve.bound(s.reservation)
    if dig(s.reservation, "status", "phase") == "Succeeded"
      and not (bound and bound.uid == s.pod.metadata.uid) then
      return fail(s, "ForbiddenMigratePod", "Reservation is already bound by another Pod")
    end
    set(s, "PodScheduled", "False", "Unschedulable", found and found.message or nil)
    return
  end
  set(s, "PodScheduled", "True")
  succeed(s, ("Assign Pod %q to node %q"):format(s.key, dig(s.pod, "spec", "nodeName") or ""))
end

local function bound(s)
  local known = condition(s.status, "PodBoundReservation")
  local pod = reserve.bound(s.reservation)
  if not pod then
    if not (known and known.status == "True") then
      set(s, "PodBoundReservation", "False", "WaitForPodBindReservation")
    end
    return false
  end
  s.bound_key = ("%s/%s"):format(pod.namespace or "", pod.name or "")
  if set(s, "ReservationBound", "True") then
    s.status.podRef = fields.copy(pod)
    tell(s, "Normal", "PodBoundReservation", ("Reservation bound by pod %q"):format(s.bound_key))
  end
  return true
end

local function ready(s)
  local known = condition(s.status, "BoundPodReady")
  if s.bound_pod and not workload.ready(s.bound_pod) and not (known and known.status == "True") then
    set(s, "BoundPodReady", "False", "WaitForBoundPodReady")
    return
  end
  set(s, "BoundPodReady", "True")
  local message = ("Bind Pod %q in Reservation %q"):format(s.bound_key, s.reservation.metadata.name)
  set(s, "PodBoundReservation", "True", nil, message)
  succeed(s, message)
end

-- ---------------------------------------------------------------- all steps

local function ttl_of(job)
  local ttl = dig(job, "spec", "ttl")
  return ttl and kube.duration(ttl) or 0
end

local function age_of(job, now) return now - kube.time(dig(job, "metadata", "creationTimestamp")):unix() end

-- Seconds until a job is deleted, in whatever phase it is; 0 or less: now.
function M.until_swept(job, now)
  local ttl = ttl_of(job)
  return (ttl > 0 and ttl + GRACE or LONGEST) - age_of(job, now)
end

-- The reason of the migration, from the annotations of the job.
function M.reason(job)
  for _, name in ipairs { "koordinator.sh/evict-reason", "koordinator.sh/evict-trigger" } do
    local text = fields.annotation(job, name)
    if text ~= nil and text ~= "" then return text end
  end
  return "NotSet"
end

-- Sets the condition of a pod that was evicted and is terminating.
function M.note_eviction(status, now, message)
  set({ status = status, now = now }, "Eviction", "False", "Evicting", message)
end

local function advance(s)
  local phase = s.status.phase
  if (phase == nil or phase == "" or phase == "Pending") and not start(s) then return end
  local mode = dig(s.job, "spec", "mode")
  if (mode == nil or mode == "") then mode = s.default_mode end
  if mode == "EvictDirectly" then return evict_directly(s) end
  if not reserved(s) or not scheduled(s) then return end
  if reserve.for_pending(s.reservation) then return pending_pod(s) end
  if evict(s) and bound(s) then ready(s) end
end

-- input: job, now (seconds), default_mode
--        pod          the pod with the name in spec.podRef, or nil
--        reservation  the object of spec.reservationOptions.reservationRef, or nil
--        bound_pod    the first of the reservation's currentOwners, or nil
-- Returns nil when there is nothing to do, otherwise { status = table, events = { ... } } and some of
--   uid      the pod's uid, for spec.podRef
--   reserve  the manifest of a Reservation to create
--   order    the value of the order label that the Reservation lacks
--   evict    the pod to evict; evicted: the message to record afterwards
--   timeout  true: the Reservation must be deleted
--   after    the seconds until the job times out
function M.step(input)
  local job, phase = input.job, dig(input.job, "status", "phase")
  local over = phase ~= nil and phase ~= "" and phase ~= "Pending" and phase ~= "Running"
  if dig(job, "spec", "paused") == true or over then return nil end
  local uid = dig(job, "spec", "podRef", "uid")
  local s = {
    job = job, now = input.now, default_mode = input.default_mode, job_stage = arbitrate.stage(job),
    pod = input.pod, reservation = input.reservation, bound_pod = input.bound_pod,
    key = filter.pod_key(job), status = fields.copy(dig(job, "status") or {}), out = { events = {} },
    -- The pod has the name of the job's pod, and another uid.
    stranger = input.pod ~= nil and uid ~= nil and uid ~= "" and uid ~= input.pod.metadata.uid,
  }
  local ttl = ttl_of(job)
  local left = ttl > 0 and ttl - age_of(job, input.now)
  if left and left <= 0 then
    s.out.timeout = true
    fail(s, "Timeout", "Abort job caused by timeout")
  else
    advance(s)
    s.out.after = left or nil
  end
  s.out.status = s.status
  return s.out
end

return M
