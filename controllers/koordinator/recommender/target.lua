-- target.lua - the pods of a Recommendation: those of a workload of any kind, or those of a selector.
--   world  { controlled = function(kind, namespace, owner), selected = function(namespace, selector) }
-- `controlled` lists the objects of a kind whose controller is "Kind/name".

local fields = require "fields"
local workload = require "podmigrationjob.workload"

local M = {}

local dig = fields.dig

-- The kind between a workload and its pods.
local BETWEEN = { Deployment = "apps/v1/ReplicaSet", CronJob = "batch/v1/Job" }
M.POD = workload.POD
M.KINDS = { "apps/v1/ReplicaSet", "batch/v1/Job" }

-- For indexes: the controller of an object, as "Kind/name", or nil.
function M.controller_name(object)
  local owner = workload.controller(object)
  return owner and owner.kind .. "/" .. owner.name
end

local function group(version) return version:match "^(.*)/" or "" end

-- The objects whose controller is in the group of `version`; all of them when that is nil or "".
local function of_group(list, version)
  local out = {}
  for _, object in ipairs(list) do
    local same = version == nil or version == ""
      or group(version) == group(workload.controller(object).apiVersion)
    if same then out[#out + 1] = object end
  end
  return out
end

local function of_workload(ref, namespace, world)
  local between = BETWEEN[ref.kind]
  local list = of_group(world.controlled(between or M.POD, namespace, ref.kind .. "/" .. ref.name),
    ref.apiVersion)
  if not between then return list end
  local out, kind = {}, between:match "[^/]+$"
  for _, middle in ipairs(list) do
    for _, pod in ipairs(world.controlled(M.POD, namespace, kind .. "/" .. middle.metadata.name)) do
      if workload.controller(pod).uid == middle.metadata.uid then out[#out + 1] = pod end
    end
  end
  return out
end

-- The list of the pods; nil and the reason when the target is invalid.
function M.pods(recommendation, world)
  local target, namespace = dig(recommendation, "spec", "target"), recommendation.metadata.namespace
  local kind = dig(target, "type")
  if kind == "workload" then
    if dig(target, "workload") == nil then
      return nil, 'target.type is "workload", and target.workload is absent'
    end
    return of_workload(target.workload, namespace, world)
  elseif kind == "podSelector" then
    if dig(target, "podSelector") == nil then
      return nil, 'target.type is "podSelector", and target.podSelector is absent'
    end
    return world.selected(namespace, target.podSelector)
  end
  return nil, ('target.type is %q; it is "workload" or "podSelector"'):format(tostring(kind))
end

return M
