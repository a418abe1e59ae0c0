-- typed_spec.lua - generated libraries without a server: the requests to the client, the checks of builders,
-- and the errors for unknown names.

local koord = require "kubelua.koordinator"
local k8s = require "kubelua.kubernetes"
local kube = require "kubelua"

-- A client that records its requests.
local function recorder()
  local asked = {}
  local client = setmetatable({}, { __index = function(_, call)
    return function(_, ...)
      asked[#asked + 1] = { call, ... }
      return "answer"
    end
  end })
  return client, asked
end

local POD_GROUP = "scheduling.sigs.k8s.io/v1alpha1/PodGroup"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

describe("a typed client", function()
  local client, asked, cs
  before_each(function()
    client, asked = recorder()
    cs = koord.clientset(client)
  end)

  it("names the kind, and the namespace when it is bound to one", function()
    local groups, metrics = cs.scheduling_v1alpha1.podgroups, cs.slo_v1alpha1.nodemetrics
    assert.equal("answer", metrics:get "n")
    groups:get("ns", "g")
    groups("ns"):get "g"
    groups:list { labels = "a=b" }
    groups("ns"):list { labels = "a=b" }
    groups("ns"):each()
    groups("ns"):watch { timeout = "1s" }
    groups("ns"):delete("g", { grace = 0 })
    metrics:delete "n"
    groups:delete_collection { namespace = "ns" }
    groups("ns"):delete_collection()
    assert.same({
      { "get", METRIC, "n" }, { "get", POD_GROUP, "ns", "g" }, { "get", POD_GROUP, "ns", "g" },
      { "list", POD_GROUP, { labels = "a=b" } }, { "list", POD_GROUP, { labels = "a=b", namespace = "ns" } },
      { "each", POD_GROUP, { namespace = "ns" } }, { "watch", POD_GROUP,
        { timeout = "1s", namespace = "ns" } },
      { "delete", POD_GROUP, "ns", "g", { grace = 0 } }, { "delete", METRIC, "n" },
      { "delete_collection", POD_GROUP, { namespace = "ns" } },
      { "delete_collection", POD_GROUP, { namespace = "ns" } },
    }, asked)
  end)

  it("completes objects and leaves those that it was given as they are", function()
    local given = { metadata = { name = "g" }, spec = { minMember = 1 } }
    cs.scheduling_v1alpha1.podgroups("ns"):create(given, { dry_run = true })
    assert.same({ metadata = { name = "g" }, spec = { minMember = 1 } }, given)
    assert.same({ "create", { apiVersion = "scheduling.sigs.k8s.io/v1alpha1", kind = "PodGroup",
      metadata = { name = "g", namespace = "ns" }, spec = { minMember = 1 } }, { dry_run = true } }, asked[1])
    local short = { kind = POD_GROUP, name = "g", namespace = "ns" }
    cs.scheduling_v1alpha1.podgroups:apply(short)
    assert.equal(short, asked[2][2])
    cs.slo_v1alpha1.nodemetrics:update_status({ metadata = { name = "n" } }, { manager = "m" })
    assert.same({ "update", { apiVersion = "slo.koordinator.sh/v1alpha1", kind = "NodeMetric",
      metadata = { name = "n" } },
      { manager = "m", subresource = "status" } }, asked[3])
    cs.slo_v1alpha1.nodemetrics:patch("n", { spec = {} })
    assert.same({ apiVersion = "slo.koordinator.sh/v1alpha1", kind = "NodeMetric",
      metadata = { name = "n" } }, asked[4][2])
  end)

  it("reaches subresources by name", function()
    local pods = k8s.clientset(client).core_v1.pods
    pods("ns"):evict("a", { grace = 1 })
    pods:logs "ns/a"
    pods("ns"):update_resize { metadata = { name = "a" } }
    k8s.clientset(client).apps_v1.deployments("ns"):scale("web", 3)
    k8s.clientset(client).apps_v1.deployments:get_scale "ns/web"
    k8s.clientset(client).core_v1.namespaces:finalize("n", { "kubernetes" })
    pods("ns"):wait_for("a", "Ready", { timeout = "5s" })
    pods("ns"):table { labels = "a=b" }
    pods("ns"):create_or_update({ metadata = { name = "a" } }, print)
    k8s.clientset(client).certificates_v1.certificatesigningrequests:approve("c", { reason = "Fine" })
    local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = "a", namespace = "ns" } }
    assert.same({ "evict", pod, { grace = 1 } }, asked[1])
    assert.same({ "logs", pod }, asked[2])
    assert.same({ "update", pod, { subresource = "resize" } }, asked[3])
    assert.same({ "scale", "apps/v1/Deployment", "ns", "web", 3 }, asked[4])
    assert.same({ "get_scale", "apps/v1/Deployment", "ns/web" }, asked[5])
    assert.same({ "finalize", { apiVersion = "v1", kind = "Namespace", metadata = { name = "n" } },
      { "kubernetes" } }, asked[6])
    assert.same({ "wait_for", "v1/Pod", "ns/a", "Ready", { timeout = "5s" } }, asked[7])
    assert.same({ "table", "v1/Pod", { labels = "a=b", namespace = "ns" } }, asked[8])
    assert.same({ "create_or_update", pod, print }, asked[9])
    assert.equal("approve", asked[10][1])
  end)

  for _, case in ipairs {
    { "koordinator.slo_v1alpha: unknown field; did you mean 'slo_v1alpha1'?", function()
      return cs.slo_v1alpha
    end },
    { "koordinator.slo_v1alpha1.nodemetric: unknown field; did you mean 'nodemetrics'?", function()
      return cs.slo_v1alpha1.nodemetric
    end },
    { "koordinator.slo_v1alpha1.nodemetrics.gett: unknown method; did you mean 'get'?", function()
      return cs.slo_v1alpha1.nodemetrics:gett "a"
    end },
    { "koordinator.scheduling_v1alpha1.devices has no update_status: \z
      scheduling.koordinator.sh/v1alpha1/Device has no status subresource",
      function() cs.scheduling_v1alpha1.devices:update_status {} end },
    { "has no list: the server offers only create of authentication.k8s.io/v1/TokenReview", function()
      k8s.clientset(client).authentication_v1.tokenreviews:list()
    end },
    { "nodemetrics: slo.koordinator.sh/v1alpha1/NodeMetric is cluster-scoped and takes no namespace",
      function()
      cs.slo_v1alpha1.nodemetrics "ns"
    end },
    { "nodemetrics:get: slo.koordinator.sh/v1alpha1/NodeMetric is cluster-scoped and takes a name alone",
      function()
      cs.slo_v1alpha1.nodemetrics:get("ns", "n")
    end },
    { "podgroups: the namespace must be a string that is not empty, got \"\"", function()
      cs.scheduling_v1alpha1.podgroups ""
    end },
    { "podgroups:get: this client is for namespace ns and takes the name alone, got \"x/y\"", function()
      cs.scheduling_v1alpha1.podgroups("ns"):get "x/y"
    end },
    { "this client is for namespace ns and takes the name alone, got \"x\"", function()
      cs.scheduling_v1alpha1.podgroups("ns"):get("x", "y")
    end },
    { "podgroups:list: this client is for namespace ns; leave the option out", function()
      cs.scheduling_v1alpha1.podgroups("ns"):list { namespace = "x" }
    end },
    { "podgroups:create: the object is in namespace x, but this client is for ns",
      function() cs.scheduling_v1alpha1.podgroups("ns"):create { metadata = { namespace = "x" } } end },
    { "nodemetrics:create: the object is a v1 Pod, but this resource is for slo.koordinator.sh/v1alpha1 \z
      NodeMetric",
      function() cs.slo_v1alpha1.nodemetrics:create { apiVersion = "v1", kind = "Pod" } end },
    { "nodemetrics:create: expected an object (a table or a view), got string", function()
      cs.slo_v1alpha1.nodemetrics:create "n"
    end },
    { "nodemetrics:get is a method: write koordinator.slo_v1alpha1.nodemetrics:get(...), with a colon",
      function()
      cs.slo_v1alpha1.nodemetrics.get "n"
    end },
    { "koordinator.clientset: expected a client (kube.connect()) or a reconcile's ctx, got nil",
      function() koord.clientset() end },
    { "koordinator.clientste: unknown field; did you mean 'clientset'?", function()
      koord.clientste(client)
    end },
    { "koordinator.x: a generated library cannot be changed", function() koord.x = 1 end },
    { "nodemetrics.get: a resource of a clientset cannot be changed", function()
      cs.slo_v1alpha1.nodemetrics.get = 1
    end },
  } do
    it("says: " .. case[1], function()
      local ok, why = pcall(case[2])
      assert.is_false(ok)
      assert.is_truthy(tostring(why):find(case[1], 1, true), tostring(why))
      assert.is_truthy(tostring(why):find("typed_spec.lua:%d+:"), "it names our line: " .. tostring(why))
      assert.same({}, asked)
    end)
  end

  it("reports what a client cannot do", function()
    local poor = koord.clientset { get = function() end }
    assert.error_matches(function()
      poor.slo_v1alpha1.nodemetrics:watch()
    end, "nodemetrics:watch: this client has no watch")
  end)
