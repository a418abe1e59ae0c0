-- kinds_tables_spec.lua - what kubectl prints of built-in kinds: each is made, gets a status, and is read as
-- a table. Devices and the kinds that serve the server have rows in specs of their own.

local api = require "support.api"
local both = require "support.both"
local wait = require "support.wait"

local LONG_AGO = "2020-01-01T00:00:00Z" -- its age is the same on both servers, however slow they are
local POD = { containers = { { name = "a", image = "one" }, { name = "b", image = "two" } } }
local LABELS = { app = "x" }
local TEMPLATE = { metadata = { labels = LABELS }, spec = POD }
local SELECTOR = { matchLabels = LABELS }

-- Adds rows: made(kind, path, object, status ...) makes the object, gives it each status, and reads it as a
-- table after each.
local function maker(rows)
  return function(kind, path, object, ...)
    local name = ("t%d"):format(#rows)
    local o = both.merge({ metadata = { name = name } }, object)
    local one = path .. "/" .. o.metadata.name
    rows[#rows + 1] = { kind .. " " .. name, "POST", path, o, 201 }
    local shown = one .. (kind == "DaemonSet" and "?includeObject=None" or "") -- whose annotations differ
    rows[#rows + 1] = { kind .. " " .. name .. " as a table", "TABLE", shown, nil, 200 }
    for i, status in ipairs { ... } do
      rows[#rows + 1] = { ("%s %s: status %d"):format(kind, name, i), "PATCH", one .. "/status",
        { status = status }, 200 }
      rows[#rows + 1] = { ("%s %s: status %d as a table"):format(kind, name, i), "TABLE", shown, nil, 200 }
    end
  end
end

both.describe("tables of pods and what makes them", function(ns)
  local rows = {}
  local made = maker(rows)
  local core, apps, batch = "/api/v1/namespaces/" .. ns, "/apis/apps/v1/namespaces/" .. ns,
    "/apis/batch/v1/namespaces/" .. ns

  local function container(name, state, restarts, ready)
    return { name = name, image = "i", imageID = "", ready = ready or false, restartCount = restarts or 0,
      state = state, started = ready or false }
  end
  local RUNS, WAITS = { running = { startedAt = LONG_AGO } }, { waiting = { reason = "ImagePullBackOff" } }
  local function ended(code, reason, signal)
    return { terminated = { exitCode = code, reason = reason, signal = signal, startedAt = LONG_AGO,
      finishedAt = LONG_AGO } }
  end
  local again = container("a", RUNS, 3, true)
  again.lastState = ended(1, "Error")
  made("Pod", core .. "/pods", { spec = POD },
    { phase = "Running", podIP = "10.1.2.3", podIPs = { { ip = "10.1.2.3" } },
      containerStatuses = { again, container("b", RUNS, 0, true) },
      conditions = { { type = "Ready", status = "True" } } },
    { containerStatuses = { container("a", WAITS), container("b", RUNS, 1, true) } },
    { containerStatuses = { container("a", ended(0, "Completed")), container("b", RUNS, 1, true) } },
    { containerStatuses = { container("a", ended(3, "Error")), container("b", ended(0, "Completed")) } },
    { containerStatuses = { container("a", ended(137, nil, 9)), container("b", ended(3)) } },
    { phase = "Failed", reason = "Evicted", containerStatuses = both.NONE },
    { nominatedNodeName = "elsewhere" })
  made("Pod with an init container and gates", core .. "/pods", { spec = both.merge({ nodeName = "here",
    initContainers = { { name = "i", image = "one" }, { name = "j", image = "one" } },
    readinessGates = { { conditionType = "example.com/a" }, { conditionType = "example.com/b" } } }, POD) },
    { phase = "Pending", initContainerStatuses = { container("i", ended(0)), container("j", WAITS) },
      conditions = { { type = "example.com/a", status = "True" } } },
    { initContainerStatuses = { container("i", ended(0)), container("j", ended(2)) } },
    { initContainerStatuses = { container("i", ended(0)), container("j", RUNS) } })
  made("ReplicationController", core .. "/replicationcontrollers", { spec = { replicas = 3, selector = LABELS,
    template = TEMPLATE } }, { replicas = 2, readyReplicas = 1 })
  made("Deployment", apps .. "/deployments", { spec = { replicas = 3, selector = SELECTOR,
    template = TEMPLATE } }, { replicas = 3, readyReplicas = 2, updatedReplicas = 3, availableReplicas = 1 })
  made("ReplicaSet", apps .. "/replicasets", { spec = { replicas = 3, selector = { matchExpressions = {
    { key = "app", operator = "In", values = { "x", "y" } }, { key = "z", operator = "DoesNotExist" } } },
    template = TEMPLATE } }, { replicas = 2, readyReplicas = 1 })
  made("StatefulSet", apps .. "/statefulsets", { spec = { replicas = 2, selector = SELECTOR,
    serviceName = "s", template = TEMPLATE } }, { replicas = 2, readyReplicas = 1 })
  made("DaemonSet", apps .. "/daemonsets", { spec = { selector = SELECTOR, template = { metadata = {
    labels = LABELS }, spec = both.merge({ nodeSelector = { disk = "fast", zone = "a" } }, POD) } } },
    { desiredNumberScheduled = 5, currentNumberScheduled = 4, numberReady = 3, updatedNumberScheduled = 2,
      numberAvailable = 1, numberMisscheduled = 0 })
  local JOB = { template = { spec = both.merge({ restartPolicy = "Never" }, POD) } }
  made("Job", batch .. "/jobs", { spec = both.merge({ completions = 3, parallelism = 2 }, JOB) },
    { startTime = LONG_AGO, active = 2, ready = 1 })
  made("Job of any number", batch .. "/jobs", { spec = both.merge({ parallelism = 2 }, JOB) })
  made("suspended Job", batch .. "/jobs", { spec = both.merge({ suspend = true }, JOB) },
    { conditions = { { type = "Suspended", status = "True" } } })
  made("Job that ended", batch .. "/jobs", { spec = JOB },
    { startTime = LONG_AGO, completionTime = "2020-01-01T00:01:30Z", succeeded = 1, conditions = {
      { type = "SuccessCriteriaMet", status = "True" }, { type = "Complete", status = "True" } } })
  made("CronJob", batch .. "/cronjobs", { spec = { schedule = "*/5 * * * *", jobTemplate = { spec = JOB } } },
    { lastScheduleTime = LONG_AGO, active = { { kind = "Job", name = "a" }, { kind = "Job", name = "b" } } })
  made("CronJob of a zone", batch .. "/cronjobs", { spec = { schedule = "@daily", timeZone = "Europe/Berlin",
    suspend = true, jobTemplate = { spec = JOB } } })
  made("PodDisruptionBudget", "/apis/policy/v1/namespaces/" .. ns .. "/poddisruptionbudgets", {
    spec = { minAvailable = "50%", selector = SELECTOR } }, { disruptionsAllowed = 1, currentHealthy = 3,
    desiredHealthy = 2, expectedPods = 3 })
  made("PodDisruptionBudget", "/apis/policy/v1/namespaces/" .. ns .. "/poddisruptionbudgets", {
    spec = { maxUnavailable = 1, selector = SELECTOR } })
  local hpas = "/apis/autoscaling/v2/namespaces/" .. ns .. "/horizontalpodautoscalers"
  local function resource(name, target) return { type = "Resource", resource = { name = name,
    target = target } } end
  made("HorizontalPodAutoscaler", hpas, { spec = { maxReplicas = 9, minReplicas = 2,
    scaleTargetRef = { kind = "Deployment", name = "web", apiVersion = "apps/v1" },
    metrics = { resource("cpu", { type = "Utilization", averageUtilization = 50 }),
      resource("memory", { type = "AverageValue", averageValue = "1Gi" }) } } },
    { currentReplicas = 3, desiredReplicas = 4, currentMetrics = {
      { type = "Resource", resource = { name = "cpu", current = { averageUtilization = 70,
        averageValue = "7m" } } } } })
  made("HorizontalPodAutoscaler of many metrics", hpas, { spec = { maxReplicas = 9,
    scaleTargetRef = { kind = "Deployment", name = "web", apiVersion = "apps/v1" }, metrics = {
      resource("cpu", { type = "Utilization", averageUtilization = 50 }),
      { type = "Pods", pods = { metric = { name = "hits" }, target = { type = "AverageValue",
        averageValue = "3" } } },
      { type = "External", external = { metric = { name = "queue" }, target = { type = "Value",
        value = "30" } } } } } })
  return rows
end)

both.describe("tables of the rest", function(ns)
  local rows = {}
  local made = maker(rows)
  local core, net = "/api/v1/namespaces/" .. ns, "/apis/networking.k8s.io/v1/namespaces/" .. ns
  local unique = ns .. "-x"

  made("ConfigMap", core .. "/configmaps", { data = { a = "1", b = "2" }, binaryData = { c = "YQ==" } })
  made("Secret", core .. "/secrets", { type = "example.com/x", data = { a = "YQ==" } })
  made("Event", core .. "/events", { involvedObject = { kind = "ReplicaSet", name = "Web-1", namespace = ns },
    reason = "Scaled", message = "up", type = "Normal", lastTimestamp = LONG_AGO })
  made("Event of no time", core .. "/events", { involvedObject = { kind = "Pod", name = "p", namespace = ns,
    fieldPath = "spec.containers{a}" }, reason = "Seen", message = " it \n", type = "Warning",
    source = { component = "kubelet", host = "here" }, firstTimestamp = LONG_AGO, count = 7 })
  made("Event of a series", core .. "/events", { involvedObject = { kind = "Pod", namespace = ns },
    reason = "Seen", message = "it", type = "Normal", action = "Look",
    eventTime = "2020-01-01T00:00:00.000000Z",
    reportingComponent = "example.com/seer", reportingInstance = "seer-1",
    series = { count = 9, lastObservedTime = "2023-01-01T00:00:00.000000Z" } })
  made("Node", "/api/v1/nodes", { metadata = { name = unique, labels = {
    ["node-role.kubernetes.io/worker"] = "", ["node-role.kubernetes.io/edge"] = "" } },
    spec = { unschedulable = true } },
    { conditions = { { type = "Ready", status = "True" } }, addresses = {
      { type = "InternalIP", address = "192.0.2.1" }, { type = "ExternalIP", address = "192.0.2.2" } } },
    { conditions = { { type = "Ready", status = "False" } } })
  made("Service", core .. "/services", { spec = { selector = { app = "x", tier = "y" }, ports = {
    { name = "a", port = 80 }, { name = "b", port = 53, protocol = "UDP" } } } })
  made("Service without an address", core .. "/services", { spec = { clusterIP = "None" } })
  made("Service with addresses of its own", core .. "/services", { spec = { ports = { { port = 80 } },
    externalIPs = { "192.0.2.7", "192.0.2.8" } } })
  made("Service of another name", core .. "/services", { spec = { type = "ExternalName",
    externalName = "example.com" } })
  made("Service of a node", core .. "/services", { spec = { type = "NodePort", ports = { { port = 80,
    nodePort = 30999 } } } })
  made("Service with a balancer", core .. "/services", { spec = { type = "LoadBalancer", ports = {
    { port = 80, nodePort = 30998 } } } },
    { loadBalancer = { ingress = { { ip = "192.0.2.9" }, { hostname = "lb.example.com" } } } })
  local PATHS = { paths = { { path = "/", pathType = "Prefix", backend = { service = { name = "s",
    port = { number = 80 } } } } } }
  made("Ingress", net .. "/ingresses", { spec = { ingressClassName = "c",
    tls = { { hosts = { "a.example" } } },
    rules = { { host = "a.example", http = PATHS }, { host = "b.example", http = PATHS } } } },
    { loadBalancer = { ingress = { { ip = "192.0.2.9" }, { hostname = "lb.example.com" } } } })
  local many = {}
  for i = 1, 5 do many[i] = { host = ("h%d.example"):format(i), http = PATHS } end
  made("Ingress of many hosts", net .. "/ingresses", { metadata = { annotations = {
    ["kubernetes.io/ingress.class"] = "old" } }, spec = { rules = many } })
  made("Ingress of any host", net .. "/ingresses", { spec = { rules = { { http = PATHS } } } })
  made("NetworkPolicy", net .. "/networkpolicies", { spec = { podSelector = SELECTOR } })
  made("Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. ns .. "/roles", { rules = { { verbs = {
    "get" }, apiGroups = { "" }, resources = { "pods" } } } })
  made("RoleBinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. ns .. "/rolebindings", {
    roleRef = { kind = "Role", name = "r", apiGroup = "rbac.authorization.k8s.io" }, subjects = {
      { kind = "User", name = "u", apiGroup = "rbac.authorization.k8s.io" },
      { kind = "User", name = "v", apiGroup = "rbac.authorization.k8s.io" },
      { kind = "Group", name = "g", apiGroup = "rbac.authorization.k8s.io" },
      { kind = "ServiceAccount", name = "s", namespace = "n" } } })
  made("ResourceQuota", core .. "/resourcequotas", { spec = { hard = { pods = "5", ["requests.cpu"] = "2",
    ["limits.cpu"] = "4", ["limits.memory"] = "1Gi" } } },
    { hard = { pods = "5", ["requests.cpu"] = "2", ["limits.cpu"] = "4", ["limits.memory"] = "1Gi" },
      used = { pods = "1", ["requests.cpu"] = "500m", ["limits.cpu"] = "1", ["limits.memory"] = "1Mi" } })
  made("LimitRange", core .. "/limitranges", { spec = { limits = { { type = "Pod",
    max = { cpu = "1" } } } } })
  made("Lease", "/apis/coordination.k8s.io/v1/namespaces/" .. ns .. "/leases", {
    spec = { holderIdentity = "me" } })
  made("PersistentVolume", "/api/v1/persistentvolumes", { metadata = { name = unique }, spec = {
    storageClassName = "fast", claimRef = { namespace = "n", name = "c" }, capacity = { storage = "1Gi" },
    accessModes = { "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany" }, hostPath = { path = "/x" } } },
    { phase = "Released", reason = "Because" })
  made("PersistentVolumeClaim", core .. "/persistentvolumeclaims", { spec = { storageClassName = "fast",
    volumeName = "v", accessModes = { "ReadWriteOncePod" },
    resources = { requests = { storage = "1Gi" } } } },
    { phase = "Bound", capacity = { storage = "2Gi" }, accessModes = { "ReadWriteOncePod" } })
  made("PersistentVolumeClaim of none", core .. "/persistentvolumeclaims", { spec = {
    accessModes = { "ReadWriteMany" }, resources = { requests = { storage = "1Gi" } } } })
  made("StorageClass", "/apis/storage.k8s.io/v1/storageclasses", { metadata = { name = unique,
    annotations = { ["storageclass.kubernetes.io/is-default-class"] = "true" } },
    provisioner = "example.com/x", allowVolumeExpansion = true })
  made("StorageClass that does not grow", "/apis/storage.k8s.io/v1/storageclasses", { metadata = {
    name = unique .. "2" }, provisioner = "example.com/x" })
  made("PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses", { metadata = { name = unique },
    value = 7 })
  rows[#rows + 1] = { "PersistentVolume: without finalizers", "PATCH", "/api/v1/persistentvolumes/" .. unique,
    { metadata = { finalizers = both.NULL } }, 200 }
  for _, path in ipairs { "/api/v1/nodes/", "/api/v1/persistentvolumes/",
    "/apis/storage.k8s.io/v1/storageclasses/", "/apis/scheduling.k8s.io/v1/priorityclasses/" } do
    rows[#rows + 1] = { path .. " goes", "DELETE", path .. unique, nil, 200 }
  end
  rows[#rows + 1] = { "the other class goes", "DELETE",
    "/apis/storage.k8s.io/v1/storageclasses/" .. unique .. "2", nil, 200 }
  return rows
end)

