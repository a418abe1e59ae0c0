-- quotaprofile.lua - Koordinator's controller of ElasticQuotaProfiles. It maintains the root ElasticQuota of
-- a tree, whose size is that of the nodes that the profile selects. The policy is in quotaprofile/root.lua;
-- this file reads and writes.
--
--   kubelua run controllers/koordinator/quotaprofile.lua

local kube = require "kubelua"
local fields = require "fields"
local keys = require "elasticquota.keys"
local root = require "quotaprofile.root"

local PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local NODE = "v1/Node"

local function all_profiles(_, ctx)
  local out = {}
  for profile in ctx:each(PROFILE) do
    out[#out + 1] = profile.metadata.namespace .. "/" .. profile.metadata.name
  end
  return out
end

-- The profile that a quota's label names. A deleted quota wakes its profile, too, and is created again.
local function its_profile(object)
  local name = fields.label(object, keys.profile)
  return name and { object.metadata.namespace .. "/" .. name } or {}
end

return kube.controller {
  name = "quotaprofile",
  resource = PROFILE,
  watches = {
    [NODE] = { all_profiles, when = { "labels", "status.allocatable", "status.conditions",
      "spec.unschedulable" } },
    [QUOTA] = its_profile,
  },
  fields = { [NODE] = { "status.allocatable", "status.conditions", "spec.unschedulable" } },
  workers = 1,

  reconcile = function(profile, ctx)
    local wrong = root.problem(profile)
    if wrong then return kube.fail(wrong) end
    local tree = root.tree_of(profile)
    if fields.label(profile, keys.tree_id) ~= tree then
      profile = ctx:patch(profile, function(draft) draft.metadata.labels[keys.tree_id] = tree end)
    end

    local desired = root.desired(profile, ctx:list(NODE))
    local namespace, name = profile.metadata.namespace, profile.spec.quotaName
    local object = ctx:get(QUOTA, namespace, name)
    if object == nil then
      local new = { metadata = { labels = {}, annotations = {} }, spec = {} }
      root.write(new, desired)
      ctx:create { kind = QUOTA, namespace = namespace, name = name, labels = new.metadata.labels,
        annotations = new.metadata.annotations, spec = new.spec }
    elseif not root.holds(object, desired) then
      ctx:patch(object, function(draft) root.write(draft, desired) end)
    end
  end,
}
