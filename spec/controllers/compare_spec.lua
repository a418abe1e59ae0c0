-- compare_spec.lua - comparisons with the original Koordinator: where results differ and why, and that the
-- fixture case made from a difference shows it, too.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local colocation = require "colocation"
local compare = require "compare.node"
local eviction = require "compare.eviction"
local filter = require "podmigrationjob.filter"
local fields = require "fields"
local fixtures = require "support.fixtures"
local kube = require "kubelua"
local plan = require "plan"
local prepare = require "prepare"
local report = require "compare.report"
local seeds = require "support.seeds"

local NOW = 1767225600 -- 2026-01-01T00:00:00Z
local CPU = "kubernetes.io/batch-cpu"

local function input(used)
  local has = { cpu = "20", memory = "40Gi" }
  return { now = NOW, strategy = fields.merge(colocation.defaults(), { enable = true }),
    node = { metadata = { name = "n", labels = {}, annotations = {}, managedFields = { {} } },
      status = { capacity = has, allocatable = fields.copy(has) } },
    pods = { { metadata = { namespace = "ns", name = "web", labels = { ["koordinator.sh/qosClass"] = "LS" } },
      spec = { containers = { { name = "c", resources = { requests = { cpu = "8", memory = "8Gi" } } } } },
      status = { phase = "Running" } } },
    nodeMetric = { metadata = { name = "n" }, status = { updateTime = "2026-01-01T00:00:00Z",
      prodReclaimableMetric = { resource = { resources = { cpu = "3", memory = "2Gi" } } },
      podsMetric = { { namespace = "ns", name = "web", priority = "koord-prod",
        podUsage = { resources = { cpu = used .. "m", memory = "1Gi" } } } },
      nodeMetric = { systemUsage = { resources = { cpu = "1", memory = "1Gi" } },
        nodeUsage = { resources = { cpu = used + 1000 .. "m", memory = "2Gi" } } } } } }
end

-- The node with the original's writes, if it decides like ours, except for some figures.
local function written(one, others)
  local decided = plan.calculate(one)
  for name, n in pairs(prepare.prepare(one.node, decided).resources) do
    one.node.status.allocatable[name] = n or nil
  end
  for name, n in pairs(others or {}) do one.node.status.allocatable[name] = n or nil end
  return one, decided
end

local function disagree(used, others)
  local one, decided = written(input(used), others)
  return compare.disagreements(one, decided), one, decided
end

