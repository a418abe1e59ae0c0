-- admission.lua - whether a pod still fits its quota; the scheduler checks this before it looks at any node
-- (PreFilter).

local kube = require "kubelua"
local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local quota = require "elasticquota.quota"

local M = {}

-- Whether a new pod may be created; the webhook behind the gate EnableQuotaAdmission checks this: the
-- requests of the quota's pods and children and of the new pod must stay within the annotation admission, or
-- within max if that is empty. object: the ElasticQuota. Returns true, or false and why; and the requests
-- including the pod, as a list.
function M.evaluate(object, pod)
  local q = quota.read(object)
  local asked = quota.annotated(object, keys.child_request) or {}
  local limit = quota.annotated(object, keys.admission)
  if limit == nil or next(limit) == nil then limit = q.max end
  local request = {}
  for name, n in pairs(lists.mask(lists.of(kube.requests(pod)), q.max)) do
    if n ~= 0 then request[name] = n end
  end
  local after = lists.add(asked, request)
  local fits, over = lists.within(lists.mask(after, request), limit)
  if fits then return true, nil, after end
  local named = {}
  for _, name in ipairs(over) do named[name] = true end
  return false, ("exceeded quota: %s/%s, requested: %s, used: %s, limited: %s"):format(q.namespace, q.name,
    lists.show(lists.mask(request, named)), lists.show(lists.mask(asked, named)),
    lists.show(lists.mask(limit, named)))
end

local function refuse(what, name, limit_name, limit, used_name, used, request, over)
  return false, ("%s, quotaName: %s, %s: %s, %s: %s, pod's request: %s, exceedDimensions: [%s]"):format(what,
    name, limit_name,
    lists.show(limit), used_name, lists.show(used), lists.show(request), table.concat(over, " "))
end

local function limit_of(q, info, runtime_quota) return runtime_quota and info.runtime or q.max end

-- Checks the parents up to the root, for the resources that the pod requests.
local function check_parents(input, name, request)
  while name ~= quota.ROOT do
    local q, info = input.quotas[name], input.infos[name]
    if not q or not info then return false, ("could not find the ElasticQuota %s"):format(name) end
    local limit = limit_of(q, info, input.runtime_quota)
    local fits, over = lists.within(lists.mask(lists.add(request, info.used), request), limit)
    if not fits then
      return refuse("Insufficient quotas", name, "runtime", limit, "used", info.used, request, over)
    end
    name = q.parent
  end
  return true
end

-- input: quotas, infos   by name (members.index, tree.calculate)
--        name            the pod's quota
--        pod             a pod that is not counted as used yet
--        bare            without its overhead
--        runtime_quota   false: the limit is max instead of runtime
--        check_parents   whether the quotas above must have room, too
-- Returns true, or false and why, in the scheduler's words. A resource without a limit is unlimited.
function M.check(input)
  local q, info = input.quotas[input.name], input.infos[input.name]
  if not q or not info then return false, ("could not find the ElasticQuota %s"):format(input.name) end
  local request = lists.mask(members.request_of(input.pod, input.bare), q.max)
  local limit = limit_of(q, info, input.runtime_quota)
  local fits, over = lists.within(lists.add(request, info.used), limit)
  if not fits then
    return refuse("Insufficient quotas", q.name, "runtime", limit, "used", info.used, request, over)
  end

  if fields.label(input.pod, keys.preemptible) == "false" then
    fits, over = lists.within(lists.add(request, info.non_preemptible_used), q.min)
    if not fits then
      return refuse("Insufficient non-preemptible quotas", q.name, "min", q.min, "nonPreemptibleUsed",
        info.non_preemptible_used, request, over)
    end
  end
  if input.check_parents then return check_parents(input, q.parent, request) end
  return true
end

return M
