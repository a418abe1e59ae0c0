-- quota.lua - the plugin ElasticQuota: checks the pod's quota before any node. The rules are those of
-- elasticquota/admission.lua. state.quotas is the index of quotas (members.index), and state.infos has the
-- results of tree.calculate. Without them no pod has a quota.

local admission = require "elasticquota.admission"
local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local quotas = require "elasticquota.quota"

local M = { name = "ElasticQuota" }

M.DEFAULT = quotas.DEFAULT

-- The quota of a pod, or nil.
function M.name_of(pod, state)
  if not state.quotas then return nil end
  return members.of_pod(state.quotas, fields.label(pod, keys.name), pod.metadata.namespace)
end

-- Adds a pod to the usage of its quota and of those above (plus), or subtracts it.
function M.count(state, pod, plus)
  if not state.quotas then return end
  local change = plus and lists.add or lists.sub
  local request = members.request_of(pod, state.quotas.ignore_pod_overhead)
  local name = M.name_of(pod, state)
  while name and state.infos[name] and state.quotas.by_name[name] do
    local info = lists.copy(state.infos[name]) -- the calculation keeps that
    state.infos[name] = info
    info.used = change(info.used, request)
    if fields.label(pod, keys.preemptible) == "false" then
      info.non_preemptible_used = change(info.non_preemptible_used, request)
    end
    local parent = state.quotas.by_name[name].parent
    name = parent ~= name and parent or nil
  end
end

-- args.quota: { runtime_quota = true, check_parents = false }, the params enableRuntimeQuota and
-- enableCheckParentQuota. A quota without an object, such as the default one of a new cluster, limits
-- nothing.
function M.prefilter(pod, cycle)
  local state, args = cycle.state, cycle.args.quota
  if pod.reserves or not state.quotas then return nil end
  local name = M.name_of(pod, state)
  if not name or not state.quotas.by_name[name] or not state.infos[name] then return nil end
  local _, why = admission.check {
    quotas = state.quotas.by_name,
    infos = state.infos,
    name = name,
    pod = pod,
    bare = state.quotas.ignore_pod_overhead,
    runtime_quota = args.runtime_quota ~= false,
    check_parents = args.check_parents,
  }
  return why
end

return M
