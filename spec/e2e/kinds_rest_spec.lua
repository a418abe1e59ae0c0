-- kinds_rest_spec.lua - kinds with few rules: PodTemplates, VolumeAttributesClasses, CSIStorageCapacities;
-- Bindings, which are not stored; reviews, and the fields that they must not have; updates without a version.
-- not in tsan: one request after the other

local both = require "support.both"

local CONTAINERS = { { name = "c", image = "i" } }

both.describe("pod templates", function(ns)
  local rows = {}
  local base = ("/api/v1/namespaces/%s/podtemplates"):format(ns)
  local function row(what, method, path, name, template, code, labels)
    rows[#rows + 1] = { what, method, base .. path, { metadata = { name = name, labels = labels },
      template = template }, code }
  end
  row("none", "POST", "", "n", nil, 422)
  row("names and labels", "POST", "", "n", { metadata = { labels = { ["-"] = "y" } },
    spec = { restartPolicy = "Never", containers = { { name = "C" } } } }, 422)
  row("good", "POST", "", "t", { spec = { containers = CONTAINERS } }, 201)
  row("its labels change", "PUT", "/t", "t", { spec = { containers = CONTAINERS } }, 200, { a = "b" })
  row("its pods change", "PUT", "/t", "t", { spec = { containers = { { name = "c", image = "j" } } } }, 200)
  row("a new one by PUT", "PUT", "/u", "u", { spec = { containers = CONTAINERS } }, 404)
  row("is deleted", "DELETE", "/t", nil, nil, 200)
  return rows
end)

both.describe("classes of volumes' attributes", function(ns)
  local rows = {}
  local base = "/apis/storage.k8s.io/v1/volumeattributesclasses"
  local function row(what, method, path, driver, parameters, code)
    rows[#rows + 1] = { what, method, base .. path, { metadata = { name = ns }, driverName = driver,
      parameters = parameters }, code }
  end
  row("nothing", "POST", "", nil, nil, 422)
  row("names", "POST", "", "-bad", { [""] = "x" }, 422)
  row("too long", "POST", "", ("a"):rep(64), { a = ("x"):rep(300000) }, 422)
  row("good", "POST", "", "A.b_c", { a = "" }, 201)
  row("a field changes", "PUT", "/" .. ns, "a.c", { a = "c" }, 422)
  row("nothing changes", "PUT", "/" .. ns, "A.b_c", { a = "" }, 200)
  local one = base .. "/" .. ns
  rows[#rows + 1] = { "no finalizers", "PATCH", one, { metadata = { finalizers = both.NONE } }, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", one, nil, 200 }
  return rows
end)

both.describe("capacities of storage", function(ns)
  local rows = {}
  local base = ("/apis/storage.k8s.io/v1/namespaces/%s/csistoragecapacities"):format(ns)
  local function row(what, method, path, o, code)
    o.metadata = { name = "c" }
    rows[#rows + 1] = { what, method, base .. path, o, code }
  end
  local function labels(key, value) return { matchLabels = { [key] = value } } end
  row("nothing", "POST", "", {}, 422)
  row("all is bad", "POST", "", { storageClassName = "A_", capacity = "-1Gi", maximumVolumeSize = "-1",
    nodeTopology = labels("-", "x") }, 422)
  row("good", "POST", "", { storageClassName = "a", capacity = "1Gi", maximumVolumeSize = "2Gi",
    nodeTopology = labels("a", "x") }, 201)
  row("an update without a version", "PUT", "/c", { storageClassName = "b" }, 422)
  row("what stays", "PATCH", "/c", { storageClassName = "b", capacity = "2Gi",
    nodeTopology = labels("a", "y") }, 422)
  row("what changes", "PATCH", "/c", { capacity = "2Gi" }, 200)
  return rows
end)

both.describe("updates without a version", function(ns)
  local rows = {}
  local function pair(what, base, name, o, code)
    o.metadata = { name = name }
    rows[#rows + 1] = { what .. " is made", "POST", base, both.merge({}, o), 201 }
    rows[#rows + 1] = { what .. " is updated", "PUT", base .. "/" .. name, both.merge({}, o), code }
  end
  pair("a lease", ("/apis/coordination.k8s.io/v1/namespaces/%s/leases"):format(ns), "l",
    { spec = { holderIdentity = "a", leaseDurationSeconds = 5 } }, 422)
  pair("a budget", ("/apis/policy/v1/namespaces/%s/poddisruptionbudgets"):format(ns), "b",
    { spec = { maxUnavailable = 1, selector = { matchLabels = { a = "b" } } } }, 422)
  pair("an account", ("/api/v1/namespaces/%s/serviceaccounts"):format(ns), "a", {}, 200)
  return rows
end)

both.describe("requests and definitions that say nothing", function(ns)
  return {
    { "a certificate", "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
      { metadata = { name = ns } }, 422 },
    { "a definition", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      { metadata = { name = ns } }, 422 },
  }
end)

both.describe("Bindings by themselves", function(ns)
  local base = "/api/v1/namespaces/" .. ns
  local function bind(what, name, target, code)
    return { what, "POST", base .. "/bindings", { metadata = { name = name }, target = target }, code }
  end
  return {
    bind("no pod", nil, { kind = "Node", name = "n" }, 400),
    bind("no such pod", "none", { kind = "Node", name = "n" }, 404),
    bind("no target", "p", {}, 500),
    bind("a target of another kind without a name", "p", { kind = "Pod" }, 500),
    { "a pod", "POST", base .. "/pods", { metadata = { name = "p" },
      spec = { containers = CONTAINERS } }, 201 },
    bind("it is bound", "p", { kind = "Node", name = "n-" .. ns }, 201),
    bind("and not twice", "p", { name = "n-" .. ns }, 409),
    { "nothing is kept", "GET", base .. "/bindings", nil, 405 },
  }
end)

both.describe("reviews", function(ns)
  local base = "/apis/authorization.k8s.io/v1/"
  local here = base .. "namespaces/" .. ns .. "/localsubjectaccessreviews"
  local get = { verb = "get", resource = "pods" }
  local function here_of(more) return both.merge({ verb = "get", resource = "pods" }, more) end
  return {
    { "of a user, of nothing", "POST", base .. "subjectaccessreviews", { spec = {} }, 422 },
    { "of oneself, of nothing", "POST", base .. "selfsubjectaccessreviews", { spec = {} }, 422 },
    { "of oneself, of both", "POST", base .. "selfsubjectaccessreviews", { spec = {
      resourceAttributes = get, nonResourceAttributes = { verb = "get" } } }, 422 },
    { "in a namespace, of another", "POST", here, { spec = { user = "a",
      resourceAttributes = here_of { namespace = "other" } } }, 422 },
    { "in a namespace, of none", "POST", here, { spec = { user = "a", resourceAttributes = get } }, 422 },
    { "in a namespace, of a path", "POST", here, { spec = { user = "a",
      nonResourceAttributes = { verb = "get" } } }, 422 },
    { "in a namespace, of all", "POST", here, { spec = { user = "a",
      resourceAttributes = { namespace = "other" },
      nonResourceAttributes = { verb = "get", path = "/x" } } }, 422 },
    { "of no token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", { spec = {} }, 400 },
  }
end)
