-- varied_test.lua - the varied node resource policy on the demo cluster, in virtual time.

local kube = require "kubelua"

describe("noderesource, varied", function()
  it("offers at most as much as the original, and settles", function()
    local function batch(script)
      local t = kube.testing.start { script = script, crds = "crds", files = "../demo" }
      assert.same({}, t:logs "error")
      local n = kube.qty(t:get("v1/Node", "turbo-01")("status.allocatable", "kubernetes.io/mid-cpu")
        or "0"):value()
      local b = kube.qty(t:get("v1/Node", "turbo-01")("status.allocatable",
        "kubernetes.io/batch-cpu")):value()
      return n, b
    end
    local mid, lent = batch "noderesource.lua"
    local varied_mid, varied = batch "varied.lua"
    assert.is_true(varied > 0 and varied <= lent)
    assert.is_true(varied_mid <= varied and varied_mid <= mid)
  end)
end)
