-- volumes.lua - plays the volume controllers: claims are bound to the smallest volume that does, or to one
-- that is made where their class has a provisioner; volumes whose claim is gone are deleted or released.
-- Where there is no class, "standard" is made, the default one. A claim that is older than the default class
-- gets it when no volume does.

local kube = require "kubelua"
local stale = require "lib.stale"

local CLAIM, VOLUME, CLASS, POD = "v1/PersistentVolumeClaim", "v1/PersistentVolume",
  "storage.k8s.io/v1/StorageClass", "v1/Pod"
local BOUND, BY = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
local NONE = "kubernetes.io/no-provisioner"

local function covers(list, all)
  local has = {}
  for _, x in ipairs(list or {}) do has[x] = true end
  for _, x in ipairs(all or {}) do
    if not has[x] then return false end
  end
  return true
end

local function room(x) return kube.qty(x or "0") end

local function is_of(volume, claim)
  local ref = volume("spec.claimRef")
  return ref ~= nil and ref.namespace == claim.metadata.namespace and ref.name == claim.metadata.name
    and (ref("uid") == nil or ref.uid == claim.metadata.uid)
end

local function fits(volume, claim)
  local named = claim("spec.volumeName")
  if named and named ~= "" then return volume.metadata.name == named end
  if is_of(volume, claim) then return true end
  return volume("spec.claimRef") == nil and not volume("metadata.deletionTimestamp")
    and (volume("spec.storageClassName") or "") == (claim("spec.storageClassName") or "")
    and (volume("spec.volumeMode") or "Filesystem") == (claim("spec.volumeMode") or "Filesystem")
    and covers(volume("spec.accessModes"), claim("spec.accessModes"))
    and room(volume("spec.capacity.storage")) >= room(claim("spec.resources.requests.storage"))
    and (claim("spec.selector") == nil
      or kube.selector(claim.spec.selector):matches(volume("metadata.labels") or {}))
end

local function find(claim, ctx)
  local best ---@type kubelua.view?
  for volume in ctx:each(VOLUME) do
    if fits(volume, claim) and (best == nil or is_of(volume, claim) or not is_of(best, claim)
      and room(volume.spec.capacity.storage) < room(best.spec.capacity.storage)) then
      best = volume
    end
  end
  return best
end

local function provision(claim, class, ctx)
  local name = "pvc-" .. claim.metadata.uid
  return stale.create({ apiVersion = "v1", kind = "PersistentVolume",
    metadata = { name = name, annotations = { ["pv.kubernetes.io/provisioned-by"] = class.provisioner } },
    spec = { capacity = { storage = claim.spec.resources.requests.storage },
      accessModes = claim.spec.accessModes,
      storageClassName = class.metadata.name, volumeMode = claim("spec.volumeMode"),
      persistentVolumeReclaimPolicy = class("reclaimPolicy") or "Delete",
      hostPath = { path = "/simulated/" .. name } } }, function() return true end, ctx)
end

local function bind(claim, volume, ctx)
  stale.patch(volume, { spec = { claimRef = { apiVersion = "v1", kind = "PersistentVolumeClaim",
    namespace = claim.metadata.namespace, name = claim.metadata.name, uid = claim.metadata.uid } } }, ctx)
  claim = ctx:patch(claim, { spec = { volumeName = volume.metadata.name },
    metadata = { annotations = { [BOUND] = "yes", [BY] = "yes" } } })
  ctx:patch_status(claim, { phase = "Bound", accessModes = volume.spec.accessModes,
    capacity = volume.spec.capacity })
end

-- The newest of the default classes.
local function default_class(ctx)
  local best ---@type kubelua.view?
  for class in ctx:each(CLASS) do
    local marks = class("metadata.annotations") or {}
    if marks["storageclass.kubernetes.io/is-default-class"] == "true" and (best == nil
      or class.metadata.creationTimestamp > best.metadata.creationTimestamp) then
      best = class
    end
  end
  return best
