-- kinds_warnings_spec.lua - the warnings about valid objects of built-in kinds: deprecated fields, and values
-- that are ignored or surprise.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"

local DEPRECATED = { ["scheduler.alpha.kubernetes.io/critical-pod"] = "",
  ["security.alpha.kubernetes.io/sysctls"] = "",
  ["seccomp.security.alpha.kubernetes.io/pod"] = "runtime/default",
  ["container.seccomp.security.alpha.kubernetes.io/c"] = "runtime/default" }

-- A spec with `more` of its first container over it.
local function spec(more, container)
  return both.merge({ containers = { both.merge({ name = "c", image = "i" }, container) } }, more)
end

local PODS = {
  { "nothing odd", spec() },
  { "old labels of nodes", spec { nodeSelector = { ["beta.kubernetes.io/os"] = "linux" },
    affinity = { nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = { { matchExpressions = {
        { key = "node-role.kubernetes.io/master", operator = "Exists" } } } } },
      preferredDuringSchedulingIgnoredDuringExecution = { { weight = 1, preference = { matchExpressions = {
        { key = "failure-domain.beta.kubernetes.io/zone", operator = "Exists" } } } } } } } } },
  { "no selectors", spec {
    topologySpreadConstraints = { { maxSkew = 1, whenUnsatisfiable = "DoNotSchedule",
      topologyKey = "failure-domain.beta.kubernetes.io/region" } },
    affinity = { podAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { { topologyKey = "a" } } },
      podAntiAffinity = { preferredDuringSchedulingIgnoredDuringExecution = {
        { weight = 1, podAffinityTerm = { topologyKey = "a" } } } } } } },
  { "old volumes", spec { volumes = {
    { name = "a", gitRepo = { repository = "r" } },
    { name = "b", glusterfs = { endpoints = "e", path = "p" } },
    { name = "c", cephfs = { monitors = { "m" } } },
    { name = "d", rbd = { monitors = { "m" }, image = "i" } },
    { name = "e", flocker = { datasetName = "d" } },
    { name = "f", storageos = { volumeName = "v" } },
    { name = "g", quobyte = { registry = "r:1", volume = "v" } },
    { name = "h", photonPersistentDisk = { pdID = "p" } } } } },
  { "names twice, and none", spec { imagePullSecrets = { { name = "a" }, { name = "a" }, { name = "" } },
    hostAliases = { { ip = "1.2.3.4", hostnames = { "a" } }, { ip = "1.2.3.4", hostnames = { "b" } } } } },
  { "parts of a byte", spec({ volumes = { { name = "v", ephemeral = { volumeClaimTemplate = { spec = {
    accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1500m" } } } } } } } },
    { resources = { limits = { memory = "2500m", ["ephemeral-storage"] = "3500m" },
      requests = { memory = "1500m" } } }) },
  { "variables twice", spec({}, { env = { { name = "A", value = "1" }, { name = "A", value = "2" },
    { name = "A", value = "$(A)3" }, { name = "A", value = "$(A)" } } }) },
  { "ports", spec({}, { ports = { { containerPort = 80 }, { containerPort = 80, name = "a" },
    { containerPort = 80, hostPort = 81 }, { containerPort = 80, hostPort = 81, hostIP = "1.2.3.4" },
    { containerPort = 82, hostIP = "1.2.3.4", name = "b" }, { containerPort = 82, protocol = "UDP" } } }) },
  { "a port's name in two containers", { containers = {
    { name = "c", image = "i", ports = { { containerPort = 1, name = "x" } } },
    { name = "d", image = "i", ports = { { containerPort = 2, name = "x" } } } } } },
}

both.describe("warnings about pods", function(ns)
  local rows = {}
  local core, apps = "/api/v1/namespaces/" .. ns, "/apis/apps/v1/namespaces/" .. ns
  for i, case in ipairs(PODS) do
    local name = "p" .. i
    rows[#rows + 1] = { case[1], "POST", core .. "/pods?dryRun=All",
      { metadata = { name = name }, spec = case[2] }, 201 }
    rows[#rows + 1] = { case[1] .. ", in a template", "POST", apps .. "/deployments",
      { metadata = { name = name }, spec = { replicas = 0, selector = { matchLabels = { a = "b" } },
        template = { metadata = { labels = { a = "b" } }, spec = case[2] } } }, 201 }
  end
  local function row(...) rows[#rows + 1] = { ... } end
  row("old annotations", "POST", core .. "/pods?dryRun=All",
    { metadata = { name = "old", annotations = DEPRECATED }, spec = spec() }, 201)
  row("a name with dots", "POST", core .. "/pods?dryRun=All", { metadata = { name = "a.b" }, spec = spec() },
    201)
  row("a long name", "POST", core .. "/pods?dryRun=All",
    { metadata = { name = ("a"):rep(64) }, spec = spec() }, 201)
  row("a new generation", "PATCH", apps .. "/deployments/p2", { spec = { replicas = 1 } }, 200)
  row("the same generation", "PATCH", apps .. "/deployments/p2", { metadata = { labels = { a = "b" } } }, 200)
  row("a job with dots", "POST", "/apis/batch/v1/namespaces/" .. ns .. "/jobs?dryRun=All",
    { metadata = { name = "a.b" }, spec = { template = {
      spec = spec({ restartPolicy = "Never" }, PODS[7][2].containers[1]) } } }, 201)
  return rows
end)

both.describe("warnings about other kinds", function(ns)
  local core = "/api/v1/namespaces/" .. ns
  local key = "volume.beta.kubernetes.io/storage-class"
  local rows, n = {}, 0
  local function add(what, path, o)
    n = n + 1
    rows[#rows + 1] = { what, "POST", path .. "?dryRun=All",
      both.merge({ metadata = { name = ns .. "-" .. n } }, o), 201 }
  end
  local function service(what, more, annotations)
    add(what, core .. "/services", { metadata = { annotations = annotations },
      spec = both.merge({ ports = { { port = 1 } } }, more) })
  end
  service("a headless Service",
    { clusterIP = "None", externalIPs = { "9.8.7.6" }, sessionAffinity = "ClientIP" })
  service("another name", { externalName = "a.b" })
  service("an ExternalName", { type = "ExternalName", externalName = "a.b", externalIPs = { "9.8.7.6" } })
  service("hints", {}, { ["service.kubernetes.io/topology-aware-hints"] = "Auto" })
  add("an Ingress", "/apis/networking.k8s.io/v1/namespaces/" .. ns .. "/ingresses", {
    metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } },
    spec = { defaultBackend = { service = { name = "s", port = { number = 1 } } } } })
  add("a slice of names", "/apis/discovery.k8s.io/v1/namespaces/" .. ns .. "/endpointslices",
    { addressType = "FQDN" })
  add("a volume", "/api/v1/persistentvolumes", { metadata = { annotations = { [key] = "x" } },
    spec = { capacity = { storage = "1Gi" }, accessModes = { "ReadWriteOnce" }, hostPath = { path = "/tmp" },
      persistentVolumeReclaimPolicy = "Recycle", nodeAffinity = { required = { nodeSelectorTerms = {
        { matchExpressions = { { key = "beta.kubernetes.io/arch", operator = "Exists" } } } } } } } })
  add("a claim", core .. "/persistentvolumeclaims", { metadata = { annotations = { [key] = "x" } },
    spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1500m" } } } })
  add("a node", "/api/v1/nodes", { spec = { externalID = "x" } })
  add("an account", core .. "/serviceaccounts",
    { metadata = { annotations = { ["kubernetes.io/enforce-mountable-secrets"] = "true" } } })
  return rows
end)
