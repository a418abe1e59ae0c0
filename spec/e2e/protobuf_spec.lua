-- protobuf_spec.lua - the same objects through a client that reads protobuf and one that reads JSON. The JSON
-- of the embedded server has the keys of an object in the order of the write, and keeps empty members that
-- were sent (`value: ""`). The real server uses Go's order and omits those, as protobuf does.
-- spec/core/wire/proto_write_test.c compares the bytes.
-- real in asan, tsan: only the real server answers built-in kinds of every sort in protobuf

local controller = require "support.controller"
local kube = require "kubelua"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local POD = { metadata = { labels = { app = "web" } }, spec = { containers = { { name = "c", image = "i",
  ports = { { containerPort = 80, protocol = "TCP" } },
  env = { { name = "A", valueFrom = { fieldRef = { fieldPath = "metadata.name" } } },
    { name = "B", value = "" } },
  resources = { requests = { cpu = "1500m", memory = "0.5Gi" }, limits = { cpu = 2 } },
  livenessProbe = { httpGet = { path = "/", port = "http" } },
  readinessProbe = { tcpSocket = { port = 80 } } } },
  volumes = { { name = "e", emptyDir = kube.object {} },
    { name = "s", secret = { secretName = "x", optional = false } } },
  securityContext = { runAsUser = 0, fsGroup = 2147483647 }, tolerations = { { operator = "Exists" } },
  nodeName = "nowhere" } }

local function template(more)
  local spec = { selector = { matchLabels = { app = "web" } }, template = POD }
  for k, v in pairs(more or {}) do spec[k] = v end
  return spec
end

local OBJECTS = {
  { kind = "v1/ConfigMap", data = { b = "2", a = "line\nünï \"quoted\" <b>&", empty = "" },
    binaryData = { bin = "AAECAwQ=" }, immutable = true },
  { kind = "v1/Secret", stringData = { password = "p" }, type = "Opaque" },
  { kind = "v1/Pod", labels = { app = "web" }, spec = POD.spec },
  { kind = "v1/Service", spec = { selector = { app = "web" },
    ports = { { name = "a", port = 80, targetPort = "http" }, { name = "b", port = 81 } } } },
  { kind = "v1/ServiceAccount" },
  { kind = "v1/PersistentVolumeClaim", spec = { accessModes = { "ReadWriteOnce" },
    resources = { requests = { storage = "1Gi" } } } },
  { kind = "v1/ResourceQuota", spec = { hard = { pods = "10", ["requests.cpu"] = "1e3" } } },
  { kind = "v1/LimitRange", spec = { limits = { { type = "Container", max = { cpu = "0.5" } } } } },
  { kind = "apps/v1/Deployment", spec = template { replicas = 0,
    strategy = { rollingUpdate = { maxSurge = "25%", maxUnavailable = 0 } } } },
  { kind = "apps/v1/StatefulSet", spec = template { serviceName = "s",
    volumeClaimTemplates = { { metadata = { name = "d" },
    spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } } } } },
  { kind = "apps/v1/DaemonSet", spec = template() },
  { kind = "apps/v1/ControllerRevision", revision = 3, data = { any = { 1, 2.5, "x", { deep = true } } } },
  { kind = "batch/v1/CronJob", spec = { schedule = "* * * * *",
    jobTemplate = { spec = { template = { spec = { restartPolicy = "Never",
    containers = { { name = "c", image = "i" } } } } } } } },
  { kind = "autoscaling/v2/HorizontalPodAutoscaler",
    spec = { maxReplicas = 3, scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "x" },
    metrics = { { type = "Resource", resource = { name = "cpu",
      target = { type = "Utilization", averageUtilization = 50 } } } } } },
  { kind = "networking.k8s.io/v1/Ingress", spec = {
    rules = { { host = "h", http = { paths = { { path = "/", pathType = "Prefix",
    backend = { service = { name = "s", port = { number = 80 } } } } } } } } } },
  { kind = "networking.k8s.io/v1/NetworkPolicy", spec = { podSelector = kube.object {},
    policyTypes = { "Ingress" } } },
  { kind = "policy/v1/PodDisruptionBudget", spec = { minAvailable = "50%",
    selector = { matchLabels = { app = "web" } } } },
  { kind = "rbac.authorization.k8s.io/v1/Role", rules = {
    { apiGroups = { "" }, resources = { "pods" }, verbs = { "get" } } } },
  { kind = "coordination.k8s.io/v1/Lease", spec = { holderIdentity = "me", leaseDurationSeconds = 15,
    renewTime = "2026-11-21T10:00:00.123456Z" } },
  { kind = "discovery.k8s.io/v1/EndpointSlice", addressType = "IPv4",
    endpoints = { { addresses = { "10.0.0.1" }, conditions = { ready = false } } },
  ports = { { port = 80 } } },
}