end

-- The claims that are not bound yet.
local function waiting(ctx)
  local keys = {}
  for claim in ctx:each(CLAIM) do
    if claim("status.phase") ~= "Bound" then
      keys[#keys + 1] = claim.metadata.namespace .. "/" .. claim.metadata.name
    end
  end
  return keys
end

local claims = kube.controller {
  name = "simulate-claims",
  resource = CLAIM,
  watches = {
    [VOLUME] = { function(_, ctx) return waiting(ctx) end, when = { "spec" } },
    [CLASS] = function(_, ctx) return waiting(ctx) end,
    [POD] = function(pod)
      local keys = {}
      for _, v in ipairs(pod("spec.volumes") or {}) do
        local name = v("persistentVolumeClaim.claimName")
        if name then keys[#keys + 1] = pod.metadata.namespace .. "/" .. name end
      end
      return keys
    end,
  },
  indexes = { [POD] = { claim = function(pod)
    local names = {}
    for _, v in ipairs(pod("spec.volumes") or {}) do
      names[#names + 1] = v("persistentVolumeClaim.claimName")
    end
    return names
  end } },
  serial = function() return "one volume at a time" end,
  reconcile = function(claim, ctx)
    if claim("metadata.deletionTimestamp") or claim("status.phase") == "Bound" then return end
    local named = claim("spec.storageClassName")
    local class = named and named ~= "" and ctx:get(CLASS, named)
    if class and class("volumeBindingMode") == "WaitForFirstConsumer" and #ctx:list(POD, { limit = 1,
      namespace = claim.metadata.namespace, index = "claim", value = claim.metadata.name }) == 0 then
      return -- the pod wakes it
    end
    local volume = find(claim, ctx)
    if not volume and class and class.provisioner ~= NONE and not claim("spec.volumeName")
      and not claim("spec.selector") then
      volume = provision(claim, class, ctx)
    end
    if volume then
      bind(claim, volume, ctx)
    elseif named == nil then
      local default = default_class(ctx)
      if default then ctx:patch(claim, { spec = { storageClassName = default.metadata.name } }) end
    end
  end,
}

local volumes = kube.controller {
  name = "simulate-volumes",
  resource = VOLUME,
  watches = {
    [CLAIM] = { function(claim) return claim("spec.volumeName") end, when = { "spec", "status.phase" } },
  },
  reconcile = function(volume, ctx)
    if volume("metadata.deletionTimestamp") then return end
    local ref = volume("spec.claimRef")
    local claim = ref and ctx:get(CLAIM, ref.namespace, ref.name)
    local gone = ref and ref("uid") and (not claim or claim.metadata.uid ~= ref.uid)
    if gone and volume("status.phase") ~= "Released" and ctx.live:get(CLAIM, ref.namespace, ref.name)
      and claim == nil then
      return "1s" -- the cache is behind
    end
    if gone and volume("spec.persistentVolumeReclaimPolicy") == "Delete" then
      ctx:delete(volume, { uid = volume.metadata.uid })
      return
    end
    local bound = claim and ref("uid")
    ctx:patch_status(volume, { phase = gone and "Released" or bound and "Bound" or "Available" })
  end,
}

local classes = kube.controller {
  name = "simulate-classes",
  resource = "v1/Namespace",
  selector = { fields = "metadata.name=default" },
  reads = { CLASS },
  reconcile = function(_, ctx)
    if ctx.memo.made then return end
    if #ctx:list(CLASS, { limit = 1 }) == 0 then
      ctx.try:create { kind = CLASS, name = "standard", provisioner = "simulate.kubelua.dev/volumes",
        reclaimPolicy = "Delete", volumeBindingMode = "Immediate",
        annotations = { ["storageclass.kubernetes.io/is-default-class"] = "true" } }
    end
    ctx.memo.made = true
  end,
}

return { claims, volumes, classes }
