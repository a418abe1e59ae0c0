-- compareagents_test.lua - NodeSLOs and NodeMetrics that somebody else keeps, in virtual time.

local kube = require "kubelua"

local NODE, CONFIG_MAP = "v1/Node", "v1/ConfigMap"
local METRIC, SLO = "slo.koordinator.sh/v1alpha1/NodeMetric", "slo.koordinator.sh/v1alpha1/NodeSLO"
local SYSTEM = "koordinator-system"

describe("compare-agents", function()
  it("reports the fields in which specs differ once the difference lasts, and writes none", function()
    local objects = { { kind = "v1/Namespace", name = SYSTEM },
      { kind = CONFIG_MAP, namespace = SYSTEM, name = "slo-controller-config",
        data = { ["colocation-config"] = '{"enable": true, "metricReportIntervalSeconds": 20}' } } }
    for i, name in ipairs { "same", "other", "none" } do objects[2 + i] = { kind = NODE, name = name } end
    -- The existing objects are those that the policies write themselves.
    local t = kube.testing.start { scripts = { "nodeslo.lua", "nodemetric.lua" }, crds = "crds",
      objects = objects }
    local stands = {}
    for _, kind in ipairs { SLO, METRIC } do
      for _, name in ipairs { "same", "other" } do
        stands[#stands + 1] = { kind = kind, name = name, spec = kube.copy(t:get(kind, name).spec) }
      end
    end
    t:stop()
    stands[2].spec.cpuBurstStrategy.policy = "auto"
    stands[4].spec.metricCollectPolicy.reportIntervalSeconds = 60
    table.move(stands, 1, #stands, #objects + 1, objects)

    t = kube.testing.start { script = "compareagents.lua", crds = "crds", objects = objects, settle = false,
      params = { upstream = "main" } }
    local function text()
      return t:get(CONFIG_MAP, SYSTEM, "koordinator-compare-agents").data["report.txt"]
    end
    local function tells(lines) assert.truthy(text():find(lines, 1, true), text()) end
    t:advance "1m"
    assert.equal("nodes compared: 3, disagreements: 0\n", text())
    t:advance "6m"
    tells "nodes compared: 3, disagreements: 4"
    tells "NodeSLO cpuBurstStrategy.policy, another value: 1\n  other: there auto, here none\n"
    tells "NodeMetric metricCollectPolicy.reportIntervalSeconds, another value: 1"
    tells "\n  other: there 60, here 20\n"
    tells "NodeSLO, only here: 1\n  none: there none, here an object\n"
    tells "NodeMetric, only here: 1\n"
    assert.is_nil(t:get(SLO, "none"))
    assert.equal("auto", t:get(SLO, "other").spec.cpuBurstStrategy.policy)
    assert.same({}, t:logs "error")
  end)
end)
