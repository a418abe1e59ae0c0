-- informers_spec.lua - shared informers of a plain Lua state, on both API servers.
-- real in asan: lists and watches of the real server

local kube = require "kubelua"
local servers = require "support.servers"
local wait = require "support.wait"

local NS, OTHER = "informers-spec", "informers-other"

servers.each(function(name, start)
  describe("informers of " .. name, function()
    local s, c, f

    lazy_setup(function()
      s = start()
      c = kube.connect { kubeconfig = s.kubeconfig }
      c:apply { kind = "v1/Namespace", name = NS }
      c:apply { kind = "v1/Namespace", name = OTHER }
    end)
    lazy_teardown(function()
      if c then c:close() end
      s:stop()
    end)
    after_each(function()
      if f then f:shutdown() end
      f = nil
      for _, ns in ipairs { NS, OTHER } do
        for _, o in ipairs(c:list("v1/ConfigMap", { namespace = ns, labels = { spec = "informers" } })) do
          c:delete(o)
        end
      end
    end)

    local function map(key, data, more)
      more = more or {}
      local labels = { spec = "informers" }
      for k, v in pairs(more.labels or {}) do labels[k] = v end
      local o = c:apply { kind = "v1/ConfigMap", namespace = more.namespace or NS, name = key,
        labels = labels, data = data or { a = "1" } }
      -- The cache of a busy real server is late, and answers a first list.
      wait.until_true(20, "the server's cache has it", function()
        local cached = c:list("v1/ConfigMap", { namespace = o.metadata.namespace,
          fields = "metadata.name=" .. key, resource_version = "0" })[1]
        return cached and cached.metadata.resourceVersion == o.metadata.resourceVersion
      end)
      return o
    end

    local function informers(opts)
      opts = opts or {}
      opts.labels = opts.labels or { spec = "informers" }
      f = kube.informers(c, opts)
      return f
    end

    local function synced()
      f:start()
      local ok, why = f:wait_synced(20 * wait.factor)
      assert.is_true(ok, why)
    end

    -- The events of handlers, as words; `until_heard(word)` pumps until one arrives.
    local function listener(informer, opts)
      local heard = {}
      local function say(fmt, ...) heard[#heard + 1] = fmt:format(...) end
      local handler = informer:on({
        add = function(o, initial) say("+%s=%s%s", o.metadata.name, o.data.a, initial and "i" or "") end,
        update = function(old, new) say("~%s=%s>%s", new.metadata.name, old.data.a, new.data.a) end,
        delete = function(o) say("-%s=%s", o.metadata.name, o.data.a) end,
      }, opts)
      local function until_heard(n)
        wait.until_true(20, n .. " events", function()
          f:poll()
          return #heard >= n
        end)
        return heard
      end
      return heard, until_heard, handler
    end

    it("keep a store that is read by key, by namespace and by label", function()
      map("b", nil, { labels = { tier = "x" } })
      map("a")
      map("c", nil, { namespace = OTHER, labels = { tier = "x" } })
      local configs = informers():informer "v1/ConfigMap"
      local store = configs:store()
      assert.is_false(configs:synced())
      assert.is_nil(store:get(NS .. "/a"))
      synced()
      assert.is_true(configs:synced())
      assert.same({ OTHER .. "/c", NS .. "/a", NS .. "/b" }, store:keys())
      assert.equal(3, store:len())
      assert.equal(3, #store)
      assert.equal("1", store:get(NS .. "/a").data.a)
      assert.equal("1", store:get(NS, "a").data.a)
      assert.is_true(store:has(store:get(NS, "a")))
      assert.is_nil(store:get(NS, "nobody"))
      assert.equal(2, #store:list { namespace = NS })
      assert.equal(2, #store:list { labels = "tier=x" })
      assert.equal(1, #store:list { limit = 1 })
      local list = store:list { namespace = NS }
      assert.matches('^%[.*"name":"a"', tostring(list))
      assert.is_false(pcall(debug.getmetatable(list).__tostring, {}))

      local lister = f:lister "v1/ConfigMap"
      assert.equal(1, #lister:list { labels = { tier = "x" }, namespace = NS })
      assert.equal("b", lister:namespace(NS):list({ labels = { tier = "x" } })[1].metadata.name)
      assert.equal("a", lister:namespace(NS):get("a").metadata.name)
      assert.is_nil(lister:namespace(OTHER):get "a")
      assert.equal("watching", configs:stats().state)
    end)

    it("call handlers for existing objects, changes and deletions", function()
      map "one"
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      local heard, until_heard, handler = listener(configs)
      synced()
      assert.same({}, heard)                -- no poll yet
      assert.is_false(handler:synced())
      until_heard(1)
      wait.until_true(20, "the handler is synced", function() f:poll() return handler:synced() end)
      map("one", { a = "2" })
      until_heard(2)
      map("two")
      until_heard(3)
      c:delete("v1/ConfigMap", NS, "one")
      until_heard(4)
      assert.same({ "+one=1i", "~one=1>2", "+two=1", "-one=2" }, heard)
    end)

    it("merge changes between polls, and drop short-lived objects", function()
      map "kept"
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      local heard, until_heard = listener(configs)
      synced()
      until_heard(1)
      for i = 2, 20 do map("kept", { a = tostring(i) }) end
      map "passing"
      c:delete("v1/ConfigMap", NS, "passing")
      map "reborn"
      local store = configs:store()
      wait.until_true(20, "the store has them", function()
        return store:get(NS, "kept").data.a == "20" and store:has(NS, "reborn")
      end)
      until_heard(3)
      f:poll()
      assert.same({ "+kept=1i", "~kept=1>20", "+reborn=1" }, heard)

      c:delete("v1/ConfigMap", NS, "reborn")
      map("reborn", { a = "again" })
      wait.until_true(20, "it is the other one", function()
        local o = store:get(NS, "reborn")
        return o and o.data.a == "again"
      end)
      until_heard(5)
      assert.same({ "-reborn=1", "+reborn=again" }, { heard[4], heard[5] })
    end)

    it("call a late handler for existing objects, and a removed one never", function()
      map "a"
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      local first, until_first, early = listener(configs)
      synced()
      until_first(1)
      local late, until_late = listener(configs)
      until_late(1)
      assert.same({ "+a=1i" }, late)
      early:remove()
      early:remove()
      map "b"
      until_late(2)
      assert.same({ "+a=1i" }, first)
      assert.same({ "+a=1i", "+b=1" }, late)
    end)

    it("resend every object after each handler's resync, by a clock that a program may provide",
      function()
      map "a"
      local now = 0
      local configs = informers { namespace = NS, resync = "10m",
        clock = function() return now end }:informer "v1/ConfigMap"
      local slow, until_slow, handler = listener(configs)
      local never = listener(configs, { resync = 0 })
      local quick, until_quick = listener(configs, { resync = "1m" })
      synced()
      until_slow(1)
      until_quick(1)
      wait.until_true(20, "synced", function() f:poll() return handler:synced() end)
      f:poll()
      now = 59
      f:poll()
      now = 61
      until_quick(2)
      assert.same({ "+a=1i", "~a=1>1" }, quick)
      assert.same({ "+a=1i" }, slow)
      now = 601
      until_slow(2)
      assert.same({ "+a=1i", "~a=1>1" }, slow)
      assert.same({ "+a=1i" }, never)
    end)

    it("run handlers until one stops the loop, and pass on errors", function()
      map "a"
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      local seen
      configs:on { add = function(o) seen = o.metadata.name f:stop() end }
      f:start()
      f:run(20 * wait.factor)
      assert.equal("a", seen)
      configs:on { add = function() error("a handler's mistake", 0) end }
      assert.has_error(function() f:run(20 * wait.factor) end, "a handler's mistake")
      f:run(0)
    end)

    it("share one informer per kind and options, and stop it with its last user", function()
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      assert.equal(configs, f:informer "v1/ConfigMap")
      assert.not_equal(configs, f:informer("v1/ConfigMap", { namespace = OTHER }))
      synced()
      configs:release()
      assert.equal("watching", configs:stats().state)
      configs:release()
      configs:release()
      assert.not_equal(configs, f:informer "v1/ConfigMap")
      synced()
    end)

    it("index by path and by function, also what was there before", function()
      map("a", { a = "1", owner = "x" })
      map("b", { a = "1", owner = "y" })
      map("c", { a = "2", owner = "x" })
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      local indexer = configs:indexer()
      indexer:add_index("owner", "data.owner")
      synced()
      indexer:add_index("both", function(o) return o.data.a, "owner-" .. o.data.owner end)
      local function names(list)
        local out = {}
        for i, o in ipairs(list) do out[i] = o.metadata.name end
        return table.concat(out, " ")
      end
      assert.equal("a c", names(indexer:by_index("owner", "x")))
      assert.equal("", names(indexer:by_index("owner", "z")))
      wait.until_true(20, "the function has seen all three", function()
        return #indexer:index_values "both" == 4
      end)
      assert.equal("a b", names(indexer:by_index("both", "1")))
      assert.equal("a c", names(indexer:by_index("both", "owner-x")))
      assert.same({ "1", "2", "owner-x", "owner-y" }, indexer:index_values "both")
      assert.same({ "x", "y" }, indexer:index_values "owner")
      assert.same({ NS .. "/b" }, indexer:index_keys("both", "owner-y"))
      assert.equal(3, #indexer:by_index("namespace", NS))
      assert.equal("c", names(indexer:list { index = { both = "2", owner = "x" } }))
      assert.equal("a", names(indexer:list { index = "owner", value = "x", limit = 1 }))
      map("a", { a = "7", owner = "y" })
      c:delete("v1/ConfigMap", NS, "b")
      wait.until_true(20, "the indexes follow", function()
        return #indexer:by_index("both", "7") == 1 and indexer:len() == 2
          and #indexer:index_values "both" == 4
      end)
      assert.equal("a", names(indexer:by_index("owner", "y")))
      assert.same({ "2", "7", "owner-x", "owner-y" }, indexer:index_values "both")
      assert.error_matches(function()
        indexer:by_index("owners", "x")
      end, "no index \"owners\"; there are: both, namespace, owner", 1, true)
      assert.error_matches(function()
        indexer:add_index("owner", "data.a")
      end, "has an index \"owner\" already", 1, true)
    end)

    it("transform objects: a draft is edited, false skips an object", function()
      map("a", { a = "1", secret = "s" })
      map("hidden", { a = "2" })
      local failed = {}
      local configs = informers {
        namespace = NS,
        transform = function(o)
          if o.metadata.name == "hidden" then return false end
          if o.metadata.name == "broken" then error "a transform's mistake" end
          o.data.secret = nil
          o.data.seen = "yes"
        end,
        on_watch_error = function(kind, err) failed[#failed + 1] = kind .. ": " .. tostring(err) end,
      }:informer "v1/ConfigMap"
      local heard, until_heard = listener(configs)
      configs:indexer():add_index("seen", "data.seen")
      synced()
      until_heard(1)
      local o = configs:store():get(NS, "a")
      assert.equal("yes", o.data.seen)
      assert.is_nil(o("data.secret"))
      assert.same({ NS .. "/a" }, configs:store():keys())
      assert.equal(1, configs:store():len())
      assert.equal(1, #configs:indexer():by_index("seen", "yes"))
      map("broken")
      map("a", { a = "2" })
      until_heard(2)
      assert.same({ "+a=1i", "~a=1>2" }, heard)
      assert.matches("v1/ConfigMap: .*broken.*a transform's mistake", failed[1])
    end)

    it("are asked for by any name of a kind", function()
      informers()
      assert.equal(f:informer "v1/ConfigMap", f:informer "cm")
      assert.equal("apps/v1/Deployment", f:informer("deployments").kind)
      assert.equal("apps/v1/Deployment", f:informer("apps/Deployment").kind)
      local _, err = kube.try(f.informer, f, "nothings")
      assert.equal("not_found", err.kind)
    end)

    it("end when a hook of the host says so, as after ^C", function()
      map "a"
      informers { namespace = NS }:informer("v1/ConfigMap"):on { add = function() end }
      f:start()
      -- The interpreter's own ^C is a hook that removes itself and raises.
      debug.sethook(function()
        debug.sethook()
        error("interrupted!", 0)
      end, "", 200)
      local ok, err = pcall(f.run, f)
      debug.sethook()
      assert.is_false(ok)
      assert.equal("interrupted!", err)
      assert.is_number(f:poll())
    end)

    it("keep only some fields, and drop managedFields", function()
      map("a", { a = "1", b = "2" })
      local lean = informers { namespace = NS }:informer("v1/ConfigMap", { keep = { "data.a" } })
      local plain = f:informer("v1/ConfigMap", { managed_fields = false })
      local bare = f:informer("v1/ConfigMap", { keep = {} })
      synced()
      assert.is_nil(bare:store():get(NS, "a")("data"))
      assert.equal("informers", bare:store():get(NS, "a").metadata.labels.spec)
      local o = lean:store():get(NS, "a")
      assert.equal("1", o.data.a)
      assert.is_nil(o("data.b"))
      o = plain:store():get(NS, "a")
      assert.equal("2", o.data.b)
      assert.is_nil(o("metadata.managedFields"))
    end)

    it("let a function change the list options of each kind", function()
      map("a", nil, { labels = { pick = "me" } })
      map "b"
      local asked = {}
      local configs = informers {
        namespace = NS,
        tweak = function(kind, opts)
          asked[#asked + 1] = kind opts.labels = "pick=me" opts.fields = "metadata.name=a"
        end,
      }:informer "v1/ConfigMap"
      synced()
      assert.same({ "v1/ConfigMap" }, asked)
      assert.same({ NS .. "/a" }, configs:store():keys())
    end)

    it("explain a missing kind, and recover when it appears", function()
      local errors = {}
      informers { labels = {}, on_watch_error = function(kind, err) errors[#errors + 1] = err end }
      local widgets = f:informer "informers.kubelua.test/v1/Widget"
      f:informer "v1/ConfigMap"
      f:start()
      wait.until_true(20, "the error is told", function() f:poll() return errors[1] end)
      assert.equal("not_found", errors[1].kind)
      assert.matches("informers.kubelua.test", errors[1].message, 1, true)
      assert.is_true(widgets:stats().parked)
      local ok, why = f:wait_synced(0)
      assert.is_false(ok)
      assert.matches("informers.kubelua.test/v1/Widget: ", why, 1, true)
      c:apply {
        apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = "widgets.informers.kubelua.test" },
        spec = {
          group = "informers.kubelua.test", scope = "Namespaced",
          names = { plural = "widgets", singular = "widget", kind = "Widget", listKind = "WidgetList" },
          versions = { { name = "v1", served = true, storage = true,
            schema = { openAPIV3Schema = { type = "object",
            ["x-kubernetes-preserve-unknown-fields"] = true } } } },
        },
      }
      assert.is_true(f:wait_synced(60 * wait.factor))
      -- A server may reject a watch for a moment after the first list of a new kind.
      wait.until_true(20, "nothing is wrong any more", function() return not widgets:stats().message end)
      c:delete("apiextensions.k8s.io/v1/CustomResourceDefinition", "widgets.informers.kubelua.test")
    end)

    it("stop with their factory, and can still be read", function()
      map "a"
      local configs = informers { namespace = NS }:informer "v1/ConfigMap"
      synced()
      f:shutdown()
      assert.equal("a", configs:store():get(NS, "a").metadata.name)
      assert.error_matches(function() f:poll() end, "shut down", 1, true)
      assert.error_matches(function() f:informer "v1/Pod" end, "shut down", 1, true)
      assert.error_matches(function() configs:on { add = print } end, "shut down", 1, true)
    end)

    it("stop with their client, whatever is closed first", function()
      map "a"
      local other = kube.connect { kubeconfig = s.kubeconfig }
      local mine = kube.informers(other, { namespace = NS })
      local configs = mine:informer "v1/ConfigMap"
      configs:on { add = function() end }
      configs:indexer():add_index("fn", function(o) return o.metadata.name end)
      mine:start()
      assert.is_true(mine:wait_synced(20 * wait.factor))
      other:close()
      assert.equal("a", configs:store():get(NS, "a").metadata.name)
      assert.equal(1, #configs:indexer():by_index("fn", "a"))
      assert.error_matches(function() mine:poll() end, "closed", 1, true)
      mine:shutdown()
    end)

    it("survive the collector while the network works", function()
      for _ = 1, 20 do
        local mine = kube.informers(c, { namespace = NS })
        mine:informer("v1/ConfigMap"):on { add = function() end }
        mine:start()
        mine = nil -- luacheck: ignore
        collectgarbage()
      end
    end)

    it("reject invalid arguments", function()
      informers()
      local function refused(fn, what) assert.error_matches(fn, what, 1, true) end
      refused(function() kube.informers(c, { resync = "1ms" }) end, "at least 1s")
      refused(function() kube.informers(c, { namspace = "x" }) end, "did you mean 'namespace'?")
      refused(function() kube.informers({}) end, "expected a client")
      refused(function() f:informer(7) end, "the kind must be a string")
      refused(function() f:informer("v1/Pod", { keep = { "spec..x" } }) end, "spec..x")
      refused(function() f:informer("v1/Pod"):on { ad = print } end, "did you mean 'add'?")
      refused(function() f:informer("v1/Pod"):on {} end, "at least one")
      refused(function() f:wait_synced(1) end, "call f:start() first")
      refused(function() f:informer("v1/Pod"):store():list { labels = "a in" } end, "a in")
    end)
  end)
end)

servers.only_real(function(name, start)
  describe("informers of " .. name, function()
    it("report a missing right, and sync when it is granted", function()
      local s = start()
      local admin <close> = kube.connect { kubeconfig = s.kubeconfig }
      local nobody <close> = kube.connect { kubeconfig = s:kubeconfig_for(s.tokens.nobody) }
      local errors = {}
      local f <close> = kube.informers(nobody, { on_watch_error = function(kind, err)
        errors[#errors + 1] = err
      end })
      local secrets = f:informer "v1/Secret"
      f:start()
      wait.until_true(20, "it is refused", function() f:poll() return errors[1] end)
      assert.equal("forbidden", errors[1].kind)
      assert.equal("v1/Secret", errors[1].resource)
      assert.matches("secrets is forbidden", errors[1].message, 1, true)
      assert.is_true(secrets:stats().parked)
      admin:apply {
        apiVersion = "rbac.authorization.k8s.io/v1", kind = "ClusterRole",
        metadata = { name = "informers-spec" },
        rules = { { apiGroups = { "" }, resources = { "secrets" }, verbs = { "get", "list", "watch" } } },
      }
      admin:apply {
        apiVersion = "rbac.authorization.k8s.io/v1", kind = "ClusterRoleBinding",
        metadata = { name = "informers-spec" },
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "informers-spec" },
        subjects = { { kind = "User", apiGroup = "rbac.authorization.k8s.io", name = "nobody" } },
      }
      assert.is_true(f:wait_synced(60 * wait.factor))
      admin:delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", "informers-spec")
      admin:delete("rbac.authorization.k8s.io/v1/ClusterRole", "informers-spec")
      s:stop()
    end)
  end)
end)
