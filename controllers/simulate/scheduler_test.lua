-- scheduler_test.lua - the stand-in for kube-scheduler: which node a pod gets, and who waits.
local kube = require "kubelua"

describe("the scheduler", function()
  local t ---@type kubelua.Testing
  local function node(name, o)
    return kube.merge({ kind = "v1/Node", name = name, labels = { zone = name }, status = {
      allocatable = { cpu = "4", memory = "8Gi", pods = "10" },
      conditions = { { type = "Ready", status = "True" } } } }, o)
  end
  local function start(...)
    t = kube.testing.start { script = "scheduler.lua", objects = { ... } }
  end
  local function pod(name, o)
    t:create(kube.merge({ kind = "v1/Pod", name = name, labels = { app = "a" }, spec = { containers = {
      { name = "c", image = "i", resources = { requests = { cpu = "1" } } } } } }, o))
    local made = t:get("v1/Pod", name)
    return made("spec.nodeName"), made
  end
  local function message(made)
    for _, c in ipairs(made.status.conditions) do
      if c.type == "PodScheduled" then return c.message end
    end
  end

  it("takes the node with the most room, and no more than there is", function()
    start(node "n1", node("n2", { status = { allocatable = { cpu = "2" } } }))
    local count = {}
    for i = 1, 6 do
      local at = pod("p" .. i)
      count[at] = (count[at] or 0) + 1
    end
    assert.same({ n1 = 4, n2 = 2 }, count)
    local at, made = pod "p7"
    assert.is_nil(at)
    assert.equal("0/2 nodes are available: 2 Insufficient cpu.", message(made))
    assert.equal("FailedScheduling", t:events "p7"[1].reason)
  end)

  it("leaves other schedulers' pods, gated pods and placed ones alone", function()
    start(node "n1")
    assert.is_nil((pod("p", { spec = { schedulerName = "mine" } })))
    assert.is_nil((pod("q", { spec = { schedulingGates = { { name = "example.com/wait" } } } })))
    assert.equal("elsewhere", (pod("r", { spec = { nodeName = "elsewhere" } })))
  end)

  it("checks selectors, node affinity, taints, cordons and readiness", function()
    start(node("n1", { spec = { taints = { { key = "k", value = "v", effect = "NoSchedule" } } } }),
      node("n2", { spec = { unschedulable = true } }),
      node("n3", { status = { conditions = { { type = "Ready", status = "False" } } } }),
      node "n4")
    assert.equal("n4", (pod "any"))
    local at, made = pod("picky", { spec = { nodeSelector = { zone = "n1" } } })
    assert.is_nil(at)
    assert.equal("0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \z
      1 node(s) had untolerated taint {k: v}, 1 node(s) were not ready, 1 node(s) were unschedulable.",
      message(made))
    assert.equal("n1", (pod("tolerant", { spec = { nodeSelector = { zone = "n1" },
      tolerations = { { key = "k", operator = "Equal", value = "v" } } } })))
    assert.equal("n4", (pod("drawn", { spec = { affinity = { nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = { { matchExpressions = {
        { key = "zone", operator = "In", values = { "n4", "n5" } } } } } } } } } })))
  end)

  it("honors pod affinity and anti-affinity", function()
    start(node "n1", node "n2")
    local function near(kind, app)
      return { labels = { app = app }, spec = { affinity = { [kind] = {
        requiredDuringSchedulingIgnoredDuringExecution = { { topologyKey = "zone",
          labelSelector = { matchLabels = { app = app } } } } } } } }
    end
    local first, second = pod("a1", near("podAntiAffinity", "x")), pod("a2", near("podAntiAffinity", "x"))
    assert.is_not.equal(first, second)
    local _, third = pod("a3", near("podAntiAffinity", "x"))
    assert.equal("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.", message(third))
    local home = pod("b1", near("podAffinity", "y"))
    for i = 2, 3 do assert.equal(home, (pod("b" .. i, near("podAffinity", "y")))) end
  end)

  it("waits for claims, and looks again when nodes and claims change", function()
    start(node("n1", { spec = { unschedulable = true } }), { kind = "v1/PersistentVolumeClaim", name = "c",
      spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } })
    local volume = { name = "v", persistentVolumeClaim = { claimName = "c" } }
    local _, made = pod("p", { spec = { volumes = { volume } } })
    assert.equal("pod has unbound immediate PersistentVolumeClaims", message(made))
    t:patch_status(t:get("v1/PersistentVolumeClaim", "c"), { phase = "Bound" })
    assert.equal("0/1 nodes are available: 1 node(s) were unschedulable.", message(t:get("v1/Pod", "p")))
    t:patch(t:get("v1/Node", "n1"), { spec = { unschedulable = false } })
    assert.equal("n1", t:get("v1/Pod", "p").spec.nodeName)
  end)
end)
