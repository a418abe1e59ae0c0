-- inputs.lua - the cached quotas, pods and nodes as inputs of forest.calculate.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local quota = require "elasticquota.quota"

local M = {}

M.POD, M.NODE = "v1/Pod", "v1/Node"

-- The fields of pods and nodes that a controller keeps in its caches.
M.FIELDS = {
  [M.POD] = { "spec.nodeName", "spec.containers.resources", "spec.initContainers.resources",
    "spec.initContainers.restartPolicy", "spec.overhead", "spec.resources", "spec.priority", "status.phase",
    "status.startTime" },
  [M.NODE] = { "status.allocatable" },
}

-- The params of forest.calculate, and Koordinator's feature gates with the same meaning.
M.PARAMS = {
  upstream = "main",               -- or "v1.8.0": how shares are rounded (share.lua)
  multi_quota_tree = true,         -- the label tree-id divides quotas into trees
  enable_min_quota_scale = true,   -- minima shrink if a parent has less than their sum
  guarantee_usage = false,         -- used resources count as guaranteed and are not lent
  disable_default_quota = false,   -- a pod whose label names an unknown quota has no quota
  ignore_terminating_pod = false,  -- a pod no longer counts when its grace period is over
  ignore_terminating_pod_immediately = false, -- ... or as soon as it is being deleted
  ignore_pod_overhead = false,
}

-- The sum over all nodes. A node that is being deleted counts until it is gone, as for a koord-scheduler that
-- knew it before.
function M.total(ctx)
  local sum = {}
  for node in ctx:each(M.NODE) do lists.accumulate(sum, lists.of(node("status.allocatable"))) end
  return sum
end

-- A function of ctx that returns the ElasticQuotas and members.index of them. A quota that says the same as
-- before is the same table in it, and the index is the same while all do.
function M.quotas()
  local known, index, n = {}, nil, 0 -- known: by uid { version, quota }
  return function(ctx)
    local objects, list, now, changed = ctx:list(quota.KIND), {}, {}, false
    local uids, versions = kube.columns(objects, "metadata.uid", "metadata.resourceVersion")
    for i, uid in ipairs(uids) do
      local one = known[uid]
      if not one or one.version ~= versions[i] then
        local read = quota.read(objects[i])
        one = { version = versions[i], quota = one and fields.equal(one.quota, read) and one.quota or read }
      end
      changed = changed or not known[uid] or known[uid].quota ~= one.quota
      now[uid], list[i] = one, one.quota
    end
    if changed or #list ~= n or not index or not members.same_gates(index, ctx.params) then
      index, n = members.index(list, ctx.params), #list
    end
    known = now
    return objects, index
  end
end

-- A function of ctx that returns { objects = the ElasticQuotas, index = members.index of them, pods = those
-- that count, total, again = seconds until one of them no longer counts, or nil }.
-- It keeps what it has read of each pod, so that a pass reads only changed pods.
function M.reader()
  local quotas_of = M.quotas()
  local read = {} -- by key: { version, key, pod = the result of members.read_pod, or false }
  local function pods_of(ctx)
    local fresh, list, again, now = {}, {}, nil, ctx:now():unix()
    for pod in ctx:each(M.POD) do
      local meta = pod.metadata
      local key, version = meta.namespace .. "/" .. meta.name, meta.resourceVersion
      local known = read[key]
      if not known or known.version ~= version then
        known = { version = version, key = key, pod = members.read_pod(pod) or false }
      end
      fresh[key] = known
      if known.pod then
        known.pod.key = key
        local counts, left = members.counts(known.pod, ctx.params, now)
        if counts then list[#list + 1] = known.pod end
        if counts and left then again = math.min(again or left, left) end
      end
    end
    read = fresh
    return list, again
  end
  return function(ctx)
    local objects, index = quotas_of(ctx)
    local pods, again = pods_of(ctx)
    return { objects = objects, index = index, pods = pods, total = M.total(ctx), again = again }
  end
end

return M
