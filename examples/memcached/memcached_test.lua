-- memcached_test.lua - the Deployment follows the size, and the condition follows the readiness.

local kube = require "kubelua"

local CACHE, DEPLOYMENT = "examples.kubelua.dev/v1/Memcached", "apps/v1/Deployment"

describe("memcached", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "memcached.lua", crds = "crd.yaml", files = "sample.yaml" }
  end)

  it("deploys the desired number of replicas", function()
    assert.equal(3, t:get(DEPLOYMENT, "sessions").spec.replicas)
    t:patch(t:get(CACHE, "sessions"), { spec = { size = 2 } })
    assert.equal(2, t:get(DEPLOYMENT, "sessions").spec.replicas)
  end)

  it("reverts manual scaling", function()
    t:patch(t:get(DEPLOYMENT, "sessions"), { spec = { replicas = 1 } })
    assert.equal(3, t:get(DEPLOYMENT, "sessions").spec.replicas)
  end)

  it("says when all are ready", function()
    local function available() return kube.find_condition(t:get(CACHE, "sessions"), "Available") end
    assert.equal("0 of 3 are ready", available().message)
    t:patch_status(t:get(DEPLOYMENT, "sessions"), { replicas = 3, readyReplicas = 3 })
    assert.equal("True", available().status)
  end)

  it("rolls out another image", function()
    t:stop()
    t = kube.testing.start { script = "memcached.lua", crds = "crd.yaml", files = "sample.yaml",
      params = { image = "mirror/memcached:1" } }
    assert.equal("mirror/memcached:1", t:get(DEPLOYMENT,
      "sessions")("spec.template.spec.containers[1].image"))
  end)
end)
