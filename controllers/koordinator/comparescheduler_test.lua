-- comparescheduler_test.lua - pods that somebody else schedules, in virtual time: two nodes, one of which is
-- used a lot.

local kube = require "kubelua"

local NODE, POD, CONFIG_MAP = "v1/Node", "v1/Pod", "v1/ConfigMap"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local SYSTEM = "koordinator-system"

describe("compare-scheduler", function()
  local t ---@type kubelua.Testing

  local function node(name)
    return { kind = NODE, name = name,
      status = { allocatable = { cpu = "4", memory = "8Gi", pods = "110" } } }
  end

  local function metric(name, cpu)
    return { kind = METRIC, name = name, spec = {}, status = { updateTime = tostring(t:now()),
      nodeMetric = { nodeUsage = { resources = { cpu = cpu, memory = "1Gi" } } } } }
  end

  local function pod(name, cpu, more)
    local p = { kind = POD, namespace = "default", name = name, spec = { schedulerName = "koord-scheduler",
      containers = { { name = "c", image = "i", resources = { requests = { cpu = cpu } } } } } }
    for key, value in pairs(more or {}) do p.spec[key] = value end
    return p
  end

  -- What the other scheduler does.
  local function decide(name, cpu, where, more)
    local made = pod(name, cpu, more)
    made.spec.nodeName = where
    t:create(made)
    t:advance "1s"
    t:patch_status(t:get(POD, "default", name), { conditions = { { type = "PodScheduled",
      status = where and "True" or "False", reason = not where and "Unschedulable" or nil,
      lastTransitionTime = tostring(t:now()) } } })
  end

  before_each(function()
    t = kube.testing.start { script = "comparescheduler.lua", crds = "crds", namespace = "default",
      objects = { { kind = "v1/Namespace", name = SYSTEM }, node "busy", node "idle" } }
    t:load { metric("busy", "1"), metric("idle", "100m") }
    t:advance "11s"
  end)

  local function data() return t:get(CONFIG_MAP, SYSTEM, "koordinator-compare-scheduler").data end
  local function tells(lines)
    assert.truthy(data()["report.txt"]:find(lines, 1, true), data()["report.txt"])
  end

  it("reports nothing if it would have decided the same", function()
    decide("a", "1", "idle")
    decide("big", "5", nil)
    decide("other", "1", "busy", { schedulerName = "default-scheduler" })
    t:advance "100s"
    assert.equal("decisions compared: 2, disagreements: 0\n", data()["report.txt"])
    assert.same({}, t:logs "error")
  end)

  it("reports why it would have chosen another node, with an example", function()
    decide("a", "1", "busy")
    t:advance "20s"
    tells "decisions compared: 1, disagreements: 1\nscore, another node: 1\n"
    tells "  default/a: there busy, here idle; there "
    local case = kube.decode(data()["placement.json"]).cases[1]
    assert.equal("busy", case.expect.node)
    assert.equal(2, #case.input.nodes)
    assert.equal("busy", t:get(POD, "default", "a").spec.nodeName)
  end)

  it("reports nodes that it would have rejected in the state of the cluster at that moment", function()
    decide("first", "2", "idle")
    decide("second", "3", "idle")
    decide("third", "1", "idle")
    t:advance "20s"
    tells "decisions compared: 3, disagreements: 2\nNodeResourcesFit, refused here: 2\n"
    tells "default/second: there idle, here none; Insufficient cpu"
    tells "default/third: there idle, here busy; Insufficient cpu"
  end)

  it("keeps large examples, until they are too much for a ConfigMap", function()
    for i, size in ipairs { 100000, 100000, 900000, 100000 } do
      local name = "large" .. i
      t:load { kube.merge(pod(name, "10m", { nodeName = "busy" }), { status = { conditions = { {
        type = "PodScheduled", status = "True", lastTransitionTime = tostring(t:now()) } },
        message = ("x"):rep(size) } }) }
      t:advance "11s"
    end
    tells "decisions compared: 4, disagreements: 4\n"
    local cases = kube.decode(data()["placement.json"]).cases
    assert.equal("default/large1", cases[1].name)
    assert.is_true(#cases >= 1 and #data()["placement.json"] < 600000)
    assert.same({}, t:logs "error")
  end)

  local function bound(name, where, at)
    return kube.merge(pod(name, "1", { nodeName = where, containers = { { name = "c", image = "i",
      resources = { requests = { memory = "5Gi" } } } } }), { status = { conditions = { {
      type = "PodScheduled", status = "True", lastTransitionTime = tostring(at or t:now()) } } } })
  end

  it("does not count pods that are bound in the second of its look", function()
    t:load { bound("first", "idle"), bound("next", "idle", t:now() + 15) }
    t:advance "11s"
    assert.equal("decisions compared: 1, disagreements: 0\n", data()["report.txt"])
    t:advance "10s"
    tells "default/next: there idle, here busy; Insufficient memory"
  end)

  it("knows the order of pods that were bound within a second", function()
    t:load { bound("z", "idle") }
    t:load { bound("a", "busy") }
    t:advance "1s"
    -- An agent writes their status later, in another order.
    for _, name in ipairs { "a", "z" } do
      t:patch_status(t:get(POD, "default", name), { phase = "Running" })
    end
    t:advance "20s"
    assert.equal("decisions compared: 2, disagreements: 0\n", data()["report.txt"])
  end)

  it("reports pods that wait although it would have placed them, once the difference lasts", function()
    decide("waits", "1", nil)
    t:advance "30s"
    tells "disagreements: 0"
    t:advance "60s"
    tells "no node there, only here: 1\n  default/waits: there none, here idle\n"
    assert.is_nil(t:get(POD, "default", "waits")("spec.nodeName"))
  end)
end)
