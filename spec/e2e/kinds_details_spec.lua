-- kinds_details_spec.lua - defaults and rules of storage kinds; dry runs of evictions and deletions, scale
-- and tables of custom resources, and definitions whose webhook has a wrong CA.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local new_api = require "support.api"
local json = require "dkjson"
local servers = require "support.servers"
local wait = require "support.wait"

both.describe("values that nobody set", function(ns)
  local core, apps = "/api/v1/namespaces/" .. ns, "/apis/apps/v1/namespaces/" .. ns
  local roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. ns .. "/roles"
  local template = { metadata = { labels = { a = "b" } }, spec = { containers = {
    { name = "c", image = "i", env = { { name = "A" }, { value = "v" } } } } } }
  local good = both.merge({}, template)
  good.spec.containers[1].env[2] = nil
  local function named(name, more) return both.merge({ metadata = { name = name } }, more) end
  local deployment = { spec = { selector = { matchLabels = { a = "b" } }, template = good } }
  local rows = {
    { "a variable without a name", "POST", core .. "/pods", named("p", { spec = template.spec }), 422 },
    { "a port without a number", "POST", core .. "/services",
      named("s", { spec = { ports = { { name = "x" } } } }), 422 },
    { "a role without rules", "POST", roles, named("none"), 201 },
    { "a role with an empty list", "POST", roles, named("empty", { rules = both.NONE }), 201 },
    { "a rule without verbs", "POST", roles, named("verbs", { rules = { { apiGroups = { "" } } } }), 422 },
    { "a role gets a rule", "PATCH", roles .. "/none", { rules = { { verbs = { "get" }, apiGroups = { "" },
      resources = { "pods" } } } }, 200 },
    { "a role loses its rules", "PATCH", roles .. "/none", { rules = both.NULL }, 200 },
    { "an applied role", "APPLY", roles .. "/applied?fieldManager=m", { kind = "Role",
      apiVersion = "rbac.authorization.k8s.io/v1", metadata = { name = "applied" } }, 201 },
    { "limits", "POST", core .. "/limitranges", named("none"), 201 },
    { "an empty slice", "POST", "/apis/discovery.k8s.io/v1/namespaces/" .. ns .. "/endpointslices",
      named("none", { addressType = "IPv4" }), 201 },
    { "times of an event", "POST", core .. "/events",
      named("e", { involvedObject = { namespace = ns } }), 201 },
    { "a deployment", "POST", apps .. "/deployments", named("d", deployment), 201 },
    { "a condition without words", "PATCH", apps .. "/deployments/d/status", { status = { conditions = {
      { type = "Available", status = "True" } } } }, 200 },
    { "the words of a condition stay", "STRATEGIC", apps .. "/deployments/d/status",
      { status = { conditions = { { type = "Available", status = "False" } } } }, 200 },
    { "a new node", "POST", "/api/v1/nodes", named(ns), 201 },
    { "no node any more", "DELETE", "/api/v1/nodes/" .. ns, nil, 200 },
  }
  return rows
end)

