-- caches_spec.lua - the caches of controllers: some namespaces, a selection, only metadata; kinds that
-- appear, disappear and are forbidden.
-- real in asan, tsan: watch lists and cuts of HTTP/2

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- The runtime asks for a missing kind at least every 30 s, and on a busy machine the server answers late.
local PATIENCE = 90

local CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"

local function definition(group)
  return {
    kind = CRD, name = "widgets." .. group,
    spec = {
      group = group, scope = "Namespaced",
      names = { kind = "Widget", plural = "widgets", singular = "widget", listKind = "WidgetList" },
      versions = { {
        name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object",
          properties = { spec = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } },
      } },
    },
  }
end

-- The values of a metric of informers: { ["v1/ConfigMap (labels a=b)"] = 3 }.
local function informers(run, metric)
  local found = {}
  local pattern = ('\nkubelua_informer_%s{kind="([^"]+)"} (%%S+)'):format(metric)
  for kind, n in controller.metrics(run):gmatch(pattern) do
    found[kind] = tonumber(n)
  end
  return found
end

servers.each(function(server_name, start)
  describe("the caches of a controller, against " .. server_name, function()
    local server, client, ns, run
    local begin = controller.frame("caches", start, function(s, c, n) server, client, ns = s, c, n end)

    -- Starts a script; `heard` returns the text of its `say(ctx, text)`.
    local function started(text, ...)
      run = begin(([[
        local kube = require "kubelua"
        local function say(ctx, name, text)
          ctx:apply { kind = "v1/Service", namespace = %q, name = name,
            spec = { type = "ExternalName", externalName = "x" }, annotations = { said = tostring(text) } }
        end
      ]]):format(ns) .. text, "--metrics-bind-address", "127.0.0.1:0", ...)
      return run
    end

    local function heard(name, text)
      return wait.until_true(PATIENCE, name .. " to say " .. text, function()
        local o = client:get("v1/Service", ns, name)
        local said = o and o("metadata.annotations.said")
        if said ~= text then error("it said " .. tostring(said), 0) end
        return true
      end)
    end

    local function make(namespace, name, more)
      local o = { kind = "v1/ConfigMap", namespace = namespace, name = name }
      for key, value in pairs(more or {}) do o[key] = value end
      return client:create(o)
    end

    local function change(kind, name, patch)
      client:patch(client:get(kind, ns, name), patch)
    end

    it("cover the namespaces it names, including a later one", function()
      local other, later = controller.namespace(client, "other"), ns .. "-later"
      make(other, "it")
      make(ns, "it", { data = { n = "1" } })
      started(([[
        return kube.controller {
          name = "some-%s", resource = "v1/ConfigMap", namespaces = { %q, %q },
          reads = { "v1/Secret", "v1/Namespace" },
          reconcile = function(o, ctx)
            if o.metadata.name ~= "it" then return end
            local ok, why = pcall(ctx.get, ctx, "v1/ConfigMap", %q, "it")
            assert(not ok and not pcall(ctx.list, ctx, "v1/ConfigMap", { namespace = %q }))
            say(ctx, o.metadata.namespace,
              #ctx:list("v1/ConfigMap", { fields = "metadata.name=it" }) .. " "
                .. tostring(ctx:get("v1/Namespace", %q) ~= nil))
            say(ctx, "why", why)
          end }]]):format(ns, ns, later, other, other, other))
      heard(ns, "1 true")
      local why = wait.until_true(30, "the reason", function()
        return client:get("v1/Service", ns, "why").metadata.annotations.said
      end)
      assert.truthy(why:find(("of namespaces = { %s, %s } only, without %s"):format(ns, later,
        other), 1, true), why)
      assert.same({ ["v1/Namespace"] = 1, [("v1/ConfigMap (namespaces %s, %s)"):format(ns, later)] = 1,
        [("v1/Secret (namespaces %s, %s)"):format(ns, later)] = 1 }, informers(run, "synced"))
      client:create { kind = "v1/Namespace", name = later }
      wait.until_true(30, "an object of the new namespace", function() return kube.try(make, later, "it") end)
      heard(later, "2 true")
      client:delete("v1/Namespace", other)
      client:delete("v1/Namespace", later)
    end)

    it("cannot cover namespaces outside those of the process", function()
      local p = controller.start(server, ([[
        return require "kubelua".controller { name = "out", resource = "v1/ConfigMap",
          namespaces = { %q, "elsewhere" }, reconcile = function() end }
      ]]):format(ns), "--namespace", ns)
      assert.not_equal(0, p:wait(30))
      assert.truthy(p:log():find(
        ("controller out needs namespace elsewhere, but this process watches only %s (--namespace)"):format(
          ns),
        1, true), p:log())
    end)

    it("hold the selected objects, and treat leaving ones as deleted", function()
      make(ns, "never", { data = { n = "0" } })
      make(ns, "it", { data = { n = "1" }, labels = { lit = "yes" } })
      make(ns, "last", { data = { n = "1" }, labels = { lit = "yes" } })
      started(([[
        return kube.controller { name = "lit-%s", resource = "v1/ConfigMap",
          namespaces = { %q }, selector = { labels = "lit=yes", fields = "metadata.name!=other" },
          reconcile = function(o, ctx)
            local names = {}
            for i, x in ipairs(ctx:list "v1/ConfigMap") do names[i] = x.metadata.name end
            say(ctx, o.metadata.name, o.data.n .. " of " .. table.concat(names, " "))
          end }]]):format(ns, ns))
      heard("it", "1 of it last")
      heard("last", "1 of it last")
      change("v1/ConfigMap", "it", { data = { n = "2" } })
      heard("it", "2 of it last")
      change("v1/ConfigMap", "it", { data = { n = "3" }, metadata = { labels = { lit = "no" } } })
      local kind = ("v1/ConfigMap (labels lit=yes; fields metadata.name!=other; namespace %s)"):format(ns)
      wait.until_true(30, "it to be forgotten", function() return informers(run, "objects")[kind] == 1 end)
      change("v1/ConfigMap", "last", { data = { n = "4" } })
      heard("last", "4 of last")
      heard("it", "2 of it last")
      change("v1/ConfigMap", "it", { data = { n = "5" }, metadata = { labels = { lit = "yes" } } })
      heard("it", "5 of it last")
      assert.is_nil(client:get("v1/Service", ns, "never"))
    end)

    it("hold the selected objects of other kinds", function()
      local function secret(name, grade)
        client:create { kind = "v1/Secret", namespace = ns, name = name, labels = { grade = grade } }
      end
      make(ns, "it")
      secret("a", "used")
      secret("b", "spare")
      started(([[
        return kube.controller { name = "used-%s", resource = "v1/ConfigMap", namespaces = { %q },
          watches = { ["v1/Secret"] = { function(o) return { o.metadata.namespace .. "/it" } end,
            selector = "grade=used" } },
          reads = { ["v1/ServiceAccount"] = { selector = { fields = "metadata.name=default" } } },
          owns = { ["v1/PersistentVolumeClaim"] = { selector = "grade=used", force = false } },
          reconcile = function(o, ctx)
            if o.metadata.name ~= "it" then return end
            local names = {}
            for i, x in ipairs(ctx:list "v1/Secret") do names[i] = x.metadata.name end
            say(ctx, "sees", table.concat(names, " ") .. tostring(ctx:get("v1/Secret", "c")))
          end }]]):format(ns, ns))
      heard("sees", "anil")
      change("v1/Secret", "b", { metadata = { labels = { grade = "used" } } })
      heard("sees", "a bnil")
      change("v1/Secret", "a", { metadata = { labels = { grade = "spare" } } })
      heard("sees", "bnil")
      local kinds = informers(run, "synced")
      for _, kind in ipairs { "v1/Secret (labels grade=used; namespace %s)",
        "v1/ServiceAccount (fields metadata.name=default; namespace %s)",
        "v1/PersistentVolumeClaim (labels grade=used; namespace %s)" } do
        assert.equal(1, kinds[kind:format(ns)], kind)
      end
      local path = process.write(process.tmpname ".lua", ([[return require "kubelua".controller { name = "a",
        resource = "v1/ConfigMap",
        reads = { "v1/Pod", ["v1/Secret"] = { selector = { labels = "a=b", fields = "type=x" } } },
        reconcile = function() end }]]))
      local out = process.run(KUBELUA .. " check " .. path)
      assert.match("selector    a=b; fields type=x of v1/Secret\n", out)
      assert.match("reads       v1/Pod\n  reads       v1/Secret\n", out)
    end)

    it("take any name of a kind, and suggest the nearest for a misspelt one", function()
      make(ns, "it")
      started(([[
        return kube.controller { name = "words-%s", resource = "v1/ConfigMap", namespaces = { %q },
          reconcile = function(o, ctx)
            if o.metadata.name ~= "it" then return end
            local said = {}
            for _, word in ipairs { "cm", "configmaps", "ConfigMap", "v1/Configmap", "v1/Secret" } do
              local ok, x = pcall(ctx.get, ctx, word, "it")
              said[#said + 1] = ok and x.metadata.name or tostring(x):match 'did you mean "(.-)"' or "no"
            end
            say(ctx, "words", table.concat(said, " "))
          end }]]):format(ns, ns))
      heard("words", "it it it v1/ConfigMap no")
    end)

    it("cover the selected namespaces of other kinds", function()
      local shared = controller.namespace(client, "shared")
      make(ns, "it")
      make(shared, "not-it")
      local function secret(where, name) client:create { kind = "v1/Secret", namespace = where,
        name = name } end
      secret(ns, "own")
      secret(shared, "a")
      started(([[
        return kube.controller { name = "far-%s", resource = "v1/ConfigMap", namespaces = { %q },
          watches = { ["v1/Secret"] = { function() return { "%s/it" } end,
            selector = { namespaces = { %q } } } },
          reconcile = function(o, ctx)
            if o.metadata.name == "kube-root-ca.crt" then return end
            local names = {}
            for i, x in ipairs(ctx:list("v1/Secret", { namespace = %q })) do names[i] = x.metadata.name end
            local ok, e = pcall(ctx.get, ctx, "v1/Secret", %q, "own")
            say(ctx, "far", o.metadata.name .. " " .. table.concat(names,
              " ") .. " " .. tostring(not ok and e:match "only, without"))
          end }]]):format(ns, ns, ns, shared, shared, ns))
      heard("far", "it a only, without")
      secret(shared, "b")
      heard("far", "it a b only, without")
      assert.equal(1, informers(run, "synced")[("v1/Secret (namespace %s)"):format(shared)])
      local out = process.run(("%s rbac %s"):format(KUBELUA, run.script_path))
      assert.match("namespace: " .. shared:gsub("%p", "%%%0") .. "\nrules:\n[^\n]*secrets", out)
      client:delete("v1/Namespace", shared)
    end)

    for _, how in ipairs { "", "--no-protobuf", "--watch-list" } do
      it("hold only metadata if configured " .. how, function()
        local group = ("caches%d.kubelua.dev"):format(math.random(100000, 999999))
        client:apply(definition(group))
        wait.until_true(PATIENCE, "the kind is served", function()
          return kube.try(client.list, client, group .. "/v1/Widget")
        end)
        client:create { kind = group .. "/v1/Widget", namespace = ns, name = "w",
          spec = { big = ("x"):rep(5000) }, annotations = { a = "b" } }
        client:create { kind = "v1/Secret", namespace = ns, name = "it",
          stringData = { password = ("secret "):rep(2000) }, annotations = { n = "1" }, labels = { l = "m" } }
        started(([[
          local widget = "%s/v1/Widget"
          return kube.controller { name = "light-%s", resource = "v1/Secret",
            metadata = { "v1/Secret", widget }, reads = { widget },
            reconcile = function(o, ctx)
              if o.metadata.name ~= "it" then return end
              local w = ctx:get(widget, "w")
              say(ctx, "is", table.concat({ o.apiVersion, o.kind, o.metadata.annotations.n,
                o.metadata.labels.l, tostring(o "metadata.managedFields"), w.apiVersion, w.kind,
                w.metadata.annotations.a, ctx.live:get("v1/Secret", "it").data.password and "whole" }, " "))
              local _, why = pcall(function() return o.data end)
              say(ctx, "read", why)
              _, why = pcall(ctx.update, ctx, o)
              say(ctx, "update", why)
              ctx:patch(o, function(d) d.metadata.annotations.touched = "yes" end)
            end }]]):format(group, ns), "--namespace", ns, table.unpack(how ~= "" and { how } or {}))
        local is = "v1 Secret %d m nil " .. group .. "/v1 Widget b whole"
        heard("is", is:format(1))
        local function said(name)
          return wait.until_true(30, "what " .. name .. " says", function()
            return client:get("v1/Service", ns, name).metadata.annotations.said
          end)
        end
        local read, update = said "read", said "update"
        assert.truthy(read:find("data of Secret " .. ns .. "/it was not fetched: controller", 1,
          true), read)
        assert.truthy(update:find("of v1/Secret this controller keeps only some fields (metadata)", 1, true),
          update)
        change("v1/Secret", "it", { metadata = { annotations = { n = "2" } } })
        heard("is", is:format(2))
        wait.until_true(30, "the patch", function()
          return client:get("v1/Secret", ns, "it").metadata.annotations.touched
        end)
        assert.same({ ["v1/Secret (metadata)"] = 1, [group .. "/v1/Widget (metadata)"] = 1 },
          informers(run, "synced"))
        for kind, bytes in pairs(informers(run, "bytes")) do
          assert.is_true(bytes < 5000, kind .. " takes " .. bytes)
        end
        client:delete(CRD, "widgets." .. group)
      end)
    end

    it("end with their last user", function()
      local function script(reads)
        return ([[
          local kube = require "kubelua"
          return {
            kube.controller { name = "one-%s", resource = "v1/ConfigMap", reads = { %s },
              reconcile = function() end },
            kube.controller { name = "two-%s", resource = "v1/ConfigMap", reads = { "v1/Secret" },
              reconcile = function() end },
          }]]):format(ns, reads, ns)
      end
      run = begin(script '"v1/Secret", "v1/ServiceAccount"', "--namespace", ns, "--metrics-bind-address",
        "127.0.0.1:0")
      local function kinds_are(...)
        local want = {}
        for _, kind in ipairs { ... } do want[kind] = 1 end
        wait.until_true(30, "the informers of " .. table.concat({ ... }, ", "), function()
          local now = informers(run, "synced")
          for kind in pairs(now) do if not want[kind] then error(kind .. " is there", 0) end end
          for kind in pairs(want) do if now[kind] ~= 1 then error(kind .. " is not there", 0) end end
          return true
        end)
      end
      kinds_are("v1/ConfigMap", "v1/Secret", "v1/ServiceAccount")
      process.write(run.script_path, script "")
      kinds_are("v1/ConfigMap", "v1/Secret")
      process.write(run.script_path, script '"v1/ServiceAccount"')
      kinds_are("v1/ConfigMap", "v1/Secret", "v1/ServiceAccount")
    end)

    it("restart when a kind comes back with another scope", function()
      local group = ("scope%d.kubelua.dev"):format(math.random(100000, 999999))
      local widget, crd = group .. "/v1/Widget", definition(group)
      client:apply(crd)
      wait.until_true(PATIENCE, "the kind is served", function()
        return kube.try(client.list, client, widget)
      end)
      client:create { kind = widget, namespace = ns, name = "a" }
      started(([[
        local widget = %q
        return kube.controller { name = "scope-%s", resource = widget, reconcile = function(o, ctx)
          say(ctx, o.metadata.name, ctx.key .. " " .. ctx:get(widget, o.metadata.name).metadata.name)
        end }]]):format(widget, ns))
      heard("a", ns .. "/a a")
      client:delete(CRD, "widgets." .. group)
      run:wait_for_log(60, "a kind is gone")
      wait.until_true(60, "the definition to be gone", function()
        return client:get(CRD, "widgets." .. group) == nil
      end)
      crd.spec.scope = "Cluster"
      client:apply(crd)
      local admin = kube.connect { kubeconfig = server.kubeconfig }      -- a client without a cached scope
      wait.until_true(60, "an object of it", function()
        return kube.try(admin.create, admin, { kind = widget, name = "b" })
      end)
      admin:close()
      heard("b", "b b")
      client:delete(CRD, "widgets." .. group)
    end)

    it("restart even if no one saw the kind's absence", function()
      local group = ("unseen%d.kubelua.dev"):format(math.random(100000, 999999))
      local widget, crd = group .. "/v1/Widget", definition(group)
      client:apply(crd)
      wait.until_true(PATIENCE, "the kind is served", function()
        return kube.try(client.list, client, widget)
      end)
      client:create { kind = widget, namespace = ns, name = "a" }
      started(([[
        local widget = %q
        return kube.controller { name = "unseen-%s", resource = widget, reconcile = function(o, ctx)
          ctx:patch(o, function(d) d.metadata.annotations.seen = "yes" end)
          say(ctx, o.metadata.name, ctx.key .. " " .. ctx:get(widget, o.metadata.name).metadata.name)
        end }]]):format(widget, ns))
      heard("a", ns .. "/a a")
      run:signal "STOP"
      client:delete(CRD, "widgets." .. group)
      wait.until_true(60, "the definition to be gone", function()
        return client:get(CRD, "widgets." .. group) == nil
      end)
      crd.spec.scope = "Cluster"
      client:apply(crd)
      local admin = kube.connect { kubeconfig = server.kubeconfig }
      wait.until_true(60, "an object of it", function()
        return kube.try(admin.create, admin, { kind = widget, name = "b" })
      end)
      admin:close()
      run:signal "CONT"
      heard("b", "b b")
      client:delete(CRD, "widgets." .. group)
    end)

    it("end and return with their kind, without effect on others", function()
      local group = ("gone%d.kubelua.dev"):format(math.random(100000, 999999))
      local widget = group .. "/v1/Widget"
      client:apply(definition(group))
      wait.until_true(PATIENCE, "the kind is served", function()
        return kube.try(client.list, client, widget)
      end)
      client:create { kind = widget, namespace = ns, name = "a" }
      client:create { kind = widget, namespace = ns, name = "b" }
      make(ns, "it", { data = { n = "1" } })
      started(([[
        local widget = %q
        return {
          kube.controller { name = "counts-%s", resource = "v1/ConfigMap",
            watches = { [widget] = function() return { %q } end },
            reconcile = function(o, ctx)
              if o.metadata.name == "it" then say(ctx, "count", #ctx:list(widget)) end
            end },
          kube.controller { name = "other-%s", resource = "v1/ConfigMap",
            reconcile = function(o, ctx)
              if o.metadata.name == "it" then say(ctx, "other", o.data.n) end
            end },
        }]]):format(widget, ns, ns .. "/it", ns), "--namespace", ns)
      heard("count", "2")
      heard("other", "1")
      client:delete(CRD, "widgets." .. group)
      heard("count", "0")
      run:wait_for_log(30,
        "a kind is gone; controllers that need it are parked until it reappears kind=" .. widget)
      wait.until_true(30, "nothing to be left", function() return informers(run, "objects")[widget] == 0 end)
      change("v1/ConfigMap", "it", { data = { n = "2" } })
      heard("other", "2")
      wait.until_true(PATIENCE, "the definition to be gone", function()
        return client:get(CRD, "widgets." .. group) == nil
      end)
      client:apply(definition(group))
      wait.until_true(PATIENCE, "the kind is served again", function()
        return kube.try(client.list, client, widget)
      end)
      wait.until_true(30, "an object of it", function()
        return kube.try(client.create, client, { kind = widget, namespace = ns, name = "c" })
      end)
      heard("count", "1")
      run:wait_for_log(PATIENCE, "the kind exists again kind=" .. widget)
      client:delete(CRD, "widgets." .. group)
    end)
  end)
end)

servers.only_real(function(server_name, start)
  describe("caches without the right to list, against " .. server_name, function()
    local client, ns, run
    local begin = controller.frame("forbidden", start, function(_, c, n) client, ns = c, n end)

    local function grant(user, resources)
      client:apply { kind = "rbac.authorization.k8s.io/v1/Role", namespace = ns, name = user,
        rules = { { apiGroups = { "" }, resources = resources, verbs = { "list", "watch" } } } }
      client:apply { kind = "rbac.authorization.k8s.io/v1/RoleBinding", namespace = ns, name = user,
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = user },
        subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = user } } }
    end

    it("name the missing rule, block no others, and recover", function()
      local user = "jane-" .. ns
      grant(user, { "configmaps" })
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "it" }
      run = begin(([[
        local kube = require "kubelua"
        return {
          kube.controller { name = "reads", resource = "v1/ConfigMap", namespaces = { %q },
            reads = { "v1/Secret" },
            reconcile = function(o, ctx) ctx.log:info("reads saw %%s", o.metadata.name) end },
          kube.controller { name = "plain", resource = "v1/ConfigMap", namespaces = { %q },
            reconcile = function(o, ctx) ctx.log:info("plain saw %%s", o.metadata.name) end },
        }]]):format(ns, ns), "--as", user, "--as-group", "system:authenticated",
          "--health-probe-bind-address", "127.0.0.1:0")
      run:wait_for_log(30, "plain saw it")
      run:wait_for_log(30, "may not list secrets in namespace " .. ns)
      local log = run:log()
      assert.truthy(log:find('add rule {apiGroups: [', 1, true), log)
      assert.truthy(log:find("to the Role of " .. user, 1, true), log)
      assert.is_nil(log:find "reads saw")
      local address = log:match "serving health probes address=(%S+)"
      local ready = process.run(("curl -sS --max-time 10 http://%s/readyz?verbose"):format(address))
      assert.truthy(ready:find("v1/Secret: may not list secrets in namespace " .. ns, 1, true), ready)
      grant(user, { "configmaps", "secrets" })
      run:wait_for_log(90, "reads saw it")
    end)
  end)
end)
