-- metadata_spec.lua - metadata that clients send: what is refused, as often as kube-apiserver says it, what
-- is ignored, and who owns nulls, empty lists and fields that a subresource takes back.

local both = require "support.both"
local json = require "dkjson"
local kinds = require "support.written"

local NULL, NONE, PAST = both.NULL, both.NONE, "2026-01-01T00:00:00Z"

local function deployment(more)
  return both.merge({ apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "d" }, spec = {
    selector = { matchLabels = { a = "b" } }, template = { metadata = { labels = { a = "b" } },
      spec = { containers = { { name = "c", image = "i" } } } } } }, more)
end

local FIELDS = { { labels = { ["a b"] = "x y" } }, { annotations = { ["/"] = "a" } }, { uid = "x" },
  { deletionTimestamp = PAST }, { deletionGracePeriodSeconds = 5 }, { creationTimestamp = PAST },
  { creationTimestamp = NULL }, { generation = 7 }, { generation = -1 }, { generateName = "x" },
  { generateName = "B_" }, { generateName = "a/b" }, { name = "e" }, { namespace = "e" },
  { resourceVersion = "0" }, { resourceVersion = "" }, { resourceVersion = "abc" },
  { resourceVersion = "18446744073709551615" }, { resourceVersion = "18446744073709551616" },
  { uid = "x", resourceVersion = "1" },
  { finalizers = { "a" } }, { finalizers = { "a.b/c" } }, { finalizers = { "a.b/d", "x_" } },
  { finalizers = { "orphan", "foregroundDeletion" } }, { finalizers = NULL },
  { ownerReferences = { { apiVersion = "v1", kind = "Pod", name = "x", uid = "y" } } },
  { ownerReferences = { { apiVersion = "v1", kind = "Pod", name = "x", uid = "" } } },
  { managedFields = { { manager = "x", operation = "Bad" } } },
  { managedFields = { { manager = "x", operation = "Update", apiVersion = "v1", fieldsType = "FieldsV1",
    fieldsV1 = { ["f:data"] = {} } } } } }

