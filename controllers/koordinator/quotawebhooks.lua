-- quotawebhooks.lua - admission of ElasticQuotas and of their pods: quotas must form a tree and get defaults,
-- no pod may join a quota with child quotas, and pods of a tree with its own nodes get an affinity to them.
-- The rules are in elasticquota/.
--
--   kubelua run controllers/koordinator/quotawebhooks.lua --webhook-service koordinator-system/quota-webhooks

local kube = require "kubelua"
local affinity = require "elasticquota.affinity"
local fields = require "fields"
local keys = require "elasticquota.keys"
local members = require "elasticquota.members"
local quota = require "elasticquota.quota"
local topology = require "elasticquota.topology"

local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local POD = "v1/Pod"

-- These params have the meaning of Koordinator's feature gates.
local TOPOLOGY = {
  guarantee_usage = false,         -- the minima must fit into the guarantee of the quotas above
  update_resource_key = false,     -- the resource names in max may change
}
local PODS = {
  disable_default_quota = false,   -- a pod whose label names no quota belongs to none
  parent_quota_submit_pod = false, -- a quota with child quotas may have pods
}
local TREES = { disable_default_quota = false }

-- All quotas, from the server: the cache may lack a parent that was just created.
local function known(req)
  local list = {}
  for i, object in ipairs(req.live:list(QUOTA)) do list[i] = quota.read(object) end
  return members.index(list)
end

local function any_pod(req, how)
  how.limit = 1
  return #req.live:list(POD, how) > 0
end

local function world(req)
  return {
    quotas = known(req).by_name,
    guarantee = req.params.guarantee_usage,
    update_resource_key = req.params.update_resource_key,
    bound = function(name, namespaces)
      if any_pod(req, { labels = { [keys.name] = name } }) or any_pod(req, { namespace = name }) then
        return true
      end
      for _, namespace in ipairs(namespaces) do
        if any_pod(req, { namespace = namespace }) then return true end
      end
      return false
    end,
  }
end

local function pods_named(req, name)
  local out = {}
  for i, pod in ipairs(req.live:list(POD, { labels = { [keys.name] = name } })) do
    out[i] = pod.metadata.name
  end
  return out
end

-- The quota of a pod, from the cache; nil for the default quota.
local function quota_of(req, pod)
  local list = {}
  for object in req:each(QUOTA) do list[#list + 1] = quota.read(object) end
  local index = members.index(list, req.params)
  local name = members.of_pod(index, fields.label(pod, keys.name), req.namespace)
  return name and index.by_name[name]
end

local function answer(ok, why)
  if not ok then return kube.deny(why) end
end

return {
  kube.webhook {
    name = "elasticquota-defaults", resource = QUOTA, operations = { "CREATE" },
    mutate = function(draft, req)
      return answer(topology.fill(draft, function(name)
        local parent = known(req).by_name[name]
        return parent and parent.tree
      end))
    end,
  },
  kube.webhook {
    name = "elasticquota-topology", resource = QUOTA, operations = { "CREATE", "UPDATE", "DELETE" },
    params = TOPOLOGY,
    validate = function(object, req)
      if req.operation == "CREATE" then return answer(topology.create(world(req), object)) end
      if req.operation == "DELETE" then
        return answer(topology.delete(world(req), object, pods_named(req, object.metadata.name)))
      end
      if topology.matters(req.old, object) then return answer(topology.update(world(req), object)) end
    end,
  },
  kube.webhook {
    name = "elasticquota-pods", resource = POD, reads = { QUOTA }, params = PODS,
    validate = function(pod, req)
      local q = not req.params.parent_quota_submit_pod and quota_of(req, pod) or nil
      return answer(topology.pod(q, pod, req.old))
    end,
  },
  kube.webhook {
    name = "elasticquota-trees", resource = POD, operations = { "CREATE" }, reads = { QUOTA, PROFILE },
    params = TREES,
    mutate = function(pod, req)
      local q = quota_of(req, pod)
      if not q or q.tree == "" then return end
      local profile = req:list(PROFILE, { labels = { [keys.tree_id] = q.tree }, limit = 1 })[1]
      local selector = profile and fields.dig(profile, "spec", "nodeSelector")
      if selector then affinity.add(pod, selector) end
    end,
  },
}
