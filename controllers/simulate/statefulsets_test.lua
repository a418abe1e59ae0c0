-- statefulsets_test.lua - the stand-in for the StatefulSet controller: order, claims, updates.
local kube = require "kubelua"

describe("statefulsets", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { scripts = { "statefulsets.lua", "scheduler.lua", "pods.lua", "nodes.lua",
      "volumes.lua" } }
  end)
  local function make(spec)
    local labels = { app = "db" }
    t:create { kind = "apps/v1/StatefulSet", name = "db", spec = kube.merge({ replicas = 3,
      serviceName = "db", selector = { matchLabels = labels }, template = { metadata = { labels = labels,
        annotations = { ["simulate.kubelua.dev/ready-after"] = "10s" } },
        spec = { containers = { { name = "c", image = "i:1" } } } } }, spec) }
  end
  local function get() return t:get("apps/v1/StatefulSet", "db") end
  local function images()
    local list = {}
    for _, pod in ipairs(t:list "v1/Pod") do
      list[#list + 1] = pod.metadata.name .. " " .. pod.spec.containers[1].image
    end
    return list
  end
  local function change(image, partition)
    t:patch(get(), { spec = { updateStrategy = { rollingUpdate = { partition = partition or 0 } },
      template = { spec = { containers = { { name = "c", image = image } } } } } })
  end

  it("make their pods one after the other, with names and claims", function()
    make { volumeClaimTemplates = { { metadata = { name = "data" }, spec = {
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } } } }
    assert.same({ "db-0 i:1" }, images())
    t:advance "10s"
    assert.same({ "db-0 i:1", "db-1 i:1" }, images())
    t:advance "20s"
    assert.equal(3, get().status.readyReplicas)
    assert.equal("Bound", t:get("v1/PersistentVolumeClaim", "data-db-2").status.phase)
    assert.equal("db-1", t:get("v1/Pod", "db-1").spec.hostname)
  end)

  it("create all at once under Parallel, and delete the highest first", function()
    make { podManagementPolicy = "Parallel" }
    assert.equal(3, #images())
    t:advance "10s"
    t:patch(get(), { spec = { replicas = 1 } })
    assert.same({ "db-0 i:1" }, images())
  end)

  it("are updated while a surplus pod ends, under Parallel", function()
    for policy, expected in pairs { Parallel = { "db-0 i:2", "db-1 i:2", "db-2 i:1" },
      OrderedReady = { "db-0 i:1", "db-1 i:1", "db-2 i:1" } } do
      make { podManagementPolicy = policy }
      t:advance "30s"
      t:patch(t:get("v1/Pod", "db-2"), { metadata = { finalizers = { "example.com/stays" } } })
      t:patch(get(), { spec = { replicas = 2, template = { spec = {
        containers = { { name = "c", image = "i:2" } } } } } })
      t:advance "30s"
      assert.same(expected, images())
      t:patch(t:get("v1/Pod", "db-2"), { metadata = { finalizers = kube.null } })
      t:advance "30s"
      assert.same({ "db-0 i:2", "db-1 i:2" }, images())
      t:delete(get())
      for _, pod in ipairs(t:list "v1/Pod") do t:delete(pod) end
      t:advance "30s"
    end
  end)

  it("ignore revisions deleted before they see them", function()
    make {}
    t:advance "30s"
    t:fail_next { verb = "create", kind = "apps/v1/ControllerRevision", error = "already_exists" }
    change "i:2"
    t:advance "60s"
    t:fail_next { verb = "patch", kind = "apps/v1/ControllerRevision", error = "not_found" }
    change "i:1"
    t:advance "60s"
    assert.equal(0, t:faults_left())
    t:faults { verb = "watch", resource = "controllerrevisions", lag = "20s" }
    change "i:3"
    t:advance "5s"
    change "i:1"
    t:advance "90s"
    assert.is_true(t:faults()[1].hits > 0)
    assert.same({ "db-0 i:1", "db-1 i:1", "db-2 i:1" }, images())
    assert.same({}, t:logs "error")
  end)

  it("update from the highest down to the partition", function()
    make { podManagementPolicy = "Parallel" }
    t:advance "10s"
    change("i:2", 1)
    assert.same({ "db-0 i:1", "db-1 i:1", "db-2 i:2" }, images())
    t:advance "20s"
    assert.same({ "db-0 i:1", "db-1 i:2", "db-2 i:2" }, images())
    assert.is_not.equal(get().status.currentRevision, get().status.updateRevision)
    change("i:2", 0)
    t:advance "10s"
    assert.equal(get().status.currentRevision, get().status.updateRevision)
    assert.equal(2, #t:list "apps/v1/ControllerRevision")
  end)
end)
