-- kubectl_explain_spec.lua - the embedded server describes kinds and fields like a real one: kubectl explain
-- prints the same, the definitions are the same, and kubectl validates with them.
-- not in tsan: requests come one by one

local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local GROUP = "explain-spec.example.com"

local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.explain-spec.example.com}
spec:
  group: explain-spec.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        description: A CronTab runs a command at times.
        required: [spec]
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [cronSpec, gone]
            properties:
              cronSpec: {type: string, pattern: '^[0-9* /]+$', description: When it runs.}
              replicas:
                {type: integer, format: int32, default: 3, minimum: 1, maximum: 10, exclusiveMinimum: true}
              ratio: {type: number, multipleOf: 0.5}
              gone: {type: string, nullable: true}
              items:
                type: array
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
              free:
                {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
              map: {type: object, additionalProperties: {type: string, enum: [a, b]}}
              template:
                type: object
                x-kubernetes-embedded-resource: true
                properties: {spec: {type: object, properties: {x: {type: string}}}}
              any: {x-kubernetes-preserve-unknown-fields: true}
              frees: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}
            x-kubernetes-validations: [{rule: "self.replicas < 9", message: "too many"}]
          status: {type: object, properties: {replicas: {type: integer}}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
]]

local EXPLAINED = {
  "pods", "pods.spec.containers", "pods.spec.containers.resources.limits", "pods.spec.containers.ports",
  "pods.spec.volumes", "pods.status.containerStatuses.state", "pods.metadata.ownerReferences",
  "services.spec", "configmaps", "secrets.data", "nodes.status", "namespaces.spec.finalizers",
  "persistentvolumeclaims.spec", "persistentvolumes.spec.csi", "serviceaccounts", "events", "endpoints",
  "limitranges.spec.limits", "resourcequotas.spec", "podtemplates", "bindings", "componentstatuses",
  "deployments.spec.strategy", "deployments.spec.template.spec", "statefulsets.spec.updateStrategy",
  "daemonsets", "replicasets.status", "jobs.spec", "cronjobs.spec.concurrencyPolicy", "ingresses.spec.rules",
  "networkpolicies.spec.ingress", "poddisruptionbudgets.spec.minAvailable",
  "horizontalpodautoscalers.spec.metrics", "roles.rules", "clusterrolebindings.subjects",
  "storageclasses", "csidrivers.spec", "leases.spec", "endpointslices.endpoints", "priorityclasses",
  "runtimeclasses", "customresourcedefinitions.spec.versions.schema", "subjectaccessreviews.spec",
  "certificatesigningrequests.spec", "mutatingwebhookconfigurations.webhooks",
  "validatingadmissionpolicies.spec", "flowschemas.spec", "apiservices.spec",
  "crontabs." .. GROUP, "crontabs.spec --api-version=" .. GROUP .. "/v1",
  "crontabs.spec.items --api-version=" .. GROUP .. "/v1", "pods --recursive", "deployments --recursive",
  "crontabs --recursive --api-version=" .. GROUP .. "/v1", "pods.spec --output plaintext-openapiv2",
  "deployments.spec.template --output plaintext-openapiv2",
  "services --recursive --output plaintext-openapiv2",
  "crontabs.spec --output plaintext-openapiv2 --api-version=" .. GROUP .. "/v1",
  "pods.spec.nothing", "nothings",
}

-- kubectl builds its output from the definitions, which are compared below: the suite explains every sixth.
local EVERY = sizes.of { short = 6, long = 1 }

