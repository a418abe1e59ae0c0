-- affinity.lua - places pods of a quota tree with nodes of its own there: the node selector of the tree's
-- profile becomes part of every node selector term that the pod requires.

local fields = require "fields"

local M = {}

-- A metav1.LabelSelector as requirements of a node selector term; labels are sorted, where Go's order is
-- random.
function M.requirements(selector)
  local out, names = {}, {}
  for name in pairs(selector.matchLabels or {}) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    out[i] = { key = name, operator = "In", values = { selector.matchLabels[name] } }
  end
  for _, expression in ipairs(selector.matchExpressions or {}) do
    out[#out + 1] = { key = expression.key, operator = expression.operator,
      values = fields.copy(expression.values) }
  end
  return out
end

-- Adds the requirements to a draft of a pod.
function M.add(pod, selector)
  local required = fields.dig(pod, "spec", "affinity", "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution")
  local terms = fields.copy(fields.dig(required, "nodeSelectorTerms")) or {}
  if #terms == 0 then terms[1] = {} end
  for _, term in ipairs(terms) do
    local expressions = term.matchExpressions or {}
    for _, requirement in ipairs(M.requirements(selector)) do expressions[#expressions + 1] = requirement end
    term.matchExpressions = expressions
  end
  local affinity = fields.copy(fields.dig(pod, "spec", "affinity")) or {}
  affinity.nodeAffinity = affinity.nodeAffinity or {}
  affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = terms }
  pod.spec.affinity = affinity
end

return M
