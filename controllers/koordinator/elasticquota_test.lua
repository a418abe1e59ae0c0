-- elasticquota_test.lua - elastic quotas in virtual time: a parent with two teams, a node, pods.

local kube = require "kubelua"

local QUOTA, POD, NODE = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", "v1/Pod", "v1/Node"
local PREFIX = "quota.scheduling.koordinator.sh/"
local NS = "koordinator-system"

local function quota(name, parent, min, max, more)
  local labels = { [PREFIX .. "parent"] = parent }
  for key, value in pairs(more or {}) do labels[PREFIX .. key] = value end
  return { kind = QUOTA, namespace = NS, name = name, labels = labels,
    spec = { min = { cpu = min }, max = { cpu = max } } }
end

local function pod(name, team, cpu, node, class)
  return { kind = POD, namespace = "default", name = name, labels = { [PREFIX .. "name"] = team },
    spec = { nodeName = node, priorityClassName = class,
      containers = { { name = "c", image = "i", resources = { requests = { cpu = cpu } } } } } }
end

describe("elasticquota", function()
  local t ---@type kubelua.Testing

  local function start(params)
    t = kube.testing.start { script = "elasticquota.lua", crds = "crds", params = params,
      namespace = "default",
      objects = {
        { kind = "v1/Namespace", name = NS },
        { kind = "scheduling.k8s.io/v1/PriorityClass", name = "low", value = 1 },
        { kind = "scheduling.k8s.io/v1/PriorityClass", name = "high", value = 9 },
        { kind = NODE, name = "n", status = { allocatable = { cpu = "10" }, capacity = { cpu = "10" } } },
        quota("org", "koordinator-root-quota", "10", "10", { ["is-parent"] = "true" }),
        quota("a", "org", "6", "10"),
        quota("b", "org", "4", "10"),
      } }
    t:advance "2s"
  end

  local function carried(name, what)
    local text = t:get(QUOTA, NS, name)("metadata.annotations", PREFIX .. what)
    return text and kube.decode(text).cpu
  end

  it("lends unrequested resources, and takes them back on request", function()
    start()
    t:create(pod("a1", "a", "9"))
    t:advance "2s"
    assert.equal("9", carried("a", "runtime"))
    t:create(pod("b1", "b", "4"))
    t:advance "2s"
    assert.equal("6", carried("a", "runtime"))
    assert.equal("4", carried("b", "runtime"))
    assert.equal("13", carried("org", "child-request"))
    assert.same({}, t:logs "error")
  end)

  it("counts a node that is being deleted until it is gone", function()
    start()
    t:create { apiVersion = "v1", kind = "Node",
      metadata = { name = "m", finalizers = { "example.com/drain" } },
      status = { allocatable = { cpu = "10" }, capacity = { cpu = "10" } } }
    t:create(quota("wide", "koordinator-root-quota", "0", "100"))
    t:create(pod("w1", "wide", "30"))
    t:advance "2s"
    t:delete(NODE, "m")
    t:advance "2s"
    assert.is_true(t:get(NODE, "m")("metadata.deletionTimestamp") ~= nil)
    assert.equal("20", carried("wide", "runtime"))
  end)

  it("reports usage, and the users of the default quota", function()
    start()
    t:create(pod("a1", "a", "2", "n"))
    t:create(pod("stray", "nobody", "1", "n"))
    t:advance "2s"
    assert.equal("2", t:get(QUOTA, NS, "org").status.used.cpu)
    assert.equal("1", t:get(QUOTA, NS, "koordinator-default-quota").status.used.cpu)
    assert.equal("3", t:get(QUOTA, NS, "koordinator-root-quota").status.used.cpu)
  end)

  it("no longer counts a pod that should be gone, behind the gates", function()
    local function used() return t:get(QUOTA, NS, "a")("status.used.cpu") or "0" end
    for gate, seconds in pairs { ignore_terminating_pod = 62, ignore_terminating_pod_immediately = 0 } do
      start { [gate] = true }
      t:create(pod("a1", "a", "2", "n"))
      t:advance "2s"
      t:delete(POD, "a1")
      t:advance "2s"
      assert.equal(seconds > 0 and "2" or "0", used())
      t:advance(seconds .. "s")
      assert.equal("0", used())
    end
  end)

  it("settles: another pass writes nothing", function()
    start()
    t:create(pod("a1", "a", "2", "n"))
    t:advance "2s"
    local writes = #t:writes()
    t:patch(t:get(NODE, "n"), { metadata = { labels = { looked = "at" } } })
    t:advance "10s"
    assert.equal(writes, #t:writes())
  end)

  it("evicts the least important pods of a quota that uses too much for too long", function()
    start { monitor_all_quotas = true }
    t:create(pod("cheap", "a", "3", "n", "low"))
    t:create(pod("dear", "a", "6", "n", "high"))
    t:advance "2s"
    t:create(pod("b1", "b", "4"))
    local function leaving(name) return t:get(POD, "default", name)("metadata.deletionTimestamp") ~= nil end
    t:advance "100s"
    assert.is_false(leaving "cheap")
    t:advance "40s"
    assert.is_true(leaving "cheap")
    assert.is_false(leaving "dear")
  end)

  it("reports a quota without a path to the root", function()
    start()
    t:create(quota("lost", "nowhere", "1", "2"))
    t:advance "2s"
    assert.is_nil(carried("lost", "runtime"))
    assert.matches("quota lost has no runtime", t:logs("warn")[1].message)
  end)
end)
