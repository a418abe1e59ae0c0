-- members.lua - membership: the quota that a pod belongs to, the tree that a quota belongs to, and their
-- sums.

local kube = require "kubelua"
local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"
local quota = require "elasticquota.quota"

local M = {}

-- Quotas as an index: { list, by_name, by_namespace }, and the gates that count there. Koordinator knows
-- quotas by their name alone; of two with one name the first by namespace counts. A namespace that two quotas
-- claim belongs to the first by name. gates (optional): { disable_default_quota, ignore_pod_overhead }.
function M.index(quotas, gates)
  local index = { list = {}, by_name = {}, by_namespace = {}, own_namespace = {},
    disable_default_quota = gates and gates.disable_default_quota,
    ignore_pod_overhead = gates and gates.ignore_pod_overhead }
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

-- Whether gates are those of an index.
function M.same_gates(index, gates)
  return index.disable_default_quota == gates.disable_default_quota
    and index.ignore_pod_overhead == gates.ignore_pod_overhead
end

-- The quota of a pod: the one of its label, else the quota in its namespace that has the namespace's name,
-- else the one that lists the namespace, else the default quota. An unknown name in the label means the
-- default. Without a default quota only the label counts; nil means no quota.
function M.of_pod(index, label, namespace)
  if index.disable_default_quota then return label and index.by_name[label] and label or nil end
  if label ~= nil and label ~= "" then return index.by_name[label] and label or quota.DEFAULT end
  if index.own_namespace[namespace] then return namespace end
  return index.by_namespace[namespace] or quota.DEFAULT
end

-- What a pod requests from its quota; `bare`: without its overhead.
function M.request_of(pod, bare)
  local request = lists.of(kube.requests(pod))
  local overhead = bare and fields.dig(pod, "spec", "overhead")
  return overhead and lists.sub(request, lists.of(overhead)) or request
end

-- Since when a pod that is being deleted should be gone, in seconds, or nil. As upstream, its grace counts
-- from deletionTimestamp, which has it already.
local function overdue_at(pod)
  local since = fields.dig(pod, "metadata", "deletionTimestamp")
  return since and kube.time(since):unix() + (fields.dig(pod, "metadata", "deletionGracePeriodSeconds") or 0)
end

-- What is needed of a pod, so that it need not be read again: { label, namespace, request, bare_request,
-- assigned, preemptible, overdue_at }; nil if it has ended.
function M.read_pod(pod)
  local phase = fields.dig(pod, "status", "phase")
  if phase == "Succeeded" or phase == "Failed" then return nil end
  local node = fields.dig(pod, "spec", "nodeName")
  return {
    label = fields.label(pod, keys.name),
    namespace = pod.metadata.namespace,
    request = M.request_of(pod),
    bare_request = fields.dig(pod, "spec", "overhead") and M.request_of(pod, true) or nil,
    assigned = node ~= nil and node ~= "",
    preemptible = fields.label(pod, keys.preemptible) ~= "false",
    overdue_at = overdue_at(pod),
  }
end

-- Whether a pod of read_pod counts at `now`, in seconds; gates: { ignore_terminating_pod,
-- ignore_terminating_pod_immediately }. Also the seconds until it no longer does, if only time is missing.
function M.counts(pod, gates, now)
  if not pod.overdue_at then return true end
  if gates.ignore_terminating_pod_immediately then return false end
  if not gates.ignore_terminating_pod then return true end
  return now <= pod.overdue_at, math.max(pod.overdue_at - now, 0) + 1
end

-- Adds what a pod requests to the sums of its quota; `asked` and `used` are two of them.
local function count(asked, used, request, assigned)
  for name, n in pairs(request) do
    asked[name] = (asked[name] or 0) + n
    if assigned then used[name] = (used[name] or 0) + n end
  end
end

local function add(sums, pod, bare)
  local request = bare and pod.bare_request or pod.request
  count(sums.request, sums.used, request, pod.assigned)
  if not pod.preemptible then
    count(sums.non_preemptible_request, sums.non_preemptible_used, request, pod.assigned)
  end
end

local function nothing()
  return { request = {}, used = {}, non_preemptible_request = {}, non_preemptible_used = {} }
end

-- { [quota name] = { request, used, non_preemptible_request, non_preemptible_used } } of pods as read_pod
-- gives them.
function M.sums(index, pods)
  local all, bare, of_pod = {}, index.ignore_pod_overhead, M.of_pod
  for i = 1, #pods do
    local pod = pods[i]
    local name = of_pod(index, pod.label, pod.namespace)
    local sums = all[name]
    if name and not sums then
      sums = nothing()
      all[name] = sums
    end
    if sums then add(sums, pod, bare) end
  end
  return all
end

-- A text that is the same for indexes which give each pod the same quota.
local function signature(index)
  local parts = { tostring(index.disable_default_quota), tostring(index.ignore_pod_overhead) }
  for _, q in ipairs(index.list) do
    parts[#parts + 1] = ("%s\n%s\n%s"):format(q.name, index.own_namespace[q.name] and 1 or 0,
      table.concat(q.namespaces, " "))
  end
  return table.concat(parts, "\n\n")
end

local function shift(known, name, pod, there)
  if not name then return end
  known.of[name] = known.of[name] or {}
  known.of[name][pod] = there
  known.stale[name] = true
end

-- Returns a function like M.sums that sums up only the quotas whose pods changed since its last call, and
-- returns the same tables for the others. A changed pod is another table: callers must change neither a pod
-- nor a sum.
function M.summer()
  local known
  return function(index, pods)
    if not known or known.index ~= index and signature(known.index) ~= signature(index) then
      known = { quota_of = {}, of = {}, stale = {}, sums = {} }
    end
    known.index = index
    local before, now = known.quota_of, {}
    for i = 1, #pods do
      local pod = pods[i]
      local name = before[pod]
      if name == nil then
        name = M.of_pod(index, pod.label, pod.namespace) or false
        shift(known, name, pod, true)
      end
      now[pod] = name
    end
    for pod, name in pairs(before) do
      if now[pod] == nil then shift(known, name, pod, nil) end
    end
    known.quota_of = now
    local all = lists.copy(known.sums)
    for name in pairs(known.stale) do
      local sums = next(known.of[name]) and nothing() or nil
      for pod in pairs(known.of[name]) do add(sums, pod, index.ignore_pod_overhead) end
      all[name] = sums
    end
    known.sums, known.stale = all, {}
    return all
  end
end

-- { [tree id] = { quotas, total } }. The tree "" is the cluster's. Any other divides the total in its root's
-- annotation, which is taken from the cluster's tree unless the root is labelled ignore-default-tree. Without
-- `several` there is one tree.
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
