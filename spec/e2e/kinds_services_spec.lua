-- kinds_services_spec.lua - defaults and rules of Services, claims, ConfigMaps and Secrets.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local merge, NONE = both.merge, both.NONE

both.describe("services", function(ns)
  local path, rows = "/api/v1/namespaces/" .. ns .. "/services", {}
  local function service(what, spec, code, name)
    rows[#rows + 1] = { what, "POST", path .. (name and "" or "?dryRun=All"),
      { metadata = { name = name or "s" },
      spec = spec }, code or 422 }
  end
  local function ports(...) return { ports = { ... } } end
  service("plain", ports { port = 80 }, 201)
  service("no ports", {})
  rows[#rows + 1] = { "no spec", "POST", path, { metadata = { name = "s" } }, 422 }
  service("ports that are none", ports({ port = 0, name = "a" }, { port = 70000, name = "b" }))
  service("ports without names", ports({ port = 1 }, { port = 2 }))
  service("one name twice", ports({ port = 1, name = "a" }, { port = 2, name = "a" }))
  service("one port twice", ports({ port = 1, name = "a" }, { port = 1, name = "b" }))
  service("one port for two protocols",
    ports({ port = 1, name = "a" }, { port = 1, name = "b", protocol = "UDP" }), 201)
  service("a bad name of a port", ports { port = 1, name = "A" })
  service("a protocol that is none", ports { port = 1, protocol = "X" })
  service("target ports",
    ports({ port = 1, name = "a", targetPort = "web" }, { port = 2, name = "b", targetPort = 8080 },
    { port = 3, name = "c", targetPort = 0 }), 201)
  service("bad target ports",
    ports({ port = 1, name = "a", targetPort = "Web_" }, { port = 2, name = "b", targetPort = 70000 }))
  service("an application protocol", ports { port = 1, appProtocol = "a b" })
  service("a selector", merge(ports { port = 1 }, { selector = { ["a b"] = "c" } }))
  service("a type that is none", merge(ports { port = 1 }, { type = "Some" }))
  service("headless", { clusterIP = "None", selector = { a = "b" } }, 201)
  service("headless, without selector", { clusterIP = "None" }, 201)
  service("headless NodePort", merge(ports { port = 1 }, { clusterIP = "None", type = "NodePort" }))
  service("an address that is none", merge(ports { port = 1 }, { clusterIP = "x" }))
  service("an address of another list",
    merge(ports { port = 1 }, { clusterIP = "10.0.0.77", clusterIPs = { "10.0.0.78" } }))
  service("a list of addresses alone", merge(ports { port = 1 }, { clusterIPs = { "10.0.0.78" } }))
  service("an address elsewhere", merge(ports { port = 1 }, { clusterIP = "192.168.3.4" }))
  service("two addresses",
    merge(ports { port = 1 }, { clusterIP = "10.0.0.77", clusterIPs = { "10.0.0.77", "10.0.0.78" } }))
  service("an address of IPv6", merge(ports { port = 1 }, { clusterIP = "fd00::1" }))
  service("families", merge(ports { port = 1 },
    { ipFamilies = { "IPv4" }, ipFamilyPolicy = "PreferDualStack" }), 201)
  service("families that are not there", merge(ports { port = 1 }, { ipFamilies = { "IPv6" } }))
  service("families that are none",
    merge(ports { port = 1 }, { ipFamilies = { "IPv5", "IPv5" }, ipFamilyPolicy = "Some" }))
  service("two families", merge(ports { port = 1 }, { ipFamilyPolicy = "RequireDualStack" }))
  service("an external name", { type = "ExternalName", externalName = "example.com." }, 201)
  service("an external name with ports",
    { type = "ExternalName", externalName = "example.com", ports = { { port = 80 } } }, 201)
  service("no external name", { type = "ExternalName" })
  service("a bad external name", { type = "ExternalName", externalName = "A_b", clusterIP = "10.0.0.9" })
  service("node ports", merge(ports { port = 1 }, { type = "NodePort" }), 201)
  service("node ports elsewhere", merge(ports { port = 1, nodePort = 80 }, { type = "NodePort" }), 422,
    "elsewhere")
  service("a node port without a type", ports { port = 1, nodePort = 30123 })
  service("one node port twice",
    merge(ports({ port = 1, name = "a", nodePort = 30123 }, { port = 2, name = "b",
    nodePort = 30123 }), { type = "NodePort" }))
  service("a balancer", merge(ports { port = 1 }, { type = "LoadBalancer" }), 201)
  service("a balancer that is local",
    merge(ports { port = 1 }, { type = "LoadBalancer", externalTrafficPolicy = "Local" }), 201)
  service("a balancer without node ports",
    merge(ports { port = 1 }, { type = "LoadBalancer", allocateLoadBalancerNodePorts = false }), 201)
  service("what only balancers have",
    merge(ports { port = 1 }, { allocateLoadBalancerNodePorts = true, loadBalancerClass = "a/b",
    loadBalancerSourceRanges = { "x" }, externalTrafficPolicy = "Local", healthCheckNodePort = 3 }))
  service("affinity", merge(ports { port = 1 }, { sessionAffinity = "ClientIP" }), 201)
  service("affinity for too long",
    merge(ports { port = 1 }, { sessionAffinity = "ClientIP", sessionAffinityConfig = {
    clientIP = { timeoutSeconds = 100000 } } }))
  service("affinity that is none", merge(ports { port = 1 }, { sessionAffinity = "Some" }))
  service("external addresses", merge(ports { port = 1 }, { externalIPs = { "1.2.3.4" } }), 201)
  service("bad external addresses",
    merge(ports { port = 1 }, { externalIPs = { "x", "127.0.0.1", "0.0.0.0" } }))
  service("policies", merge(ports { port = 1 },
    { internalTrafficPolicy = "Some", trafficDistribution = "Far" }))
  -- Changes.
  local function change(what, name, spec, code)
    rows[#rows + 1] = { what, "PATCH", path .. "/" .. name,
      type(spec) == "string" and spec or { spec = spec }, code or 422 }
  end
  service("one to change", ports { port = 80 }, 201, "kept")
  change("another address", "kept", { clusterIP = "10.0.0.200" })
  change("no address", "kept", '{"spec":{"clusterIP":null,"clusterIPs":null}}', 200)
  change("no longer an address", "kept", { clusterIP = "None" })
  change("another family", "kept", { ipFamilies = { "IPv6" } })
  change("two families", "kept", { ipFamilyPolicy = "PreferDualStack" }, 200)
  change("no ports", "kept", { ports = NONE })
  change("a port more", "kept", { ports = { { port = 80, name = "a" }, { port = 81, name = "b" } } }, 200)
  change("to NodePort", "kept", { type = "NodePort" }, 200)
  change("a port of many", "kept", { ports = { { port = 82, name = "a" } } }, 200)
  change("back to ClusterIP", "kept", { type = "ClusterIP" }, 200)
  change("to a balancer", "kept", { type = "LoadBalancer", externalTrafficPolicy = "Local" }, 200)
  change("a class", "kept", { loadBalancerClass = "a/b" })
  change("to an external name", "kept", { type = "ExternalName", externalName = "a.b" }, 200)
  change("and back", "kept", '{"spec":{"type":"ClusterIP","externalName":null}}', 200)
  service("a node port", merge(ports { port = 1, nodePort = 30321 }, { type = "NodePort" }), 201, "node")
  service("the same node port", merge(ports { port = 1, nodePort = 30321 }, { type = "NodePort" }), 422,
    "other")
  local function ported(what, code, first, second, name)
    rows[#rows + 1] = { what, "PATCH", path .. "/" .. (name or "node"), { spec = merge({ type = "NodePort" },
      ports({ name = "a", port = 1, nodePort = first }, merge({ name = "b", port = 2 }, second))) }, code }
  end
  ported("a new node port twice", 500, 30322, { nodePort = 30322 })
  ported("the old node port twice", 500, 30321, { nodePort = 30321 })
  ported("a node port twice, in a Service that had none", 500, 30323, { nodePort = 30323 }, "kept")
  ported("a node port twice, and one out of range", 422, 80, { nodePort = 80 })
  ported("a node port of two protocols", 200, 30322, { nodePort = 30322, protocol = "UDP" })
  ported("back to one", 200, 30321, { nodePort = 30324 })
  rows[#rows + 1] = { "a bad name", "POST", path, { metadata = { name = "1a" }, spec = ports { port = 1 } },
    422 }
  rows[#rows + 1] = { "a balancer's status", "PATCH", path .. "/node/status",
    { status = { loadBalancer = { ingress = { { ip = "1.2.3.4" } } } },
    metadata = { labels = { a = "b" } }, spec = { type = "ClusterIP" } }, 422 }
  return rows
