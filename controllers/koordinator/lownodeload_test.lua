-- lownodeload_test.lua - LowNodeLoad in virtual time: one node is used too much, another has room.

local kube = require "kubelua"

local NODE = "v1/Node"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"

local function node(name)
  return { kind = NODE, name = name, status = { allocatable = { cpu = "10", memory = "10Gi",
    pods = "110" } } }
end

-- more: of its spec
local function pod(name, on, more)
  return { apiVersion = "v1", kind = "Pod",
    metadata = { namespace = "default", name = name,
      ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
    spec = kube.merge({ nodeName = on, schedulerName = "koord-scheduler",
      containers = { { name = "c", image = "i" } } }, more or {}), status = { phase = "Running" } }
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

-- A file with the definition of a workload of another project.
local function kruise()
  local open = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true }
  local name = os.tmpname()
  local file = assert(io.open(name .. ".yaml", "w"))
  file:write(kube.to_yaml { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = "clonesets.apps.kruise.io" },
    spec = { group = "apps.kruise.io", scope = "Namespaced",
      names = { kind = "CloneSet", listKind = "CloneSetList", plural = "clonesets", singular = "cloneset" },
      versions = { { name = "v1alpha1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object", properties = { spec = open, status = open } } },
        subresources = { status = kube.object {}, scale = { specReplicasPath = ".spec.replicas",
          statusReplicasPath = ".status.replicas" } } } } } })
  file:close()
  os.remove(name)
  return name .. ".yaml"
end

describe("lownodeload", function()
  local t ---@type kubelua.Testing
  local function start(params, more, crds)
    t = kube.testing.start { script = "lownodeload.lua", crds = crds or "crds", params = params }
    t:load { node "busy", node "idle", pod("a", "busy", more), pod("b", "busy"), pod("c", "busy") }
    t:create { kind = "v1/Namespace", name = "koordinator-system" }
  end
  before_each(function() start() end)

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

  -- The job of an earlier decision, which ended, keeps its name for a while.
  it("moves other pods while the last job of one is kept", function()
    minutes(8)
    local first = t:list(JOB)[1].spec.podRef.name
    for _, job in ipairs(t:list(JOB)) do t:patch_status(job, { phase = "Failed" }) end
    minutes(20)
    local others = 0
    for _, job in ipairs(t:list(JOB)) do
      if job.spec.podRef.name ~= first then others = others + 1 end
    end
    assert.truthy(others > 0)
  end)

  -- The names of the pods that have a job, after enough minutes for all of them.
  local function moved()
    minutes(20)
    local out = {}
    for _, job in ipairs(t:list(JOB)) do out[#out + 1] = job.spec.podRef.name end
    table.sort(out)
    assert.same({}, t:logs "error")
    return table.concat(out, " ")
  end

  it("makes no more jobs than may be under way on a node", function()
    assert.equal("a b", moved())
  end)

  it("moves a pod of another scheduler only if no Reservation comes first", function()
    local function with_another(params)
      start(params, { schedulerName = "default-scheduler" })
      return moved()
    end
    assert.equal("b c", with_another())
    assert.equal("a b c", with_another { jobMode = "EvictDirectly", maxMigratingPerNode = 0 })
    assert.equal("a", with_another { schedulerNames = { "default-scheduler" } })
  end)

  it("leaves the only replica of a workload, and more pods of one than may be away", function()
    for name, replicas in pairs { one = 1, two = 2, three = 3 } do
      local containers = { { name = "c", image = "i" } }
      t:create { kind = "apps/v1/ReplicaSet", namespace = "default", name = name,
        spec = { replicas = replicas, selector = { matchLabels = { app = name } },
          template = { metadata = { labels = { app = name } }, spec = { containers = containers } } } }
    end
    local function owned(name, by)
      local p = pod(name, "busy")
      p.metadata.ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = by,
        uid = t:get("apps/v1/ReplicaSet", "default", by).metadata.uid, controller = true } }
      p.status.conditions = { { type = "Ready", status = "True" } }
      t:load { p }
    end
    owned("a", "one")
    owned("b", "three")
    owned("c", "three")
    assert.equal("b", moved())
    owned("c", "two")
    assert.equal("b c", moved())
  end)

  it("reads the replicas of other workloads from their Scale", function()
    local file = kruise()
    start(nil, nil, { "crds", file })
    os.remove(file)
    for name, replicas in pairs { one = 1, three = 3 } do
      t:create { kind = "apps.kruise.io/v1alpha1/CloneSet", namespace = "default", name = name,
        spec = { replicas = replicas } }
    end
    local function owned(name, by, kind)
      local p = pod(name, "busy")
      p.metadata.ownerReferences = { { apiVersion = "apps.kruise.io/v1alpha1", kind = kind or "CloneSet",
        name = by, controller = true,
        uid = kind and "u" or t:get("apps.kruise.io/v1alpha1/CloneSet", "default", by).metadata.uid } }
      p.status.conditions = { { type = "Ready", status = "True" } }
      t:load { p }
    end
    owned("a", "one")
    owned("b", "three")
    owned("c", "gone", "UnitedDeployment") -- a kind without a Scale that is known
    assert.equal("b", moved())
  end)

  it("leaves pods alone whose workload has a Scale that cannot be read", function()
    local file = kruise()
    start(nil, nil, { "crds", file })
    os.remove(file)
    local set = t:create { kind = "apps.kruise.io/v1alpha1/CloneSet", namespace = "default", name = "set",
      spec = { replicas = 3 } }
    local p = pod("b", "busy")
    p.metadata.ownerReferences = { { apiVersion = "apps.kruise.io/v1alpha1", kind = "CloneSet", name = "set",
      controller = true, uid = set.metadata.uid } }
    p.status.conditions = { { type = "Ready", status = "True" } }
    t:load { p }
    t:faults { verb = "get", kind = "apps.kruise.io/v1alpha1/CloneSet", code = 403 }
    assert.equal("a c", moved())
    assert.matches("the replicas of .*CloneSet/default/set are not known", t:logs("warn")[1].message)
  end)

  it("ignores nodes that are not ready", function()
    local idle = node "idle"
    idle.status.conditions = { { type = "Ready", status = "Unknown" } }
    t:load { idle }
    assert.equal("", moved())
    idle.status.conditions[1].status = "True"
    t:load { idle }
    assert.equal("a b", moved())
  end)

  it("does nothing about nodes that no longer report", function()
    minutes(3)
    t:advance "20m"
    assert.equal(0, #t:list(JOB))
  end)
end)
