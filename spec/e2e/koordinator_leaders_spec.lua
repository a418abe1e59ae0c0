-- koordinator_leaders_spec.lua - what holds for every policy in controllers/koordinator that writes, on both
-- API servers with the real definitions of their kinds: it converges; with new logic, and under another
-- leader, it looks at everything again and writes nothing; the other leader goes on; and all of it with the
-- role that `kubelua rbac` prints. Each policy is a process of its own, all of them run at once on one
-- cluster, and no policy's writes undo another's.
-- not in asan, tsan: policies are Lua; what C does below them, the specs of each policy show

local controller = require "support.controller"
local kube = require "kubelua"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NODE, POD, MAP = "v1/Node", "v1/Pod", "v1/ConfigMap"
local SCHEDULING = "scheduling.koordinator.sh/v1alpha1/"
local METRIC, SLO = "slo.koordinator.sh/v1alpha1/NodeMetric", "slo.koordinator.sh/v1alpha1/NodeSLO"
local JOB, RESERVATION = SCHEDULING .. "PodMigrationJob", SCHEDULING .. "Reservation"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local RECOMMENDATION = "analysis.koordinator.sh/v1alpha1/Recommendation"
local KINDS = { NODE, POD, MAP, METRIC, SLO, JOB, RESERVATION, QUOTA, PROFILE, RECOMMENDATION }
local NS = policies.NAMESPACE
local FORCED = "descheduler.alpha.kubernetes.io/evict"
local COST = "controller.kubernetes.io/pod-deletion-cost"

-- ---------------------------------------------------------------- the cluster

local function now() return os.date "!%Y-%m-%dT%H:%M:%SZ" end

local function add_node(client, name, cpu, labels)
  local amounts = { cpu = cpu, memory = "64Gi", pods = "110" }
  client:patch_status(client:create { kind = NODE, name = name, labels = labels },
    { allocatable = amounts, capacity = amounts })
  -- A real server marks new nodes as not ready until somebody says otherwise.
  client:patch(client:get(NODE, name), function(n) n.spec.taints = nil end)
end

local function add_pod(client, name, o)
  local owners = o.owned and { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u",
    controller = true } } or nil
  client:create { apiVersion = "v1", kind = "Pod",
    metadata = { namespace = "default", name = name, labels = o.labels, annotations = o.annotations,
      ownerReferences = owners },
    spec = { nodeName = o.node, schedulerName = o.scheduler, terminationGracePeriodSeconds = 0,
      tolerations = { { operator = "Exists" } },
      containers = { { name = "c", image = "none", resources = { requests = { cpu = o.cpu or "1" } } } } } }
end

-- What an agent says: its node uses cpu by itself, and 3 for each pod.
local function report(client, node, cpu, ...)
  local used = {}
  for i, name in ipairs { ... } do
    used[i] = { namespace = "default", name = name, priority = "koord-prod",
      podUsage = { resources = { cpu = "3", memory = "1Gi" } } }
  end
  local object = client:get(METRIC, node)
  if not object then
    pcall(client.create, client, { kind = METRIC, name = node, spec = {} }) -- nodemetric makes it, too
    object = client:get(METRIC, node)
  end
  client:patch_status(object, { updateTime = now(), podsMetric = kube.array(used), nodeMetric = {
    nodeUsage = { resources = { cpu = cpu, memory = "2Gi" } },
    systemUsage = { resources = { cpu = cpu, memory = "1Gi" } } } })
end

local function quota(client, name, cpu)
  client:create { kind = QUOTA, namespace = NS, name = name,
    spec = { min = { cpu = cpu }, max = { cpu = "100" } } }
end

local function add_job(client, name, pod)
  client:create { kind = JOB, name = name, spec = { mode = "EvictDirectly", podRef = {
    namespace = "default", name = pod, uid = client:get(POD, "default", pod).metadata.uid } } }
end

local function get(client, kind, ...)
  local object = client:get(kind, ...)
  if object then return function(...) return object(...) end end
  return function() return nil end
