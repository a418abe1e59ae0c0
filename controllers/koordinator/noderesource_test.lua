-- noderesource_test.lua - the node resource policy on the demo cluster, in virtual time, at the moment from
-- which its metrics are.

local kube = require "kubelua"

local BATCH_CPU, NODE = "kubernetes.io/batch-cpu", "v1/Node"

describe("noderesource", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "noderesource.lua", crds = "crds", files = "../demo" }
  end)

  local function batch(name) return t:get(NODE, name)("status.allocatable", BATCH_CPU) end

  it("gives what is not used on nodes whose metrics are fresh", function()
    assert.is_true(kube.qty(batch "turbo-01") > kube.qty "0")
    assert.same({}, t:logs "error")
  end)

  it("leaves to others what they were given", function()
    local without = kube.qty(batch "highmem-02") + kube.qty "4000"
    t:patch(t:get(NODE, "highmem-02"), {
      metadata = { annotations = { ["node.koordinator.sh/thirdPartyAllocations"] = kube.null } },
    })
    t:settle()
    assert.equal(tostring(without), tostring(kube.qty(batch "highmem-02")))
  end)

  it("comes to rest: another look writes nothing", function()
    local writes = #t:writes()
    t:patch(t:get(NODE, "turbo-01"), { metadata = { labels = { looked = "at" } } })
    t:advance "5s"
    assert.equal(writes, #t:writes())
  end)

  it("takes it back when a metric has grown old", function()
    assert.is_true(kube.qty(batch "turbo-01") > kube.qty "0")
    t:advance "1h"
    assert.is_true(batch "turbo-01" == nil or kube.qty(batch "turbo-01") == kube.qty "0")
  end)
end)
