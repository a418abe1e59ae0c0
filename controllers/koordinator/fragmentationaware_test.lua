-- fragmentationaware_test.lua - in virtual time: a node whose cpu is asked for and whose memory is not.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"

describe("fragmentationaware", function()
  it("moves the pod that balances the node best, once", function()
    local t = kube.testing.start { script = "fragmentationaware.lua", crds = "crds" }
    local amounts = { cpu = "10", memory = "10Gi", pods = "10" }
    for _, name in ipairs { "uneven", "free" } do t:load { { kind = NODE, name = name,
      status = { allocatable = amounts } } } end
    t:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "p",
      ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
      spec = { nodeName = "uneven", schedulerName = "koord-scheduler",
      containers = { { name = "c", image = "i",
        resources = { requests = { cpu = "5" } } } } } }
    t:create { kind = "v1/Namespace", name = "koordinator-system" }
    t:advance "3m"
    local jobs = t:list(JOB)
    assert.equal(1, #jobs)
    assert.same({ "p", "FragmentationAware" }, { jobs[1]("spec.podRef.name"),
      jobs[1]('metadata.annotations["koordinator.sh/evict-trigger"]') })
    assert.equal("fragmentationaware-" .. t:get(POD, "default", "p").metadata.uid, jobs[1].metadata.name)
    assert.same({}, t:logs "error")
  end)
end)
