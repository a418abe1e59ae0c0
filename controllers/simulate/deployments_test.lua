-- deployments_test.lua - the stand-in for the Deployment controller: rollouts, history, a rollout that fails.
local kube = require "kubelua"

describe("deployments", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { scripts = { "deployments.lua", "replicasets.lua", "scheduler.lua", "pods.lua",
      "nodes.lua" } }
  end)
  local function make(o)
    local labels = { app = "web" }
    t:create(kube.merge({ kind = "apps/v1/Deployment", name = "web", spec = { replicas = 4,
      selector = { matchLabels = labels },
      template = { metadata = { labels = labels },
        spec = { containers = { { name = "c", image = "i:1" } } } } } }, o))
  end
  local function get() return t:get("apps/v1/Deployment", "web") end
  local function image(to, waits)
    t:patch(get(), { spec = { template = {
      metadata = { annotations = { ["simulate.kubelua.dev/waits"] = waits } },
      spec = { containers = { { name = "c", image = to } } } } } })
  end
  local function sets()
    local by = {}
    for _, set in ipairs(t:list "apps/v1/ReplicaSet") do
      by[set.metadata.annotations["deployment.kubernetes.io/revision"]] = set.spec.replicas
    end
    return by
  end
  local function condition(type)
    for _, c in ipairs(get().status.conditions) do
      if c.type == type then return c.status .. " " .. c.reason end
    end
  end
  local function images()
    local by = {}
    for _, pod in ipairs(t:list "v1/Pod") do
      local name = pod.spec.containers[1].image
      by[name] = (by[name] or 0) + 1
    end
    return by
  end

  it("ignores a set that is being deleted, and creates another one", function()
    make {}
    t:advance "30s"
    for _, kind in ipairs { "apps/v1/ReplicaSet", "apps/v1/Deployment" } do
      t:fail_next { verb = "patch", kind = kind, error = "not_found", times = 2 }
      image(kind:match "%w+$", nil)
      t:advance "30s"
    end
    assert.same({}, t:logs "error")
    for _, set in ipairs(t:list "apps/v1/ReplicaSet") do t:delete(set) end
    t:advance "30s"
    assert.equal(4, get().status.availableReplicas)
    assert.same({}, t:logs "error")
  end)

  it("have as many ready pods as they want", function()
    make()
    assert.equal(4, get().status.availableReplicas)
    assert.equal("True MinimumReplicasAvailable", condition "Available")
    assert.equal("True NewReplicaSetAvailable", condition "Progressing")
    t:patch(get(), { spec = { replicas = 1 } })
    assert.same({ ["i:1"] = 1 }, images())
    assert.equal(1, get().status.replicas)
  end)

  it("roll out a new template, and an old one again as a new revision", function()
    make()
    image "i:2"
    assert.same({ ["1"] = 0, ["2"] = 4 }, sets())
    assert.same({ ["i:2"] = 4 }, images())
    image "i:1"
    assert.same({ ["2"] = 0, ["3"] = 4 }, sets())
    assert.equal("3", get().metadata.annotations["deployment.kubernetes.io/revision"])
  end)

  it("keep the old pods while new ones fail to start, and report a passed progress deadline", function()
    make { spec = { progressDeadlineSeconds = 60 } }
    image("i:2", "ErrImagePull")
    assert.same({ ["1"] = 3, ["2"] = 2 }, sets())
    assert.equal(3, get().status.availableReplicas)
    assert.equal("True ReplicaSetUpdated", condition "Progressing")
    t:advance "61s"
    assert.equal("False ProgressDeadlineExceeded", condition "Progressing")
  end)

  it("delete all pods first under strategy Recreate", function()
    make { spec = { strategy = { type = "Recreate" } } }
    image "i:2"
    assert.same({ ["1"] = 0, ["2"] = 4 }, sets())
  end)

  it("do nothing while they are paused", function()
    make()
    t:patch(get(), { spec = { paused = true } })
    image "i:2"
    assert.same({ ["1"] = 4 }, sets())
    t:patch(get(), { spec = { paused = false } })
    assert.same({ ["1"] = 0, ["2"] = 4 }, sets())
  end)

  it("forget old revisions beyond their limit", function()
    make { spec = { revisionHistoryLimit = 1 } }
    for i = 2, 4 do image("i:" .. i) end
    assert.same({ ["3"] = 0, ["4"] = 4 }, sets())
  end)
end)
