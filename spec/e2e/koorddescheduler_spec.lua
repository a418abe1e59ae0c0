-- koorddescheduler_spec.lua - koord-descheduler v1.8.0 itself on a real API server, and comparedescheduler
-- beside it: under the same settings LowNodeLoad there moves the pods that ours would. The cluster has a pod
-- for each rule of the migration controller's filter, and these would go first.
-- not in check, asan, tsan: the policy is Lua, and the other program is Go's

local controller = require "support.controller"
local kube = require "kubelua"
local originals = require "support.originals"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local POD, SET, MAP = "v1/Pod", "apps/v1/ReplicaSet", "v1/ConfigMap"
local SCHEDULING = "scheduling.koordinator.sh/v1alpha1/"
local JOB, RESERVATION = SCHEDULING .. "PodMigrationJob", SCHEDULING .. "Reservation"
local REPORT = "koordinator-compare-descheduler"
local PATIENCE = 60
local LOOKS = 7 -- of the comparison after the last job, each a second; more than its patience
local ROUNDS = sizes.of { short = 1, long = 9 }

local PROGRAM = originals.program("koorddescheduler", "koord-descheduler")
if not PROGRAM then return end

-- ---------------------------------------------------------------- the cluster

-- The pods of the node "busy", 90 % of whose cpu they use, in the order of their eviction. Each has a
-- workload of 4 replicas unless it says otherwise. Without two of them the node is fine.
local BUSY = {
  { name = "single", replicas = 1 },
  { name = "costly", annotations = { ["scheduling.koordinator.sh/eviction-cost"] = "2147483647" } },
  { name = "foreign", scheduler = "default-scheduler" },
  { name = "stored", volumes = { { name = "v", emptyDir = {} } } },
  { name = "half1", set = "half", ready = "False" },
  { name = "half2", set = "half", ready = "False" },
  { name = "half3", set = "half" },
  { name = "a" },
  { name = "b" },
  { name = "c" },
}
-- "held" is overused, too; the spec moves two of its pods.
local HELD = { { name = "p" }, { name = "q" }, { name = "r" }, { name = "s" } }
-- "dark" is overused and not ready.
local DARK = { { name = "x" }, { name = "y" } }

local function fill(client)
  local cost = 0
  local function add_node(name, ready)
    policies.add_node(client, name, { cpu = "20", memory = "40Gi", pods = "110" }, { ready = ready })
  end

  local function owner(name, replicas)
    local labels = { app = name }
    local set = client:get(SET, "default", name) or client:create { kind = SET, namespace = "default",
      name = name, spec = { replicas = replicas, selector = { matchLabels = labels }, template = {
        metadata = { labels = labels }, spec = { containers = { { name = "c", image = "none" } } } } } }
    return { { apiVersion = "apps/v1", kind = "ReplicaSet", name = name, uid = set.metadata.uid,
      controller = true } }
  end

  local function add_pod(pod, node)
    cost = cost + 1
    client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = pod.name,
      annotations = kube.merge({ ["controller.kubernetes.io/pod-deletion-cost"] = tostring(cost) },
        pod.annotations or {}),
      ownerReferences = owner(pod.set or pod.name, pod.replicas or 4) },
      spec = { nodeName = node, schedulerName = pod.scheduler or "koord-scheduler", volumes = pod.volumes,
        terminationGracePeriodSeconds = 0, tolerations = { { operator = "Exists" } },
        containers = { { name = "c", image = "none", resources = { requests = { cpu = "1" } } } } } }
    client:patch_status(client:get(POD, "default", pod.name), { phase = "Running",
      conditions = { { type = "Ready", status = pod.ready or "True" } } })
  end

  client:create { kind = "v1/Namespace", name = policies.NAMESPACE }
  for _, name in ipairs { "busy", "held", "idle", "spare" } do add_node(name, "True") end
  add_node("dark", "Unknown")
  for node, list in pairs { busy = BUSY, held = HELD, dark = DARK } do
    for _, pod in ipairs(list) do add_pod(pod, node) end
  end
end

-- Each pod of the list uses so much cpu.
local function report(client, node, cpu, list)
  local names = {}
  for i, pod in ipairs(list) do names[i] = pod.name end
  policies.report(client, node, names, { cpu = cpu, node = {
    nodeUsage = { resources = { cpu = "1", memory = "1Gi" } },
    systemUsage = { resources = { cpu = "100m", memory = "0" } } } })
end

local function report_all(client)
  report(client, "busy", "1800m", BUSY)
  report(client, "held", "4200m", HELD)
  report(client, "dark", "9", DARK)
  report(client, "idle", "1", {})
  report(client, "spare", "1", {})
end

-- ---------------------------------------------------------------- both programs

-- The pool of ours without params. There is one pass: a later one of koord-descheduler, or another pool, may
-- begin before its cache has the jobs just made.
local POOL = { name = "all", lowThresholds = { cpu = 45, memory = 55 },
  highThresholds = { cpu = 75, memory = 80 } }

