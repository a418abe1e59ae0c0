-- apiserver_spec.lua - the features of an API server that clients rely on, against the embedded and the real
-- one.

local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local GROUP = "apiserver.spec.kubelua.dev"

local CRD = [[
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.%GROUP%"},
 "spec": {"group": "%GROUP%", "scope": "Namespaced",
  "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wdg"]},
  "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
   "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
     {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}],
   "schema": {"openAPIV3Schema": {"type": "object", "properties": {
    "spec": {"type": "object", "required": ["title"], "properties": {
      "title": {"type": "string", "minLength": 2},
      "size": {"type": "integer", "format": "int64", "default": 3, "minimum": 1},
      "mode": {"type": "string", "enum": ["a", "b"]}, "either": {"x-kubernetes-int-or-string": true},
      "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
      "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
      "plain": {"type": "array", "items": {"type": "string"}},
      "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"],
          "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}}}},
    "status": {"type": "object", "properties": {"ok": {"type": "boolean"},
      "conditions": {"type": "array",
        "items": {"type": "object",
          "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}}}}}}}}]}}
]]

local function crd(group) return (CRD:gsub("%%GROUP%%", group)) end

local function deployment(name)
  return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name },
    spec = { selector = { matchLabels = { app = name } },
    template = { metadata = { labels = { app = name } },
      spec = { containers = { { name = "c", image = "i:1", env = { { name = "A", value = "1" } } } } } } } }
end

local function names(list)
  local out = {}
  for _, o in ipairs(list.items) do out[#out + 1] = o.metadata.name end
  return table.concat(out, " ")
end

local function cause_fields(status)
  local out = {}
  for _, c in ipairs(status.details.causes) do out[#out + 1] = c.field end
  table.sort(out)
  return table.concat(out, " ")
end

local PROTOBUF = { "Content-Type: application/vnd.kubernetes.protobuf" }

-- A field of bytes, less than 128 of them.
local function proto_field(number, bytes) return string.char(number << 3 | 2, #bytes) .. bytes end

-- ConfigMap NAME with data a = "1".
local function protobuf_of(name, version)
  local metadata = proto_field(1, name) .. (version and proto_field(6, version) or "")
  return "k8s\0" .. proto_field(1, proto_field(1, "v1") .. proto_field(2, "ConfigMap"))
    .. proto_field(2, proto_field(1, metadata) .. proto_field(2, proto_field(1, "a") .. proto_field(2, "1")))
end

local count = 0

servers.each(function(name, start)
  describe("a client of " .. name, function()
    local s, api, ns, core, maps, deployments, widgets

    lazy_setup(function()
      s = start {}
      api = new_api(s)
      assert.equal(201, api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(GROUP)).code)
      wait.until_true(20, "the CRD is served", function()
        return api:get("/apis/" .. GROUP .. "/v1/widgets").code == 200
      end)
    end)
    lazy_teardown(function()
      api:delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets." .. GROUP)
      s:stop()
    end)

    before_each(function()
      count = count + 1
      ns = ("apiserver-%d-%d"):format(os.time() % 1000000, count)
      core = "/api/v1/namespaces/" .. ns
      maps = core .. "/configmaps"
      deployments = "/apis/apps/v1/namespaces/" .. ns .. "/deployments"
      widgets = "/apis/" .. GROUP .. "/v1/namespaces/" .. ns .. "/widgets"
      assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = ns } }).code)
    end)
    after_each(function() api:delete("/api/v1/namespaces/" .. ns) end)

    local function config_map(key, data, extra)
      local body = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = key }, data = data }
      for k, v in pairs(extra or {}) do body.metadata[k] = v end
      local r = api:post(maps, body)
      assert.equal(201, r.code, r.text)
      return r.body
    end

    local function widget(key, spec)
      local r = api:post(widgets, { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = key },
        spec = spec or { title = "it" } })
      assert.equal(201, r.code, r.text)
      return r.body
    end

    describe("that reads and writes", function()
      it("limits the size of requests and of objects", function()
      local function big(n) return ("x"):rep(n) end
      local function too_long(field, most, r)
        assert.equal(422, r.code)
        assert.equal("FieldValueTooLong", r.body.details.causes[1].reason)
        assert.equal(field, r.body.details.causes[1].field)
        assert.matches((": %s: Too long: may not be more than %d bytes"):format(field, most), r.body.message,
          1, true)
      end
      local secrets = maps:gsub("configmaps$", "secrets")
      assert.equal(201, api:post(maps, { metadata = { name = "full" }, data = { a = big(1048575) } }).code)
      assert.equal(201, api:post(maps, { metadata = { name = "small" } }).code)
      too_long("[]", 1048576, api:post(maps, { metadata = { name = "big" }, data = { a = big(1048577) } }))
      too_long("[]", 1048576, api:post(maps, { metadata = { name = "big" },
        binaryData = { a = big(1398112) } }))
      too_long("[]", 1048576, api:patch("merge", maps .. "/small", { data = { a = big(1048577) } }))
      too_long("data", 1048576, api:post(secrets, { metadata = { name = "big" },
        data = { a = big(1398112) } }))
      too_long("data", 1048576, api:post(secrets, { metadata = { name = "big" },
        stringData = { a = big(1048577) } }))
      too_long("metadata.annotations", 262144, api:patch("merge", maps .. "/small",
        { metadata = { annotations = { a = big(262144) } } }))
      for _, r in ipairs { api:post(maps, { metadata = { name = "big" }, data = { a = big(3145728) } }),
        api:patch("merge", maps .. "/small", { data = { a = big(3145728) } }) } do
        assert.equal(413, r.code)
        assert.equal("RequestEntityTooLarge", r.body.reason)
        assert.equal("Request entity too large: limit is 3145728", r.body.message)
      end
    end)

    it("creates an object with uid, version and age, and gets it again", function()
        local made = config_map("a", { k = "v" })
        assert.equal(ns, made.metadata.namespace)
        assert.truthy(made.metadata.uid:find "^%x+%-%x+%-4%x+%-%x+%-%x+$")
        assert.truthy(tonumber(made.metadata.resourceVersion))
        assert.truthy(made.metadata.creationTimestamp:find "^%d+%-%d+%-%d+T%d+:%d+:%d+Z$")
        assert.same(made, api:get(maps .. "/a").body)
        local list = api:get(maps).body
        assert.equal("ConfigMapList", list.kind)
        assert.is_nil(list.items[1].kind)
      end)

      it("gets a name made from generateName", function()
        local r = api:post(maps, { metadata = { generateName = "gen-" } })
        assert.equal(201, r.code)
        assert.truthy(r.body.metadata.name:find "^gen%-[bcdfghjklmnpqrstvwxz2456789]+$")
        assert.equal(9, #r.body.metadata.name)
      end)

      it("gets errors for absent, existing and misplaced objects", function()
        config_map("a")
        local r = api:get(maps .. "/nope")
        assert.equal(404, r.code)
        assert.equal('configmaps "nope" not found', r.body.message)
        assert.same({ name = "nope", kind = "configmaps" }, r.body.details)
        r = api:get(deployments .. "/nope")
        assert.equal('deployments.apps "nope" not found', r.body.message)
        assert.same({ name = "nope", group = "apps", kind = "deployments" }, r.body.details)
        r = api:post(maps, { metadata = { name = "a" } })
        assert.equal(409, r.code)
        assert.equal("AlreadyExists", r.body.reason)
        r = api:post("/api/v1/namespaces/missing-ns/configmaps", { metadata = { name = "a" } })
        assert.equal(404, r.code)
        assert.equal('namespaces "missing-ns" not found', r.body.message)
        r = api:post(maps, { metadata = { name = "b", namespace = "other" } })
        assert.equal(400, r.code)
        assert.equal("the namespace of the provided object does not match the namespace sent on the request",
          r.body.message)
      end)

      it("can send built-in kinds in protobuf", function()
        local made = api:post(maps, protobuf_of "made", PROTOBUF)
        assert.equal(201, made.code, made.text)
        assert.same({ a = "1" }, made.body.data)
        made = api:put(maps .. "/made", protobuf_of("made", made.body.metadata.resourceVersion), PROTOBUF)
        assert.equal(200, made.code, made.text)
        -- kind DeleteOptions of v1, with gracePeriodSeconds = 0 and propagationPolicy = "Background"
        local options = "k8s\0" .. proto_field(1, proto_field(1, "v1") .. proto_field(2, "DeleteOptions"))
          .. proto_field(2, "\8\0" .. proto_field(4, "Background"))
        assert.equal(200, api:request("DELETE", maps .. "/made", options, PROTOBUF).code)
        assert.equal(404, api:get(maps .. "/made").code)
        local broken = api:post(maps, protobuf_of("made"):sub(1, -3), PROTOBUF)
        assert.equal(400, broken.code)
        assert.equal("BadRequest", broken.body.reason)
        assert.equal(400, api:post(maps, "no protobuf at all", PROTOBUF).code)
        local other = api:post(core .. "/secrets", protobuf_of "made", PROTOBUF)
        assert.equal(400, other.code)
        local r = api:post(maps, "{}", { "Content-Type: text/plain" })
        assert.matches("application/json, application/yaml, application/vnd.kubernetes.protobuf",
          r.body.message, 1, true)
      end)

      it("gets an explanation of an invalid request", function()
        assert.equal(400, api:post(maps, '{"metadata":').code)
        assert.equal(415, api:post(maps, "{}", { "Content-Type: text/plain" }).code)
        assert.equal(405, api:put(maps, "{}").code)
        assert.equal(404, api:get("/api/v1/sprockets").code)
        assert.equal(404, api:get("/apis/nobody.example/v1/things").code)
        assert.equal(404, api:get(maps .. "/a/status").code)
        assert.equal(406, api:get(maps, { "Accept: image/png" }).code)
        local r = api:post(maps, { kind = "Pod", apiVersion = "v1", metadata = { name = "a" } })
        assert.equal(400, r.code)
        r = api:post(maps, { metadata = { name = "a" }, data = { key = 1 } })
        assert.equal(400, r.code)
        assert.truthy(r.body.message:find("cannot unmarshal number into Go struct field", 1, true), r.text)
        r = api:post(maps, { metadata = { name = "Not_A_Name" } })
        assert.equal(422, r.code)
        assert.same({ "Invalid", "ConfigMap", "metadata.name" },
          { r.body.reason, r.body.details.kind, r.body.details.causes[1].field })
        r = api:post(maps, { metadata = { name = "a", labels = { x = "no spaces please" } } })
        assert.equal(422, r.code)
        assert.equal("metadata.labels", r.body.details.causes[1].field)
        assert.equal(413, api:post(maps, '{"data":{"a":"' .. ("x"):rep(17 * 1024 * 1024) .. '"}}').code)
      end)

      it("can have unknown fields rejected, or be warned", function()
        local pod = { metadata = { name = "p" }, spec = {
          containers = { { name = "c", image = "i", imagee = "j" } } } }
        local r = api:post(core .. "/pods?fieldValidation=Strict", pod)
        assert.equal(400, r.code)
        assert.truthy(r.body.message:find('strict decoding error: unknown field "spec.containers[0].imagee"',
          1, true), r.body.message)
        r = api:post(core .. "/pods?dryRun=All", pod)
        assert.equal(201, r.code)
        assert.truthy(r.headers.warning:find('unknown field \\"spec.containers[0].imagee\\"', 1, true),
          r.headers.warning)
        assert.equal(404, api:get(core .. "/pods/p").code)
      end)

      it("updates only the version that it has read", function()
        local made = config_map("a", { k = "1" })
        local second = api:put(maps .. "/a", { metadata = { name = "a",
          resourceVersion = made.metadata.resourceVersion }, data = { k = "2" } })
        assert.equal(200, second.code)
        local r = api:put(maps .. "/a", { metadata = { name = "a",
          resourceVersion = made.metadata.resourceVersion }, data = { k = "3" } })
        assert.equal(409, r.code)
        assert.equal('Operation cannot be fulfilled on configmaps "a": the object has been modified; '
          .. "please apply your changes to the latest version and try again", r.body.message)
        assert.equal(409, api:patch("merge", maps .. "/a",
          { metadata = { resourceVersion = made.metadata.resourceVersion } }).code)
        assert.equal(200, api:put(maps .. "/a", { metadata = { name = "a" }, data = { k = "3" } }).code)
        assert.equal(409, api:put(maps .. "/a", { metadata = { name = "a", uid = "other" } }).code)
        assert.equal(400, api:put(maps .. "/a", { metadata = { name = "b" } }).code)
      end)

      it("can create a lease by update, and must name the version afterwards", function()
        local leases = "/apis/coordination.k8s.io/v1/namespaces/" .. ns .. "/leases"
        local body = { metadata = { name = "l" }, spec = { holderIdentity = "me",
          renewTime = "2026-01-02T03:04:05.000006Z", leaseDurationSeconds = 15 } }
        local r = api:put(leases .. "/l", body)
        assert.equal(201, r.code, r.text)
        assert.equal("2026-01-02T03:04:05.000006Z", r.body.spec.renewTime)
        local blind = api:put(leases .. "/l", body)
        assert.equal(422, blind.code)
        assert.truthy(blind.body.message:find(
          "metadata.resourceVersion: Invalid value: 0: must be specified for an update", 1, true),
          blind.body.message)
        body.metadata.resourceVersion = r.body.metadata.resourceVersion
        body.spec.holderIdentity = "you"
        assert.equal(200, api:put(leases .. "/l", body).code)
        assert.equal(409, api:put(leases .. "/l", body).code)
        body.spec.renewTime = "2026-01-02T03:04:05Z"
        assert.equal(400, api:put(leases .. "/l", body).code)
      end)

      it("changes nothing with a no-op write", function()
        local made = config_map("a", { k = "1" })
        local rv = made.metadata.resourceVersion
        assert.equal(rv, api:put(maps .. "/a", made).body.metadata.resourceVersion)
        assert.equal(rv, api:patch("merge", maps .. "/a",
          { data = { k = "1" } }).body.metadata.resourceVersion)
        assert.equal(0, #api:watched(maps .. "?resourceVersion=" .. rv))
      end)

      it("gets canonical quantities in built-in kinds, and its own text in custom resources", function()
        local r = api:post(core .. "/pods", { metadata = { name = "p" },
          spec = { containers = { { name = "c", image = "i",
          resources = { requests = { cpu = "0.5", memory = "1024Mi" } } } } } })
        assert.same({ cpu = "500m", memory = "1Gi" }, r.body.spec.containers[1].resources.requests)
        local w = api:post(widgets, '{"apiVersion":"' .. GROUP
          .. '/v1","kind":"Widget","metadata":{"name":"w"},'
          .. '"spec":{"title":"it","size":9007199254740993,"free":{"cpu":"0.5"}}}')
        assert.truthy(w.text:find('"size":%s*9007199254740993'), w.text)
        assert.equal("0.5", w.body.spec.free.cpu)
      end)

      it("finds the same events in both of their APIs", function()
        local r = api:post(core .. "/events", { metadata = { name = "e" },
          involvedObject = { kind = "Pod", name = "p", namespace = ns },
          type = "Warning", reason = "Why", message = "because", count = 2, source = { component = "spec" } })
        assert.equal(201, r.code, r.text)
        local events = "/apis/events.k8s.io/v1/namespaces/" .. ns .. "/events"
        local other = api:get(events .. "/e").body
        assert.same({ "events.k8s.io/v1", "because", "p", 2, "spec" },
          { other.apiVersion, other.note, other.regarding.name, other.deprecatedCount,
            other.deprecatedSource.component })
        assert.equal("e", names(api:get(core .. "/events?fieldSelector=involvedObject.name%3Dp").body))
        assert.equal("e", names(api:get(events .. "?fieldSelector=regarding.name%3Dp").body))
        r = api:post(events, { metadata = { name = "f" },
          regarding = { kind = "Pod", name = "q", namespace = ns }, type = "Normal", reason = "So",
          action = "Doing", note = "done", eventTime = "2026-01-02T03:04:05.000006Z",
          reportingController = "spec.io/x", reportingInstance = "one" })
        assert.equal(201, r.code, r.text)
        assert.same({ "done", "q", "spec.io/x" }, { api:get(core .. "/events/f").body.message,
          api:get(core .. "/events/f").body.involvedObject.name,
          api:get(core .. "/events/f").body.reportingComponent })
      end)

      it("finds stringData in data", function()
        local r = api:post(core .. "/secrets", { metadata = { name = "s" }, stringData = { a = "hello" } })
        assert.same({ a = "aGVsbG8=" }, r.body.data)
        assert.equal("Opaque", r.body.type)
        assert.is_nil(r.body.stringData)
      end)
    end)

    describe("that patches", function()
      it("merges, tests and edits", function()
        config_map("a", { k = "1", l = "2" })
        assert.same({ k = "9", m = "3" }, api:patch("merge", maps .. "/a",
          '{"data":{"k":"9","l":null,"m":"3"}}').body.data)
        local r = api:patch("json", maps .. "/a", { { op = "test", path = "/data/k", value = "other" } })
        assert.equal(422, r.code)
        r = api:patch("json", maps .. "/a", { { op = "test", path = "/data/k", value = "9" },
          { op = "add", path = "/data/n", value = "4" },
          { op = "remove", path = "/data/m" } })
        assert.same({ k = "9", n = "4" }, r.body.data)
        assert.equal(400, api:patch("json", maps .. "/a", '{"op":"test"}').code)
        assert.equal(400, api:patch("merge", maps .. "/a", "[]").code)
        assert.equal(415, api:request("PATCH", maps .. "/a", "{}").code)
        assert.equal(404, api:patch("merge", maps .. "/nope", "{}").code)
      end)

      it("merges containers and their environment by name, strategically", function()
        assert.equal(201, api:post(deployments, deployment "d").code)
        local r = api:patch("strategic", deployments .. "/d", { spec = { template = { spec = { containers = {
          { name = "c", env = { { name = "B", value = "2" } } }, { name = "side", image = "s:1" } } } } } })
        assert.equal(200, r.code, r.text)
        local containers = r.body.spec.template.spec.containers
        assert.equal(2, #containers)
        local by = {}
        for _, c in ipairs(containers) do by[c.name] = c end
        assert.equal("i:1", by.c.image)
        assert.equal(2, #by.c.env)
        r = api:patch("strategic", deployments .. "/d",
          '{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}')
        assert.equal(1, #r.body.spec.template.spec.containers)
        r = api:patch("strategic", deployments .. "/d",
          '{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"$patch":"replace"},{"name":"Z",\z
            "value":"0"}]}]}}}}')
        assert.same({ { name = "Z", value = "0" } }, r.body.spec.template.spec.containers[1].env)
        r = api:patch("strategic", deployments .. "/d",
          '{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}')
        assert.same({ type = "Recreate" }, r.body.spec.strategy)
      end)

      it("has no strategic patch for custom resources", function()
        widget "w"
        assert.equal(415, api:patch("strategic", widgets .. "/w", '{"spec":{"size":4}}').code)
        assert.equal(4, api:patch("merge", widgets .. "/w", '{"spec":{"size":4}}').body.spec.size)
      end)
    end)

    describe("that applies", function()
      local function apply(manager, spec, force)
        return api:apply(widgets .. "/w", manager, { apiVersion = GROUP .. "/v1", kind = "Widget",
          metadata = { name = "w" }, spec = spec }, force)
      end
      local function owned(object, manager)
        for _, e in ipairs(object.metadata.managedFields or {}) do
          if e.manager == manager then return e.fieldsV1 end
        end
      end

      it("creates the object, owns its fields, and changes nothing the second time", function()
        local r = apply("one", { title = "it", tags = { "p" } })
        assert.equal(201, r.code, r.text)
        assert.same({ ["f:spec"] = { ["f:title"] = {}, ["f:tags"] = { ['v:"p"'] = {} } } },
          owned(r.body, "one"))
        assert.equal(3, r.body.spec.size)
        local again = apply("one", { title = "it", tags = { "p" } })
        assert.equal(200, again.code)
        assert.equal(r.body.metadata.resourceVersion, again.body.metadata.resourceVersion)
      end)

      it("gets a conflict for a field of another manager, with its name, unless it forces", function()
        apply("one", { title = "it" })
        local r = apply("two", { title = "mine" })
        assert.equal(409, r.code)
        assert.equal('Apply failed with 1 conflict: conflict with "one": .spec.title', r.body.message)
        assert.same({ { reason = "FieldManagerConflict", message = 'conflict with "one"',
          field = ".spec.title" } }, r.body.details.causes)
        r = apply("two", { title = "mine" }, true)
        assert.equal(200, r.code)
        assert.equal("mine", r.body.spec.title)
        assert.is_nil(owned(r.body, "one"))
      end)

      it("gets every conflict and its manager", function()
        assert.equal(201, api:post(widgets .. "?fieldManager=maker",
          { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" },
          spec = { title = "it", size = 5, mode = "a" } }).code)
        local r = apply("two", { title = "mine", mode = "b" })
        assert.equal(409, r.code)
        assert.equal(('Apply failed with 2 conflicts: conflicts with "maker" using %s/v1:\n- .spec.mode\n- \z
          .spec.title'):format(GROUP), r.body.message)
      end)

      it("shares an equal value, which stays until both managers drop it", function()
        apply("one", { title = "it", mode = "a" })
        assert.equal(200, apply("two", { title = "it", mode = "a" }).code)
        assert.equal("a", apply("one", { title = "it" }).body.spec.mode)
        assert.is_nil(apply("two", { title = "it" }).body.spec.mode)
      end)

      it("merges sets and keyed lists by item, and others as a whole", function()
        apply("one", { title = "it", tags = { "p" }, plain = { "x" }, parts = { { name = "a", count = 1 } } })
        local r = apply("two", { title = "it", tags = { "q" }, parts = { { name = "b", count = 2 } } })
        assert.equal(200, r.code, r.text)
        table.sort(r.body.spec.tags)
        assert.same({ "p", "q" }, r.body.spec.tags)
        assert.equal(2, #r.body.spec.parts)
        assert.equal(409, apply("two", { title = "it", plain = { "y" } }).code)
        r = apply("one", { title = "it", tags = { "p" }, plain = { "x" } })
        assert.same({ { name = "b", count = 2 } }, r.body.spec.parts)
      end)

      it("loses a field that another updates, and leaves it alone afterwards", function()
        apply("one", { title = "it", mode = "a" })
        local r = api:patch("merge", widgets .. "/w?fieldManager=hand", '{"spec":{"mode":"b"}}')
        assert.is_nil(owned(r.body, "one")["f:spec"]["f:mode"])
        assert.same({ ["f:spec"] = { ["f:mode"] = {} } }, owned(r.body, "hand"))
        assert.equal("b", apply("one", { title = "it" }).body.spec.mode)
      end)

      it("merges a built-in kind by the keys of its lists", function()
        local function pod_template(containers)
          return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "d" },
            spec = { selector = { matchLabels = { app = "d" } },
            template = { metadata = { labels = { app = "d" } }, spec = { containers = containers } } } }
        end
        local r = api:apply(deployments .. "/d", "one",
          pod_template { { name = "c", image = "i:1", ports = { { containerPort = 80 } } } })
        assert.equal(201, r.code, r.text)
        local container = owned(r.body,
          "one")["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
        assert.truthy(container["f:ports"]['k:{"containerPort":80,"protocol":"TCP"}'])
        r = api:apply(deployments .. "/d", "two", { apiVersion = "apps/v1", kind = "Deployment",
          metadata = { name = "d" }, spec = { replicas = 4,
          template = { spec = { containers = { { name = "side", image = "s:1" } } } } } }, true)
        assert.equal(200, r.code, r.text)
        assert.equal(2, #r.body.spec.template.spec.containers)
        assert.equal(4, r.body.spec.replicas)
        assert.same({ matchLabels = { app = "d" } }, r.body.spec.selector)
        r = api:apply(deployments .. "/d", "two", { apiVersion = "apps/v1", kind = "Deployment",
          metadata = { name = "d" } })
        assert.equal(1, #r.body.spec.template.spec.containers)
        assert.equal("c", r.body.spec.template.spec.containers[1].name)
      end)

      it("must name its field manager and this object", function()
        local body = { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" },
          spec = { title = "it" } }
        local r = api:patch("apply", widgets .. "/w", body)
        assert.equal(422, r.code)
        assert.truthy(r.body.message:find("fieldManager: Required value: is required for apply patch", 1,
          true))
        assert.equal(400, api:apply(widgets .. "/other", "one", body).code)
      end)

      it("owns the status separately", function()
        apply("one", { title = "it" })
        local r = api:apply(widgets .. "/w/status", "two",
          { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" }, status = { ok = true } })
        assert.equal(200, r.code, r.text)
        assert.is_true(r.body.status.ok)
        assert.same({ ["f:status"] = { ["f:ok"] = {} } }, owned(r.body, "two"))
      end)
    end)

    describe("with a status subresource", function()
      it("cannot write one through the other", function()
        local w = api:post(widgets, { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" },
          spec = { title = "it" }, status = { ok = true } }).body
        assert.is_nil(w.status)
        assert.equal(1, w.metadata.generation)
        w = api:patch("merge", widgets .. "/w/status",
          '{"metadata":{"labels":{"l":"x"}},"spec":{"title":"other"},"status":{"ok":true}}').body
        assert.same({ "it", true, 1 }, { w.spec.title, w.status.ok, w.metadata.generation })
        assert.is_nil(w.metadata.labels)
        w = api:patch("merge", widgets .. "/w", '{"spec":{"title":"other"},"status":{"ok":false}}').body
        assert.same({ "other", true, 2 }, { w.spec.title, w.status.ok, w.metadata.generation })
        assert.equal(422, api:patch("merge", widgets .. "/w/status", '{"status":{"ok":"yes"}}').code)
        w.status.ok = false
        assert.is_false(api:put(widgets .. "/w/status", w).body.status.ok)
      end)

      it("counts generations of the spec, and of a Deployment's annotations", function()
        api:post(deployments, deployment "d")
        local function generation(kind, body)
          return api:patch(kind, deployments .. "/d", body).body.metadata.generation
        end
        assert.equal(1, generation("merge", '{"metadata":{"labels":{"a":"b"}}}'))
        assert.equal(2, generation("merge", '{"metadata":{"annotations":{"a":"b"}}}'))
        assert.equal(3, generation("merge", '{"spec":{"replicas":2}}'))
        local r = api:patch("merge", deployments .. "/d/status",
          '{"status":{"replicas":2,"observedGeneration":3},"spec":{"replicas":9}}')
        assert.same({ 2, 2, 3 }, { r.body.spec.replicas, r.body.status.replicas, r.body.metadata.generation })
      end)
    end)

    it("scales objects with replicas", function()
      assert.equal(201, api:post(deployments, deployment "d").code)
      local scale = api:get(deployments .. "/d/scale").body
      assert.same({ "Scale", "autoscaling/v1", 1, "app=d" },
        { scale.kind, scale.apiVersion, scale.spec.replicas, scale.status.selector })
      assert.equal(4, api:patch("merge", deployments .. "/d/scale",
        '{"spec":{"replicas":4}}').body.spec.replicas)
      local d = api:get(deployments .. "/d").body
      assert.same({ 4, 2 }, { d.spec.replicas, d.metadata.generation })
      assert.equal(409, api:put(deployments .. "/d/scale", scale).code)
      local r = api:patch("merge", deployments .. "/d/scale", '{"spec":{"replicas":-1}}')
      assert.equal(422, r.code)
      assert.truthy(r.body.message:find(
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0", 1, true), r.body.message)
      assert.equal(404, api:get(maps .. "/d/scale").code)
      assert.truthy(s:must_kubectl("-n", ns, "scale", "deploy", "d", "--replicas", "2"):find("scaled", 1,
        true))
      assert.equal(2, api:get(deployments .. "/d").body.spec.replicas)
      assert.equal(200, api:patch("merge", deployments .. "/d/scale", '{"spec":{"replicas":0}}').code)
      local none = api:get(deployments .. "/d/scale").body
      assert.same({ nil, 0, 0 }, { none.spec.replicas, none.status.replicas,
        api:get(deployments .. "/d").body.spec.replicas })
    end)

    describe("that deletes", function()
      it("gets the deleted object", function()
        local made = config_map "a"
        local r = api:delete(maps .. "/a")
        assert.equal(200, r.code)
        assert.same({ "Success", { name = "a", kind = "configmaps", uid = made.metadata.uid } },
          { r.body.status, r.body.details })
        assert.equal(404, api:delete(maps .. "/a").code)
      end)

      it("waits for finalizers", function()
        config_map("a", nil, { finalizers = { "spec.kubelua.dev/hold" } })
        local r = api:delete(maps .. "/a")
        assert.equal(200, r.code)
        assert.truthy(r.body.metadata.deletionTimestamp)
        local second = api:delete(maps .. "/a").body
        assert.equal(r.body.metadata.resourceVersion, second.metadata.resourceVersion)
        r = api:patch("merge", maps .. "/a", { metadata = {
          finalizers = { "spec.kubelua.dev/hold", "spec.kubelua.dev/more" } } })
        assert.equal(422, r.code)
        assert.truthy(r.body.message:find(
          "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
          .. 'found new finalizers []string{"spec.kubelua.dev/more"}', 1, true))
        api:patch("merge", maps .. "/a", '{"metadata":{"deletionTimestamp":null}}')
        assert.truthy(api:get(maps .. "/a").body.metadata.deletionTimestamp)
        r = api:patch("merge", maps .. "/a", '{"metadata":{"finalizers":null}}')
        assert.equal(200, r.code)
        assert.equal(404, api:get(maps .. "/a").code)
      end)

      it("respects preconditions", function()
        config_map "a"
        local r = api:delete(maps .. "/a", { preconditions = { uid = "other" } })
        assert.equal(409, r.code)
        assert.truthy(r.body.message:find("the UID in the precondition (other) does not match", 1, true))
        assert.equal(409, api:delete(maps .. "/a", { preconditions = { resourceVersion = "1" } }).code)
        assert.equal(200, api:get(maps .. "/a").code)
      end)

      it("gives a pod on a node a grace period, and one without a node none", function()
        local pod = { metadata = { name = "bound" }, spec = { nodeName = "n",
          containers = { { name = "c", image = "i" } } } }
        api:post(core .. "/pods", pod)
        local r = api:delete(core .. "/pods/bound")
        assert.same({ "Pod", 30 }, { r.body.kind, r.body.metadata.deletionGracePeriodSeconds })
        assert.equal(200, api:get(core .. "/pods/bound").code)
        api:delete(core .. "/pods/bound", { gracePeriodSeconds = 0 })
        assert.equal(404, api:get(core .. "/pods/bound").code)
        pod.metadata.name, pod.spec.nodeName = "free", nil
        api:post(core .. "/pods", pod)
        assert.equal("Pod", api:delete(core .. "/pods/free").body.kind)
        assert.equal(404, api:get(core .. "/pods/free").code)
      end)

      it("deletes the objects of a selector", function()
        config_map("a", nil, { labels = { x = "1" } })
        config_map("b", nil, { labels = { x = "2" } })
        assert.equal(200, api:delete(maps .. "?labelSelector=x%3D1").code)
        assert.equal(404, api:get(maps .. "/a").code)
        assert.equal(200, api:get(maps .. "/b").code)
      end)
    end)

    describe("that lists", function()
      it("sees one snapshot over all pages", function()
        for _, key in ipairs { "a", "b", "c", "d", "e" } do config_map(key) end
        local first = api:get(maps .. "?limit=2").body
        assert.equal("a b", names(first))
        assert.equal(3, first.metadata.remainingItemCount)
        api:delete(maps .. "/d")
        config_map "c2"
        api:patch("merge", maps .. "/e", '{"data":{"late":"yes"}}')
        local second = api:get(maps .. "?limit=2&continue=" .. first.metadata.continue).body
        local third = api:get(maps .. "?limit=2&continue=" .. second.metadata.continue).body
        assert.equal("c d", names(second))
        assert.equal("e", names(third))
        assert.is_nil(third.items[1].data)
        assert.equal(first.metadata.resourceVersion, second.metadata.resourceVersion)
        assert.equal(first.metadata.resourceVersion, third.metadata.resourceVersion)
        assert.is_nil(third.metadata.continue)
        local exact = api:get(maps .. "?resourceVersionMatch=Exact&resourceVersion="
          .. first.metadata.resourceVersion).body
        assert.equal("a b c d e", names(exact))
        assert.equal("a b c c2 e", names(api:get(maps).body))
      end)

      it("selects by labels and fields", function()
        local function pod(key, node, labels)
          return api:post(core .. "/pods", { metadata = { name = key, labels = labels },
            spec = { nodeName = node, containers = { { name = "c",
          image = "i" } } } })
        end
        pod("p1", "n1", { tier = "front" })
        pod("p2", "n2", { tier = "back", canary = "yes" })
        pod("p3", nil, nil)
        local function pods(query) return names(api:get(core .. "/pods?" .. query).body) end
        assert.equal("p1 p2", pods "labelSelector=tier+in+(front,back)")
        assert.equal("p1 p3", pods "labelSelector=%21canary")
        assert.equal("p2", pods "fieldSelector=spec.nodeName%3Dn2")
        assert.equal("p1 p3", pods "fieldSelector=metadata.name%21%3Dp2")
        assert.equal("p1 p2 p3", pods "fieldSelector=status.phase%3DPending")
        assert.equal("p3", pods "fieldSelector=spec.nodeName%3D")
        local page = api:get(core .. "/pods?limit=1&labelSelector=tier").body
        assert.is_nil(page.metadata.remainingItemCount)
        local r = api:get(core .. "/pods?fieldSelector=spec.color%3Dred")
        assert.equal(400, r.code)
        assert.equal("field label not supported: spec.color", r.body.message)
        assert.equal(400, api:get(core .. "/pods?labelSelector=a%3D%3D%3D").code)
      end)

      it("gets an error for unsupported selectors", function()
        assert.equal(422, api:get(maps .. "?resourceVersionMatch=Exact").code)
        assert.equal(422, api:get(maps .. "?resourceVersionMatch=Exact&resourceVersion=0").code)
        assert.equal(400, api:get(maps .. "?resourceVersion=abc").code)
        assert.equal(400, api:get(maps .. "?limit=x").code)
        assert.equal(400, api:get(maps .. "?continue=garbage").code)
        local r = api:get(maps .. "?resourceVersion=999999999999999999")
        assert.equal(504, r.code)
        assert.equal("ResourceVersionTooLarge", r.body.details.causes[1].reason)
        assert.equal("1", r.headers["retry-after"])
      end)

      it("gets an empty list", function()
        assert.truthy(api:get(maps .. "?labelSelector=none").text:find '"items":%s*%[%s*%]')
      end)
    end)

    describe("that watches", function()
      it("sees changes after its version, and a deletion at its own", function()
        local made = config_map("a", { k = "1" })
        local changed = api:patch("merge", maps .. "/a", '{"data":{"k":"2"}}').body
        api:delete(maps .. "/a")
        local events = api:watched(maps .. "?resourceVersion=" .. made.metadata.resourceVersion)
        assert.same({ "MODIFIED", "DELETED" }, { events[1].type, events[2].type })
        assert.equal(changed.metadata.resourceVersion, events[1].object.metadata.resourceVersion)
        assert.same({ "2", "ConfigMap" }, { events[2].object.data.k, events[2].object.kind })
        assert.truthy(tonumber(events[2].object.metadata.resourceVersion) > tonumber(
          changed.metadata.resourceVersion))
        events = api:watched(maps .. "?resourceVersion=" .. tonumber(made.metadata.resourceVersion) - 1)
        assert.equal("ADDED", events[1].type)
      end)

      it("sees an object leave its selector as it was, at the version of the change", function()
        local made = config_map("a", { k = "1" }, { labels = { tier = "x" } })
        local left = api:patch("merge", maps .. "/a",
          '{"metadata":{"labels":{"tier":"y"}},"data":{"k":"2"}}').body
        local back = api:patch("merge", maps .. "/a", '{"metadata":{"labels":{"tier":"x"}}}').body
        local events = api:watched(maps .. "?labelSelector=tier%3Dx&resourceVersion="
          .. made.metadata.resourceVersion)
        assert.same({ "DELETED", "ADDED" }, { events[1].type, events[2].type })
        local gone = events[1].object
        assert.same({ "x", "1", left.metadata.resourceVersion },
          { gone.metadata.labels.tier, gone.data.k, gone.metadata.resourceVersion })
        assert.equal(back.metadata.resourceVersion, events[2].object.metadata.resourceVersion)
      end)

      it("gets the existing objects first when it names no version", function()
        config_map "a"
        for _, query in ipairs { "", "?resourceVersion=0" } do
          local events = api:watched(maps .. query)
          assert.same({ "ADDED", "a" }, { events[1].type, events[1].object.metadata.name })
        end
      end)

      it("gets a bookmark after the initial events", function()
        config_map "a"
        local events = api:watched(maps
          .. "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
        assert.same({ "ADDED", "BOOKMARK" }, { events[1].type, events[2].type })
        assert.same({ ["k8s.io/initial-events-end"] = "true" }, events[2].object.metadata.annotations)
        assert.equal("ConfigMap", events[2].object.kind)
        local _, r = api:watched(maps .. "?sendInitialEvents=true&allowWatchBookmarks=true")
        assert.equal(422, r.code)
      end)

      it("is closed at its timeout", function()
        local t = wait.now()
        local _, r = api:watched(maps)
        assert.equal(200, r.code)
        assert.truthy(wait.now() - t >= 0.9)
      end)

      it("sees only its own field", function()
        local rv = config_map "a".metadata.resourceVersion
        config_map "b"
        api:patch("merge", maps .. "/a", '{"data":{"k":"1"}}')
        local events = api:watched(maps .. "?fieldSelector=metadata.name%3Da&resourceVersion=" .. rv)
        assert.same({ 1, "MODIFIED" }, { #events, events[1].type })
      end)
    end)

    describe("that has definitions of its own", function()
      it("gets defaults, loses unknown fields and keeps those the schema preserves", function()
        local w = widget("w", { title = "it", unknown = 1, either = "50%",
          free = { any = { thing = true } } })
        assert.same({ title = "it", size = 3, either = "50%", free = { any = { thing = true } } }, w.spec)
        assert.equal(3, api:patch("merge", widgets .. "/w", '{"spec":{"size":null}}').body.spec.size)
        assert.equal(7, api:patch("merge", widgets .. "/w", '{"spec":{"either":7}}').body.spec.either)
        assert.equal("Widget", api:get(widgets).body.items[1].kind)
      end)

      it("gets all errors at once", function()
        local r = api:post(widgets, { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" },
          spec = { title = "x", size = 0, mode = "c", tags = { "p", "p" }, plain = { 1 },
            parts = { { count = 1 } } } })
        assert.equal(422, r.code)
        assert.same({ "Widget", GROUP }, { r.body.details.kind, r.body.details.group })
        local fields = cause_fields(r.body)
        for _, field in ipairs { "spec.title", "spec.size", "spec.mode", "spec.plain[0]",
          "spec.parts[0].name" } do
          assert.truthy(fields:find(field, 1, true), field .. " is not in " .. fields)
        end
        r = api:post(widgets, { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" },
          spec = { size = "many" } })
        assert.truthy(r.body.message:find(
          'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"', 1, true),
          r.body.message)
        assert.truthy(r.body.message:find("spec.title: Required value", 1, true), r.body.message)
        r = api:post(widgets .. "?fieldValidation=Strict",
          { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = { name = "w" },
            spec = { title = "it", nope = 1 } })
        assert.equal(400, r.code)
        assert.truthy(r.body.message:find('strict decoding error: unknown field "spec.nope"', 1, true))
        assert.equal(400, api:post(widgets, { kind = "Widget", metadata = { name = "w" } }).code)
      end)

      -- kube-apiserver takes a minute for it, and answers 504.
      if name == servers.EMBEDDED then
        it("gets the first of many errors, and their number", function()
          -- Under AddressSanitizer, on a busy machine, so many take longer than a request may.
          local n = os.getenv "KL_VARIANT" == "asan" and 15000 or 60000
          local plain, labels, owners = {}, {}, {}
          for i = 1, n do plain[i], labels["!" .. i] = i, "" end
          for i = 1, n // 3 do
            owners[i] = { apiVersion = "v1", kind = "Node", name = "n", uid = "u" .. i, controller = true }
          end
          for _, metadata in ipairs { { labels = labels }, { ownerReferences = owners }, {} } do
            metadata.name = "w"
            local r = api:post(widgets, { apiVersion = GROUP .. "/v1", kind = "Widget", metadata = metadata,
              spec = { title = "it", plain = plain } })
            assert.equal(422, r.code, r.text:sub(1, 300))
            assert.match(", and %d+ more%]$", r.body.message)
            assert.is_true(#r.text < 20e6, #r.text .. " bytes")
          end
        end)
      end

      it("must say the version that it updates", function()
        local w = widget "w"
        w.metadata.resourceVersion = nil
        local r = api:put(widgets .. "/w", w)
        assert.equal(422, r.code)
        assert.truthy(r.body.message:find(
          "metadata.resourceVersion: Invalid value: 0: must be specified for an update", 1, true),
          r.body.message)
      end)

      it("finds them in discovery, old and new", function()
        local function resource(list, key, value)
          for _, r in ipairs(list) do if r[key] == value then return r end end
        end
        local r = resource(api:get("/apis/" .. GROUP .. "/v1").body.resources, "name", "widgets")
        assert.same({ "Widget", true, "widget", { "wdg" } },
          { r.kind, r.namespaced, r.singularName, r.shortNames })
        assert.truthy(resource(api:get("/apis").body.groups, "name", GROUP))
        local doc = api:get("/apis",
          { "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" }).body
        assert.equal("APIGroupDiscoveryList", doc.kind)
        local group
        for _, g in ipairs(doc.items) do if g.metadata.name == GROUP then group = g end end
        r = resource(group.versions[1].resources, "resource", "widgets")
        assert.same({ "Widget", "Namespaced", "status" },
          { r.responseKind.kind, r.scope, r.subresources[1].subresource })
        doc = api:get("/api",
          { "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" }).body
        assert.truthy(resource(doc.items[1].versions[1].resources, "resource", "pods"))
      end)

      it("gets an error for an invalid definition", function()
        local bad = crd("wrong.spec.kubelua.dev"):gsub('"name": "widgets.wrong', '"name": "gadgets.wrong')
        local r = api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", bad)
        assert.equal(422, r.code)
        assert.truthy(r.body.message:find('must be spec.names.plural+"."+spec.group', 1, true),
          r.body.message)
      end)

      it("loses the objects with the definition, and watchers see the deletions", function()
        local group = "gone" .. count .. ".spec.kubelua.dev"
        local definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets." .. group
        local things = "/apis/" .. group .. "/v1/namespaces/" .. ns .. "/widgets"
        assert.equal(201, api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
          crd(group)).code)
        wait.until_true(20, "it is served", function() return api:get(things).code == 200 end)
        local made
        wait.until_true(20, "an object is taken", function()
          made = api:post(things, { apiVersion = group .. "/v1", kind = "Widget", metadata = { name = "w" },
            spec = { title = "it" } })
          return made.code == 201
        end)
        local seen = process.spawn { "curl", "-sSN", "--max-time", "30", "-H",
          "Authorization: Bearer " .. (s.token or "none"),
          "--cacert", s.ca or "/dev/null", s.url .. things .. "?watch=true&resourceVersion="
          .. made.body.metadata.resourceVersion - 1 }
        seen:wait_for_log(10, "ADDED")
        assert.equal(200, api:delete(definition).code)
        seen:wait_for_log(20, "DELETED")
        seen:stop()
        wait.until_true(20, "it is served no more", function()
          return api:get(definition).code == 404 and api:get(things).code == 404
        end)
      end)
    end)

    describe("that prints", function()
      local TABLE = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

      local function columns(t)
        local out = {}
        for _, c in ipairs(t.columnDefinitions) do if c.priority == 0 then out[#out + 1] = c.name end end
        return table.concat(out, " ")
      end

      it("gets tables that the server made", function()
        config_map("a", { x = "1", y = "2" })
        local t = api:get(maps, { TABLE }).body
        assert.same({ "Table", "Name Data Age" }, { t.kind, columns(t) })
        assert.same({ "a", 2 }, { t.rows[1].cells[1], t.rows[1].cells[2] })
        assert.same({ "PartialObjectMetadata", "a" }, { t.rows[1].object.kind,
          t.rows[1].object.metadata.name })
        api:post(core .. "/pods", { metadata = { name = "p" },
          spec = { containers = { { name = "c", image = "i" }, { name = "d", image = "i" } } } })
        t = api:get(core .. "/pods/p", { TABLE }).body
        assert.equal("Name Ready Status Restarts Age", columns(t))
        assert.same({ "p", "0/2", "Pending", "0" }, { table.unpack(t.rows[1].cells, 1, 4) })
        api:patch("merge", core .. "/pods/p/status", { status = { phase = "Running", containerStatuses = {
          { name = "c", image = "i", imageID = "", ready = true, restartCount = 2,
            state = { running = { startedAt = "2026-01-01T00:00:00Z" } },
            lastState = { terminated = { exitCode = 1, finishedAt = "2026-01-01T00:00:00Z" } } },
          { name = "d", image = "i", imageID = "", ready = false, restartCount = 0,
            state = { waiting = { reason = "CrashLoopBackOff" } } } } } })
        local cells = api:get(core .. "/pods/p", { TABLE }).body.rows[1].cells
        assert.same({ "1/2", "CrashLoopBackOff" }, { cells[2], cells[3] })
        assert.truthy(cells[4]:find "^2 %(%d+%w+ ago%)$", cells[4])
      end)

      it("gets the columns of a definition", function()
        widget("w", { title = "it", size = 5 })
        local t = api:get(widgets, { TABLE }).body
        assert.equal("Name Size Ready", columns(t))
        assert.same({ "w", 5 }, { t.rows[1].cells[1], t.rows[1].cells[2] })
        api:patch("merge", widgets .. "/w/status",
          '{"status":{"conditions":[{"type":"Other","status":"No"},{"type":"Ready","status":"True"}]}}')
        assert.equal("True", api:get(widgets, { TABLE }).body.rows[1].cells[3])
      end)

      it("gets metadata alone", function()
        config_map("a", { k = "v" })
        local r = api:get(maps .. "/a",
          { "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" })
        assert.same({ "PartialObjectMetadata", "a" }, { r.body.kind, r.body.metadata.name })
        assert.is_nil(r.body.data)
        local list = api:get(maps,
          { "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" }).body
        assert.equal("PartialObjectMetadataList", list.kind)
      end)
    end)

    it("is allowed everything", function()
      local r = api:post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        { apiVersion = "authorization.k8s.io/v1", kind = "SelfSubjectAccessReview",
        spec = { resourceAttributes = { verb = "delete", resource = "pods" } } })
      assert.same({ 201, true }, { r.code, r.body.status.allowed })
    end)

    it("works with kubectl", function()
      local file = process.tmpname ".yaml"
      local manifest = [[
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "i:1", env: [{name: A, value: "1"}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1"}
]]
      process.write(file, manifest)
      local function kubectl(...) return s:must_kubectl("-n", ns, ...) end
      assert.truthy(kubectl("apply", "-f", file):find("deployment.apps/web created", 1, true))
      assert.truthy(kubectl("apply", "-f", file):find("deployment.apps/web unchanged", 1, true))
      process.write(file, (manifest:gsub("i:1", "i:2")))
      local out = kubectl("apply", "-f", file)
      assert.truthy(out:find("deployment.apps/web configured", 1, true)
        and out:find("configmap/settings unchanged", 1, true), out)
      assert.equal("i:2", kubectl("get", "deploy", "web", "-o",
        "jsonpath={.spec.template.spec.containers[0].image}"))
      assert.truthy(kubectl("apply", "--server-side", "-f", file):find("serverside-applied", 1, true))
      assert.truthy(kubectl("get", "deploy"):find "web +0/1")
      assert.truthy(kubectl("label", "cm", "settings", "x=y"):find("labeled", 1, true))
      assert.truthy(kubectl("patch", "cm", "settings", "--type", "merge", "-p",
        '{"data":{"a":"1"}}'):find("(no change)", 1, true))
      process.write(file, (manifest:gsub("\ndata:", "\ndota:")))
      local refused, code = s:kubectl("-n", ns, "apply", "-f", file)
      assert.equal(1, code)
      assert.truthy(refused:find('unknown field "dota"', 1, true), refused)
      assert.truthy(kubectl("delete", "-f", file):find('configmap "settings" deleted', 1, true))
      assert.truthy(kubectl("api-resources", "--api-group", GROUP):find("widgets", 1, true))
    end)
  end)
end)
