-- forest.lua - calculates all trees of quotas: what each quota may use now, its requests and its use.

local members = require "elasticquota.members"
local tree = require "elasticquota.tree"

local M = {}

-- index: members.index; pods: as members.read_pod gives them; total: what the cluster has;
-- params: { upstream, multi_quota_tree, enable_min_quota_scale, guarantee_usage }.
-- Returns { [quota name] = the result of tree.calculate }.
function M.calculate(index, pods, total, params)
  local infos, sums = {}, members.sums(index, pods)
  for _, one in pairs(members.trees(index, total, params.multi_quota_tree)) do
    local calculated = tree.calculate {
      quotas = one.quotas,
      pods = sums,
      total = one.total,
      scale_min = params.enable_min_quota_scale,
      guarantee = params.guarantee_usage,
      upstream = params.upstream,
    }
    for _, q in ipairs(one.quotas) do infos[q.name] = calculated[q.name] end
  end
  return infos
end

return M
