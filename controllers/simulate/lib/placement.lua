-- placement.lua - whether a node takes a pod, resources aside: its selector and required node affinity,
-- taints and tolerations.

local kube = require "kubelua"

local M = {}

local function is_in(list, x)
  for _, item in ipairs(list or {}) do
    if item == x then return true end
  end
  return false
end

local HOLDS = {
  In = function(value, e) return value ~= nil and is_in(e.values, value) end,
  NotIn = function(value, e) return value == nil or not is_in(e.values, value) end,
  Exists = function(value) return value ~= nil end,
  DoesNotExist = function(value) return value == nil end,
  Gt = function(value, e) return (tonumber(value) or -math.huge) > (tonumber(e.values[1]) or math.huge) end,
  Lt = function(value, e) return (tonumber(value) or math.huge) < (tonumber(e.values[1]) or -math.huge) end,
}

local function all_hold(expressions, get)
  for _, e in ipairs(expressions or {}) do
    if not HOLDS[e.operator](get(e.key), e) then return false end
  end
  return true
end

local function is_meant(term, node)
  local fields, labels = term("matchFields"), term("matchExpressions")
  return (fields or labels) ~= nil
    and all_hold(fields, function(key) return key == "metadata.name" and node.metadata.name or nil end)
    and all_hold(labels, function(key) return node("metadata.labels", key) end)
end

--- Whether the pod's selector and affinity allow the node. `spec` is a pod's, as a view.
function M.selects(spec, node)
  for key, value in pairs(spec("nodeSelector") or {}) do
    if node("metadata.labels", key) ~= value then return false end
  end
  local terms = spec("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
  for _, term in ipairs(terms or {}) do
    if is_meant(term, node) then return true end
  end
  return terms == nil
end

--- Whether one of a pod's tolerations (nil: it has none) matches this taint.
function M.tolerates(tolerations, taint)
  for _, t in ipairs(tolerations or {}) do
    local key = t.key or ""
    if is_in({ taint.effect, "" }, t.effect or "") and is_in({ taint.key, "" }, key)
      and (t.operator == "Exists" or key ~= "" and (t.value or "") == (taint.value or "")) then
      return true
    end
  end
  return false
end

--- The first taint that keeps the pod away, or nil; `effects` are those that do.
function M.repelled(tolerations, node, effects)
  for _, taint in ipairs(node("spec.taints") or {}) do
    if is_in(effects, taint.effect) and not M.tolerates(tolerations, taint) then return taint end
  end
end

-- By uid, so each pod is added up once; a pod's requests do not change.
local known, n_known = {}, 0
local KNOWN_MOST = 20000

--- What a pod requests by resource, in thousandths; pods count as a resource. The caller must not change it.
function M.requests(pod)
  local uid = pod.metadata.uid
  if not known[uid] then
    if n_known >= KNOWN_MOST then known, n_known = {}, 0 end
    local sum = { pods = 1000 }
    for name, q in pairs(kube.requests(pod)) do sum[name] = q:milli() end
    known[uid], n_known = sum, n_known + 1
  end
  return known[uid]
end

return M