end

local function carried(client, kind, namespace, name, annotation)
  return get(client, kind, namespace, name)("metadata.annotations", annotation)
end

-- In "pods", jobs are made by hand; in "balance", by what looks for pods to move, and nobody works on them.
local WORLDS = {}

function WORLDS.pods(client)
  client:create { kind = MAP, namespace = NS, name = "slo-controller-config",
    data = { ["colocation-config"] = '{"enable": true}' } }
  add_node(client, "n1", "10", { zone = "a" })
  add_pod(client, "web", { node = "n1", labels = { app = "web" } })
  add_pod(client, "leaves", { node = "n1", cpu = "2", owned = true, annotations = { [FORCED] = "true" } })
  add_pod(client, "stays", { node = "n1" })
  report(client, "n1", "2", "web")
  quota(client, "team", "4")
  add_pod(client, "member", { node = "n1", labels = { ["quota.scheduling.koordinator.sh/name"] = "team" } })
  client:create { kind = PROFILE, namespace = NS, name = "pool",
    spec = { quotaName = "pool-root", nodeSelector = { matchLabels = { zone = "a" } } } }
  client:create { kind = RECOMMENDATION, namespace = "default", name = "web",
    spec = { target = { type = "podSelector", podSelector = { matchLabels = { app = "web" } } } } }
  local room = client:create { kind = RESERVATION, name = "room", spec = { ttl = "24h", allocateOnce = false,
    owners = { { labelSelector = { matchLabels = { app = "room" } } } },
    template = { spec = { containers = { { name = "c", image = "none" } } } } } }
  client:patch_status(room, { phase = "Available", nodeName = "n1", allocatable = { cpu = "2" },
    conditions = { { type = "Scheduled", status = "True", reason = "Scheduled" },
      { type = "Ready", status = "True", reason = "Available" } } })
  add_pod(client, "guest", { node = "n1", annotations = { ["scheduling.koordinator.sh/reservation-allocated"] =
    ('{"name":"room","uid":"%s"}'):format(room.metadata.uid) } })
  add_pod(client, "fits", { scheduler = "koord-scheduler" })
  add_pod(client, "big", { scheduler = "koord-scheduler", cpu = "20" })
  add_job(client, "evicts", "leaves")
  add_job(client, "refused", "stays")
end

-- On "hot" much is used; "spot" is dear, "even" is cheap, and "uneven" has more cpu asked for than memory.
function WORLDS.balance(client)
  for _, name in ipairs { "hot", "even", "uneven" } do add_node(client, name, "10") end
  client:patch(client:get(NODE, "even"), { metadata = { labels = { price = "low" } } })
  add_node(client, "spot", "10", { price = "high" })
  add_pod(client, "busy", { node = "hot", owned = true })
  add_pod(client, "climber", { node = "spot", owned = true })
  add_pod(client, "wide", { node = "uneven", owned = true, cpu = "6" })
  report(client, "hot", "5", "busy")
  report(client, "even", "1")
end

-- Something is new: a node, and what an agent says of it.
local CHANGES = {}

function CHANGES.pods(client)
  add_node(client, "n2", "30", { zone = "a" })
  report(client, "n2", "1")
  quota(client, "other", "5")
  add_pod(client, "another", { node = "n2", labels = { ["quota.scheduling.koordinator.sh/name"] = "other" } })
  client:create { kind = RECOMMENDATION, namespace = "default", name = "late",
    spec = { target = { type = "podSelector", podSelector = { matchLabels = { app = "web" } } } } }
  add_job(client, "late", "stays")
  client:delete(POD, "default", "guest")
end

function CHANGES.balance(client)
  add_node(client, "hot2", "10")
  add_node(client, "uneven2", "10")
  add_pod(client, "busy2", { node = "hot2", owned = true })
  add_pod(client, "climber2", { node = "spot", owned = true })
  add_pod(client, "wide2", { node = "uneven2", owned = true, cpu = "6" })
  report(client, "hot2", "5", "busy2")
  report(client, "even", "1")
