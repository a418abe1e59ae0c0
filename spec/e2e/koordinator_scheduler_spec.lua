-- koordinator_scheduler_spec.lua - the scheduler in `kubelua run` on both API servers, with the real CRDs.
-- It binds pods within resources, quota and Reservations, with parts of GPUs, a GPU and the RDMA card
-- beside it, and exclusive processors, also reserved ones. A Reservation can take the resources of a
-- running pod. A pod of higher priority preempts others. A pod that fits nowhere gets the reason, and is
-- bound later, across a reload and a restart. The process needs no more rights than `kubelua rbac` prints.

local controller = require "support.controller"
local kube = require "kubelua"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local RESERVATION = "scheduling.koordinator.sh/v1alpha1/Reservation"
local DEVICE = "scheduling.koordinator.sh/v1alpha1/Device"
local CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
local DOMAIN = "scheduling.koordinator.sh/"
local SCRIPT = "controllers/koordinator/scheduler.lua"
local PATIENCE = 60

servers.each(function(name, start)
  describe("scheduler on " .. name, function()
    local server, client, run

    local function add_pod(pod, cpu, labels, annotations)
      client:create { apiVersion = "v1", kind = "Pod",
        metadata = { namespace = "default", name = pod, labels = labels, annotations = annotations },
        spec = { schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
          containers = { { name = "c", image = "none", resources = { requests = { cpu = cpu } } } } } }
    end

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      for i, node in ipairs { "n1", "n2" } do
        policies.add_node(client, node, { cpu = "4", memory = "8Gi", pods = "110" },
          { labels = { ["kubernetes.io/hostname"] = node } })
        client:patch_status(client:create { kind = METRIC, name = node, spec = {} },
          { updateTime = os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() + 3600),
            nodeMetric = { nodeUsage = { resources = { cpu = i == 1 and "1" or "0", memory = "1Gi" } } } })
      end
      client:patch_status(client:get(NODE, "n2"), { allocatable = { [CORE] = "100", [RATIO] = "100" } })
      local gpu = { type = "gpu", minor = 0, health = true,
        resources = { [CORE] = "100", [RATIO] = "100", ["koordinator.sh/gpu-memory"] = "16Gi" } }
      client:create { kind = DEVICE, name = "n2", spec = { devices = { gpu } } }
      client:create { kind = QUOTA, namespace = "default", name = "small",
        spec = { min = { cpu = "1" }, max = { cpu = "1" } } }
    end)
    lazy_teardown(function() if server then server:stop() end end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    local function kubeconfig()
      if not name:find "kube%-apiserver" then return server.kubeconfig end
      local role, code = process.run(("%s rbac --crds controllers/koordinator/crds %s 2>/dev/null")
        :format(KUBELUA, SCRIPT))
      assert.equal(0, code, role)
      server:must_kubectl("create", "namespace", "koordinator-system")
      server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
      server:must_kubectl("create", "rolebinding", "scheduler-nobody", "-n", "koordinator-system", "--role",
        "scheduler", "--user", "nobody")
      server:must_kubectl("create", "clusterrolebinding", "scheduler-nobody", "--clusterrole", "scheduler",
        "--user", "nobody")
      return server:kubeconfig_for(server.tokens.nobody)
    end

    local function await(what, holds)
      wait.until_true(PATIENCE, what, function()
        if not holds() then error(run:log(), 0) end
        return true
      end)
    end

    local function where(pod) return client:get(POD, "default", pod)("spec.nodeName") end

    local function why(pod)
      local condition = kube.find_condition(client:get(POD, "default", pod), "PodScheduled")
      return condition and condition.status == "False" and condition.message
    end

    it("binds pods to nodes with room, and reports why there is none, across a reload and a \z
      restart", function()
      local config, path = kubeconfig(), policies.copy() .. "/scheduler.lua"
      local function begin()
        run = controller.start({ kubeconfig = config }, path)
        run:wait_for_log(PATIENCE, "controller is running")
      end

      begin()
      add_pod("first", "1")
      await("the first pod on the node that is used less", function() return where "first" == "n2" end)
      add_pod("big", "5")
      await("a reason on the pod that fits nowhere", function()
        return why "big" == "0/2 nodes are available: 2 Insufficient cpu."
      end)
      await("an Event about the pod that fits nowhere", function()
        return server:must_kubectl("get", "events", "-n", "default"):find "FailedScheduling"
      end)

      policies.save(run, path)
      local of_small = { ["quota.scheduling.koordinator.sh/name"] = "small" }
      add_pod("within", "1", of_small)
      await("a pod within its quota on a node", function() return where "within" ~= nil end)
      local room = client:create { kind = RESERVATION, name = "room", spec = { allocateOnce = false,
        owners = { { labelSelector = { matchLabels = { app = "web" } } } },
        template = { spec = { schedulerName = "koord-scheduler",
          nodeSelector = { ["kubernetes.io/hostname"] = "n2" },
          containers = { { name = "c", image = "none", resources = { requests = { cpu = "1" } } } } } } } }
      await("the Reservation on its node", function()
        local status = client:get(RESERVATION, "room").status
        return status and status.phase == "Available" and status.nodeName == "n2"
      end)
      -- Without the annotation, the pod might be decided before the cache has the Reservation.
      add_pod("web", "1", { app = "web" }, { [DOMAIN .. "reservation-affinity"] = '{"name":"room"}' })
      await("a pod in the room that is kept for it", function() return where "web" == "n2" end)
      assert.equal(('{"name":"room","uid":"%s"}'):format(room.metadata.uid),
        client:get(POD, "default", "web").metadata.annotations[DOMAIN .. "reservation-allocated"])

      local part = { [CORE] = "50", [RATIO] = "50" }
      client:create { kind = POD, namespace = "default", name = "gpu", spec = {
        schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
          containers = { { name = "c", image = "none",
          resources = { requests = part, limits = part } } } } }
      await("a pod on the node that has GPUs", function() return where "gpu" == "n2" end)
      assert.equal('{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50",'
        .. '"koordinator.sh/gpu-memory":"8Gi","koordinator.sh/gpu-memory-ratio":"50"}}]}',
        client:get(POD, "default", "gpu").metadata.annotations[DOMAIN .. "device-allocated"])

      local TOPOLOGY = "topology.node.k8s.io/v1alpha1/NodeResourceTopology"
      local function zone(i)
        return { name = "node-" .. i, type = "Node",
          resources = { { name = "cpu", capacity = "2", allocatable = "2", available = "2" } } }
      end
      local amounts = { cpu = "4", memory = "8Gi", pods = "110" }
      client:patch_status(client:create { kind = NODE, name = "n3",
        labels = { ["kubernetes.io/hostname"] = "n3" } }, { allocatable = amounts, capacity = amounts })
      client:patch(client:get(NODE, "n3"), function(n) n.spec.taints = nil end)
      client:create { kind = TOPOLOGY, name = "n3", topologyPolicies = { "SingleNUMANodePodLevel" },
        zones = { zone(0), zone(1) },
          annotations = { ["node.koordinator.sh/cpu-topology"] = kube.encode { detail = {
          { id = 0, core = 0, node = 0, socket = 0 }, { id = 1, core = 0, node = 0, socket = 0 },
          { id = 2, core = 1, node = 1, socket = 0 }, { id = 3, core = 1, node = 1, socket = 0 } } } } }
      client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "own",
          labels = { ["koordinator.sh/qosClass"] = "LSR" },
          annotations = { [DOMAIN .. "resource-spec"] = '{"preferredCPUBindPolicy":"SpreadByPCPUs"}' } },
        spec = { schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
          nodeSelector = { ["kubernetes.io/hostname"] = "n3" }, containers = { { name = "c", image = "none",
            resources = { requests = { cpu = "1" } } } } } }
      await("a pod with a processor of its own", function()
        return where "own" == "n3" or error(why "own" or "it is not decided", 0)
      end)
      assert.equal('{"cpuset":"0","numaNodeResources":[{"node":0,"resources":{"cpu":"1"}}]}',
        client:get(POD, "default", "own").metadata.annotations[DOMAIN .. "resource-status"])

      -- A GPU and the card beside it, and cpu of the same NUMA node: the card beside the other GPU is broken.
      local RDMA = "koordinator.sh/rdma"
      local more = { cpu = "4", memory = "8Gi", pods = "110", [CORE] = "200", [RATIO] = "200",
        [RDMA] = "200" }
      client:patch_status(client:create { kind = NODE, name = "n5",
        labels = { ["kubernetes.io/hostname"] = "n5" } }, { allocatable = more, capacity = more })
      client:patch(client:get(NODE, "n5"), function(n) n.spec.taints = nil end)
      client:create { kind = TOPOLOGY, name = "n5", topologyPolicies = { "SingleNUMANodePodLevel" },
        zones = { zone(0), zone(1) } }
      local devices = {}
      for i = 0, 1 do
        local place = { socketID = 0, nodeID = i, pcieID = "pci" .. i }
        devices[#devices + 1] = { type = "gpu", minor = i, health = true, topology = place, id = "GPU-" .. i,
          resources = { [CORE] = "100", [RATIO] = "100", ["koordinator.sh/gpu-memory"] = "16Gi" } }
        devices[#devices + 1] = { type = "rdma", minor = i, health = i == 1, topology = place,
          resources = { [RDMA] = "100" } }
      end
      client:create { kind = DEVICE, name = "n5", spec = { devices = devices } }
      local near = { cpu = "1", [CORE] = "100", [RATIO] = "100", [RDMA] = "1" }
      client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "near",
          annotations = { [DOMAIN .. "device-joint-allocate"] = '{"deviceTypes":["gpu","rdma"]}' } },
        spec = { schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
          nodeSelector = { ["kubernetes.io/hostname"] = "n5" }, containers = { { name = "c", image = "none",
            resources = { requests = near, limits = near } } } } }
      await("a pod with a GPU and the card beside it", function()
        return where "near" == "n5" or error(why "near" or "it is not decided", 0)
      end)
      local of_near = client:get(POD, "default", "near").metadata.annotations
      assert.equal('{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"100",'
        .. '"koordinator.sh/gpu-memory":"16Gi","koordinator.sh/gpu-memory-ratio":"100"},"id":"GPU-1"}],'
        .. '"rdma":[{"minor":1,"resources":{"koordinator.sh/rdma":"1"}}]}',
        of_near[DOMAIN .. "device-allocated"])
      assert.matches('"numaNodeResources":%[{"node":1,', of_near[DOMAIN .. "resource-status"])

      local one = { schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
        nodeSelector = { ["kubernetes.io/hostname"] = "n3" }, containers = { { name = "c", image = "none",
          resources = { requests = { cpu = "1" } } } } }
      client:create { kind = RESERVATION, name = "cores", spec = { allocateOnce = false,
        owners = { { labelSelector = { matchLabels = { app = "kept" } } } },
        template = { metadata = { labels = { ["koordinator.sh/qosClass"] = "LSR" } }, spec = one } } }
      local cores
      await("the Reservation of processors on its node", function()
        cores = client:get(RESERVATION, "cores")
        return cores("status.phase") == "Available" and cores.status.nodeName == "n3"
      end)
      local kept = cores.metadata.annotations[DOMAIN .. "resource-status"]
      assert.matches('"cpuset":"%d"', kept)
      client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "kept",
        labels = { ["koordinator.sh/qosClass"] = "LSR", app = "kept" },
        annotations = { [DOMAIN .. "reservation-affinity"] = '{"name":"cores"}' } }, spec = one }
      await("a pod with the processor that was kept for it", function()
        return where "kept" == "n3" or error(why "kept" or "it is not decided", 0)
      end)
      assert.equal(kept, client:get(POD, "default", "kept").metadata.annotations[DOMAIN .. "resource-status"])
      client:delete(POD, "default", "kept")
      client:delete(RESERVATION, "cores")

      client:patch_status(client:create { kind = NODE, name = "n4",
        labels = { ["kubernetes.io/hostname"] = "n4" } }, { allocatable = amounts, capacity = amounts })
      client:patch(client:get(NODE, "n4"), function(n) n.spec.taints = nil end)
      local function of_n4(cpu)
        return { schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
          nodeSelector = { ["kubernetes.io/hostname"] = "n4" }, containers = { { name = "c", image = "none",
            resources = { requests = { cpu = cpu } } } } }
      end
      client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "early",
        labels = { app = "grows" } }, spec = of_n4 "3" }
      await("a pod that a Reservation will be for", function() return where "early" == "n4" end)
      local grown = client:create { kind = RESERVATION, name = "grown", spec = { allocateOnce = false,
        preAllocation = true, allocatePolicy = "Restricted", template = { spec = of_n4 "4" },
        owners = { { labelSelector = { matchLabels = { app = "grows" } } } } } }
      await("the Reservation on the node that its pod has", function()
        return client:get(RESERVATION, "grown")("status.phase") == "Available"
      end)
      assert.equal(('{"name":"grown","uid":"%s"}'):format(grown.metadata.uid),
        client:get(POD, "default", "early").metadata.annotations[DOMAIN .. "reservation-allocated"])

      for i, class in ipairs { "low", "high" } do
        client:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = class, value = i * 100 }
        client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = class },
          spec = { schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
            priorityClassName = class,
            nodeSelector = { ["kubernetes.io/hostname"] = "n3" }, containers = { { name = "c", image = "none",
              resources = { requests = { cpu = "2" } } } } } }
        await("a pod of priority " .. class, function()
          return where(class) == "n3" or error(why(class) or "it is not decided", 0)
        end)
      end
      -- Among the running pods, the one without a priority is the least important.
      assert.is_nil(client:get(POD, "default", "own"))
      assert.equal("n3", where "low")

      add_pod("beyond", "1", of_small)
      await("the quota's reason", function()
        return (why "beyond" or ""):find("Insufficient quotas, quotaName: small", 1, true)
      end)
      controller.finish(run)

      begin()
      client:patch_status(client:get(NODE, "n1"),
        { allocatable = { cpu = "16", memory = "8Gi", pods = "110" } })
      await("the big pod on the node that grew", function() return where "big" == "n1" end)
      assert.is_nil(where "beyond")
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
      assert.is_nil(run:log():find("forbidden", 1, true), run:log())
    end)
  end)
end)
