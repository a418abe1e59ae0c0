-- comparequota_test.lua - quotas that somebody else keeps, in virtual time.

local kube = require "kubelua"

local QUOTA, CONFIG_MAP = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", "v1/ConfigMap"
local PREFIX = "quota.scheduling.koordinator.sh/"
local SYSTEM = "koordinator-system"

local function quota(name, parent, min, more)
  local labels = { [PREFIX .. "parent"] = parent }
  for key, value in pairs(more or {}) do labels[PREFIX .. key] = value end
  return { kind = QUOTA, namespace = SYSTEM, name = name, labels = labels,
    spec = { min = { cpu = min }, max = { cpu = "10" } } }
end

describe("compare-quota", function()
  it("reports differing figures once the difference lasts, with an example, and writes no quota", function()
    local stands = { { kind = "v1/Namespace", name = SYSTEM },
      { kind = "v1/Node", name = "n", status = { allocatable = { cpu = "10" }, capacity = { cpu = "10" } } } }
    local quotas = { quota("org", "koordinator-root-quota", "10", { ["is-parent"] = "true" }),
      quota("a", "org", "6"), quota("b", "org", "4") }
    for _, name in ipairs { "a", "b" } do
      stands[#stands + 1] = { kind = "v1/Pod", namespace = "default", name = name,
        labels = { [PREFIX .. "name"] = name },
        spec = { nodeName = "n", containers = { { name = "c", image = "i",
          resources = { requests = { cpu = "3" } } } } } }
    end
    -- What the policy writes itself is what stands, but for one quota.
    local t = kube.testing.start { script = "elasticquota.lua", crds = "crds", namespace = "default",
      objects = table.move(quotas, 1, #quotas, #stands + 1, { table.unpack(stands) }) }
    t:advance "2s"
    for _, object in ipairs(t:list(QUOTA)) do
      local meta = { annotations = kube.copy(object("metadata.annotations")),
        labels = kube.copy(object("metadata.labels")) }
      stands[#stands + 1] = { kind = QUOTA, namespace = SYSTEM, name = object.metadata.name,
        labels = meta.labels, annotations = meta.annotations, spec = kube.copy(object("spec")),
        status = kube.copy(object("status")) }
      if object.metadata.name == "a" then
        meta.annotations[PREFIX .. "runtime"] = '{"cpu":"2"}'
        stands[#stands].status.used = { cpu = "1" }
      end
    end
    t:stop()

    t = kube.testing.start { script = "comparequota.lua", crds = "crds", namespace = "default",
      objects = stands, settle = false }
    local before = #t:writes()
    local function data() return t:get(CONFIG_MAP, SYSTEM, "koordinator-compare-quota").data end
    local function tells(lines)
      assert.truthy(data()["report.txt"]:find(lines, 1, true), data()["report.txt"])
    end
    t:advance "10s"
    assert.equal("quotas compared: 6, disagreements: 0\n", data()["report.txt"])
    t:advance "2m"
    tells "quotas compared: 6, disagreements: 2\n"
    tells "runtime of cpu, less there: 1\n  a: there 2, here 3; asks for cpu:3, at least cpu:3600m\n"
    tells "used of cpu, less there: 1\n  a: there 1, here 3\n"
    local case = kube.decode(data()["elastic_quota.json"]).cases[1]
    assert.same({ a = { runtime = { cpu = "2" }, used = { cpu = "1" } } }, case.expect.quotas)
    assert.equal("10", case.input.totalResource.cpu)
    for i = before + 1, #t:writes() do assert.equal(CONFIG_MAP, t:writes()[i].kind) end
    assert.same({}, t:logs "error")
  end)
end)
