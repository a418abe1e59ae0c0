-- quota.lua - reads an ElasticQuota in the terms of the policy. Absent labels and annotations have
-- Koordinator's defaults: the parent is the root, resources may be lent, the weight is the
-- maximum.

local fields = require "fields"
local keys = require "elasticquota.keys"
local kube = require "kubelua"
local lists = require "lib.lists"

local M = {}

M.KIND = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
M.ROOT = "koordinator-root-quota"
M.SYSTEM = "koordinator-system-quota"
M.DEFAULT = "koordinator-default-quota"

-- The quotas that always exist, whether created or not; no tree contains them.
M.RESERVED = { [M.ROOT] = true, [M.SYSTEM] = true, [M.DEFAULT] = true }

-- math.MaxInt64/2000: more than any cluster has; a thousand times as much still fits an integer.
M.UNLIMITED = math.maxinteger // 2000

local function flag(object, label) return fields.label(object, label) == "true" end

-- An annotation with a resource list; nil if it is absent or invalid.
function M.annotated(object, name)
  local text = fields.annotation(object, name)
  if text == nil or text == "" then return nil end
  return (lists.parse(text))
end

-- The limits or weights of a list. koord-scheduler gives the quotas that it creates MaxInt64/5, whose
-- thousandths do not fit 64 bits: that is no limit.
function M.limits(list)
  local out = {}
  for name, quantity in pairs(list or {}) do
    local sign = kube.qty(quantity):sign() -- raises if it is no quantity
    local fits, n = pcall(lists.amount, name, quantity)
    out[name] = fits and n or sign * M.UNLIMITED * (name == "cpu" and 1000 or 1)
  end
  return out
end

-- The resource list in the annotation of the weight, as quantities and as limits; nil if there is none, and
-- besides the reason if it is invalid.
function M.given_weight(object)
  local text = fields.annotation(object, keys.shared_weight)
  if text == nil or text == "" then return nil end
  local list, why = fields.json(text)
  if not list then return nil, why end
  local ok, limits = pcall(M.limits, list)
  if not ok then return nil, tostring(limits) end
  return list, limits
end

local function weight(object, max)
  local list, given = M.given_weight(object)
  if list == nil or lists.is_zero(given) then return max end
  return given
end

-- The namespaces whose pods belong to the quota without naming it.
function M.namespaces(object)
  local text = fields.annotation(object, keys.namespaces)
  local list = text and text ~= "" and fields.json(text) or {}
  local out = {}
  for i, name in ipairs(list) do out[i] = tostring(name) end
  return out
end

-- { name, namespace, parent, tree, is_parent, is_tree_root, lends, force, ignore_default_tree, min, max,
-- weight, total, guaranteed, namespaces }; total only if the quota is the root of its own tree.
function M.read(object)
  local name = object.metadata.name
  local parent = fields.label(object, keys.parent) or ""
  if parent == "" and name ~= M.ROOT then parent = M.ROOT end
  local max = M.limits(fields.dig(object, "spec", "max"))
  return {
    name = name,
    namespace = object.metadata.namespace,
    parent = parent,
    tree = fields.label(object, keys.tree_id) or "",
    is_parent = flag(object, keys.is_parent),
    is_tree_root = flag(object, keys.is_root),
    lends = fields.label(object, keys.allow_lent_resource) ~= "false",
    force = flag(object, keys.allow_force_update),
    ignore_default_tree = flag(object, keys.ignore_default_tree),
    min = M.limits(fields.dig(object, "spec", "min")),
    max = max,
    weight = weight(object, max),
    total = M.annotated(object, keys.total_resource),
    guaranteed = M.annotated(object, keys.guaranteed) or {},
    namespaces = M.namespaces(object),
  }
end

-- A quota that was not created, with more than any cluster has.
function M.unlimited(name)
  local max = { cpu = M.UNLIMITED * 1000, memory = M.UNLIMITED }
  return { name = name, parent = M.ROOT, tree = "", lends = true, min = {}, max = max, weight = max,
    namespaces = {} }
end

return M
