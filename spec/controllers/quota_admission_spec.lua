-- quota_admission_spec.lua - what the quota webhooks allow and fill in, and the root quota of a profile, as
-- functions.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local affinity = require "elasticquota.affinity"
local kube = require "kubelua"
local members = require "elasticquota.members"
local quota = require "elasticquota.quota"
local root = require "quotaprofile.root"
local topology = require "elasticquota.topology"

local PREFIX = "quota.scheduling.koordinator.sh/"

local function object(name, min, max, labels, annotations)
  local o = { metadata = { name = name, namespace = "ns", labels = {}, annotations = {} },
    spec = { min = min and { cpu = min }, max = max and { cpu = max } } }
  for key, value in pairs(labels or {}) do o.metadata.labels[PREFIX .. key] = value end
  for key, value in pairs(annotations or {}) do o.metadata.annotations[PREFIX .. key] = value end
  return o
end

local PARENT = { ["is-parent"] = "true" }

local function below(parent, more)
  local labels = { parent = parent }
  for key, value in pairs(more or {}) do labels[key] = value end
  return labels
end

-- org has 10, of which a has 6.
local function world(more, ...)
  local list = {}
  local objects = { object("org", "10", "20", PARENT), object("a", "6", "20", below "org"), ... }
  for i, o in ipairs(objects) do list[i] = quota.read(o) end
  local w = { quotas = members.index(list).by_name, bound = function() return false end }
  for key, value in pairs(more or {}) do w[key] = value end
  return w
end

local function refused(text, ok, why)
  assert.is_false(ok)
  assert.matches(text, why, 1, true)
end

describe("a new quota", function()
  it("fits below a parent that has a minimum left", function()
    assert.is_true(topology.create(world(), object("b", "4", "20", below "org")))
    refused("the children of org would have a total min of cpu:11, above its min of cpu:10",
      topology.create(world(), object("b", "5", "20", below "org")))
    assert.is_true(topology.create(world(), object("b", "5", "20",
      below("org", { ["allow-force-update"] = "true" }))))
    assert.is_true(topology.create(world(), object("b", "500", "2000")))
  end)

  it("has a name of its own, and namespaces of its own", function()
    refused("names are unique", topology.create(world(), object("a", "1", "2")))
    local w = world(nil, object("far", nil, "1", nil, { namespaces = '["x"]' }))
    refused("namespace x belongs to quota far", topology.create(w,
      object("b", nil, "1", nil, { namespaces = '["y","x"]' })))
  end)

  it("is valid by itself", function()
    refused("spec.max is below 0 in cpu", topology.create(world(), object("b", nil, "-1")))
    refused("spec.min is below 0 in cpu", topology.create(world(), object("b", "-1", "1")))
    refused("spec.min of cpu is 3, more than spec.max, 2", topology.create(world(), object("b", "3", "2")))
    refused("in spec.min but not in spec.max", topology.create(world(), object("b", "3", nil)))
    refused("cannot be parsed", topology.create(world(),
      object("b", nil, "1", nil, { ["shared-weight"] = "{" })))
    refused("shared-weight is below 0 in cpu", topology.create(world(), object("b", nil, "1", nil,
      { ["shared-weight"] = '{"cpu":-1}' })))
  end)

  it("has an existing parent quota of the same tree", function()
    refused("parent gone does not exist", topology.create(world(), object("b", nil, "20", below "gone")))
    refused("not labelled is-parent", topology.create(world(), object("b", nil, "20", below "a")))
    refused('tree id "t" differs from that of its parent org', topology.create(world(), object("b", nil, "20",
      below("org", { ["tree-id"] = "t" }))))
  end)

  it("names the resources of its parent, or some of them under the feature gate", function()
    local o = object("b", nil, nil, below "org")
    refused("does not name the same resources", topology.create(world(), o))
    assert.is_true(topology.create(world { update_resource_key = true }, o))
    o.spec.max = { cpu = "1", memory = "1" }
    refused("names resources that its parent org does not",
      topology.create(world { update_resource_key = true }, o))
  end)
end)

