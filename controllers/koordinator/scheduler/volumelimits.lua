-- volumelimits.lua - NodeVolumeLimits: the limit of a node for volumes of each CSI driver, from its CSINode.
-- cycle.state.volumes (volumes.lua) has these fields for it, and the claims of pods on nodes:
--
--   limits = { [node name] = { [driver] = count } }
--   attached = { [node name] = { [volume of a driver] = driver } }
--
-- A volume counts once, however many pods use it, and as long as it is attached. A volume that does not exist
-- yet counts for the provisioner of its class. A volume without a driver (spec.csi) does not count. Without
-- limits nothing is checked.

local fields = require "fields"
local volumes = require "scheduler.volumes"

local dig = fields.dig

local M = { name = "NodeVolumeLimits" }

M.NODE, M.ATTACHMENT = "storage.k8s.io/v1/CSINode", "storage.k8s.io/v1/VolumeAttachment"

local TOO_MANY = { "node(s) exceed max volume count" }

--- { [node name] = { [driver] = count } } of CSINodes; a driver without a count has no limit.
function M.limits(nodes)
  local out = {}
  for _, node in ipairs(nodes) do
    for _, driver in ipairs(dig(node, "spec", "drivers") or {}) do
      local count = dig(driver, "allocatable", "count")
      if count then
        out[node.metadata.name] = out[node.metadata.name] or {}
        out[node.metadata.name][driver.name] = count
      end
    end
  end
  return out
end

-- Adds a PersistentVolume of a driver to { [volume of a driver] = driver }.
local function add(out, volume)
  local driver, handle = dig(volume, "spec", "csi", "driver"), dig(volume, "spec", "csi", "volumeHandle")
  if driver and handle then out[driver .. "/" .. handle] = driver end
end

--- { [node name] = { [volume of a driver] = driver } } of VolumeAttachments; volume_of(name) returns a
--- PersistentVolume.
function M.attached(attachments, volume_of)
  local out = {}
  for _, one in ipairs(attachments) do
    local node, name = dig(one, "spec", "nodeName"), dig(one, "spec", "source", "persistentVolumeName")
    if node and name then
      out[node] = out[node] or {}
      add(out[node], volume_of(name))
    end
  end
  return out
end

-- The volumes of a pod, added to { [volume of a driver] = driver }.
local function add_pod(out, pod, known)
  for _, one in ipairs(volumes.claims_of(pod)) do
    local key = pod.metadata.namespace .. "/" .. one.name
    local claim = dig(known, "claims", key)
    local volume = dig(known, "volumes", dig(claim, "spec", "volumeName") or "")
    if volume then
      add(out, volume)
    elseif claim then
      local driver = dig(known, "classes", volumes.class_name(claim), "provisioner")
      if driver then out[driver .. "//" .. key] = driver end
    end
  end
end

-- The volumes on a node; cached until the node changes.
local function on_node(info, known)
  if not info.volumes then
    info.volumes = fields.copy(dig(known, "attached", info.name)) or {}
    for _, entry in pairs(info.pods) do add_pod(info.volumes, entry.pod, known) end
  end
  return info.volumes
end

function M.prefilter(pod, cycle)
  cycle.own_volumes = nil
  local known = cycle.state.volumes
  if pod.reserves or not dig(known, "limits") or #volumes.claims_of(pod) == 0 then return nil end
  cycle.unlike, cycle.own_volumes = true, {}
  add_pod(cycle.own_volumes, pod, known)
end

function M.agrees(_, cycle) return cycle.own_volumes == nil end

function M.filter(_, info, cycle)
  local known = cycle.state.volumes
  local limits = cycle.own_volumes and dig(known, "limits", info.name)
  if not limits then return nil end
  local there, count = on_node(info, known), {}
  for _, driver in pairs(there) do count[driver] = (count[driver] or 0) + 1 end
  for volume, driver in pairs(cycle.own_volumes) do
    if not there[volume] and limits[driver] then
      count[driver] = (count[driver] or 0) + 1
      if count[driver] > limits[driver] then return TOO_MANY end
    end
  end
  return nil
end

return M
