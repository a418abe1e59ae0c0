-- conversion_spec.lua - custom resources in several versions, which a conversion webhook converts into each
-- other.

local controller = require "support.controller"
local converter = require "support.converter"
local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

servers.each(function(name, start)
  describe("a kind with a conversion webhook, on " .. name, function()
    local server, client, api, hook, gizmos, p1, p2
    lazy_setup(function()
      server = start {}
      client, api = controller.client(server), new_api(server)
      hook = converter.start()
      gizmos = converter.gizmos(api, controller.namespace(client, "gizmos") .. ".example.com", hook)
      p1, p2 = gizmos.paths.v1, gizmos.paths.v2
    end)
    lazy_teardown(function()
      if gizmos then api:delete(gizmos.definition) end
      if client then client:close() end
      if hook then hook.stop() end
      if server then server:stop() end
    end)

    before_each(function() hook.calls() end)
    after_each(function() api:delete(p1) end)

    local function make(v, ...)
      local r = api:post(gizmos.paths[v], gizmos.make(v, ...))
      assert.equal(201, r.code, r.text)
      return r.body
    end

    local function get(path)
      local r = api:get(path)
      assert.equal(200, r.code, r.text)
      return r.body
    end

    it("is read in each version", function()
      make("v1", "a", { size = "3x4" })
      local a = get(p2 .. "/a")
      assert.same({ width = 3, height = 4 }, a.spec)                    -- defaults are of the written version
      assert.equal(gizmos.group .. "/v2", a.apiVersion)
      assert.same({ converted = "v2" }, a.metadata.labels)
      assert.equal(1, a.metadata.generation)                            -- the webhook may not change that
      assert.match(("/convert?timeout=30s apiextensions.k8s.io/v1 %s/v2 a"):format(gizmos.group),
        hook.calls(), 1, true)
      assert.same({ size = "3x4" }, get(p1 .. "/a").spec)
      assert.is_nil(get(p1 .. "/a").metadata.labels)
      assert.equal("", (hook.calls():gsub("[^\n]+/v2 a\n", "")))  -- the stored version needs no webhook
    end)

    it("is written in each version, and the writer sees the stored object", function()
      local b = make("v2", "b", { width = 5, height = 6 })
      assert.same({ width = 5, height = 6, depth = 7 }, b.spec)
      assert.equal(gizmos.group .. "/v2", b.apiVersion)
      assert.same({ converted = "v2" }, b.metadata.labels)
      local stored = get(p1 .. "/b")
      assert.same({ size = "5x6x7" }, stored.spec)
      assert.equal(b.metadata.resourceVersion, stored.metadata.resourceVersion)

      local r = api:patch("merge", p2 .. "/b", { spec = { width = 9 } })
      assert.equal(200, r.code, r.text)
      assert.same({ size = "9x6x7" }, get(p1 .. "/b").spec)
      assert.equal(2, r.body.metadata.generation)
      local again = api:patch("merge", p2 .. "/b", { spec = { width = 9 } })
      assert.equal(r.body.metadata.resourceVersion, again.body.metadata.resourceVersion)

      local put = get(p2 .. "/b")
      put.spec.height = 1
      r = api:put(p2 .. "/b", put)
      assert.equal(200, r.code, r.text)
      assert.same({ size = "9x1x7" }, get(p1 .. "/b").spec)
      put.spec.height = 2
      r = api:put(p2 .. "/b", put)
      assert.equal(409, r.code)                                         -- it has an old resource version

      local dry = api:patch("merge", p2 .. "/b?dryRun=All", { spec = { width = 1 } })
      assert.equal(1, dry.body.spec.width)
      assert.same({ size = "9x1x7" }, get(p1 .. "/b").spec)
      r = api:post(p2, gizmos.make("v2", "b", { width = 5, height = 6 }))
      assert.equal(409, r.code)
    end)

    it("has status and scale in each version", function()
      make("v1", "a", { size = "3x4", replicas = 2 })
      local r = api:patch("merge", p2 .. "/a/status",
        { status = { seen = "yes", replicas = 1 }, spec = { width = 9 } })
      assert.equal(200, r.code, r.text)
      assert.same({ seen = "yes", replicas = 1 }, get(p1 .. "/a").status)
      assert.equal("3x4", get(p1 .. "/a").spec.size)
      local scale = get(p2 .. "/a/scale")
      assert.same({ 2, 1 }, { scale.spec.replicas, scale.status.replicas })
      scale.spec.replicas = 5
      r = api:put(p2 .. "/a/scale", scale)
      assert.equal(200, r.code, r.text)
      assert.equal(5, get(p1 .. "/a").spec.replicas)
    end)

    it("is listed in each version: selectors, Tables and metadata show the converted objects", function()
      make("v1", "a", { size = "1x1" })
      make("v2", "b", { width = 2, height = 2, depth = 2 })
      local list = get(p2)
      assert.equal(gizmos.group .. "/v2", list.apiVersion)
      assert.equal(2, #list.items)
      assert.same({ { width = 1, height = 1 }, { width = 2, height = 2, depth = 2 } },
        { list.items[1].spec, list.items[2].spec })
      assert.equal(2, #get(p2 .. "?labelSelector=converted%3Dv2").items)
      assert.equal(1, #get(p1 .. "?labelSelector=converted").items)
      local page = get(p2 .. "?limit=1")
      assert.same({ "a" }, { page.items[1].metadata.name, page.items[2] })
      page = get(p2 .. "?limit=1&continue=" .. page.metadata.continue)
      assert.same({ width = 2, height = 2, depth = 2 }, page.items[1].spec)
      local r = api:get(p2, { "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" })
      assert.same({ converted = "v2" }, r.body.items[1].metadata.labels)
      r = api:get(p2, { "Accept: application/json;as=Table;g=meta.k8s.io;v=v1" })
      assert.equal("b", r.body.rows[2].cells[1])
    end)

    it("is watched in each version, in order", function()
      local out = process.tmpname ".watch"
      local auth = server.token
        and ("-H 'Authorization: Bearer %s' --cacert %s"):format(server.token, server.ca) or ""
      make("v1", "a", { size = "1x1" })
      local watch = process.spawn { "sh", "-c",
        ("exec curl -sSN --max-time 60 %s '%s%s?watch=true' >%s"):format(auth,
        server.url, p2, out) }
      finally(function() watch:stop() end)
      local function told()
        local events = {}
        for kind, rest in (process.read(out) or ""):gmatch '"type":"(%u+)"([^\n]*)' do
          local w, h = rest:match '"width":(%d+)', rest:match '"height":(%d+)'
          events[#events + 1] = ("%s %s %sx%s"):format(kind, rest:match '"name":"(%l)"', w, h)
        end
        return table.concat(events, ", ")
      end
      wait.until_true(60, "the first event", function() return told() == "ADDED a 1x1" end)
      make("v2", "b", { width = 2, height = 2 })
      api:patch("merge", p1 .. "/a", { spec = { size = "3x3" } })
      api:patch("merge", p2 .. "/b", { spec = { width = 4 } })
      api:delete(p1 .. "/a")
      local want = "ADDED a 1x1, ADDED b 2x2, MODIFIED a 3x3, MODIFIED b 4x2, DELETED a 3x3"
      wait.until_true(60, want, function() return #told() >= #want end)
      assert.equal(want, told())
    end)

    it("is deleted in each version, and held by finalizers", function()
      make("v1", "a", { size = "1x1" }, nil, { "example.com/hold" })
      local r = api:delete(p2 .. "/a")
      assert.equal(200, r.code, r.text)
      assert.equal(gizmos.group .. "/v2", r.body.apiVersion)
      assert.is_string(r.body.metadata.deletionTimestamp)
      assert.same({ width = 1, height = 1 }, r.body.spec)
      r = api:patch("merge", p2 .. "/a", { metadata = { finalizers = {} } })
      assert.equal(200, r.code, r.text)
      assert.equal(404, api:get(p1 .. "/a").code)
      make("v1", "b", { size = "1x1" })
      r = api:delete(p2)
      assert.equal(200, r.code, r.text)
      assert.same({ width = 1, height = 1 }, r.body.items[1].spec)
      assert.equal(404, api:get(p1 .. "/b").code)
    end)

    -- The behaviour of the webhook, and the message of a read; %1 is the group.
    local WRONG = {
      fail = "%1/v1, Kind=Gizmo failed: no way to %1/v2",
      silent = "%1/v1, Kind=Gizmo failed: response.result.status was 'Failed', not 'Success'",
      ["500"] = '%1/v1, Kind=Gizmo failed: an error on the server ("out of order") has prevented the \z
        request from succeeding',
      fewer = "%1/v1, Kind=Gizmo returned 0 objects, expected 1",
      rename = "%1/v1, Kind=Gizmo returned invalid object: must have the same name: x != other",
      kind = "%1/v1, Kind=Gizmo returned invalid object at index 0: invalid kind (expected Gizmo, received \z
        Gadget)",
      version = "%1/v1, Kind=Gizmo returned invalid object at index 0: invalid groupVersion (expected \z
        %1/v2, received example.com/v9)",
      label = "%1/v1, Kind=Gizmo returned invalid metadata: metadata.labels[a] must be a string, but is \z
        int64 in converted object",
    }

    local LABEL_VALUE = "a valid label must be an empty string or consist of alphanumeric characters, \z
      '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \z
      'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    local NAME_PART = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start \z
      and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \z
      validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    local INVALID = "%1/v1, Kind=Gizmo returned invalid metadata: "
    local NO_LIST = "%1/v1, Kind=Gizmo failed: json: cannot unmarshal %2 into Go struct field \z
      ConversionResponse.response.convertedObjects of type []runtime.RawExtension"
    local NO_NAME = "%1/v1, Kind=Gizmo returned invalid object: must have the same name: x != "
    for what, text in pairs {
      ["label value"] = INVALID .. 'metadata.labels: Invalid value: "no good": ' .. LABEL_VALUE,
      ["long label"] = INVALID .. 'metadata.labels: Invalid value: "' .. ("x"):rep(64)
        .. '": must be no more than 63 characters',
      ["labels list"] = INVALID .. "invalid metadata.labels of type []interface {} in converted object",
      ["annotation key"] = INVALID .. 'metadata.annotation: Invalid value: "no good": ' .. NAME_PART,
      ["large annotation"] = INVALID .. "metadata.annotation: Too long: may not be more than 262144 bytes",
      ["annotation number"] = INVALID
        .. "metadata.annotations[a] must be a string, but is int64 in converted object",
      namespace = "%1/v1, Kind=Gizmo returned invalid object: must have the same namespace: \z
        default != kube-system",
      ["no metadata"] = NO_NAME,
      ["list metadata"] = NO_NAME,
      map = NO_LIST:gsub("%%2", "object"),
      text = NO_LIST:gsub("%%2", "string"),
      more = "%1/v1, Kind=Gizmo returned 2 objects, expected 1",
      ["no response"] = "%1/v1, Kind=Gizmo failed: no response provided",
    } do WRONG[what] = text end

    it("accepts labels and annotations of an answer, and no other metadata", function()
      for _, what in ipairs { "finalizers", "deletion", "owners", "resource version", "numbers",
        "bare metadata" } do
        make("v1", "x", { size = "1x1" }, { ["do"] = what })
        local was, is = get(p1 .. "/x").metadata, get(p2 .. "/x").metadata
        is.labels, is.managedFields, was.managedFields = nil, nil, nil
        if what == "bare metadata" then was.annotations = nil end
        assert.same(was, is, what)
        assert.equal(200, api:delete(p1 .. "/x").code)
      end
    end)

    it("rejects invalid answers", function()
      for what, text in pairs(WRONG) do
        make("v1", "x", { size = "1x1" }, { ["do"] = what })
        local r = api:get(p2 .. "/x")
        local want = "conversion webhook for " .. text:gsub("%%1", gizmos.group)
        assert.same({ 500, want, nil }, { r.code, r.body.message, r.body.reason }, what)
        assert.equal(500, api:delete(p2 .. "/x").code)  -- an unreadable object stays
        assert.equal(200, api:delete(p1 .. "/x").code)
      end
      make("v1", "x", { size = "1x1" }, { ["do"] = "uid" })
      assert.match('failed: expected response.uid="[%x-]+", got "mine"$', api:get(p2 .. "/x").body.message)
      api:delete(p1 .. "/x")
      make("v1", "x", { size = "1x1" }, { ["do"] = "another" })
      assert.match("must have the same UID: [%x-]+ != another$", api:get(p2 .. "/x").body.message)
      api:delete(p1 .. "/x")
      for _, what in ipairs { "label key", "null" } do
        make("v1", "x", { size = "1x1" }, { ["do"] = what })
        assert.equal(500, api:get(p2 .. "/x").code, what)
        api:delete(p1 .. "/x")
      end
      make("v1", "x", { size = "1x1" }, { ["do"] = "bare" })
      assert.is_nil(get(p2 .. "/x").metadata.labels)
    end)

    it("keeps a write although the writer cannot be shown the result", function()
      local r = api:post(p2, gizmos.make("v2", "y", { width = 1, height = 2 }, { ["do"] = "fail" }))
      assert.same({ 500, ("conversion webhook for %s/v1, Kind=Gizmo failed: no way to %s/v2"):format(
        gizmos.group, gizmos.group) },
        { r.code, r.body.message })
      assert.equal("1x2x7", get(p1 .. "/y").spec.size)
    end)

    -- The last two change the definition.

    it("can be neither written nor read in another version while the webhook is down", function()
      make("v1", "a", { size = "1x1" })
      local r = api:patch("merge", gizmos.definition, { spec = { conversion = { webhook = { clientConfig =
        { url = ("https://127.0.0.1:%d/gone"):format(servers.free_port()) } } } } })
      assert.equal(200, r.code, r.text)
      wait.until_true(60, "the new address", function() return api:get(p2 .. "/a").code == 500 end)
      assert.match('^conversion webhook for [%w.-]+/v1, Kind=Gizmo failed: Post \z
        "https://127.0.0.1:%d+/gone%?timeout=30s": ',
        api:get(p2 .. "/a").body.message)
      r = api:post(p2, gizmos.make("v2", "b", { width = 1, height = 2 }))
      assert.match("^conversion webhook for [%w.-]+/v2, Kind=Gizmo failed: ", r.body.message)
      assert.equal(404, api:get(p1 .. "/b").code)
      assert.equal("1x1", get(p1 .. "/a").spec.size)
      r = api:patch("merge", gizmos.definition,
        { spec = { conversion = { webhook = { clientConfig = { url = hook.url } } } } })
      assert.equal(200, r.code, r.text)
      wait.until_true(60, "the old address", function() return api:get(p2 .. "/a").code == 200 end)
    end)

    it("is converted into the current storage version by a write", function()
      make("v1", "a", { size = "1x2" })
      local definition = get(gizmos.definition)
      definition.spec.versions[1].storage, definition.spec.versions[2].storage = false, true
      local r = api:put(gizmos.definition, definition)
      assert.equal(200, r.code, r.text)
      assert.same({ "v1", "v2" }, r.body.status.storedVersions)
      make("v2", "b", { width = 1, height = 1 })
      -- The real server stores v1 for a moment longer.
      local n = 0
      wait.until_true(60, "v2 to be stored", function()
        n = n + 1
        api:patch("merge", p2 .. "/b", { metadata = { labels = { n = tostring(n) } } })
        hook.calls()
        get(p1 .. "/b")
        return hook.calls():find("/v1 b\n", 1, true)
      end)
      hook.calls()
      assert.same({ width = 1, height = 2 }, get(p2 .. "/a").spec)
      assert.match("/v2 a\n", hook.calls())
      local was = get(p2 .. "/a").metadata.resourceVersion
      r = api:patch("merge", p2 .. "/a", { metadata = { labels = { converted = "v2" } } })
      assert.equal(200, r.code, r.text)
      assert.not_equal(was, r.body.metadata.resourceVersion)
    end)
  end)
end)
