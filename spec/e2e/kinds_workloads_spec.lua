-- kinds_workloads_spec.lua - defaults and rules of pods and of the kinds that create them, as in
-- kube-apiserver.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"

local merge, NONE = both.merge, both.NONE

local function container(more) return merge({ name = "c", image = "i" }, more) end

both.describe("pods", function(ns)
  local path = "/api/v1/namespaces/" .. ns .. "/pods"
  local function pod(what, spec, code)
    return { what, "POST", path .. "?dryRun=All", { metadata = { name = "p" }, spec = merge({
      containers = { container() } }, spec) }, code or 422 }
  end
  -- Of one container.
  local function with(what, more, code) return pod(what, { containers = { container(more) } }, code) end
  local function volume(what, v, code)
    return pod(what, { volumes = { v } }, code)
  end
  local function mount(what, m)
    return pod(what, { volumes = { { name = "v", emptyDir = {} } },
      containers = { container { volumeMounts = m } } })
  end
  return {
    pod("nothing but a container", {}, 201),
    { "no spec", "POST", path, { metadata = { name = "p" } }, 422 },
    pod("no containers", { containers = NONE }),
    pod("a container without anything", { containers = { { name = "" } } }),
    pod("a container without an image", { containers = { { name = "c" } } }),
    with("a bad name", { name = "A_b" }),
    with("a name with dots", { name = "a.b" }),
    with("a long name", { name = ("a"):rep(64) }),
    pod("one name twice", { containers = { container(), container() } }),
    pod("one name twice, in init containers", { initContainers = { container() } }),
    with("white space around an image", { image = " i" }),
    with("a pull policy that is none", { imagePullPolicy = "Sometimes" }),
    with("a termination message policy that is none", { terminationMessagePolicy = "x" }),
    with("ports", { ports = { { containerPort = 80 },
      { containerPort = 81, name = "web", protocol = "UDP" } } }, 201),
    with("a port without a number", { ports = { { name = "web" } } }),
    with("ports out of range", { ports = { { containerPort = 70000, hostPort = -1 } } }),
    with("port names that are none", { ports = { { containerPort = 1, name = "A--" },
      { containerPort = 2, name = "123" }, { containerPort = 3, name = "abcdefghijklmnopq" } } }),
    with("one port name twice",
      { ports = { { containerPort = 1, name = "a" }, { containerPort = 2, name = "a" } } }),
    with("one host port twice",
      { ports = { { containerPort = 1, hostPort = 5 }, { containerPort = 2, hostPort = 5 } } }),
    with("a protocol that is none", { ports = { { containerPort = 1, protocol = "X" } } }),
    with("environment", { env = { { name = "A", value = "b" }, { name = "N", valueFrom = { fieldRef = {
      fieldPath = "metadata.name" } } } } }, 201),
    with("an environment variable without a name", { env = { { value = "b" } } }),
    with("an environment variable with =", { env = { { name = "a=b" } } }),
    with("a value and its source", { env = { { name = "A", value = "v", valueFrom = { fieldRef = {
      fieldPath = "metadata.name" } } } } }),
    with("no source of a value", { env = { { name = "A", valueFrom = {} } } }),
    with("two sources of a value",
      { env = { { name = "A", valueFrom = { fieldRef = { fieldPath = "metadata.name" },
      secretKeyRef = { name = "s", key = "k" } } } } }),
    with("fields that are none",
      { env = { { name = "A", valueFrom = { fieldRef = { fieldPath = "spec.x" } } },
      { name = "B", valueFrom = { fieldRef = { fieldPath = "metadata.labels" } } } } }),
    with("a reference without key",
      { env = { { name = "A", valueFrom = { configMapKeyRef = { name = "m" } } } } }),
    with("a reference without name",
      { env = { { name = "A", valueFrom = { secretKeyRef = { key = "m" } } } } }),
    with("a resource that is none",
      { env = { { name = "A", valueFrom = { resourceFieldRef = { resource = "x" } } } } }),
    with("envFrom without source", { envFrom = { {} } }),
    with("envFrom without a name", { envFrom = { { configMapRef = {} } } }),
    mount("a mount of what is not there", { { name = "w", mountPath = "/a" } }),
    mount("a mount without a path", { { name = "v" } }),
    mount("one path twice", { { name = "v", mountPath = "/a" }, { name = "v", mountPath = "/a" } }),
    mount("sub paths", { { name = "v", mountPath = "/a", subPath = "/x" },
      { name = "v", mountPath = "/b", subPath = "a/.." } }),
    mount("propagation", { { name = "v", mountPath = "/a", mountPropagation = "Bidirectional" } }),
    with("probes", { livenessProbe = { httpGet = { port = 80 } },
      readinessProbe = { exec = { command = { "a" } } },
      startupProbe = { tcpSocket = { port = "web" } } }, 201),
    with("a probe without a handler", { livenessProbe = {} }),
    with("a probe with two handlers",
      { livenessProbe = { tcpSocket = { port = 1 }, httpGet = { port = 1 } } }),
    with("a probe's port", { livenessProbe = { httpGet = { port = 0 } } }),
    with("a probe's numbers",
      { livenessProbe = { tcpSocket = { port = 1 }, periodSeconds = -1, successThreshold = 2 } }),
    with("a probe without a command", { readinessProbe = { exec = {} } }),
    with("a hook", { lifecycle = { preStop = { sleep = { seconds = 100 } } } }),
    with("a hook without a handler", { lifecycle = { postStart = {} } }),
    with("resources", { resources = { requests = { cpu = "100m", memory = "1Gi" },
      limits = { cpu = "1", ["e.com/x"] = "2" } } }, 201),
    with("a request above its limit", { resources = { requests = { cpu = "2" }, limits = { cpu = "1" } } }),
    with("a negative limit", { resources = { limits = { cpu = "-1" } } }),
    with("an unknown resource", { resources = { limits = { foo = "1" } } }),
    with("half an extended resource", { resources = { limits = { ["e.com/x"] = "1500m" } } }),
    with("an extended resource without limit", { resources = { requests = { ["e.com/x"] = "1" } } }),
    with("an extended request below its limit",
      { resources = { requests = { ["e.com/x"] = "1" }, limits = { ["e.com/x"] = "2" } } }),
    with("restart policy of a container", { restartPolicy = "Always" }, 201),
    with("a user that is none", { securityContext = { runAsUser = -1 } }),
    with("a seccomp profile that is none", { securityContext = { seccompProfile = { type = "X" } } }),
    pod("volumes", { volumes = { { name = "a" }, { name = "b", secret = { secretName = "s" } },
      { name = "c", configMap = { name = "m" } }, { name = "d", hostPath = { path = "/x" } },
      { name = "e", persistentVolumeClaim = { claimName = "c" } }, { name = "f", downwardAPI = { items = { {
        path = "p", fieldRef = { fieldPath = "metadata.labels" } } } } },
      { name = "g", projected = { sources = { { configMap = { name = "m" } } } } } } }, 201),
    volume("a volume without a name", { emptyDir = {} }),
    volume("a volume with a bad name", { name = "A" }),
    volume("a volume of two kinds", { name = "a", emptyDir = {}, hostPath = { path = "/" } }),
    pod("one volume twice", { volumes = { { name = "a" }, { name = "a" } } }),
    volume("a secret without a name", { name = "a", secret = {} }),
    volume("a ConfigMap without a name", { name = "a", configMap = {} }),
    volume("items", { name = "a", configMap = { name = "m", defaultMode = 1000, items = { { key = "k" },
      { key = "k", path = "/a" }, { key = "k", path = "../a" }, { key = "k", path = "..a", mode = -1 } } } }),
    volume("host paths", { name = "a", hostPath = { path = "/a/../b", type = "X" } }),
    volume("a host path without a path", { name = "a", hostPath = {} }),
    volume("a claim without a name", { name = "a", persistentVolumeClaim = {} }),
    volume("a projection of two", { name = "a", projected = { sources = { { configMap = { name = "m" },
      secret = { name = "s" } }, { secret = { items = { { key = "k", path = "/p" } } } },
      { serviceAccountToken = { expirationSeconds = 1 } } } } }),
    volume("nfs", { name = "a", nfs = { server = "s", path = "p" } }),
    pod("policies that are none", { restartPolicy = "Maybe", dnsPolicy = "Some" }),
    pod("a node selector", { nodeSelector = { ["a b"] = "c d" } }),
    pod("affinity to nodes",
      { affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = { { matchExpressions = { { key = "a", operator = "In" },
        { key = "b", operator = "Is" },
        { key = "c", operator = "Exists", values = { "x" } },
          { key = "d", operator = "Gt", values = NONE } } },
        { matchFields = { { key = "metadata.x", operator = "In", values = { "x" } } } } } } } } }),
    pod("affinity to no nodes",
      { affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = NONE } } } }),
    pod("preferences", { affinity = { nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution = {
      { weight = 0, preference = { matchExpressions = { { key = "a", operator = "Exists" } } } } } } } }),
    pod("affinity to pods", { affinity = { podAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      { labelSelector = { matchExpressions = { { key = "a", operator = "Has" } } } } } },
      podAntiAffinity = { preferredDuringSchedulingIgnoredDuringExecution = { { weight = 101,
        podAffinityTerm = {
        topologyKey = "a b", namespaces = { "A" } } } } } } }),
    pod("tolerations", { tolerations = { { operator = "Exists" }, { key = "a", value = "b" } } }, 201),
    pod("tolerations that are none",
      { tolerations = { { value = "a" }, { key = "a", operator = "Exists", value = "b" },
      { key = "a", operator = "In" }, { key = "a", effect = "Never" },
        { key = "a", tolerationSeconds = 3 } } }),
    pod("spreading", { topologySpreadConstraints = { { maxSkew = 0, topologyKey = "",
      whenUnsatisfiable = "Maybe" },
      { maxSkew = 1, topologyKey = "z", whenUnsatisfiable = "ScheduleAnyway", minDomains = 0 },
      { maxSkew = 1, topologyKey = "z", whenUnsatisfiable = "ScheduleAnyway" } } }),
    pod("names that are none",
      { serviceAccountName = "A", nodeName = "B", hostname = "c.d", subdomain = "E" }),
    pod("a deadline", { activeDeadlineSeconds = 0 }),
    pod("own DNS without servers", { dnsPolicy = "None" }),
    pod("DNS servers", { dnsConfig = { nameservers = { "x", "1.2.3.4" }, options = { { value = "v" } } } }),
    pod("host aliases", { hostAliases = { { ip = "x", hostnames = { "A" } } } }),
    pod("the host's network",
      { hostNetwork = true, containers = { container { ports = { { containerPort = 80 } } } } }, 201),
    pod("the host's network with other ports",
      { hostNetwork = true,
      containers = { container { ports = { { containerPort = 80, hostPort = 81 } } } } }),
    pod("gates", { schedulingGates = { { name = "a" }, { name = "a" }, { name = "b c" } } }),
    pod("a node for a gated pod", { nodeName = "n", schedulingGates = { { name = "a" } } }),
    pod("ephemeral containers", { ephemeralContainers = { { name = "e", image = "i" } } }),
    pod("an init container that stays",
      { initContainers = { { name = "s", image = "i", restartPolicy = "Always",
      livenessProbe = { tcpSocket = { port = 1 } } } } }, 201),
    pod("an init container that is probed", { initContainers = { { name = "s", image = "i",
      livenessProbe = { tcpSocket = { port = 1 } } } } }),
    pod("an operating system", { os = { name = "plan9" } }),
    { "a bad name", "POST", path, { metadata = { name = "A b" }, spec = { containers = { container() } } },
      422 },
  }
