-- written.lua - a small valid object of each built-in kind that clients write, for specs that write them all.
--
-- An entry is { API, resource, object without metadata, "status" if that is written apart, true if it has no
-- namespace }.

local both = require "support.both"

local NONE = both.NONE
local SELECTOR = { matchLabels = { a = "b" } }
local CONTAINERS = { { name = "c", image = "i" } }
local TEMPLATE = { metadata = { labels = { a = "b" } }, spec = { containers = CONTAINERS } }
local JOB = { metadata = { labels = { a = "b" } },
  spec = { restartPolicy = "Never", containers = CONTAINERS } }
local HOOK = { name = "a.b.c", admissionReviewVersions = { "v1" }, sideEffects = "None",
  clientConfig = { url = "https://a.b" }, failurePolicy = "Ignore" }
local M = {
  { "/api/v1", "secrets", {} }, { "/api/v1", "serviceaccounts", {} }, { "/api/v1", "limitranges", {} },
  { "/api/v1", "resourcequotas", {}, "status" }, { "/api/v1", "podtemplates", { template = TEMPLATE } },
  { "/api/v1", "endpoints", {} },
  { "/api/v1", "services", { spec = { ports = { { port = 1 } } } }, "status" },
  { "/api/v1", "pods", { spec = TEMPLATE.spec }, "status" },
  { "/api/v1", "replicationcontrollers", { spec = { selector = { a = "b" }, template = TEMPLATE } },
    "status" },
  { "/api/v1", "persistentvolumeclaims", { spec = { accessModes = { "ReadWriteOnce" },
    resources = { requests = { storage = "1" } } } }, "status" },
  { "/apis/apps/v1", "replicasets", { spec = { selector = SELECTOR, template = TEMPLATE } }, "status" },
  { "/apis/apps/v1", "daemonsets", { spec = { selector = SELECTOR, template = TEMPLATE } }, "status" },
  { "/apis/apps/v1", "statefulsets", { spec = { selector = SELECTOR, template = TEMPLATE } }, "status" },
  { "/apis/apps/v1", "controllerrevisions", { revision = 1, data = { a = 1 } } },
  { "/apis/batch/v1", "jobs", { spec = { template = JOB } }, "status" },
  { "/apis/batch/v1", "cronjobs", { spec = { schedule = "* * * * *",
    jobTemplate = { spec = { template = JOB } } } }, "status" },
  { "/apis/autoscaling/v2", "horizontalpodautoscalers", { spec = { maxReplicas = 2,
    scaleTargetRef = { kind = "Deployment", name = "d" } } }, "status" },
  { "/apis/networking.k8s.io/v1", "ingresses", { spec = { defaultBackend = { service = { name = "a",
    port = { number = 1 } } } } }, "status" },
  { "/apis/networking.k8s.io/v1", "networkpolicies", { spec = { podSelector = {} } } },
  { "/apis/policy/v1", "poddisruptionbudgets", { spec = { minAvailable = 1, selector = SELECTOR } },
    "status" },
  { "/apis/coordination.k8s.io/v1", "leases", {} },
  { "/apis/discovery.k8s.io/v1", "endpointslices", { addressType = "IPv4", endpoints = NONE } },
  { "/apis/rbac.authorization.k8s.io/v1", "roles", { rules = NONE } },
  { "/apis/rbac.authorization.k8s.io/v1", "rolebindings", { roleRef = {
    apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = "a" } } },
  { "/apis/resource.k8s.io/v1", "resourceclaims", { spec = {} }, "status" },
  { "/apis/resource.k8s.io/v1", "resourceclaimtemplates", { spec = { spec = {} } } },
  { "/apis/storage.k8s.io/v1", "csistoragecapacities", { storageClassName = "a" } },
  { "/api/v1", "nodes", {}, "status", true },
  { "/api/v1", "persistentvolumes", { spec = { capacity = { storage = "1" },
    accessModes = { "ReadWriteOnce" }, hostPath = { path = "/a" } } }, "status", true },
  { "/apis/storage.k8s.io/v1", "storageclasses", { provisioner = "a" }, nil, true },
  { "/apis/storage.k8s.io/v1", "volumeattributesclasses", { driverName = "a", parameters = { a = "b" } }, nil,
    true },
  { "/apis/storage.k8s.io/v1", "csidrivers", { spec = {} }, nil, true },
  { "/apis/storage.k8s.io/v1", "csinodes", { spec = { drivers = NONE } }, nil, true },
  { "/apis/storage.k8s.io/v1", "volumeattachments", { spec = { attacher = "a", nodeName = "n",
    source = { persistentVolumeName = "p" } } }, "status", true },
  { "/apis/scheduling.k8s.io/v1", "priorityclasses", { value = 1 }, nil, true },
  { "/apis/node.k8s.io/v1", "runtimeclasses", { handler = "a" }, nil, true },
  { "/apis/networking.k8s.io/v1", "ingressclasses", { spec = { controller = "a.b/c" } }, nil, true },
  { "/apis/rbac.authorization.k8s.io/v1", "clusterroles", { rules = NONE }, nil, true },
  { "/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", { roleRef = {
    apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "a" } }, nil, true },
  { "/apis/resource.k8s.io/v1", "deviceclasses", { spec = {} }, nil, true },
  { "/apis/resource.k8s.io/v1", "resourceslices", { spec = { driver = "a.b", allNodes = true,
    pool = { name = "p", resourceSliceCount = 1, generation = 0 } } }, nil, true },
  { "/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", { webhooks = { HOOK } }, nil,
    true },
  { "/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", { webhooks = { HOOK } }, nil,
    true },
  { "/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies", { spec = {
    matchConstraints = { resourceRules = { { apiGroups = { "" }, apiVersions = { "v1" },
      operations = { "CREATE" }, resources = { "nope" } } } }, validations = { { expression = "true" } } } },
    "status", true },
  { "/apis/flowcontrol.apiserver.k8s.io/v1", "flowschemas", { spec = {
    priorityLevelConfiguration = { name = "exempt" }, matchingPrecedence = 9000 } }, "status", true },
  { "/apis/flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", { spec = { type = "Limited",
    limited = { limitResponse = { type = "Reject" } } } }, "status", true },
  { "/api/v1", "namespaces", {}, "status", true },
}

--- The path of a kind's objects in a namespace.
function M.path(kind, ns) return kind[1] .. (kind[5] and "" or "/namespaces/" .. ns) .. "/" .. kind[2] end

--- A name that is unique in the cluster, where the kind has no namespaces.
function M.name(kind, ns, name) return kind[5] and ns .. "-" .. name or name end

return M