end)

describe("a builder", function()
  it("makes a manifest of a copy", function()
    local body = { spec = { metricCollectPolicy = { nodeAggregatePolicy = { durations = {} } } },
      status = {} }
    local made = koord.slo_v1alpha1.NodeMetric "n"(body)
    assert.equal('{"apiVersion":"slo.koordinator.sh/v1alpha1","kind":"NodeMetric","metadata":{"name":"n"},'
      .. '"spec":{"metricCollectPolicy":{"nodeAggregatePolicy":{"durations":[]}}},"status":{}}',
        kube.encode(made))
    assert.same({ spec = { metricCollectPolicy = { nodeAggregatePolicy = { durations = {} } } },
      status = {} }, body)
    assert.is_nil(body.apiVersion)
    assert.same({ name = "g", namespace = "ns" }, koord.scheduling_v1alpha1.PodGroup("g", "ns") {}.metadata)
    assert.same({ generateName = "g-" }, koord.scheduling_v1alpha1.PodGroup {
      metadata = { generateName = "g-" } }.metadata)
  end)

  it("makes parts, and accepts views and kube.null unchanged", function()
    local view = kube.decode [[{"containers":[{"name":"a","unknown":1}]}]]
    local web = k8s.apps_v1.Deployment("web", "ns") {
      spec = { template = { spec = view }, paused = kube.null } }
    assert.is_true(web.spec.template.spec == view)
    assert.equal(kube.null, web.spec.paused)
    assert.same({ containers = { { name = "a", resources = { limits = { cpu = 2 } } } } },
      k8s.core_v1.PodSpec { containers = { { name = "a", resources = { limits = { cpu = 2 } } } } })
  end)

  it("takes every form of a value that the API takes", function()
    assert.same({ port = 80, targetPort = "http" }, k8s.core_v1.ServicePort { port = 80,
      targetPort = "http" })
    assert.same({ targetPort = 8080 }, k8s.core_v1.ServicePort { targetPort = 8080 })
    k8s.core_v1.ResourceRequirements { requests = { cpu = "500m", memory = 1, other = 0.5,
      q = kube.qty "1Gi" } }
    koord.config_v1alpha1.ClusterColocationProfile "p" {
      spec = { patch = { anything = { goes = { 1, "a" } } } } }
    k8s.apiextensions_v1.JSONSchemaProps { ["$ref"] = "x",
      properties = { a = { type = "string", ["x-kubernetes-map-type"] = "atomic" } } }
  end)

  for _, case in ipairs {
    { "koordinator.slo_v1alpha1.NodeMetric: spec.metricCollectPolicy has no field 'reportIntervalSecond'; \z
      did you mean 'reportIntervalSeconds'?",
      function()
        koord.slo_v1alpha1.NodeMetric "n" { spec = { metricCollectPolicy = { reportIntervalSecond = 1 } } }
      end },
    { "koordinator.slo_v1alpha1.NodeMetric: NodeMetric has no field 'spek'; did you mean 'spec'?", function()
      koord.slo_v1alpha1.NodeMetric "n" { spek = {} }
    end },
    { "spec.metricCollectPolicy.reportIntervalSeconds must be an integer, got the string \"30\"",
      function()
        koord.slo_v1alpha1.NodeMetric "n" { spec = { metricCollectPolicy = {
          reportIntervalSeconds = "30" } } }
      end },
    { "spec.metricCollectPolicy.reportIntervalSeconds must be an integer, got the number 1.5",
      function()
        koord.slo_v1alpha1.NodeMetric "n" { spec = { metricCollectPolicy = { reportIntervalSeconds = 1.5 } } }
      end },
    { "kubernetes.apps_v1.Deployment: spec.template.spec.containers[2] has no field 'imagee'; did you mean \z
      'image'?",
      function()
        k8s.apps_v1.Deployment("w", "ns") { spec = { template = {
          spec = { containers = { { name = "a" }, { imagee = "b" } } } } } }
      end },
    { "spec.template.spec.containers must be a list, and has the key name",
      function()
        k8s.apps_v1.Deployment("w", "ns") { spec = { template = { spec = { containers = { name = "a" } } } } }
      end },
    { "spec.template.spec.containers must be a list, got the string \"a\"", function()
      k8s.apps_v1.Deployment "w" { spec = { template = { spec = { containers = "a" } } } }
    end },
    { "spec must be an object, got true", function() k8s.apps_v1.Deployment "w" { spec = true } end },
    { "metadata.labels.a must be a string, got the number 1", function()
      k8s.apps_v1.Deployment "w" { metadata = { labels = { a = 1 } } }
    end },
    { "metadata.labels is a map from strings, and has the key 1", function()
      k8s.apps_v1.Deployment "w" { metadata = { labels = { "a" } } }
    end },
    { "metadata has no field 'lables'; did you mean 'labels'?", function()
      k8s.apps_v1.Deployment "w" { metadata = { lables = {} } }
    end },
    { "spec is an object, and has the key 1", function() k8s.apps_v1.Deployment "w" { spec = { "x" } } end },
    { "metadata.name is \"x\", but the argument is \"w\"", function()
      k8s.apps_v1.Deployment "w" { metadata = { name = "x" } }
    end },
    { "the table is a v1 Pod, but this makes apps/v1 Deployment", function()
      k8s.apps_v1.Deployment "w" { apiVersion = "v1", kind = "Pod" }
    end },
    { "NodeMetric: slo.koordinator.sh/v1alpha1/NodeMetric is cluster-scoped and takes no namespace",
      function()
      koord.slo_v1alpha1.NodeMetric("n", "ns") {}
    end },
    { "NodeMetric: slo.koordinator.sh/v1alpha1/NodeMetric is cluster-scoped and takes no namespace",
      function() koord.slo_v1alpha1.NodeMetric "n" { metadata = { namespace = "ns" } } end },
    { "Deployment: the name must be a string that is not empty, got \"\"", function()
      k8s.apps_v1.Deployment "" {}
    end },
    { "Deployment: the name must be a string that is not empty, got false", function()
      k8s.apps_v1.Deployment() {}
    end },
    { "Deployment: expected a table of its fields, got string", function()
      k8s.apps_v1.Deployment "w" "x"
    end },
    { "kubernetes.core_v1.PodSpecs: unknown field; did you mean 'PodSpec'?", function()
      return k8s.core_v1.PodSpecs
    end },
    { "kubernetes.core_v1.PodSpec: expected a table of its fields, got nil", function()
      k8s.core_v1.PodSpec()
    end },
  } do
    it("says: " .. case[1], function()
      local ok, why = pcall(case[2])
      assert.is_false(ok)
      assert.is_truthy(tostring(why):find(case[1], 1, true), tostring(why))
      assert.is_truthy(tostring(why):find("typed_spec.lua:%d+:"), "it names our line: " .. tostring(why))
    end)
  end

  it("exists for every type of every group", function()
    local count = 0
    for _, library in ipairs { koord, k8s } do
      for name, group in pairs(library) do
        if name:find "_v%d" then
          for _, build in pairs(group) do
            assert.is_table(build {})
            assert.error_matches(function() build { [1] = 1 } end, "has the key 1")
            count = count + 1
          end
        end
      end
    end
    assert.is_true(count > 500)
  end)
end)

describe("koord.constants", function()
  it("has what Koordinator's Go library exports", function()
    assert.equal("koordinator.sh/qosClass", koord.constants.LabelPodQoS)
    assert.equal("kubernetes.io/batch-cpu", koord.constants.BatchCPU)
    assert.equal("quota.scheduling.koordinator.sh/shared-weight", koord.constants.AnnotationSharedWeight)
    assert.error_matches(function() return koord.constants.LabelPodQos2 end,
      "koordinator.constants.LabelPodQos2: unknown constant; did you mean 'LabelPodQoS'%?")
    assert.error_matches(function() koord.constants.LabelPodQoS = "x" end, "cannot be changed")
    local iterate, state = pairs(koord.constants)
    assert.is_nil(state)
    assert.is_string(iterate(state, "LabelPodQoS"))
  end)
end)
