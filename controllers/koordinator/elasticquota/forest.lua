-- forest.lua - calculates all trees of quotas: what each quota may use now, its requests and its use.

local members = require "elasticquota.members"
local tree = require "elasticquota.tree"

local M = {}

local function calculate(index, sums, total, params, before, after)
  local infos = {}
  for id, one in pairs(members.trees(index, total, params.multi_quota_tree)) do
    local calculated, known = tree.calculate {
      quotas = one.quotas,
      pods = sums,
      total = one.total,
      scale_min = params.enable_min_quota_scale,
      guarantee = params.guarantee_usage,
      upstream = params.upstream,
      before = before[id],
    }
    after[id] = known
    for _, q in ipairs(one.quotas) do infos[q.name] = calculated[q.name] end
  end
  return infos
end

-- index: members.index; pods: as members.read_pod gives them; total: what the cluster has;
-- params: { upstream, multi_quota_tree, enable_min_quota_scale, guarantee_usage }.
-- Returns { [quota name] = the result of tree.calculate }.
function M.calculate(index, pods, total, params)
  return calculate(index, members.sums(index, pods), total, params, {}, {})
end

-- Returns a function like M.calculate that continues from its last result: nothing is calculated again for
-- quotas and pods that are the same tables as then. Callers must not change what it takes and returns, except
-- the entries of the returned table itself.
function M.keeper()
  local sums_of, before = members.summer(), {}
  return function(index, pods, total, params)
    local after = {}
    local infos = calculate(index, sums_of(index, pods), total, params, before, after)
    before = after
    return infos
  end
end

return M
