-- pods_test.lua - the stand-in for the kubelet: the life of a pod, and how annotations change it.
local kube = require "kubelua"

local CONTAINERS = { { name = "a", image = "nginx" } }

describe("pods", function()
  local t ---@type kubelua.Testing
  local function start(params)
    t = kube.testing.start { script = "pods.lua", params = params, objects = {
      { kind = "v1/Node", name = "n1", status = { conditions = { { type = "Ready", status = "True" } } } } } }
  end
  local function make(o)
    t:create(kube.merge({ kind = "v1/Pod", name = "p",
      spec = { nodeName = "n1", containers = CONTAINERS } }, o))
  end
  local function status(type)
    for _, c in ipairs(t:get("v1/Pod", "p").status.conditions) do
      if c.type == type then return c.status end
    end
  end

  it("leaves a pod without a node alone", function()
    start()
    t:create { kind = "v1/Pod", name = "p", spec = { containers = CONTAINERS } }
    assert.equal("Pending", t:get("v1/Pod", "p").status.phase)
    assert.equal(0, #t:writes())
  end)

  it("starts a pod, makes it ready and gives each an address", function()
    start()
    make {}
    make { name = "q" }
    local p = t:get("v1/Pod", "p")
    assert.equal("Running", p.status.phase)
    assert.equal("True", status "Ready")
    assert.equal("nginx", p.status.containerStatuses[1].image)
    assert.is_not.equal(p.status.podIP, t:get("v1/Pod", "q").status.podIP)
    assert.matches("^10%.24[4-7]%.", p.status.podIP)
  end)

  it("is ready after what its annotation says", function()
    start()
    make { annotations = { ["simulate.kubelua.dev/ready-after"] = "5s" } }
    assert.equal("False", status "Ready")
    t:advance "4s"
    assert.equal("False", status "Ready")
    t:advance "1s"
    assert.equal("True", status "Ready")
  end)

  it("says so when an annotation cannot be read", function()
    start()
    make { annotations = { ["simulate.kubelua.dev/ready-after"] = "soon" } }
    assert.equal("True", status "Ready")
    assert.equal("BadAnnotation", t:events "p"[1].reason)
  end)

  it("ends a pod that does not restart, as its exit code says", function()
    start { runsFor = "10s" }
    make { spec = { restartPolicy = "Never" }, annotations = { ["simulate.kubelua.dev/exit-code"] = "3" } }
    make { name = "q", spec = { restartPolicy = "OnFailure" } }
    t:advance "9s"
    assert.equal("Running", t:get("v1/Pod", "p").status.phase)
    t:advance "1s"
    assert.equal("Failed", t:get("v1/Pod", "p").status.phase)
    assert.equal(3, t:get("v1/Pod", "p").status.containerStatuses[1].state.terminated.exitCode)
    assert.equal("Succeeded", t:get("v1/Pod", "q").status.phase)
  end)

  it("restarts on failure where the pod wants that", function()
    start { runsFor = "10s" }
    make { spec = { restartPolicy = "OnFailure" },
      annotations = { ["simulate.kubelua.dev/exit-code"] = "1" } }
    t:advance "25s"
    assert.equal("Running", t:get("v1/Pod", "p").status.phase)
    assert.equal(2, t:get("v1/Pod", "p").status.containerStatuses[1].restartCount)
  end)

  it("keeps a container waiting for the reason that the pod gives", function()
    start()
    make { annotations = { ["simulate.kubelua.dev/waits"] = "ErrImagePull" } }
    local p = t:get("v1/Pod", "p")
    assert.equal("Pending", p.status.phase)
    assert.equal("ErrImagePull", p.status.containerStatuses[1].state.waiting.reason)
    assert.is_nil(p("status.podIP"))
  end)

  it("waits for readiness gates", function()
    start()
    make { spec = { readinessGates = { { conditionType = "example.com/up" } } } }
    assert.equal("False", status "Ready")
    assert.equal("True", status "ContainersReady")
    t:patch_status(t:get("v1/Pod", "p"), function(p)
      table.insert(p.status.conditions, { type = "example.com/up", status = "True" })
    end)
    assert.equal("True", status "Ready")
  end)

  it("lets a deleted pod go, but not from a node that is down", function()
    start()
    make {}
    make { name = "q" }
    t:delete("v1/Pod", "p")
    assert.is_nil(t:get("v1/Pod", "p"))
    t:patch_status(t:get("v1/Node", "n1"),
      { conditions = { { type = "Ready", status = "Unknown" } } })
    t:delete("v1/Pod", "q")
    assert.is_not_nil(t:get("v1/Pod", "q"))
  end)
end)
