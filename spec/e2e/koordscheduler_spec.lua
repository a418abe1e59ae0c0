-- koordscheduler_spec.lua - koord-scheduler v1.8.0 itself on a real API server: comparescheduler and
-- comparequota beside it agree about the node of each pod and the figures of each quota.
-- not in check, asan, tsan: the policies are Lua, and the other program is Go's

local controller = require "support.controller"
local kube = require "kubelua"
local originals = require "support.originals"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local POD, MAP = "v1/Pod", "v1/ConfigMap"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local LABEL = "quota.scheduling.koordinator.sh/"
local NS, PATIENCE = policies.NAMESPACE, policies.PATIENCE
local NODES, PODS, RUSH = 6, 16, 40

local function configuration(kubeconfig)
  local function enabled(...)
    local list = {}
    for i, name in ipairs { ... } do list[i] = { name = name } end
    return { enabled = list }
  end
  local function only(...) return kube.merge(enabled(...), { disabled = { { name = "*" } } }) end
  local score = enabled("LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Reservation")
  for _, one in ipairs(score.enabled) do one.weight = one.name == "Reservation" and 5000 or 1 end
  return kube.encode {
    apiVersion = "kubescheduler.config.k8s.io/v1", kind = "KubeSchedulerConfiguration",
    clientConnection = { kubeconfig = kubeconfig }, leaderElection = { leaderElect = false },
    percentageOfNodesToScore = 100,
    profiles = { { schedulerName = "koord-scheduler",
      pluginConfig = { { name = "ElasticQuota", args = { apiVersion = "kubescheduler.config.k8s.io/v1",
        kind = "ElasticQuotaArgs", quotaGroupNamespace = NS } } },
      plugins = {
        preEnqueue = enabled "Coscheduling",
        queueSort = only "PrioritySort",
        preFilter = enabled("Reservation", "NodeNUMAResource", "DeviceShare", "Coscheduling", "ElasticQuota"),
        filter = enabled("LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Reservation"),
        postFilter = only("Reservation", "Coscheduling", "ElasticQuota", "DefaultPreemption"),
        preScore = enabled("Reservation", "Coscheduling"),
        score = score,
        reserve = enabled("LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Coscheduling",
          "ElasticQuota"),
        permit = enabled "Coscheduling",
        preBind = enabled("NodeNUMAResource", "DeviceShare", "Reservation", "Coscheduling", "DefaultPreBind"),
        bind = only("Reservation", "DefaultBinder"),
        postBind = enabled "Coscheduling",
      } } },
  }
end

local PROGRAM = originals.program("koordscheduler", "koord-scheduler")
if not PROGRAM then return end

-- Nodes of two sizes, used to different degrees; the last one is overused.
local function add_nodes(client)
  for i = 1, NODES do
    local name, cpu = "n" .. i, i % 2 == 0 and 32 or 16
    policies.add_node(client, name, { cpu = tostring(cpu), memory = cpu * 2 .. "Gi", pods = "110" },
      { labels = { pool = i > 3 and "b" or "a" }, ready = "True" })
    local used = i == NODES and cpu - 2 or i
    client:create { kind = METRIC, name = name, spec = { metricCollectPolicy = {
      aggregateDurationSeconds = 300, reportIntervalSeconds = 60 } } }
    client:patch_status(client:get(METRIC, name), { updateTime = os.date "!%Y-%m-%dT%H:%M:%SZ",
      podsMetric = kube.array {}, nodeMetric = { nodeUsage = { resources = { cpu = tostring(used),
        memory = used .. "Gi" } } } })
  end
end

local function add_quotas(client)
  local function quota(name, parent, min, max, is_parent)
    client:create { kind = QUOTA, namespace = NS, name = name, labels = { [LABEL .. "parent"] = parent,
      [LABEL .. "is-parent"] = tostring(is_parent) },
      spec = { min = { cpu = min, memory = min .. "Gi" }, max = { cpu = max, memory = max .. "Gi" } } }
  end
  quota("company", "koordinator-root-quota", "40", "80", true)
  quota("small", "company", "4", "6", false)
  quota("large", "company", "20", "60", false)
end

-- Pods of three quotas, some of which only fit a pool, or nowhere.
local function add_pod(client, i)
  local quota = ({ "small", "large", false })[i % 3 + 1]
  local cpu = i == PODS and "64" or tostring(1 + i % 4)
  client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "p" .. i,
    labels = { app = "app" .. i % 5, [LABEL .. "name"] = quota or nil } },
    spec = { schedulerName = "koord-scheduler", nodeSelector = i % 4 == 0 and { pool = "b" } or nil,
      containers = { { name = "c", image = "none",
        resources = { requests = { cpu = cpu, memory = (i % 3 + 1) .. "Gi" } } } } } }
