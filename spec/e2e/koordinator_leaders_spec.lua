-- koordinator_leaders_spec.lua - all policies in controllers/koordinator on both API servers, with the real
-- CRDs. They run as the manifests of `kubelua rbac -o manifests` say: with the Deployment's arguments, the
-- service account's rights and the ConfigMap of params. Each policy has two replicas, and all work at once on
-- one cluster. They converge. During a change each leader is killed, and the other replica completes the
-- change. With new logic it looks at everything again and writes nothing. Scripts with webhooks answer with
-- their printed rights.
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

local function add_node(client, name, cpu, labels)
  policies.add_node(client, name, { cpu = cpu, memory = "64Gi", pods = "110" }, { labels = labels })
end

local function add_pod(client, name, o)
  local owners = o.owned and { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } or nil
  client:create { apiVersion = "v1", kind = "Pod",
    metadata = { namespace = "default", name = name, labels = o.labels, annotations = o.annotations,
      ownerReferences = owners },
    spec = { nodeName = o.node, schedulerName = o.scheduler, terminationGracePeriodSeconds = 0,
      tolerations = { { operator = "Exists" } },
      containers = { { name = "c", image = "none", resources = { requests = { cpu = o.cpu or "1" } } } } } }
end

-- The report of an agent: its node uses `cpu`, and 3 for each pod.
local function report(client, node, cpu, ...)
  policies.report(client, node, { ... }, { priority = "koord-prod", node = {
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

-- In the world "pods", the spec creates jobs; in "balance", descheduling policies do, and no controller works
-- on them.
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
  add_pod(client, "guest",
    { node = "n1", annotations = { ["scheduling.koordinator.sh/reservation-allocated"] =
    ('{"name":"room","uid":"%s"}'):format(room.metadata.uid) } })
  add_pod(client, "fits", { scheduler = "koord-scheduler" })
  add_pod(client, "big", { scheduler = "koord-scheduler", cpu = "20" })
  add_job(client, "evicts", "leaves")
  add_job(client, "refused", "stays")
end

-- "hot" is overused, "spot" is expensive, "even" is cheap, and "uneven" has more requested cpu than memory.
function WORLDS.balance(client)
  for _, name in ipairs { "hot", "even", "uneven" } do add_node(client, name, "10") end
  client:patch(client:get(NODE, "even"), { metadata = { labels = { price = "low" } } })
  add_node(client, "spot", "10", { price = "high" })
  add_pod(client, "busy", { node = "hot", owned = true, scheduler = "koord-scheduler" })
  add_pod(client, "climber", { node = "spot", owned = true, scheduler = "koord-scheduler" })
  add_pod(client, "wide", { node = "uneven", owned = true, scheduler = "koord-scheduler", cpu = "6" })
  report(client, "hot", "5", "busy")
  report(client, "even", "1")
end

-- A change: a new node and its agent's report. It has two halves, and the leaders die between them.
local CHANGES = { pods = {}, balance = {} }

CHANGES.pods[1] = function(client)
  add_node(client, "n2", "30", { zone = "a" })
  -- The agent reports into what nodemetric creates.
  wait.until_true(30, "the NodeMetric of n2", function() return client:get(METRIC, "n2") end)
  report(client, "n2", "1")
  quota(client, "other", "5")
end

CHANGES.pods[2] = function(client)
  add_pod(client, "another", { node = "n2", labels = { ["quota.scheduling.koordinator.sh/name"] = "other" } })
  client:create { kind = RECOMMENDATION, namespace = "default", name = "late",
    spec = { target = { type = "podSelector", podSelector = { matchLabels = { app = "web" } } } } }
  add_job(client, "late", "stays")
  client:delete(POD, "default", "guest")
  for _, of in ipairs { "scheduler", "descheduler" } do
    client:delete(MAP, NS, "koordinator-compare-" .. of)
  end
end

CHANGES.balance[1] = function(client)
  add_node(client, "hot2", "10")
  add_node(client, "uneven2", "10")
  add_pod(client, "busy2", { node = "hot2", owned = true, scheduler = "koord-scheduler" })
end

CHANGES.balance[2] = function(client)
  add_pod(client, "climber2", { node = "spot", owned = true, scheduler = "koord-scheduler" })
  add_pod(client, "wide2", { node = "uneven2", owned = true, scheduler = "koord-scheduler", cpu = "6" })
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

-- A descheduling policy, which creates a job in its world.
local function descheduler(script, trigger, params)
  return { script = script, world = "balance", every_second = true, params = params,
    holds = function(c) return jobs_of(c, trigger) == 1 end,
    goes_on = function(c) return jobs_of(c, trigger) == 2 end }
end

-- A comparison with the original, which reports the number of compared nodes or quotas, reserved quotas
-- included.
local function comparison(script, name, first, later)
  local function compared(c)
    return tonumber((get(c, MAP, NS, name)("data", "report.txt") or ""):match "compared: (%d+)")
  end
  return { script = script, world = "pods", every_second = true,
    controller = script:gsub("^compare", "compare-"):gsub("compare%-$", "compare-noderesource"),
    holds = function(c) return compared(c) == first end,
    goes_on = function(c) return compared(c) == later end }
end

-- A comparison of decisions, which reports that there were none; the change deletes its report.
local function witness(script, name)
  local function says(c) return (get(c, MAP, NS, name)("data", "report.txt") or ""):find "compared: %d" end
  return { script = script, world = "pods", every_second = true,
    controller = script:gsub("^compare", "compare-"),
    holds = says, goes_on = says }
end

-- Each: { script, world, controller = its name if it differs, params, every_second = whether it runs by the
-- clock, holds = whether it has written its result, goes_on = whether it has after the change }.
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
  { script = "koordletaudit", world = "pods", controller = "koordlet-audit", params = { condition = "true" },
    holds = function(c) return kube.find_condition(c:get(NODE, "n1"), "koordinator.sh/Reactions") end,
    goes_on = function(c) return kube.find_condition(c:get(NODE, "n2"), "koordinator.sh/Reactions") end },
  { script = "koordletpredict", world = "pods", controller = "koordlet-predict",
    params = { checkpointSeconds = "0" },
    holds = function(c) return c:get(MAP, NS, "koordlet-predict-" .. c:get(NODE, "n1").metadata.uid) end,
    goes_on = function(c) return c:get(MAP, NS, "koordlet-predict-" .. c:get(NODE, "n2").metadata.uid) end },
  { script = "recommender", world = "pods", params = { checkpointSeconds = "0" },
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
  witness("comparescheduler", "koordinator-compare-scheduler"),
  witness("comparedescheduler", "koordinator-compare-descheduler"),
  descheduler("lownodeload", "LowNodeLoad"),
  descheduler("fragmentationaware", "FragmentationAware"),
  descheduler("custompriority", "CustomPriority", { evictionOrder = [[
- {name: high, nodeSelector: {matchLabels: {price: high}}}
- {name: low, nodeSelector: {matchLabels: {price: low}}}]] }),
  { script = "scaledownbinpack", world = "balance", every_second = true,
    holds = function(c) return carried(c, POD, "default", "wide", COST) end,
    goes_on = function(c) return carried(c, POD, "default", "wide2", COST) end },
}

-- Scripts with webhooks: { script, prepare = creates objects before, answers = whether each of them has
-- answered }.
local PROFILES = "config.koordinator.sh/v1alpha1/ClusterColocationProfile"
local QUOTA_LABEL = "quota.scheduling.koordinator.sh/"
local DRY = { dry_run = true }

local function refused(text, fn, ...)
  local _, why = kube.try(fn, ...)
  return why and tostring(why):find(text, 1, true)
end

local function pod_with(labels)
  return { kind = POD, namespace = "default", name = "asked", labels = labels,
    spec = { containers = { { name = "c", image = "none" } } } }
end

local WEBHOOKS = {
  { script = "quotawebhooks",
    prepare = function(c)
      c:create { kind = QUOTA, namespace = NS, name = "parents",
        labels = { [QUOTA_LABEL .. "is-parent"] = "true" },
        spec = { max = { cpu = "2" } } }
    end,
    answers = function(c)
      local made = c:create({ kind = QUOTA, namespace = NS, name = "asked", spec = { max = { cpu = "2" } } },
        DRY)
      return made("metadata.labels", QUOTA_LABEL .. "parent") == "koordinator-root-quota"
        and refused("its parent none does not exist", c.create, c,
          { kind = QUOTA, namespace = NS, name = "asked",
          labels = { [QUOTA_LABEL .. "parent"] = "none" }, spec = { max = { cpu = "2" } } }, DRY)
        and refused("cannot belong to quota parents", c.create, c,
          pod_with { [QUOTA_LABEL .. "name"] = "parents" },
          DRY)
        and refused("quota", c.delete, c, QUOTA, NS, "koordinator-default-quota", DRY)
    end },
  { script = "colocationprofile",
    prepare = function(c)
      c:create { kind = PROFILES, name = "asked", spec = { selector = { matchLabels = { asked = "yes" } },
        labels = { colocated = "yes" } } }
    end,
    answers = function(c)
      local bad = { kind = MAP, namespace = NS, name = "slo-controller-config",
        data = { ["colocation-config"] = "{" } }
      return c:create(pod_with { asked = "yes" }, DRY)("metadata.labels.colocated") == "yes"
        and refused("cannot be used in combination", c.create, c,
          pod_with { ["koordinator.sh/qosClass"] = "BE" }, DRY)
        and refused("colocation-config", c.apply, c, bad, { force = true, dry_run = true })
    end },
}
local ALL = table.move(WEBHOOKS, 1, #WEBHOOKS, #POLICIES + 1, { table.unpack(POLICIES) })

-- A copy with intervals of a second, in which LowNodeLoad acts at the first observation.
local function copy()
  local _, dir = policies.changed("lownodeload.lua", { ["local INTERVAL = 60"] = "local INTERVAL = 1",
    ["consecutiveAbnormalities = 5"] = "consecutiveAbnormalities = 1" })
  for _, name in ipairs { "fragmentationaware", "custompriority", "scaledownbinpack" } do
    policies.change(("%s/%s.lua"):format(dir, name), { ["interval = 60"] = "interval = 1" })
  end
  for name, every in pairs { compare = 60, compareagents = 60, comparequota = 60, comparescheduler = 10,
    comparedescheduler = 10 } do
    policies.change(("%s/%s.lua"):format(dir, name), { [('every = "%ds"'):format(every)] = 'every = "1s"' })
  end
  return dir
end

-- ---------------------------------------------------------------- manifests

-- The printed manifests of each policy: { file, lease, account, words = of its Deployment }; printed once for
-- both servers.
local printed

local function print_all()
  local runs, files = {}, {}
  for i, policy in ipairs(ALL) do
    local file = process.tmpname ".yaml"
    local command = ("exec %s rbac controllers/koordinator/%s.lua --crds controllers/koordinator/crds -n %s \z
      -o manifests > %s"):format(KUBELUA, policy.script, NS, file)
    runs[i] = { file = file, process = process.spawn { "sh", "-c", command } }
  end
  for i, policy in ipairs(ALL) do
    assert.equal(0, runs[i].process:wait(policies.PATIENCE), runs[i].process:log())
    files[policy] = runs[i].file
  end
  return files
end

local function parse(file)
  for _, o in ipairs(kube.yaml(process.read(file), file)) do
    if o.kind == "Deployment" then
      local spec = o.spec.template.spec
      local words = kube.copy(spec.containers[1].args)
      return { file = file, account = spec.serviceAccountName, words = words,
        lease = table.concat(words, " "):match "%-%-leader%-elect%-resource%-name=(%S+)" }
    end
  end
end

-- The rights are found in the sources; the manifests would name those that are not.
local function print_manifests()
  local out = {}
  for policy, file in pairs(print_all()) do
    assert.is_nil(process.read(file):find("a rule may be missing", 1, true), policy.script)
    out[policy] = parse(file)
  end
  return out
end

-- Applies all manifests and sets params, which another apply keeps.
local function deploy(server, client)
  local all, changed = {}, {}
  local function name_of_map(policy) return printed[policy].account .. "-params" end
  for _, policy in ipairs(ALL) do
    for _, files in ipairs { all, policy.params and changed or nil } do
      table.move({ "-f", printed[policy].file }, 1, 2, #files + 1, files)
    end
  end
  server:must_kubectl("apply", "--server-side", table.unpack(all))
  for _, policy in ipairs(POLICIES) do
    if policy.params then
      client:patch({ kind = MAP, namespace = NS, name = name_of_map(policy) }, { data = policy.params })
    end
  end
  server:must_kubectl("apply", "--server-side", table.unpack(changed))
  for _, policy in ipairs(POLICIES) do
    if policy.params then
      assert.same(policy.params, kube.copy(client:get(MAP, NS, name_of_map(policy)).data))
    end
  end
end

-- ---------------------------------------------------------------- processes

local function name_of(policy) return policy.controller or policy.script end

-- Whether a process has nothing left to do, and the number of its runs that ended.
local function load_of(run, policy)
  local ran, waits, known = 0, 0, false
  for metric, labels, n in controller.metrics(run):gmatch "\n([%w_]+){([^}\n]*)} (%d+)" do
    local own = labels:find(('controller="%s"'):format(name_of(policy)), 1, true)
    if own and metric == "controller_runtime_reconcile_total" then ran, known = ran + tonumber(n), true end
    if metric == "workqueue_depth" or metric == "controller_runtime_active_workers" then
      waits = waits + tonumber(n)
    end
  end
  return known and waits == 0, ran
end

-- A replica: the Deployment's command, with other paths and a shorter lease.
local function replica(server, path, manifests, identity)
  local words = { KUBELUA, name = "kubelua run" }
  for _, word in ipairs(manifests.words) do
    word = word:gsub("^/controllers/.*", path):gsub("0%.0%.0%.0:%d+", "127.0.0.1:0")
      :gsub("^%-%-webhook%-service=.*", "--webhook-url=auto")
    words[#words + 1] = word
  end
  for _, word in ipairs { "--kubeconfig", server.kubeconfig, "--as",
    ("system:serviceaccount:%s:%s"):format(NS, manifests.account), "--leader-elect-identity", identity,
    "--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s",
    "--leader-elect-retry-period", "400ms" } do
    words[#words + 1] = word
  end
  return process.spawn(words)
end

local function each(chosen, what, fn)
  for _, policy in ipairs(chosen) do
    wait.until_true(policies.PATIENCE, ("%s %s"):format(policy.script, what), function()
      if fn(policy) then return true end
      local logs = {}
      for identity, run in pairs(policy.replicas) do logs[#logs + 1] = identity .. ":\n" .. run:log() end
      error(table.concat(logs, "\n"), 0)
    end)
  end
end

local function holder(client, policy)
  return client:get("coordination.k8s.io/v1/Lease", NS, printed[policy].lease)("spec.holderIdentity") or ""
end

local function versions(client)
  local out = {}
  for _, kind in ipairs(KINDS) do out[kind] = policies.versions(client, kind) end
  return out
end

local function leader_of(client, policy) return policy.replicas[holder(client, policy)] end

local function generations(run) return select(2, run:log():gsub("loaded the next generation", "")) end

-- Saves all scripts again, as an editor does.
local function reload(client, chosen, path_of)
  local had = {}
  for _, policy in ipairs(chosen) do
    local path = path_of(policy)
    had[policy] = generations(leader_of(client, policy))
    process.write(path .. ".new", process.read(path) .. "\n-- saved again\n")
    assert(os.rename(path .. ".new", path))
  end
  each(chosen, "takes the next generation", function(policy)
    return generations(leader_of(client, policy)) > had[policy]
  end)
end

-- Reloads until the new logic writes nothing: the last write of one policy may wake another.
local function come_to_rest(client, chosen, path_of)
  wait.until_true(policies.PATIENCE, "new logic writes nothing", function()
    local before, seen = versions(client), {}
    for _, policy in ipairs(chosen) do seen[policy] = select(2,
      load_of(leader_of(client, policy), policy)) end
    reload(client, chosen, path_of)
    each(chosen, "rests", function(policy)
      local idle, n = load_of(leader_of(client, policy), policy)
      return idle and n > seen[policy] + (policy.every_second and 1 or 0) -- one may have begun before
    end)
    assert.same(before, versions(client))
    return true
  end)
end

servers.each(function(name, start)
  describe("Koordinator's policies on " .. name, function()
    local server, client, dir, chosen

    lazy_setup(function()
      printed = printed or print_manifests()
      server = start { empty = true, crds = { "controllers/koordinator/crds" },
        args = name == servers.EMBEDDED and { "--authorization-mode", "RBAC" } or nil }
      client = controller.client(server)
      dir = copy()
      deploy(server, client)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function() chosen = {} end)
    after_each(function()
      for _, policy in ipairs(chosen) do
        for _, run in pairs(policy.replicas) do run:kill() end
      end
    end)

    local function path_of(policy) return ("%s/%s.lua"):format(dir, policy.script) end

    local function begin(policy)
      policy.replicas = {}
      for _, identity in ipairs { "one", "two" } do
        policy.replicas[identity] = replica(server, path_of(policy), printed[policy], identity)
      end
      chosen[#chosen + 1] = policy
    end

    local function is_clean(policy, run)
      for _, word in ipairs { "ERROR", "orbidden" } do
        assert.is_nil(run:log():find(word, 1, true), policy.script .. ": " .. run:log())
      end
    end

    for _, world in ipairs { "pods", "balance" } do
      it(("of %s converge, also under another leader when theirs is killed, and write nothing after a reload")
        :format(world), function()
        WORLDS[world](client)
        for _, policy in ipairs(POLICIES) do
          if policy.world == world then begin(policy) end
        end
        each(chosen, "converges", function(policy) return policy.holds(client) end)

        CHANGES[world][1](client)
        for _, policy in ipairs(chosen) do
          local leader = holder(client, policy)
          policy.replicas[leader]:kill()
          is_clean(policy, policy.replicas[leader])
          policy.replicas[leader] = nil
        end
        CHANGES[world][2](client)
        each(chosen, "goes on", function(policy)
          return policy.replicas[holder(client, policy)] and policy.goes_on(client)
        end)

        come_to_rest(client, chosen, path_of)

        for _, policy in ipairs(chosen) do
          local identity, run = next(policy.replicas)
          policy.replicas[identity] = nil
          controller.finish(run)
          is_clean(policy, run)
        end
      end)
    end

    it("of webhooks answer with the printed rights", function()
      for _, policy in ipairs(WEBHOOKS) do
        policy.prepare(client)
        policy.replicas = { one = replica(server, path_of(policy), printed[policy], "one") }
        chosen[#chosen + 1] = policy
      end
      each(chosen, "answers", function(policy) return policy.answers(client) end)
      for _, policy in ipairs(chosen) do
        assert.truthy(client:get("v1/Secret", NS, printed[policy].account .. "-webhook-tls"))
        local run = policy.replicas.one
        policy.replicas.one = nil
        controller.finish(run)
        is_clean(policy, run)
      end
    end)
  end)
end)
