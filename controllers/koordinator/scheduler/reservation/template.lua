-- template.lua - a Reservation that waits for its own node: the pod of its template, which is scheduled like
-- any other, and the status that it gets.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"

local dig = fields.dig

local M = {}

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

return M
