-- kinds_rules_spec.lua - defaults and rules of RBAC, disruption budgets, network policies and autoscalers.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local NONE = both.NONE

both.describe("rights", function(ns)
  local group = "rbac.authorization.k8s.io"
  local base = "/apis/" .. group .. "/v1"
  local path = base .. "/namespaces/" .. ns
  local function role(what, rules, code)
    return { what, "POST", path .. "/roles?dryRun=All", { metadata = { name = "r" }, rules = rules },
      code or 422 }
  end
  local function binding(what, kind, ref, subjects, code)
    local where = kind == "rolebindings" and path or base
    return { kind .. ": " .. what, "POST", where .. "/" .. kind .. "?dryRun=All",
      { metadata = { name = "b" }, roleRef = ref,
      subjects = subjects }, code or 422 }
  end
  local good = { apiGroup = group, kind = "ClusterRole", name = "r" }
  return {
    role("a role", { { verbs = { "get" }, apiGroups = { "" }, resources = { "pods" } } }, 201),
    role("a rule of nothing", { {} }),
    role("URLs in a namespace", { { verbs = { "get" }, nonResourceURLs = { "/x" } } }),
    { "URLs and resources", "POST", base .. "/clusterroles?dryRun=All",
      { metadata = { name = "r" }, rules = { { verbs = { "get" },
      nonResourceURLs = { "/x" }, resources = { "pods" } } } }, 422 },
    { "a sum of nothing", "POST", base .. "/clusterroles?dryRun=All",
      { metadata = { name = "r" }, aggregationRule = {} }, 422 },
    binding("plain", "rolebindings", good,
      { { kind = "ServiceAccount", name = "a" }, { kind = "User", name = "u" } }, 201),
    binding("no role", "rolebindings", {}, nil),
    binding("a kind that is none", "rolebindings", { apiGroup = group, kind = "Right", name = "a/b" }, nil),
    binding("a namespace's role", "clusterrolebindings", { apiGroup = group, kind = "Role", name = "r" },
      nil),
    binding("subjects", "clusterrolebindings", good,
      { { kind = "ServiceAccount", name = "A" }, { kind = "Robot", name = "r" },
      { kind = "Group", apiGroup = "x", name = "" } }),
  }
end)

both.describe("policies", function(ns)
  local rows = {}
  local function add(what, path, spec, code)
    rows[#rows + 1] = { what, "POST", ("%s?dryRun=All"):format(path),
      { metadata = { name = "p" }, spec = spec }, code or 422 }
  end
  local budgets = "/apis/policy/v1/namespaces/" .. ns .. "/poddisruptionbudgets"
  add("a budget", budgets, { minAvailable = 1, selector = { matchLabels = { a = "b" } } }, 201)
  add("a budget of shares", budgets, { maxUnavailable = "101%" })
  add("a budget of words", budgets, { minAvailable = "some" })
  add("a negative budget", budgets, { minAvailable = -1 })
  add("a budget's selector", budgets, { selector = { matchExpressions = { { key = "a", operator = "Has" } } },
    unhealthyPodEvictionPolicy = "Never" })
  local nets = "/apis/networking.k8s.io/v1/namespaces/" .. ns .. "/networkpolicies"
  add("a network policy", nets,
    { podSelector = {}, ingress = { { from = { { podSelector = {} } }, ports = { { port = 80 },
    { port = "web", protocol = "UDP" } } } } }, 201)
  add("peers", nets, { podSelector = {},
    ingress = { { from = { {}, { ipBlock = {} }, { ipBlock = { cidr = "x" } },
    { ipBlock = { cidr = "10.0.0.0/8" }, podSelector = {} } } } } })
  add("ports", nets, { podSelector = {},
    egress = { { ports = { { port = 0 }, { port = "Web" }, { endPort = 3 },
    { port = 80, endPort = 70 }, { port = "a", endPort = 3 }, { protocol = "X" } } } } })
  add("types", nets, { podSelector = {}, policyTypes = { "Sideways" } })
  add("many types", nets, { podSelector = {}, policyTypes = { "Ingress", "Egress", "Ingress" } })
  local scalers = "/apis/autoscaling/v2/namespaces/" .. ns .. "/horizontalpodautoscalers"
  local ref = { apiVersion = "apps/v1", kind = "Deployment", name = "d" }
  add("an autoscaler without numbers", scalers, { scaleTargetRef = ref, metrics = NONE })
  add("an autoscaler", scalers, { scaleTargetRef = ref, maxReplicas = 3 }, 201)
  add("another version", scalers,
    { scaleTargetRef = { apiVersion = "a/b/c", kind = "D", name = "d" }, maxReplicas = 3 })
  add("more than most", scalers, { scaleTargetRef = ref, minReplicas = 5, maxReplicas = 3 })
  add("none", scalers, { scaleTargetRef = ref, minReplicas = -1, maxReplicas = 3 })
  add("no target", scalers, { scaleTargetRef = {}, maxReplicas = 3 })
  add("metrics", scalers,
    { scaleTargetRef = ref, maxReplicas = 3, metrics = { { type = "Pods" }, { type = "Some" } } })
  return rows
end)

both.describe("kinds that are going", function(ns)
  return {
    { "Endpoints", "GET", "/api/v1/namespaces/" .. ns .. "/endpoints/absent", nil, 404 },
    { "Endpoints, made", "POST", "/api/v1/namespaces/" .. ns .. "/endpoints?dryRun=All",
      { metadata = { name = "e" } }, 201 },
  }
end)