both.describe("fields of metadata", function(ns)
  local maps = "/api/v1/namespaces/" .. ns .. "/configmaps"
  local deployments = "/apis/apps/v1/namespaces/" .. ns .. "/deployments"
  local rows = { { "a map", "POST", maps, { metadata = { name = "a" } } },
    { "a deployment", "POST", deployments, deployment() } }
  local function add(what, fields, ...) rows[#rows + 1] = { what .. " " .. json.encode(fields), ... } end
  for _, fields in ipairs(FIELDS) do
    add("merged into a map:", fields, "PATCH", maps .. "/a", { metadata = fields })
    add("merged into a deployment:", fields, "PATCH", deployments .. "/d", { metadata = fields })
    add("merged into a status:", fields, "PATCH", deployments .. "/d/status", { metadata = fields })
    add("of a map:", fields, "PUT", maps .. "/a", { metadata = both.merge({ name = "a" }, fields) })
    add("of a deployment:", fields, "PUT", deployments .. "/d", deployment { metadata = fields })
    add("of a new map:", fields, "POST", maps .. "?dryRun=All",
      { metadata = both.merge({ name = "q" }, fields) })
    add("applied:", fields, "APPLY", maps .. "/a?dryRun=All&force=true&fieldManager=z",
      { apiVersion = "v1", kind = "ConfigMap", metadata = both.merge({ name = "a" }, fields) })
  end
  return rows
end)

-- A label that no kind may have, in an update of each kind: how often it is refused.
both.describe("a bad label and finalizers without a domain", function(ns)
  local rows = {}
  for _, kind in ipairs(kinds) do
    local all, name = kinds.path(kind, ns), kinds.name(kind, ns, "m")
    local one = all .. "/" .. name
    local bad = { metadata = { labels = { ["a b"] = "x" }, finalizers = { "a", "b.c/d" } } }
    local function add(what, ...) rows[#rows + 1] = { kind[2] .. ": " .. what, ... } end
    add("new", "POST", all, both.merge({ metadata = { name = name } }, kind[3]))
    add("new with it", "POST", all .. "?dryRun=All", both.merge({ metadata = { name = name .. "2" } },
      both.merge(both.merge({}, kind[3]), bad)))
    add("merged", "PATCH", one, bad)
    if kind[4] then add("merged into the status", "PATCH", one .. "/" .. kind[4], bad) end
    -- The real one gives finalizers to volumes and their classes, which only controllers take.
    local held = kind[2] == "persistentvolumes" or kind[2] == "volumeattributesclasses"
    if kind[5] and not held then add("deleted", "DELETE", one) end
  end
  return rows
end)

both.describe("nulls and empty lists", function(ns)
  local core, apps = "/api/v1/namespaces/" .. ns, "/apis/apps/v1/namespaces/" .. ns .. "/deployments"
  local roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. ns .. "/roles"
  local rules = { { verbs = { "get" }, apiGroups = { "" }, resources = { "pods" } } }
  local function role(name, list)
    return { apiVersion = "rbac.authorization.k8s.io/v1", kind = "Role", metadata = { name = name },
      rules = list }
  end
  local function applied(spec)
    return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "d" }, spec = spec }
  end
  local function map(more)
    return both.merge({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }, more)
  end
  return {
    { "a role with no rules", "POST", roles, role("a", NONE) },
    { "read", "GET", roles .. "/a" },
    { "written again by another", "PUT", roles .. "/a?fieldManager=b", role("a", NONE) },
    { "without the list", "PUT", roles .. "/a?fieldManager=c", role "a" },
    { "with null", "PUT", roles .. "/a?fieldManager=d", role("a", NULL) },
    { "with rules", "PUT", roles .. "/a?fieldManager=e", role("a", rules) },
    { "without rules again", "PUT", roles .. "/a?fieldManager=f", role("a", NONE) },
    { "with a label", "PATCH", roles .. "/a?fieldManager=g", { metadata = { labels = { a = "b" } } } },
    { "merged", "PATCH", roles .. "/a?fieldManager=h", { rules = NONE } },
    { "applied", "APPLY", roles .. "/a?fieldManager=i&force=true", role("a", NONE) },
    { "applied as a new role", "APPLY", roles .. "/b?fieldManager=i", role("b", NONE) },
    { "null applied as a new role", "APPLY", roles .. "/c?fieldManager=i", role("c", NULL) },
    { "null in a list", "APPLY", roles .. "/d?fieldManager=i", role("d", { NULL }) },
    { "no verbs", "POST", roles .. "?dryRun=All", role("x", { { verbs = NONE } }) },
    { "no resources", "POST", roles .. "?dryRun=All",
      role("x", { { verbs = { "get" }, apiGroups = NONE, resources = NONE } }) },
    { "a map of nulls", "POST", core .. "/configmaps", { metadata = { name = "a", labels = { x = NULL },
      annotations = { y = NULL } }, data = { a = NULL }, binaryData = { b = NULL } } },
    { "a secret of nulls", "POST", core .. "/secrets",
      { metadata = { name = "a" }, data = { a = NULL }, stringData = { b = NULL } } },
    { "null in an applied map", "APPLY", core .. "/configmaps/a?fieldManager=x&force=true",
      map { data = { a = NULL, b = "c" } } },
    { "null as an applied map", "APPLY", core .. "/configmaps/a?fieldManager=x", map { data = NULL } },
    { "an empty applied map", "APPLY", core .. "/configmaps/a?fieldManager=x",
      map { metadata = { finalizers = NONE }, data = {} } },
    { "a deployment", "POST", apps, deployment() },
    { "applied nulls", "APPLY", apps .. "/d?fieldManager=x&force=true", deployment { spec = { replicas = NULL,
      paused = NULL, template = { spec = { nodeSelector = NULL, dnsPolicy = NULL } } } } },
    { "applied zeros", "APPLY", apps .. "/d?fieldManager=y&force=true", deployment { metadata = { labels = {},
      annotations = NULL }, spec = { replicas = 0, paused = false, minReadySeconds = 0,
      template = { spec = { volumes = NONE, nodeSelector = {}, dnsPolicy = "" } } } } },
    { "applied nulls for structs", "APPLY", apps .. "/d?fieldManager=x&force=true", applied {
      selector = NULL, strategy = NULL, template = { spec = { containers = { { name = "c", ports = NULL,
        resources = NULL, image = "i" } } } } } },
    { "an applied null for all", "APPLY", apps .. "/d?fieldManager=x&force=true", applied(NULL) },
    { "an applied null container", "APPLY", apps .. "/d?fieldManager=x", applied {
      template = { spec = { containers = { NULL } } } } },
    { "an applied container that is a text", "APPLY", apps .. "/d?fieldManager=x", applied {
      template = { spec = { containers = { "c" } } } } },
    { "an applied container without a name", "APPLY", apps .. "/d?fieldManager=x", applied {
      template = { spec = { containers = { { name = "c" }, { image = "i" } } } } } },
    { "an applied finalizer that is none", "APPLY", apps .. "/d?fieldManager=x", { apiVersion = "apps/v1",
      kind = "Deployment", metadata = { name = "d", finalizers = { NULL } } } },
    { "applied nulls in maps", "APPLY", apps .. "/d?fieldManager=x&force=true", applied {
      template = { spec = { containers = { { name = "c", resources = { limits = { cpu = NULL } },
        env = { { name = "a", value = NULL } } } } } } } },
    { "nothing applied any more", "APPLY", apps .. "/d?fieldManager=x", applied(nil) },
  }
end)