describe("comparing a node", function()
  it("finds nothing where the original decided the same, or almost", function()
    seeds.each(200, function()
      assert.same({}, (disagree(math.random(0, 20000))))
    end)
    assert.same({}, (disagree(1000, { [CPU] = 10900 })))
  end)

  it("finds each figure that differs, and says which way", function()
    seeds.each(200, function()
      local theirs = math.random(0, 30000)
      local found, one, decided = disagree(1000, { [CPU] = theirs })
      local ours = decided.resources[CPU]
      local differs = math.abs(ours - theirs) > theirs * one.strategy.resourceDiffThreshold
      assert.equal(differs and 1 or 0, #found)
      if differs then
        assert.same({ "n", "batchresource", CPU, theirs, ours,
          theirs > ours and "more there" or "less there" },
          { found[1].object, found[1].calc, found[1].name, found[1].theirs, found[1].ours, found[1].reason })
        assert.matches("^batchAllocatable%[CPU", found[1].why)
      end
    end)
    assert.equal("only here", disagree(1000, { [CPU] = false })[1].reason)
    local old = written(input(1000))
    old.nodeMetric.status.updateTime = "2025-01-01T00:00:00Z"
    local found = compare.disagreements(old, plan.calculate(old))
    assert.equal(4, #found)
    assert.equal("only there", found[1].reason)
    assert.matches("degrade", found[1].why)
  end)
end)

describe("a case of a disagreement", function()
  local function run(case, calc)
    local said = {}
    local passed, failed = fixtures.run("x.json", kube.encode { calc = calc, cases = { case } },
      function(text) said[#said + 1] = text end)
    return passed, failed, table.concat(said, "\n")
  end

  it("fails in the runner by exactly that, and passes once the policy says what the original says", function()
    local found, one, decided = disagree(1000, { [CPU] = 5000 })
    local case = compare.case(one, decided, "batchresource", found)
    assert.is_nil(case.input.node.metadata.managedFields)
    local passed, failed, said = run(case, "batchresource")
    assert.same({ 0, 1 }, { passed, failed }, said)
    assert.matches("kubernetes.io/batch%-cpu: expected 5000, got 10000", said)
    case.expect.resources[CPU] = 10000
    passed, failed, said = run(case, "batchresource")
    assert.same({ 1, 0 }, { passed, failed }, said)
    assert.same({ 1, 0 }, { (run(compare.case(one, decided, "midresource", {}), "midresource")), 0 })
  end)

  it("expects nothing where the original has nothing", function()
    local found, one, decided = disagree(1000, { [CPU] = false, ["kubernetes.io/batch-memory"] = false })
    assert.equal(2, #found)
    local case = compare.case(one, decided, "batchresource", found)
    assert.same({ reset = { CPU, "kubernetes.io/batch-memory" } }, case.expect)
    assert.equal(0, (run(case, "batchresource")))
  end)

  it("is not made where more than the calculation made the figure", function()
    local found, one, decided = disagree(1000, { [CPU] = 5000 })
    one.node.metadata.annotations["node.koordinator.sh/thirdPartyAllocations"] = "{}"
    assert.is_nil(compare.case(one, decided, "batchresource", found))
  end)
end)

describe("a case of moved pods", function()
  local REPLICAS = { a = 1, b = 3, c = 3 } -- if the pod's controller is named "of"

  -- The filter of the pods on a node, and the workloads that it has read.
  local function gate(on, jobs, settings)
    local loads = {}
    local function pod_of(job)
      for _, pod in ipairs(on) do
        if pod.metadata.name == job.spec.podRef.name then return pod end
      end
    end
    return filter.open(filter.settings(settings or {}), jobs, pod_of, function(pod)
      local owner = pod.metadata.ownerReferences[1]
      if not owner.controller then return nil end
      loads[owner.uid] = { uid = owner.uid, replicas = REPLICAS[pod.metadata.name], unavailable = {} }
      return loads[owner.uid]
    end), loads
  end

  local function world()
    local function node(name)
      return { metadata = { name = name },
        status = { allocatable = { cpu = "10", memory = "10Gi", pods = "110" } } }
    end
    local on, used = {}, {}
    for i, name in ipairs { "a", "b", "c" } do
      on[i] = { metadata = { namespace = "ns", name = name, uid = name,
        ownerReferences = { { kind = "ReplicaSet" } } },
        spec = { nodeName = "busy", containers = {} }, status = { phase = "Running" } }
      used[i] = { namespace = "ns", name = name, podUsage = { resources = { cpu = "3", memory = "1Gi" } } }
    end
    local function metric(name, reports)
      return { metadata = { name = name },
        status = { updateTime = "2026-01-01T00:00:00Z", podsMetric = reports,
        nodeMetric = { systemUsage = { resources = { cpu = "0", memory = "0" } } } } }
    end
    local w = { nodes = { node "busy", node "idle" }, pods_on = { busy = on }, now = NOW, jobs = {},
      metrics = { busy = metric("busy", used), idle = metric("idle", {}) } }
    w.gate, w.loads = gate(on, w.jobs)
    return w, on
  end
  local SETTINGS = { nodeFit = true, numberOfNodes = 0, nodeMetricExpirationSeconds = 180,
    lowThresholds = { cpu = 45, memory = 55 }, highThresholds = { cpu = 75, memory = 80 } }

  local function failed(theirs, w, settings)
    local case = eviction.case(theirs, settings or SETTINGS, w)
    return (select(2, fixtures.run("moved", kube.encode { calc = "low_node_load_passes", cases = { case } },
      function() end)))
  end

  it("passes with the pods that ours moves, and fails with those of the original", function()
    local w, on = world()
    assert.same({ {}, {} }, { eviction.judge({ on[1] }, SETTINGS, w) })
    assert.equal(0, failed({ on[1] }, w))
    w, on = world()
    local there, here = eviction.judge({ on[2] }, SETTINGS, w)
    assert.same({ "ns/b", "order", "our pass moves ns/a" },
      { there[1].object, there[1].name, there[1].why })
    assert.same({ "ns/a", "only here" }, { here[1].object, here[1].reason })
    assert.equal(1, failed({ on[2] }, w))
  end)

  it("has the jobs and workloads that keep pods from moving", function()
    local w, on = world()
    for _, pod in ipairs(on) do
      pod.metadata.ownerReferences[1] = { kind = "ReplicaSet", uid = pod.metadata.name .. "-set",
        controller = true }
    end
    -- The one replica of "a" stays, and the job of "c" leaves no room for another on the node.
    local settings = kube.merge(SETTINGS, { maxMigratingPerNode = 1 })
    assert.same({ {}, {} }, { eviction.judge({ on[2] }, settings, w) })
    assert.equal(0, failed({ on[2] }, w, settings))
    assert.equal(1, failed({ on[1] }, w, settings))
    w.jobs[1] = { metadata = { name = "j" }, spec = { podRef = { namespace = "ns", name = "c", uid = "c" } } }
    w.gate, w.loads = gate(on, w.jobs, settings)
    local there = eviction.judge({ on[1], on[2] }, settings, w)
    assert.same({ "pod", "its whole workload (1 replica) would be unavailable" },
      { there[1].name, there[1].why })
    assert.same({ "pod", "1 pod is migrating already, maxMigratingPerNode is 1" },
      { there[2].name, there[2].why })
    assert.equal(0, failed({}, w, settings))
    assert.equal(1, failed({ on[2] }, w, settings))
  end)

  it("has the pods of nodes that are not ready, since jobs may move them", function()
    local w, on = world()
    local pod = kube.merge(on[1], { metadata = { name = "d", uid = "d" }, spec = { nodeName = "broken" } })
    w.pods_on.broken = { pod }
    for _, p in ipairs { on[1], on[2], on[3], pod } do
      p.metadata.ownerReferences[1] = { kind = "ReplicaSet", uid = "set", controller = true }
    end
    w.jobs[1] = { metadata = { name = "j" }, spec = { podRef = { namespace = "ns", name = "d", uid = "d" } } }
    w.gate, w.loads = gate({ on[1], on[2], on[3], pod }, w.jobs, { maxMigratingPerWorkload = 1 })
    local settings = kube.merge(SETTINGS, { maxMigratingPerWorkload = 1 })
    assert.same({ {}, {} }, { eviction.judge({}, settings, w) })
    assert.equal(0, failed({}, w, settings))
  end)

  it("names nodes that are not overloaded, and reports when none has room", function()
    local w, on = world()
    w.metrics.busy.status.podsMetric[3] = nil
    local there = eviction.judge({ on[1] }, SETTINGS, w)
    assert.same({ "node", "cpu 60 % (threshold 75 %), memory 20 % (threshold 80 %)" },
      { there[1].name, there[1].why })
    w, on = world()
    w.nodes[2].spec = { unschedulable = true }
    there = eviction.judge({ on[1] }, SETTINGS, w)
    assert.same({ "room", "no other node fits" }, { there[1].name, there[1].why })
  end)
end)

describe("a report", function()
  it("groups by resource and reason, and shows some of each", function()
    local list = { { object = "x", name = "b", reason = "only here", ours = 3 } }
    for i = 1, 7 do
      list[#list + 1] = { object = "n" .. i, name = "a", reason = "more there", theirs = i, ours = 0,
        why = "sum" }
    end
    local text = report.text(list, 9, "nodes")
    assert.equal(1, text:find(
      "nodes compared: 9, disagreements: 8\na, more there: 7\n  n1: there 1, here 0; sum\n",
      1, true), text)
    assert.matches("n5: there 5, here 0; sum\n  and 2 more\nb, only here: 1\n  x: there none, here 3\n$",
      text)
    assert.equal("nodes compared: 0, disagreements: 0\n", report.text({}, 0, "nodes"))
  end)
end)
