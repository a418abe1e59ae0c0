-- selection.lua - the pods that a term of an affinity or a constraint of a spread matches.

local fields = require "fields"
local kube = require "kubelua"

local dig = fields.dig

local M = {}

-- A function from labels to whether they are selected; an absent or invalid selector selects nothing. The
-- labels in `keys` (matchLabelKeys) must equal the pod's own, those in `unlike` (mismatchLabelKeys) must
-- differ.
function M.labels(selector, pod, keys, unlike)
  local ok, compiled = pcall(kube.selector, selector)
  if selector == nil or not ok then return function() return false end end
  local own = dig(pod, "metadata", "labels") or {}
  return function(labels)
    if not compiled:matches(labels) then return false end
    for _, key in ipairs(keys or {}) do
      if own[key] ~= nil and labels[key] ~= own[key] then return false end
    end
    for _, key in ipairs(unlike or {}) do
      if own[key] ~= nil and labels[key] == own[key] then return false end
    end
    return true
  end
end

-- A function from a namespace to whether a term matches it: the named ones, those that the namespace selector
-- selects, or, with neither, the pod's own.
local function namespaces(term, pod, known)
  local named, selector, own = {}, term.namespaceSelector, pod.metadata.namespace
  for _, name in ipairs(term.namespaces or {}) do named[name] = true end
  if selector == nil then
    local some = next(named) ~= nil
    return function(namespace) return named[namespace] or not some and namespace == own end
  end
  local ok, compiled = pcall(kube.selector, selector)
  return function(namespace)
    return named[namespace] or ok and compiled:matches(known and known[namespace] or {})
  end
end

-- A function from another pod to whether a term of `pod` matches it. known: { [namespace] = labels }.
function M.term(term, pod, known)
  local labels = M.labels(term.labelSelector, pod, term.matchLabelKeys, term.mismatchLabelKeys)
  local within = namespaces(term, pod, known)
  return function(other)
    return within(other.metadata.namespace) and labels(dig(other, "metadata", "labels") or {})
  end
end

function M.label(info, key) return dig(info.node, "metadata", "labels", key) end

return M
