-- nodefit.lua - whether a pod may run on a node, apart from resources: node selector, required node affinity,
-- taints and cordons.

local fields = require "fields"

local M = {}

local dig = fields.dig

local function contains(list, value)
  for _, x in ipairs(list or {}) do
    if x == value then return true end
  end
  return false
end

local OPERATORS = {
  In = function(value, values) return value ~= nil and contains(values, value) end,
  NotIn = function(value, values) return value == nil or not contains(values, value) end,
  Exists = function(value) return value ~= nil end,
  DoesNotExist = function(value) return value == nil end,
  Gt = function(value, values)
    return (tonumber(value) or -math.huge) > (tonumber(values[1]) or math.huge)
  end,
  Lt = function(value, values)
    return (tonumber(value) or math.huge) < (tonumber(values[1]) or -math.huge)
  end,
}

local function matches(expressions, get)
  for _, e in ipairs(expressions or {}) do
    local holds = OPERATORS[e.operator]
    if not holds or not holds(get(e.key), e.values or {}) then return false end
  end
  return true
end

-- Whether a NodeSelectorTerm matches a node; an empty term matches none.
function M.means(term, node)
  local labels = dig(node, "metadata", "labels") or {}
  local function label(key) return labels[key] end
  local function field(key) return key == "metadata.name" and node.metadata.name or nil end
  local empty = #(term.matchExpressions or {}) + #(term.matchFields or {}) == 0
  return not empty and matches(term.matchExpressions, label) and matches(term.matchFields, field)
end

-- Whether one of the terms of a NodeSelector matches a node; an absent selector matches all nodes.
function M.selects(selector, node)
  if selector == nil then return true end
  for _, term in ipairs(selector.nodeSelectorTerms or {}) do
    if M.means(term, node) then return true end
  end
  return false
end

-- Whether a node matches the pod's node selector and its required node affinity.
function M.selected(pod, node)
  local wanted = dig(pod, "spec", "nodeSelector")
  local labels = wanted and dig(node, "metadata", "labels") or {}
  for key, value in pairs(wanted or {}) do
    if labels[key] ~= value then return false end
  end
  return M.selects(dig(pod, "spec", "affinity", "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution"), node)
end

-- Whether the pod has neither a node selector nor required node affinity.
function M.selects_all(pod)
  return #fields.names(dig(pod, "spec", "nodeSelector") or {}) == 0
    and dig(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution") == nil
end

-- The pod's preferred node affinity: a list of { weight, preference }.
function M.preferred(pod)
  return dig(pod, "spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution") or {}
end

-- Whether the pod tolerates a taint.
function M.tolerates(pod, taint)
  for _, t in ipairs(dig(pod, "spec", "tolerations") or {}) do
    local effect = t.effect == nil or t.effect == "" or t.effect == taint.effect
    local key = t.key == taint.key or (t.key == nil or t.key == "") and t.operator == "Exists"
    if effect and key and (t.operator == "Exists" or (t.value or "") == (taint.value or "")) then
      return true
    end
  end
  return false
end

-- The first NoSchedule or NoExecute taint that the pod does not tolerate, or nil.
function M.repelling(pod, node)
  for _, taint in ipairs(dig(node, "spec", "taints") or {}) do
    local keeps_away = taint.effect == "NoSchedule" or taint.effect == "NoExecute"
    if keeps_away and not M.tolerates(pod, taint) then return taint end
  end
  return nil
end

-- The number of PreferNoSchedule taints that the pod does not tolerate.
function M.disliking(pod, node)
  local n = 0
  for _, taint in ipairs(dig(node, "spec", "taints") or {}) do
    if taint.effect == "PreferNoSchedule" and not M.tolerates(pod, taint) then n = n + 1 end
  end
  return n
end

function M.cordoned(node) return dig(node, "spec", "unschedulable") == true end

return M