end)

both.describe("claims", function(ns)
  local path, rows = "/api/v1/namespaces/" .. ns .. "/persistentvolumeclaims", {}
  local function claim(what, spec, code, name)
    rows[#rows + 1] = { what, "POST", path .. (name and "" or "?dryRun=All"),
      { metadata = { name = name or "c" },
      spec = merge({ accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } },
        spec) }, code or 422 }
  end
  claim("plain", {}, 201)
  rows[#rows + 1] = { "no spec", "POST", path, { metadata = { name = "c" } }, 422 }
  claim("no modes", { accessModes = NONE })
  claim("modes that are none", { accessModes = { "Some" } })
  claim("once and more", { accessModes = { "ReadWriteOncePod", "ReadWriteOnce" } })
  claim("no size", { resources = { requests = { storage = "0" } } })
  claim("less than no size", { resources = { requests = { storage = "-1" } } })
  claim("a class", { storageClassName = "A" })
  claim("a mode", { volumeMode = "Tape" })
  claim("a selector", { selector = { matchExpressions = { { key = "a", operator = "Has" } } } })
  local function change(what, spec, code)
    rows[#rows + 1] = { what, "PATCH", path .. "/kept", { spec = spec }, code or 422 }
  end
  claim("one to change", {}, 201, "kept")
  change("more", { resources = { requests = { storage = "2Gi" } } })
  change("less", { resources = { requests = { storage = "1Mi" } } })
  change("another mode", { accessModes = { "ReadOnlyMany" } })
  change("another volume mode", { volumeMode = "Block" })
  change("a class, where there was none", { storageClassName = "fast" }, 200)
  change("another class", { storageClassName = "slow" })
  change("a volume, where there was none", { volumeName = "v" }, 200)
  change("another volume", { volumeName = "w" })
  rows[#rows + 1] = { "bound", "PATCH", path .. "/kept/status",
    { status = { phase = "Bound", capacity = { storage = "1Gi" } },
    spec = { volumeName = "x" } }, 200 }
  change("less, when bound", { resources = { requests = { storage = "1Mi" } } })
  return rows
end)

both.describe("data", function(ns)
  local path = "/api/v1/namespaces/" .. ns
  local function secret(what, type, data, code, annotations)
    return { what, "POST", path .. "/secrets?dryRun=All",
      { metadata = { name = "s", annotations = annotations }, type = type,
      data = data }, code or 422 }
  end
  return {
    secret("opaque", nil, nil, 201),
    secret("tls without keys", "kubernetes.io/tls", {}),
    secret("tls with one key", "kubernetes.io/tls", { ["tls.crt"] = "AAAA" }),
    secret("basic authentication", "kubernetes.io/basic-auth", {}),
    secret("basic authentication with a name", "kubernetes.io/basic-auth", { username = "AAAA" }, 201),
    secret("ssh", "kubernetes.io/ssh-auth", {}),
    secret("docker", "kubernetes.io/dockercfg", {}),
    secret("docker, not JSON", "kubernetes.io/dockerconfigjson", { [".dockerconfigjson"] = "AAAA" }),
    secret("docker, JSON", "kubernetes.io/dockerconfigjson", { [".dockerconfigjson"] = "e30=" }, 201),
    secret("an account's token", "kubernetes.io/service-account-token", {}),
    secret("an account's token with its account", "kubernetes.io/service-account-token", {}, 201,
      { ["kubernetes.io/service-account.name"] = "a" }),
    secret("another type", "example.com/x", {}, 201),
    { "a long key", "POST", path .. "/configmaps?dryRun=All",
      { metadata = { name = "m" }, data = { [("a"):rep(254)] = "" } }, 422 },
    { "an empty ConfigMap", "POST", path .. "/configmaps?dryRun=All", { metadata = { name = "m" } }, 201 },
  }
end)