both.describe("what drivers write", function(ns)
  local rows = {}
  local nodes = "/apis/storage.k8s.io/v1/csinodes"
  local function drivers(what, list, code)
    rows[#rows + 1] = { "CSINode: " .. what, "POST", nodes .. "?dryRun=All",
      { metadata = { name = "n" .. #rows }, spec = { drivers = list } }, code or 422 }
  end
  drivers("good", { { name = "A.b", nodeID = "n", topologyKeys = { "a.b/c" }, allocatable = { count = 3 } } },
    201)
  drivers("no names", { { name = "", nodeID = "" } })
  drivers("names", { { name = "a_", nodeID = ("n"):rep(257) },
    { name = ("a"):rep(64), nodeID = ("n"):rep(256) } })
  drivers("twice", { { name = "a", nodeID = "n" }, { name = "a", nodeID = "m" } })
  drivers("topology", { { name = "a", nodeID = "n", topologyKeys = { "", "a b", "x", "x" } } })
  drivers("less than nothing", { { name = "a", nodeID = "n", allocatable = { count = -1 } } })
  local node = nodes .. "/" .. ns
  rows[#rows + 1] = { "CSINode: one", "POST", nodes, { metadata = { name = ns },
    spec = { drivers = { { name = "a", nodeID = "n" } } } }, 201 }
  local function change(what, list, code)
    rows[#rows + 1] = { "CSINode: " .. what, "PATCH", node, { spec = { drivers = list } }, code or 422 }
  end
  change("another driver",
    { { name = "a", nodeID = "n" }, { name = "b", nodeID = "n", topologyKeys = { "x" } } }, 200)
  change("another id", { { name = "a", nodeID = "m" } })
  change("topology later",
    { { name = "b", nodeID = "n", topologyKeys = { "x", "y" }, allocatable = { count = 1 } } })
  change("wrong names", { { name = "c_", nodeID = "" } })
  rows[#rows + 1] = { "CSINode: gone", "DELETE", node, nil, 200 }

  local attachments = "/apis/storage.k8s.io/v1/volumeattachments"
  local function attachment(what, spec, code)
    rows[#rows + 1] = { "VolumeAttachment: " .. what, "POST", attachments .. "?dryRun=All",
      { metadata = { name = "x" .. #rows }, spec = spec }, code or 422 }
  end
  attachment("good", { attacher = "a.b", nodeName = "n", source = { persistentVolumeName = "pv" } }, 201)
  attachment("nothing", { attacher = "", nodeName = "", source = {} })
  attachment("names", { attacher = "a_", nodeName = "N", source = { persistentVolumeName = "P_" } })
  attachment("no volume's name", { attacher = "a", nodeName = "n", source = { persistentVolumeName = "" } })
  local one = attachments .. "/" .. ns
  rows[#rows + 1] = { "VolumeAttachment: one", "POST", attachments, { metadata = { name = ns },
    spec = { attacher = "a", nodeName = "n", source = { persistentVolumeName = "pv" } } }, 201 }
  rows[#rows + 1] = { "VolumeAttachment: labels", "PATCH", one, { metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "VolumeAttachment: another node", "PATCH", one, { spec = { nodeName = "m" } }, 422 }
  rows[#rows + 1] = { "VolumeAttachment: gone", "DELETE", one, nil, 200 }
  return rows
end)

both.describe("dry runs in bodies", function(ns)
  local pods = "/api/v1/namespaces/" .. ns .. "/pods"
  local function evict(what, dry, code)
    return { "an eviction: " .. what, "POST", pods .. "/p/eviction",
      { apiVersion = "policy/v1", kind = "Eviction",
      metadata = { name = "p", namespace = ns }, deleteOptions = { dryRun = dry } }, code }
  end
  return {
    { "a pod", "POST", pods,
      { metadata = { name = "p" }, spec = { containers = { { name = "c", image = "i" } } } }, 201 },
    evict("another word", { "Some" }, 422),
    evict("two words", { "All", "Some" }, 422),
    evict("All", { "All" }, 201),
    { "a deletion: another word", "DELETE", pods .. "/p", { dryRun = { "Some" } }, 422 },
    { "a deletion: a number for a word", "DELETE", pods .. "/p", { dryRun = { 5 } }, 500 },
    { "a deletion: a list for a word", "DELETE", pods .. "/p", { dryRun = { { "All" } } }, 500 },
    { "a deletion: no list", "DELETE", pods .. "/p", { dryRun = "All" }, 500 },
    { "a deletion: no word", "DELETE", pods .. "/p", { dryRun = { both.NULL } }, 422 },
    { "a deletion: a text for seconds", "DELETE", pods .. "/p", { gracePeriodSeconds = "x" }, 500 },
    { "a deletion: half a second", "DELETE", pods .. "/p", { gracePeriodSeconds = 1.5 }, 500 },
    { "a deletion: a number for yes", "DELETE", pods .. "/p", { orphanDependents = 1 }, 500 },
    { "a deletion: no preconditions", "DELETE", pods .. "/p", { preconditions = 5 }, 500 },
    { "deletions: a number for a word", "DELETE", pods, { dryRun = { 5 } }, 500 },
    { "a deletion: with a policy of no kind", "DELETE", pods .. "/p",
      { dryRun = { "Some" }, propagationPolicy = "None" }, 422 },
    { "it is still there", "GET", pods .. "/p", nil, 200 },
  }
end)

-- A definition for each row of specs; both servers serve it when `before` returns.
local function definition(group, name, extra)
  local crd = { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = name .. "s." .. group },
    spec = { group = group, scope = "Namespaced",
      names = { plural = name .. "s", kind = name:gsub("^%l", string.upper) },
      versions = { { name = "v1", served = true, storage = true, subresources = { status = {},
        scale = { specReplicasPath = ".spec.replicas", statusReplicasPath = ".status.replicas" } },
        schema = { openAPIV3Schema = { type = "object", properties = {
          spec = { type = "object", properties = { replicas = { type = "integer" } } },
          status = { type = "object", properties = { replicas = { type = "integer" } } } } } } } } } }
  return both.merge(crd, extra)
end

local function installed(crd, unserved)
  return function(s)
    local a = new_api(s)
    local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    a:delete(path .. "/" .. crd.metadata.name)
    wait.until_true(60, "the definition is gone",
      function() return a:get(path .. "/" .. crd.metadata.name).code == 404 end)
    assert.equal(201, a:request("POST", path, (json.encode(crd):gsub("%[%]", "{}"))).code)
    if unserved then return end
    wait.until_true(60, "the definition is served", function()
      return a:get("/apis/" .. crd.spec.group .. "/v1/" .. crd.spec.names.plural).code == 200
    end)
  end
end

local SIZED = definition("details.example.com", "sized")
both.describe("the scale of a custom resource", function(ns)
  local path = "/apis/details.example.com/v1/namespaces/" .. ns .. "/sizeds"
  local function one(name, spec)
    return { apiVersion = "details.example.com/v1", kind = "Sized", metadata = { name = name }, spec = spec }
  end
  local rows = {
    { "one that does not say", "POST", path, one("none", {}), 201 },
    { "one that says", "POST", path, one("two", { replicas = 2 }), 201 },
    { "one that says zero", "POST", path, one("zero", { replicas = 0 }), 201 },
    { "of one that does not say", "GET", path .. "/none/scale", nil, 500 },
    { "of one that says", "GET", path .. "/two/scale", nil, 200 },
    { "of one that says zero", "GET", path .. "/zero/scale", nil, 200 },
    { "is said by a patch", "PATCH", path .. "/none/scale", { spec = { replicas = 3 } }, 200 },
    { "and is there", "GET", path .. "/none/scale", nil, 200 },
  }
  return rows
end, installed(SIZED))

both.describe("scales of a deployment and their owners", function(ns)
  local path = "/apis/apps/v1/namespaces/" .. ns .. "/deployments"
  local function deployment(name, meta)
    return { apiVersion = "apps/v1", kind = "Deployment", metadata = both.merge({ name = name }, meta),
      spec = { replicas = 2, selector = { matchLabels = { a = "b" } },
        template = { metadata = { labels = { a = "b" } },
          spec = { containers = { { name = "c", image = "i" } } } } } }
  end
  local rows = { { "a deployment", "POST", path .. "?fieldManager=maker", deployment "web", 201 } }
  local function scale(what, manager, spec, code, more)
    rows[#rows + 1] = { what, "APPLY", path .. "/web/scale?fieldManager=" .. manager,
      both.merge({ apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "web" }, spec = spec },
        more), code }
  end
  local function owners(what, spec)
    rows[#rows + 1] = { "owners: " .. what, "APPLY", path .. "/web?fieldManager=other&dryRun=All",
      { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "web" }, spec = spec }, 409 }
  end
  scale("another's replicas", "a", { replicas = 3 }, 409)
  scale("the same replicas", "a", { replicas = 2 }, 200)
  scale("forced", "a&force=true", { replicas = 3 }, 200)
  owners("the applied Scale", { replicas = 7 })
  scale("of a scale's manager", "b", { replicas = 4 }, 409)
  scale("a dry run", "b&force=true&dryRun=All", { replicas = 4 }, 200)
  scale("again", "a", { replicas = 5 }, 200)
  scale("negative", "a", { replicas = -1 }, 422)
  scale("a text", "a", { replicas = "x" }, 500)
  scale("an unknown field", "a", { replicas = 5, x = 1 }, 500)
  scale("another name", "a", { replicas = 5 }, 400, { metadata = { name = "zz" } })
  scale("another kind", "a", { replicas = 5 }, 400, { apiVersion = "apps/v1", kind = "Deployment" })
  scale("another namespace", "a", { replicas = 5 }, 400, { metadata = { namespace = "zz" } })
  scale("an old version", "a", { replicas = 5 }, 409, { metadata = { resourceVersion = "1" } })
  scale("status", "a", { replicas = 5 }, 200, { status = { replicas = 7 } })
  scale("labels", "a", { replicas = 5 }, 200, { metadata = { labels = { a = "b" } } })
  scale("managed fields", "a", { replicas = 5 }, 400,
    { metadata = { managedFields = { { manager = "x" } } } })
  rows[#rows + 1] = { "no name", "APPLY", path .. "/web/scale?fieldManager=a",
    { apiVersion = "autoscaling/v1", kind = "Scale", spec = { replicas = 6 } }, 200 }
  rows[#rows + 1] = { "no type", "APPLY", path .. "/web/scale?fieldManager=a",
    { spec = { replicas = 6 } }, 400 }
  rows[#rows + 1] = { "no object", "APPLY", path .. "/zz/scale?fieldManager=a",
    { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "zz" }, spec = { replicas = 6 } },
    404 }
  rows[#rows + 1] = { "a list", "APPLY", path .. "/web/scale?fieldManager=a", "[]", 400 }
  rows[#rows + 1] = { "a list for a deployment", "APPLY", path .. "/web?fieldManager=a", "[]", 400 }
  rows[#rows + 1] = { "after labels", "GET", path .. "/web", nil, 200 }
  rows[#rows + 1] = { "a merge patch", "PATCH", path .. "/web/scale?fieldManager=m",
    { spec = { replicas = 8 } }, 200 }
  owners("the patch", { replicas = 7 })
  rows[#rows + 1] = { "an update", "PUT", path .. "/web/scale?fieldManager=p",
    { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "web", namespace = ns },
      spec = { replicas = 9 } }, 200 }
  owners("the update", { replicas = 7 })
  rows[#rows + 1] = { "after an update", "GET", path .. "/web", nil, 200 }
  rows[#rows + 1] = { "an equal Scale", "PATCH", path .. "/web/scale?fieldManager=q",
    { spec = { replicas = 9 } }, 200 }
  rows[#rows + 1] = { "after an equal Scale", "GET", path .. "/web", nil, 200 }
  rows[#rows + 1] = { "one of its own", "POST", path .. "?fieldManager=maker", deployment "own", 201 }
  rows[#rows + 1] = { "two equal Scales", "PATCH", path .. "/own/scale?fieldManager=q",
    { spec = { replicas = 2 } }, 200 }
  rows[#rows + 1] = { "split its maker's entry", "GET", path .. "/own", nil, 200 }
  rows[#rows + 1] = { "the other", "PATCH", path .. "/own/scale?fieldManager=q",
    { spec = { replicas = 2 } }, 200 }
  rows[#rows + 1] = { "nobody owns the replicas", "GET", path .. "/own", nil, 200 }
  rows[#rows + 1] = { "an applied Scale", "APPLY", path .. "/own/scale?fieldManager=a",
    { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "own" }, spec = { replicas = 2 } },
    200 }
  rows[#rows + 1] = { "before the first apply", "GET", path .. "/own", nil, 200 }
  rows[#rows + 1] = { "no owners any more", "PATCH", path .. "/own",
    { metadata = { managedFields = { {} } } }, 200 }
  rows[#rows + 1] = { "a conflict with what was there", "APPLY", path .. "/own?fieldManager=a",
    { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "own" }, spec = { replicas = 4 } },
    409 }
  rows[#rows + 1] = { "an apply beside what was there", "APPLY", path .. "/own?fieldManager=a",
    { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "own", labels = { x = "y" } } }, 200 }
  rows[#rows + 1] = { "a dry run with a version", "POST", path .. "?dryRun=All",
    deployment("new", { resourceVersion = "5" }), 201 }
  rows[#rows + 1] = { "a dry run of an existing name", "POST", path .. "?dryRun=All",
    deployment("web", { resourceVersion = "5" }), 409 }
  rows[#rows + 1] = { "a new one with a version", "POST", path,
    deployment("new", { resourceVersion = "5" }), 500 }
  return rows
end)

servers.each(function(name, start)
  it(name .. " orders managedFields by operation, second, manager, version, subresource", function()
    local s = start {}
    finally(function() s:stop() end)
    local api = new_api(s)
    local path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    api:delete(path .. "/order")
    assert.equal(201, api:post(path .. "?fieldManager=b", { metadata = { name = "order" }, spec = {
      maxUnavailable = 1, selector = { matchLabels = { a = "b" } } } }).code)
    path = path .. "/order"
    local found, times
    wait.until_true(60, "all writes are in one second", function()
      local n = tostring(math.random(1, 1 << 30))
      api:patch("merge", path .. "/status?fieldManager=b",
        { status = { disruptionsAllowed = math.random(99) } })
      api:patch("merge", path .. "?fieldManager=b", { metadata = { labels = { b = n } } })
      api:patch("merge", path .. "?fieldManager=a", { metadata = { labels = { a = n } } })
      api:apply(path, "z", { apiVersion = "policy/v1", kind = "PodDisruptionBudget", metadata = { labels = {
        z = n } } })
      found, times = {}, {}
      for _, e in ipairs(api:get(path).body.metadata.managedFields) do
        found[#found + 1] = ("%s %s %s"):format(e.operation, e.manager, e.subresource or "")
        times[e.time] = true
      end
      return next(times, next(times)) == nil
    end)
    assert.same({ "Apply z ", "Update a ", "Update b ", "Update b status" }, found)
    api:delete(path)
  end)
end)

servers.only_real(function(_, real)
  describe("tables and conditions of definitions", function()
    local answers = {}
    lazy_setup(function()
      for i, start in ipairs { servers.embedded, real } do
        local s = start {}
        local a = new_api(s)
        installed(SIZED)(s)
        local table_of = a:get("/apis/details.example.com/v1/sizeds",
          { "Accept: application/json;as=Table;v=v1;g=meta.k8s.io" }).body
        local columns = {}
        for k, c in ipairs(table_of.columnDefinitions) do columns[k] = c.name .. " " .. c.type .. " "
          .. c.format end
        local wrong = definition("wrong.example.com", "wrong", { spec = { conversion = { strategy = "Webhook",
          webhook = { conversionReviewVersions = { "v1" },
            clientConfig = { url = "https://127.0.0.1:1/", caBundle = "YmFk" } } } } })
        installed(wrong, true)(s)
        local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wrongs.wrong.example.com"
        local conditions
        wait.until_true(60, "it is judged", function()
          conditions = a:get(path).body.status.conditions
          -- kube-apiserver first adds a condition of its own
          return #conditions == 2 and conditions[2].reason ~= "Installing"
        end)
        for _, c in ipairs(conditions) do c.lastTransitionTime = nil end
        answers[i] = { columns = columns, conditions = conditions }
        local mended = a:patch("merge", path,
          { spec = { conversion = { strategy = "None", webhook = json.null } } })
        assert.equal(200, mended.code, mended.text)
        wait.until_true(60, "it is established", function()
          for _, c in ipairs(a:get(path).body.status.conditions) do
            if c.type == "Established" and c.status == "True" then return true end
          end
        end)
        local bad = a:patch("merge", path, { spec = { conversion = wrong.spec.conversion } })
        answers[i].refused = { bad.code, bad.body.message }
        for _, crd in ipairs { wrong, SIZED } do
          a:delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" .. crd.metadata.name)
        end
        s:stop()
      end
    end)
    for _, what in ipairs { "columns", "conditions", "refused" } do
      it("are alike: " .. what, function()
        both.same(answers[2][what], answers[1][what])
      end)
    end
    it("name an invalid signer", function()
      assert.equal("InvalidCABundle", answers[1].conditions[2].reason)
    end)
  end)
end)

-- Go's JSON omits these values, so defaults replace them.
both.describe("zero values", function(ns)
  local base = "/api/v1/namespaces/" .. ns
  local apps = "/apis/apps/v1/namespaces/" .. ns
  local container = { name = "c", image = "i", stdin = false, tty = false, workingDir = "",
    imagePullPolicy = "",
    terminationMessagePath = "", env = { { name = "A", value = "" } }, ports = { { containerPort = 80,
      hostPort = 0,
      protocol = "", name = "", hostIP = "" } },
    volumeMounts = { { name = "v", mountPath = "/v", readOnly = false, subPath = "" } },
    livenessProbe = { tcpSocket = { port = 80 }, initialDelaySeconds = 0, periodSeconds = 0 },
    securityContext = { privileged = false, runAsNonRoot = false } }
  local pod = { hostNetwork = false, hostPID = false, nodeName = "", serviceAccountName = "",
    restartPolicy = "",
    dnsPolicy = "", subdomain = "", automountServiceAccountToken = false, terminationGracePeriodSeconds = 0,
    volumes = { { name = "v", emptyDir = { medium = "" } } }, containers = { container },
    tolerations = { { key = "a", operator = "", value = "b", effect = "" } } }
  local labels = { a = "" }
  local workload = { paused = false, minReadySeconds = 0, replicas = 0, selector = { matchLabels = labels },
    strategy = { type = "" }, template = { metadata = { labels = labels, name = "" }, spec = pod } }
  return {
    { "a pod", "POST", base .. "/pods", { metadata = { name = "p", generateName = "" }, spec = pod }, 201 },
    { "a pod's status", "PATCH", base .. "/pods/p/status", { status = { message = "", reason = "",
      phase = "Running",
      podIP = "", containerStatuses = { { name = "c", image = "", imageID = "", ready = false,
        restartCount = 0,
        containerID = "" } } } }, 200 },
    { "a deployment", "POST", apps .. "/deployments", { metadata = { name = "d" }, spec = workload }, 201 },
    { "a deployment's pause", "STRATEGIC", apps .. "/deployments/d", { spec = { paused = false } }, 200 },
    { "a pause that ends", "PATCH", apps .. "/deployments/d", { spec = { paused = true } }, 200 },
    { "and has ended", "PATCH", apps .. "/deployments/d", { spec = { paused = false } }, 200 },
    { "a deployment's status", "PATCH", apps .. "/deployments/d/status", { status = { replicas = 0,
      readyReplicas = 0,
      observedGeneration = 0 } }, 200 },
    { "an apply", "APPLY", apps .. "/deployments/applied?fieldManager=a", { apiVersion = "apps/v1",
      kind = "Deployment",
      metadata = { name = "applied" }, spec = workload }, 201 },
    { "a service", "POST", base .. "/services", { metadata = { name = "s" }, spec = { type = "",
      clusterIP = "",
      externalName = "", sessionAffinity = "", publishNotReadyAddresses = false, selector = labels,
      ports = { { name = "", port = 80, protocol = "", nodePort = 0 } } } }, 201 },
    { "a node", "POST", "/api/v1/nodes", { metadata = { name = ns }, spec = { unschedulable = false,
      podCIDR = "",
      providerID = "" } }, 201 },
    { "no node", "DELETE", "/api/v1/nodes/" .. ns, nil, 200 },
  }
end)

both.describe("labels and annotations", function(ns)
  local rows = {}
  local function map(which, what, key, value, code)
    rows[#rows + 1] = { which .. ": " .. what, "POST",
      "/api/v1/namespaces/" .. ns .. "/configmaps?dryRun=All",
      { metadata = { name = "c", [which] = { [key] = value } } }, code or 422 }
  end
  for _, which in ipairs { "labels", "annotations" } do
    local function row(...) map(which, ...) end
    row("good", "example.com/A_b.c-1", "v", 201)
    row("no name", "example.com/", "v")
    row("no prefix", "/a", "v")
    row("a long name", ("a"):rep(64), "v")
    row("a long name of wrong letters", ("a b"):rep(30), "v")
    row("a wrong prefix", "a_b/c", "v")
    row("a long prefix", ("a."):rep(130) .. "a/c", "v")
    row("two slashes", "a/b/c", "v")
    row("a name that ends wrong", "a-", "v")
  end
  map("annotations", "a prefix of capitals", "Example.com/a", "v", 201)
  map("labels", "a prefix of capitals", "Example.com/a", "v")
  map("labels", "a long value", "a", ("v"):rep(64))
  map("labels", "a long value of wrong letters", "a", ("v "):rep(40))
  map("labels", "a value that ends wrong", "a", "v.")
  return rows
end)

both.describe("both versions of autoscalers", function(ns)
  local v1 = "/apis/autoscaling/v1/namespaces/" .. ns .. "/horizontalpodautoscalers"
  local v2 = "/apis/autoscaling/v2/namespaces/" .. ns .. "/horizontalpodautoscalers"
  local function target() return { apiVersion = "apps/v1", kind = "Deployment", name = "web" } end
  local rows = {}
  local function row(what, method, path, body, code) rows[#rows + 1] = { what, method, path, body,
    code or 200 } end
  local function seen(name)
    row(name .. " in v1", "GET", v1 .. "/" .. name)
    row(name .. " in v2", "GET", v2 .. "/" .. name)
  end
  local function old(name, more)
    return both.merge({ metadata = { name = name }, spec = { scaleTargetRef = target(), maxReplicas = 3 } },
      more)
  end
  row("plain", "POST", v1, old "plain", 201)
  seen "plain"
  row("cpu", "POST", v1, old("cpu", { spec = { minReplicas = 2, targetCPUUtilizationPercentage = 60 } }), 201)
  seen "cpu"
  row("cpu: another use", "PATCH", v1 .. "/cpu", { spec = { targetCPUUtilizationPercentage = 70 } })
  row("cpu: another number by v2", "PATCH", v2 .. "/cpu", { spec = { maxReplicas = 5 } })
  seen "cpu"
  row("invalid", "POST", v1, old("invalid", { spec = { minReplicas = -1, maxReplicas = 0,
    targetCPUUtilizationPercentage = 0, scaleTargetRef = { name = "", kind = "A_" } } }), 422)
  local policy = { type = "Pods", value = 2, periodSeconds = 30 }
  local metric = { name = "m", selector = { matchLabels = { a = "b" } } }
  row("rich", "POST", v2, { metadata = { name = "rich", annotations = { mine = "yes" } }, spec = {
    scaleTargetRef = target(), maxReplicas = 3, behavior = { scaleUp = { policies = { policy } },
      scaleDown = { selectPolicy = "Min", stabilizationWindowSeconds = 0 } }, metrics = {
      { type = "Resource", resource = { name = "memory", target = { type = "AverageValue",
        averageValue = "1Gi" } } },
      { type = "Resource", resource = { name = "cpu", target = { type = "Utilization",
        averageUtilization = 40 } } },
      { type = "ContainerResource", containerResource = { name = "cpu", container = "c",
        target = { type = "Utilization", averageUtilization = 50 } } },
      { type = "Pods", pods = { metric = metric, target = { type = "AverageValue", averageValue = "10" } } },
      { type = "Object", object = { metric = metric, describedObject = target(),
        target = { type = "Value", value = "100" } } },
      { type = "External", external = { metric = metric, target = { type = "AverageValue",
        averageValue = "7" } } },
    } } }, 201)
  seen "rich"
  row("rich: more by v1", "PATCH", v1 .. "/rich", { spec = { maxReplicas = 9 } })
  seen "rich"
  local current = { averageValue = "3", averageUtilization = 30 }
  row("rich: a status", "PATCH", v2 .. "/rich/status", { status = { currentReplicas = 1, desiredReplicas = 2,
    observedGeneration = 1, currentMetrics = {
      { type = "Resource", resource = { name = "cpu", current = current } },
      { type = "Pods", pods = { metric = metric, current = { averageValue = "4" } } },
      { type = "Object", object = { metric = metric, describedObject = target(),
        current = { value = "5" } } },
      { type = "External", external = { metric = metric, current = { value = "6" } } },
      { type = "ContainerResource", containerResource = { name = "cpu", container = "c",
        current = current } },
    }, conditions = { { type = "AbleToScale", status = "True", reason = "Ready", message = "it is",
      lastTransitionTime = "2026-01-02T03:04:05Z" } } } })
  seen "rich"
  row("rich: without its annotations", "PATCH", v1 .. "/rich", { metadata = { annotations = {
    ["autoscaling.alpha.kubernetes.io/metrics"] = "[]",
      ["autoscaling.alpha.kubernetes.io/behavior"] = "{}" } } })
  seen "rich"
  row("all in v1", "GET", v1)
  row("none left", "DELETE", v1 .. "/cpu")
  return rows
end)
