-- koordinator_descheduling_spec.lua - FragmentationAware, ScaleDownBinPack and CustomPriority in one `kubelua
-- run` on both API servers, with the real CRDs: each decides once, writes the result, becomes quiet, and
-- needs no more rights than `kubelua rbac` prints.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local controller = require "support.controller"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local POD = "v1/Pod"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local COST = "controller.kubernetes.io/pod-deletion-cost"
local SCRIPTS = { "custompriority", "fragmentationaware", "scaledownbinpack" }
local PATIENCE = 60

-- A copy of the policies with an interval of a second and the prices of nodes: the clock of a process is
-- real.
local function copy()
  local dir, order = policies.copy(), {}
  for i, price in ipairs { "high", "low" } do
    order[i] = ('{ name = "%s", nodeSelector = { matchLabels = { price = "%s" } } }'):format(price, price)
  end
  for _, name in ipairs(SCRIPTS) do
    policies.change(dir .. "/" .. name .. ".lua", { ["interval = 60"] = "interval = 1" })
  end
  policies.change(dir .. "/custompriority.lua",
    { ["evictionOrder = {}"] = "evictionOrder = { " .. table.concat(order, ", ") .. " }" })
  return dir
end

servers.each(function(name, start)
  describe("the other descheduler plugins on " .. name, function()
    local server, client, run

    local function add_node(node, price)
      policies.add_node(client, node, { cpu = "10", memory = "10Gi", pods = "110" },
        { labels = { price = price } })
    end

    local function add_pod(pod, on, cpu, memory)
      client:create { apiVersion = "v1", kind = "Pod",
        metadata = { namespace = "default", name = pod,
          ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
        spec = { nodeName = on, schedulerName = "koord-scheduler", tolerations = { { operator = "Exists" } },
          containers = { { name = "c", image = "none",
            resources = { requests = { cpu = cpu, memory = memory } } } } } }
    end

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      add_node("dear", "high")
      add_node("uneven", "low")
      add_pod("climber", "dear", "1", "1Gi")
      add_pod("cpu", "uneven", "6", "1Gi")
      add_pod("both", "uneven", "1", "1Gi")
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
      server:must_kubectl("create", "clusterrolebinding", "plugins-nobody", "--clusterrole", SCRIPTS[1],
        "--user", "nobody")
      return server:kubeconfig_for(server.tokens.nobody)
    end

    local function jobs()
      local out = {}
      for _, job in ipairs(client:list(JOB)) do
        out[job.spec.podRef.name] = job('metadata.annotations["koordinator.sh/evict-trigger"]')
      end
      return out
    end

    it("decide once, write, and settle", function()
      local dir, scripts = copy(), {}
      for i, script in ipairs(SCRIPTS) do scripts[i] = ("%s/%s.lua"):format(dir, script) end
      run = controller.start({ kubeconfig = kubeconfig() }, scripts[1], scripts[2], scripts[3],
        "--metrics-bind-address", "127.0.0.1:0")
      run:wait_for_log(PATIENCE, "serving metrics")
      wait.until_true(PATIENCE, "a job of each plugin, and a cost on each pod", function()
        local found, costs = jobs(), 0
        for _, pod in ipairs(client:list(POD)) do
          if pod("metadata.annotations", COST) then costs = costs + 1 end
        end
        if found.climber and found.cpu and costs == 3 then return true end
        error(run:log(), 0)
      end)
      assert.same({ climber = "CustomPriority", cpu = "FragmentationAware" }, jobs())

      local function look_twice()
        local before = {}
        for _, script in ipairs(SCRIPTS) do before[script] = policies.runs(run, script) end
        wait.until_true(PATIENCE, "each has looked twice more", function()
          for script, n in pairs(before) do
            if policies.runs(run, script) < n + 2 then return false end
          end
          return true
        end)
      end
      look_twice() -- pods with a job count as staying
      local versions = {}
      for _, pod in ipairs(client:list(POD)) do versions[pod.metadata.name] = pod.metadata.resourceVersion end
      look_twice()
      for _, pod in ipairs(client:list(POD)) do
        assert.equal(versions[pod.metadata.name], pod.metadata.resourceVersion)
      end
      assert.equal(2, #client:list(JOB))
      -- A real server says this of a definition that it has just read.
      local log = run:log():gsub("[^\n]*storage is %(re%)initializing[^\n]*\n", "")
      assert.is_nil(log:find("WARN", 1, true), log)
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
    end)
  end)
end)
