-- root.lua - computes the root ElasticQuota of a tree from the ElasticQuotaProfile and the nodes that it
-- selects.

local kube = require "kubelua"
local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"
local quota = require "elasticquota.quota"

local M = {}

-- FNV-1a of 64 bits; the offset is 14695981039346656037 as an unsigned number.
local FNV_OFFSET, FNV_PRIME = -3750763034362895579, 1099511628211

-- An integer's 64 bits as an unsigned decimal number.
local function unsigned(n)
  if n >= 0 then return ("%d"):format(n) end
  local tens = (n >> 1) // 5
  return ("%d%d"):format(tens, n - tens * 10)
end

-- The id of a profile's tree when its label has none.
function M.tree_id(namespace, name)
  local hash = FNV_OFFSET
  for i = 1, #namespace + 1 + #name do
    hash = (hash ~ (namespace .. "/" .. name):byte(i)) * FNV_PRIME
  end
  return unsigned(hash)
end

-- The id in the label, or the id that the label should have.
function M.tree_of(profile)
  local id = fields.label(profile, keys.tree_id)
  if id ~= nil and id ~= "" then return id end
  return M.tree_id(profile.metadata.namespace or "", profile.metadata.name)
end

local function ready(node)
  for _, condition in ipairs(fields.dig(node, "status", "conditions") or {}) do
    if condition.type == "Ready" then return condition.status == "True" end
  end
  return false
end

-- The allocatable resources of the nodes, and the part on nodes that are cordoned or not ready.
function M.resources(nodes)
  local total, unschedulable = {}, {}
  for _, node in ipairs(nodes) do
    local allocatable = lists.of(fields.dig(node, "status", "allocatable"))
    total = lists.add(total, allocatable)
    if fields.dig(node, "spec", "unschedulable") == true or not ready(node) then
      unschedulable = lists.add(unschedulable, allocatable)
    end
  end
  return total, unschedulable
end

-- The resource ratio, above 0 and at most 1; any other value counts as 1.
local function ratio_of(profile)
  local text = fields.dig(profile, "spec", "resourceRatio")
  local ratio = text and fields.float(text)
  return ratio and ratio > 0 and ratio <= 1 and ratio or 1.0
end

-- Multiplies in float64 and rounds down, as Koordinator does.
local function scaled(list, ratio)
  local out = {}
  for name, n in pairs(list) do out[name] = math.tointeger(n * ratio // 1) end
  return out
end

local function names_of(profile)
  local text = fields.annotation(profile, keys.resource_keys)
  return text and fields.json(text) or { "cpu", "memory" }
end

-- Why the profile's selector is invalid; nil: it is valid.
function M.problem(profile)
  local ok, why = pcall(kube.selector, fields.dig(profile, "spec", "nodeSelector"))
  if not ok then return "spec.nodeSelector: " .. tostring(why) end
end

-- The nodes that the profile selects; none without a selector.
function M.selected(profile, nodes)
  local out = {}
  for _, node in ipairs(nodes) do
    if fields.selects(fields.dig(profile, "spec", "nodeSelector"),
      fields.dig(node, "metadata", "labels")) then
      out[#out + 1] = node
    end
  end
  return out
end

-- The desired root quota: { min, max, total, unschedulable, labels }, the first four as lists.
function M.desired(profile, nodes)
  local total, unschedulable = M.resources(M.selected(profile, nodes))
  if fields.dig(profile, "spec", "resourceRatio") ~= nil then
    local ratio = ratio_of(profile)
    total, unschedulable = scaled(total, ratio), scaled(unschedulable, ratio)
  end
  local min, max = {}, {}
  for _, name in ipairs(names_of(profile)) do
    min[name] = total[name] or 0
    max[name] = name == "cpu" and quota.UNLIMITED * 1000 or quota.UNLIMITED
  end
  local labels = { [keys.profile] = profile.metadata.name }
  for name, value in pairs(fields.dig(profile, "spec", "quotaLabels") or {}) do labels[name] = value end
  labels[keys.tree_id] = M.tree_of(profile)
  labels[keys.is_root] = "true"
  return { min = min, max = max, total = total, unschedulable = unschedulable, labels = labels }
end

local LISTS = {
  total = keys.total_resource,
  unschedulable = keys.unschedulable_resource,
}

local function equal(a, b) return lists.same(a, b) and fields.equal(lists.names(a), lists.names(b)) end

-- Whether the quota already has the desired values.
function M.holds(object, desired)
  for name, value in pairs(desired.labels) do
    if fields.label(object, name) ~= value then return false end
  end
  for what, annotation in pairs(LISTS) do
    local now = quota.annotated(object, annotation)
    if now == nil or not equal(now, desired[what]) then return false end
  end
  return equal(lists.of(fields.dig(object, "spec", "min")), desired.min)
    and equal(lists.of(fields.dig(object, "spec", "max")), desired.max)
end

-- Writes the desired values into a quota or a draft, which has metadata.labels, metadata.annotations and
-- spec.
function M.write(object, desired)
  for name, value in pairs(desired.labels) do object.metadata.labels[name] = value end
  for what, annotation in pairs(LISTS) do
    object.metadata.annotations[annotation] = lists.json(desired[what])
  end
  object.spec.min, object.spec.max = lists.texts(desired.min), lists.texts(desired.max)
end

return M
