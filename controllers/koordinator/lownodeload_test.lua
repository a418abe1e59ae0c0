-- lownodeload_test.lua - LowNodeLoad in virtual time: one node is used too much, another has room.

local kube = require "kubelua"

local NODE = "v1/Node"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"

local function node(name)
  return { kind = NODE, name = name, status = { allocatable = { cpu = "10", memory = "10Gi",
    pods = "110" } } }
end

local function pod(name, on)
  return { apiVersion = "v1", kind = "Pod",
    metadata = { namespace = "default", name = name,
      ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
    spec = { nodeName = on, containers = { { name = "c", image = "i" } } }, status = { phase = "Running" } }
end

local function metric(name, pods, at)
  local reports = {}
  for i, of in ipairs(pods) do
    reports[i] = { namespace = "default", name = of,
      podUsage = { resources = { cpu = "3", memory = "1Gi" } } }
  end
  return { kind = METRIC, name = name, spec = {}, status = { updateTime = at,
    podsMetric = kube.array(reports),
    nodeMetric = { nodeUsage = { resources = { cpu = "9", memory = "3Gi" } },
      systemUsage = { resources = { cpu = "100m", memory = "0" } } } } }
end

describe("lownodeload", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "lownodeload.lua", crds = "crds" }
    t:load { node "busy", node "idle", pod("a", "busy"), pod("b", "busy"), pod("c", "busy") }
    t:create { kind = "v1/Namespace", name = "koordinator-system" }
  end)

  -- Lets minutes pass in which both nodes report.
  local function minutes(n)
    for _ = 1, n do
      local at = tostring(t:now())
      t:load { metric("busy", { "a", "b", "c" }, at), metric("idle", {}, at) }
      t:advance "60s"
    end
  end

  it("waits until a node is overloaded six times in a row, then moves as many pods as needed", function()
    minutes(4)
    assert.equal(0, #t:list(JOB))
    minutes(4)
    local jobs = t:list(JOB)
    assert.equal(1, #jobs)
    assert.equal("default", jobs[1]("spec.podRef.namespace"))
    assert.matches("node cpu usage%(91.00%%%)>threshold%(75.00%%%)",
      jobs[1]('metadata.annotations["koordinator.sh/evict-reason"]'))
    assert.same({}, t:logs "error")
  end)

  it("does nothing about nodes that no longer report", function()
    minutes(3)
    t:advance "20m"
    assert.equal(0, #t:list(JOB))
  end)
end)