end)

both.describe("changes of pods", function(ns)
  local path = "/api/v1/namespaces/" .. ns .. "/pods"
  local function change(what, spec, code) return { what, "STRATEGIC", path .. "/p?dryRun=All",
    { spec = spec }, code or 422 } end
  return {
    { "a pod", "POST", path,
      { metadata = { name = "p" }, spec = { nodeName = "n", containers = { container() },
      activeDeadlineSeconds = 100 } }, 201 },
    change("another image", { containers = { { name = "c", image = "j" } } }, 200),
    change("no image", { containers = { { name = "c", image = "" } } }),
    change("another container", { containers = { { name = "d", image = "j" } } }),
    change("another node", { nodeName = "m" }),
    change("a command", { containers = { { name = "c", command = { "x" } } } }),
    change("a shorter deadline", { activeDeadlineSeconds = 50 }, 200),
    change("a longer deadline", { activeDeadlineSeconds = 500 }),
    { "no deadline", "PATCH", path .. "/p?dryRun=All", '{"spec":{"activeDeadlineSeconds":null}}', 422 },
    { "a toleration more", "JSON", path .. "/p?dryRun=All",
      '[{"op":"add","path":"/spec/tolerations/-","value":{"key":"x","operator":"Exists"}}]', 200 },
    { "a toleration less", "JSON", path .. "/p?dryRun=All", '[{"op":"remove","path":"/spec/tolerations/0"}]',
      200 },
    change("grace", { terminationGracePeriodSeconds = 3 }),
    change("gates", { schedulingGates = { { name = "a" } } }),
    { "labels", "PATCH", path .. "/p", { metadata = { labels = { a = "b" } } }, 200 },
  }
end)