end

-- Pods of no quota, some of which request more cpu, and others more memory.
local function add_plain_pod(client, i)
  client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "rush" .. i },
    spec = { schedulerName = "koord-scheduler", containers = { { name = "c", image = "none",
      resources = { requests = { cpu = ("%dm"):format(100 + 200 * (i % 4)), memory = (i * 7 % 5) .. "Gi" } }
    } } } }
end

servers.only_real(function(name, start)
  describe("koord-scheduler on " .. name, function()
    local server, client, original, runs

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      runs = {}
      client:create { kind = "v1/Namespace", name = NS }
      add_nodes(client)
      add_quotas(client)
      local config = process.write(process.tmpname ".yaml", configuration(server.kubeconfig))
      original = process.spawn { PROGRAM, "--config", config, "--secure-port", "0", "-v", "4",
        name = "koord-scheduler" }
    end)
    lazy_teardown(function()
      if original then original:stop(30) end
      for _, run in pairs(runs) do controller.finish(run) end
      if server then server:stop() end
    end)

    local function said(script)
      local map = client:get(MAP, NS, "koordinator-" .. script)
      return map and map("data", "report.txt") or ""
    end

    local function begin(script, changes, ...)
      local file = script:gsub("%-", "") .. ".lua"
      runs[script] = policies.start(server, (policies.changed(file, changes)), ...)
      wait.until_true(PATIENCE, script .. " has looked", function()
        if said(script) ~= "" then return true end
        error(runs[script]:log(), 0)
      end)
    end

    -- Until the comparison has looked for longer than its patience.
    local function look_on(script)
      local before = policies.runs(runs[script], script)
      wait.until_true(PATIENCE, script .. " has looked again", function()
        return policies.runs(runs[script], script) >= before + 6
      end)
    end

    it("and the comparisons agree about the node of each pod, and about quotas", function()
      begin("compare-scheduler", { ['every = "10s"'] = 'every = "1s"',
        ["patienceSeconds = 60,"] = "patienceSeconds = 3," })
      begin("compare-quota", { ['every = "60s"'] = 'every = "1s"',
        ["patienceSeconds = 60,"] = "patienceSeconds = 3," }, "--param", "upstream=v1.8.0")
      local function decided(pod_name)
        wait.until_true(PATIENCE, "a decision about pod " .. pod_name, function()
          local pod = client:get(POD, "default", pod_name)
          if pod("spec.nodeName") or kube.find_condition(pod, "PodScheduled") then return true end
          error(original:log(), 0)
        end)
      end
      for i = 1, PODS do
        add_pod(client, i)
        decided("p" .. i)
        -- A pod that waits for its quota may be tried again meanwhile.
        local second = os.time()
        wait.until_true(PATIENCE, "another second", function() return os.time() > second end)
      end
      for i = 1, RUSH do
        add_plain_pod(client, i)
        decided("rush" .. i)
      end
      look_on "compare-scheduler"
      look_on "compare-quota"
      assert.equal(("decisions compared: %d, disagreements: 0\n"):format(PODS + RUSH),
        said "compare-scheduler")
      assert.equal("quotas compared: 6, disagreements: 0\n", said "compare-quota")
      local used = {}
      for _, pod in ipairs(client:list(POD)) do used[pod "spec.nodeName" or "none"] = true end
      assert.is_true(used.none) -- the quota "small" is full, and no node has 64 processors
      assert.is_nil(used.n6)    -- it is overused
      assert.is_true(used.n1 or used.n3)
    end)

    it("is contradicted where somebody else decides", function()
      original:stop(30)
      client:patch(client:get(QUOTA, NS, "large"),
        { metadata = { annotations = { [LABEL .. "runtime"] = '{"cpu":"1"}' } } })
      client:create { apiVersion = "v1", kind = "Pod",
        metadata = { namespace = "default", name = "misplaced" },
        spec = { schedulerName = "koord-scheduler", nodeName = "n6", containers = { { name = "c",
          image = "none", resources = { requests = { cpu = "1", memory = "1Gi" } } } } } }
      client:patch_status(client:get(POD, "default", "misplaced"), { conditions = { { type = "PodScheduled",
        status = "True", lastTransitionTime = os.date "!%Y-%m-%dT%H:%M:%SZ" } } })
      look_on "compare-scheduler"
      look_on "compare-quota"
      assert.matches(("^decisions compared: %d, disagreements: 1\n"):format(PODS + RUSH + 1),
        said "compare-scheduler")
      assert.matches("refused here: 1\n  default/misplaced: there n6", said "compare-scheduler")
      assert.matches("runtime of cpu, less there: 1\n  large: there 1, here %d+;", said "compare-quota")
    end)
  end)
end)
