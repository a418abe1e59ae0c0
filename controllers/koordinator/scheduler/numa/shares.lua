-- shares.lua - the processors and NUMA nodes of pods and Reservations, as their annotations say them:
--   { cpus = ids, zones = list of { node, resources }, exclusive = policy or nil }

local cpus = require "scheduler.numa.cpus"
local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"

local M = {}

M.STATUS = "scheduling.koordinator.sh/resource-status"
M.SPEC = "scheduling.koordinator.sh/resource-spec"

-- The content of a pod's annotation, empty for an absent one; and the reason when it cannot be parsed.
function M.json_of(pod, name)
  local text = fields.annotation(pod, name)
  if text == nil then return {} end
  local said, why = fields.json(text)
  return said, why and ("the annotation %s cannot be parsed: %s"):format(name, why)
end

-- The share in a pod's annotation, or nil.
function M.read(pod)
  local text = fields.annotation(pod, M.STATUS)
  local said = text and fields.json(text)
  local set = said and cpus.parse(said.cpuset)
  if not set then return nil end
  local out = { cpus = cpus.list(set), zones = {} }
  for i, zone in ipairs(type(said.numaNodeResources) == "table" and said.numaNodeResources or {}) do
    local ok, resources = pcall(lists.of, zone.resources)
    if not ok then return nil end
    out.zones[i] = { node = zone.node or 0, resources = resources }
  end
  if #out.cpus == 0 and #out.zones == 0 then return nil end
  local spec = fields.annotation(pod, M.SPEC)
  out.exclusive = spec and fields.dig(fields.json(spec), "preferredCPUExclusivePolicy") or nil
  return out
end

-- The part of a Reservation's share that its pods do not use; its_pods: the list of their shares.
function M.rest(own, its_pods)
  local left, zones = {}, {}
  for _, id in ipairs(own.cpus) do left[id] = true end
  for i, zone in ipairs(own.zones) do
    zones[i] = { node = zone.node, resources = lists.copy(zone.resources) }
  end
  for _, one in ipairs(its_pods) do
    for _, id in ipairs(one.cpus) do left[id] = nil end
    for _, taken in ipairs(one.zones) do
      for _, zone in ipairs(zones) do
        for name, n in pairs(zone.node == taken.node and zone.resources or {}) do
          zone.resources[name] = math.max(n - (taken.resources[name] or 0), 0)
        end
      end
    end
  end
  return { cpus = cpus.list(left), zones = zones, exclusive = own.exclusive, all = own.cpus }
end

-- The texts of the pod's annotations STATUS and SPEC; nil for one that does not change.
function M.texts(got, pod)
  if not got or #got.cpus == 0 and #got.zones == 0 then return nil, nil end
  local parts = {}
  if #got.cpus > 0 then parts[1] = ('"cpuset":"%s"'):format(cpus.text(got.cpus)) end
  local zones = {}
  for i, zone in ipairs(got.zones) do
    zones[i] = ('{"node":%d,"resources":%s}'):format(zone.node, lists.json(zone.resources))
  end
  if #zones > 0 then parts[#parts + 1] = '"numaNodeResources":[' .. table.concat(zones, ",") .. "]" end
  local status = "{" .. table.concat(parts, ",") .. "}"
  if not got.policy then return status, nil end
  local said = M.json_of(pod, M.SPEC) or {}
  local required, preferred = said.requiredCPUBindPolicy or "", said.preferredCPUBindPolicy or ""
  local changed = false
  if got.policy.required and (required == "" or required == "Default") then
    said.requiredCPUBindPolicy, required, changed = got.policy.name, got.policy.name, true
  end
  if preferred == "Default" or required == "" and preferred == "" then
    said.preferredCPUBindPolicy, changed = got.policy.name, true
  end
  return status, changed and kube.encode(kube.object(said)) or nil
end

return M
