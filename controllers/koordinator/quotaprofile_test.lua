-- quotaprofile_test.lua - the root quota of a profile follows the nodes that the profile selects.

local kube = require "kubelua"

local PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local QUOTA, NODE = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", "v1/Node"
local PREFIX = "quota.scheduling.koordinator.sh/"

local function node(name, cpu, ready)
  return { kind = NODE, name = name, labels = { pool = "a" },
    status = { allocatable = { cpu = cpu, memory = "1Gi" },
    capacity = { cpu = cpu, memory = "1Gi" }, conditions = { { type = "Ready", status = ready } } } }
end

describe("quotaprofile", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "quotaprofile.lua", crds = "crds", objects = {
      { kind = PROFILE, name = "team", spec = { quotaName = "team-root", resourceRatio = "0.5",
        nodeSelector = { matchLabels = { pool = "a" } } } },
      node("n1", "10", "True"), node("n2", "6", "False"),
    } }
  end)

  local function annotated(what)
    return kube.decode(t:get(QUOTA, "team-root").metadata.annotations[PREFIX .. what])
  end

  it("makes the root quota of the nodes it selects, and labels both with the tree", function()
    local q = t:get(QUOTA, "team-root")
    assert.equal("8", q.spec.min.cpu)
    assert.equal("true", q.metadata.labels[PREFIX .. "is-root"])
    assert.equal(t:get(PROFILE, "team").metadata.labels[PREFIX .. "tree-id"],
      q.metadata.labels[PREFIX .. "tree-id"])
    assert.equal("3", annotated("unschedulable-resource").cpu)
    assert.same({}, t:logs "error")
  end)

  it("follows new nodes, and ignores mere status reports", function()
    t:load(node("n3", "4", "True"))
    t:settle()
    assert.equal("10", annotated("total-resource").cpu)
    local writes = #t:writes()
    t:patch_status(t:get(NODE, "n1"), { conditions = {
      { type = "Ready", status = "True", reason = "StillReady" } } })
    assert.equal(writes, #t:writes())
  end)

  it("restores changed or deleted objects", function()
    t:patch(t:get(QUOTA, "team-root"), { spec = { min = { cpu = "1" } } })
    assert.equal("8", t:get(QUOTA, "team-root").spec.min.cpu)
    t:delete(QUOTA, "team-root")
    assert.equal("8", t:get(QUOTA, "team-root").spec.min.cpu)
  end)

  it("leaves the quota alone when the selector is malformed", function()
    t:patch(t:get(PROFILE, "team"), { spec = { nodeSelector = {
      matchExpressions = { { key = "pool", operator = "Near" } } } } })
    assert.equal("8", t:get(QUOTA, "team-root").spec.min.cpu)
  end)
end)
