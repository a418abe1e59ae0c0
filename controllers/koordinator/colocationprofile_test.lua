-- colocationprofile_test.lua - profiles, pods and nodes at an API server that asks the webhooks.

local kube = require "kubelua"

local PROFILE = "config.koordinator.sh/v1alpha1/ClusterColocationProfile"
local POD, NODE = "v1/Pod", "v1/Node"
local QOS = "koordinator.sh/qosClass"
local RATIOS, RAW = "node.koordinator.sh/resource-amplification-ratio", "node.koordinator.sh/raw-allocatable"

local function profile(name, spec)
  spec.selector = spec.selector or { matchLabels = { colocated = "yes" } }
  return { kind = PROFILE, name = name, spec = spec }
end

local function pod(name, labels, requests, more)
  local o = { kind = POD, namespace = "default", name = name, labels = labels, spec = { containers = {
    { name = "c", image = "i", resources = { requests = requests } } } } }
  for k, v in pairs(more or {}) do o.spec[k] = v end
  return o
end

describe("colocationprofile", function()
  local t ---@type kubelua.Testing

  local function start(...)
    t = kube.testing.start { script = "colocationprofile.lua", crds = "crds", namespace = "default",
      objects = {
        { kind = "scheduling.k8s.io/v1/PriorityClass", name = "koord-batch", value = 5500 },
        ...,
      } }
  end

  local function refused(o)
    local ok, e = pcall(t.create, t, o)
    assert.is_false(ok)
    return e.message
  end

  local BATCH = { qosClass = "BE", priorityClassName = "koord-batch", schedulerName = "koord-scheduler" }

  it("makes a batch pod of a new pod", function()
    start(profile("batch", BATCH))
    local made = t:create(pod("a", { colocated = "yes" }, { cpu = "1500m", memory = "1Gi" }))
    local requests = made.spec.containers[1].resources.requests
    assert.equal("1500", requests["kubernetes.io/batch-cpu"])
    assert.equal("1Gi", requests["kubernetes.io/batch-memory"])
    assert.is_nil(requests.cpu)
    assert.equal("BE", made.metadata.labels[QOS])
    assert.equal(5500, made.spec.priority)
    assert.equal("koord-scheduler", made.spec.schedulerName)
    local spec = kube.decode(made.metadata.annotations["node.koordinator.sh/extended-resource-spec"])
    assert.equal("1500", spec.containers.c.requests["kubernetes.io/batch-cpu"])
    assert.same({}, t:logs "error")
  end)

  it("leaves pods alone if no profile selects them", function()
    start(profile("batch", BATCH))
    local made = t:create(pod("a", { colocated = "no" }, { cpu = "1" }))
    assert.equal("1", made.spec.containers[1].resources.requests.cpu)
    assert.is_nil(made("metadata.labels", QOS))
  end)

  it("applies a patch by the keys of lists", function()
    start(profile("patched", { patch = { spec = { containers = { { name = "c", env = {
      { name = "A", value = "1" } } } } } } }))
    local made = t:create(pod("a", { colocated = "yes" }))
    assert.equal("i", made.spec.containers[1].image)
    assert.equal("1", made.spec.containers[1].env[1].value)
  end)

  it("refuses a pod whose profile names a priority class that does not exist", function()
    start(profile("lost", { priorityClassName = "nobody" }))
    local message = refused(pod("a", { colocated = "yes" }))
    assert.matches("profile lost: PriorityClass nobody does not exist", message)
  end)

  it("rejects invalid pods and changes of immutable fields", function()
    start(profile("none", { selector = { matchLabels = { never = "x" } } }))
    assert.matches("Required value: must specify koordinator QoS BE",
      refused(pod("a", nil, { ["kubernetes.io/batch-cpu"] = "1k" })))
    assert.matches("koordinator.sh/qosClass=BE and priorityClass= cannot be used in combination",
      refused(pod("a", { [QOS] = "BE" })))
    t:create(pod("a", { [QOS] = "LS" }))
    local ok, e = pcall(t.patch, t, t:get(POD, "default", "a"), { metadata = { labels = { [QOS] = "LSR" } } })
    assert.is_false(ok)
    assert.matches("labels.koordinator.sh/qosClass: Invalid value: \"LSR\": field is immutable", e.message)
  end)

  it("amplifies the kubelet's figures, and restores them", function()
    start { kind = NODE, name = "n", annotations = { [RATIOS] = '{"cpu":1.50,"memory":1.00}' } }
    t:patch_status(t:get(NODE, "n"), { allocatable = { cpu = "10", memory = "8Gi" } })
    local node = t:get(NODE, "n")
    assert.equal(kube.qty "15", kube.qty(node.status.allocatable.cpu))
    assert.equal("8Gi", node.status.allocatable.memory)
    assert.same({ cpu = "10", memory = "8Gi" }, kube.copy(kube.decode(node.metadata.annotations[RAW])))
    t:patch(node, { metadata = { annotations = { [RATIOS] = kube.null } } })
    assert.is_nil(t:get(NODE, "n")("metadata.annotations", RAW))
  end)

  it("rejects an invalid configuration, and labels that two of its entries select", function()
    start({ kind = "v1/Namespace", name = "koordinator-system" }, { kind = NODE, name = "n" })
    local function map(text)
      return { kind = "v1/ConfigMap", namespace = "koordinator-system", name = "slo-controller-config",
        data = { ["resource-threshold-config"] = text } }
    end
    assert.matches("resource%-threshold%-config: clusterStrategy: enable: expected boolean",
      refused(map '{"clusterStrategy": {"enable": 1}}'))
    assert.matches("cpuSuppressThresholdPercent must be from 0 to 100, got 120",
      refused(map '{"clusterStrategy": {"cpuSuppressThresholdPercent": 120}}'))
    local entry = '{"name": "%s", "nodeSelector": {"matchLabels": {"%s": "1"}}}'
    local two = ('{"nodeStrategies": [%s, %s]}'):format(entry:format("a", "x"), entry:format("b", "y"))
    t:create(map(two))
    local ok, e = pcall(t.patch, t, t:get(NODE, "n"), { metadata = { labels = { x = "1", y = "1" } } })
    assert.is_false(ok)
    assert.matches('entries "a" and "b" select the same nodes', e.message)
    t:patch(t:get(NODE, "n"), { metadata = { labels = { x = "1" } } })
  end)

  it("reports what a profile would change on running pods, and changes nothing", function()
    start()
    t:create(pod("old", { colocated = "yes" }, { cpu = "1" }, { nodeName = "n" }))
    t:patch_status(t:get(POD, "default", "old"), { phase = "Running" })
    local before = t:get(POD, "default", "old").metadata.resourceVersion
    t:create(profile("batch", BATCH))
    t:settle()
    local note = t:events "batch"[1].note
    assert.matches("1 of 1 running pods differ from pods created under this profile; default/old in", note)
    assert.equal(before, t:get(POD, "default", "old").metadata.resourceVersion)
  end)
end)
