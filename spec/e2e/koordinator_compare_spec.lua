-- koordinator_compare_spec.lua - the comparisons with koord-manager and koord-scheduler in `kubelua run` on
-- both API servers. They report different writes of the originals to nodes, agents' objects and quotas; their
-- cases run in the fixture runner; they write only reports; and they need no more rights than `kubelua rbac`
-- prints.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local controller = require "support.controller"
local fixtures = require "support.fixtures"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NODE, POD, CONFIG_MAP = "v1/Node", "v1/Pod", "v1/ConfigMap"
local METRIC, SLO = "slo.koordinator.sh/v1alpha1/NodeMetric", "slo.koordinator.sh/v1alpha1/NodeSLO"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
local SYSTEM, NAME = "koordinator-system", "compared"
local PATIENCE = 60

-- A copy that reports a disagreement at once.
local function copy()
  return (policies.changed("compare.lua", { ["patienceSeconds = 300"] = "patienceSeconds = 0" }))
end

servers.each(function(name, start)
  describe("the comparison on " .. name, function()
    local server, client, run
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    lazy_setup(function()
      server = start { crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      client:create { kind = "v1/Namespace", name = SYSTEM }
      client:create { kind = CONFIG_MAP, namespace = SYSTEM, name = "slo-controller-config",
        data = { ["colocation-config"] = '{"enable":true}' } }
      client:create { kind = NODE, name = NAME }
      local has = { cpu = "10", memory = "10Gi", pods = "110", [CPU] = "1234", [MEMORY] = "1Gi" }
      client:patch_status(client:get(NODE, NAME), { capacity = has, allocatable = has })
      client:create { kind = METRIC, name = NAME, spec = {} }
      client:patch_status(client:get(METRIC, NAME), { updateTime = os.date "!%Y-%m-%dT%H:%M:%SZ",
        nodeMetric = { nodeUsage = { resources = { cpu = "1", memory = "1Gi" } },
          systemUsage = { resources = { cpu = "1", memory = "1Gi" } } } })
    end)
    lazy_teardown(function()
      client:delete(METRIC, NAME)
      client:delete(SLO, NAME)
      client:delete(NODE, NAME)
      server:stop()
    end)

    local function kubeconfig(script, role_name)
      if not name:find "kube%-apiserver" then return server.kubeconfig end
      local role, code = process.run(("%s rbac --crds controllers/koordinator/crds \z
        controllers/koordinator/%s 2>/dev/null"):format(KUBELUA, script))
      assert.equal(0, code, role)
      server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
      server:must_kubectl("create", "clusterrolebinding", role_name .. "-nobody", "--clusterrole",
        role_name, "--user", "nobody")
      if role:find "\nkind: Role\n" then
        server:must_kubectl("create", "rolebinding", role_name .. "-nobody", "-n", SYSTEM, "--role",
          role_name, "--user", "nobody")
      end
      return server:kubeconfig_for(server.tokens.nobody)
    end

    -- The data of a report.
    local function report(run_, name_)
      local data
      wait.until_true(PATIENCE, "a report", function()
        local map = client:get(CONFIG_MAP, SYSTEM, name_)
        data = map and map.data
        if not data then error(run_:log(), 0) end
        return true
      end)
      return data
    end

    -- The output of the fixture runner for the cases of one calculation.
    local function run_cases(data, calc)
      local dir, said = process.tmpname ".cases", {}
      process.run("mkdir -p " .. process.quote(dir))
      process.write(dir .. "/" .. calc .. ".json", data[calc .. ".json"])
      assert.is_false(fixtures.run_directory(dir, function(text) said[#said + 1] = text end))
      return table.concat(said, "\n")
    end

    it("reports a node's values and the policy's, as an executable case", function()
      local before = client:get(NODE, NAME).metadata.resourceVersion
      run = controller.start({ kubeconfig = kubeconfig("compare.lua", "compare-noderesource") }, copy())
      local data = report(run, "koordinator-compare")
      -- 10 cores less 40 % and what the system uses.
      assert.matches(CPU:gsub("%-", "%%-") .. ", less there: 1\n  compared: there 1234, here 5000;",
        data["report.txt"])
      local text = run_cases(data, "batchresource")
      assert.equal("0 passed, 1 failed", text:match "[^\n]*$", text)
      assert.matches("FAIL batchresource.json: compared", text, 1, true)
      assert.equal(before, client:get(NODE, NAME).metadata.resourceVersion)
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
    end)

    it("reports fields in which a node's agent gets other values, and writes none", function()
      local there = client:create { kind = SLO, name = NAME,
        spec = { cpuBurstStrategy = { policy = "auto" } } }
      run = controller.start({ kubeconfig = kubeconfig("compareagents.lua", "compare-agents") },
        "controllers/koordinator/compareagents.lua", "--param", "patienceSeconds=0")
      local text = report(run, "koordinator-compare-agents")["report.txt"]
      assert.matches("NodeSLO cpuBurstStrategy.policy, another value: 1\n  compared: there auto, here none",
        text, 1,
        true)
      assert.matches("NodeMetric metricCollectPolicy, only here: 1", text, 1, true)
      assert.equal(there.metadata.resourceVersion, client:get(SLO, NAME).metadata.resourceVersion)
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
    end)

    it("reports a quota's values and the policy's, as an executable case", function()
      local labels = { ["quota.scheduling.koordinator.sh/parent"] = "koordinator-root-quota" }
      local there = client:create { kind = QUOTA, namespace = SYSTEM, name = NAME, labels = labels,
        annotations = { ["quota.scheduling.koordinator.sh/runtime"] = '{"cpu":"7"}' },
        spec = { min = { cpu = "2" }, max = { cpu = "4" } } }
      run = controller.start({ kubeconfig = kubeconfig("comparequota.lua", "compare-quota") },
        "controllers/koordinator/comparequota.lua", "--param", "patienceSeconds=0")
      local data = report(run, "koordinator-compare-quota")
      assert.matches("runtime of cpu, more there: 1\n  compared: there 7, here 0;", data["report.txt"], 1,
        true)
      local text = run_cases(data, "elastic_quota")
      assert.matches("FAIL elastic_quota.json: the cluster's tree", text, 1, true)
      assert.equal("0 passed, 1 failed", text:match "[^\n]*$", text)
      assert.equal(there.metadata.resourceVersion, client:get(QUOTA, SYSTEM, NAME).metadata.resourceVersion)
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
      client:delete(QUOTA, SYSTEM, NAME)
    end)

    it("reports a pod bound to a node that the policy rejects, as an executable case", function()
      local script = policies.changed("comparescheduler.lua", { ['every = "10s"'] = 'every = "1s"' })
      run = controller.start({ kubeconfig = kubeconfig("comparescheduler.lua", "compare-scheduler") }, script)
      assert.matches("disagreements: 0", report(run, "koordinator-compare-scheduler")["report.txt"], 1, true)
      local pod = client:create { kind = POD, namespace = SYSTEM, name = NAME,
        spec = { schedulerName = "koord-scheduler", tolerations = { { operator = "Exists" } },
          containers = { { name = "c", image = "i",
          resources = { requests = { cpu = "20" } } } } } }
      client:bind(pod, NAME)
      local data
      wait.until_true(PATIENCE, "the pod in the report", function()
        data = report(run, "koordinator-compare-scheduler")
        return data["report.txt"]:find("disagreements: 1", 1, true)
      end)
      assert.matches("NodeResourcesFit, refused here: 1\n  koordinator-system/compared: there compared, \z
        here none; Insufficient cpu", data["report.txt"], 1, true)
      local text = run_cases(data, "placement")
      assert.matches("expected compared, got no node: NodeResourcesFit, refused here: Insufficient cpu", text,
        1, true)
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
      client:delete(POD, SYSTEM, NAME)
    end)
  end)
end)
