-- nodemetrics_test.lua - the stand-in for koordlet's reports: the curve of a day.
local kube = require "kubelua"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

describe("nodemetrics", function()
  it("follow the curve of their node", function()
    local t = kube.testing.start { script = "nodemetrics.lua", crds = "../koordinator/crds", objects = {
      { kind = "v1/Node", name = "n", annotations = { ["simulate.kubelua.dev/cpu-use"] = "20%..60%/24h",
        ["simulate.kubelua.dev/memory-use"] = "often" },
        status = { capacity = { cpu = "10", memory = "100Gi" } } },
      { kind = METRIC, name = "n", spec = { metricCollectPolicy = { reportIntervalSeconds = 3600 } } } } }
    local function use() return t:get(METRIC, "n").status.nodeMetric.nodeUsage.resources end
    assert.equal("2", tostring(kube.qty(use().cpu)))
    assert.equal(30 << 30, kube.qty(use().memory):value())
    assert.equal("BadAnnotation", t:events "n"[1].reason)
    t:advance "12h"
    assert.equal("6", tostring(kube.qty(use().cpu)))
    t:advance "12h"
    assert.equal("2", tostring(kube.qty(use().cpu)))
  end)
end)
