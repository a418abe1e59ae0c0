-- koordmanager_spec.lua - koord-manager v1.8.0 itself on a real API server: the comparisons beside it find no
-- disagreement, find one that the spec makes, and our policies in its place write nothing.
-- not in check, asan, tsan: the policies are Lua, and the other program is Go's

local controller = require "support.controller"
local kube = require "kubelua"
local originals = require "support.originals"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local NODE, POD, MAP = "v1/Node", "v1/Pod", "v1/ConfigMap"
local METRIC, SLO = "slo.koordinator.sh/v1alpha1/NodeMetric", "slo.koordinator.sh/v1alpha1/NodeSLO"
local PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local TOTAL = "quota.scheduling.koordinator.sh/total-resource"
local BATCH, MID = "kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu"
local NS, PATIENCE = policies.NAMESPACE, policies.PATIENCE
local CONTROLLERS = { "noderesource", "nodemetric", "nodeslo", "quotaprofile" }
local REPORTS = { compare = "koordinator-compare", compareagents = "koordinator-compare-agents" }
local NODES = { "n1", "n2", "n3", "n4" }

-- Each key has settings for the pool "b", too; n4 has own ones in its annotations.
local POOL_B = '{ "name": "b", "nodeSelector": { "matchLabels": { "pool": "b" } }, %s }'
local CONFIG = {
  ["colocation-config"] = [[{ "enable": true, "metricReportIntervalSeconds": 45,
    "cpuReclaimThresholdPercent": 70, "midCPUThresholdPercent": 20, "midMemoryThresholdPercent": 20,
    "nodeConfigs": [ ]] .. POOL_B:format [["memoryCalculatePolicy": "request",
      "cpuReclaimThresholdPercent": 80, "metricAggregateDurationSeconds": 120]] .. " ] }",
  ["resource-threshold-config"] = [[{ "clusterStrategy": { "enable": true,
    "cpuSuppressThresholdPercent": 60 }, "nodeStrategies": [ ]]
    .. POOL_B:format [["memoryEvictThresholdPercent": 82]] .. " ] }",
  ["resource-qos-config"] = [[{ "clusterStrategy": { "beClass": { "cpuQOS": { "enable": true,
    "groupIdentity": -1 } } }, "nodeStrategies": [ ]]
    .. POOL_B:format [["lsClass": { "memoryQOS": { "enable": true, "lowLimitPercent": 5 } }]] .. " ] }",
  ["cpu-burst-config"] = [[{ "clusterStrategy": { "policy": "auto", "cpuBurstPercent": 500 },
    "nodeStrategies": [ ]] .. POOL_B:format [["policy": "cpuBurstOnly"]] .. " ] }",
  ["system-config"] = [[{ "clusterStrategy": { "minFreeKbytesFactor": 90,
    "totalNetworkBandwidth": "10G" }, "nodeStrategies": [ ]]
    .. POOL_B:format [["watermarkScaleFactor": 120]] .. " ] }",
  ["host-application-config"] = [[{ "applications": [ { "name": "nginx", "priority": "koord-prod",
    "qos": "LS" } ] }]],
}

local function fill(client)
  client:create { kind = "v1/Namespace", name = NS }
  client:create { kind = MAP, namespace = NS, name = "slo-controller-config", data = CONFIG }
  for i, name in ipairs(NODES) do
    local own = { ["node.koordinator.sh/colocation-strategy"] = '{ "memoryReclaimThresholdPercent": 50 }',
      ["node.koordinator.sh/network-bandwidth"] = "25G",
      ["node.koordinator.sh/reservation"] = '{ "resources": { "cpu": "2" } }' }
    policies.add_node(client, name, { cpu = "32", memory = "64Gi", pods = "110" }, {
      labels = { pool = i > 2 and "b" or "a" }, annotations = i == 4 and own or nil, ready = "True" })
  end
  client:create { kind = PROFILE, namespace = NS, name = "pool", spec = { quotaName = "pool-root",
    resourceRatio = "0.9", nodeSelector = { matchLabels = { pool = "a" } } } }
  for i, name in ipairs(NODES) do
    for class, labels in pairs {
      web = { ["koordinator.sh/qosClass"] = "LS", ["koordinator.sh/priority-class"] = "koord-prod" },
      own = { ["koordinator.sh/qosClass"] = "LSR", ["koordinator.sh/priority-class"] = "koord-prod" },
      batch = { ["koordinator.sh/qosClass"] = "BE", ["koordinator.sh/priority-class"] = "koord-batch" },
    } do
      local pod = ("%s-%d"):format(class, i)
      local asked = class ~= "batch" and { cpu = tostring(2 + i), memory = "4Gi" } or nil
      client:create { apiVersion = "v1", kind = "Pod",
        metadata = { namespace = "default", name = pod, labels = labels },
        spec = { nodeName = name, tolerations = { { operator = "Exists" } }, containers = { { name = "c",
          image = "none", resources = { requests = asked, limits = asked } } } } }
      client:patch_status(client:get(POD, "default", pod), { phase = "Running" })
    end
  end
end

-- What agents report into the NodeMetrics, which koord-manager creates.
local function report(client)
  for i, name in ipairs(NODES) do
    local pods = {}
    for k, class in ipairs { "web", "own", "batch" } do
      pods[k] = { namespace = "default", name = ("%s-%d"):format(class, i), priority = class == "batch"
        and "koord-batch" or "koord-prod",
        podUsage = { resources = { cpu = ("%dm"):format(700 * k + 100 * i), memory = "1Gi" } } }
    end
    client:patch_status(client:get(METRIC, name), { updateTime = os.date "!%Y-%m-%dT%H:%M:%SZ",
      podsMetric = pods,
      nodeMetric = { nodeUsage = { resources = { cpu = "8", memory = "9Gi" } },
        systemUsage = { resources = { cpu = "1200m", memory = "3Gi" } } },
      prodReclaimableMetric = { resource = { resources = { cpu = ("%d"):format(i), memory = "2Gi" } } } })
  end
end

-- Each object that koord-manager writes.
local function written(client)
  local out = {}
  for _, kind in ipairs { NODE, METRIC, SLO, PROFILE, QUOTA } do
    for _, object in ipairs(client:list(kind)) do
      local copy = kube.copy(object)
      copy.metadata.managedFields = nil
      out[kind .. " " .. object.metadata.name] = copy
    end
  end
  return out
end

local PROGRAM = originals.program("koordmanager", "koord-manager")
if not PROGRAM then return end

servers.only_real(function(name, start)
  describe("koord-manager on " .. name, function()
    local server, client, original, runs

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      runs = {}
      fill(client)
      original = process.spawn { "env", "KUBECONFIG=" .. server.kubeconfig, PROGRAM,
        "--controllers=" .. table.concat(CONTROLLERS, ","), "--feature-gates=WebhookFramework=false",
        "--enable-leader-election=false", "--enable-pprof=false", "--metrics-addr=127.0.0.1:0",
        "--health-probe-addr=127.0.0.1:0", "-v=4", name = "koord-manager" }
    end)
    lazy_teardown(function()
      if original then original:stop(30) end
      if server then server:stop() end
    end)
    after_each(function()
      for _, run in ipairs(runs) do controller.finish(run) end
      runs = {}
    end)

    local function await(what, fn)
      wait.until_true(PATIENCE, what, function()
        if fn() then return true end
        error(original:log(), 0)
      end)
    end

    local function said(script)
      local map = client:get(MAP, NS, REPORTS[script])
      return map and map("data", "report.txt") or ""
    end

    local function compare()
      for script in pairs(REPORTS) do
        client:delete(MAP, NS, REPORTS[script])
        local path = policies.changed(script .. ".lua", { ['every = "60s"'] = 'every = "1s"',
          ["patienceSeconds = 300"] = "patienceSeconds = 3" })
        runs[#runs + 1] = policies.start(server, path)
        runs[script] = runs[#runs]
      end
    end

    -- Waits until each comparison has looked for longer than its patience.
    local function look_on()
      for script, of in pairs { compare = "compare-noderesource", compareagents = "compare-agents" } do
        wait.until_true(PATIENCE, script .. " has looked", function()
          return said(script) ~= "" and policies.runs(runs[script], of) >= 6
        end)
      end
    end

    it("and the comparisons agree about nodes, NodeSLOs and NodeMetrics", function()
      await("NodeMetrics", function() return #client:list(METRIC) == #NODES end)
      report(client)
      await("what koord-manager writes", function()
        for _, node in ipairs(NODES) do
          local object, slo = client:get(NODE, node), client:get(SLO, node)
          local lends = object("status.allocatable", BATCH) and object("status.allocatable", MID)
          if not lends or not slo or not slo "spec.systemStrategy" then return false end
        end
        return true
      end)
      -- It looks at quotas every ten seconds.
      await("the quota of these nodes", function()
        local quota, sum = client:get(QUOTA, NS, "pool-root"), 0
        local text = quota and quota("metadata.annotations", TOTAL)
        for i = 1, 2 do sum = sum + tonumber(client:get(NODE, NODES[i])("status.allocatable", BATCH)) end
        return text and kube.decode(text)[BATCH] == tostring(math.floor(sum * 0.9))
      end)
      compare()
      look_on()
      for script in pairs(REPORTS) do
        assert.equal("nodes compared: 4, disagreements: 0\n", said(script), original:log())
      end
    end)

    it("has written what our policies write in its place", function()
      original:stop(30)
      local before = written(client)
      local paths = {}
      for i, of in ipairs(CONTROLLERS) do paths[i] = ("controllers/koordinator/%s.lua"):format(of) end
      local run = controller.start(server, paths[1], paths[2], paths[3], paths[4],
        "--param", "nodeslo.upstream=v1.8.0", "--metrics-bind-address", "127.0.0.1:0")
      runs[1] = run
      wait.until_true(PATIENCE, "each policy has looked at each object", function()
        for _, of in ipairs(CONTROLLERS) do
          if policies.runs(run, of) < (of == "quotaprofile" and 1 or #NODES) then return false end
        end
        return true
      end)
      assert.same(before, written(client))
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
    end)

    it("is contradicted where somebody changes what it wrote", function()
      client:patch(client:get(SLO, "n3"), { spec = { cpuBurstStrategy = { policy = "none" } } })
      client:patch_status(client:get(NODE, "n2"), { allocatable = { [BATCH] = "1" } })
      compare()
      look_on()
      assert.matches("^nodes compared: 4, disagreements: 1\n", said "compare")
      assert.matches("n2: there 1, here %d+", said "compare")
      assert.matches("^nodes compared: 4, disagreements: 1\n", said "compareagents")
    end)
  end)
end)
