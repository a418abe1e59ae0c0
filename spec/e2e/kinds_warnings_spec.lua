-- kinds_warnings_spec.lua - the warnings about valid objects of built-in kinds: deprecated fields, and values
-- that are ignored or surprise.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local process = require "support.process"

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
  { "addresses in an old form", spec { dnsPolicy = "None",
    dnsConfig = { nameservers = { "010.1.2.3", "1.2.3.4", "::ffff:1.2.3.4" } },
    hostAliases = { { ip = "1.2.3.004", hostnames = { "a" } },
      { ip = "2001:DB8::1", hostnames = { "b" } } } } },
  { "values that no label has", spec { affinity = { nodeAffinity = {
    preferredDuringSchedulingIgnoredDuringExecution = { { weight = 1, preference = { matchExpressions = {
      { key = "a", operator = "In", values = { "x", "-y", "a b" } } } } } } } } } },
  { "AppArmor of the pod", spec { securityContext = { appArmorProfile = { type = "RuntimeDefault" } } } },
  { "paths that overlap", spec { volumes = {
    { name = "a", configMap = { name = "m", items = { { key = "a", path = "p" }, { key = "b", path = "p/q" },
      { key = "c", path = "p" }, { key = "d", path = "pq" }, { key = "e", path = "p/" } } } },
    { name = "b", secret = { secretName = "s", items = { { key = "a", path = "x/y/z" },
      { key = "b", path = "x/y" } } } },
    { name = "c", downwardAPI = { items = { { path = "l", fieldRef = { fieldPath = "metadata.labels" } },
      { path = "l/m", fieldRef = { fieldPath = "metadata.name" } } } } },
    { name = "d", projected = { sources = {
      { configMap = { name = "m", items = { { key = "a", path = "p" } } } },
      { secret = { name = "s", items = { { key = "b", path = "q" }, { key = "b", path = "q/r/" } } } },
      { downwardAPI = { items = { { path = "p/n", fieldRef = { fieldPath = "metadata.name" } } } } },
      { configMap = { name = "whole" } } } } } } } },
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
  local ARMOR = "container.apparmor.security.beta.kubernetes.io/c"
  for note, profile in pairs { ["runtime/default"] = { type = "RuntimeDefault" },
    unconfined = { type = "Unconfined" },
    ["localhost/x"] = { type = "Localhost", localhostProfile = "x" } } do
    for _, given in ipairs { false, true } do
      row(("AppArmor's %s, and its profile: %s"):format(note, given), "POST",
        apps .. "/deployments?dryRun=All",
        { metadata = { name = "armor" }, spec = { selector = { matchLabels = { a = "b" } }, template = {
          metadata = { labels = { a = "b" }, annotations = { [ARMOR] = note } },
          spec = spec { securityContext = { appArmorProfile = given and profile or nil } } } } }, 201)
    end
  end
  row("addresses in a status", "POST", core .. "/pods",
    { metadata = { name = "with-status" }, spec = spec() }, 201)
  row("addresses in a status, written", "PATCH", core .. "/pods/with-status/status", { status = {
    podIP = "010.1.2.3", podIPs = { { ip = "010.1.2.3" } }, hostIP = "::ffff:1.2.3.4",
    hostIPs = { { ip = "::ffff:1.2.3.4" } } } }, 200)
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

-- A new certificate, and its key.
local function pair()
  local cert, key = process.tmpname ".crt", process.tmpname ".key"
  local said, code = process.run(("openssl req -x509 -newkey ec -nodes -subj /CN=a -days 2 \z
    -pkeyopt ec_paramgen_curve:prime256v1 -keyout %s -out %s"):format(process.quote(key),
    process.quote(cert)))
  assert(code == 0, said)
  return process.read(cert), process.read(key)
end

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
  service("addresses", { type = "LoadBalancer",
    externalIPs = { "1.2.3.4", "01.2.3.4", "2001:db8:0:0::1" },
    loadBalancerIP = "::ffff:1.2.3.4",
    loadBalancerSourceRanges = { "10.0.0.0/8", "10.0.0.1/8", "010.0.0.0/8", "2001:DB8::/32",
      "10.0.0.0/08" } })
  service("ranges of IPv6", { type = "LoadBalancer", loadBalancerSourceRanges = { "2001:db8::1/64",
    "::ffff:1.2.3.0/120", "::ffff:1.2.3.4/120", "2001:db8:0::/64" } })
  local function policy(what, ...)
    local rules = {}
    for i, block in ipairs { ... } do rules[i] = { from = { { ipBlock = block } } } end
    add(what, "/apis/networking.k8s.io/v1/namespaces/" .. ns .. "/networkpolicies",
      { spec = { podSelector = {}, ingress = rules,
        egress = { { to = { { ipBlock = { cidr = "010.0.0.0/8" } }, { podSelector = {} } } } } } })
  end
  policy("blocks of addresses", { cidr = "10.0.0.0/8", except = { "10.1.2.3/16", "10.1.0.0/16" } },
    { cidr = "10.1.2.3/8" }, { cidr = "2001:DB8::/32", except = { "2001:DB8:1::/48" } })
  local function endpoints(what, labels)
    add("Endpoints " .. what, core .. "/endpoints", { metadata = { labels = labels }, subsets = {
      { addresses = { { ip = "010.1.2.3" } }, notReadyAddresses = { { ip = "::ffff:1.2.3.4" },
        { ip = "2001:DB8::1" } }, ports = { { port = 1 } } } } })
    add("a slice " .. what, "/apis/discovery.k8s.io/v1/namespaces/" .. ns .. "/endpointslices", {
      metadata = { labels = labels }, addressType = "IPv4", endpoints = { { addresses = { "1.2.3.4" } },
        { addresses = { "010.1.2.3" } } } })
  end
  endpoints "in an old form"
  endpoints("of a controller", { ["endpoints.kubernetes.io/managed-by"] = "endpoint-controller",
    ["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io" })
  local function secret(what, crt, of)
    add("a key pair: " .. what, core .. "/secrets", { type = "kubernetes.io/tls",
      stringData = { ["tls.crt"] = crt, ["tls.key"] = of } })
  end
  local CERT, KEY = pair()
  secret("empty", "", "")
  secret("no PEM", "x", "y")
  secret("good", CERT, KEY)
  secret("switched", KEY, CERT)
  secret("the certificate twice", CERT, CERT)
  secret("no key", CERT, "x")
  secret("of another", CERT, select(2, pair()))
  add("a class with old labels", "/apis/storage.k8s.io/v1/storageclasses", { provisioner = "example.com/p",
    allowedTopologies = { { matchLabelExpressions = { { key = "failure-domain.beta.kubernetes.io/zone",
      values = { "z" } } } } } })
  add("a capacity with old labels", "/apis/storage.k8s.io/v1/namespaces/" .. ns .. "/csistoragecapacities",
    { storageClassName = "c", nodeTopology = { matchLabels = { ["beta.kubernetes.io/os"] = "linux" },
      matchExpressions = { { key = "beta.kubernetes.io/arch", operator = "Exists" } } } })
  add("a RuntimeClass with old labels", "/apis/node.k8s.io/v1/runtimeclasses", { handler = "h",
    scheduling = { nodeSelector = { ["beta.kubernetes.io/os"] = "linux" } } })
  add("a node with ranges", "/api/v1/nodes",
    { spec = { podCIDR = "10.1.2.3/24", podCIDRs = { "10.1.2.3/24" } } })
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
