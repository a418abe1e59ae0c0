-- namespace-defaults_test.lua - a namespace gets what its tier has, and keeps it.

local kube = require "kubelua"

local QUOTA, NAMESPACE = "v1/ResourceQuota", "v1/Namespace"

describe("namespace-defaults", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "namespace-defaults.lua", files = "sample.yaml" }
  end)

  it("creates the objects of a namespace's tier", function()
    assert.equal("4", t:get(QUOTA, "shop", "defaults").spec.hard["requests.cpu"])
    assert.equal("100m", t:get("v1/LimitRange", "shop", "defaults").spec.limits[1].defaultRequest.cpu)
    assert.is_truthy(t:get("networking.k8s.io/v1/NetworkPolicy", "shop", "defaults"))
    assert.is_nil(t:get(QUOTA, "default", "defaults"))
  end)

  it("follows a change of tier", function()
    t:patch(t:get(NAMESPACE, "shop"), { metadata = { labels = { ["examples.kubelua.dev/tier"] = "large" } } })
    assert.equal("64", t:get(QUOTA, "shop", "defaults").spec.hard["requests.cpu"])
  end)

  it("restores deleted objects", function()
    t:delete(QUOTA, "shop/defaults")
    assert.is_truthy(t:get(QUOTA, "shop", "defaults"))
  end)

  it("warns of an unknown tier", function()
    t:patch(t:get(NAMESPACE, "shop"), { metadata = { labels = { ["examples.kubelua.dev/tier"] = "huge" } } })
    assert.equal("UnknownTier", t:events("shop")[1].reason)
  end)
end)
