-- quota.lua - where the figures that ElasticQuotas carry differ from ours: runtime, requests and use, as
-- koord-scheduler writes them into annotations and the status, against what the policy makes of the same pods,
-- nodes and quotas now.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local status = require "elasticquota.status"

local M = {}

-- A figure as spec/fixtures/koordinator names it; what is not here has no case.
local NAMES = { runtime = "runtime", request = "request", child_request = "childRequest",
  guaranteed = "guaranteed", allocated = "allocated", used = "used" }

local function reason(theirs, ours)
  if theirs == nil then return "only here" end
  if ours == nil then return "only there" end
  return theirs > ours and "more there" or "less there"
end

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
            ours = here and lists.text(name, here), reason = reason(there, here) }
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

local function bare(object)
  local copy = fields.copy(object)
  copy.metadata.managedFields = nil
  return copy
end

-- A case of spec/fixtures/koordinator for each tree in which the two disagree, that expects the original's figures
-- where they do.
--   input  what elasticquota.inputs read; params  those of forest.calculate; list  of M.disagreements
function M.cases(input, params, list)
  local wrong, objects, out = {}, {}, {}
  for _, one in ipairs(list) do
    local name = NAMES[one.figure]
    if name then
      local of = wrong[one.object] or {}
      wrong[one.object] = of
      of[name] = of[name] or kube.object {}
      of[name][one.resource] = one.theirs or "0"
    end
  end
  for _, object in ipairs(input.objects) do objects[object.metadata.name] = object end
  local sums = members.sums(input.index, input.pods)
  local trees = members.trees(input.index, input.total, params.multi_quota_tree)
  for _, id in ipairs(fields.names(trees)) do
    local quotas, expect, requests, used = {}, {}, {}, {}
    for i, q in ipairs(trees[id].quotas) do
      quotas[i] = bare(objects[q.name])
      expect[q.name] = wrong[q.name]
    end
    for name, sum in pairs(sums) do
      requests[name], used[name] = kube.object(lists.texts(sum.request)), kube.object(lists.texts(sum.used))
    end
    if next(expect) then
      out[#out + 1] = { name = id == "" and "the cluster's tree" or "tree " .. id,
        source = "a cluster, compared",
        input = { op = "runtime", quotas = quotas, totalResource = kube.object(lists.texts(trees[id].total)),
          podRequests = kube.object(requests), podUsed = kube.object(used),
          scaleMinQuotaEnabled = params.enable_min_quota_scale, guaranteeUsage = params.guarantee_usage,
          upstream = params.upstream },
        expect = { quotas = expect } }
    end
  end
  return out
end

return M
