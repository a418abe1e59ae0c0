-- koordmanager_webhooks_spec.lua - the webhooks of koord-manager v1.8.0 and ours get the same
-- AdmissionReviews (pods, quotas, the ConfigMap, nodes, from fixed seeds): they refuse the same objects and
-- change the others in the same way.
-- not in check, asan, tsan: the policies are Lua, and the other program is Go's

local controller = require "support.controller"
local kube = require "kubelua"
local originals = require "support.originals"
local policies = require "support.policies"
local process = require "support.process"
local reviews = require "support.reviews"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local POD, MAP, NODE = "v1/Pod", "v1/ConfigMap", "v1/Node"
local QUOTA = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local QUOTA_PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local PROFILE = "config.koordinator.sh/v1alpha1/ClusterColocationProfile"
local HOOKS = "admissionregistration.k8s.io/v1/"
local QUOTAS, NODES = "quota.scheduling.koordinator.sh/", "node.koordinator.sh/"
local QOS, PRIORITY = "koordinator.sh/qosClass", "koordinator.sh/priority"
local NS, PATIENCE = policies.NAMESPACE, policies.PATIENCE
local CASES = sizes.of { short = 60, long = 400 }
local TOLD = 8
local VALIDATES_QUOTA = "validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota"
local CLASSES = { ["koord-prod"] = 9500, ["koord-mid"] = 7500, ["koord-batch"] = 5500, ["koord-free"] = 3500 }
local TEAMS = { "team-a", "team-b", "team-c" }
local PROBE = "probe" -- a quota with pods that nobody changes

