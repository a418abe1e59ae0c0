-- comparedescheduler_test.lua - pods that somebody else moves, in virtual time: "busy" is used too much,
-- "idle" has room.

local kube = require "kubelua"

local NODE, CONFIG_MAP = "v1/Node", "v1/ConfigMap"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local SYSTEM = "koordinator-system"

local function node(name)
  return { kind = NODE, name = name,
    status = { allocatable = { cpu = "10", memory = "10Gi", pods = "110" } } }
end

local function pod(name, on, more)
  return { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = name,
    ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
    spec = kube.merge({ nodeName = on, schedulerName = "koord-scheduler",
      containers = { { name = "c", image = "i" } } }, more or {}),
    status = { phase = "Running" } }
end

local function metric(name, at, ...)
  local reports = {}
  for i, of in ipairs { ... } do
    reports[i] = { namespace = "default", name = of,
      podUsage = { resources = { cpu = "3", memory = "1Gi" } } }
  end
  return { kind = METRIC, name = name, spec = {}, status = { updateTime = at,
    podsMetric = kube.array(reports),
    nodeMetric = { systemUsage = { resources = { cpu = "100m", memory = "0" } } } } }
end

describe("compare-descheduler", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "comparedescheduler.lua", crds = "crds" }
    t:load { node "busy", node "idle", pod("a", "busy"), pod("b", "busy"), pod("c", "busy"), pod("d", "idle"),
      pod("critical", "busy", { priority = 2000000000 }) }
    t:create { kind = "v1/Namespace", name = SYSTEM }
  end)

  -- Lets time pass, in which both nodes report each minute.
  local function pass(seconds)
    for _ = 1, seconds // 10 do
      local at = tostring(t:now())
      t:load { metric("busy", at, "a", "b", "c"), metric("idle", at, "d") }
      t:advance "10s"
    end
  end

  local function move(name, trigger)
    t:create { kind = JOB, name = "move-" .. name,
      annotations = { ["koordinator.sh/evict-trigger"] = trigger },
      spec = { mode = "ReservationFirst", podRef = { namespace = "default", name = name,
        uid = t:get("v1/Pod", "default", name).metadata.uid } } }
  end

  local function data() return t:get(CONFIG_MAP, SYSTEM, "koordinator-compare-descheduler").data end
  local function tells(text) assert.truthy(data()["report.txt"]:find(text, 1, true), data()["report.txt"]) end

  it("agrees if both move the same pod, and creates no job", function()
    pass(20)
    move("a", "LowNodeLoad")
    pass(30)
    assert.equal("moved pods compared: 1, disagreements: 0\n", data()["report.txt"])
    assert.is_nil(data()["low_node_load_passes.json"])
    assert.equal(1, #t:list(JOB))
  end)

  it("expects no pods to move that the migration controller refuses", function()
    pass(20)
    for _, name in ipairs { "a", "b" } do
      local p = pod(name .. "2", "busy", { schedulerName = "default-scheduler" })
      t:load { p }
    end
    move("a2", "LowNodeLoad")
    pass(700)
    tells "pod, only there: 1\n  default/a2: there moves, here stays; \z
      its scheduler \"default-scheduler\" is not"
    tells "node busy, only here: 1\n  default/a: there"
    assert.is_nil(data()["report.txt"]:find("b2", 1, true))
  end)

  it("counts migrations that are under way", function()
    move("b", "FragmentationAware")
    move("c", "FragmentationAware")
    pass(20)
    move("a", "LowNodeLoad")
    pass(20)
    tells "pod, only there: 1\n  default/a: there moves, here stays; 2 pods are migrating already, \z
      maxMigratingPerNode is 2\n"
    local case = kube.decode(data()["low_node_load_passes.json"]).cases[1]
    assert.equal(2, #case.input.jobs)
  end)

  it("reports pods that it would have left alone, with the reason and an example", function()
    pass(20)
    for _, name in ipairs { "b", "d", "critical" } do move(name, "LowNodeLoad") end
    pass(30)
    tells "moved pods compared: 3, disagreements: 3\n"
    tells "node, only there: 1\n  default/d: there moves, here stays; cpu 31 % (threshold 75 %)"
    tells "order, only there: 1\n  default/b: there moves, here stays; our pass moves default/a\n"
    tells "pod, only there: 1\n  default/critical: there moves, here stays; it is critical\n"
    local cases = kube.decode(data()["low_node_load_passes.json"])
    assert.equal("low_node_load_passes", cases.calc)
    assert.equal('["default/b","default/critical","default/d"]', tostring(cases.cases[1].expect.moved))
    assert.equal(2, #cases.cases[1].input.nodes)
    assert.equal(5, #cases.cases[1].input.pods)
  end)

  it("reports pods that it would have moved, once the difference lasts", function()
    pass(300)
    assert.equal("moved pods compared: 0, disagreements: 0\n", data()["report.txt"])
    pass(400)
    tells "node busy, only here: 1\n  default/a: there stays, here moves; node is overutilized, \z
      node cpu usage(91.00%)"
  end)

  it("judges each job once, and ignores jobs of other deschedulers", function()
    pass(20)
    move("b", "FragmentationAware")
    pass(20)
    tells "moved pods compared: 0, disagreements: 0\n"
    move("d", "LowNodeLoad")
    pass(60)
    tells "moved pods compared: 1, disagreements: 1\n"
  end)
end)
