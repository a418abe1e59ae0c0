-- replicasets_test.lua - the stand-in for the ReplicaSet controller.
local kube = require "kubelua"

describe("replicasets", function()
  local t ---@type kubelua.Testing
  local labels = { app = "a" }
  before_each(function() t = kube.testing.start { script = "replicasets.lua" } end)
  local function make(n, more)
    t:create(kube.merge({ kind = "apps/v1/ReplicaSet", name = "set", spec = { replicas = n,
      selector = { matchLabels = labels },
      template = { metadata = { labels = labels },
        spec = { containers = { { name = "c", image = "i" } } } } } }, more))
  end
  local function ready(pod, since)
    t:patch_status(pod, { phase = "Running", conditions = {
      { type = "Ready", status = "True", lastTransitionTime = since or tostring(t:now()) } } })
  end

  it("create missing pods and delete surplus ones, unready ones first", function()
    make(2)
    local first = t:list "v1/Pod"[1]
    ready(first)
    assert.equal(1, t:get("apps/v1/ReplicaSet", "set").status.readyReplicas)
    t:patch(t:get("apps/v1/ReplicaSet", "set"), { spec = { replicas = 1 } })
    local left = {}
    for _, pod in ipairs(t:list "v1/Pod") do left[#left + 1] = pod.metadata.name end
    assert.same({ first.metadata.name }, left)
  end)

  it("replace a pod that has ended, adopt one that matches", function()
    t:create { kind = "v1/Pod", name = "orphan", labels = labels,
      spec = { containers = { { name = "c", image = "i" } } } }
    make(1)
    assert.equal(1, #t:list "v1/Pod")
    assert.equal("set", t:get("v1/Pod", "orphan").metadata.ownerReferences[1].name)
    t:patch_status(t:get("v1/Pod", "orphan"), { phase = "Failed" })
    assert.equal(2, #t:list "v1/Pod")
  end)

  it("count a pod as available when it has been ready for long enough", function()
    make(1, { spec = { minReadySeconds = 10 } })
    ready(t:list "v1/Pod"[1])
    local function available() return t:get("apps/v1/ReplicaSet", "set")("status.availableReplicas") or 0 end
    t:advance "9s"
    assert.equal(0, available())
    t:advance "1s"
    assert.equal(1, available())
  end)
end)
