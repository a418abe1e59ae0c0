-- demo_test.lua - the agents of the demo cluster, in virtual time.

local kube = require "kubelua"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local PERIOD = 5 -- seconds, as in demo.lua

describe("demo-agents", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "demo.lua", crds = "../koordinator/crds", files = "." }
  end)

  local function reported(name) return kube.time(t:get(METRIC, name).status.updateTime):unix() end

  it("reports every few seconds", function()
    t:advance(PERIOD)
    local before = reported "edge-01"
    t:advance(2 * PERIOD)
    assert.equal(2 * PERIOD, reported "edge-01" - before)
  end)

  it("leaves a silent agent silent", function()
    local before = reported "edge-02"
    t:advance(10 * PERIOD)
    assert.equal(before, reported "edge-02")
  end)
end)
