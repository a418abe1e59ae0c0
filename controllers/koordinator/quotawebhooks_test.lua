-- quotawebhooks_test.lua - the quota webhooks as an API server asks them.

local kube = require "kubelua"

local QUOTA, POD = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", "v1/Pod"
local PREFIX = "quota.scheduling.koordinator.sh/"

local function quota(name, min, labels)
  local prefixed = {}
  for key, value in pairs(labels or {}) do prefixed[PREFIX .. key] = value end
  return { kind = QUOTA, name = name, labels = prefixed,
    spec = { min = { cpu = min }, max = { cpu = "20" } } }
end

describe("quotawebhooks", function()
  local t ---@type kubelua.Testing
  local function start(params)
    t = kube.testing.start { script = "quotawebhooks.lua", crds = "crds", params = params }
    t:create(quota("org", "10", { ["is-parent"] = "true" }))
  end
  before_each(function() start() end)

  local function refusal(fn, ...)
    local ok, why = kube.try(fn, t, ...)
    assert.is_nil(ok)
    return tostring(why)
  end

  it("fill in defaults", function()
    assert.equal("koordinator-root-quota", t:get(QUOTA, "org").metadata.labels[PREFIX .. "parent"])
  end)

  it("keep minima within the parent's, also within one batch", function()
    t:create(quota("a", "6", { parent = "org" }))
    assert.matches("above its min of cpu:10", refusal(t.create, quota("b", "5", { parent = "org" })))
    t:create(quota("b", "4", { parent = "org" }))
    assert.matches("has 2 child quotas", refusal(t.delete, QUOTA, "org"))
  end)

  it("keep pods out of a parent quota, unless the feature gate is on", function()
    local pod = { kind = POD, name = "p", labels = { [PREFIX .. "name"] = "org" },
      spec = { containers = { { name = "c", image = "i" } } } }
    assert.matches("is a parent of quotas", refusal(t.create, pod))
    start { parent_quota_submit_pod = true }
    t:create(pod)
  end)
end)
