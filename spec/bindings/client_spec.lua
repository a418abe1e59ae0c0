-- client_spec.lua - the client of stock Lua against the embedded and the real API server.
-- real in asan: every kind of answer of the real server, decoded by the client

local kube = require "kubelua"
local servers = require "support.servers"
local wait = require "support.wait"

local NS = "client-spec"

describe("a client", function()
  it("suggests the nearest name for a mistyped call", function()
    local c <close> = kube.connect { server = "http://127.0.0.1:1" }
    assert.error_matches(function()
      c:gett("v1/Pod", "a")
    end, "c:gett: unknown method of a client; did you mean 'get'")
    assert.error_matches(function() return c.warnigns end, "did you mean 'warnings'")
  end)

  it("rejects a negative timeout", function()
    local c <close> = kube.connect { server = "http://127.0.0.1:1" }
    assert.error_matches(function() c:get("v1/Pod", "a", { timeout = -1 }) end,
      "`timeout` must not be negative")
  end)
end)

servers.each(function(name, start)
  describe("a client of " .. name, function()
    local s, c

    lazy_setup(function()
      s = start()
      c = kube.connect { kubeconfig = s.kubeconfig }
      c:apply { kind = "v1/Namespace", name = NS }
    end)
    lazy_teardown(function()
      if c then c:close() end
      s:stop()
    end)

    local function config_map(key, data, labels)
      return { kind = "v1/ConfigMap", namespace = NS, name = key, data = data or { a = "b" },
        labels = labels }
    end

    it("creates, gets, updates and deletes", function()
      local created = c:create(config_map "crud")
      assert.equal("crud", created.metadata.name)
      assert.is_string(created.metadata.uid)
      assert.is_true(created == c:get("v1/ConfigMap", NS, "crud"))
      assert.is_true(created == c:get("v1/ConfigMap", NS .. "/crud"))

      local copy = kube.copy(created)
      copy.data.a = "c"
      local updated = c:update(copy)
      assert.equal("c", updated.data.a)
      local _, err = kube.try(c.update, c, copy)
      assert.equal(409, err.code)
      assert.equal("conflict", err.kind)

      assert.is_true(c:delete("v1/ConfigMap", NS, "crud"))
      assert.is_nil(c:get("v1/ConfigMap", NS, "crud"))
      assert.is_true(c:delete("v1/ConfigMap", NS, "crud"))
    end)

    it("distinguishes an absent object from an absent kind", function()
      assert.is_nil(c:get("v1/ConfigMap", NS, "never"))
      assert.is_nil(c:get("v1/ConfigMap", "no-such-namespace", "never"))
      local _, err = kube.try(c.get, c, "example.com/v1/Nothing", "x")
      assert.equal("not_found", err.kind)
      assert.matches("example.com", tostring(err), 1, true)
    end)

    it("raises the server's error in full", function()
      c:create(config_map "twice")
      local _, err = kube.try(c.create, c, config_map "twice")
      assert.equal(409, err.code)
      assert.equal("AlreadyExists", err.reason)
      assert.equal("already_exists", err.kind)
      assert.equal("create", err.verb)
      assert.equal("v1/ConfigMap", err.resource)
      assert.equal("twice", err.details.name)
      assert.matches('^create .*"twice" already exists %(409 AlreadyExists%)$', tostring(err))
      _, err = kube.try(c.create, c, { kind = "v1/ConfigMap", namespace = NS, name = "Not_A_Name" })
      assert.equal(422, err.code)
      assert.equal("Invalid", err.reason)
      assert.is_true(#err.details.causes > 0)
    end)

    it("explains how to write an empty list when {} was sent without a schema check", function()
      local unchecked <close> = kube.connect { kubeconfig = s.kubeconfig, check = false }
      local _, err = kube.try(unchecked.create, unchecked,
        { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "e", namespace = NS, finalizers = {} } })
      assert.equal(400, err.code)
      assert.matches("finalizers", err.message, 1, true)
      assert.matches("kube.array {}", err.message, 1, true)
      unchecked:create { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = "e", namespace = NS, finalizers = kube.array {} } }
      _, err = kube.try(unchecked.apply, unchecked, { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = "f", namespace = NS, finalizers = {} } })
      assert.matches("kube.array {}", err.message, 1, true)
    end)

    it("deletes only what the preconditions name", function()
      local o = c:create(config_map "guarded")
      local _, err = kube.try(c.delete, c, o, { uid = "11111111-1111-1111-1111-111111111111" })
      assert.equal(409, err.code)
      assert.is_true(c:delete(o, { uid = o.metadata.uid, resourceVersion = o.metadata.resourceVersion }))
    end)

    it("patches by function, and again after a conflict", function()
      local old = c:create(config_map("patched", { n = "1" }))
      local runs = 0
      c:patch(old, function(o) o.data.other = "x" end)
      local result = c:patch(old, function(o)
        runs = runs + 1
        o.data.n = tostring(math.tointeger(o.data.n) + 1)
        o.metadata.labels["runs"] = tostring(runs)
      end, { lock = true })
      assert.equal(2, runs)
      assert.equal("2", result.data.n)
      assert.equal("x", result.data.other)
      assert.equal("2", result.metadata.labels.runs)
    end)

    it("patches by merge patch, JSON patch and strategic patch", function()
      local o = c:create(config_map("tables", { a = "1", b = "2" }))
      assert.equal("3", c:patch(o, { data = { a = "3", b = kube.null } }).data.a)
      assert.is_nil(c:get("v1/ConfigMap", NS, "tables").data.b)
      assert.equal("4", c:patch(o, { { op = "replace", path = "/data/a", value = "4" } },
        { type = "json" }).data.a)
      assert.equal("5", c:patch({ kind = "v1/ConfigMap", namespace = NS, name = "tables" },
        { data = { a = "5" } }, { type = "strategic" }).data.a)
    end)

    it("writes status and the rest by their own requests", function()
      c:apply { kind = "v1/Node", name = "client-spec" }
      local node = c:get("v1/Node", "client-spec")
      local result = c:patch(node, function(n)
        n.metadata.annotations.x = "y"
        n.status.allocatable["example.com/things"] = kube.qty "5"
      end)
      assert.equal("y", result.metadata.annotations.x)
      assert.equal("5", result.status.allocatable["example.com/things"])
      result = c:patch_status(node, { capacity = { ["example.com/things"] = "6" } })
      assert.equal("6", result.status.capacity["example.com/things"])
      assert.equal("5", result.status.allocatable["example.com/things"])
      c:delete("v1/Node", "client-spec")
    end)

    it("applies, and takes over fields of others only with force", function()
      c:apply(config_map("applied", { a = "1" }), { manager = "one" })
      local _, err = kube.try(c.apply, c, config_map("applied", { a = "2" }), { manager = "two" })
      assert.equal(409, err.code)
      assert.matches("one", err.message, 1, true)
      assert.equal("2", c:apply(config_map("applied", { a = "2" }), { manager = "two", force = true }).data.a)
    end)

    it("lists and iterates with selectors, page by page", function()
      for i = 1, 7 do
        c:apply(config_map("page-" .. i, nil, { set = "pages", odd = tostring(i % 2 == 1) }))
      end
      local all, version = c:list("v1/ConfigMap", { namespace = NS, labels = { set = "pages" } })
      assert.equal(7, #all)
      assert.equal("ConfigMap", all[1].kind)
      assert.equal("v1", all[1].apiVersion)
      assert.is_true(tonumber(version) > 0)
      assert.equal(3, #c:list("v1/ConfigMap", { namespace = NS, labels = "set=pages,odd!=true" }))
      assert.equal(1, #c:list("v1/ConfigMap", { namespace = NS, fields = { ["metadata.name"] = "page-3" } }))
      assert.equal(2, #c:list("v1/ConfigMap", { namespace = NS, labels = "set=pages", limit = 2 }))
      local names = {}
      for o in c:each("v1/ConfigMap", { namespace = NS, labels = "set=pages" }) do
        names[#names + 1] = o.metadata.name
      end
      assert.equal(7, #names)
      local some = 0
      for _ in c:each("v1/ConfigMap", { namespace = NS, labels = "set=pages", limit = 3 }) do
        some = some + 1
      end
      assert.equal(3, some)
    end)

    it("watches existing and new objects", function()
      c:create(config_map("watched-1", nil, { set = "watched" }))
      local seen = {}
      for event, o in c:watch("v1/ConfigMap", { namespace = NS, labels = "set=watched" }) do
        seen[#seen + 1] = event .. " " .. o.metadata.name
        if #seen == 1 then c:create(config_map("watched-2", nil, { set = "watched" })) end
        if #seen == 2 then c:patch(o, { data = { a = "new" } }) end
        if #seen == 3 then c:delete(o) end
        if #seen == 4 then break end
      end
      assert.same({ "ADDED watched-1", "ADDED watched-2", "MODIFIED watched-2", "DELETED watched-2" }, seen)
    end)

    it("ends a watch at its timeout", function()
      for event in c:watch("v1/ConfigMap", { namespace = NS, labels = "set=none", timeout = "1s" }) do
        error("nothing should come, but " .. event .. " did")
      end
    end)

    it("raises when a watch starts at an expired or invalid version", function()
      local _, err = kube.try(function()
        for _ in c:watch("v1/ConfigMap", { namespace = NS, resource_version = "not-a-version" }) do
          error "no event"
        end
      end)
      assert.is_true(kube.is_error(err))
    end)

    it("can be closed during calls and watches", function()
      local other = kube.connect { kubeconfig = s.kubeconfig }
      local next_event = other:watch("v1/ConfigMap", { namespace = NS })
      next_event()
      other:close()
      assert.error_matches(next_event, "closed")
      assert.error_matches(function() other:get("v1/ConfigMap", NS, "x") end, "closed")
    end)

    it("returns kinds, resources and the server's version", function()
      local r = c:resource "v1/ConfigMap"
      assert.equal("configmaps", r.plural)
      assert.is_true(r.namespaced)
      assert.is_false(c:resource("v1/Node").namespaced)
      local kinds = {}
      for _, info in ipairs(c:resources()) do kinds[info.kind] = info end
      assert.equal("pods", kinds["v1/Pod"].plural)
      assert.is_true(kinds["coordination.k8s.io/v1/Lease"].namespaced)
      assert.equal("Lease", kinds["coordination.k8s.io/v1/Lease"].name)
      for _, info in ipairs(c:resources { group = "apps", verb = "list", category = "all" }) do
        assert.equal("apps", info.group)
        assert.matches("all", table.concat(info.categories, " "))
      end
      assert.equal("apps/v1/Deployment", c:resources({ group = "apps", category = "all",
        namespaced = true })[1] and c:resource("deploy").group .. "/" .. c:resource("deploy").version .. "/"
        .. c:resource("deploy").kind)
      assert.error_matches(function()
        c:resources { grup = "apps" }
      end, "c:resources: unknown option 'grup'; did you mean 'group'")
      assert.is_string(c:version().gitVersion)
      assert.equal("default", c:namespace())
      assert.matches("^https?://127.0.0.1:%d+$", c:server())
      assert.equal("NamespaceList", c:raw("GET", "/api/v1/namespaces").kind)
    end)

    it("finds a kind without its version", function()
      assert.equal(NS, c:get("Namespace", NS).metadata.name)
    end)

    it("rejects invalid calls before it sends a request", function()
      assert.error_matches(function()
        c:list("v1/ConfigMap", { namspace = NS })
      end, "c:list: unknown option 'namspace'; did you mean 'namespace'")
      assert.error_matches(function()
        c:apply { kind = "v1/ConfigMap", name = "x", data = { f = print } }
      end, "the object%.data%.f: a function")
      assert.error_matches(function() c:get("v1/ConfigMap", NS, "") end, "not empty")
      local _, err = kube.try(c.get, c, "v1/ConfigMap", NS, "..")
      assert.equal("invalid", err.kind)
    end)
  end)
end)

describe("kube.connect", function()
  it("rejects unknown options", function()
    assert.error_matches(function()
      kube.connect { kubconfig = "x" }
    end, "unknown option 'kubconfig'; did you mean 'kubeconfig'")
  end)

  it("names a missing kubeconfig", function()
    local _, err = kube.try(kube.connect, { kubeconfig = "/nonexistent/config" })
    assert.matches("/nonexistent/config", tostring(err), 1, true)
  end)

  it("raises when the server does not answer", function()
    local c <close> = kube.connect { server = "http://127.0.0.1:1" }
    local _, err = kube.try(c.get, c, "v1/Pod", "x")
    assert.equal("unreachable", err.kind)
    assert.is_nil(err.code)
    assert.matches("127.0.0.1:1", tostring(err), 1, true)
  end)

  it("joins its threads when it is collected", function()
    local function threads()
      local n = 0
      for _ in io.popen("ls /proc/" .. io.open("/proc/self/stat"):read "n" .. "/task"):lines() do
        n = n + 1
      end
      return n
    end
    collectgarbage()
    collectgarbage()
    local before = threads()
    do
      local c = kube.connect { server = "http://127.0.0.1:1" }
      kube.try(c.get, c, "v1/Pod", "x")
      assert.is_true(threads() > before)
    end
    collectgarbage()
    collectgarbage()
    -- The kernel may list a joined thread for a moment.
    wait.until_true(10, "as many threads as before", function() return threads() <= before end)
  end)
end)
