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

  it("offers unused resources of nodes with fresh metrics", function()
    assert.is_true(kube.qty(batch "turbo-01") > kube.qty "0")
    assert.same({}, t:logs "error")
  end)

  it("leaves resources granted to others alone", function()
    local without = kube.qty(batch "highmem-02") + kube.qty "4000"
    t:patch(t:get(NODE, "highmem-02"), {
      metadata = { annotations = { ["node.koordinator.sh/thirdPartyAllocations"] = kube.null } },
    })
    t:settle()
    assert.equal(tostring(without), tostring(kube.qty(batch "highmem-02")))
  end)

  it("settles: another pass writes nothing", function()
    local writes = #t:writes()
    t:patch(t:get(NODE, "turbo-01"), { metadata = { labels = { looked = "at" } } })
    t:advance "5s"
    assert.equal(writes, #t:writes())
  end)

  it("withdraws the offer when a metric is stale", function()
    assert.is_true(kube.qty(batch "turbo-01") > kube.qty "0")
    t:advance "1h"
    assert.is_true(batch "turbo-01" == nil or kube.qty(batch "turbo-01") == kube.qty "0")
  end)
end)