end

-- ---------------------------------------------------------------- the policies

local function jobs_of(client, trigger)
  local n = 0
  for _, job in ipairs(client:list(JOB)) do
    if job("metadata.annotations", "koordinator.sh/evict-trigger") == trigger then n = n + 1 end
  end
  return n
end

-- A policy of the descheduler makes a job of each world's kind.
local function descheduler(script, trigger)
  return { script = script, world = "balance", every_second = true,
    holds = function(c) return jobs_of(c, trigger) == 1 end,
    goes_on = function(c) return jobs_of(c, trigger) == 2 end }
end

-- A comparison beside the original says how much it compared: nodes, or quotas, the reserved ones among them.
local function comparison(script, name, first, later)
  local function compared(c)
    return tonumber((get(c, MAP, NS, name)("data", "report.txt") or ""):match "compared: (%d+)")
  end
  return { script = script, world = "pods", every_second = true,
    controller = script:gsub("^compare", "compare-"):gsub("compare%-$", "compare-noderesource"),
    holds = function(c) return compared(c) == first end,
    goes_on = function(c) return compared(c) == later end }
end

-- Each: { script, world, controller = its name where that is another, params, every_second = it looks by the
-- clock, holds = whether it has written what it should, goes_on = whether it has after the change }.
local POLICIES = {
  { script = "noderesource", world = "pods",
    holds = function(c) return get(c, NODE, "n1")("status.allocatable", "kubernetes.io/batch-cpu") end,
    goes_on = function(c) return get(c, NODE, "n2")("status.allocatable", "kubernetes.io/batch-cpu") end },
  { script = "nodemetric", world = "pods",
    holds = function(c) return get(c, METRIC, "n1")("spec.metricCollectPolicy") end,
    goes_on = function(c) return get(c, METRIC, "n2")("spec.metricCollectPolicy") end },
  { script = "nodeslo", world = "pods",
    holds = function(c) return c:get(SLO, "n1") end,
    goes_on = function(c) return c:get(SLO, "n2") end },
  { script = "quotaprofile", world = "pods",
    holds = function(c) return get(c, QUOTA, NS, "pool-root")("spec.min.cpu") == "10" end,
    goes_on = function(c) return get(c, QUOTA, NS, "pool-root")("spec.min.cpu") == "40" end },
  { script = "elasticquota", world = "pods",
    holds = function(c) -- when one pod is gone, and another has a node
      return get(c, QUOTA, NS, "team")("status.used.cpu") == "1"
        and get(c, QUOTA, NS, "koordinator-default-quota")("status.used.cpu") == "4"
    end,
    goes_on = function(c) return get(c, QUOTA, NS, "other")("status.used.cpu") == "1" end },
  { script = "podmigrationjob", world = "pods",
    holds = function(c)
      return get(c, JOB, "evicts")("status.phase") == "Succeeded"
        and get(c, JOB, "refused")("status.phase") == "Failed"
    end,
    goes_on = function(c) return get(c, JOB, "late")("status.phase") == "Failed" end },
  { script = "reservations", world = "pods",
    holds = function(c) return get(c, RESERVATION, "room")("status.allocated.cpu") == "1" end,
    goes_on = function(c) return #(get(c, RESERVATION, "room")("status.currentOwners") or {}) == 0 end },
  { script = "koordletaudit", world = "pods", controller = "koordlet-audit", params = { "condition=true" },
    holds = function(c) return kube.find_condition(c:get(NODE, "n1"), "koordinator.sh/Reactions") end,
    goes_on = function(c) return kube.find_condition(c:get(NODE, "n2"), "koordinator.sh/Reactions") end },
  { script = "koordletpredict", world = "pods", controller = "koordlet-predict",
    params = { "checkpointSeconds=0" },
    holds = function(c) return c:get(MAP, NS, "koordlet-predict-" .. c:get(NODE, "n1").metadata.uid) end,
    goes_on = function(c) return c:get(MAP, NS, "koordlet-predict-" .. c:get(NODE, "n2").metadata.uid) end },
  { script = "recommender", world = "pods", params = { "checkpointSeconds=0" },
    holds = function(c)
      local object = c:get(RECOMMENDATION, "default", "web")
      return object("status.updateTime") and c:get(MAP, "default", "recommender-" .. object.metadata.uid)
    end,
    goes_on = function(c) return get(c, RECOMMENDATION, "default", "late")("status.updateTime") end },
  { script = "scheduler", world = "pods",
    holds = function(c)
      return get(c, POD, "default", "fits")("spec.nodeName") == "n1"
        and kube.find_condition(c:get(POD, "default", "big"), "PodScheduled")
    end,
    goes_on = function(c) return get(c, POD, "default", "big")("spec.nodeName") == "n2" end },
  comparison("compare", "koordinator-compare", 1, 2),
  comparison("compareagents", "koordinator-compare-agents", 1, 2),
  comparison("comparequota", "koordinator-compare-quota", 5, 6),
  descheduler("lownodeload", "LowNodeLoad"),
  descheduler("fragmentationaware", "FragmentationAware"),
  descheduler("custompriority", "CustomPriority"),
  { script = "scaledownbinpack", world = "balance", every_second = true,
    holds = function(c) return carried(c, POD, "default", "wide", COST) end,
    goes_on = function(c) return carried(c, POD, "default", "wide2", COST) end },
}

-- A copy in which those of the descheduler look every second, LowNodeLoad is sure at once, and CustomPriority
-- knows what is dear.
local function copy()
  local _, dir = policies.changed("lownodeload.lua", { ["local INTERVAL = 60"] = "local INTERVAL = 1",
    ["consecutiveAbnormalities = 5"] = "consecutiveAbnormalities = 1" })
  for _, name in ipairs { "fragmentationaware", "custompriority", "scaledownbinpack" } do
    policies.change(("%s/%s.lua"):format(dir, name), { ["interval = 60"] = "interval = 1" })
  end
  for _, name in ipairs { "compare", "compareagents", "comparequota" } do
    policies.change(("%s/%s.lua"):format(dir, name), { ['every = "60s"'] = 'every = "1s"' })
  end
  policies.change(dir .. "/custompriority.lua", { ["evictionOrder = {}"] = [[evictionOrder = {
      { name = "high", nodeSelector = { matchLabels = { price = "high" } } },
      { name = "low", nodeSelector = { matchLabels = { price = "low" } } },
    }]] })
  return dir
end

-- ---------------------------------------------------------------- processes

local function name_of(policy) return policy.controller or policy.script end

-- A ServiceAccount with the role that is printed, and a kubeconfig of it.
local function account(server, policy)
  local role, code = process.run(("%s rbac --record --bind --leader-elect -n %s --crds controllers/koordinator/crds \z
    controllers/koordinator/%s.lua 2>/dev/null"):format(KUBELUA, NS, policy.script))
  assert.equal(0, code, role)
  server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
  local token = server:must_kubectl("create", "token", "-n", NS,
    assert(role:match "kind: ServiceAccount\nmetadata:\n  name: (%S+)"))
  return server:kubeconfig_for(token:gsub("%s", ""))
end

-- Whether a process has nothing left to do; the number of runs that ended, and of objects it waits for.
local function load_of(run, policy)
  local address = assert(run:log():match "serving metrics address=(%S+)", run:log())
  local text = process.run(("curl -fsS --max-time 10 http://%s/metrics"):format(address))
  local ran, waits, known = 0, 0, false
  for metric, labels, n in text:gmatch "\n([%w_]+){([^}\n]*)} (%d+)" do
    local own = labels:find(('controller="%s"'):format(name_of(policy)), 1, true)
    if own and metric == "controller_runtime_reconcile_total" then ran, known = ran + tonumber(n), true end
    if metric == "workqueue_depth" or metric == "controller_runtime_active_workers" then waits = waits + tonumber(n) end
  end
  return known and waits == 0, ran
end

servers.each(function(name, start)
  describe("Koordinator's policies on " .. name, function()
    local server, client, dir, running

    lazy_setup(function()
      server = start { own = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      dir = copy()
      client:create { kind = "v1/Namespace", name = NS }
      wait.until_true(policies.PATIENCE, NS, function() return client:get("v1/Namespace", NS) end)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function() running = {} end)
    after_each(function()
      for _, run in ipairs(running) do controller.finish(run) end
    end)

    local function config_of(policy)
      return name:find "kube%-apiserver" and account(server, policy) or server.kubeconfig
    end

    local function begin(chosen, configs)
      local runs = {}
      for i, policy in ipairs(chosen) do
        local words = { "--metrics-bind-address", "127.0.0.1:0", "--leader-elect",
          "--leader-elect-resource-namespace", NS, "--leader-elect-retry-period", "1s" }
        for _, param in ipairs(policy.params or {}) do
          table.move({ "--param", param }, 1, 2, #words + 1, words)
        end
        local path = ("%s/%s.lua"):format(dir, policy.script)
        runs[i] = controller.start({ kubeconfig = configs[i] }, path, table.unpack(words))
        running[#running + 1] = runs[i]
      end
      for _, run in ipairs(runs) do run:wait_for_log(policies.PATIENCE, "serving metrics") end
      return runs
    end

    local function finish(runs, chosen)
      for i, policy in ipairs(chosen) do
        table.remove(running, 1)
        controller.finish(runs[i])
        local log = runs[i]:log()
        for _, word in ipairs { "ERROR", "orbidden" } do
          assert.is_nil(log:find(word, 1, true), policy.script .. ": " .. log)
        end
      end
    end

    local function each(runs, chosen, what, holds)
      for i, policy in ipairs(chosen) do
        wait.until_true(policies.PATIENCE, ("%s %s"):format(policy.script, what), function()
          if holds(policy, runs[i]) then return true end
          error(runs[i]:log(), 0)
        end)
      end
    end

    -- Waits until each has nothing left to do, and has run more often than the last time; one that looks by
    -- the clock a second time.
    local function rest(runs, chosen)
      each(runs, chosen, "rests", function(policy, run)
        local idle, n = load_of(run, policy)
        run.seen = run.seen or 0
        if not idle or n <= run.seen + (policy.every_second and 1 or 0) then return false end
        run.seen = n
        return true
      end)
    end

    local function versions()
      local out = {}
      for _, kind in ipairs(KINDS) do out[kind] = policies.versions(client, kind) end
      return out
    end

    for _, world in ipairs { "pods", "balance" } do
      it(("of %s converge, write nothing after a reload and under another leader, and go on"):format(world),
        function()
          local chosen, configs = {}, {}
          for _, policy in ipairs(POLICIES) do
            if policy.world == world then chosen[#chosen + 1] = policy end
          end
          for i, policy in ipairs(chosen) do configs[i] = config_of(policy) end
          WORLDS[world](client)

          local first = begin(chosen, configs)
          each(first, chosen, "converges", function(policy) return policy.holds(client) end)
          for i, policy in ipairs(chosen) do -- who looks by the clock sees what the others wrote last
            if policy.every_second then first[i].seen = select(2, load_of(first[i], policy)) end
          end
          rest(first, chosen)
          local before = versions()

          for i, policy in ipairs(chosen) do
            first[i].seen = select(2, load_of(first[i], policy))
            policies.save(first[i], ("%s/%s.lua"):format(dir, policy.script))
          end
          rest(first, chosen)
          assert.same(before, versions())

          local second = begin(chosen, configs)
          finish(first, chosen)
          rest(second, chosen)
          assert.same(before, versions())

          CHANGES[world](client)
          each(second, chosen, "goes on", function(policy) return policy.goes_on(client) end)
          finish(second, chosen)
        end)
    end
  end)
end)