both.describe("managers of other versions", function(ns)
  local one = "/apis/apps/v1/namespaces/" .. ns .. "/deployments"
  local rows = { { "a deployment", "POST", one, deployment() } }
  local function entry(version, operation, manager)
    return { manager = manager or "x", operation = operation or "Update", apiVersion = version,
      fieldsType = "FieldsV1", fieldsV1 = { ["f:spec"] = { ["f:replicas"] = {} } } }
  end
  local lists = { { entry "v1" }, { entry "apps/v1", entry "apps/v1beta1" },
    { entry("apps/v1beta1", "Apply") }, { entry("v1", "Apply", "z") },
    { entry "apps/v1", entry "nope/v1" }, { entry "" } }
  for i, list in ipairs(lists) do
    local function add(what, ...) rows[#rows + 1] = { ("%s %d"):format(what, i), ... } end
    local function applied(by, n)
      return one .. "/d?fieldManager=" .. by, { apiVersion = "apps/v1", kind = "Deployment",
        metadata = { name = "d" }, spec = { replicas = n } }
    end
    add("written", "PUT", one .. "/d", deployment { metadata = { managedFields = list } })
    add("merged", "PATCH", one .. "/d", { spec = { replicas = i } })
    add("applied by z", "APPLY", applied("z&force=true", i + 10))
    add("applied by y", "APPLY", applied("y", i + 10))
  end
  return rows
end)

both.describe("what a subresource takes back, its writer owns:", function(ns)
  local pods = "/api/v1/namespaces/" .. ns .. "/pods"
  local function amounts(cpu) return { limits = { cpu = cpu }, requests = { cpu = cpu } } end
  local function pod(labels, spec)
    return { apiVersion = "v1", kind = "Pod", metadata = { name = "p", labels = labels }, spec = spec }
  end
  local watch = "/api/v1/watch/namespaces/" .. ns .. "/pods/p"
  local function selected(by) return watch .. "?timeoutSeconds=1&fieldSelector=" .. by end
  local function ephemeral(container)
    return { activeDeadlineSeconds = 5, ephemeralContainers = { container } }
  end
  return {
    { "a pod", "POST", pods,
      pod(nil, { containers = { { name = "c", image = "i", resources = amounts "1" } } }) },
    { "an ephemeral container", "STRATEGIC", pods .. "/p/ephemeralcontainers?fieldManager=e",
      pod({ x = "y" }, ephemeral { name = "e", image = "i" }) },
    { "metadata and status", "PATCH", pods .. "/p/ephemeralcontainers?fieldManager=e2",
      { metadata = { labels = { x = "y" }, annotations = { a = "b" } }, status = { phase = "Running" } } },
    { "a resize", "STRATEGIC", pods .. "/p/resize?fieldManager=r", pod({ x = "y" }, {
      activeDeadlineSeconds = 5, containers = { { name = "c", image = "j", resources = amounts "2" } } }) },
    { "an applied resize", "APPLY", pods .. "/p/resize?fieldManager=r2&force=true", pod({ x = "y" }, {
      activeDeadlineSeconds = 5, containers = { { name = "c", resources = amounts "3" } } }) },
    { "an applied ephemeral container", "APPLY", pods .. "/p/ephemeralcontainers?fieldManager=e3&force=true",
      pod({ x = "z" }, ephemeral { name = "f", image = "j" }) },
    { "the pod", "GET", pods .. "/p" },
    { "a watch of the pod by another name", "GET", selected "metadata.name%3Dq" },
    { "a watch of the pod on a node", "GET", selected "spec.nodeName%3Dq" },
    { "a watch of a name with a comma", "GET", watch .. "%2Cspec.nodeName%3Dx?timeoutSeconds=1" },
    { "a watch of the pod not on a node", "GET", selected "metadata.name%3Dp,spec.nodeName!%3Dq" },
  }
end)