local function words(line)
  local out = {}
  for word in line:gmatch "%S+" do out[#out + 1] = word end
  return table.unpack(out)
end

-- A value as text that is equal for equal values.
local function canonical(v)
  if type(v) ~= "table" then return json.encode(v) end
  local out = {}
  for key, x in pairs(v) do out[#out + 1] = json.encode(key) .. ":" .. canonical(x) end
  table.sort(out)
  return "{" .. table.concat(out, ",") .. "}"
end

servers.only_real(function(name, start)
  describe("beside " .. name .. ", the embedded one", function()
    local real, own

    lazy_setup(function()
      real, own = start(), servers.embedded()
      for _, s in ipairs { real, own } do
        s:must_kubectl("apply", "--server-side", "-f", process.write(process.tmpname ".yaml", CRD))
        s:must_kubectl("wait", "--for", "condition=established", "crd/crontabs." .. GROUP)
        wait.until_true(30, "the CRD is described", function()
          return s:kubectl("get", "--raw", "/openapi/v2"):find(GROUP, 1, true)
            and s:kubectl("get", "--raw", "/openapi/v3"):find(GROUP .. "/v2", 1, true)
        end)
      end
    end)
    lazy_teardown(function()
      if real then real:kubectl("delete", "crd", "crontabs." .. GROUP) end
      if own then own:stop() end
      if real then real:stop() end
    end)

    it("explains kinds and fields in the same words", function()
      local different = {}
      for i = 1, #EXPLAINED, EVERY do
        local line = EXPLAINED[i]
        local theirs, their_code = real:kubectl("explain", words(line))
        local ours, our_code = own:kubectl("explain", words(line))
        if theirs ~= ours or their_code ~= our_code then
          different[#different + 1] = ("%s:\n%s\n-- not --\n%s"):format(line, ours:sub(1, 600),
            theirs:sub(1, 600))
        end
      end
      assert.same({}, different)
    end)

    -- Definitions of `paths` (below a document) that differ, by name; those of kinds that only one server
    -- has are left out when `common`.
    local function differing(path, key, common)
      local different = {}
      local function read(s)
        local document = assert(json.decode(s:must_kubectl("get", "--raw", path)))
        return key == "definitions" and document.definitions or document.components.schemas
      end
      local theirs, ours = read(real), read(own)
      for key_of, v in pairs(ours) do
        if not theirs[key_of] or canonical(v) ~= canonical(theirs[key_of]) then
          different[#different + 1] = key_of
        end
      end
      for key_of in pairs(common and {} or theirs) do
        if not ours[key_of] then different[#different + 1] = "absent: " .. key_of end
      end
      table.sort(different)
      return different
    end

    for _, gv in ipairs { "api/v1", "apis/apps/v1", "apis/batch/v1", "apis/autoscaling/v2", "apis/policy/v1",
      "apis/rbac.authorization.k8s.io/v1", "apis/apiextensions.k8s.io/v1" } do
      it("publishes the definitions of " .. gv, function()
        assert.same({}, differing("/openapi/v3/" .. gv, "schemas"))
      end)
    end

    it("publishes those of a CRD, in both versions of OpenAPI", function()
      -- DeleteOptions lists all groups of a server.
      assert.same({ "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" },
        differing("/openapi/v3/apis/" .. GROUP .. "/v1", "schemas"))
      assert.same({}, differing("/openapi/v2", "definitions", true))
    end)

    it("applies a file of kind List", function()
      local list = process.write(process.tmpname ".yaml", [[
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: explained-1}, data: {a: b}}
- {apiVersion: v1, kind: Secret, metadata: {name: explained-2}, stringData: {a: b}}
- apiVersion: explain-spec.example.com/v1
  kind: CronTab
  metadata: {name: explained-3}
  spec: {cronSpec: "* *", gone: "x", items: [{name: a, port: http}]}
]])
      local said = {}
      for i, s in ipairs { real, own } do
        local first, second = s:must_kubectl("apply", "-f", list), s:must_kubectl("apply", "-f", list)
        said[i] = first .. second
        s:must_kubectl("delete", "-f", list)
      end
      assert.equal(said[1], said[2])
      assert.matches("configmap/explained-1 created", said[2], 1, true)
      assert.matches("explained-3 unchanged", said[2], 1, true)
    end)

    it("refuses with --validate=strict as the real one does", function()
      local wrong = process.write(process.tmpname ".yaml", [[
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: explained-4}, dta: {a: b}}
]])
      local single = process.write(process.tmpname ".yaml", [[
apiVersion: explain-spec.example.com/v1
kind: CronTab
metadata: {name: explained-5}
spec: {cronSpec: "* *", gone: "x", itms: []}
]])
      for _, verb in ipairs { "apply", "create" } do
        for _, file in ipairs { wrong, single } do
          local theirs, their_code = real:kubectl(verb, "--validate=strict", "-f", file)
          local ours, our_code = own:kubectl(verb, "--validate=strict", "-f", file)
          assert.equal(1, our_code)
          assert.equal(their_code, our_code)
          assert.equal(theirs, ours)
          assert.matches("unknown field", ours, 1, true)
        end
      end
    end)

    it("completes as the real one does", function()
      for _, line in ipairs { "explain deploy", "explain configm", "get poddis" } do
        assert.equal((real:kubectl("__complete", words(line))), (own:kubectl("__complete", words(line))))
      end
    end)

    local function head(s, path, ...)
      local out = process.run(("curl -s -o /dev/null -D - %s %s"):format(table.concat({ ... }, " "),
        process.quote(s.url .. path)))
      return out:lower()
    end

    it("lets clients cache a document by its hash", function()
      local index = own:must_kubectl("get", "--raw", "/openapi/v3")
      local url = json.decode(index).paths["apis/apps/v1"].serverRelativeURL
      local kept = head(own, url)
      assert.matches(" 200 ", kept, 1, true)
      assert.matches("cache-control: public, immutable", kept, 1, true)
      local etag = assert(kept:match 'etag: ("[^"]+")'):upper()
      assert.matches(" 304 ", head(own, url, "-H", process.quote("If-None-Match: " .. etag)), 1, true)
      local old = head(own, "/openapi/v3/apis/apps/v1?hash=0")
      assert.matches(" 301 ", old, 1, true)
      assert.matches("location: " .. url:lower(), old, 1, true)
      assert.matches("cache-control: no-cache", head(own, "/openapi/v3/apis/apps/v1"), 1, true)
    end)

    it("answers 406 to unknown formats, 404 to unknown groups", function()
      assert.matches(" 406 ", head(own, "/openapi/v2", "-H 'Accept: application/yaml'"), 1, true)
      assert.matches(" 406 ", head(own, "/openapi/v3/api/v1", "-H 'Accept: application/yaml'"), 1, true)
      assert.matches(" 404 ", head(own, "/openapi/v3/apis/nothing/v1"), 1, true)
    end)
  end)
end)
