-- koordinator_migration_spec.lua - LowNodeLoad, PodMigrationJobs and Reservations together in one `kubelua
-- run` on both API servers, with the real CRDs: a pod leaves an overloaded node, across a reload and a
-- restart. The spec plays the scheduler and the ReplicaSet. The processes need no more rights than `kubelua
-- rbac` prints, and become quiet.
-- not in tsan: policies are Lua; the threads under them are the scheduler's, too

local controller = require "support.controller"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local POD, SET = "v1/Pod", "apps/v1/ReplicaSet"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local RESERVATION = "scheduling.koordinator.sh/v1alpha1/Reservation"
local SCRIPTS = { "lownodeload", "podmigrationjob", "reservations" }
local PATIENCE = 60

-- LowNodeLoad has an interval of a second and acts at once: the clock of a process is real.
local function copy()
  local _, dir = policies.changed("lownodeload.lua", { ["local INTERVAL = 60"] = "local INTERVAL = 1",
    ["consecutiveAbnormalities = 5"] = "consecutiveAbnormalities = 1" })
  return dir
end

servers.each(function(name, start)
  describe("migration on " .. name, function()
    local server, client, dir, run, set

    local function add_pod(pod, on, owned, annotations)
      client:create { apiVersion = "v1", kind = "Pod",
        metadata = { namespace = "default", name = pod, labels = { app = "web" }, annotations = annotations,
          ownerReferences = owned and { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "web",
            uid = set.metadata.uid, controller = true } } or nil },
        spec = { nodeName = on, schedulerName = "koord-scheduler", terminationGracePeriodSeconds = 0,
          tolerations = { { operator = "Exists" } },
          containers = { { name = "c", image = "none", resources = { requests = { cpu = "1" } } } } } }
      client:patch_status(client:get(POD, "default", pod), { phase = "Running",
        conditions = { { type = "Ready", status = "True" } } })
    end

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      dir = copy()
      for _, node in ipairs { "busy", "idle" } do
        policies.add_node(client, node, { cpu = "10", memory = "10Gi", pods = "110" })
      end
      set = client:create { kind = SET, namespace = "default", name = "web", spec = { replicas = 3,
        selector = { matchLabels = { app = "web" } }, template = { metadata = { labels = { app = "web" } },
          spec = { containers = { { name = "c", image = "none" } } } } } }
      -- The other pods have no controller, so they stay.
      add_pod("a", "busy", true)
      add_pod("b", "busy", false)
      add_pod("c", "busy", false)
      add_pod("d", "idle", true)
      add_pod("e", "idle", true)
      policies.report(client, "busy", { "a", "b", "c" })
      policies.report(client, "idle", {})
      client:create { kind = "v1/Namespace", name = "koordinator-system" }
    end)
    lazy_teardown(function() if server then server:stop() end end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    local function kubeconfig()
      if not name:find "kube%-apiserver" then return server.kubeconfig end
      local role, code = process.run(("%s rbac --crds controllers/koordinator/crds %s 2>/dev/null")
        :format(KUBELUA, "controllers/koordinator/" .. table.concat(SCRIPTS, ".lua controllers/koordinator/")
          .. ".lua"))
      assert.equal(0, code, role)
      server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
      server:must_kubectl("create", "clusterrolebinding", "migration-nobody", "--clusterrole", "lownodeload",
        "--user", "nobody")
      return server:kubeconfig_for(server.tokens.nobody)
    end

    local function await(what, get)
      local value
      wait.until_true(PATIENCE, what, function()
        value = get()
        if not value then error(run:log(), 0) end
        return true
      end)
      return value
    end

    local function condition(job, type)
      for _, one in ipairs(job("status.conditions") or {}) do
        if one.type == type then return one.status .. (one.reason and " " .. one.reason or "") end
      end
    end

    it("moves a pod off an overloaded node, across a reload and a restart", function()
      local config, scripts = kubeconfig(), {}
      for i, script in ipairs(SCRIPTS) do scripts[i] = dir .. "/" .. script .. ".lua" end
      local function begin()
        run = controller.start({ kubeconfig = config }, scripts[1], scripts[2], scripts[3],
          "--metrics-bind-address", "127.0.0.1:0")
        run:wait_for_log(PATIENCE, "controller is running")
      end

      begin()
      local room = await("room for the pod", function() return client:list(RESERVATION)[1] end)
      local job = client:list(JOB)[1]
      assert.same({ "a", job.metadata.uid }, { job.spec.podRef.name, room.metadata.name })
      assert.matches("node cpu usage%(91.00%%%)",
        job('metadata.annotations["koordinator.sh/evict-reason"]'))
      policies.save(run, scripts[2])
      assert.is_truthy(client:get(POD, "default", "a"))

      client:patch_status(room, { phase = "Available", nodeName = "idle", allocatable = { cpu = "1" },
        conditions = {
          { type = "Scheduled", status = "True", reason = "Scheduled" },
          { type = "Ready", status = "True", reason = "Available" },
        } })
      await("the eviction", function()
        job = client:get(JOB, job.metadata.name)
        return condition(job, "PodBoundReservation") == "False WaitForPodBindReservation"
      end)
      assert.is_nil(client:get(POD, "default", "a"))
      assert.same({ "True EvictComplete", "idle" }, { condition(job, "Eviction"), job.status.nodeName })
      controller.finish(run)

      begin()
      add_pod("f", "idle", true, { ["scheduling.koordinator.sh/reservation-allocated"] =
        ('{"name":"%s","uid":"%s"}'):format(room.metadata.name, room.metadata.uid) })
      await("the end of the job", function()
        job = client:get(JOB, job.metadata.name)
        return job("status.phase") == "Succeeded"
      end)
      room = client:get(RESERVATION, room.metadata.name)
      assert.same({ "Succeeded", "f", "1" },
        { room.status.phase, room.status.currentOwners[1].name, room.status.allocated.cpu })

      local before = policies.runs(run, "lownodeload")
      wait.until_true(PATIENCE, "LowNodeLoad has looked twice more", function()
        return policies.runs(run, "lownodeload") >= before + 2
      end)
      assert.equal(1, #client:list(JOB))
      assert.same({ job.metadata.resourceVersion, room.metadata.resourceVersion },
        { client:get(JOB, job.metadata.name).metadata.resourceVersion,
          client:get(RESERVATION, room.metadata.name).metadata.resourceVersion })
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
      assert.is_nil(run:log():find("forbidden", 1, true), run:log())
    end)
  end)
end)