-- ---------------------------------------------------------------- columns of definitions

local COLUMNS = {
  { "Plain", "string", ".spec.a" }, { "Deep", "integer", ".spec.deep.m" }, { "Item", "string", ".spec.l[1]" },
  { "Quoted", "string", ".metadata.annotations['example.com/x']" }, { "Path", "integer", ".spec['deep.n']" },
  { "Both", "string", ".metadata.annotations['example\\.com/x']" },
  { "Escaped", "string", ".metadata.annotations.example\\.com/x" },
  { "Every", "string", ".spec.l[*]" }, { "Ready", "string", '.spec.c[?(@.type=="Ready")].status' },
  { "None", "string", ".spec.none" }, { "Yes", "boolean", ".spec.yes" }, { "Since", "date", ".spec.since" },
  { "No date", "date", ".spec.none" }, { "Number", "number", ".spec.f" },
}
-- Each type of column with each kind of value.
for _, type in ipairs { "string", "integer", "number", "boolean", "date" } do
  for _, field in ipairs { "a", "deep", "l", "yes", "f", "big", "mil", "small", "neg", "none", "text",
    "since", "e" } do
    COLUMNS[#COLUMNS + 1] = { field .. " as " .. type, type, ".spec." .. field }
  end
end
local PATHS = {
  ".spec.c[-1:].type", ".spec.c[-1].type", ".spec.l[0:1]", ".spec.l[1:]", ".spec.l[:1]", ".spec.l[::2]",
  ".spec.l[5]", ".spec.l[-5]", ".spec.l[1:0]", ".spec.l[0:0]", ".spec.l[0:9]", ".spec.l[1:2:0]",
  ".spec.a[0]", ".spec.none[0]", ".spec.none.x", ".spec.c[1:2:1].type", ".spec.c[0:-1].type",
  ".spec.c[?(@.type=='Ready')].status", '.spec.c[?(@.type!="Ready")].type', ".spec.c[?(@.n>1)].type",
  ".spec.c[?(@.n>=2)].type", ".spec.c[?(@.n==1)].type", ".spec.c[?(@.n<2)].type", ".spec.c[?(@.n<=1)].type",
  ".spec.c[?(@.n==1.0)].type", '.spec.c[?(@.n=="1")].type', ".spec.c[?(@.ok)].type",
  ".spec.c[?(@.ok==true)].type", ".spec.c[?(@.ok>false)].type", ".spec.c[?(@.n=1)].type",
  ".spec.c[?(@.type==@.status)].type", '.spec.c[?(@.d.e=="x")].type',
  '.spec.c[?( @.type == "Ready" )].type', '.spec.c[?(@.type>"P")].type', '.spec.c[?(@.type=="a)b")].type',
  '.spec.c[?(@.d=="x")].type', '.spec.a[?(@.x=="y")]', '.spec.l[?(@=="two")]', ".spec.l[*]", ".spec.deep.m",
  ".spec..type", ".spec..m", ".spec.c[*].type", ".spec.c[0,1].type", ".spec.c[7,1].type", ".spec.c.type",
  ".spec.a.b", ".spec.l.0", ".spec['a']", ".spec['none','f']", ".spec['deep.m']", ".spec", ".",
  ".spec.c[?(@.n>0)][0]", ".spec.c[?(@.n>-1)].type", ".spec.c[?(@.n!=1)].type",
  ".spec.c[?(@.none==1)].type", ".spec..", ".spec...a", ".spec.c..type", ".metadata.name",
  ".spec.z[*].n[*]", ".spec.c[?(@.l[0])].type", ".spec.c[?(@.d[0])].type", ".spec.c[?(@['n',0])].type",
  '.spec.c[?(@.q=="say \\"hi\\"")].type', '.spec.c[?(@.q=="a\\tb")].type', ".spec.l..[0]", ".spec.a..",
  '.spec.none"n/a"', '.spec.missing"n/a"', ".spec.c[?(@.n==+2)].type", ".spec.c[?(@.n>-1.5)].type",
  ".spec.l[9223372036854775807]", ".spec.l[1::9223372036854775807]", '.spec.c[?(@.q!="\\x")].type',
}
-- A column that cannot be read is missing with all after it, and some that one would not expect can be read.
local ODD = {
  ".spec.l[x]", ".spec.l[", ".spec.c[?(@.n", ".spec.c[?(@.a==b)]", ".spec.l[1", ".spec*", ".spec.l[0]x",
  "..*", ".spec.c[?()]", ".spec.l['a']", '.spec["a"]', ".spec.l[1:2:3:4]", ".spec.l[]", ".spec.l[1:x]",
  ".spec.l[99999999999999999999]", ".spec.c[?(@.n==)]", ".spec.c[?(@.n==1 2)]", ".spec.c[?(@.n)",
  ".spec.a,.spec.f", ".spec.c[?(@.type==\"Ready)]", ".spec.l[0,]", ".spec.c[?(==1)]", ".spec.l[ 0 ]",
  ".spec.l[0, 1]", ". spec.a",
  ".spec....a", ".spec.a\tb", ".spec.a\n", ".spec.l[0]" .. ("9"):rep(320), '.spec.a"x"[0]',
  '.spec.l[?(@=="x)]',
}
for i, path in ipairs(PATHS) do
  COLUMNS[#COLUMNS + 1] = { "path " .. i, "string", path }
end

local function version(name, columns)
  return { name = name, served = true, storage = false, additionalPrinterColumns = columns,
    schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } }
end

local function definition(ns)
  local columns, group = {}, ns .. ".example.com"
  for i, c in ipairs(COLUMNS) do
    columns[i] = { name = c[1], type = c[2], jsonPath = c[3], priority = i % 2, description = "the " .. c[1] }
  end
  local versions = { version("v1", columns) }
  versions[1].storage = true
  for i, path in ipairs(ODD) do
    versions[i + 1] = version("v" .. i + 1, { { name = "Odd", type = "string", jsonPath = path },
      { name = "After", type = "string", jsonPath = ".spec.a" } })
  end
  versions[#versions + 1] = version "plain"
  return { metadata = { name = "things." .. group }, spec = { group = group, scope = "Cluster",
    names = { plural = "things", singular = "thing", kind = "Thing", listKind = "ThingList" },
    versions = versions } }
end

both.describe("tables of endpoints, revisions and templates", function(ns)
  local rows = {}
  local made = maker(rows)
  local core, apis = "/api/v1/namespaces/" .. ns, "/apis/%s/v1/namespaces/" .. ns
  local one, many = { { ip = "10.1.1.1" } }, {}
  for i = 1, 5 do many[i] = { ip = "10.1.1." .. i } end
  local function endpoints(...)
    made("Endpoints", core .. "/endpoints", { subsets = ... and { ... } or both.NONE })
  end
  endpoints()
  endpoints({ addresses = one })
  endpoints({ addresses = many })
  endpoints({ addresses = one, ports = { { name = "a", port = 80 }, { name = "b", port = 81 } } })
  endpoints({ addresses = many, ports = { { port = 80 } } }, { addresses = { { ip = "fd00::1" } } })
  endpoints({ addresses = { { ip = "fd00::1" } }, ports = { { port = 80 } } })
  endpoints({ notReadyAddresses = one, ports = { { port = 80 } } })
  local function slice(type, ports, ...)
    made("EndpointSlice", apis:format "discovery.k8s.io" .. "/endpointslices",
      { addressType = type, ports = ports, endpoints = ... and { ... } or both.NONE })
  end
  slice("IPv4", nil, { addresses = { "10.1.1.9" }, conditions = { ready = false } })
  slice("IPv4", nil, { addresses = { "10.1.1.1" } })
  slice("IPv6", { { name = "a" }, { name = "b", port = 80 } }, { addresses = { "fd00::1" } })
  slice("IPv4", { { name = "" }, { name = "b", port = 1 }, { name = "c", port = 2 },
    { name = "d", port = 3 } },
    { addresses = { "10.1.1.1" } }, { addresses = { "10.1.1.2" } }, { addresses = { "10.1.1.3" } },
    { addresses = { "10.1.1.4" } })
  made("ServiceAccount", core .. "/serviceaccounts", { secrets = { { name = "a" }, { name = "b" } } })
  made("PodTemplate", core .. "/podtemplates", { template = TEMPLATE })
  made("PodTemplate", core .. "/podtemplates", { template = { spec = POD } })
  local revisions = apis:format "apps" .. "/controllerrevisions"
  made("ControllerRevision", revisions, { revision = 3, data = { a = 1 } })
  made("ControllerRevision", revisions, { revision = 0, data = { a = 1 },
    metadata = { ownerReferences = { { apiVersion = "v1", kind = "Pod", name = "x", uid = "a" },
      { apiVersion = "apps/v1", kind = "StatefulSet", name = "y", uid = "b", controller = true } } } })
  made("Event", apis:format "events.k8s.io" .. "/events", { eventTime = "2020-01-01T00:00:00.000000Z",
    type = "Normal", reason = "R", action = "A", note = "a note", reportingController = "example.com/c",
    reportingInstance = "c-1", regarding = { kind = "Pod", name = "x", namespace = ns },
    metadata = { namespace = ns } })
  made("CSIStorageCapacity", apis:format "storage.k8s.io" .. "/csistoragecapacities",
    { storageClassName = "c", capacity = "1500Mi" })
  made("CSIStorageCapacity", apis:format "storage.k8s.io" .. "/csistoragecapacities",
    { storageClassName = "c" })
  return rows
end)

both.describe("tables of the cluster's drivers, classes and admission", function(ns)
  local rows = {}
  local made = maker(rows)
  local storage, admission = "/apis/storage.k8s.io/v1/", "/apis/admissionregistration.k8s.io/v1/"
  local function own(o) return both.merge({ metadata = { name = ("%s-%d"):format(ns, #rows) } }, o) end
  made("CSIDriver", storage .. "csidrivers", own { spec = {} })
  made("CSIDriver", storage .. "csidrivers", own { spec = { attachRequired = false, podInfoOnMount = true,
    storageCapacity = true, requiresRepublish = true, volumeLifecycleModes = { "Persistent", "Ephemeral" },
    tokenRequests = { { audience = "a" }, { audience = "" } } } })
  made("CSINode", storage .. "csinodes",
    own { spec = { drivers = { { name = "d.example.com", nodeID = "n" } } } })
  made("VolumeAttachment", storage .. "volumeattachments", own { spec = { attacher = "a.example.com",
    nodeName = "n", source = { persistentVolumeName = "v" } } }, { attached = true })
  made("VolumeAttributesClass", storage .. "volumeattributesclasses",
    own { driverName = "d.example.com", parameters = { a = "b" } })
  made("RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses", own { handler = "h" })
  local classes = "/apis/networking.k8s.io/v1/ingressclasses"
  made("IngressClass", classes, own { spec = { controller = "example.com/c" } })
  made("IngressClass", classes, own { spec = { controller = "example.com/c",
    parameters = { kind = "P", name = "p", apiGroup = "example.com" } } })
  made("IngressClass", classes, own { spec = { controller = "example.com/c",
    parameters = { kind = "P", name = "p", scope = "Namespace", namespace = "n" } } })
  local hook = { name = "a.example.com", sideEffects = "None", admissionReviewVersions = { "v1" },
    clientConfig = { url = "https://127.0.0.1/x" }, failurePolicy = "Ignore",
    rules = { { apiGroups = { "none" }, apiVersions = { "v1" }, operations = { "CREATE" },
      resources = { "none" } } } }
  made("ValidatingWebhookConfiguration", admission .. "validatingwebhookconfigurations",
    own { webhooks = { hook } })
  made("MutatingWebhookConfiguration", admission .. "mutatingwebhookconfigurations", own {})
  local function policy(more)
    made("ValidatingAdmissionPolicy", admission .. "validatingadmissionpolicies",
      own { spec = both.merge({ validations = { { expression = "true" } }, matchConstraints = {
        resourceRules = { { apiGroups = { "none" }, apiVersions = { "v1" }, operations = { "CREATE" },
          resources = { "none" } } } } }, more) })
  end
  policy {}
  policy { paramKind = { apiVersion = "v1", kind = "ConfigMap" } }
  local function binding(ref)
    made("ValidatingAdmissionPolicyBinding", admission .. "validatingadmissionpolicybindings",
      own { spec = { policyName = "none", validationActions = { "Deny" }, paramRef = ref } })
  end
  binding()
  binding { name = "p", parameterNotFoundAction = "Deny" }
  binding { name = "p", namespace = "n", parameterNotFoundAction = "Deny" }
  binding { parameterNotFoundAction = "Deny", selector = { matchLabels = { b = "1", a = "2" },
    matchExpressions = { { key = "k", operator = "In", values = { "x", "y" } },
      { key = "l", operator = "Exists" } } } }
  for i = 1, #rows do -- the real server lives longer than this file
    local o = rows[i][4]
    if rows[i][2] == "POST" and not rows[i][1]:find "Attributes" then -- a finalizer keeps that one there
      rows[#rows + 1] = { "without " .. rows[i][1], "DELETE", rows[i][3] .. "/" .. o.metadata.name, nil, 200 }
    end
  end
  return rows
end)

both.describe("tables of custom resources", function(ns)
  local path = ("/apis/%s.example.com/v1/things"):format(ns)
  local function thing(name, spec)
    return { apiVersion = ns .. ".example.com/v1", kind = "Thing", metadata = { name = name,
      annotations = { ["example.com/x"] = "noted" } }, spec = spec }
  end
  local rows = {
    { "one with all", "POST", path, thing("all", { a = "x", deep = { m = 3, h = "<&>" }, l = { "one", "two" },
      yes = true, c = { { type = "Other", status = "No", n = 1 },
        { type = "Ready", status = "True", n = 2, ok = true, d = { e = "x" }, q = 'say "hi"',
          l = { "one" } } },
      z = { { n = both.NONE }, { n = { "n1" } } },
      since = LONG_AGO, f = 1.5, big = 1e300, mil = 1234567.5, small = 0.00001, none = both.NULL,
      neg = -2.7, text = "7", e = "" }), 201 },
    { "as a table", "TABLE", path .. "/all", nil, 200 },
    { "one with nothing", "POST", path, thing("nothing", { l = { "one" }, since = "then" }), 201 },
    { "as a table, too", "TABLE", path .. "/nothing", nil, 200 },
  }
  for i, odd in ipairs(ODD) do
    rows[#rows + 1] = { "by " .. odd, "TABLE", (path:gsub("v1", "v" .. i + 1)) .. "/all", nil, 200 }
  end
  rows[#rows + 1] = { "without columns", "TABLE", (path:gsub("v1", "plain")) .. "/all", nil, 200 }
  return rows
end, function(s, ns)
  local a = api(s)
  assert(a:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(ns)).code == 201)
  for _, v in ipairs { 1, #ODD + 1 } do
    wait.until_true(60, "the kind is served", function()
      return a:get(("/apis/%s.example.com/v%d/things"):format(ns, v)).code == 200
    end)
  end
end)