describe("a changed quota", function()
  it("is checked only when a relevant field changed", function()
    local before = object("a", "6", "20", below "org", { runtime = '{"cpu":1}' })
    assert.is_false(topology.matters(before, object("a", "6000m", "20", below "org",
      { runtime = '{"cpu":2}' })))
    assert.is_true(topology.matters(before, object("a", "7", "20", below "org")))
    assert.is_true(topology.matters(before, object("a", "6", "20", below "org", { namespaces = '["x"]' })))
    assert.is_true(topology.matters(before, object("a", "6", "20")))
  end)

  it("stays above its children's minima, and within its parent's", function()
    assert.is_true(topology.update(world(), object("org", "6", "20", PARENT)))
    refused("minima of its children are cpu:6, more than its cpu:5",
      topology.update(world(), object("org", "5", "20", PARENT)))
    assert.is_true(topology.update(world(), object("org", "5", "20",
      { ["is-parent"] = "true", ["is-root"] = "true" })))
    assert.is_true(topology.update(world(), object("a", "10", "20", below "org")))
    refused("the children of org would have a total min of cpu:11",
      topology.update(world(), object("a", "11", "20", below "org")))
  end)

  it("keeps its tree, stays a parent while it has children, and a leaf while it has pods", function()
    refused("tree id must not change", topology.update(world(),
      object("a", "6", "20", below("org", { ["tree-id"] = "t" }))))
    refused("has children", topology.update(world(), object("org", "10", "20")))
    local busy = world { bound = function(name) return name == "a" end }
    refused("quota a has pods", topology.update(busy, object("a", "6", "20", below("org", PARENT))))
    assert.is_true(topology.update(world(), object("a", "6", "20", below("org", PARENT))))
  end)

  it("is not its own ancestor", function()
    refused("its parent a is one of its descendants", topology.update(world(nil,
      object("a", "6", "20", below("org", PARENT))),
      object("org", "10", "20", below("a", PARENT))))
  end)

  it("keeps its maximum above the use of the resources that require it", function()
    local o = object("a", "6", "8", below "org", { ["max-strict-check-resource-keys"] = '["cpu"]' })
    o.status = { used = { cpu = "9" } }
    refused("spec.max of cpu is 8, less than the 9 in use", topology.update(world(), o))
    o.status.used.cpu = "8"
    assert.is_true(topology.update(world(), o))
  end)

  it("is not one of the reserved", function()
    refused("must not be changed", topology.update(world(), object(quota.SYSTEM, nil, "1")))
    refused("must not be changed", topology.update(world(), object(quota.ROOT, nil, "1")))
  end)

  it("has a minimum guaranteed by an ancestor, if usage is guaranteed", function()
    local function try(has)
      local top = object("top", "8", "20", { ["tree-id"] = "t", ["is-parent"] = "true" },
        { guaranteed = ('{"cpu":%d}'):format(has) })
      local leaf = { parent = "top", ["tree-id"] = "t" }
      local w = world({ guarantee = true }, top, object("leaf", "2", "20", leaf,
        { guaranteed = '{"cpu":2}' }))
      return topology.update(w, object("leaf", "8", "20", leaf, { guaranteed = '{"cpu":2}' }))
    end
    assert.is_true(try(8))
    refused("no ancestor guarantees", try(7))
  end)
end)

describe("a quota that is deleted", function()
  it("has neither children nor pods, and is not reserved", function()
    assert.is_true(topology.delete(world(), object "a", {}))
    refused("has 1 child quotas", topology.delete(world(), object "org", {}))
    refused("has 3 child pods: x, y, ...", topology.delete(world(), object "a", { "x", "y", "z" }))
    refused("must not be deleted", topology.delete(world(), object(quota.DEFAULT), {}))
  end)
end)

describe("defaults", function()
  local function fill(o)
    local ok, why = topology.fill(o, function(name) return ({ org = "t", plain = "" })[name] end)
    return ok and o.metadata or ok, why
  end

  it("are the root as parent, the parent's tree, and the maximum as weight", function()
    local meta = fill(object("b", nil, "20"))
    assert.equal(quota.ROOT, meta.labels[PREFIX .. "parent"])
    assert.equal('{"cpu":"20"}', meta.annotations[PREFIX .. "shared-weight"])
    assert.equal("t", fill(object("b", nil, "20", below "org")).labels[PREFIX .. "tree-id"])
    assert.is_nil(fill(object("b", nil, "20", below "plain")).labels[PREFIX .. "tree-id"])
    refused("parent gone does not exist", fill(object("b", nil, "20", below "gone")))
  end)

  it("give a weight the resources of the maximum", function()
    local function weight(text) return fill(object("b", nil, "20", nil, { ["shared-weight"] = text })) end
    assert.equal('{"cpu":"20"}', weight('{"memory":3}').annotations[PREFIX .. "shared-weight"])
    assert.equal('{"cpu": 7}', weight('{"cpu": 7}').annotations[PREFIX .. "shared-weight"])
    refused("cannot be parsed", weight "{")
    refused("cannot be parsed", weight '{"cpu":"much"}')
  end)
end)

