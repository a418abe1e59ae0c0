-- quota.lua - where the figures that ElasticQuotas carry differ from ours: runtime, requests and use, as
-- koord-scheduler writes them into annotations and the status, against what the policy makes of the same
-- pods, nodes and quotas now.

local case = require "compare.case"
local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local status = require "elasticquota.status"

local M = {}

-- A figure as spec/fixtures/koordinator names it; what is not here has no case.
local NAMES = { runtime = "runtime", request = "request", child_request = "childRequest",
  guaranteed = "guaranteed", allocated = "allocated", used = "used" }

-- Where they differ, a zero being the same as nothing: { object = the quota's name, figure, resource,
-- name = both, theirs, ours, reason, why }; theirs and ours are nil where there is none.
--   objects  ElasticQuotas; infos  what forest.calculate says of them
function M.disagreements(objects, infos)
  local out = {}
  for _, object in ipairs(objects) do
    local info = infos[object.metadata.name]
    for figure, theirs in pairs(info and status.carried(object) or {}) do
      local ours = info[figure]
      local why = figure == "runtime"
        and ("asks for %s, at least %s"):format(lists.show(info.limit_request), lists.show(info.auto_min))
      for _, name in ipairs(lists.names(lists.add(theirs, ours))) do
        local there, here = theirs[name], ours[name]
        if (there or 0) ~= (here or 0) then
          out[#out + 1] = { object = object.metadata.name, figure = figure, resource = name,
            name = figure .. " of " .. name, why = why or nil, theirs = there and lists.text(name, there),
            ours = here and lists.text(name, here), reason = case.reason(there, here) }
        end
      end
    end
  end
  table.sort(out, function(a, b)
    if a.object ~= b.object then return a.object < b.object end
    return a.name < b.name
  end)
  return out
end

-- { [quota] = { [figure as a case names it] = { [resource] = the original's } } } of disagreements.
local function theirs_of(list)
  local out = {}
  for _, one in ipairs(list) do
    local name = NAMES[one.figure]
    if name then
      local of = out[one.object] or {}
      out[one.object] = of
      of[name] = of[name] or kube.object {}
      of[name][one.resource] = one.theirs or "0"
    end
  end
  return out
end

-- { [quota] = list } of one of the sums of pods, as a case has it.
local function listed(sums, what)
  local out = kube.object {}
  for name, sum in pairs(sums) do out[name] = kube.object(lists.texts(sum[what])) end
  return out
end

-- A case of spec/fixtures/koordinator for each tree in which the two disagree, that expects the original's
-- figures where they do.
--   input  what elasticquota.inputs read; params  those of forest.calculate; list  of M.disagreements
function M.cases(input, params, list)
  local theirs, objects, out = theirs_of(list), {}, {}
  if next(theirs) == nil then return out end
  for _, object in ipairs(input.objects) do objects[object.metadata.name] = object end
  local sums = members.sums(input.index, input.pods)
  local trees = members.trees(input.index, input.total, params.multi_quota_tree)
  for _, id in ipairs(fields.names(trees)) do
    local quotas, expect = {}, {}
    for i, q in ipairs(trees[id].quotas) do
      quotas[i] = objects[q.name]
      expect[q.name] = theirs[q.name]
    end
    if next(expect) then
      for i, object in ipairs(quotas) do quotas[i] = case.bare(object) end
      out[#out + 1] = { name = id == "" and "the cluster's tree" or "tree " .. id, source = case.SOURCE,
        input = { op = "runtime", quotas = quotas, totalResource = kube.object(lists.texts(trees[id].total)),
          podRequests = listed(sums, "request"), podUsed = listed(sums, "used"),
          scaleMinQuotaEnabled = params.enable_min_quota_scale, guaranteeUsage = params.guarantee_usage,
          upstream = params.upstream },
        expect = { quotas = expect } }
    end
  end
  return out
end

return M
