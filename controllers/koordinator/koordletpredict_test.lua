-- koordletpredict_test.lua - a node whose prod pod asks for much more than it uses, in virtual time.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

describe("koordlet-predict", function()
  local t ---@type kubelua.Testing

  local function amounts(cpu, memory) return { resources = { cpu = cpu, memory = memory } } end

  local function report(reclaimable)
    t:load { { kind = METRIC, name = "n", spec = {}, status = { updateTime = tostring(t:now()),
      prodReclaimableMetric = { resource = { resources = reclaimable } },
      podsMetric = { { namespace = "default", name = "web", podUsage = amounts("1", "1Gi") } },
      nodeMetric = { nodeUsage = amounts("1500m", "2Gi"), systemUsage = amounts("500m", "1Gi") } } } }
    t:advance "1m"
  end

  it("reports once, after the cold start, where an agent's prediction differs from that of its own reports",
    function()
    local has = { cpu = "10", memory = "20Gi" }
    t = kube.testing.start { script = "koordletpredict.lua", crds = "crds", objects = {
      { kind = "v1/Namespace", name = "koordinator-system" },
      { kind = NODE, name = "n", status = { capacity = has, allocatable = has } },
      { kind = POD, namespace = "default", name = "web", labels = { ["koordinator.sh/qosClass"] = "LS" },
        spec = { nodeName = "n", containers = { { name = "c", image = "i",
          resources = { requests = { cpu = "8", memory = "8Gi" } } } } } },
      -- Only prod pods count.
      { kind = POD, namespace = "default", name = "batch", labels = {
        ["koordinator.sh/priority-class"] = "koord-batch" }, spec = { nodeName = "n", containers = {
          { name = "c", image = "i",
            resources = { requests = { ["kubernetes.io/batch-cpu"] = "1000" } } } } } } } }
    -- A cold pod adds nothing, and the agent predicts nothing.
    report {}
    report {}
    assert.equal(0, #t:events())
    t:advance "25h"
    report {}
    report {}
    assert.equal(1, #t:events())
    assert.matches("cpu: the agent predicts 0, its reports give %d+m = \z
      min%(by pods %d+m, by classes %d+m%) of 8 requested; memory: the agent predicts 0", t:events()[1].note)
    -- 8 - (1 + 0.5) * 1.1, within a bucket; 8Gi - 2Gi * 1.1.
    report { cpu = "6300m", memory = "5800Mi" }
    assert.equal(1, #t:events())
    report { cpu = "8", memory = "5800Mi" }
    assert.equal(2, #t:events())
    assert.matches("^cpu: the agent predicts 8, [^;]*$", t:events()[2].note)
    assert.equal(1, #t:list "v1/ConfigMap")
    assert.same({}, t:logs "error")
  end)
end)
