-- kinds_network_spec.lua - defaults and rules of Ingresses, Endpoints, volumes and storage classes.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local NONE, adder = both.NONE, both.adder

local function service(name, port) return { service = { name = name, port = port or { number = 80 } } } end

both.describe("Ingresses", function(ns)
  local rows = {}
  local path = "/apis/networking.k8s.io/v1/namespaces/" .. ns .. "/ingresses"
  local add = adder(rows, "Ingress", path)
  local function backend(what, b, code) add(what, { spec = { defaultBackend = b } }, code) end
  local function rule(what, r, code) add(what, { spec = { rules = { r } } }, code) end
  local function at(...)
    local paths = {}
    for i, p in ipairs { ... } do paths[i] = { path = p[1], pathType = p[2], backend = service "s" } end
    return { http = { paths = paths } }
  end
  add("nothing", { spec = {} })
  backend("a service", service "s", 201)
  backend("a named port", service("s", { name = "http" }), 201)
  backend("two ports", service("s", { name = "http", number = 1 }))
  backend("no port", { service = { name = "s" } })
  backend("a port that is none", service("s", { number = 70000 }))
  backend("a port's name", service("s", { name = "A_" }))
  backend("no name", { service = { port = { number = 1 } } })
  backend("a service's name", service "S_")
  backend("nothing behind it", {})
  backend("two backends", both.merge(service "s", { resource = { apiGroup = "a", kind = "b", name = "c" } }))
  backend("a resource", { resource = { apiGroup = "a.b", kind = "b", name = "c" } }, 201)
  backend("a resource's name", { resource = { apiGroup = "A_", kind = "", name = "" } })
  rule("a rule", both.merge(at { "/", "Prefix" }, { host = "a.b" }), 201)
  rule("a host", both.merge(at { "/", "Prefix" }, { host = "A_b" }))
  rule("an address", both.merge(at { "/", "Prefix" }, { host = "1.2.3.4" }))
  rule("any host", both.merge(at { "/", "Prefix" }, { host = "*.a.b" }), 201)
  rule("half a star", both.merge(at { "/", "Prefix" }, { host = "*a.b" }))
  rule("a star alone", both.merge(at { "/", "Prefix" }, { host = "*." }))
  rule("no paths", { host = "a.b", http = { paths = NONE } })
  rule("no type of path", at { "/" })
  rule("a type of path", at { "/", "Some" })
  rule("relative", at({ "a", "Exact" }, { "", "Prefix" }, { "a", "ImplementationSpecific" }))
  rule("odd paths", at({ "/a//b", "Exact" }, { "/a/./b", "Prefix" }, { "/a/../b", "Prefix" },
    { "/a%2fb", "Prefix" },
    { "/a/..", "Exact" }, { "/a/.", "Exact" }))
  add("TLS", { spec = { tls = { { hosts = { "a.b", "A_" }, secretName = "S_" } },
    defaultBackend = service "s" } })
  add("TLS of any host",
    { spec = { tls = { { hosts = { "*.a.b" }, secretName = "s" } }, defaultBackend = service "s" } }, 201)
  add("a class", { spec = { ingressClassName = "C_", defaultBackend = service "s" } })
  add("two classes", { metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } },
    spec = { ingressClassName = "c", defaultBackend = service "s" } })
  add("an old class", { metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } },
    spec = { defaultBackend = service "s" } }, 201)
  rows[#rows + 1] = { "a status", "POST", path,
    { metadata = { name = "real" }, spec = { defaultBackend = service "s" } }, 201 }
  rows[#rows + 1] = { "a status with an address", "PATCH", path .. "/real/status",
    { status = { loadBalancer = { ingress = { { ip = "a", hostname = "B_" } } } } }, 422 }

  local classes = "/apis/networking.k8s.io/v1/ingressclasses"
  local class = adder(rows, "IngressClass", classes)
  class("good", { spec = { controller = "a.b/c" } }, 201)
  class("no controller", { spec = {} })
  class("no domain", { spec = { controller = "a" } })
  class("a domain", { spec = { controller = "A_/b" } })
  class("a path", { spec = { controller = "a.b/x y" } })
  class("a long one", { spec = { controller = "a.b/" .. ("x"):rep(260) } })
  local function parameters(what, p, code) class(what, { spec = { controller = "a.b/c", parameters = p } },
    code) end
  parameters("parameters of the cluster", { kind = "k", name = "n" }, 201)
  parameters("no parameters", { kind = "", name = "" })
  parameters("no namespace", { apiGroup = "a.b", kind = "k", name = "n", scope = "Namespace" })
  parameters("a namespace", { apiGroup = "a.b", kind = "k", name = "n", scope = "Cluster", namespace = "x" })
  parameters("all wrong", { apiGroup = "A_", kind = "k/", name = "n%", scope = "Any" })
  rows[#rows + 1] = { "a class", "POST", classes,
    { metadata = { name = ns }, spec = { controller = "a.b/c" } }, 201 }
  rows[#rows + 1] = { "another controller", "PATCH", classes .. "/" .. ns,
    { spec = { controller = "a.b/d" } }, 422 }
  rows[#rows + 1] = { "a class, deleted", "DELETE", classes .. "/" .. ns, nil, 200 }
  return rows
end)