-- In JSON, servers before 1.34 write a null creationTimestamp into embedded objects; protobuf cannot.
local function text(o)
  return (kube.encode(o):gsub(',"creationTimestamp":null', ""):gsub('"creationTimestamp":null,?', ""))
end

-- The same for keys in any order, without what is empty.
local EMPTY = { ["null"] = true, ["{}"] = true, [""] = true, ["0"] = true, ["false"] = true }
local function sorted(v)
  if type(v) ~= "table" and type(v) ~= "userdata" then return tostring(v) end
  local parts = {}
  for k, item in pairs(v) do
    local inside = item == kube.null and "null" or sorted(item)
    if not EMPTY[inside] then parts[#parts + 1] = k .. "=" .. inside end
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local function reads_the_same(name, start)
  describe("protobuf and JSON of " .. name, function()
    local server, ns, proto, json, made
    local as_text = name:find "embedded" and sorted or text

    lazy_setup(function()
      server = start {}
      proto = kube.connect { kubeconfig = server.kubeconfig }
      json = kube.connect { kubeconfig = server.kubeconfig, protobuf = false }
      ns = controller.namespace(json, "protobuf")
      -- A real server accepts pods only with their service account, which no controller creates here.
      kube.try(function() json:create { kind = "v1/ServiceAccount", namespace = ns, name = "default" } end)
      made = {}
      for _, object in ipairs(OBJECTS) do
        local copy = {}
        for k, v in pairs(object) do copy[k] = v end
        copy.name, copy.namespace = "x", ns
        local created, err = kube.try(function() return json:create(copy) end)
        if created then
          made[#made + 1] = object.kind
        else      -- the embedded one need not know each
          assert.is_truthy(name:find "embedded", object.kind .. ": " .. tostring(err))
        end
      end
      assert.is_true(#made >= (name:find "embedded" and 12 or #OBJECTS), #made)
    end)
    lazy_teardown(function()
      if proto then proto:close() end
      if json then
        kube.try(function() json:delete { kind = "v1/Namespace", name = ns } end)
        json:close()
      end
      if server then server:stop() end
    end)

    -- Objects may change in between (for example a quota's status), so both are read until their versions are
    -- equal.
    local function both(kind, read)
      local a, b
      wait.until_true(10, "two reads of the same version of " .. kind, function()
        a, b = read(proto), read(json)
        return a("metadata.resourceVersion") == b("metadata.resourceVersion")
      end)
      return as_text(a), as_text(b)
    end

    it("gets the same, to the order of keys", function()
      for _, kind in ipairs(made) do
        local a, b = both(kind, function(c) return c:get(kind, ns, "x") end)
        assert.equal(b, a)
      end
    end)

    it("lists the same, of one namespace and of all", function()
      for _, kind in ipairs(made) do
        local a, b = both(kind, function(c) return c:list(kind, { namespace = ns })[1] end)
        assert.equal(b, a)
      end
      local roles = proto:list "rbac.authorization.k8s.io/v1/ClusterRole"
      local same = json:list "rbac.authorization.k8s.io/v1/ClusterRole"
      assert.equal(#same, #roles)
      for i, role in ipairs(same) do assert.equal(as_text(role), as_text(roles[i])) end
    end)

    it("gets and lists the same of metadata alone, and of subresources", function()
      for _, kind in ipairs { "v1/Pod", "apps/v1/Deployment",
        "apiextensions.k8s.io/v1/CustomResourceDefinition" } do
        local opts = { namespace = kind:find "^v1" and ns or nil, metadata_only = true }
        local a, b = proto:list(kind, opts), json:list(kind, opts)
        assert.equal(#b, #a)
        for i in ipairs(b) do assert.equal(as_text(b[i]), as_text(a[i])) end
      end
      local a, b = both("v1/Pod", function(c) return c:get("v1/Pod", ns, "x", { metadata_only = true }) end)
      assert.equal(b, a)
      a, b = both("apps/v1/Deployment", function(c)
        return c:get("apps/v1/Deployment", ns, "x", { subresource = "status" })
      end)
      assert.equal(b, a)
      a, b = both("autoscaling/v1/Scale", function(c)
        return c:get("apps/v1/Deployment", ns, "x", { subresource = "scale" })
      end)
      assert.equal(b, a)
    end)

    it("watches the same: created, changed, deleted", function()
      local calls = {}
      for _, client in ipairs { proto, json } do
        local _, rv = client:list("v1/ConfigMap", { namespace = ns })
        calls[#calls + 1] = { rv = rv }
      end
      local key = { kind = "v1/ConfigMap", namespace = ns, name = "life" }
      json:create { kind = key.kind, namespace = ns, name = "life", data = { n = "1" } }
      json:patch(key, { data = { n = "2", more = "x" } })
      json:patch(key, { data = { n = kube.null }, metadata = { labels = { a = "b" } } })
      json:delete(key)
      for i, client in ipairs { proto, json } do
        local seen = calls[i]
        for event, o in client:watch("v1/ConfigMap", { namespace = ns, resource_version = seen.rv }) do
          if o.metadata.name == "life" then seen[#seen + 1] = event .. " " .. as_text(o) end
          if event == "DELETED" then break end
        end
      end
      assert.equal(4, #calls[2])
      assert.same({ calls[2][1], calls[2][2], calls[2][3], calls[2][4] },
        { calls[1][1], calls[1][2], calls[1][3], calls[1][4] })
    end)

    it("raises the same errors", function()
      local _, a = kube.try(function()
        return proto:list("v1/Pod", { namespace = ns, fields = { ["no.such"] = "x" } })
      end)
      local _, b = kube.try(function()
        return json:list("v1/Pod", { namespace = ns, fields = { ["no.such"] = "x" } })
      end)
      assert.equal(tostring(b), tostring(a))
      assert.equal(400, a.code)
      assert.is_nil(proto:get("v1/Pod", ns, "nobody"))
    end)

    it("fills informers of both clients alike", function()
      local keys = {}
      for i, client in ipairs { proto, json } do
        local f = kube.informers(client, { namespace = ns })
        local informer = f:informer "v1/Pod"
        f:start()
        assert.is_true(f:wait_synced(20 * wait.factor))
        keys[i] = as_text(informer:store():list()[1])
        f:shutdown()
      end
      assert.equal(keys[2], keys[1])
    end)
  end)
end

servers.each(reads_the_same)
servers.versions(sizes.of { short = 1, long = 2 }, reads_the_same)

servers.each(function(name, start)
  describe("kubelua run against " .. name, function()
    it("logs protobuf answers at debug level, and gets none with --no-protobuf", function()
      local server = start {}
      for _, more in ipairs { { "--log-level", "debug" }, { "--log-level", "debug", "--no-protobuf" },
        { "--log-level", "debug", "--watch-list" } } do
        local run = controller.start(server, [[
          local kube = require "kubelua"
          return kube.controller {
            name = "see", resource = "v1/Namespace",
            reconcile = function(o, ctx) ctx.log:info("saw it: %s", o.metadata.name) end,
          }
        ]], table.unpack(more))
        run:wait_for_log(20 * wait.factor, "saw it")
        local log = run:log()
        local wanted = more[3] ~= "--no-protobuf"
        assert.equal(wanted, log:find("it answers in protobuf", 1, true) ~= nil, log)
        controller.finish(run)
      end
      server:stop()
    end)
  end)
end)
