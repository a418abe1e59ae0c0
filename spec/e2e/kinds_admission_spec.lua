-- kinds_admission_spec.lua - the admission plugins of kube-apiserver: Priority, RuntimeClass,
-- DefaultStorageClass, LimitRanger, ResourceQuota, TaintNodesByCondition. Each has its own namespace, since
-- the real server learns late about deleted objects.
-- not in tsan: one request after the other

local both = require "support.both"
local json = require "dkjson"
local servers = require "support.servers"
local wait = require "support.wait"

local function container(resources) return { name = "c", image = "i", resources = resources } end

-- Pods p1, p2, ... of a namespace: pod(what, code, spec) adds the row.
local function pods_of(ns, rows)
  local n = 0
  return function(what, code, spec)
    n = n + 1
    rows[#rows + 1] = { what, "POST", "/api/v1/namespaces/" .. ns .. "/pods",
      { metadata = { name = "p" .. n },
      spec = both.merge({ containers = { container() } }, spec) }, code }
  end
end

-- The answers of one server.
local function ask(s, ...) return both.ask(s, { { "", ... } })[1] end

local CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
local RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
local STORAGE = "/apis/storage.k8s.io/v1/storageclasses"

-- A pod of the namespace "default" is accepted once the plugins know the objects that it names.
local function wait_for_pod(s, spec)
  wait.until_true(30, "a class to be known", function()
    return ask(s, "POST", "/api/v1/namespaces/default/pods?dryRun=All", { metadata = { name = "known" },
      spec = both.merge({ containers = { container() } }, spec) }).code == 201
  end)
end

