-- daemonsets_test.lua - the stand-in for the DaemonSet controller: which nodes get a pod, and updates.
local kube = require "kubelua"

describe("daemonsets", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { scripts = { "daemonsets.lua", "scheduler.lua", "pods.lua", "nodes.lua" } }
    local labels = { app = "agent" }
    t:create { kind = "apps/v1/DaemonSet", name = "agent", spec = { selector = { matchLabels = labels },
      template = { metadata = { labels = labels,
        annotations = { ["simulate.kubelua.dev/ready-after"] = "10s" } },
        spec = { containers = { { name = "c", image = "i:1" } } } } } }
  end)
  local function get() return t:get("apps/v1/DaemonSet", "agent") end
  local function pods()
    local by = {}
    for _, pod in ipairs(t:list "v1/Pod") do by[pod.spec.nodeName] = pod.spec.containers[1].image end
    return by
  end

  it("have a pod on each node that takes it, cordoned ones included", function()
    assert.same({ ["node-1"] = "i:1", ["node-2"] = "i:1", ["node-3"] = "i:1" }, pods())
    t:advance "10s"
    assert.equal(3, get().status.numberAvailable)
    t:patch(t:get("v1/Node", "node-1"), { spec = { unschedulable = true } })
    t:patch(t:get("v1/Node", "node-2"), { spec = { taints = { { key = "k", effect = "NoExecute" } } } })
    assert.same({ ["node-1"] = "i:1", ["node-3"] = "i:1" }, pods())
    t:create { kind = "v1/Node", name = "node-4" }
    assert.equal("i:1", pods()["node-4"])
    assert.equal(3, get().status.desiredNumberScheduled)
  end)

  it("update one pod after the other", function()
    t:advance "10s"
    t:patch(get(), { spec = { template = { spec = { containers = { { name = "c", image = "i:2" } } } } } })
    local n = 0
    for _, image in pairs(pods()) do n = n + (image == "i:2" and 1 or 0) end
    assert.equal(1, n)
    t:advance "30s"
    assert.same({ ["node-1"] = "i:2", ["node-2"] = "i:2", ["node-3"] = "i:2" }, pods())
    assert.equal(3, get().status.updatedNumberScheduled)
    assert.equal(2, #t:list "apps/v1/ControllerRevision")
  end)
end)
