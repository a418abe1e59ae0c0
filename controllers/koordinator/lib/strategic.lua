-- strategic.lua - applies a strategic merge patch to a Pod, as plain tables: objects merge field by field,
-- null removes a field, lists with a key merge element by element, other lists are replaced.

local kube = require "kubelua"

local M = {}

-- The lists of a Pod that merge, and the field that names their elements.
local KEYS = {
  containers = "name", initContainers = "name", ephemeralContainers = "name", volumes = "name", env = "name",
  imagePullSecrets = "name", resourceClaims = "name", schedulingGates = "name", ports = "containerPort",
  volumeMounts = "mountPath", volumeDevices = "devicePath", hostAliases = "ip",
  topologySpreadConstraints = "topologyKey", ownerReferences = "uid",
}

local function is_object(v)
  local kind = type(v)
  return kind == "table" and #v == 0 or kind == "userdata" and v ~= kube.null and #v == 0
end

local merge

local function find(list, key, value)
  for i, element in ipairs(list) do
    if element[key] == value then return i end
  end
end

-- Sorts a merged list. The elements in the patch are in the order of the patch, the others in their own
-- order; another element comes before the next patched one if it did so in the original list.
local function in_order(merged, list, patch, key)
  local named, others, out = {}, {}, {}
  for _, element in ipairs(patch) do
    local at = find(merged, key, element[key])
    if at and not find(named, key, element[key]) then named[#named + 1] = merged[at] end
  end
  for _, element in ipairs(merged) do
    if not find(named, key, element[key]) then others[#others + 1] = element end
  end
  local i, j = 1, 1
  while others[i] or named[j] do
    local other, one = others[i], named[j]
    local was_at = one and find(list, key, one[key])
    if other and (not one or was_at and find(list, key, other[key]) < was_at) then
      out[#out + 1], i = other, i + 1
    else
      out[#out + 1], j = one, j + 1
    end
  end
  return out
end

local function merge_list(list, patch, key)
  local out = {}
  for i, element in ipairs(list) do out[i] = element end
  for _, element in ipairs(patch) do
    local directive = element["$patch"]
    if directive == "replace" and element[key] == nil then
      out = {}
    else
      local at = find(out, key, element[key])
      if directive == "delete" then
        if at then table.remove(out, at) end
      else
        out[at or #out + 1] = merge(at and out[at] or {}, element)
      end
    end
  end
  return in_order(out, list, patch, key)
end

function merge(base, patch)
  if patch["$patch"] == "delete" then return {} end
  local out = {}
  for k, v in pairs(patch["$patch"] == "replace" and {} or base) do out[k] = v end
  for k, v in pairs(patch) do
    local key = KEYS[k]
    if v == kube.null then
      out[k] = nil
    elseif type(k) == "string" and k:sub(1, 1) == "$" then
      out[k] = nil -- a directive, not a field
    elseif key and type(out[k]) == "table" and #v > 0 then
      out[k] = merge_list(out[k], v, key)
    elseif is_object(v) then
      out[k] = merge(is_object(out[k]) and out[k] or {}, v)
    else
      out[k] = type(v) == "userdata" and kube.copy(v) or v
    end
  end
  return out
end

M.merge = merge

return M
