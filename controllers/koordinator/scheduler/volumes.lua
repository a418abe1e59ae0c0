-- volumes.lua - VolumeBinding and VolumeZone: the nodes that can use a pod's volumes. cycle.state.volumes has
--
--   { claims = { ["namespace/name"] = PersistentVolumeClaim }, volumes = { [name] = PersistentVolume },
--     classes = { [name] = StorageClass } }
--
--   a claim with a volume          nodes in the volume's node affinity and zone
--   a claim with immediate binding no node, until it has a volume
--   a claim that waits for its pod nodes in its class's allowedTopologies; the scheduler writes the node into
--                                  the claim before it binds the pod, and the provisioner creates the volume
--
-- A waiting claim of a class without a provisioner needs an existing volume, which this scheduler does not
-- choose: no node fits. Without cycle.state.volumes nothing is checked.

local fields = require "fields"
local nodefit = require "lib.nodefit"

local dig = fields.dig

local M = { name = "VolumeBinding" }

M.CLAIM, M.VOLUME = "v1/PersistentVolumeClaim", "v1/PersistentVolume"
M.CLASS = "storage.k8s.io/v1/StorageClass"
M.SELECTED = "volume.kubernetes.io/selected-node"

local BOUND = "pv.kubernetes.io/bind-completed"
local CLASS_BETA = "volume.beta.kubernetes.io/storage-class"
local NO_PROVISIONER = "kubernetes.io/no-provisioner"
local ZONES = {
  ["topology.kubernetes.io/zone"] = "topology.kubernetes.io/zone",
  ["topology.kubernetes.io/region"] = "topology.kubernetes.io/region",
  ["failure-domain.beta.kubernetes.io/zone"] = "topology.kubernetes.io/zone",
  ["failure-domain.beta.kubernetes.io/region"] = "topology.kubernetes.io/region",
}

-- The names of a pod's claims; own: the claim is created for the pod (an ephemeral volume).
function M.claims_of(pod)
  local out = {}
  for _, volume in ipairs(dig(pod, "spec", "volumes") or {}) do
    local claim = dig(volume, "persistentVolumeClaim", "claimName")
    if claim then out[#out + 1] = { name = claim } end
    if volume.ephemeral then
      out[#out + 1] = { name = pod.metadata.name .. "-" .. volume.name, own = true }
    end
  end
  return out
end

local function missing(one)
  if one.own then
    return ('waiting for ephemeral volume controller to create the persistentvolumeclaim "%s"')
      :format(one.name)
  end
  return ('persistentvolumeclaim "%s" not found'):format(one.name)
end

local function is_bound(claim)
  return (dig(claim, "spec", "volumeName") or "") ~= "" and fields.annotation(claim, BOUND) ~= nil
end

function M.class_name(claim)
  return fields.annotation(claim, CLASS_BETA) or dig(claim, "spec", "storageClassName") or ""
end

-- Reads the claims, volumes and classes of some pods, for cycle.state.volumes. get(kind, namespace or name,
-- name) reads an object.
function M.known(pods, get)
  local known = { claims = {}, volumes = {}, classes = {} }
  for _, pod in ipairs(pods) do
    local namespace = pod.metadata.namespace
    for _, one in ipairs(M.claims_of(pod)) do
      local claim = get(M.CLAIM, namespace, one.name)
      known.claims[namespace .. "/" .. one.name] = claim
      local volume, class = dig(claim, "spec", "volumeName") or "", claim and M.class_name(claim) or ""
      if volume ~= "" then known.volumes[volume] = get(M.VOLUME, volume) end
      if class ~= "" then known.classes[class] = get(M.CLASS, class) end
    end
  end
  return known
end

-- The volumes of a pod: { volumes = list of PersistentVolumes, waiting = list of { claim, class }, lost =
-- whether a volume does not exist }; or nil and the reason why no node fits.
local function read(pod, known)
  local out = { volumes = {}, waiting = {} }
  for _, one in ipairs(M.claims_of(pod)) do
    local claim = dig(known, "claims", pod.metadata.namespace .. "/" .. one.name)
    if claim == nil then return nil, missing(one) end
    if dig(claim, "metadata", "deletionTimestamp") ~= nil then
      return nil, ('persistentvolumeclaim "%s" is being deleted'):format(one.name)
    end
    local class = dig(known, "classes", M.class_name(claim))
    if is_bound(claim) then
      local volume = dig(known, "volumes", claim.spec.volumeName)
      if volume then out.volumes[#out.volumes + 1] = volume else out.lost = true end
    elseif (dig(claim, "spec", "volumeName") or "") ~= ""
      or dig(class, "volumeBindingMode") ~= "WaitForFirstConsumer" then
      return nil, "pod has unbound immediate PersistentVolumeClaims"
    else
      out.waiting[#out.waiting + 1] = { claim = claim, class = class }
    end
  end
  return out
end

local function in_zone(volume, labels)
  for key, now in pairs(ZONES) do
    local wanted = dig(volume, "metadata", "labels", key)
    if wanted ~= nil then
      local value, found = labels[key] or labels[now], false
      for one in (wanted .. "__"):gmatch "(.-)__" do found = found or one == value end
      if not found then return false end
    end
  end
  return true
end

-- Whether a node has a label of a zone; without one, the cluster has no zones.
local function has_zone(labels)
  for key in pairs(ZONES) do
    if labels[key] ~= nil then return true end
  end
  return false
end

local function allows(class, node)
  local topologies = class.allowedTopologies
  if topologies == nil or #topologies == 0 then return true end
  local labels = dig(node, "metadata", "labels") or {}
  for _, term in ipairs(topologies) do
    local holds = true
    for _, one in ipairs(term.matchLabelExpressions or {}) do
      local found = false
      for _, value in ipairs(one.values or {}) do found = found or labels[one.key] == value end
      holds = holds and found
    end
    if holds then return true end
  end
  return false
end

function M.prefilter(pod, cycle)
  cycle.volumes = nil
  if cycle.state.volumes == nil or pod.reserves or #M.claims_of(pod) == 0 then return nil end
  cycle.unlike = true
  local why
  cycle.volumes, why = read(pod, cycle.state.volumes)
  return why
end

function M.agrees(_, cycle) return cycle.volumes == nil end

function M.filter(_, info, cycle)
  local mine = cycle.volumes
  if not mine then return nil end
  local labels = dig(info.node, "metadata", "labels") or {}
  if mine.lost then
    return { "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)" }
  end
  for _, volume in ipairs(mine.volumes) do
    if not nodefit.selects(dig(volume, "spec", "nodeAffinity", "required"), info.node) then
      return { "node(s) didn't match PersistentVolume's node affinity" }
    end
    if has_zone(labels) and not in_zone(volume, labels) then
      return { "node(s) had no available volume zone" }
    end
  end
  for _, one in ipairs(mine.waiting) do
    local selected = fields.annotation(one.claim, M.SELECTED)
    if one.class.provisioner == NO_PROVISIONER or not allows(one.class, info.node)
      or selected and selected ~= info.name then
      return { "node(s) didn't find available persistent volumes to bind" }
    end
  end
  return nil
end

-- The claims of a pod that wait for its node.
function M.waiting_of(pod, known)
  local out, mine = {}, read(pod, known)
  for i, one in ipairs(mine and mine.waiting or {}) do out[i] = one.claim end
  return out
end

return M
