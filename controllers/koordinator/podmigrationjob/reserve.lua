-- reserve.lua - the Reservation of a PodMigrationJob: it holds resources for the pod on another node. Its
-- fields come from the job's template, and those that are missing there from the pod.

local fields = require "fields"
local workload = require "podmigrationjob.workload"

local M = {}

local dig = fields.dig

M.API = "scheduling.koordinator.sh/v1alpha1"
M.KIND, M.JOB = M.API .. "/Reservation", M.API .. "/PodMigrationJob"
M.ORDER = "scheduling.koordinator.sh/reservation-order"
local CREATED_BY, CREATOR = "app.kubernetes.io/created-by", "koord-descheduler"

-- The fields of a pod's metadata that go into the template: schedulers read these.
local KEPT = { "namespace", "name", "labels", "annotations", "ownerReferences" }

-- The value of the label that orders Reservations: milliseconds.
function M.order(now) return ("%d"):format(math.floor(now * 1000)) end

local function template_of(pod)
  local metadata = {}
  for _, field in ipairs(KEPT) do metadata[field] = fields.copy(dig(pod, "metadata", field)) end
  return { metadata = metadata, spec = fields.copy(pod.spec) }
end

-- The owners of the Reservation: the pod itself when it has no node yet, otherwise all pods of its
-- controller.
local function owners_of(pod)
  if dig(pod, "status", "phase") == "Pending" and workload.condition(pod, "PodScheduled") == "False" then
    local meta = pod.metadata
    return { { object = { kind = "Pod", namespace = meta.namespace, name = meta.name, uid = meta.uid } } }
  end
  local owner = fields.copy(workload.controller(pod))
  if not owner then return nil end
  owner.namespace = pod.metadata.namespace
  return { { controller = owner } }
end

-- Adds an affinity that excludes the pod's own node.
local function keep_off(spec, node)
  if node == nil or node == "" then return end
  local name = "requiredDuringSchedulingIgnoredDuringExecution"
  spec.affinity = spec.affinity or {}
  spec.affinity.nodeAffinity = spec.affinity.nodeAffinity or {}
  local required = spec.affinity.nodeAffinity[name] or {}
  spec.affinity.nodeAffinity[name] = required
  if #(required.nodeSelectorTerms or {}) == 0 then required.nodeSelectorTerms = { {} } end
  for _, term in ipairs(required.nodeSelectorTerms) do
    term.matchFields = term.matchFields or {}
    table.insert(term.matchFields, { key = "metadata.name", operator = "NotIn", values = { node } })
  end
end

-- The manifest of the Reservation. The job owns it, so it is deleted with the job.
function M.manifest(job, pod, now)
  local given = fields.copy(dig(job, "spec", "reservationOptions", "template")) or {}
  local metadata, spec = given.metadata or {}, given.spec or {}
  metadata.name = metadata.name or job.metadata.uid
  metadata.labels = metadata.labels or {}
  metadata.labels[CREATED_BY], metadata.labels[M.ORDER] = CREATOR, M.order(now)
  metadata.ownerReferences = { { apiVersion = M.API, kind = "PodMigrationJob",
    name = job.metadata.name, uid = job.metadata.uid } }
  spec.template = spec.template or template_of(pod)
  spec.template.spec.nodeName = nil
  keep_off(spec.template.spec, dig(pod, "spec", "nodeName"))
  if #(spec.owners or {}) == 0 then spec.owners = owners_of(pod) end
  spec.allocateOnce = true
  if spec.ttl == nil and spec.expires == nil then spec.ttl = dig(job, "spec", "ttl") end
  return { apiVersion = M.API, kind = "Reservation",
    metadata = metadata, spec = spec }
end

function M.reference(reservation)
  return { apiVersion = M.API, kind = "Reservation",
    name = reservation.metadata.name, uid = reservation.metadata.uid }
end

-- ---------------------------------------------------------------- reading a Reservation

function M.condition(reservation, type, reason)
  for _, condition in ipairs(dig(reservation, "status", "conditions") or {}) do
    if condition.type == type and (reason == nil or condition.reason == reason) then return condition end
  end
end

function M.unschedulable(reservation) return M.condition(reservation, "Scheduled", "Unschedulable") end

-- The state of a Reservation: "pending", "expired", "unscheduled" or "scheduled".
function M.state(reservation)
  local phase = dig(reservation, "status", "phase")
  if phase == nil or phase == "" or phase == "Pending" then return "pending" end
  if phase == "Failed" and M.condition(reservation, "Ready", "Expired") then return "expired" end
  local node = dig(reservation, "status", "nodeName")
  local scheduled = M.condition(reservation, "Scheduled", "Scheduled")
  if node == nil or node == "" or not scheduled or scheduled.status ~= "True" then return "unscheduled" end
  return "scheduled"
end

-- The reference to the pod that uses the Reservation, or nil.
function M.bound(reservation) return (dig(reservation, "status", "currentOwners") or {})[1] end

-- Whether the Reservation is for one pod that has no node yet.
function M.for_pending(reservation)
  for _, owner in ipairs(dig(reservation, "spec", "owners") or {}) do
    if owner.object ~= nil and owner.controller == nil and owner.labelSelector == nil then return true end
  end
  return false
end

return M
