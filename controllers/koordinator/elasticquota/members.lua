-- members.lua - whose pods are whose: the quota that a pod belongs to, the tree that a quota belongs to,
-- and their sums.

local kube = require "kubelua"
local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"
local quota = require "elasticquota.quota"

local M = {}

-- Quotas as an index: { list, by_name, by_namespace }. Koordinator knows quotas by their name alone; of two
-- with one name the first by namespace counts. A namespace that two quotas claim belongs to the first by
-- name.
function M.index(quotas)
  local index = { list = {}, by_name = {}, by_namespace = {}, own_namespace = {} }
  local sorted = table.move(quotas, 1, #quotas, 1, {})
  table.sort(sorted, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return (a.namespace or "") < (b.namespace or "")
  end)
  for _, q in ipairs(sorted) do
    if not index.by_name[q.name] then
      index.by_name[q.name] = q
      table.insert(index.list, q)
    end
    if q.name == q.namespace then index.own_namespace[q.name] = true end
    for _, namespace in ipairs(q.namespaces) do
      index.by_namespace[namespace] = index.by_namespace[namespace] or q.name
    end
  end
  return index
end

-- The quota of a pod: its label, else the quota that is called like its namespace and lives there, else the
-- one that names the namespace, else the default quota. A label that names no quota means the default one.
function M.of_pod(index, label, namespace)
  if label ~= nil and label ~= "" then return index.by_name[label] and label or quota.DEFAULT end
  if index.own_namespace[namespace] then return namespace end
  return index.by_namespace[namespace] or quota.DEFAULT
end

-- What counts of a pod, so that the pod need not be read again: { label, namespace, request, assigned,
-- preemptible }, or nil when it has ended.
function M.read_pod(pod)
  local phase = fields.dig(pod, "status", "phase")
  if phase == "Succeeded" or phase == "Failed" then return nil end
  local node = fields.dig(pod, "spec", "nodeName")
  return {
    label = fields.label(pod, keys.name),
    namespace = pod.metadata.namespace,
    request = lists.of(kube.requests(pod)),
    assigned = node ~= nil and node ~= "",
    preemptible = fields.label(pod, keys.preemptible) ~= "false",
  }
end

-- { [quota name] = { request, used, non_preemptible_request, non_preemptible_used } } of pods as read_pod
-- gives them.
function M.sums(index, pods)
  local all = {}
  for _, pod in ipairs(pods) do
    local name = M.of_pod(index, pod.label, pod.namespace)
    local sums = all[name]
    if not sums then
      sums = { request = {}, used = {}, non_preemptible_request = {}, non_preemptible_used = {} }
      all[name] = sums
    end
    lists.accumulate(sums.request, pod.request)
    if pod.assigned then lists.accumulate(sums.used, pod.request) end
    if not pod.preemptible then
      lists.accumulate(sums.non_preemptible_request, pod.request)
      if pod.assigned then lists.accumulate(sums.non_preemptible_used, pod.request) end
    end
  end
  return all
end

-- { [tree id] = { quotas, total } }. The tree "" is the cluster's; another one divides what its root's
-- annotation says, which the cluster's tree then lacks, unless the root is labelled ignore-default-tree.
-- Without `several` all are one tree.
function M.trees(index, cluster, several)
  local trees = { [""] = { quotas = {}, total = cluster } }
  for _, q in ipairs(index.list) do
    local id = several and q.tree or ""
    trees[id] = trees[id] or { quotas = {}, total = {} }
    table.insert(trees[id].quotas, q)
    if id ~= "" and q.is_tree_root and q.total then
      trees[id].total = q.total
      if not q.ignore_default_tree then trees[""].total = lists.sub(trees[""].total, q.total) end
    end
  end
  return trees
end

return M
