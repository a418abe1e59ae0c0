-- disruptions_test.lua - the stand-in for the disruption controller: how many pods a budget lets go.
local kube = require "kubelua"

describe("disruptions", function()
  it("are allowed while a budget has more healthy pods than it needs", function()
    local t = kube.testing.start { scripts = { "disruptions.lua", "replicasets.lua", "scheduler.lua",
      "pods.lua", "nodes.lua" } }
    local labels = { app = "a" }
    t:create { kind = "apps/v1/ReplicaSet", name = "set", spec = { replicas = 4,
      selector = { matchLabels = labels },
      template = { metadata = { labels = labels },
        spec = { containers = { { name = "c", image = "i" } } } } } }
    local function make(name, spec)
      t:create { kind = "policy/v1/PodDisruptionBudget", name = name,
        spec = kube.merge({ selector = { matchLabels = labels } }, spec) }
    end
    local function status(name) return t:get("policy/v1/PodDisruptionBudget", name).status end
    make("least", { minAvailable = 3 })
    make("most", { maxUnavailable = "50%" })
    assert.equal(1, status("least").disruptionsAllowed)
    assert.equal(2, status("most").disruptionsAllowed)
    t:patch(t:get("apps/v1/ReplicaSet", "set"), { spec = { replicas = 3 } })
    assert.equal(0, status("least").disruptionsAllowed)
    assert.equal("InsufficientPods", status("least").conditions[1].reason)
  end)
end)
