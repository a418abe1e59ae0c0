-- workload.lua - the workload of a pod: its number of replicas, and its pods.
--   world  { get = function(kind, namespace, name), owned = function(kind, namespace, uid),
--            scale = function(kind, namespace, name) }
-- `owned` lists the objects of a kind that a controller owns. `scale` returns the Scale of a workload of
-- a kind in SCALED, or nil.

local fields = require "fields"
local kube = require "kubelua"
local pods = require "pods"

local M = {}

local dig = fields.dig

local DEPLOYMENT, REPLICA_SET = "apps/v1/Deployment", "apps/v1/ReplicaSet"
M.POD = "v1/Pod"
M.KINDS = { DEPLOYMENT, REPLICA_SET, "apps/v1/StatefulSet", "v1/ReplicationController" }

-- The reference to the controller of an object, or nil.
function M.controller(object)
  for _, owner in ipairs(dig(object, "metadata", "ownerReferences") or {}) do
    if owner.controller == true then return owner end
  end
end

-- For indexes: the uid of an object's controller, or nil.
function M.controller_uid(object)
  local owner = M.controller(object)
  return owner and owner.uid
end

local function known(kind)
  for _, one in ipairs(M.KINDS) do
    if one == kind then return true end
  end
  return false
end

-- The object of a kind in M.KINDS, the Scale of any other; and the kind.
local function find(owner, namespace, world)
  local kind = owner.apiVersion .. "/" .. owner.kind
  local read = known(kind) and world.get or world.scale
  local object = read(kind, namespace, owner.name)
  if object and object.metadata.uid == owner.uid then return object, kind end
end

-- The pods of a workload; a Deployment has those of all its ReplicaSets.
local function pods_of(object, kind, namespace, world)
  if kind ~= DEPLOYMENT then return world.owned(M.POD, namespace, object.metadata.uid) end
  local out = {}
  for _, set in ipairs(world.owned(REPLICA_SET, namespace, object.metadata.uid)) do
    for _, pod in ipairs(world.owned(M.POD, namespace, set.metadata.uid)) do out[#out + 1] = pod end
  end
  return out
end

-- { uid, replicas, pods } of a pod's workload; nil: the pod has no controller. A workload that was deleted,
-- or is of another kind, has no replicas and no pods.
function M.of(pod, world)
  local owner = M.controller(pod)
  if not owner then return nil end
  local namespace = pod.metadata.namespace
  local object, kind = find(owner, namespace, world)
  local above = object and kind == REPLICA_SET and M.controller(object)
  if above and above.kind == "Deployment" then object, kind = find(above, namespace, world) end
  if not object then return { uid = owner.uid, replicas = 0, pods = {} } end
  local replicas = dig(object, "spec", "replicas")
  replicas = replicas or (known(kind) and 1 or 0) -- the field of a Scale is left out if it is 0
  return { uid = owner.uid, replicas = replicas, pods = pods_of(object, kind, namespace, world) }
end

-- Which pods of a workload are not available: { [pod key] = true }.
local function unavailable(load)
  local out = {}
  for _, pod in ipairs(load.pods) do
    if not M.available(pod) then out[pods.key(pod)] = true end
  end
  return out
end

-- A function that returns the workload of a pod for filter.lua, and reads each once; and what it has read, by
-- the uid of the pods' controller.
function M.loads(world)
  local loads = {}
  return function(pod)
    local uid = M.controller_uid(pod)
    if not uid then return nil end
    if not loads[uid] then
      local load = M.of(pod, world)
      loads[uid] = load and { uid = load.uid, replicas = load.replicas, unavailable = unavailable(load) }
    end
    return loads[uid]
  end, loads
end

-- Whether a pod is available: ready, and neither ended nor terminating.
function M.available(pod)
  local phase = dig(pod, "status", "phase")
  if phase == "Succeeded" or phase == "Failed" or dig(pod, "metadata", "deletionTimestamp") ~= nil then
    return false
  end
  return M.ready(pod)
end

-- The status of a pod's condition: "True", "False", "Unknown" or nil; and the condition.
function M.condition(pod, type)
  for _, condition in ipairs(dig(pod, "status", "conditions") or {}) do
    if condition.type == type then return condition.status, condition end
  end
end

function M.ready(pod) return M.condition(pod, "Ready") == "True" end

-- ---------------------------------------------------------------- in a controller

--- The indexes that M.world needs, for a controller with M.KINDS in its reads.
M.INDEXES = {
  [M.POD] = { owner = M.controller_uid },
  [REPLICA_SET] = { owner = M.controller_uid },
}

-- The workloads that are known by their Scale, of OpenKruise; any other kind that has one may be added. Each
-- is named where it is read, so that `kubelua rbac` prints the right.
local CLONE_SET, KRUISE_SET = "apps.kruise.io/v1alpha1/CloneSet", "apps.kruise.io/v1beta1/StatefulSet"
local SCALED = {
  [CLONE_SET] = function(ctx, namespace, name) return ctx:get_scale(CLONE_SET, namespace, name) end,
  [KRUISE_SET] = function(ctx, namespace, name) return ctx:get_scale(KRUISE_SET, namespace, name) end,
}

-- Scales are read from the server, and so are remembered for a while.
local SCALE_KEPT = 30 -- seconds
local scales = { since = -math.huge, of = {} }

local function scale_of(ctx, kind, namespace, name)
  local now = ctx:now():unix()
  if now < scales.since or now - scales.since >= SCALE_KEPT then scales = { since = now, of = {} } end
  local key = table.concat({ kind, namespace, name }, "/")
  if SCALED[kind] and scales.of[key] == nil then
    local scale, why = kube.try(SCALED[kind], ctx, namespace, name)
    if why and why.kind ~= "not_found" then -- the server may not have the kind
      ctx.log:warn("the replicas of %s are not known: %s", key, tostring(why))
    end
    scales.of[key] = scale or false
  end
  return scales.of[key] or nil
end

function M.world(ctx)
  return {
    get = function(kind, namespace, name) return ctx:get(kind, namespace, name) end,
    owned = function(kind, namespace, uid)
      return ctx:list(kind, { namespace = namespace, index = "owner", value = uid })
    end,
    scale = function(kind, namespace, name) return scale_of(ctx, kind, namespace, name) end,
  }
end

return M