local function template(more, spec)
  return merge({ metadata = { labels = { app = "w" } },
    spec = merge({ containers = { container() } }, spec) }, more)
end

both.describe("workloads", function(ns)
  local apps, batch = "/apis/apps/v1/namespaces/" .. ns, "/apis/batch/v1/namespaces/" .. ns
  local selector = { matchLabels = { app = "w" } }
  local rows = {}
  local function add(what, kind, spec, code)
    local base = kind:find "job" and batch or kind == "replicationcontrollers" and "/api/v1/namespaces/" .. ns
      or apps
    rows[#rows + 1] = { kind .. ": " .. what, "POST", base .. "/" .. kind .. "?dryRun=All",
      { metadata = { name = "w" }, spec = spec }, code or 422 }
  end
  for _, kind in ipairs { "deployments", "replicasets", "daemonsets", "statefulsets",
    "replicationcontrollers" } do
    local sel = kind == "replicationcontrollers" and { app = "w" } or selector
    local service = kind == "statefulsets" and "s" or nil
    local function spec(more) return merge({ selector = sel, serviceName = service, template = template() },
      more) end
    add("plain", kind, spec(), 201)
    rows[#rows + 1] = { kind .. ": no spec", "POST", rows[#rows][3], { metadata = { name = "w" } }, 422 }
    add("no containers", kind, spec { template = { spec = { containers = NONE } } })
    add("a container without image", kind, { selector = sel, serviceName = service, template = { metadata = {
      labels = { app = "w" } }, spec = { containers = { { name = "c" } } } } })
    add("restart policy", kind, spec { template = { spec = { restartPolicy = "Never" } } })
    add("deadline", kind, spec { template = { spec = { activeDeadlineSeconds = 3 } } })
    if kind == "replicationcontrollers" then
      add("another selector", kind, { selector = { app = "x" }, template = template() })
      add("no selector", kind, { template = template() }, 201)
    else
      add("bad selector", kind, { selector = { matchExpressions = { { key = "a", operator = "Has" } } },
        serviceName = service, template = template() })
    end
    if kind ~= "daemonsets" then add("replicas", kind, spec { replicas = -1 }) end
    add("ready seconds", kind, spec { minReadySeconds = -1 })
    add("a mount", kind, spec { template = { spec = { containers = { container { volumeMounts = { {
      name = "x", mountPath = "/x" } } } } } } })
  end
  local function deployment(what, more, code) add(what, "deployments",
    merge({ selector = selector, template = template() }, more), code) end
  deployment("recreate", { strategy = { type = "Recreate" } }, 201)
  deployment("recreate, rolling", { strategy = { type = "Recreate", rollingUpdate = { maxSurge = 1 } } })
  deployment("a strategy that is none", { strategy = { type = "Slow" } })
  deployment("nothing moves", { strategy = { rollingUpdate = { maxSurge = 0, maxUnavailable = "0%" } } })
  deployment("no percentage", { strategy = { rollingUpdate = { maxSurge = "1", maxUnavailable = "101%" } } })
  deployment("negative", { strategy = { rollingUpdate = { maxSurge = -1, maxUnavailable = 1 } } })
  deployment("a deadline below readiness", { minReadySeconds = 10, progressDeadlineSeconds = 5 })
  deployment("history", { revisionHistoryLimit = -1 })
  local function daemons(what, more, code) add(what, "daemonsets",
    merge({ selector = selector, template = template() }, more), code) end
  daemons("on delete", { updateStrategy = { type = "OnDelete" } }, 201)
  daemons("both", { updateStrategy = { rollingUpdate = { maxSurge = 1, maxUnavailable = 1 } } })
  daemons("neither", { updateStrategy = { rollingUpdate = { maxSurge = 0, maxUnavailable = 0 } } })
  daemons("a strategy that is none", { updateStrategy = { type = "Slow" } })
  local function set(what, more, code) add(what, "statefulsets",
    merge({ serviceName = "s", selector = selector, template = template() }, more), code) end
  set("on delete", { updateStrategy = { type = "OnDelete" } }, 201)
  set("on delete, rolling", { updateStrategy = { type = "OnDelete", rollingUpdate = { partition = 1 } } })
  set("a partition", { updateStrategy = { rollingUpdate = { partition = -1 } } })
  set("a strategy that is none", { updateStrategy = { type = "Slow" } })
  set("management", { podManagementPolicy = "Random" })
  set("retention", { persistentVolumeClaimRetentionPolicy = { whenDeleted = "Burn" } })
  set("claims", { volumeClaimTemplates = { { metadata = { name = "d" },
    spec = { accessModes = { "ReadWriteOnce" },
    resources = { requests = { storage = "1Gi" } } } } },
      template = { spec = { containers = { container { volumeMounts = { {
      name = "d", mountPath = "/d" } } } } } } }, 201)
  set("claims that are none",
    { volumeClaimTemplates = { { metadata = { name = "d" }, spec = { accessModes = NONE } } } })
  set("a service's name", { serviceName = "A" })
  set("ordinals", { ordinals = { start = -1 } })
  for _, kind in ipairs { "jobs", "cronjobs" } do
    local function job(what, more, code, pods)
      local run = merge({ template = { spec = merge({ restartPolicy = "Never", containers = { container() } },
        pods) } }, more)
      add(what, kind, kind == "jobs" and run or { schedule = "* * * * *", jobTemplate = { spec = run } },
        code)
    end
    job("plain", {}, 201)
    job("always", {}, 422, { restartPolicy = "Always" })
    job("no containers", {}, 422, { containers = NONE })
    job("numbers", { completions = -1, parallelism = -2, backoffLimit = -1, activeDeadlineSeconds = -1,
      ttlSecondsAfterFinished = -1 })
    job("indexed", { completionMode = "Indexed", completions = 3 }, 201)
    job("indexed, without completions", { completionMode = "Indexed", parallelism = 2 })
    job("a mode that is none", { completionMode = "Some" })
    job("limits for indexes", { backoffLimitPerIndex = 1, maxFailedIndexes = 1 })
    job("failed indexes", { completionMode = "Indexed", completions = 3, maxFailedIndexes = 5 })
    job("a failure policy",
      { podFailurePolicy = { rules = { { action = "FailJob",
      onExitCodes = { operator = "In", values = { 1, 2 } } } } } }, 201)
    job("a bad failure policy",
      { podFailurePolicy = { rules = { { action = "Cry", onExitCodes = { containerName = "x",
      operator = "In", values = { 2, 0, 2 } } }, { action = "FailIndex" },
        { onPodConditions = { { type = "a b" } } } } } })
    job("a replacement policy", { podReplacementPolicy = "Never" })
    job("a selector", { selector = { matchLabels = { a = "b" } } })
  end
  local function cron(what, more, code)
    add(what, "cronjobs", merge({ schedule = "*/5 * * * *", jobTemplate = { spec = { template = { spec = {
      restartPolicy = "Never", containers = { container() } } } } } }, more), code)
  end
  for _, schedule in ipairs { "@daily", "@every 1h30m", "0 0 1 1 0", "1-5/2,7 * ? JAN-mar mon" } do
    cron(schedule, { schedule = schedule }, 201)
  end
  for _, schedule in ipairs { "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *",
    "* * * 13 *", "* * * * 7",
    "x * * * *", "5-1 * * * *", "1-2-3 * * * *", "*/0 * * * *", "1/2/3 * * * *", "-1 * * * *", "@often",
      "@every x",
    "@every 5", "TZ=UTC * * * * *" } do
    cron(("schedule %q"):format(schedule), { schedule = schedule })
  end
  cron("a time zone", { timeZone = "Europe/Berlin" }, 201)
  cron("no time zone", { timeZone = "" })
  cron("a time zone that is none", { timeZone = "Nowhere/City" })
  cron("a bad time zone", { timeZone = "../x" })
  cron("the local time zone", { timeZone = "Local" })
  cron("concurrency", { concurrencyPolicy = "Some" })
  cron("history", { successfulJobsHistoryLimit = -1, failedJobsHistoryLimit = -2,
    startingDeadlineSeconds = -1 })
  rows[#rows + 1] = { "a long name of a CronJob", "POST", batch .. "/cronjobs",
    { metadata = { name = ("a"):rep(53) },
    spec = { schedule = "* * * * *", jobTemplate = { spec = { template = { spec = { restartPolicy = "Never",
      containers = { container() } } } } } } }, 422 }
  return rows
end)

both.describe("changes of workloads", function(ns)
  local apps, batch = "/apis/apps/v1/namespaces/" .. ns, "/apis/batch/v1/namespaces/" .. ns
  local selector = { matchLabels = { app = "w" } }
  local rows = {
    { "a job", "POST", batch .. "/jobs", { metadata = { name = "j" }, spec = { template = { spec = {
      restartPolicy = "Never", containers = { container() } } } } }, 201 },
    { "completions", "PATCH", batch .. "/jobs/j", { spec = { completions = 5 } }, 422 },
    { "parallelism", "PATCH", batch .. "/jobs/j", { spec = { parallelism = 5 } }, 200 },
    { "suspension", "PATCH", batch .. "/jobs/j", { spec = { suspend = true } }, 200 },
    { "the selector", "PATCH", batch .. "/jobs/j", { spec = { selector = { matchLabels = { a = "b" } } } },
      422 },
    { "the template", "STRATEGIC", batch .. "/jobs/j", { spec = { template = { spec = { containers = { {
      name = "c", image = "j" } } } } } }, 422 },
    { "the mode", "PATCH", batch .. "/jobs/j", { spec = { completionMode = "Indexed" } }, 422 },
    { "the template's node selector", "PATCH", batch .. "/jobs/j",
      { spec = { template = { spec = { nodeSelector = { a = "b" } } } } }, 200 },
  }
  for _, kind in ipairs { "deployments", "replicasets", "daemonsets", "statefulsets" } do
    rows[#rows + 1] = { kind, "POST", apps .. "/" .. kind,
      { metadata = { name = "w" }, spec = { selector = selector,
      serviceName = kind == "statefulsets" and "s" or nil, template = template() } }, 201 }
    rows[#rows + 1] = { kind .. ": selector", "PATCH", apps .. "/" .. kind .. "/w",
      { spec = { selector = { matchLabels = {
      b = "c" } }, template = { metadata = { labels = { b = "c" } } } } }, 422 }
    rows[#rows + 1] = { kind .. ": a bad container", "PATCH", apps .. "/" .. kind .. "/w",
      { spec = { template = { spec = {
      containers = { { name = "c" } } } } } }, 422 }
    rows[#rows + 1] = { kind .. ": an image", "STRATEGIC", apps .. "/" .. kind .. "/w",
      { spec = { template = { spec = {
      containers = { { name = "c", image = "j" } } } } } }, 200 }
    rows[#rows + 1] = { kind .. ": status and spec", "PATCH", apps .. "/" .. kind .. "/w/status",
      { spec = { minReadySeconds = 5 },
      metadata = { labels = { x = "y" } } }, 200 }
  end
  return rows
end)
