-- scheduler_test.lua - the scheduler in virtual time: two nodes, one of which is used a lot.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

local function node(name)
  return { kind = NODE, name = name, status = { allocatable = { cpu = "4", memory = "8Gi", pods = "110" } } }
end

local function pod(name, cpu, more)
  local p = { kind = POD, namespace = "default", name = name, spec = { schedulerName = "koord-scheduler",
    containers = { { name = "c", image = "i", resources = { requests = { cpu = cpu } } } } } }
  for key, value in pairs(more or {}) do p.spec[key] = value end
  return p
end

describe("scheduler", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "scheduler.lua", crds = "crds", objects = { node "busy", node "idle" } }
  end)

  local function where(name) return t:get(POD, "default", name)("spec.nodeName") end

  local function scheduled(name)
    return kube.find_condition(t:get(POD, "default", name), "PodScheduled")
  end

  it("binds its own pods to the less used node, and no other pods", function()
    t:load { { kind = METRIC, name = "busy", spec = {}, status = { updateTime = tostring(t:now()),
      nodeMetric = { nodeUsage = { resources = { cpu = "2", memory = "1Gi" } } } } },
      { kind = METRIC, name = "idle", spec = {}, status = { updateTime = tostring(t:now()),
        nodeMetric = { nodeUsage = { resources = { cpu = "100m", memory = "1Gi" } } } } } }
    t:create(pod("a", "1"))
    t:create(pod("other", "1", { schedulerName = "default-scheduler" }))
    t:create(pod("gated", "1", { schedulingGates = { { name = "wait" } } }))
    t:advance "1s"
    assert.equal("idle", where "a")
    assert.is_nil(where "other")
    assert.is_nil(where "gated")
    assert.same({}, t:logs "error")
  end)

  it("reports on the pod why no node fits, and binds it when one does", function()
    t:create(pod("big", "5"))
    t:advance "1s"
    assert.is_nil(where "big")
    local condition = scheduled "big"
    assert.same({ "False", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu." },
      { condition.status, condition.reason, condition.message })
    local before = t:get(POD, "default", "big").metadata.resourceVersion
    t:advance "1m"
    assert.equal(before, t:get(POD, "default", "big").metadata.resourceVersion)
    t:patch_status(t:get(NODE, "busy"), { allocatable = { cpu = "8", memory = "8Gi", pods = "110" } })
    t:advance "1s"
    assert.equal("busy", where "big")
  end)

  it("binds a pod that waits as soon as another leaves a node, by its end or its deletion", function()
    for _, name in ipairs { "busy", "idle" } do t:create(pod("on-" .. name, "4", { nodeName = name })) end
    for i = 1, 3 do t:create(pod("w" .. i, "2")) end
    t:advance "2s"
    local function bound()
      local n = 0
      for i = 1, 3 do n = n + (where("w" .. i) and 1 or 0) end
      return n
    end
    assert.equal(0, bound())
    t:patch_status(t:get(POD, "default", "on-busy"), { phase = "Succeeded" })
    t:advance "1s"
    assert.equal(2, bound())
    t:delete(POD, "default/on-idle", { grace = 0 })
    t:advance "1s"
    assert.equal(3, bound())
    assert.same({}, t:logs "error")
  end)

  it("binds a pod that waits as soon as its quota grows", function()
    local quota = t:create { kind = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", namespace = "default",
      name = "team", spec = { min = { cpu = "1" }, max = { cpu = "1" } } }
    local p = pod("w", "2")
    p.labels = { ["quota.scheduling.koordinator.sh/name"] = "team" }
    t:create(p)
    t:advance "1s"
    assert.is_nil(where "w")
    t:patch(quota, { spec = { min = { cpu = "2" }, max = { cpu = "2" } } })
    t:advance "1s"
    assert.truthy(where "w")
  end)

  it("binds a pod that waits as soon as a report says that less of a node is used", function()
    local function report(name, cpu)
      return { kind = METRIC, name = name, spec = {}, status = { updateTime = tostring(t:now()),
        nodeMetric = { nodeUsage = { resources = { cpu = cpu, memory = "1Gi" } } } } }
    end
    t:load { report("busy", "3"), report("idle", "3") }
    t:create(pod("w", "1"))
    t:advance "1s"
    assert.equal("0/2 nodes are available: 2 node(s) cpu usage exceed threshold.", scheduled "w".message)
    t:load { report("busy", "3500m"), report("idle", "1") }
    t:advance "1s"
    assert.equal("idle", where "w")
    assert.same({}, t:logs "error")
  end)

  it("places a pod where its volumes can be, and tells a waiting claim the node", function()
    local function claim(name, class, more)
      local spec = { accessModes = { "ReadWriteOnce" }, storageClassName = class,
        resources = { requests = { storage = "1Gi" } } }
      return { apiVersion = "v1", kind = "PersistentVolumeClaim",
        metadata = { namespace = "default", name = name, annotations = more and more.annotations },
        spec = kube.merge(spec, more and more.spec or {}) }
    end
    local function with(name)
      return { volumes = { { name = "v", persistentVolumeClaim = { claimName = name } } } }
    end
    for _, mode in ipairs { "Immediate", "WaitForFirstConsumer" } do
      t:create { apiVersion = "storage.k8s.io/v1", kind = "StorageClass", metadata = { name = mode:lower() },
        provisioner = "example.com/disks", volumeBindingMode = mode }
    end
    t:create(claim("now", "immediate"))
    t:create(claim("later", "waitforfirstconsumer"))
    t:create(pod("a", "1", with "absent"))
    t:create(pod("b", "1", with "now"))
    t:create(pod("c", "1", with "later"))
    t:advance "1s"
    assert.equal('0/2 nodes are available: persistentvolumeclaim "absent" not found.', scheduled "a".message)
    assert.equal("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
      scheduled "b".message)
    local node_of_c = where "c"
    assert.equal(node_of_c, t:get("v1/PersistentVolumeClaim", "default", "later")("metadata.annotations",
      "volume.kubernetes.io/selected-node"))
    t:create { apiVersion = "v1", kind = "PersistentVolume", metadata = { name = "disk" },
      spec = { capacity = { storage = "1Gi" }, accessModes = { "ReadWriteOnce" }, hostPath = { path = "/d" },
        nodeAffinity = { required = { nodeSelectorTerms = { { matchFields = { { key = "metadata.name",
          operator = "In", values = { "busy" } } } } } } } } }
    t:create(claim("absent", "immediate", { spec = { volumeName = "disk" },
      annotations = { ["pv.kubernetes.io/bind-completed"] = "yes" } }))
    t:advance "1s"
    assert.equal("busy", where "a")
    assert.same({}, t:logs "error")
  end)

  it("gives a node no more volumes than its driver takes, and sees when one is detached", function()
    t:delete(NODE, "idle")
    t:create { apiVersion = "storage.k8s.io/v1", kind = "CSINode", metadata = { name = "busy" },
      spec = { drivers = { { name = "disks.example.com", nodeID = "busy", allocatable = { count = 2 } } } } }
    for _, name in ipairs { "one", "two", "three" } do
      t:create { apiVersion = "v1", kind = "PersistentVolume", metadata = { name = name },
        spec = { capacity = { storage = "1Gi" }, accessModes = { "ReadWriteOnce" },
          csi = { driver = "disks.example.com", volumeHandle = name } } }
      t:create { apiVersion = "v1", kind = "PersistentVolumeClaim",
        metadata = { namespace = "default", name = name,
          annotations = { ["pv.kubernetes.io/bind-completed"] = "yes" } },
        spec = { accessModes = { "ReadWriteOnce" }, volumeName = name,
          resources = { requests = { storage = "1Gi" } } } }
    end
    local attached = t:create { apiVersion = "storage.k8s.io/v1", kind = "VolumeAttachment",
      metadata = { name = "left" }, spec = { attacher = "disks.example.com", nodeName = "busy",
        source = { persistentVolumeName = "one" } } }
    local function with(name)
      return { volumes = { { name = "v", persistentVolumeClaim = { claimName = name } } } }
    end
    t:create(pod("a", "1", with "two"))
    t:advance "1s"
    assert.equal("busy", where "a")
    t:create(pod("b", "1", with "three"))
    t:advance "1s"
    assert.equal("0/1 nodes are available: 1 node(s) exceed max volume count.", scheduled "b".message)
    t:delete(attached)
    t:advance "1s"
    assert.equal("busy", where "b")
    assert.same({}, t:logs "error")
  end)

  it("never gives a node more than it has, also when many come at once", function()
    for i = 1, 12 do t:create(pod("p" .. i, "1")) end
    t:advance "5s"
    local on, left = {}, 0
    for i = 1, 12 do
      local name = where("p" .. i)
      if name then on[name] = (on[name] or 0) + 1 else left = left + 1 end
    end
    assert.same({ busy = 4, idle = 4 }, on)
    assert.equal(4, left)
  end)

  it("keeps a Reservation for its owners, and notes it on the pod", function()
    local room = t:create { kind = "scheduling.koordinator.sh/v1alpha1/Reservation", name = "room",
      spec = { allocateOnce = false, owners = { { labelSelector = { matchLabels = { app = "web" } } } },
        template = { spec = { containers = { { name = "c", image = "i" } } } } } }
    t:patch_status(room, { phase = "Available", nodeName = "idle", allocatable = { cpu = "3" } })
    t:create(pod("stranger", "2"))
    t:advance "1s"
    assert.equal("busy", where "stranger")
    t:create(pod("another", "3"))
    t:advance "1s"
    assert.is_nil(where "another")
    for i = 1, 2 do
      local p = pod("web" .. i, tostring(3 - i))
      p.labels = { app = "web" }
      t:create(p)
      t:advance "1s"
    end
    assert.same({ "idle", "idle" }, { where "web1", where "web2" })
    local said = t:get(POD, "default", "web1").metadata.annotations
    assert.equal(('{"name":"room","uid":"%s"}'):format(room.metadata.uid),
      said["scheduling.koordinator.sh/reservation-allocated"])
    assert.same({}, t:logs "error")
  end)

  it("places a Reservation on a node, or reports why no node fits", function()
    local function room(name, cpu)
      t:create { kind = "scheduling.koordinator.sh/v1alpha1/Reservation", name = name,
        spec = { owners = { { labelSelector = { matchLabels = { app = name } } } },
          template = { spec = { schedulerName = "koord-scheduler", containers = { { name = "c", image = "i",
            resources = { requests = { cpu = cpu } } } } } } } }
    end
    local function status(name)
      return t:get("scheduling.koordinator.sh/v1alpha1/Reservation", name).status
    end
    room("small", "3")
    room("large", "5")
    t:advance "1s"
    assert.same({ "Available", "busy", "3" },
      { status "small".phase, status "small".nodeName, status "small".allocatable.cpu })
    assert.same({ "Pending", "0/2 nodes are available: 2 Insufficient cpu." },
      { status "large".phase, status "large".conditions[1].message })
    t:create(pod("stranger", "2"))
    t:advance "1s"
    assert.equal("idle", where "stranger")
    t:patch_status(t:get(NODE, "idle"), { allocatable = { cpu = "8", memory = "8Gi", pods = "110" } })
    t:advance "1s"
    assert.equal("idle", status "large".nodeName)
    assert.same({}, t:logs "error")
  end)

  it("keeps the nodes of a NonStrict gang for its waiting time, and no longer", function()
    t:create { kind = "scheduling.sigs.k8s.io/v1alpha1/PodGroup", namespace = "default", name = "g",
      annotations = { ["gang.scheduling.koordinator.sh/mode"] = "NonStrict" },
      spec = { minMember = 3, scheduleTimeoutSeconds = 60 } }
    for i = 1, 3 do
      local p = pod("g" .. i, "3")
      p.labels = { ["pod-group.scheduling.sigs.k8s.io"] = "g" }
      t:create(p)
    end
    t:advance "5s"
    t:create(pod("other", "2"))
    t:advance "5s"
    assert.is_nil(where "other")
    -- The third never comes: after a minute the others give back what they had.
    t:delete(POD, "default/g3")
    t:advance "2m"
    assert.truthy(where "other")
    for i = 1, 2 do assert.is_nil(where("g" .. i)) end
    assert.same({}, t:logs "error")
  end)

  it("gives parts of GPUs, and says on the pod which", function()
    local all = { cpu = "4", memory = "8Gi", pods = "110", ["koordinator.sh/gpu-core"] = "200",
      ["koordinator.sh/gpu-memory-ratio"] = "200" }
    t:patch_status(t:get(NODE, "idle"), { allocatable = all })
    local function gpu(minor)
      return { type = "gpu", minor = minor, health = true, resources = { ["koordinator.sh/gpu-core"] = "100",
        ["koordinator.sh/gpu-memory-ratio"] = "100", ["koordinator.sh/gpu-memory"] = "16Gi" } }
    end
    t:create { kind = "scheduling.koordinator.sh/v1alpha1/Device", name = "idle",
      spec = { devices = { gpu(0), gpu(1) } } }
    for i = 1, 4 do
      local p = pod("g" .. i, "100m")
      local part = { ["koordinator.sh/gpu-core"] = "60", ["koordinator.sh/gpu-memory-ratio"] = "60" }
      p.spec.containers[1].resources = { requests = part, limits = part }
      t:create(p)
    end
    t:advance "5s"
    local minors, waiting = {}, {}
    for i = 1, 4 do
      local annotations = t:get(POD, "default", "g" .. i).metadata.annotations
      local text = annotations and annotations["scheduling.koordinator.sh/device-allocated"]
      local list = text and kube.decode(text).gpu
      if list then
        minors[#minors + 1] = list[1].minor
      else
        waiting[#waiting + 1] = scheduled("g" .. i).message
      end
    end
    table.sort(minors)
    assert.same({ 0, 1 }, minors)
    -- 80 hundredths are free, in two pieces.
    assert.equal(2, #waiting)
    assert.matches("1 Insufficient gpu devices", waiting[1])
    assert.same({}, t:logs "error")
  end)

  it("gives LSR pods whole cores of their own in one NUMA node, says which, and none twice", function()
    local TOPOLOGY = "topology.node.k8s.io/v1alpha1/NodeResourceTopology"
    local detail = {}
    for id = 0, 7 do
      detail[#detail + 1] = { id = id, core = id // 2, node = id // 4, socket = id // 4 }
    end
    local function zone(i)
      local amount = { cpu = "4", memory = "4Gi" }
      local resources = {}
      for name, n in pairs(amount) do
        resources[#resources + 1] = { name = name, capacity = n, allocatable = n, available = n }
      end
      return { name = "node-" .. i, type = "Node", resources = resources }
    end
    for _, name in ipairs { "busy", "idle" } do
      t:patch_status(t:get(NODE, name), { allocatable = { cpu = "10", memory = "8Gi", pods = "110" } })
      t:patch(t:get(NODE, name), { metadata = { labels = {
        ["node.koordinator.sh/numa-topology-policy"] = "SingleNUMANode" } } })
    end
    t:create { kind = TOPOLOGY, name = "idle", topologyPolicies = { "None" },
      annotations = { ["node.koordinator.sh/cpu-topology"] = kube.encode { detail = detail } },
      zones = { zone(0), zone(1) } }
    local function bound(name, n)
      local p = pod(name, n)
      p.labels = { ["koordinator.sh/qosClass"] = "LSR" }
      p.annotations = {
        ["scheduling.koordinator.sh/resource-spec"] = '{"requiredCPUBindPolicy":"FullPCPUs"}' }
      t:create(p)
    end
    local function status(name)
      return t:get(POD, "default", name).metadata.annotations["scheduling.koordinator.sh/resource-status"]
    end
    bound("a", "2")
    t:advance "1s"
    assert.equal("idle", where "a")
    assert.equal('{"cpuset":"0-1","numaNodeResources":[{"node":0,"resources":{"cpu":"2"}}]}', status "a")
    bound("b", "4")
    t:advance "1s"
    assert.equal('{"cpuset":"4-7","numaNodeResources":[{"node":1,"resources":{"cpu":"4"}}]}', status "b")
    bound("c", "4")
    bound("d", "3")
    t:advance "1s"
    assert.matches("1 Unsatisfied NUMA cpu", scheduled "c".message or "")
    assert.matches("1 node%(s%) requested cpus not multiple cpus per core", scheduled "d".message or "")
    t:delete(POD, "default/b", { grace = 0 })
    t:advance "1s"
    assert.equal('{"cpuset":"4-7","numaNodeResources":[{"node":1,"resources":{"cpu":"4"}}]}', status "c")
    assert.same({}, t:logs "error")
  end)

  it("preempts pods of lower priority, and keeps their room for the preemptor", function()
    for name, value in pairs { low = 100, high = 1000 } do
      t:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = name, value = value }
    end
    local function of(name, cpu, class, on)
      t:create(pod(name, cpu,
        { priorityClassName = class, nodeName = on, terminationGracePeriodSeconds = 0 }))
    end
    of("old", "2", "low", "busy")
    of("young", "2", "low", "busy")
    of("all", "4", "high", "idle")
    t:advance "1s"
    -- A finalizer keeps the victim there: it is going, and its room is promised.
    t:patch(t:get(POD, "default", "young"), { metadata = { finalizers = { "example.com/slow" } } })
    of("urgent", "1", "high")
    t:advance "2s"
    assert.is_nil(where "urgent")
    assert.equal("busy", t:get(POD, "default", "urgent")("status.nominatedNodeName"))
    assert.truthy(t:get(POD, "default", "old"))
    local victim = t:get(POD, "default", "young")
    assert.truthy(victim.metadata.deletionTimestamp)
    assert.equal("PreemptionByScheduler", kube.find_condition(victim, "DisruptionTarget").reason)
    t:create(pod("thief", "1"))
    t:advance "30s"
    assert.same({}, { where "urgent", where "thief" })
    assert.truthy(t:get(POD, "default", "old"))
    t:patch(victim, { metadata = { finalizers = kube.null } })
    t:advance "1s"
    assert.same({ "busy", "busy" }, { where "urgent", where "thief" })
    assert.same({}, t:logs "error")
  end)

  it("preempts nobody if the pod forbids it or it would not help", function()
    t:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = "high", value = 1000 }
    t:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = "polite", value = 1000,
      preemptionPolicy = "Never" }
    for _, name in ipairs { "busy", "idle" } do t:create(pod("on-" .. name, "4", { nodeName = name })) end
    t:create(pod("polite", "1", { priorityClassName = "polite" }))
    t:create(pod("large", "5", { priorityClassName = "high" }))
    t:create(pod("equal", "1"))
    t:advance "30s"
    for _, name in ipairs { "on-busy", "on-idle" } do assert.truthy(t:get(POD, "default", name)) end
    for _, name in ipairs { "polite", "large", "equal" } do
      assert.is_nil(where(name))
      assert.is_nil(t:get(POD, "default", name)("status.nominatedNodeName"))
    end
  end)

  it("binds a gang as a whole or not at all", function()
    t:create { kind = "scheduling.sigs.k8s.io/v1alpha1/PodGroup", namespace = "default", name = "g",
      spec = { minMember = 3 } }
    local function member(name)
      local p = pod(name, "3")
      p.labels = { ["pod-group.scheduling.sigs.k8s.io"] = "g" }
      t:create(p)
    end
    member "g1"
    member "g2"
    t:advance "1s"
    assert.matches("child pod not collect enough", scheduled("g1").message or "")
    member "g3"
    t:advance "30s"
    for i = 1, 3 do assert.is_nil(where("g" .. i)) end
    assert.matches('Gang "default/g" gets rejected: 2 of 3 pods have a node', scheduled("g1").message or "")
    t:patch_status(t:get(NODE, "busy"), { allocatable = { cpu = "8", memory = "8Gi", pods = "110" } })
    t:advance "30s"
    for i = 1, 3 do assert.truthy(where("g" .. i)) end
    assert.same({}, t:logs "error")
  end)

  it("preempts pods of lower priority for a whole gang, if configured", function()
    local function begin(params)
      t = kube.testing.start { script = "scheduler.lua", crds = "crds", params = params,
        objects = { node "busy", node "idle" } }
      t:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = "high", value = 1000 }
      t:create { kind = "scheduling.sigs.k8s.io/v1alpha1/PodGroup", namespace = "default", name = "g",
        spec = { minMember = 2 } }
      for _, name in ipairs { "busy", "idle" } do
        local low = pod("on-" .. name, "2", { nodeName = name, terminationGracePeriodSeconds = 0 })
        low.finalizers = { "example.com/slow" }
        t:create(low)
      end
      for i = 1, 2 do
        local p = pod("g" .. i, "4", { priorityClassName = "high" })
        p.labels = { ["pod-group.scheduling.sigs.k8s.io"] = "g" }
        t:create(p)
      end
      t:create(pod("thief", "1"))
    end
    local function going(name) return t:get(POD, "default", name)("metadata.deletionTimestamp") ~= nil end
    begin()
    t:advance "15s"
    assert.same({ false, false }, { going "on-busy", going "on-idle" })
    begin { gangPreemption = true }
    t:advance "15s"
    assert.same({ true, true }, { going "on-busy", going "on-idle" })
    for i = 1, 2 do
      assert.is_nil(where("g" .. i))
      assert.truthy(t:get(POD, "default", "g" .. i)("status.nominatedNodeName"))
    end
    assert.is_nil(where "thief")
    for _, name in ipairs { "busy", "idle" } do
      t:patch(t:get(POD, "default", "on-" .. name), { metadata = { finalizers = kube.null } })
    end
    t:advance "15s"
    assert.not_equal(assert(where "g1"), assert(where "g2"))
    assert.is_nil(where "thief")
    assert.same({}, t:logs "error")
  end)
end)
