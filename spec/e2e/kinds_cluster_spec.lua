-- kinds_cluster_spec.lua - defaults and rules of cluster kinds: nodes, namespaces, classes, limits, quotas,
-- leases, webhooks; autoscalers.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local wait = require "support.wait"

local adder = both.adder

both.describe("limits", function(ns)
  local rows = {}
  local base = "/api/v1/namespaces/" .. ns
  local range = adder(rows, "LimitRange", base .. "/limitranges")
  local function add(what, limit, code) range(what, { spec = { limits = { limit } } }, code) end
  local function container(what, more, code) add(what, both.merge({ type = "Container" }, more), code) end
  container("good", { max = { cpu = "2" }, min = { cpu = "1" }, default = { cpu = "1500m" },
    defaultRequest = { cpu = "1200m" } }, 201)
  range("no limits", { spec = {} }, 201)
  add("no type", { max = { cpu = "2" } })
  add("a type", { type = "A_", max = { cpu = "2" } })
  add("another type", { type = "Foo", max = { cpu = "2" } })
  add("a type of others", { type = "a.b/Foo", max = { ["a.b/cpu"] = "2" } }, 201)
  add("a resource of others", { type = "a.b/Foo", max = { foo = "2" } })
  range("a type twice",
    { spec = { limits = { { type = "Container", max = { cpu = "2" } },
    { type = "Container", max = { cpu = "2" } } } } })
  add("defaults of pods", { type = "Pod", default = { cpu = "2" }, defaultRequest = { cpu = "1" } })
  container("the wrong order",
    { max = { cpu = "1" }, min = { cpu = "2" }, default = { cpu = "3" }, defaultRequest = { cpu = "4" } })
  container("less than least",
    { min = { cpu = "2" }, default = { cpu = "1" }, defaultRequest = { cpu = "1" } })
  container("more than most", { max = { cpu = "2" }, defaultRequest = { cpu = "3" } })
  container("a ratio", { max = { cpu = "2" }, min = { cpu = "1" }, maxLimitRequestRatio = { cpu = "4" } })
  container("a small ratio", { maxLimitRequestRatio = { cpu = "500m" } })
  container("a resource", { max = { foo = "1" } })
  container("a resource's name", { max = { ["A_"] = "1" } })
  container("huge pages",
    { default = { ["hugepages-2Mi"] = "2Mi" }, defaultRequest = { ["hugepages-2Mi"] = "4Mi" } })
  add("claims", { type = "PersistentVolumeClaim", max = { cpu = "1" } })

  local quotas = base .. "/resourcequotas"
  local quota = adder(rows, "ResourceQuota", quotas)
  local function hard(what, map, code) quota(what, { spec = { hard = map } }, code) end
  hard("good", { cpu = "1", pods = "2", ["requests.memory"] = "1Gi", ["count/jobs.batch"] = "1",
    ["requests.nvidia.com/gpu"] = "1" }, 201)
  quota("nothing", { spec = {} }, 201)
  hard("less than nothing", { cpu = "-1" })
  hard("a half", { pods = "1500m" })
  hard("a name", { ["A_"] = "1" })
  hard("a resource", { ["limits.foo"] = "1" })
  hard("counts of nothing", { ["count/"] = "1" })
  local function scopes(what, list, map, code) quota(what,
    { spec = { hard = map or { pods = "1" }, scopes = list } }, code) end
  scopes("scopes", { "BestEffort", "NotTerminating" }, nil, 201)
  scopes("scopes against each other",
    { "Some", "BestEffort", "NotBestEffort", "Terminating", "NotTerminating" })
  scopes("a scope of pods", { "BestEffort" }, { cpu = "1", services = "1" })
  scopes("a scope of pods twice", { "BestEffort", "BestEffort" }, { cpu = "1", services = "1" })
  scopes("a scope of running pods", { "Terminating" }, { services = "1" })
  local function select(what, list, map, code)
    quota(what, { spec = { hard = map or { pods = "1" }, scopeSelector = { matchExpressions = list } } },
      code)
  end
  select("a class", { { scopeName = "PriorityClass", operator = "In", values = { "a" } } }, nil, 201)
  select("selectors", { { scopeName = "PriorityClass", operator = "In" },
    { scopeName = "Some", operator = "Exists" },
    { scopeName = "BestEffort", operator = "In", values = { "a" } },
      { scopeName = "PriorityClass", operator = "Exists", values = { "x" } },
    { scopeName = "PriorityClass", operator = "Has" } })
  select("selectors against each other", { { scopeName = "Terminating", operator = "Exists" },
    { scopeName = "NotTerminating", operator = "Exists" } }, { services = "2" })
  select("classes of volumes", { { scopeName = "VolumeAttributesClass", operator = "In", values = { "a" } } })
  rows[#rows + 1] = { "a quota", "POST", quotas,
    { metadata = { name = "q" }, spec = { hard = { pods = "1" }, scopes = { "BestEffort" } } }, 201 }
  rows[#rows + 1] = { "other scopes", "PATCH", quotas .. "/q", { spec = { scopes = { "NotBestEffort" } } },
    422 }
  rows[#rows + 1] = { "a quota's use", "PATCH", quotas .. "/q/status",
    { status = { used = { pods = "-1" } } }, 422 }
  return rows
end)

local PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"

local function default(name) return { metadata = { name = name }, value = 7, globalDefault = true } end

both.describe("a default class", function(ns)
  return {
    { "and a second one", "POST", PRIORITIES, default("two-" .. ns), 403 },
    { "deleted", "DELETE", PRIORITIES .. "/" .. ns, nil, 200 },
  }
end, function(s, ns)
  local function code(query, name) return both.ask(s,
    { { "", "POST", PRIORITIES .. query, default(name) } })[1].code end
  wait.until_true(30, "a default class", function() return code("", ns) == 201 end)
  -- kube-apiserver looks into a cache for it
  wait.until_true(30, "the default to be known",
    function() return code("?dryRun=All", "two-" .. ns) == 403 end)
end)

both.describe("classes", function(ns)
  local rows = {}
  local priorities = PRIORITIES
  local priority = adder(rows, "PriorityClass", priorities)
  priority("good", { value = 5 }, 201)
  priority("nothing", {}, 201)
  priority("the most", { value = 1000000000 }, 201)
  priority("more", { value = 1000000001 })
  priority("a policy", { value = 5, preemptionPolicy = "Some" })
  priority("a system's", { metadata = { name = "system-foo" }, value = 5 })
  priority("a system's value", { metadata = { name = "system-node-critical" }, value = 5 })
  rows[#rows + 1] = { "a class", "POST", priorities, { metadata = { name = ns }, value = 7 }, 201 }
  rows[#rows + 1] = { "another value", "PATCH", priorities .. "/" .. ns,
    { value = 8, preemptionPolicy = "Never" }, 422 }
  rows[#rows + 1] = { "a default", "PATCH", priorities .. "/" .. ns, { globalDefault = true }, 200 }
  rows[#rows + 1] = { "the default, deleted", "DELETE", priorities .. "/" .. ns, nil, 200 }

  local runtimes = "/apis/node.k8s.io/v1/runtimeclasses"
  local runtime = adder(rows, "RuntimeClass", runtimes)
  runtime("good", { handler = "h" }, 201)
  runtime("no handler", {})
  runtime("a handler", { handler = "A_" })
  runtime("overhead", { handler = "h", overhead = { podFixed = { foo = "1" } } })
  runtime("scheduling",
    { handler = "h", scheduling = { nodeSelector = { ["a b"] = "c" },
    tolerations = { { key = "a", operator = "Exists",
    value = "x" }, { key = "a", operator = "Exists" }, { key = "a", operator = "Exists" } } } })
  rows[#rows + 1] = { "a runtime", "POST", runtimes, { metadata = { name = ns }, handler = "a" }, 201 }
  rows[#rows + 1] = { "another handler", "PATCH", runtimes .. "/" .. ns, { handler = "b" }, 422 }
  rows[#rows + 1] = { "a runtime, deleted", "DELETE", runtimes .. "/" .. ns, nil, 200 }
  return rows
end)

both.describe("the cluster's own", function(ns)
  local rows = {}
  local function row(...) rows[#rows + 1] = { ... } end
  local base = "/api/v1/namespaces/" .. ns
  local space = adder(rows, "Namespace", "/api/v1/namespaces")
  space("finalizers", { spec = { finalizers = { "bad_%", "foo", "a.b/c", "kubernetes" } } })
  space("a finalizer", { metadata = { name = ns .. "-2" }, spec = { finalizers = { "a.b/c" } } }, 201)
  space("dots", { metadata = { name = "a.b" } })
  row("a label that stays", "PATCH", base,
    { metadata = { labels = { ["kubernetes.io/metadata.name"] = "x" } } }, 200)
  row("a phase", "PATCH", base .. "/status", { status = { phase = "Terminating" } }, 422)

  local nodes = "/api/v1/nodes"
  local node = adder(rows, "Node", nodes)
  node("good", {}, 201)
  node("taints", { spec = { taints = { { key = "a", effect = "Nope" }, { key = "", effect = "NoSchedule" },
    { key = "b", effect = "NoSchedule" }, { key = "b", effect = "NoSchedule" },
      { key = "c", value = "a b", effect = "" } } } })
  node("a range", { spec = { podCIDR = "a" } })
  node("two ranges", { spec = { podCIDRs = { "10.0.0.0/24", "fd00::/64" } } }, 201)
  node("two of a family", { spec = { podCIDRs = { "10.1.0.0/24", "10.2.0.0/24" } } })
  node("capacity", { status = { capacity = { cpu = "-1" } } })
  local one = nodes .. "/" .. ns
  row("a node", "POST", nodes,
    { metadata = { name = ns }, spec = { podCIDR = "10.0.0.0/24", providerID = "x" } }, 201)
  row("another range", "PATCH", one, { spec = { podCIDR = "10.9.0.0/24", podCIDRs = { "10.9.0.0/24" } } },
    422)
  row("another machine", "PATCH", one, { spec = { providerID = "y" } }, 422)
  row("its status", "PATCH", one .. "/status", { status = { capacity = { cpu = "-1" }, addresses = {
    { type = "InternalIP", address = "1.2.3.4" }, { type = "InternalIP", address = "1.2.3.4" } } } }, 422)
  row("a node, deleted", "DELETE", one, nil, 200)

  local leases = "/apis/coordination.k8s.io/v1/namespaces/" .. ns .. "/leases"
  row("a lease", "POST", leases,
    { metadata = { name = "l" }, spec = { holderIdentity = "a", leaseDurationSeconds = 5,
    strategy = "OldestEmulationVersion", preferredHolder = "b" } }, 201)
  row("no time", "PATCH", leases .. "/l", { spec = { leaseDurationSeconds = 0, leaseTransitions = -1 } }, 422)

  local events = "/events.k8s.io/v1/namespaces/" .. ns .. "/events"
  row("an event", "POST", base .. "/events",
    { metadata = { name = "e" }, reason = "R", message = "m", type = "Normal",
    involvedObject = { kind = "Pod", name = "x", namespace = ns } }, 201)
  row("the same by the new API", "GET", "/apis" .. events .. "/e", nil, 200)

  local revisions = "/apis/apps/v1/namespaces/" .. ns .. "/controllerrevisions"
  local revision = adder(rows, "ControllerRevision", revisions)
  revision("less than nothing", { revision = -1, data = { a = 1 } })
  revision("no data", {})
  row("a revision", "POST", revisions, { metadata = { name = "r" }, revision = 1, data = { a = 1 } }, 201)
  row("other data", "PATCH", revisions .. "/r", { revision = 2, data = { a = 2 } }, 422)
  return rows
end)

for _, kind in ipairs { "validating", "mutating" } do
  both.describe(kind .. " webhooks", function()
    local rows = {}
    local path = "/apis/admissionregistration.k8s.io/v1/" .. kind .. "webhookconfigurations?dryRun=All"
    local function hook(more)
      local h = { name = "a.b.c", admissionReviewVersions = { "v1" }, sideEffects = "None",
        clientConfig = { url = "https://x.y/z" },
        rules = { { operations = { "CREATE" }, apiGroups = { "none" }, apiVersions = { "v1" },
          resources = { "nones" } } } }
      for key, value in pairs(more) do h[key] = value or nil end
      return h
    end
    local function add(what, more, code)
      rows[#rows + 1] = { what, "POST", path,
        { metadata = { name = ("w%d"):format(#rows) }, webhooks = { hook(more) } }, code or 422 }
    end
    local function rule(what, more, code) add(what, { rules = { more } }, code) end
    local function client(what, more, code) add(what, { clientConfig = more }, code) end
    add("good", {}, 201)
    add("no rules", { rules = false }, 201)
    add("a short name", { name = "a" })
    add("a name", { name = "A_.b.c" })
    add("no name", { name = false })
    add("no versions", { admissionReviewVersions = false })
    add("other versions", { admissionReviewVersions = { "v2" } })
    add("odd versions", { admissionReviewVersions = { "v1", "v1", "V_" } })
    add("no word of effects", { sideEffects = false })
    add("effects", { sideEffects = "Some" })
    add("policies", { failurePolicy = "Some", matchPolicy = "Some" })
    add("a long time", { timeoutSeconds = 31 })
    add("no time", { timeoutSeconds = 0 })
    add("no client", { clientConfig = false })
    client("an empty client", {})
    client("two clients", { url = "https://x", service = { name = "a", namespace = "b" } })
    client("no TLS", { url = "http://x" })
    client("more than a URL should have", { url = "https://u:p@x/y?a=b#c" })
    client("no host", { url = "https:///y" })
    client("no URL", { url = "x y:" })
    client("a service", { service = { name = "a", namespace = "b" } }, 201)
    client("a service's names", { service = { name = "", namespace = "", path = "a", port = 0 } })
    client("a service's path", { service = { name = "a", namespace = "b", path = "/a//B_", port = 70000 } })
    rule("an empty rule", {})
    rule("all and others",
      { operations = { "*", "CREATE" }, apiGroups = { "*", "a" }, apiVersions = { "*", "v1", "" },
      resources = { "*", "*/*", "pods", "a/b", "*/scale", "" }, scope = "Some" })
    rule("an operation", { operations = { "GET" }, apiGroups = { "" }, apiVersions = { "v1" },
      resources = { "*/*", "pods" } })
    rule("resources", { operations = { "CREATE" }, apiGroups = { "" }, apiVersions = { "v1" },
      resources = { "pods/*", "pods/status",
      "*/status", "pods" } })
    add("selectors", { namespaceSelector = { matchExpressions = { { key = "a", operator = "Has" } } },
      objectSelector = { matchLabels = { ["a b"] = "c" } } })
    if kind == "mutating" then
      add("when again", { reinvocationPolicy = "Some" })
      add("again", { reinvocationPolicy = "IfNeeded" }, 201)
    end
    rows[#rows + 1] = { "a name twice", "POST", path,
      { metadata = { name = "w" }, webhooks = { hook {}, hook {} } }, 422 }
    rows[#rows + 1] = { "none", "POST", path, { metadata = { name = "w" } }, 201 }
    return rows
  end)
end

both.describe("autoscalers", function(ns)
  local rows = {}
  local ref = { apiVersion = "apps/v1", kind = "Deployment", name = "d" }
  local scaler = adder(rows, "v2", "/apis/autoscaling/v2/namespaces/" .. ns .. "/horizontalpodautoscalers")
  local function add(what, spec, code) scaler(what,
    { spec = both.merge({ scaleTargetRef = ref, maxReplicas = 3 }, spec) }, code) end
  add("behavior", { behavior = {} }, 201)
  add("half a behavior",
    { behavior = { scaleUp = { stabilizationWindowSeconds = 9 }, scaleDown = { policies = {
    { type = "Percent", value = 1, periodSeconds = 10 } } } } }, 201)
  add("a bad behavior",
    { behavior = { scaleUp = { stabilizationWindowSeconds = -1, selectPolicy = "Some", policies = {
    { type = "Pods", value = 0, periodSeconds = 0 }, { type = "Some", value = 1, periodSeconds = 1801 } } },
    scaleDown = { stabilizationWindowSeconds = 3601 } } })
  add("to nothing", { minReplicas = 0 })
  add("metrics", { metrics = {
    { type = "Resource", resource = { name = "", target = { type = "Utilization" } } },
    { type = "Resource", resource = { name = "cpu",
      target = { type = "Some", averageUtilization = 0, averageValue = "0" } } },
    { type = "Pods", pods = { metric = { name = "" }, target = { type = "AverageValue" } } },
    { type = "Pods", pods = { metric = { name = "a/b" }, target = { type = "Value", value = "1" } } },
    { type = "Object", object = { describedObject = { kind = "", name = "" }, metric = { name = "x" },
      target = { type = "Value" } } },
    { type = "Object", object = { describedObject = { kind = "a", name = "b" }, metric = { name = "x" },
      target = { type = "Value", value = "-1", averageValue = "1" } } },
    { type = "External", external = { metric = { name = "x" }, target = { type = "Value" } } },
    { type = "External", external = { metric = { name = "a%b" },
      target = { type = "AverageValue", value = "1", averageValue = "1" } } },
    { type = "ContainerResource",
      containerResource = { name = "cpu", container = "", target = { type = "Utilization",
      averageUtilization = 1, averageValue = "1" } } },
    { type = "" }, { type = "Resource",
      pods = { metric = { name = "x" }, target = { type = "AverageValue", averageValue = "1" } } } } })
  return rows
end)
