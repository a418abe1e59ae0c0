-- compare_test.lua - the demo cluster, where somebody else writes batch resources.

local kube = require "kubelua"

local NODE, CONFIG_MAP, CPU = "v1/Node", "v1/ConfigMap", "kubernetes.io/batch-cpu"

describe("compare", function()
  it("reports lasting differences with an example, and writes no node", function()
    local t = kube.testing.start { script = "noderesource.lua", crds = "crds", files = "../demo" }
    local nodes = {}
    for i, node in ipairs(t:list(NODE)) do
      nodes[i] = { apiVersion = "v1", kind = "Node", metadata = { name = node.metadata.name,
        labels = kube.copy(node.metadata.labels), annotations = kube.copy(node.metadata.annotations) },
        status = kube.copy(node.status) }
      if node.metadata.name == "turbo-01" then nodes[i].status.allocatable[CPU] = "123456" end
    end
    t:stop()
    t = kube.testing.start { script = "compare.lua", crds = "crds", files = "../demo", settle = false }
    t:load(nodes)
    local function found() return t:get(CONFIG_MAP, "koordinator-system", "koordinator-compare") end
    t:advance "1m"
    assert.matches("disagreements: 0", found().data["report.txt"])
    t:advance "6m"
    local text = found().data["report.txt"]
    assert.matches("kubernetes.io/batch%-cpu, more there: 1\n  turbo%-01: there 123456, here %d+; batchAlloc",
      text)
    assert.matches("disagreements: 1", text)
    assert.equal("123456", tostring(t:get(NODE, "turbo-01")("status.allocatable", CPU)))
    assert.same({}, t:logs "error")
  end)
end)
