-- quota.lua - the plugin ElasticQuota: whether the pod's quota has room for it, before any node is looked at.
-- The rules are those of elasticquota/admission.lua; state.quotas is an index of quotas (members.index), and
-- state.infos what tree.calculate says of each. Without them no pod has a quota.

local admission = require "elasticquota.admission"
local fields = require "fields"
local keys = require "elasticquota.keys"
local members = require "elasticquota.members"

local M = { name = "ElasticQuota" }

-- args.quota: { runtime_quota = true, check_parents = false }, as enableRuntimeQuota and
-- enableCheckParentQuota. A quota that nobody made, as the default one of a new cluster, limits nothing.
function M.prefilter(pod, cycle)
  local state, args = cycle.state, cycle.args.quota
  if not state.quotas then return nil end
  local name = members.of_pod(state.quotas, fields.label(pod, keys.name), pod.metadata.namespace)
  if not state.quotas.by_name[name] or not state.infos[name] then return nil end
  local _, why = admission.check {
    quotas = state.quotas.by_name,
    infos = state.infos,
    name = name,
    pod = pod,
    runtime_quota = args.runtime_quota ~= false,
    check_parents = args.check_parents,
  }
  return why
end

return M
