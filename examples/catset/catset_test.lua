-- catset_test.lua - pods are created in order and deleted in reverse order.

local kube = require "kubelua"

local SET, POD = "examples.kubelua.dev/v1/CatSet", "v1/Pod"

describe("catset", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "catset.lua", crds = "crd.yaml", files = "sample.yaml" }
  end)

  local function wake(name)
    t:patch_status(t:get(POD, name), { conditions = { { type = "Ready", status = "True" } } })
  end

  it("waits for one cat before it makes the next", function()
    assert.is_truthy(t:get(POD, "cats-0"))
    assert.is_nil(t:get(POD, "cats-1"))
    wake "cats-0"
    assert.is_truthy(t:get(POD, "cats-1"))
    assert.same({ replicas = 2, readyReplicas = 1 }, kube.copy(t:get(SET, "cats").status))
  end)

  it("takes the last one away first", function()
    wake "cats-0"
    wake "cats-1"
    t:patch(t:get(SET, "cats"), { spec = { replicas = 1 } })
    assert.is_truthy(t:get(POD, "cats-0"))
    assert.is_nil(t:get(POD, "cats-1"))
  end)

  it("replaces a cat that ran away", function()
    wake "cats-0"
    t:delete(POD, "cats-0")
    assert.is_truthy(t:get(POD, "cats-0"))
  end)
end)