local function configuration(kubeconfig, args)
  local function of(kind, values)
    return { name = kind, args = kube.merge({ apiVersion = "descheduler/v1alpha2", kind = kind .. "Args" },
      values) }
  end
  return kube.encode {
    apiVersion = "descheduler/v1alpha2", kind = "DeschedulerConfiguration",
    clientConnection = { kubeconfig = kubeconfig }, leaderElection = { leaderElect = false },
    healthzBindAddress = "127.0.0.1:0", metricsBindAddress = "127.0.0.1:0", deschedulingInterval = "1h",
    profiles = { { name = "koord-descheduler",
      plugins = { balance = { enabled = { { name = "LowNodeLoad" } } } },
      pluginConfig = { of("MigrationController", args),
        of("LowNodeLoad", { nodePools = { POOL },
          anomalyCondition = { consecutiveAbnormalities = 1 } }) } } },
  }
end

-- The params of ours for MigrationControllerArgs.
local function params_of(args)
  local words = {}
  for name, value in pairs(args) do
    words[#words + 1] = "--param"
    words[#words + 1] = ("%s=%s"):format(name == "defaultJobMode" and "jobMode" or name,
      type(value) == "table" and kube.encode(value) or tostring(value))
  end
  return words
end

-- Each: the args of koord-descheduler's migration controller and ours, the pods that it moves, and what the
-- report says besides, if ours has other args.
local CASES = {
  { args = {}, moved = "a b" },
  { args = { schedulerNames = { "default-scheduler" } }, moved = "foreign" },
  { args = { skipEvictionGates = { "ExpectedReplicas", "LocalStorage" } }, moved = "single stored" },
  { args = { defaultJobMode = "EvictDirectly" }, moved = "a foreign",
    alone = { arbitrationArgs = { enabled = true, interval = "1h" } } }, -- no eviction follows
  { args = { maxMigratingPerNode = 3, maxMigratingGlobally = 5 }, moved = "a b p" },
  { args = { maxMigratingGlobally = 2 }, moved = "" },
  { args = { maxUnavailablePerWorkload = 3 }, moved = "half1 half2" },
  { args = { evictLocalStoragePods = true, skipCheckExpectedReplicas = true }, moved = "single stored" },
  { args = { evictLocalStoragePods = true }, ours = {}, moved = "a stored", says =
    "pod, only there: 1\n  default/stored: there moves, here stays; it has local storage\n" },
}

servers.only_real(function(name, start)
  describe("koord-descheduler on " .. name .. " moves the pods that ours would", function()
    local server, client, path, koord, run

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      fill(client)
      path = policies.changed("comparedescheduler.lua", { ['every = "10s"'] = 'every = "1s"',
        ["patienceSeconds = 600"] = "patienceSeconds = 5" })
    end)
    lazy_teardown(function() if server then server:stop() end end)

    before_each(function()
      for _, kind in ipairs { JOB, RESERVATION } do
        for _, object in ipairs(client:list(kind)) do client:delete(kind, object.metadata.name) end
        wait.until_true(PATIENCE, "no " .. kind, function() return #client:list(kind) == 0 end)
      end
      client:delete(MAP, policies.NAMESPACE, REPORT)
      for _, pod in ipairs { "r", "s" } do
        client:create { kind = JOB, name = pod, spec = { paused = true, podRef = { namespace = "default",
          name = pod, uid = client:get(POD, "default", pod).metadata.uid } } }
      end
      report_all(client)
    end)
    after_each(function()
      if koord then koord:stop(30) end
      if run then controller.finish(run) end
      koord, run = nil, nil
    end)

    local function said()
      local map = client:get(MAP, policies.NAMESPACE, REPORT)
      return map and map("data", "report.txt") or ""
    end

    local function moved()
      local out = {}
      for _, job in ipairs(client:list(JOB)) do
        if job("metadata.annotations", "koordinator.sh/evict-trigger") == "LowNodeLoad" then
          out[#out + 1] = job.spec.podRef.name
        end
      end
      table.sort(out)
      return table.concat(out, " ")
    end

    for i = 1, ROUNDS do
      local case = CASES[i]
      it("with " .. kube.encode(case.args), function()
        run = policies.start(server, path, table.unpack(params_of(case.ours or case.args)))
        wait.until_true(PATIENCE, "ours has looked", function()
          if said():find "^moved pods compared: 0" then return true end
          error(run:log(), 0)
        end)
        local config = process.write(process.tmpname ".yaml", configuration(server.kubeconfig,
          kube.merge(case.args, case.alone or {})))
        koord = process.spawn { PROGRAM, "--config", config, "--secure-port", "0", "-v", "4",
          name = "koord-descheduler" }
        wait.until_true(PATIENCE, "koord-descheduler has looked", function()
          if koord:log():find('Successfully processed nodePool" nodePool="all"', 1, true) then return true end
          error(koord:log(), 0)
        end)
        assert.equal(case.moved, moved(), koord:log())
        local before = policies.runs(run, "compare-descheduler")
        wait.until_true(PATIENCE, "ours has looked again", function()
          return policies.runs(run, "compare-descheduler") >= before + LOOKS
        end)
        local n = select(2, case.moved:gsub("%S+", ""))
        assert.equal(("moved pods compared: %d, disagreements: %d"):format(n, case.says and 1 or 0),
          said():match "^[^\n]*", said() .. koord:log())
        if case.says then assert.truthy(said():find(case.says, 1, true), said()) end
        assert.equal(case.moved, moved())
        assert.is_nil(run:log():find("ERROR", 1, true), run:log())
      end)
    end
  end)
end)
