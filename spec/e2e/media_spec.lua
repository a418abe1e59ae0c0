-- media_spec.lua - content negotiation: media types by quality, forms of objects, and rejected requests. Both
-- servers answer with the same code, type and message.
-- not in tsan: one request after the other, and what answers them is pure

local api_of = require "support.api"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"

local PROTO = "application/vnd.kubernetes.protobuf"
local TABLE = ";as=Table;g=meta.k8s.io;v=v1"
local ONE = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
local LIST = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

local TYPES = "application/json, application/yaml, " .. PROTO
local STREAMS = "application/json;stream=watch, " .. PROTO .. ";stream=watch"
local ACCEPTED = "only the following media types are accepted: " .. TYPES
local STREAMED = "only the following media types are accepted: " .. STREAMS
local PRODUCED = "406: Not Acceptable\n\nAvailable representations: " .. TYPES

local OBJECT = "/api/v1/namespaces/default"
local OBJECTS = "/api/v1/namespaces"
local WATCH = "/api/v1/namespaces?watch=1&resourceVersion=0&timeoutSeconds=1"
local CUSTOM = "/apis/media.example.com/v1/namespaces/default/gadgets/a"
local CUSTOMS = "/apis/media.example.com/v1/namespaces/default/gadgets"

-- path, Accept, code, Content-Type, message of a failure
local CASES = {
  { OBJECT, "application/json", 200, "application/json" },
  { OBJECT, "application/yaml", 200, "application/yaml" },
  { OBJECT, PROTO, 200, PROTO },
  { OBJECT, PROTO .. ";stream=watch", 200, PROTO },
  { OBJECT, "*/*", 200, "application/json" },
  { OBJECT, "text/html,*/*;q=0.8", 200, "application/json" },
  { OBJECT, "application/json;q=0.1, application/yaml", 200, "application/yaml" },
  { OBJECT, "application/json;q=0.1, " .. PROTO .. ";q=0.5", 200, PROTO },
  { OBJECT, PROTO .. ONE, 200, PROTO },
  { OBJECT, "application/yaml" .. TABLE, 200, "application/yaml" },
  { OBJECT, PROTO .. TABLE .. ",application/json", 200, "application/json" },
  { OBJECT, "text/html", 406, "application/json", PRODUCED },
  { OBJECT, "application/*", 406, "application/json", PRODUCED },
  { OBJECT, "application/cbor", 406, "application/json", PRODUCED },
  { OBJECT, PROTO .. TABLE, 406, "application/json", ACCEPTED },
  { OBJECT, "application/json;as=Nope;g=meta.k8s.io;v=v1", 406, "application/json", ACCEPTED },
  { OBJECT, "application/json" .. LIST, 406, "application/json",
    "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Namespace)" },
  { OBJECTS, "application/yaml", 200, "application/yaml" },
  { OBJECTS, PROTO, 200, PROTO },
  { OBJECTS, PROTO .. LIST, 200, PROTO },
  { OBJECTS, "text/html", 406, "application/json", PRODUCED .. ", " .. STREAMS },
  { OBJECTS, "application/json" .. ONE, 406, "application/json",
    "you requested PartialObjectMetadata, but the requested object is a list (*core.NamespaceList)" },
  { WATCH, "application/json", 200, "application/json" },
  { WATCH, "application/json;stream=watch", 200, "application/json" },
  { WATCH, PROTO, 200, PROTO .. ";stream=watch" },
  { WATCH, PROTO .. ONE, 200, PROTO .. ";stream=watch" },
  { WATCH, "application/yaml", 406, "application/yaml", STREAMED },
  { WATCH, "application/yaml" .. TABLE, 406, "application/json", STREAMED },
  { WATCH, "text/html", 406, "application/json", PRODUCED .. ", " .. STREAMS },
  { CUSTOM, "application/yaml", 200, "application/yaml" },
  { CUSTOM, "application/*", 200, "application/json" },
  { CUSTOM, PROTO .. ",application/json", 200, "application/json" },
  { CUSTOM, PROTO .. ONE, 200, PROTO },
  { CUSTOM, PROTO, 406, PROTO, ACCEPTED },
  { CUSTOM, "text/html", 406, "application/json", ACCEPTED },
  { CUSTOMS, "application/cbor", 406, "application/json", ACCEPTED },
  { CUSTOMS, PROTO .. LIST, 200, PROTO },
  { CUSTOMS, "application/json" .. ONE, 406, "application/json",
    "you requested PartialObjectMetadata, but the requested object is a list \z
      (*unstructured.UnstructuredList)" },
}

local CRD = { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
  metadata = { name = "gadgets.media.example.com" },
  spec = { group = "media.example.com", scope = "Namespaced",
    names = { plural = "gadgets", singular = "gadget", kind = "Gadget", listKind = "GadgetList" },
    versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = {
      type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }

servers.each(function(server_name, start)
  describe("answers of " .. server_name, function()
    local server, api

    lazy_setup(function()
      server = start {}
      api = api_of(server)
      assert.equal(201, api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).code)
      server:wait_established "crd/gadgets.media.example.com"
      assert.equal(201, api:post(CUSTOMS, { apiVersion = "media.example.com/v1", kind = "Gadget",
        metadata = { name = "a" } }).code)
    end)
    lazy_teardown(function()
      if api then
        api:delete "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.media.example.com"
      end
      if server then server:stop() end
    end)

    it("come in the requested format, or not at all", function()
      for _, case in ipairs(CASES) do
        local path, accept, code, media, message = table.unpack(case)
        local where = path .. " as " .. accept
        local r = api:get(path, { "Accept: " .. accept })
        assert.equal(code, r.code, where .. ": " .. r.text)
        assert.equal(media, r.headers["content-type"], where)
        if message and media == "application/json" then
          assert.equal(message, r.body.message, where)
          assert.equal("NotAcceptable", r.body.reason, where)
        elseif message and media == PROTO then
          assert.is_truthy(r.text:find(message, 1, true), where)
        elseif message then
          assert.equal(message, (r.text:match "message: '(.-)'\n":gsub("\n *", " ")), where)
        end
      end
    end)

    it("have in table rows the requested part of each object", function()
      local function object(include)
        local rows = api:get(OBJECT .. include, { "Accept: application/json" .. TABLE }).body.rows
        assert.equal(1, #rows)
        return rows[1].object
      end
      local whole = api:get(OBJECT).body
      assert.same(whole, object "?includeObject=Object")
      for _, include in ipairs { "", "?includeObject=Metadata" } do
        assert.same({ kind = "PartialObjectMetadata", apiVersion = "meta.k8s.io/v1",
          metadata = whole.metadata },
          object(include))
      end
      local none = api:get(OBJECT .. "?includeObject=None", { "Accept: application/json" .. TABLE }).text
      assert.matches('"object": ?null', none)
      for _, path in ipairs { OBJECT, OBJECTS } do
        local wrong = api:get(path .. "?includeObject=Some", { "Accept: application/json" .. TABLE })
        assert.equal(400, wrong.code)
        assert.equal([[Unable to convert to Table as requested: includeObject: Invalid value: "Some": ]]
          .. "must be 'Metadata', 'Object', 'None', or empty", wrong.body.message)
        assert.equal("BadRequest", wrong.body.reason)
      end
    end)

    it("describe the API in JSON, too", function()
      local document = api:get("/openapi/v2", { "Accept: application/json" }).body
      assert.equal("2.0", document.swagger)
      assert.is_table(document.paths["/api/v1/namespaces/{namespace}/pods"].get)
      assert.is_table(document.definitions["io.k8s.api.core.v1.Pod"].properties)
    end)

    it("hold the same object in YAML, and a failure in protobuf", function()
      local yaml = kube.yaml(api:get(OBJECT, { "Accept: application/yaml" }).text)[1]
      assert.equal("Namespace", yaml.kind)
      assert.equal(api:get(OBJECT).body.metadata.uid, yaml.metadata.uid)
      local none = api:get("/api/v1/namespaces/none", { "Accept: " .. PROTO })
      assert.equal(404, none.code)
      assert.equal(PROTO, none.headers["content-type"])
      assert.equal("k8s\0\n\12\n\2v1\18\6Status\18", none.text:sub(1, 19))
      assert.is_truthy(none.text:find('namespaces "none" not found', 1, true))
    end)

    it("have no invalid UTF-8: requests with it are rejected", function()
      for text, at in pairs { ["?"] = 0, ["abc=d"] = 4, ["YWJj*"] = 4 } do
        local r = api:post("/api/v1/namespaces/default/secrets",
          { metadata = { name = "bytes" }, data = { k = text } })
        assert.equal(400, r.code)
        assert.equal('Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input \z
          byte '
          .. at, r.body.message)
      end
    end)

    it("are compressed if they are large and the client accepts gzip", function()
      local path = "/api/v1/namespaces/default/configmaps"
      local cards = { { "media-large", 140000 }, { "media-small", 100 } }
      for _, card in ipairs(cards) do
        local r = api:post(path, { metadata = { name = card[1] }, data = { a = ("x"):rep(card[2]) } },
          { "Accept-Encoding: gzip" })
        assert.equal(201, r.code)
        assert.equal(card[2] > 1000 and "gzip" or nil, r.headers["content-encoding"])
      end
      for words, packed in pairs { gzip = true, ["deflate, gzip"] = true, ["br,gzip"] = true,
        ["gzip;q=1"] = false, ["*"] = false, GZIP = false, gzipped = false } do
        for _, what in ipairs { path .. "/media-large", path } do
          local r = api:get(what, { "Accept-Encoding: " .. words })
          assert.equal(packed and "gzip" or nil, r.headers["content-encoding"], words)
          assert.equal(packed and "Accept-Encoding" or nil, r.headers.vary, words)
          assert.equal(packed, #r.text < 100000, words)
        end
        assert.is_nil(api:get(path .. "/media-small", { "Accept-Encoding: " .. words })
          .headers["content-encoding"])
      end
      local packed = api:get(path .. "/media-large", { "Accept-Encoding: gzip" }).text
      local text = process.run("gunzip -c " .. process.write(process.tmpname ".gz", packed))
      assert.equal(api:get(path .. "/media-large").text, text)
      local v2 = api:get("/openapi/v2", { "Accept-Encoding: gzip" })
      assert.equal("gzip", v2.headers["content-encoding"])
      for _, card in ipairs(cards) do api:delete(path .. "/" .. card[1]) end
    end)

    it("indent JSON for people, and end it with a line feed for programs", function()
      local lines, one = '^{\n  "kind": ".*[^\n]$', '^{"kind":".*}\n$'
      local cases = {
        { OBJECT, "kubectl/v1", nil, one }, { OBJECT, "curl/8", nil, lines },
          { OBJECTS, "Wget/1", nil, lines },
        { OBJECTS, "Mozilla/5.0 (X11)", nil, lines }, { OBJECT, "Mozilla/4", nil, one },
          { OBJECT, "Curl", nil, one },
        { OBJECT .. "?pretty=true", "kubectl", nil, lines }, { OBJECT .. "?pretty=t", "kubectl", nil, lines },
        { OBJECT .. "?pretty=0", "curl", nil, one }, { OBJECT .. "?pretty=yes", "curl", nil, one },
        { OBJECT .. "?pretty=", "curl", nil, lines },
          { OBJECT, "kubectl", "application/json;pretty=1", lines },
        { OBJECT, "kubectl", "application/json;pretty=true", one },
        { OBJECT .. "?pretty=0", "curl", "application/json;pretty=1", lines },
        { OBJECT, "curl", "application/json" .. TABLE, lines },
          { OBJECTS, "curl", "application/json" .. LIST, lines },
        { OBJECTS .. "/none", "curl", nil, lines }, { OBJECTS .. "/none", "kubectl", nil, one },
        { "/api", "curl", nil, lines }, { "/api", "kubectl", nil, one },
          { "/apis/apps/v1", "curl", nil, lines },
        { "/apis", "curl", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", lines },
        { WATCH .. "&pretty=1", "curl", nil, '^{"type":"ADDED","object":{"kind":".*\n$' },
        { "/version", "kubectl", nil, '^{\n  "major": "1",\n  "minor": "34",\n  "emulationMajor": .*}$' },
        { "/openapi/v3/apis/apps/v1", "curl", nil, '^{"openapi":' },
      }
      for _, case in ipairs(cases) do
        local path, agent, accept, like = table.unpack(case)
        local text = api:get(path, { "User-Agent: " .. agent, "Accept: " .. (accept or "*/*") }).text
        assert.truthy(text:find(like), ("%s of %s, %s: %s"):format(path, agent, accept, text:sub(1, 60)))
      end
      assert.truthy(api:get("/version").text:find('"emulationMinor": "34",\n  "minCompatibilityMajor": "1"',
        1, true))
    end)

    it("distinguish an API without the resource from a path without an API", function()
      for _, path in ipairs { "/nope", "/apis/none.example/v1", "/apis/media.example.com/v1/x",
        "/apis/media.example.com/v9/gadgets" } do
        local r = api:get(path)
        assert.same({ 404, "404 page not found\n", "text/plain; charset=utf-8" },
          { r.code, r.text, r.headers["content-type"] }, path)
      end
      for _, path in ipairs { "/api/v1/x", "/api/v9/x", "/apis/apps/v9", "/apis/apps/v1/deployments/x",
        "/api/v1/namespaces/default/pods/x/y" } do
        local r = api:get(path)
        assert.same({ 404, {}, "the server could not find the requested resource" },
          { r.code, r.body.details, r.body.message }, path)
      end
    end)

    it("accept bodies of three media types, and name them for any other", function()
      for _, path in ipairs { "/api/v1/namespaces/default/configmaps", CUSTOMS } do
        for _, media in ipairs { "text/plain", "application/cbor" } do
          local r = api:post(path, "{}", { "Content-Type: " .. media })
          assert.equal(415, r.code, path)
          assert.equal("the body of the request was in an unknown format - accepted media types include: "
            .. TYPES, r.body.message)
        end
      end
    end)
  end)
end)
