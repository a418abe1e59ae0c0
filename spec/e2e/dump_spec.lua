-- dump_spec.lua - `kubelua dump` and `--load`: the objects of a server, including their authors, in a file
-- and back; also from the real server, and from `kubectl get -A -o yaml`.

local json = require "dkjson"
local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"

local NS = "dump-spec"
local EMPTY = setmetatable({}, { __jsontype = "object" })
local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local CRD = { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
  metadata = { name = "gears.dump.kubelua.dev" },
  spec = { group = "dump.kubelua.dev", scope = "Namespaced",
    names = { plural = "gears", singular = "gear", kind = "Gear" },
    versions = { { name = "v1", served = true, storage = true, subresources = { status = EMPTY },
      schema = { openAPIV3Schema = { type = "object", properties = {
        spec = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
        status = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } } } }

local function fill(api)
  local base = "/api/v1/namespaces/" .. NS
  api:post("/api/v1/namespaces", { metadata = { name = NS, labels = { team = "a" } } })
  api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
  local owner = api:post(base .. "/configmaps", { metadata = { name = "owner" }, data = { a = "1" } }).body
  local owned = api:apply(base .. "/configmaps/owned", "tester", { apiVersion = "v1", kind = "ConfigMap",
    metadata = { name = "owned", ownerReferences = { { apiVersion = "v1", kind = "ConfigMap", name = "owner",
      uid = owner.metadata.uid } } }, data = { text = "líne\nline\t\"quoted\"" } })
  assert.equal(201, owned.code, owned.text)
  assert.equal(201, api:post(base .. "/secrets", { metadata = { name = "key", annotations = {
    ["kubectl.kubernetes.io/last-applied-configuration"] = "geheim" } },
      stringData = { password = "geheim" } }).code)
  assert.equal(201, api:post(base .. "/services", { metadata = { name = "web" },
    spec = { selector = { app = "web" }, ports = { { port = 80 } } } }).code)
  assert.equal(201, api:post("/apis/apps/v1/namespaces/" .. NS .. "/deployments",
    { metadata = { name = "web" },
    spec = { selector = { matchLabels = { app = "web" } },
      template = { metadata = { labels = { app = "web" } },
      spec = { containers = { { name = "c", image = "i:1" } } } } } }).code)
  assert.equal(201, api:post("/apis/batch/v1/namespaces/" .. NS .. "/jobs", { metadata = { name = "once" },
    spec = { template = { spec = { restartPolicy = "Never",
      containers = { { name = "c", image = "i:1" } } } } } }).code)
end

-- The objects of our namespace in a dump, by "Kind/name", without the parts that must differ.
local function ours(text)
  local out = {}
  for _, o in ipairs(assert(json.decode(text)).items) do
    if o.metadata.namespace == NS or o.metadata.name == NS or o.metadata.name == CRD.metadata.name then
      o.metadata.resourceVersion = nil
      out[o.kind .. "/" .. o.metadata.name] = o
    end
  end
  out["ConfigMap/kube-root-ca.crt"], out["ServiceAccount/default"] = nil, nil
  return out
end

local function dump(s, ...)
  local out = process.tmpname ".json"
  local said, code = process.run(("KUBECONFIG=%s %s dump %s > %s 2>%s.err"):format(s.kubeconfig, KUBELUA,
    table.concat({ ... }, " "), out, out))
  assert.equal(0, code, said .. process.read(out .. ".err"))
  return process.read(out), out
end

servers.each(function(name, start)
  describe("a dump of " .. name, function()
    local s, text, path
    lazy_setup(function()
      s = start {}
      fill(new_api(s))
      s:wait_established("crd/" .. CRD.metadata.name)
      local gears = "/apis/dump.kubelua.dev/v1/namespaces/" .. NS .. "/gears"
      assert.equal(201, new_api(s):post(gears, { apiVersion = "dump.kubelua.dev/v1", kind = "Gear",
        metadata = { name = "g" }, spec = { teeth = 12 } }).code)
      assert.equal(200, new_api(s):patch("merge", gears .. "/g/status", { status = { turning = true } }).code)
      text, path = dump(s)
    end)
    lazy_teardown(function()
      new_api(s):delete("/api/v1/namespaces/" .. NS)
      new_api(s):delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" .. CRD.metadata.name)
      s:stop()
    end)

    it("is loaded unchanged: uids, owners, managers, status", function()
      local copy = servers.embedded { load = { path } }
      local had, has = ours(text), ours((dump(copy)))
      assert.is_not_nil(had["Gear/g"])
      assert.is_true(has["Gear/g"].status.turning)
      assert.equal(had["ConfigMap/owner"].metadata.uid,
        has["ConfigMap/owned"].metadata.ownerReferences[1].uid)
      for _, which in ipairs { "ConfigMap/owner", "ConfigMap/owned", "Secret/key", "Service/web",
        "Deployment/web",
        "Job/once", "Gear/g" } do
        assert.same(had[which], has[which], which)
      end
      assert.equal(had["Namespace/" .. NS].metadata.uid, has["Namespace/" .. NS].metadata.uid)
      copy:stop()
    end)

    it("hides secrets if told to", function()
      local said = dump(s, "--redact-secrets")
      assert.is_nil(said:find("geheim", 1, true))
      assert.is_nil(said:find("Z2VoZWlt", 1, true))
      assert.equal("cmVkYWN0ZWQ=", ours(said)["Secret/key"].data.password)
    end)

    it("can come from kubectl get -A -o yaml", function()
      local yaml = process.write(process.tmpname ".yaml",
        (s:must_kubectl("get", "crd,ns,cm,svc,deploy", "-A", "-o", "yaml")))
      local copy = servers.embedded { load = { yaml } }
      local has = ours((dump(copy)))
      local had = ours(text)["Deployment/web"]
      -- kubectl hides them
      had.metadata.managedFields, has["Deployment/web"].metadata.managedFields = nil, nil
      assert.same(had, has["Deployment/web"])
      copy:stop()
    end)
  end)
end)
