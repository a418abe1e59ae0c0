-- scaledownbinpack_test.lua - in virtual time: two nodes, one of which has something else, too.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local COST = 'metadata.annotations["controller.kubernetes.io/pod-deletion-cost"]'

describe("scaledownbinpack", function()
  local t ---@type kubelua.Testing

  local function start(params)
    t = kube.testing.start { script = "scaledownbinpack.lua", crds = "crds", params = params }
    for name, list in pairs { a = { "a1", "other" }, b = { "b1" } } do
      t:load { { kind = NODE, name = name, status = { allocatable = { cpu = "10", memory = "10Gi" } } } }
      for _, pod in ipairs(list) do
        t:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = pod,
          ownerReferences = pod ~= "other" and { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r",
            uid = "u" } } or nil },
          spec = { nodeName = name, schedulerName = "koord-scheduler",
            containers = { { name = "c", image = "i",
            resources = { requests = { cpu = "1" } } } } } }
      end
    end
    t:create { kind = "v1/Namespace", name = "koordinator-system" }
    t:advance "30s"
  end

  it("writes deletion costs once", function()
    start()
    local function cost(name) return t:get(POD, "default", name)(COST) end
    assert.same({ "0", "1", "2147483647" }, { cost "b1", cost "a1", cost "other" })
    local writes = #t:writes()
    t:advance "3m"
    assert.equal(writes, #t:writes())
    assert.equal(0, #t:list(JOB))
  end)

  it("moves pods at once if configured, up to a limit per pass", function()
    start { strategy = "EvictDirectly", maxPodsToEvict = 1 }
    assert.equal(1, #t:list(JOB))
    assert.equal("b1", t:list(JOB)[1]("spec.podRef.name"))
  end)
end)