both.describe("priorities of pods", function(ns)
  local rows, class = {}, "high-" .. ns
  local pod = pods_of(ns, rows)
  pod("no class", 201)
  pod("no such class", 403, { priorityClassName = "none-" .. ns })
  pod("a class of every cluster", 201, { priorityClassName = "system-node-critical" })
  pod("a priority without a class", 403, { priority = 5 })
  pod("priority 0 without a class", 201, { priority = 0 })
  pod("a class", 201, { priorityClassName = class })
  pod("a class and its priority", 201, { priorityClassName = class, priority = 1000 })
  pod("a class and another priority", 403, { priorityClassName = class, priority = 7 })
  pod("a class and another policy", 403,
    { priorityClassName = class, preemptionPolicy = "PreemptLowerPriority" })
  rows[#rows + 1] = { "a pod keeps its priority", "PATCH", "/api/v1/namespaces/" .. ns .. "/pods/p6",
    { metadata = { labels = { a = "b" } }, spec = { priority = json.null } }, 200 }
  rows[#rows + 1] = { "the class goes", "DELETE", CLASSES .. "/" .. class, nil, 200 }
  return rows
end, function(s, ns)
  assert.equal(201, ask(s, "POST", CLASSES, { metadata = { name = "high-" .. ns }, value = 1000,
    preemptionPolicy = "Never" }).code)
  wait_for_pod(s, { priorityClassName = "high-" .. ns })
end)

both.describe("runtime classes of pods", function(ns)
  local rows, class = {}, "runtime-" .. ns
  local pod = pods_of(ns, rows)
  pod("no such class", 403, { runtimeClassName = "none-" .. ns })
  pod("a class", 201, { runtimeClassName = class })
  pod("its selector and another", 201, { runtimeClassName = class, nodeSelector = { x = "y" } })
  pod("a toleration that it has", 201, { runtimeClassName = class,
    tolerations = { { key = "k", operator = "Exists" } } })
  pod("another value of its selector", 403, { runtimeClassName = class, nodeSelector = { a = "c" } })
  pod("its overhead", 201, { runtimeClassName = class, overhead = { cpu = "100m" } })
  pod("another overhead", 403, { runtimeClassName = class, overhead = { cpu = "200m" } })
  pod("an overhead without a class", 403, { overhead = { cpu = "200m" } })
  rows[#rows + 1] = { "the class goes", "DELETE", RUNTIMES .. "/" .. class, nil, 200 }
  return rows
end, function(s, ns)
  assert.equal(201, ask(s, "POST", RUNTIMES, { metadata = { name = "runtime-" .. ns }, handler = "h",
    overhead = { podFixed = { cpu = "100m" } }, scheduling = { nodeSelector = { a = "b" },
      tolerations = { { key = "k", operator = "Exists" } } } }).code)
  wait_for_pod(s, { runtimeClassName = "runtime-" .. ns })
end)

local function ranges(what, limits, define)
  both.describe("limits: " .. what, function(ns)
    local rows = { { "the range", "POST", "/api/v1/namespaces/" .. ns .. "/limitranges",
      { metadata = { name = "l" }, spec = { limits = limits } }, 201 } }
    local add = pods_of(ns, rows)
    define(function(name, code, requests, most)
      add(name, code, { containers = { container { requests = requests, limits = most } } })
    end, add, ns, rows)
    return rows
  end)
end

ranges("what is added", { { type = "Container", default = { cpu = "500m", memory = "1Gi" },
  defaultRequest = { cpu = "100m" } } }, function(pod, add)
  pod("nothing is said", 201)
  pod("a request is said", 201, { cpu = "1m" })
  pod("a limit is said", 201, nil, { cpu = "1" })
  add("two containers and one before", 201, { containers = { container(), { name = "d", image = "i" } },
    initContainers = { { name = "i", image = "i" } } })
end)
ranges("at least", { { type = "Container", min = { cpu = "100m" } } }, function(pod, add)
  pod("nothing is said", 201)
  pod("a smaller request", 403, { cpu = "50m" })
  pod("a smaller limit", 403, nil, { cpu = "50m" })
  pod("enough", 201, { cpu = "100m" })
  add("two smaller requests", 403, { containers = { container { requests = { cpu = "1m" } },
    { name = "d", image = "i", resources = { requests = { cpu = "2m" } } } } })
end)
ranges("at most", { { type = "Container", max = { cpu = "100m" } } }, function(pod)
  pod("nothing is said", 201)
  pod("a larger limit", 403, nil, { cpu = "200m" })
  pod("a larger request", 422, { cpu = "200m" })
  pod("just so", 201, nil, { cpu = "100m" })
end)
ranges("the ratio", { { type = "Container", maxLimitRequestRatio = { cpu = "2" } } }, function(pod)
  pod("nothing is said", 403)
  pod("too much", 403, { cpu = "100m" }, { cpu = "300m" })
  pod("just so", 201, { cpu = "100m" }, { cpu = "200m" })
  pod("no limit", 403, { cpu = "200m" })
end)
ranges("of whole pods", { { type = "Pod", max = { cpu = "1" }, min = { memory = "1Mi" } } },
  function(pod, add)
  pod("nothing is said", 403)
  pod("just so", 201, { memory = "1Mi" }, { cpu = "1" })
  add("two together too much", 403, { containers = {
    container { requests = { memory = "1Mi" }, limits = { cpu = "600m" } },
    { name = "d", image = "i", resources = { limits = { cpu = "600m" } } } } })
  add("one after the other", 201, { containers = {
    container { requests = { memory = "1Mi" }, limits = { cpu = "600m" } } }, initContainers = {
    { name = "d", image = "i", resources = { limits = { cpu = "600m" } } } } })
end)
ranges("of claims", { { type = "PersistentVolumeClaim", min = { storage = "1Gi" },
  max = { storage = "2Gi" } } },
  function(_, _, ns, rows)
    for i, size in ipairs { "1Mi", "3Gi", "1Gi", "2Gi" } do
      rows[#rows + 1] = { size, "POST", "/api/v1/namespaces/" .. ns .. "/persistentvolumeclaims",
        { metadata = { name = "c" .. i }, spec = { accessModes = { "ReadWriteOnce" }, storageClassName = "",
          resources = { requests = { storage = size } } } }, i < 3 and 403 or 201 }
    end
  end)

both.describe("quotas", function(ns)
  local rows = {}
  local space = "/api/v1/namespaces/" .. ns
  local pod = pods_of(ns, rows)
  local function add(...) rows[#rows + 1] = { ... } end
  local hard = { pods = "2", ["requests.cpu"] = "1", ["count/configmaps"] = "1", services = "5",
    ["services.nodeports"] = "1", ["requests.storage"] = "2Gi", ["count/deployments.apps"] = "0" }
  local used = {}
  for name in pairs(hard) do used[name] = "0" end
  local function cpu(n) return { containers = { container { requests = { cpu = n } } } } end
  add("the quota", "POST", space .. "/resourcequotas", { metadata = { name = "q" }, spec = { hard = hard } },
    201)
  add("what is used so far", "PATCH", space .. "/resourcequotas/q/status",
    { status = { hard = hard, used = used } },
    200)
  pod("a pod must say what is limited", 403)
  pod("a pod", 201, cpu "600m")
  add("what the pod uses", "GET", space .. "/resourcequotas/q", nil, 200)
  pod("too much", 403, cpu "600m")
  pod("the rest", 201, cpu "400m")
  pod("too much and too many", 403, cpu "100m")
  local function map(name, code, more)
    add("map " .. name, "POST", space .. "/configmaps" .. (more or ""), { metadata = { name = name } }, code)
  end
  map("dry", 201, "?dryRun=All")
  map("a", 201)
  map("b", 403)
  map("a", 403)
  add("no deployments", "POST", "/apis/apps/v1/namespaces/" .. ns .. "/deployments",
    { metadata = { name = "d" },
    spec = { selector = { matchLabels = { a = "b" } }, template = { metadata = { labels = { a = "b" } },
      spec = { containers = { container() } } } } }, 403)
  local function service(name, kind, ports, code)
    local list = {}
    for i = 1, ports do list[i] = { name = "p" .. i, port = i } end
    add(("service %s with %d ports"):format(kind, ports), "POST", space .. "/services",
      { metadata = { name = name },
      spec = { type = kind, ports = list } }, code)
  end
  service("s1", "ClusterIP", 2, 201)
  service("s2", "NodePort", 2, 403)
  service("s3", "NodePort", 1, 201)
  local function claim(name, size, code)
    add("claim of " .. size, "POST", space .. "/persistentvolumeclaims", { metadata = { name = name },
      spec = { accessModes = { "ReadWriteOnce" }, storageClassName = "",
        resources = { requests = { storage = size } } } }, code)
  end
  claim("c1", "1536Mi", 201)
  claim("c2", "1Gi", 403)
  add("what is used in the end", "GET", space .. "/resourcequotas/q", nil, 200)
  return rows
end)

describe("the embedded server beside its garbage collector", function()
  local s
  lazy_setup(function() s = servers.embedded { collects = true } end)
  lazy_teardown(function() s:stop() end)

  it("counts what quotas limit, as kube-controller-manager does", function()
    local space = "/api/v1/namespaces/counted"
    ask(s, "POST", "/api/v1/namespaces", { metadata = { name = "counted" } })
    ask(s, "POST", space .. "/configmaps", { metadata = { name = "a" } })
    ask(s, "POST", space .. "/resourcequotas", { metadata = { name = "q" },
      spec = { hard = { configmaps = "2", pods = "1" } } })
    local function status() return ask(s, "GET", space .. "/resourcequotas/q").body.status end
    assert.same({ hard = { configmaps = "2", pods = "1" }, used = { configmaps = "1", pods = "0" } },
      status())
    assert.equal(201, ask(s, "POST", space .. "/configmaps", { metadata = { name = "b" } }).code)
    assert.equal(403, ask(s, "POST", space .. "/configmaps", { metadata = { name = "c" } }).code)
    ask(s, "DELETE", space .. "/configmaps/a")
    assert.equal("1", status().used.configmaps)
    assert.equal(201, ask(s, "POST", space .. "/configmaps", { metadata = { name = "c" } }).code)
  end)

  it("counts the pods that a quota's scopes mean", function()
    local space = "/api/v1/namespaces/scoped"
    ask(s, "POST", "/api/v1/namespaces", { metadata = { name = "scoped" } })
    ask(s, "POST", space .. "/resourcequotas", { metadata = { name = "q" }, spec = { hard = { pods = "1" },
      scopes = { "BestEffort" } } })
    local function pod(name, resources)
      return ask(s, "POST", space .. "/pods", { metadata = { name = name },
        spec = { containers = { container(resources) } } }).code
    end
    assert.equal(201, pod("a", { requests = { cpu = "1" } }))
    assert.equal(201, pod "b")
    assert.equal(403, pod "c")
    assert.equal(201, pod("d", { requests = { cpu = "1" } }))
  end)

  it("gives claims the default class", function()
    local function class(name, more)
      ask(s, "POST", STORAGE, { metadata = both.merge({ name = name }, more), provisioner = "x" })
    end
    local function claim(name, spec)
      return ask(s, "POST", "/api/v1/namespaces/default/persistentvolumeclaims", { metadata = { name = name },
        spec = both.merge({ accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1" } } },
          spec) }).body.spec.storageClassName
    end
    class "plain"
    assert.is_nil(claim "a")
    class("default", { annotations = { ["storageclass.kubernetes.io/is-default-class"] = "true" } })
    assert.equal("default", claim "b")
    assert.equal("", claim("c", { storageClassName = "" }))
    assert.equal("plain", claim("d", { storageClassName = "plain" }))
  end)

  it("gives pods the priority of the default class", function()
    ask(s, "POST", CLASSES, { metadata = { name = "usual" }, value = 7, globalDefault = true })
    local spec = ask(s, "POST", "/api/v1/namespaces/default/pods", { metadata = { name = "p" },
      spec = { containers = { container() } } }).body.spec
    assert.equal("usual", spec.priorityClassName)
    assert.equal(7, spec.priority)
  end)
end)

both.describe("taints of new nodes", function(ns)
  local nodes, rows = "/api/v1/nodes", {}
  local NOT_READY = "node.kubernetes.io/not-ready"
  local function row(what, method, path, taints, code)
    local name = path:match "/([^/?]+)[^/]*$"
    if method == "POST" then name = ns .. #rows end
    rows[#rows + 1] = { what, method, path, { apiVersion = "v1", kind = "Node", metadata = { name = name },
      spec = { taints = taints } }, code or 201 }
  end
  local one, other = ns .. "0", { { key = "a", value = "b", effect = "NoExecute" } }
  row("none is given", "POST", nodes, nil)
  row("another is given", "POST", nodes, other)
  row("the same is given", "POST", nodes, { { key = NOT_READY, value = "x", effect = "NoSchedule" } })
  row("its key with another effect is given", "POST", nodes, { { key = NOT_READY, effect = "NoExecute" } })
  row("a dry run", "POST", nodes .. "?dryRun=All", nil)
  row("a node is applied", "APPLY", ("%s/%s-a?fieldManager=m"):format(nodes, ns), other)
  row("it is applied again", "APPLY", ("%s/%s-a?fieldManager=m"):format(nodes, ns), other, 200)
  row("one is replaced", "PUT", nodes .. "/" .. one, other, 200)
  row("one loses all", "PATCH", nodes .. "/" .. one, json.null, 200)
  for _, name in ipairs { one, ns .. "1", ns .. "2", ns .. "3", ns .. "-a" } do
    rows[#rows + 1] = { name:gsub(ns, "NS") .. " goes", "DELETE", nodes .. "/" .. name, nil, 200 }
  end
  return rows
end)