describe("amounts without a limit, as in koord-scheduler's own quotas,", function()
  local MOST = tostring(math.maxinteger // 5) -- of cores: the thousandths do not fit 64 bits

  it("are the weight by default, and are accepted as one", function()
    local o = object(quota.DEFAULT, nil, MOST)
    o.spec.max.memory = MOST
    local text = ('{"cpu":"%s","memory":"%s"}'):format(MOST, MOST)
    assert.is_true(topology.fill(o, function() end))
    assert.equal(text, o.metadata.annotations[PREFIX .. "shared-weight"])
    assert.is_true(topology.create(world(), o))
    o.metadata.annotations[PREFIX .. "shared-weight"] = '{"cpu":"' .. MOST .. '"}'
    assert.is_true(topology.fill(o, function() end))
    assert.equal(text, o.metadata.annotations[PREFIX .. "shared-weight"])
    assert.same(quota.read(o).max, quota.read(o).weight)
    refused("shared-weight is below 0 in cpu", topology.create(world(),
      object("b", nil, MOST, nil, { ["shared-weight"] = '{"cpu":"-' .. MOST .. '"}' })))
  end)

  it("are more than any minimum above them, however many there are", function()
    local children = {}
    for n = 1, 5 do
      refused("the children of org would have a total min of",
        topology.create(world(nil, table.unpack(children)), object("b", MOST, MOST, below "org")))
      refused("the minima of its children are", topology.update(
        world(nil, object("top", "1", MOST, PARENT), object("c", MOST, MOST, below "top"),
          table.unpack(children)), object("top", "1", MOST, PARENT)))
      children[n] = object("c" .. n, MOST, MOST, below "top")
    end
    refused("spec.min of cpu is", topology.create(world(), object("b", MOST, "20")))
  end)
end)

describe("a pod", function()
  it("belongs to no parent quota, and keeps its label preemptible", function()
    local pod = { metadata = { name = "p", labels = {} } }
    assert.is_true(topology.pod(nil, pod))
    assert.is_true(topology.pod({ name = "a" }, pod))
    assert.is_true(topology.pod({ name = quota.DEFAULT, is_parent = true }, pod))
    refused("pod p cannot belong to quota org", topology.pod({ name = "org", is_parent = true }, pod))
    refused("must not change", topology.pod(nil, pod,
      { metadata = { labels = { [PREFIX .. "preemptible"] = "false" } } }))
  end)

  it("of a tree with its own nodes must land there, in each of its terms", function()
    local selector = { matchLabels = { b = "2", a = "1" },
      matchExpressions = { { key = "c", operator = "Exists" } } }
    local added = { { key = "a", operator = "In", values = { "1" } },
      { key = "b", operator = "In", values = { "2" } },
      { key = "c", operator = "Exists" } }
    local pod = { spec = {} }
    affinity.add(pod, selector)
    local function terms()
      return pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    end
    assert.same({ { matchExpressions = added } }, terms())
    affinity.add(pod, { matchLabels = { d = "4" } })
    assert.equal(4, #terms()[1].matchExpressions)
    pod = { spec = { affinity = { podAffinity = { x = 1 },
      nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = { {}, { matchFields = { "f" } } } } } } } }
    affinity.add(pod, selector)
    assert.same({ { matchExpressions = added }, { matchFields = { "f" }, matchExpressions = added } },
      terms())
    assert.same({ x = 1 }, pod.spec.affinity.podAffinity)
  end)
end)

describe("the root quota of a profile", function()
  local function profile(spec, annotations)
    return { metadata = { name = "p", namespace = "ns", annotations = annotations }, spec = spec }
  end
  local function node(cpu, labels)
    return { metadata = { labels = labels }, status = { allocatable = { cpu = cpu } } }
  end

  it("names its tree by a hash of the profile's name, unsigned", function()
    assert.equal("2862972692226656278", root.tree_id("", "profile1"))
    assert.equal("12638123428881205758", root.tree_id("", "")) -- FNV-1a of "/", beyond int64
  end)

  it("selects nothing without a selector, and reports a malformed one", function()
    assert.same({}, root.selected(profile {}, { node("1") }))
    assert.equal(1, #root.selected(profile { nodeSelector = {} }, { node("1") }))
    assert.is_nil(root.problem(profile { nodeSelector = {} }))
    assert.matches("spec.nodeSelector: ", root.problem(profile { nodeSelector = { matchExpressions = { {
      key = "a", operator = "Near" } } } }), 1, true)
  end)

  it("counts the resources of the annotation, or cpu and memory if it is invalid", function()
    local all = { nodeSelector = {} }
    local two = root.desired(profile(all, { [PREFIX .. "resource-keys"] = '["cpu","pods"]' }), { node("2") })
    assert.same({ cpu = 2000, pods = 0 }, two.min)
    assert.equal(4611686018427387, two.max.pods)
    assert.same({ cpu = 2000, memory = 0 }, root.desired(profile(all, { [PREFIX .. "resource-keys"] = "{" }),
      { node("2") }).min)
  end)

  it("takes a ratio above 0 and at most 1, and truncates", function()
    local function total(ratio)
      return root.desired(profile { nodeSelector = {}, resourceRatio = ratio }, { node("1001m") }).total.cpu
    end
    assert.equal(500, total "0.5")
    for _, ratio in ipairs { "1.5", "0", "-1", "much" } do assert.equal(1001, total(ratio), ratio) end
  end)

  it("is left alone if it is equal, in any notation", function()
    local desired = root.desired(profile { nodeSelector = {}, quotaLabels = { team = "x" } }, { node("2") })
    local o = { metadata = { labels = { mine = "y" }, annotations = {} }, spec = {} }
    assert.is_false(root.holds(o, desired))
    root.write(o, desired)
    assert.is_true(root.holds(o, desired))
    assert.equal("y", o.metadata.labels.mine)
    o.spec.min.cpu = "2000m"
    assert.is_true(root.holds(o, desired))
    assert.is_true(root.holds(kube.decode(kube.encode(o)), desired))
    o.spec.min.cpu = "2001m"
    assert.is_false(root.holds(o, desired))
  end)
end)