both.describe("endpoints", function(ns)
  local rows = {}
  local path = "/apis/discovery.k8s.io/v1/namespaces/" .. ns .. "/endpointslices"
  local add = adder(rows, "EndpointSlice", path)
  local v4 = function(more) return both.merge({ addressType = "IPv4", endpoints = NONE }, more) end
  add("good", v4 { endpoints = { { addresses = { "1.2.3.4" } } }, ports = { { port = 1 } } }, 201)
  add("no type", { endpoints = NONE })
  add("a type", { addressType = "Some", endpoints = NONE })
  add("addresses", v4 { endpoints = { { addresses = { "a", "::1", "127.0.0.1", "0.0.0.0", "169.254.1.1",
    "224.0.0.1" } },
    { addresses = NONE } } })
  add("IPv6", { addressType = "IPv6", endpoints = { { addresses = { "1.2.3.4", "fe80::1", "::" } } } })
  add("names", { addressType = "FQDN", endpoints = { { addresses = { "a_b" } } } })
  add("ports", v4 { ports = { { name = "a" }, { name = "a" },
    { name = "A_", protocol = "X", appProtocol = "%" } } })
  add("ports without names", v4 { ports = { { port = 1 }, { port = 2 } } })
  add("a host and a node",
    v4 { endpoints = { { addresses = { "1.2.3.4" }, hostname = "A.b", nodeName = "N_" } } })
  add("zones", v4 { endpoints = { { addresses = { "1.2.3.4" },
    hints = { forZones = { { name = "a" }, { name = "a" },
    { name = "b c" } } } } }, ports = { { name = "A" } } })
  rows[#rows + 1] = { "a slice", "POST", path,
    v4 { metadata = { name = "e" }, endpoints = { { addresses = { "1.2.3.4" } } } }, 201 }
  rows[#rows + 1] = { "another type", "PATCH", path .. "/e", { addressType = "IPv6" }, 422 }
  local old = adder(rows, "Endpoints", "/api/v1/namespaces/" .. ns .. "/endpoints")
  old("good", { subsets = { { addresses = { { ip = "1.2.3.4" } }, ports = { { port = 1 } } } } }, 201)
  old("an empty subset", { subsets = { {} } })
  old("all wrong", { subsets = { { addresses = { { ip = "a", hostname = "A.b", nodeName = "N_" },
    { ip = "127.0.0.1" },
    { ip = "169.254.0.1" } }, ports = { { port = 0, protocol = "X" }, { port = 1, name = "A_" } } } } })
  return rows
end)

both.describe("volumes", function(ns)
  local rows = {}
  local classes = "/apis/storage.k8s.io/v1/storageclasses"
  local add = adder(rows, "StorageClass", classes, { provisioner = "a.b/c" })
  add("good", {}, 201)
  add("a provisioner", { provisioner = "A_/%" })
  add("no provisioner", { provisioner = "" })
  add("what to reclaim", { reclaimPolicy = "Recycle" })
  add("when to bind", { volumeBindingMode = "Some" })
  add("parameters", { parameters = { [""] = "x" } })
  add("topologies", { allowedTopologies = { { matchLabelExpressions = { { key = "a", values = NONE },
    { key = "a", values = { "x", "x" } } } } } })
  local real = classes .. "/" .. ns
  rows[#rows + 1] = { "a class", "POST", classes,
    { metadata = { name = ns }, provisioner = "x", parameters = { a = "b" } }, 201 }
  rows[#rows + 1] = { "another class", "PATCH", real,
    { provisioner = "y", parameters = { a = "c" }, reclaimPolicy = "Retain",
    volumeBindingMode = "WaitForFirstConsumer" }, 422 }
  rows[#rows + 1] = { "expansion", "PATCH", real, { allowVolumeExpansion = true }, 200 }
  rows[#rows + 1] = { "a class, deleted", "DELETE", real, nil, 200 }

  local drivers = adder(rows, "CSIDriver", "/apis/storage.k8s.io/v1/csidrivers")
  drivers("good", { spec = {} }, 201)
  drivers("all wrong", { spec = { volumeLifecycleModes = { "Some" }, fsGroupPolicy = "X",
    tokenRequests = { { audience = "a" },
    { audience = "a" }, { audience = "b", expirationSeconds = 1 } } } })

  local path = "/api/v1/persistentvolumes"
  local function claimed(more)
    return both.merge({ capacity = { storage = "1Gi" }, accessModes = { "ReadWriteOnce" } }, more)
  end
  local function volume(what, spec, code)
    rows[#rows + 1] = { "PersistentVolume: " .. what, "POST", path .. "?dryRun=All",
      { metadata = { name = ("v%d"):format(#rows) }, spec = claimed(spec) }, code or 422 }
  end
  local here = { path = "/x" }
  local affinity = { required = { nodeSelectorTerms = { { matchExpressions = { { key = "a", operator = "In",
    values = { "b" } } } } } } }
  volume("good", { hostPath = here }, 201)
  rows[#rows + 1] = { "PersistentVolume: no size", "POST", path, { metadata = { name = "v" },
    spec = { accessModes = { "ReadWriteOnce" }, hostPath = here } }, 422 }
  volume("no room", { capacity = { storage = "0" }, hostPath = here })
  volume("two sizes", { capacity = { storage = "1", cpu = "1" }, hostPath = here })
  volume("no modes", { accessModes = NONE, hostPath = here })
  volume("modes", { accessModes = { "Some", "ReadWriteOncePod", "ReadWriteOnce" }, hostPath = here })
  volume("no source", {})
  volume("two sources", { hostPath = here, nfs = { server = "a", path = "/b" } })
  volume("a way up", { hostPath = { path = "/a/../b" } })
  volume("NFS", { nfs = { server = "", path = "b" } })
  volume("no CSI driver", { csi = { driver = "", volumeHandle = "" } })
  volume("a CSI driver", { csi = { driver = "A_", volumeHandle = "x" } })
  volume("local", { ["local"] = here })
  volume("local to a node", { ["local"] = here, nodeAffinity = affinity }, 201)
  volume("what to reclaim", { hostPath = here, persistentVolumeReclaimPolicy = "Some" })
  volume("the root, recycled", { hostPath = { path = "/" }, persistentVolumeReclaimPolicy = "Recycle" })
  volume("a mode", { hostPath = here, volumeMode = "Some" })
  volume("a class", { hostPath = here, storageClassName = "A_" })
  volume("no nodes", { hostPath = here, nodeAffinity = {} })
  local one = path .. "/" .. ns
  rows[#rows + 1] = { "a volume", "POST", path,
    { metadata = { name = ns }, spec = claimed { hostPath = here } }, 201 }
  rows[#rows + 1] = { "another source", "PATCH", one, { spec = { hostPath = { path = "/y" } } }, 422 }
  rows[#rows + 1] = { "another mode", "PATCH", one, { spec = { volumeMode = "Block" } }, 422 }
  rows[#rows + 1] = { "more room", "PATCH", one, { spec = { capacity = { storage = "2Gi" } } }, 200 }
  rows[#rows + 1] = { "a phase", "PATCH", one .. "/status", { status = { phase = "Available" } }, 200 }
  rows[#rows + 1] = { "a claim's phase", "PATCH", one .. "/status", { status = { message = "x" } }, 200 }
  return rows
end)
