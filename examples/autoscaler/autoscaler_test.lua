-- autoscaler_test.lua - it scales up at once, and down after five minutes of less work.

local kube = require "kubelua"

local MAP, DEPLOYMENT = "v1/ConfigMap", "apps/v1/Deployment"

describe("autoscaler", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "autoscaler.lua", crds = "crd.yaml", files = "sample.yaml" }
  end)

  local function replicas() return t:get(DEPLOYMENT, "workers").spec.replicas end
  local function queue(n) t:patch(t:get(MAP, "work"), { data = { length = tostring(n) } }) end

  it("scales up at once, to its bound", function()
    assert.equal(3, replicas())
    queue(1000)
    assert.equal(5, replicas())
    assert.equal("Scaled", t:events("workers")[1].reason)
  end)

  it("scales down after five minutes of less work", function()
    queue(0)
    assert.equal(3, replicas())
    t:advance "4m"
    assert.equal(3, replicas())
    t:advance "2m"
    assert.equal(1, replicas())
  end)

  it("scales from zero and back to zero", function()
    local scaler = t:get("examples.kubelua.dev/v1/Autoscaler", "workers")
    t:patch(scaler, { spec = { min = 0 } })
    queue(0)
    t:advance "6m"
    assert.equal(0, replicas())
    local before = #t:writes()
    t:advance "1h"
    assert.equal(before, #t:writes())
    queue(1)
    assert.equal(1, replicas())
  end)

  it("restarts the countdown when work comes back", function()
    queue(0)
    t:advance "4m"
    queue(25)
    t:advance "4m"
    assert.equal(3, replicas())
  end)
end)