local random = math.random
local function chance(percent) return random(100) <= percent end
local function pick(list) return list[random(#list)] end
local function maybe(percent, fn, ...) if chance(percent) then return fn(...) end end
local function some(list) return next(list) and list or nil end

-- ---------------------------------------------------------------- pods

local LABELS = { "app", "zone" }

local function labels()
  local out = {}
  for _, name in ipairs(LABELS) do out[name] = maybe(60, pick, { "x", "y" }) end
  return out
end

local function selector() return { matchLabels = { [pick(LABELS)] = pick { "x", "y" } } } end

local function profile(i)
  return { kind = PROFILE, name = "p" .. i, spec = kube.object {
    selector = maybe(80, selector), namespaceSelector = maybe(40, selector),
    labels = maybe(50, labels), annotations = maybe(40, labels),
    labelSuffixes = maybe(20, function() return { app = "-more" } end),
    labelKeysMapping = maybe(20, function() return { zone = "copied" } end),
    schedulerName = maybe(40, pick, { "koord-scheduler" }),
    qosClass = maybe(60, pick, { "BE", "LS", "LSR" }),
    priorityClassName = maybe(60, pick, { "koord-prod", "koord-mid", "koord-batch", "koord-free" }),
    koordinatorPriority = maybe(40, random, 1, 9999),
    patch = maybe(30, function() return { spec = { terminationGracePeriodSeconds = i } } end) } }
end

local function amounts()
  return { cpu = pick { "1", "500m", "1500m", "2" }, memory = pick { "1Gi", "512Mi", "1000000k" } }
end

local function container(name)
  local requests = maybe(85, amounts)
  if requests and chance(15) then
    requests["kubernetes.io/batch-cpu"] = pick { "500", "1000" }
    requests["kubernetes.io/batch-memory"] = maybe(80, pick, { "1Gi" })
  end
  return { name = name, image = "none", resources = kube.object {
    requests = requests, limits = chance(50) and requests or maybe(20, amounts) } }
end

local function pod()
  local all = labels()
  all[QOS] = maybe(50, pick, { "BE", "LS", "LSR", "LSE", "SYSTEM", "none" })
  all[PRIORITY] = maybe(20, pick, { "1", "77" })
  all["koordinator.sh/priority-class"] = maybe(10, pick, { "koord-batch", "koord-prod" })
  all[QUOTAS .. "name"] = maybe(60, pick, { "pool-root", "q3", "q7", "absent" })
  all[QUOTAS .. "preemptible"] = maybe(20, pick, { "true", "false" })
  local class = maybe(60, pick, { "koord-prod", "koord-mid", "koord-batch", "koord-free" })
  return { apiVersion = "v1", kind = "Pod",
    metadata = { name = "new", namespace = pick(TEAMS), labels = some(all), annotations = some {
      note = maybe(20, pick, { "x" }),
      [NODES .. "extended-resource-spec"] = maybe(5, pick, { '{"containers":{}}' }),
      ["scheduling.koordinator.sh/reserve-pod"] = maybe(5, pick, { "true" }) } },
    spec = { priorityClassName = class, priority = class and CLASSES[class] or maybe(50, pick, { 0, 5999 }),
      initContainers = maybe(15, function() return { container "init" } end),
      overhead = maybe(10, amounts), nodeSelector = maybe(20, function() return { pool = "a" } end),
      containers = chance(30) and { container "a", container "b" } or { container "a" } } }
end

-- The pod with some things that may change and some that may not.
local function changed_pod(before)
  local after = kube.copy(before)
  local new = pod()
  local own, theirs = after.metadata.labels or {}, new.metadata.labels or {}
  for _, name in ipairs { QOS, PRIORITY, QUOTAS .. "preemptible", QUOTAS .. "name", "app" } do
    if chance(30) then own[name] = theirs[name] end
  end
  after.metadata.labels = some(own)
  if chance(20) then after.spec.priority = new.spec.priority end
  if chance(10) then after.spec.containers = new.spec.containers end
  return after
end

-- ---------------------------------------------------------------- quotas

local function quota_amounts(most)
  local out = { cpu = tostring(random(0, most)) }
  if chance(85) then out.memory = random(0, most) .. "Gi" end
  if chance(10) then out["example.com/gpu"] = tostring(random(0, 4)) end
  if chance(3) then out.cpu = "-1" end
  return out
end

local function quota(name, parents)
  local max = quota_amounts(100)
  local min = {}
  for resource, n in pairs(max) do
    if chance(85) then min[resource] = chance(90) and "1" or n end
  end
  if chance(5) then min["example.com/other"] = "1" end
  local parent = maybe(80, pick, parents)
  return { apiVersion = "scheduling.sigs.k8s.io/v1alpha1", kind = "ElasticQuota",
    metadata = { name = name, namespace = NS, labels = some {
      [QUOTAS .. "parent"] = parent, [QUOTAS .. "is-parent"] = maybe(60, pick, { "true", "true", "false" }),
      [QUOTAS .. "tree-id"] = maybe(10, pick, { "tree", "other" }),
      [QUOTAS .. "is-root"] = maybe(10, pick, { "true" }),
      [QUOTAS .. "allow-force-update"] = maybe(10, pick, { "true" }) },
      annotations = some {
        [QUOTAS .. "namespaces"] = maybe(15, function() return kube.encode { pick(TEAMS) } end),
        [QUOTAS .. "max-strict-check-resource-keys"] = maybe(15, pick,
          { '["cpu"]', "no list", '["memory"]' }),
        [QUOTAS .. "shared-weight"] = maybe(30, pick, { '{"cpu":"1"}', '{"cpu":"1","memory":"1"}',
          '{"cpu":-1}', '{"example.com/x":2}', "no json", "" }) } },
    spec = { min = min, max = max } }
end

local function descends(name, from, all)
  while name and all[name] do
    if name == from then return true end
    name = (all[name].metadata.labels or {})[QUOTAS .. "parent"]
  end
  return false
end

-- The quota with some changes. Its parent stays out of its descendants: ours refuses rings.
local function changed_quota(before, all, parents)
  local after, new = kube.copy(before), quota(before.metadata.name, parents)
  after.metadata.managedFields = nil
  local own, theirs = after.metadata.labels or {}, new.metadata.labels or {}
  after.metadata.labels, after.metadata.annotations = own, after.metadata.annotations or {}
  for _, name in ipairs { "is-parent", "tree-id", "is-root", "allow-force-update", "parent" } do
    local free = name ~= "parent" or not descends(theirs[QUOTAS .. name], before.metadata.name, all)
    if chance(name == "tree-id" and 5 or 15) and free then own[QUOTAS .. name] = theirs[QUOTAS .. name] end
  end
  for name, text in pairs(new.metadata.annotations or {}) do
    if chance(30) then after.metadata.annotations[name] = text end
  end
  if chance(40) then after.spec.max = new.spec.max end
  if chance(40) then after.spec.min = new.spec.min end
  if chance(30) then
    after.spec.max.cpu, after.spec.min.cpu = tostring(random(0, 100)), tostring(random(0, 8))
  end
  if chance(20) then after.status = { used = { cpu = tostring(random(0, 60)) } } end
  return after
end

-- ---------------------------------------------------------------- the configuration and nodes

local NUMBERS = {
  ["colocation-config"] = { "metricAggregateDurationSeconds", "cpuReclaimThresholdPercent",
    "memoryReclaimThresholdPercent", "degradeTimeMinutes", "midCPUThresholdPercent",
    "batchCPUThresholdPercent", "midUnallocatedPercent", "resourceDiffThreshold" },
  ["resource-threshold-config"] = { "cpuSuppressThresholdPercent", "cpuSuppressMinPercent",
    "cpuEvictBEUsageThresholdPercent", "cpuEvictTimeWindowSeconds", "allocatableEvictPriorityThreshold",
    "memoryEvictThresholdPercent+memoryEvictLowerPercent",
    "cpuEvictBESatisfactionUpperPercent+cpuEvictBESatisfactionLowerPercent",
    "cpuAllocatableEvictThresholdPercent+cpuAllocatableEvictLowerPercent" },
  ["cpu-burst-config"] = { "cpuBurstPercent", "cfsQuotaBurstPercent", "cfsQuotaBurstPeriodSeconds",
    "sharePoolThresholdPercent" },
  ["system-config"] = { "minFreeKbytesFactor", "watermarkScaleFactor", "memcgReapBackGround" },
}
local KEYS = { "colocation-config", "resource-threshold-config", "cpu-burst-config", "system-config",
  "resource-qos-config" }

local function numbers(key)
  local out = {}
  for _, name in ipairs(NUMBERS[key]) do
    local first, second = name:match "^(.-)%+(.*)$"
    if chance(25) then
      out[first or name] = name == "resourceDiffThreshold" and pick { 0.1, 1, 0, 1.5 }
        or pick { 0, 1, 50, 60, 99, 100, 101, 400, 401, 8000, -1, -2 }
      if second then out[second] = maybe(80, pick, { 0, 40, 50, 60, 101 }) end
      if second and chance(5) then out[first] = nil end
    end
  end
  return out
end

local function network()
  local texts = chance(50)
  local function one() return maybe(40, pick, texts and { "10M", "20", "50", "x" } or { 0, 30, 60, 101 }) end
  return kube.object { enable = true, ingressRequest = one(), egressRequest = one(), ingressLimit = one() }
end

local function qos_strategy()
  local out = {}
  for _, class in ipairs { "lsrClass", "lsClass", "beClass" } do
    out[class] = maybe(40, function()
      return kube.object {
        cpuQOS = maybe(50, function() return { groupIdentity = random(-2, 3) } end),
        memoryQOS = maybe(50, function()
          return { wmarkRatio = random(-1, 101), priority = pick { 0, 12, 13 },
            wmarkMinAdj = pick { -26, -25, 50 } }
        end),
        resctrlQOS = maybe(30, function()
          return { catRangeStartPercent = random(0, 100), catRangeEndPercent = random(0, 101) }
        end),
        networkQOS = maybe(30, network) }
    end)
  end
  return out
end

local function node_selector()
  local expressions = maybe(40, function()
    local operator = pick { "In", "In", "NotIn", "Exists" }
    return { { key = pick { "pool", "zone" }, operator = operator,
      values = operator ~= "Exists" and { pick { "a", "b" }, maybe(50, pick, { "c" }) } or nil } }
  end)
  return kube.object { matchLabels = maybe(expressions and 30 or 95, function()
    return { [pick { "pool", "zone" }] = pick { "a", "b" } }
  end), matchExpressions = expressions }
end

local function config_text(key)
  local function strategy()
    if key == "resource-qos-config" then return qos_strategy() end
    local out = numbers(key)
    -- v1.8.0 crashes at an entry of the system without any setting.
    if key == "system-config" then out.totalNetworkBandwidth = pick { "0", "70", "1G" } end
    return out
  end
  local entries = {}
  for i = 1, maybe(50, random, 1, 3) or 0 do
    local entry = strategy()
    entry.name, entry.nodeSelector = maybe(90, pick, { "e" .. i }), maybe(95, node_selector)
    entries[i] = entry
  end
  local colocation = key == "colocation-config"
  local doc = colocation and strategy() or { clusterStrategy = maybe(70, function()
    return kube.object(strategy())
  end) }
  doc[colocation and "nodeConfigs" or "nodeStrategies"] = some(entries)
  return chance(3) and "no json" or kube.encode(kube.object(doc))
end

local function config_map()
  local data = {}
  for _, key in ipairs(KEYS) do data[key] = maybe(35, config_text, key) end
  return { apiVersion = "v1", kind = "ConfigMap",
    metadata = { name = "slo-controller-config", namespace = NS }, data = kube.object(data) }
end

local function ratios()
  return pick { '{"cpu":1.5}', '{"cpu":2,"memory":1.25}', '{"memory":0.5}', '{"cpu":1.3333}', "no json", "{}",
    '{"cpu":"2"}' }
end

local function node()
  return { apiVersion = "v1", kind = "Node", metadata = { name = "n1", labels = some(labels()),
      annotations = some {
        [NODES .. "resource-amplification-ratio"] = maybe(70, ratios),
        [NODES .. "raw-allocatable"] = maybe(50, pick,
          { '{"cpu":"8","memory":"16Gi"}', '{"cpu":"7900m"}', "x" }) } },
    status = kube.object { allocatable = maybe(95, function()
      return { cpu = pick { "8", "16", "7900m", "8001m" }, pods = "110",
        memory = maybe(90, pick, { "16Gi", "17179869185" }) }
    end) } }
end

-- ---------------------------------------------------------------- both of them

-- A directory with a certificate of our own: nobody but the spec calls these webhooks.
local function certificate()
  local dir = process.tmpname ".certs"
  local out, code = process.run(("mkdir -p %s && cd %s && openssl req -x509 -newkey ec -pkeyopt \z
    ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=127.0.0.1 -keyout tls.key -out tls.crt 2>&1")
    :format(dir, dir))
  assert(code == 0, out)
  return dir
end

local PROGRAM = originals.program("koordmanager", "koord-manager")
if not PROGRAM then return end

servers.only_real(function(name, start)
  describe("the webhooks of koord-manager on " .. name, function()
    local server, client, original, ours, address, port

    local function add_pod(namespace, pod_name, quota_name)
      client:create { apiVersion = "v1", kind = "Pod", metadata = { name = pod_name, namespace = namespace,
        labels = { [QUOTAS .. "name"] = quota_name } }, spec = { containers = { { name = "c",
        image = "none" } } } }
    end

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      math.randomseed(1)
      for i, one in ipairs { NS, table.unpack(TEAMS) } do
        client:create { kind = "v1/Namespace", name = one,
          labels = { app = i % 2 == 0 and "x" or "y", zone = "x" } }
      end
      for class, value in pairs(CLASSES) do
        client:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = class, value = value }
      end
      for _, kind in ipairs { "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration" } do
        -- koord-manager waits for its configurations; empty ones cause no calls by the API server.
        client:create { kind = HOOKS .. kind, name = "koordinator-" .. kind:match("^%u%l+"):lower()
          .. "-webhook-configuration" }
      end
      for i = 1, 6 do client:create(profile(i)) end
      local amount = { cpu = "8", memory = "16Gi", pods = "110" }
      policies.add_node(client, "n1", amount, { labels = { pool = "a" } })
      policies.add_node(client, "n2", amount, { labels = { pool = "a", zone = "b" } })
      client:create { kind = QUOTA_PROFILE, namespace = NS, name = "pool",
        labels = { [QUOTAS .. "tree-id"] = "tree" },
        spec = { quotaName = "pool-root", nodeSelector = { matchLabels = { pool = "a" } } } }
      client:create { kind = QUOTA, namespace = NS, name = PROBE }
      add_pod("default", "seen-0", PROBE)
      port = servers.free_port()
      original = process.spawn { "env", "KUBECONFIG=" .. server.kubeconfig, "WEBHOOK_HOST=127.0.0.1",
        "WEBHOOK_PORT=" .. port, "WEBHOOK_CERT_DIR=" .. process.tmpname ".certs", PROGRAM,
        "--controllers=nodemetric", "--feature-gates=NodeMutatingWebhook=true,NodeValidatingWebhook=true,\z
          ConfigMapValidatingWebhook=true,MultiQuotaTree=true", "--enable-leader-election=false",
        "--enable-pprof=false", "--metrics-addr=127.0.0.1:0", "--health-probe-addr=127.0.0.1:0", "-v=4",
        "--vmodule=quota_handler=5", name = "koord-manager" }
      ours = controller.start(server, "controllers/koordinator/colocationprofile.lua",
        "controllers/koordinator/quotawebhooks.lua", "--webhook-listen", "127.0.0.1:0", "--webhook-cert-dir",
        certificate(), "--metrics-bind-address", "127.0.0.1:0")
      ours:wait_for_log(PATIENCE, "serving webhooks")
      address = ours:log():match "serving webhooks address=(%S+)"
      wait.until_true(PATIENCE, "koord-manager's webhooks", function()
        local _, code = process.run(("curl -sk --max-time 5 https://127.0.0.1:%d/healthz"):format(port))
        if code == 0 then return true end
        error(original:log(), 0)
      end)
    end)
    lazy_teardown(function()
      if original then original:stop(30) end
      if ours then controller.finish(ours) end
      if server then server:stop() end
    end)

    -- The answer of the original, and those of these webhooks of ours.
    local function ask(request, path, ...)
      local questions = { { url = ("https://127.0.0.1:%d/%s"):format(port, path), request = request } }
      for _, hook in ipairs { ... } do
        questions[#questions + 1] = { url = ("https://%s/%s"):format(address, hook), request = request }
      end
      return table.unpack(reviews.ask(questions))
    end

    -- How many changes of quotas the caches have shown: koord-manager's, whose log has each, and ours.
    local function shown()
      local _, theirs = original:log():gsub("OnQuota%a+ success", "")
      local mine = controller.metrics(ours):match(('\nkubelua_informer_events_total{kind="%s"} (%%d+)')
        :format(QUOTA:gsub("%p", "%%%0")))
      return theirs, tonumber(mine)
    end

    -- koord-manager has seen what came before `n` pods of the probe if it refuses to delete that for them.
    local function seen(n)
      local answer = ask({ operation = "DELETE", kind = QUOTA, old = client:get(QUOTA, NS, PROBE) },
        VALIDATES_QUOTA)
      return reviews.refusal(answer):find(("has %d child pods"):format(n), 1, true)
    end

    local function why(answer) return reviews.refusal(answer) or "allowed" end

    -- What differs of a review that validates, or nil; and whether both allow.
    local function judged(request, path, ...)
      local theirs, mine, other = ask(request, path, ...)
      if other and mine.allowed then mine = other end
      if theirs.allowed == mine.allowed then return nil, mine.allowed end
      return ("%s: there %s, here %s; %s"):format(request.operation, why(theirs), why(mine),
        kube.encode { object = request.object, old = request.old })
    end

    -- What differs of a review that mutates, or nil; the object as the original changes it, nil: refused.
    local function mutated(request, path, ...)
      local object, mine = request.object, request.object
      local theirs = ask(request, path)
      local refused = reviews.refusal(theirs)
      for _, hook in ipairs { ... } do
        local answer = reviews.ask { { url = ("https://%s/%s"):format(address, hook),
          request = kube.merge(request, { object = mine }) } }[1]
        if not answer.allowed then
          if refused then return nil, nil end
          return ("there allowed, here %s; %s"):format(why(answer), kube.encode(object)), nil
        end
        mine = reviews.patched(mine, answer)
      end
      if refused then return ("there %s, here allowed; %s"):format(refused, kube.encode(object)), nil end
      local there = reviews.patched(object, theirs)
      local a, b = reviews.plain(there), reviews.plain(mine)
      if pcall(assert.same, a, b) then return nil, there end
      return ("there %s, here %s"):format(kube.encode(a), kube.encode(b)), there
    end

    local wrong, allowed, refused
    before_each(function() wrong, allowed, refused = {}, 0, 0 end)

    local function note(seed, said, ok)
      if ok then allowed = allowed + 1 else refused = refused + 1 end
      if said and #wrong < TOLD then wrong[#wrong + 1] = ("seed %d: %s"):format(seed, said) end
      return not said and ok
    end

    local function check()
      print(("%d allowed, %d refused"):format(allowed, refused))
      assert.equal("", table.concat(wrong, "\n"))
      assert.is_true(allowed > CASES // 10 and refused > CASES // 20)
    end

    it("answer as ours about quotas, and pods of them", function()
      local all, parents, made = {}, { "pool-root", "koordinator-root-quota", "absent" }, 0
      local pods = 1
      wait.until_true(PATIENCE, "koord-manager sees the probe", function() return seen(pods) end)
      local there, here = shown()
      -- koord-manager counts what it allowed at once, and again when its cache shows it.
      local function known(object)
        all[object.metadata.name] = object
        there, here = there + 1, here + 1
        wait.until_true(PATIENCE, "both caches show " .. object.metadata.name, function()
          local theirs, mine = shown()
          return theirs >= there and mine >= here
        end)
      end
      local function create(seed, object)
        local request = { operation = "CREATE", kind = QUOTA, object = object }
        local said, changed = mutated(request, "mutate-scheduling-sigs-k8s-io-v1alpha1-elasticquota",
          "elasticquota-defaults")
        if not note(seed, said, changed ~= nil) then return end
        local ok
        said, ok = judged(kube.merge(request, { object = changed }),
          VALIDATES_QUOTA, "elasticquota-topology")
        if note(seed, said, ok) then known(client:create(changed)) end
      end
      local function names()
        local list = {}
        for one in pairs(all) do list[#list + 1] = one end
        table.sort(list)
        return list
      end
      local function change(seed)
        local before = client:get(QUOTA, NS, pick(names()))
        local after = changed_quota(kube.copy(before), all, parents)
        local said, ok = judged({ operation = "UPDATE", kind = QUOTA, object = after,
          old = kube.copy(before) }, VALIDATES_QUOTA, "elasticquota-topology")
        if not note(seed, said, ok) then return end
        after = client:update(after)
        if after.metadata.resourceVersion ~= before.metadata.resourceVersion then known(after) end
      end
      local function remove(seed)
        local before = client:get(QUOTA, NS, pick(names()))
        local said, ok = judged({ operation = "DELETE", kind = QUOTA, old = kube.copy(before) },
          VALIDATES_QUOTA, "elasticquota-topology")
        if note(seed, said, ok) then
          client:delete(QUOTA, NS, before.metadata.name)
          known(before)
          all[before.metadata.name] = nil
        end
      end
      local function bind()
        add_pod(pick(TEAMS), "bound-" .. made, pick(names()))
        add_pod("default", "seen-" .. pods, PROBE)
        pods = pods + 1
        wait.until_true(PATIENCE, "koord-manager sees the pod", function() return seen(pods) end)
      end
      for seed = 1, CASES do
        math.randomseed(seed)
        made = made + 1
        if #names() < 3 or chance(35) then
          local object = quota(chance(90) and "q" .. made
            or pick { "q1", "pool-root", "koordinator-default-quota" }, parents)
          if seed == 1 then
            object = kube.merge(quota("pool-root", { "koordinator-root-quota" }), { metadata = {
              labels = { [QUOTAS .. "tree-id"] = "tree", [QUOTAS .. "is-parent"] = "true" } } })
          end
          create(seed, object)
          if all[object.metadata.name] then parents[#parents + 1] = object.metadata.name end
        elseif chance(65) then
          change(seed)
        elseif chance(70) then
          remove(seed)
        else
          bind()
        end
      end
      check()
    end)

    it("answer as ours about pods, new and changed", function()
      for seed = 1, CASES do
        math.randomseed(seed)
        local before = pod()
        local request = { operation = "CREATE", kind = POD, object = before }
        local said, changed = mutated(request, "mutate-pod", "koordinator-pod-mutating", "elasticquota-trees")
        note(seed, said, changed ~= nil)
        for _, object in ipairs { before, changed } do
          note(seed, judged({ operation = "CREATE", kind = POD, object = object }, "validate-pod",
            "koordinator-pod-validating", "elasticquota-pods"))
        end
        local update = { operation = "UPDATE", kind = POD, object = changed_pod(before), old = before }
        note(seed, judged(update, "validate-pod", "koordinator-pod-validating", "elasticquota-pods"))
        -- Ours is not called for changed pods.
        said, changed = mutated(update, "mutate-pod")
        note(seed, said, changed ~= nil)
      end
      check()
    end)

    it("answer as ours about the configuration", function()
      for seed = 1, CASES do
        math.randomseed(seed)
        local old, new = config_map(), config_map()
        for _, key in ipairs(KEYS) do
          if chance(30) then new.data[key] = old.data[key] end
        end
        -- v1.8.0 reads the system's settings with those of QoS, absent or not (docs/koordinator.md).
        if new.data[KEYS[5]] then new.data[KEYS[4]] = new.data[KEYS[4]] or "{}" end
        local request = chance(50) and { operation = "UPDATE", kind = MAP, object = new, old = old }
          or { operation = "CREATE", kind = MAP, object = new }
        note(seed, judged(request, "validate-configmap", "koordinator-config-validating"))
      end
      check()
    end)

    it("answer as ours about nodes", function()
      local map = config_map()
      map.data = { ["colocation-config"] = kube.encode { nodeConfigs = {
        { name = "a", nodeSelector = { matchLabels = { app = "x" } } },
        { name = "b", nodeSelector = { matchLabels = { zone = "y" } } } } } }
      client:create(map)
      local function labelled(by) return { metadata = { name = "n1", labels = by } } end
      local refused_by_both = { operation = "UPDATE", kind = NODE,
        object = labelled { app = "x", zone = "y" }, old = labelled() }
      wait.until_true(PATIENCE, "both caches show the configuration", function()
        local theirs, mine = ask(refused_by_both, "validate-node", "koordinator-node-validating")
        return not theirs.allowed and not mine.allowed
      end)
      for seed = 1, CASES do
        math.randomseed(seed)
        local old, new = node(), node()
        if chance(50) then new.status = old.status end
        local said, changed = mutated({ operation = "UPDATE", subresource = "status", kind = NODE,
          object = new, old = old }, "mutate-node-status", "koordinator-node-amplification")
        note(seed, said, changed ~= nil)
        note(seed, judged({ operation = "UPDATE", kind = NODE, object = new, old = old }, "validate-node",
          "koordinator-node-validating"))
      end
      check()
    end)
  end)
end)
