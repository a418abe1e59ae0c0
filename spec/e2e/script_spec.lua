-- script_spec.lua - the calls of ctx and their results, on both API servers: each test is a controller of
-- Widgets in its own namespace, which reports in a ConfigMap.
-- real in asan: answers of the real server reach scripts

local kube = require "kubelua"

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local WIDGET = "script-spec.kubelua.dev/v1/Widget"
local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.script-spec.kubelua.dev}
spec:
  group: script-spec.kubelua.dev
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
]]

-- A script reports to its spec with report(ctx, text). The body of reconcile is on line BODY_LINE of the
-- script.
local BODY_LINE = 9
local SCRIPT = [[
local kube = require "kubelua"
local runs, flying, most = {}, 0, 0
local function report(ctx, text, name)
  ctx:apply { kind = "v1/ConfigMap", name = "report-" .. (name or ctx.name),
    data = { text = tostring(text) } }
end
local settings = { name = "NAME", resource = "WIDGET", reconcile = function(obj, ctx)
runs[ctx.key] = (runs[ctx.key] or 0) + 1
BODY
end, OPTIONS }
_ = report, flying, most
return kube.controller(settings)
]]
SCRIPT = SCRIPT:gsub("_ = report, flying, most\n", "do local _ = report, flying, most end\n")

servers.each(function(server_name, start)
  describe("a script against " .. server_name, function()
    local server, client
    local ns, run               -- of the current test

    lazy_setup(function()
      server = start { crds = { process.write(process.tmpname ".yaml", CRD) } }
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function() ns = controller.namespace(client, "script") end)
    after_each(function()
      local it_ran = run
      run = nil
      if it_ran then controller.finish(it_ran) end
    end)

    local function script(body, options)
      local parts = { NAME = "script-" .. ns, WIDGET = WIDGET, BODY = body, OPTIONS = options or "" }
      return (SCRIPT:gsub("%f[%w](%u+)%f[%W]", function(word) return parts[word] end))
    end

    -- Runs a controller whose reconcile has this body; options are more lines of its spec.
    local function reconciles(body, options, ...)
      run = controller.start(server, script(body, options), "--namespace", ns, ...)
      return run
    end

    local function widget(name, spec, more)
      local o = { kind = WIDGET, namespace = ns, name = name, spec = spec or {} }
      for key, value in pairs(more or {}) do o[key] = value end
      return client:create(o)
    end

    local function map(name, data, labels)
      return client:create { kind = "v1/ConfigMap", namespace = ns, name = name, data = data,
        labels = labels }
    end

    -- Waits for the script's report about a widget.
    local function reported(name, want)
      local seen
      local ok = pcall(wait.until_true, 20, "a report", function()
        local o = client:get("v1/ConfigMap", ns, "report-" .. name)
        seen = o and o("data.text")
        return seen and (want == nil or seen == want)
      end)
      if not ok then
        error(("the script reported %s%s; the log:\n%s"):format(tostring(seen),
          want and ", wanted " .. want or "", run:log()), 2)
      end
      return seen
    end

    local function says(text) run:wait_for_log(20, text) end

    local function silent(text)
      local log = run:log()
      if log:find(text, 1, true) then error(("the log says %q:\n%s"):format(text, log), 2) end
    end

    -- ------------------------------------------------------------ reading

    it("reads the cache by key, selectors, fields and indexes", function()
      map("a", { zone = "eu" }, { app = "x" })
      map("b", { zone = "eu" }, { app = "y" })
      map("c", { zone = "us" }, { app = "x" })
      widget("w", { from = "a" })
      reconciles([[
        local M = "v1/ConfigMap"
        local function names(list)
          local t = {} for i, o in ipairs(list) do t[i] = o.metadata.name end return table.concat(t, "")
        end
        local each = {}
        for o in ctx:each(M, { labels = "app" }) do each[#each + 1] = o.metadata.name end
        report(ctx, table.concat({
          ctx:get(M, "a").data.zone, ctx:get(M, ctx.namespace, "b").metadata.name,
          ctx:get(M, ctx.namespace .. "/c").data.zone,
          tostring(ctx:get(M, "absent")),
          names(ctx:list(M, { labels = "app=x" })), names(ctx:list(M, { labels = { app = "y" } })),
          names(ctx:list(M, { labels = { matchExpressions = { { key = "app",
            operator = "In", values = { "x", "y" } } } }, limit = 2 })),
          names(ctx:list(M, { fields = "metadata.name=c" })),
            names(ctx:list(M, { fields = { ["data.zone"] = "eu" } })),
          names(ctx:list(M, { index = "zone", value = "eu" })),
            names(ctx:list(M, { index = "first", value = "c" })),
          names(ctx:list(M, { namespace = "elsewhere" })), table.concat(each),
          names(ctx:list(M, { index = { zone = "eu", first = { "b", "c" } } })),
          names(ctx:list(M, { index = "zone", value = { "eu", "us" } })),
          names(ctx:list(M, { index = { zone = { ne = "us" }, first = true }, labels = "app=x" })),
          names(ctx:list(M, { index = { first = false } })),
        }, " "))]],
        [[reads = { "v1/ConfigMap" },
          indexes = { ["v1/ConfigMap"] = { zone = "data.zone",
            first = function(o) return o.metadata.name:sub(1, 1) end } },]])
      reported("w", "eu b us nil ac b ab c ab ab c  abc b abc a ")
    end)

    it("gets a suggestion for a misspelt index", function()
      map("a", { zone = "eu" })
      widget "w"
      reconciles([[ctx:list("v1/ConfigMap", { index = { zones = "eu" } })]],
        [[indexes = { ["v1/ConfigMap"] = { zone = "data.zone" } },]])
      says "v1/ConfigMap has no index zones in controller"
      says "did you mean 'zone'?"
    end)

    it("gets lists that read like tables, cost references only, and become tables on a write",
      function()
      for i = 1, 70 do map(("m%02d"):format(i), { n = tostring(i) }, { app = "x" }) end
      widget "w"
      reconciles([[
        local M, said = "v1/ConfigMap", {}
        local function say(x) said[#said + 1] = tostring(x) end
        local list = ctx:list(M, { labels = "app=x" })
        local first, n, sum = list[1], 0, 0
        local again = ctx:list(M, { labels = "app=x" })
        assert(not rawequal(list, again) and list == again and list ~= ctx:list(M, { limit = 69 }))
        for i, o in ipairs(list) do n, sum = n + 1, sum + tonumber(o.data.n) assert(i == n) end
        say(#list) say(n) say(sum)
        for i, o in pairs(list) do assert(o.data.n == tostring(i)) end
        assert(pairs(list)(list, math.maxinteger) == nil)
        say(list[0]) say(list[71]) say(list.name)
        say(#kube.copy(list)) say(kube.decode(kube.encode(list))[70].data.n)
        local ok, err = pcall(function() list[66].data.n = "0" end)
        say(not ok and err:match "set (.-);")
        table.sort(list, function(a, b) return tonumber(a.data.n) > tonumber(b.data.n) end)
        say(list[1].data.n) say(list[70].data.n) say(table.remove(list, 1).data.n) say(#list)
        list[#list + 1] = first
        assert(list ~= again and again == ctx:list(M, { labels = "app=x" }))
        local none, filled = ctx:list(M, { labels = "app=none" }), ctx:list(M, { labels = "app=none" })
        assert(none == filled)
        filled[1] = first
        assert(none ~= filled and #filled == 1)
        say(#list) say(kube.decode(kube.encode(list))[70].data.n) say(first.data.n)
        local kept
        sum = 0
        for o in ctx:each(M, { labels = "app=x" }) do
          sum = sum + tonumber(o.data.n) if o.data.n == "65" then kept = o end
        end
        say(sum) say(kept.metadata.name)
        report(ctx, table.concat(said, " "))]], [[reads = { "v1/ConfigMap" },]])
      reported("w", "70 70 2485 nil nil nil 70 70 data.n of ConfigMap " .. ns
        .. "/m66 70 1 70 69 70 1 1 2485 m65")
    end)

    it("gets an error for a ctx after its reconcile, and for new fields of one", function()
      widget "w"
      reconciles [[
        if most == 0 then most = ctx return 0.01 end
        local _, old = pcall(function() return most.key end)
        local _, set = pcall(function() ctx.mine = 1 end)
        report(ctx, old:match "ctx.key: .-is over" .. ", " .. set:match "ctx.mine cannot be set"
          .. ", " .. ctx.name)]]
      reported("w", "ctx.key: the reconcile of this ctx is over, ctx.mine cannot be set, w")
    end)

    it("allocates almost nothing for ten reads, and for ctx", function()
      widget("w", { a = { b = { "c" } }, text = "a text of more than forty characters, which Lua copies" })
      reconciles [[
        local function bytes() return collectgarbage "count" * 1024 end
        local began = bytes()
        local m, s = obj.metadata, obj.spec
        local _ = #m.name + #m.namespace + #m.uid + #m.resourceVersion + #m.creationTimestamp + #s.text
          + #s.a.b + #s.a.b[1]
          + #obj.kind + #obj.apiVersion + #ctx.key
        local inside = bytes() - began
        local t = runs.seen or { inside = 0, around = 0, n = 0 }
        runs.seen = t
        if t.n > 20 then                           -- what is made once is made
          t.inside, t.around = math.max(t.inside, inside), math.max(t.around, began - t.ended)
        end
        t.n = t.n + 1
        if t.n == 200 then report(ctx, ("%d %d"):format(t.inside // 1, t.around // 1)) end
        t.ended = bytes()
        if t.n < 200 then return 0.001 end]]
      local inside, around = reported "w":match "^(%d+) (%d+)$"
      assert.is_true(tonumber(inside) < 1024, inside .. " bytes for ten fields")
      assert.is_true(tonumber(around) < 512, around .. " bytes for a key")
    end)

    it("has its garbage collected between keys, and during one that allocates much", function()
      widget "w"
      reconciles [[
        local t = runs.seen or { n = 0, most = 0 }
        runs.seen = t
        for i = 1, t.n == 100 and 20000 or 20 do
          local _ = ("x"):rep(1000) .. i
          if i % 10 == 0 then t.most = math.max(t.most, collectgarbage "count") end
        end
        t.n = t.n + 1
        if t.n <= 200 then return 0.001 end
        report(ctx, t.most < 2048 and "less than 2 MB" or t.most)]]
      reported("w", "less than 2 MB")
    end)

    it("can end during its runs and leaves nothing behind", function()
      map("a", {}, { app = "x" })
      map("gone", {}, { app = "x" })
      for i = 1, 3 do widget("w" .. i, { list = { { name = "x" } } }) end
      reconciles([[
        local M = "v1/ConfigMap"
        local list, each = ctx:list(M, { labels = "app=x" }), ctx:each(M, { labels = "app=x" })
        local first <close> = setmetatable({ each(), list[2] },
          { __close = function(t) assert(#t[1].metadata.name + #t[2].metadata.name == 5) end })
        if ctx.name == "w1" then
          coroutine.wrap(function()
            for _, c in ipairs(obj.spec.list) do
              ctx.log:info("waits in a coroutine") ctx:sleep "60s" local _ = c
            end
          end)()
        elseif ctx.name == "w2" then
          ctx:patch(obj, function(d)
            d.spec.list[1].name = "y" ctx.log:info("waits in a draft") ctx:sleep "60s"
          end)
        else
          ctx:delete(M, "gone")
          while ctx:get(M, "gone") do ctx:sleep(0.01) end
          assert(list[2].metadata.name == "gone" and #list == 2)
          ctx.log:info("waits with what is gone")
          ctx:sleep "60s"
        end]], [[reads = { "v1/ConfigMap" },]], "--grace-period", "10ms")
      says "waits in a coroutine"
      says "waits in a draft"
      says "waits with what is gone"
      -- after_each stops it, and wants status 0: no sanitizer had anything to say
    end)

    -- Debug builds, including those of the sanitizers, use the variable; a release build ignores it.
    it("works with a collection at each allocation, during calls and errors", function()
      map("a", { n = "1" }, { app = "x" })
      for i = 1, 3 do widget("w" .. i, { n = i, deep = { list = { { name = "x" } } } }) end
      run = controller.start_with({ "KUBELUA_GC_STRESS=1" }, server, script([[
        local M = "v1/ConfigMap"
        local list = ctx:list(M, { labels = "app=x" })
        for o in ctx:each(M, { labels = "app=x" }) do assert(o.data.n == list[1].data.n) end
        assert(ctx:get(M, "a").data.n == "1" and ctx.live:get(M, "a").data.n == "1")
        local name = ctx.live:get(obj.apiVersion .. "/" .. obj.kind, ctx.name).spec.deep.list[1].name
        if obj("status.n") == nil then error("first " .. name) end
        local o = ctx:patch(obj,
          function(d) d.metadata.labels.seen = name d.spec.deep.list[2] = { name = "y" } end)
        ctx.log:info("list %s of %s", o.spec.deep, ctx.key)
        report(ctx, #o.spec.deep.list .. o.metadata.labels.seen
          .. tostring(kube.qty "1" + kube.qty "500m"))]], [[reads = { "v1/ConfigMap" },]]),
        "--namespace", ns)
      says "first x"
      for i = 1, 3 do client:patch_status(client:get(WIDGET, ns, "w" .. i), { n = i }) end
      for i = 1, 3 do reported("w" .. i, "2x1500m") end
    end)

    it("gets advice to declare the kinds it reads", function()
      widget "w"
      reconciles [[ctx:get("v1/Secret", "a")]]
      says 'add it to reads = { \\"v1/Secret\\" }'
      says("key=" .. ns .. "/w")
    end)

    it("reads from the server on request", function()
      map("a", { n = "1" })
      map("b", { n = "2" })
      widget "w"
      reconciles [[
        local n = 0
        for _, o in ipairs(ctx.live:list("v1/ConfigMap",
          { namespace = ctx.namespace, fields = "metadata.name!=kube-root-ca.crt" })) do
          n = n + (tonumber(o("data.n")) or 0)
        end
        report(ctx, ("%d %s %s"):format(n, ctx.live:get("v1/ConfigMap", "b").data.n,
          tostring(ctx.live:get("v1/ConfigMap", "absent"))))]]
      reported("w", "3 2 nil")
    end)

    it("knows about its run", function()
      widget("w", {}, { labels = { a = "b" } })
      reconciles([[
        local age = ctx:age(obj.metadata.creationTimestamp)
        report(ctx, ("%s %s %s %d %d %s %d %s %s"):format(ctx.key, ctx.namespace,
          ctx.name, ctx.attempt, ctx.generation, ctx.params.prefix,
          ctx.params.limit, tostring(age >= 0 and age < 600 and ctx:now() - ctx:now() <= 0),
          tostring(#ctx.id == 36)))]],
        [[params = { prefix = "p-", limit = 3 },]])
      reported("w", ns .. "/w " .. ns .. " w 1 1 p- 3 true true")
    end)

    it("cannot change a view, and learns which field was absent", function()
      widget("frozen", { n = 1 })
      widget("absent", { n = 1 })
      reconciles [[
        if ctx.name == "frozen" then obj.spec.n = 2 end
        return { status = { n = obj.spec.nothing.at.all } }]]
      says("key=" .. ns .. "/frozen")
      says("key=" .. ns .. "/absent")
      says "spec.nothing"
      assert.equal(1, client:get(WIDGET, ns, "frozen").spec.n)
    end)

    -- ------------------------------------------------------------ writing

    it("creates, updates, patches and deletes", function()
      widget "w"
      reconciles [[
        if ctx.live:get("v1/ConfigMap", "report-w") then return end
        local made = ctx:create { kind = "v1/ConfigMap", name = "made", labels = { l = "1" },
          data = { a = "1" } }
        local copy = kube.copy(made)
        copy.data.b = "2"
        local updated = ctx:update(copy)
        local drafted = ctx:patch(updated,
          function(m) m.data.c = "3"; m.data.a = nil; m.metadata.annotations.x = "y" end)
        local merged = ctx:patch(drafted, { data = { d = "4" } })
        local jsoned = ctx:patch(merged, { { op = "add", path = "/data/e", value = "5" } }, { type = "json" })
        local again, err = kube.try(ctx.create, ctx, { kind = "v1/ConfigMap", name = "made" })
        local gone = ctx:delete("v1/ConfigMap", "made")
        report(ctx, ("%s %s %s %s %s %s %s %s"):format(tostring(jsoned.data),
          made.metadata.labels.l, jsoned.metadata.annotations.x,
          tostring(again), err.kind, tostring(err.code), tostring(gone),
          tostring(ctx:delete("v1/ConfigMap", "never-there"))))]]
      reported("w", '{"b":"2","c":"3","d":"4","e":"5"} 1 y nil already_exists 409 true true')
      assert.is_nil(client:get("v1/ConfigMap", ns, "made"))
    end)

    it("applies under its own name, in the short form and as a manifest", function()
      widget "w"
      reconciles [[
        local short = ctx:apply { kind = "v1/ConfigMap", name = "short", labels = { l = "1" },
          annotations = { a = "2" }, data = { x = "1" } }
        local whole = ctx:apply { apiVersion = "v1", kind = "ConfigMap",
          metadata = { name = "whole", namespace = ctx.namespace }, data = { x = "2" } }
        report(ctx, ("%s %s %s %s"):format(short.metadata.labels.l, short.metadata.annotations.a,
          short.metadata.namespace == ctx.namespace, whole.data.x))]]
      reported("w", "1 2 true 2")
      local managers = client:get("v1/ConfigMap", ns, "short").metadata.managedFields
      assert.equal(1, #managers)
      assert.equal("script-" .. ns, managers[1].manager)
      assert.equal("Apply", managers[1].operation)
    end)

    it("meets another manager's field as a conflict, unless it forces", function()
      client:apply({ kind = "v1/ConfigMap", namespace = ns, name = "shared", data = { x = "theirs" } },
        { manager = "someone" })
      widget "w"
      reconciles [[
        local o = { kind = "v1/ConfigMap", name = "shared", data = { x = "ours" } }
        local _, err = kube.try(ctx.apply, ctx, o)
        local forced = ctx:apply(o, { force = true })
        report(ctx, ("%s %s %s"):format(err and err.code,
          err and tostring(err):find("someone", 1, true) and "someone", forced.data.x))]]
      reported("w", "409 someone ours")
    end)

    it("rejects a view as an apply, and accepts its own fields of it", function()
      widget "w"
      client:apply({ kind = "v1/ConfigMap", namespace = ns, name = "shared", data = { x = "theirs" } },
        { manager = "someone" })
      reconciles [[
        ctx:apply { kind = "v1/ConfigMap", name = "shared", data = { y = "ours" } }
        local o = ctx.live:get("v1/ConfigMap", "shared")
        local whole, why = pcall(ctx.apply, ctx, kube.copy(o))
        local view = pcall(ctx.apply, ctx, o)
        local locked = ctx:apply { apiVersion = "v1", kind = "ConfigMap", data = { y = "locked" },
          metadata = { name = "shared",
            uid = o.metadata.uid, resourceVersion = o.metadata.resourceVersion } }
        local mine = kube.extract(locked, "script-" .. ctx.namespace)
        local again = ctx:apply(mine)
        report(ctx, ("%s %s %s %s %s %s"):format(whole, view, why:match "was read from the server",
          mine.data.x, mine.data.y,
          again.data.x))]]
      reported("w", "false false was read from the server nil locked theirs")
    end)

    it("fails each time on a field of another manager", function()
      client:apply({ kind = "v1/ConfigMap", namespace = ns, name = "shared", data = { x = "theirs" } },
        { manager = "someone" })
      widget "w"
      reconciles [[
        if runs[ctx.key] > 3 then
          return { apply = { kind = "v1/ConfigMap", name = "free", data = { x = "ours" } } }
        end
        return { apply = { kind = "v1/ConfigMap", name = "shared", data = { x = "ours" } } }]]
      says "reconcile failed"
      says 'conflict with \\"someone\\": .data.x'
      wait.until_true(20, "the fourth run", function() return client:get("v1/ConfigMap", ns, "free") end)
    end)

    it("forces applies to objects it owns, unless the spec says otherwise", function()
      for _, o in ipairs { { kind = "v1/ConfigMap", name = "shared" },
        { kind = "v1/ConfigMap", name = "left" },
        { kind = "v1/Secret", name = "left" } } do
        client:apply({ kind = o.kind, namespace = ns, name = o.name, data = { x = "YQ==" } },
          { manager = "someone" })
      end
      widget "w"
      reconciles([[
        local function applied(kind, name, opts)
          local o, err = kube.try(ctx.apply, ctx, { kind = kind, name = name, data = { x = "Yg==" } }, opts)
          return o and o.data.x or err.conflicts[1].manager
        end
        report(ctx, ("%s %s %s"):format(applied("v1/ConfigMap", "shared"),
          applied("v1/ConfigMap", "left", { force = false }), applied("v1/Secret", "left")))]],
        [[owns = { "v1/ConfigMap", ["v1/Secret"] = { force = false } }, when = { "generation" },]])
      reported("w", "Yg== someone someone")
    end)

    it("sets the owner reference on owned objects and no others", function()
      local owner = widget "w"
      reconciles([[
        ctx:apply { kind = "v1/Secret", name = "owned", stringData = { a = "1" } }
        ctx:apply { kind = "v1/ConfigMap", name = "free", data = { a = "1" } }
        local ok, why = pcall(ctx.apply, ctx, { kind = "v1/Secret", name = "x", namespace = "default" })
        report(ctx, tostring(ok) .. tostring(why))]], [[owns = { "v1/Secret" },]])
      assert.truthy(reported("w"):find("an owner lives in the same namespace", 1, true))
      local ref = client:get("v1/Secret", ns, "owned").metadata.ownerReferences[1]
      assert.equal("script-spec.kubelua.dev/v1 Widget w true true",
        ("%s %s %s %s %s"):format(ref.apiVersion, ref.kind, ref.name,
        tostring(ref.controller), tostring(ref.blockOwnerDeletion)))
      assert.equal(owner.metadata.uid, ref.uid)
      assert.is_nil(client:get("v1/ConfigMap", ns, "free")("metadata.ownerReferences"))
    end)

    it("runs when an owned object is deleted", function()
      widget "w"
      reconciles([[ctx:apply { kind = "v1/Secret", name = "owned", stringData = { a = "1" } }]],
        [[owns = { "v1/Secret" },]])
      local first = wait.until_true(20, "the secret", function()
        return client:get("v1/Secret", ns, "owned")
      end)
      client:delete("v1/Secret", ns, "owned")
      wait.until_true(20, "a new secret", function()
        local o = client:get("v1/Secret", ns, "owned")
        return o and o.metadata.uid ~= first.metadata.uid
      end)
    end)

    it("runs by an index, by the same name and by a function", function()
      widget("w", { from = "source" })
      widget("cards", {})
      widget("named", {})
      reconciles([[
        local from = obj("spec.from")
        local secret, card = from and ctx:get("v1/ConfigMap", from), ctx:get("v1/ServiceAccount", ctx.name)
        local told = ctx:get("v1/Secret", "teller")
        report(ctx, (secret and secret.data.text or "-") .. (card and "card" or "-")
          .. (told and told.metadata.labels.word or "-"))]],
        [[indexes = { src = function(o)
          return o("spec.from") and o.metadata.namespace .. "/" .. o.spec.from
        end },
          watches = { ["v1/ConfigMap"] = { via = "src" }, ["v1/ServiceAccount"] = "same-name",
            ["v1/Secret"] = function(s, ctx)
              return s.metadata.name == "teller"
                and { { namespace = s.metadata.namespace, name = "named" } } or nil
            end },]])
      reported("w", "---")
      map("source", { text = "one" })
      reported("w", "one--")
      client:create { kind = "v1/ServiceAccount", namespace = ns, name = "cards" }
      reported("cards", "-card-")
      client:create { kind = "v1/Secret", namespace = ns, name = "teller", labels = { word = "hey" } }
      reported("named", "--hey")
    end)

    it("writes status by its subresource, and nothing when nothing changes", function()
      widget("w", { n = 1 })
      reconciles [[
        if obj.spec.n == 1 then
          ctx:patch_status(obj, function(o) o.status.phase = "one"; o.status.list = { 1, 2 } end)
        end
        if obj.spec.n == 2 then
          ctx:patch(obj, function(o) o.spec.seen = true; o.status.phase = "two" end)
        end
        return { status = { n = obj.spec.n } }]]
      local one = wait.until_true(20, "the status", function()
        local o = client:get(WIDGET, ns, "w")
        return o("status.n") == 1 and o
      end)
      assert.same({ phase = "one", list = { 1, 2 }, n = 1 }, require("kubelua").copy(one.status))
      assert.equal(1, one.metadata.generation)
      client:patch(one, { spec = { n = 2 } })
      local two = wait.until_true(20, "the second status", function()
        local o = client:get(WIDGET, ns, "w")
        return o("status.n") == 2 and o
      end)
      assert.is_true(two.spec.seen)
      assert.equal("two", two.status.phase)
      -- A change that leaves the status as it is brings a run and no write.
      client:patch(two, { metadata = { labels = { touched = "yes" } } })
      local touched = client:get(WIDGET, ns, "w").metadata.resourceVersion
      widget("other", { n = 3 })
      wait.until_true(20, "another widget", function()
        return client:get(WIDGET, ns, "other")("status.n") == 3
      end)
      assert.equal(touched, client:get(WIDGET, ns, "w").metadata.resourceVersion)
    end)

    it("runs a patch function again on the fresh object after a conflict", function()
      map("counter", { n = "0" })
      widget "w"
      reconciles([[
        local stale, calls = ctx.live:get("v1/ConfigMap", "counter"), 0
        ctx:patch(stale, { data = { n = "10" } })
        ctx:patch(stale, function(m) calls = calls + 1; m.data.n = tostring(math.tointeger(m.data.n) + 1) end,
          { lock = true })
        report(ctx, calls .. " " .. ctx.live:get("v1/ConfigMap", "counter").data.n)]],
          [[when = { "generation" },]])
      reported("w", "2 11")
    end)

    it("runs again quietly after a raised conflict", function()
      local stale = map("target", { n = "0" })
      client:patch(stale, { data = { n = "1" } })
      widget("w", { rv = stale.metadata.resourceVersion })
      reconciles [[
        if runs[ctx.key] < 3 then
          ctx:update { apiVersion = "v1", kind = "ConfigMap",
            metadata = { name = "target", namespace = ctx.namespace, resourceVersion = obj.spec.rv },
            data = { n = "2" } }
        end
        report(ctx, runs[ctx.key])]]
      reported("w", "3")
      silent "reconcile failed"
    end)

    it("ends quietly when the reconciled object is deleted meanwhile", function()
      widget "w"
      reconciles([[
        ctx:delete(obj)
        ctx:patch(obj, { metadata = { labels = { late = "yes" } } })]], nil, "--log-level", "debug")
      says "the object changed or went, running again"
      silent "reconcile failed"
    end)

    -- ------------------------------------------------------------ results

    it("returns writes: apply, delete, status and events, in this order", function()
      map("old-1", {})
      map("old-2", {})
      local w = widget "w"
      reconciles [[
        return {
          apply = { { kind = "v1/ConfigMap", name = "new-1", data = { a = "1" } },
            { kind = "v1/ConfigMap", name = "new-2" } },
          delete = { { kind = "v1/ConfigMap", name = "old-1" },
            { kind = "v1/ConfigMap", namespace = ctx.namespace, name = "old-2" } },
          status = { ready = true },
          events = { { type = "Warning", reason = "Renewed", message = "100% new" } },
        }]]
      wait.until_true(20, "the event", function()
        for e in client:each("v1/Event", { namespace = ns }) do
          if e.reason == "Renewed" then
            return e.type == "Warning" and e.message == "100% new" and e.involvedObject.uid == w.metadata.uid
          end
        end
      end)
      assert.is_true(client:get(WIDGET, ns, "w").status.ready)
      assert.equal("1", client:get("v1/ConfigMap", ns, "new-1").data.a)
      assert.truthy(client:get("v1/ConfigMap", ns, "new-2"))
      assert.is_nil(client:get("v1/ConfigMap", ns, "old-1"))
      assert.is_nil(client:get("v1/ConfigMap", ns, "old-2"))
    end)

    it("runs again on request: seconds, a duration, requeue_after, kube.retry returned or raised",
      function()
      for _, how in ipairs { "number", "text", "table", "retry", "raise" } do widget(how) end
      reconciles [[
        local n = runs[ctx.key]
        if n == 3 then return report(ctx, "three runs, attempt " .. ctx.attempt) end
        if ctx.name == "number" then return 0.01 end
        if ctx.name == "text" then return "10ms" end
        if ctx.name == "table" then return { requeue_after = "10ms" } end
        if ctx.name == "retry" then return kube.retry("10ms", "not yet") end
        local function deep() error(kube.retry(0.01, "not yet")) end
        deep()]]
      for _, how in ipairs { "number", "text", "table", "retry", "raise" } do
        reported(how, "three runs, attempt 1")
      end
      silent "reconcile failed"
    end)

    it("uses kube.try, and next on views", function()
      widget("tries")
      reconciles([[
        local made, e = ctx.try:create { kind = "v1/ConfigMap", name = "Not A Name" }
        local none, absent = ctx.try.live:get("v1/ConfigMap", "absent")
        local done = ctx.try:apply { kind = "v1/ConfigMap", name = "tried", data = { a = "b" } }
        local _, wrong = pcall(function() return ctx.try:appply {} end)
        local _, field = pcall(function() return ctx.try.key end)
        local _, mistake = pcall(function() return ctx.try:apply {} end)
        local seen = {}
        local key, value = next(obj.metadata)
        while key do
          seen[key] = value
          key, value = next(obj.metadata, key)
        end
        local draft
        ctx:patch(obj, function(o) draft = tostring(next(o.spec)) .. tostring(next(o.metadata) ~= nil) end)
        report(ctx, kube.encode { tostring(made), e.kind, tostring(none), tostring(absent),
          done.data.a, wrong, field,
          mistake, seen.name, tostring(next(obj.spec)), tostring(next({})), draft })]])
      local said = kube.copy(kube.decode(reported "tries"))
      assert.same({ "nil", "rejected", "nil", "nil", "b" }, { table.unpack(said, 1, 5) })
      assert.match("ctx.appply: unknown field; did you mean 'apply'", said[6])
      assert.match("ctx.try.key: ctx.try has only methods; write ctx.key", said[7])
      assert.match("%.lua:%d+: ctx:apply: the object has no kind", said[8])
      assert.same({ "tries", "nil", "nil", "niltrue" }, { table.unpack(said, 9) })
    end)

    it("gives up with kube.fail until the object changes", function()
      widget("w", { n = 1 })
      widget("v", { n = 1 })
      reconciles [[
        if obj.spec.n == 1 and ctx.name == "w" then return kube.fail "n must be 2" end
        if obj.spec.n == 1 then error(kube.fail "n must not be 1") end
        report(ctx, "run " .. runs[ctx.key] .. ", attempt " .. ctx.attempt)]]
      says "n must be 2"
      says "n must not be 1"
      says "failed for good"
      for _, name in ipairs { "w", "v" } do
        client:patch(client:get(WIDGET, ns, name), { spec = { n = 2 } })
      end
      reported("w", "run 2, attempt 1")
      reported("v", "run 2, attempt 1")
    end)

    it("fails with a Lua traceback and the key, is retried, and stops no other key", function()
      widget "bad"
      widget "good"
      reconciles [[
        local function third(x) return x.nothing.more end
        local function second(x) local r = third(x) return r end
        if ctx.name == "bad" and ctx.attempt < 4 then second { } end
        report(ctx, ctx.attempt)]]
      reported("good", "1")
      reported("bad", "4")
      local log = run:log()
      for _, part in ipairs { "reconcile failed", "key=" .. ns .. "/bad", "attempt=3", "stack traceback:",
        ":" .. BODY_LINE .. ": in ",
        ":" .. BODY_LINE + 1 .. ": in ", ":" .. BODY_LINE + 2 .. ": in " } do
        assert.truthy(log:find(part, 1, true), part .. " is not in\n" .. log)
      end
      assert.is_nil(log:find("kubelua/script.lua", 1, true), "frames of the library are in\n" .. log)
      silent("key=" .. ns .. "/good")
    end)

    it("survives any raised value", function()
      local ways = { "text", "table", "nothing", "number", "overflow", "memory", "tostring", "close", "false",
        "refusal" }
      for _, way in ipairs(ways) do widget(way) end
      reconciles [[
        local function deeper(n) return 1 + deeper(n + 1) end
        if runs[ctx.key] == 1 then
          if ctx.name == "text" then error "just a text" end
          if ctx.name == "table" then error { some = "table" } end
          if ctx.name == "nothing" then error() end
          if ctx.name == "number" then error(7) end
          if ctx.name == "overflow" then deeper(1) end
          if ctx.name == "memory" then local s = ("x"):rep(1 << 40) end
          if ctx.name == "tostring" then
            error(setmetatable({}, { __tostring = function() error "even this" end }))
          end
          if ctx.name == "close" then
            local c <close> = setmetatable({}, { __close = function() error "at the end" end }) error "first"
          end
          if ctx.name == "false" then error(false) end
          if ctx.name == "refusal" then ctx:apply { kind = "v1/ConfigMap", name = "No Name" } end
        end
        report(ctx, "alive")]]
      for _, way in ipairs(ways) do reported(way, "alive") end
      -- An error of a closed value replaces the first error, as with pcall.
      for _, part in ipairs { "just a text", "stack overflow", "resulting string too large", "at the end",
        'error="apply configmaps ' .. ns .. "/No Name: " } do
        says(part)
      end
    end)

    it("gets an error for an invalid result, and sends none of it", function()
      local cases = {
        boolean = "reconcile returned a boolean", ["function"] = "reconcile returned a function",
        unknown = "unknown key 'requeue_afer'; did you mean 'requeue_after'?",
        negative = "not negative, got -5", word = "got soon", infinite = "got inf", list = "unknown key '1'",
        status = "result.status must be a table of status fields, got number",
        apply = "result.apply[1] must be an object, got string",
        force = "result.apply is a list and cannot contain force",
        kindless = "the object has no kind", delete = "result.delete[1].name must be a string",
        event = "result.events[1].type must be Normal or Warning, got Bad",
        object = "reconcile returned an object",
      }
      for name in pairs(cases) do widget(name) end
      reconciles [[
        local wrong = {
          boolean = false, ["function"] = print, unknown = { requeue_afer = 1 },
          negative = -5, word = "soon", infinite = math.huge, list = { 1 },
          status = { status = 1, apply = { kind = "v1/ConfigMap", name = "never" } },
          apply = { apply = { "x" }, delete = { { kind = "v1/ConfigMap", name = "kept" } } },
          force = { apply = { { kind = "v1/ConfigMap", name = "never" }, force = true } },
          kindless = { apply = { { name = "x" } } },
          delete = { delete = { { kind = "v1/ConfigMap" } },
            apply = { kind = "v1/ConfigMap", name = "never" } },
          event = { events = { { type = "Bad", reason = "R", message = "m" } }, status = { n = 1 } },
          object = obj,
        }
        return wrong[ctx.name] ]]
      for name, part in pairs(cases) do
        says((part:gsub('"', '\\"')))
        says("key=" .. ns .. "/" .. name)
      end
      assert.is_nil(client:get("v1/ConfigMap", ns, "never"))
      assert.is_nil(client:get(WIDGET, ns, "event")("status"))
    end)

    -- ------------------------------------------------------------ waiting

    it("calls the API from coroutines, iterators, metamethods, pcall and xpcall, while others run",
      function()
      map("a", { v = "1" })
      widget "w"
      reconciles [[
        local function value() return ctx.live:get("v1/ConfigMap", "a").data.v end
        local gen = coroutine.wrap(function()
          for i = 1, 2 do coroutine.yield(i .. value()) end return "end" .. value()
        end)
        local inner = coroutine.create(function(x) local y = coroutine.yield(x .. value());
          local z = coroutine.wrap(function() return value() .. y end)() error(z) end)
        local ok1, first = coroutine.resume(inner, "x")
        local ok2, second = coroutine.resume(inner, "y")
        local lazy = setmetatable({},
          { __index = function(_, k) return k .. value() end, __call = function() return value() end })
        local function iter(_, i) if i < 2 then value() return i + 1 end end
        local count = 0
        for _ in iter, nil, 0 do count = count + 1 end
        local caught, why = pcall(function() value() error "caught" end)
        local handled, said = xpcall(function() value() error("handled", 0) end,
          function(e) return e .. count end)
        ctx:sleep "1ms"
        report(ctx, table.concat({ gen(), gen(), gen(), tostring(ok1), first,
          tostring(ok2), tostring(second):match "1y$", lazy.k, lazy(),
          count, tostring(caught), tostring(why):match "caught$", tostring(handled),
          said, coroutine.status(inner), tostring(coroutine.isyieldable()) }, " "))]]
      reported("w", "11 21 end1 true x1 false 1y k1 1 2 false caught false handled2 dead false")
    end)

    -- A thread that sleeps there would block the other keys of its worker.
    for what, way in pairs {
      ["a comparator"] = "table.sort({ 1, 2 }, function(a, b) call() return a < b end)",
      ["a replacement"] = "('x'):gsub('x', call)",
      ["a coroutine of a replacement"] = "('x'):gsub('x', function() return coroutine.wrap(call)() end)",
      ["a message handler"] = "local _, e = xpcall(error, call) error(e, 0)",
      ["a metamethod"] = "tostring(setmetatable({}, { __tostring = call }))",
      ["an index that ipairs asks"] = "ipairs(setmetatable({}, { __index = call }))(setmetatable({}, { \z
        __index = call }), 0)",
      ["what a closed coroutine closes"] = [[
          local co = coroutine.create(function()
            local x <close> = setmetatable({}, { __close = call })
            coroutine.yield()
          end)
          coroutine.resume(co)
          local _, e = coroutine.close(co)
          error(e, 0)]],
    } do
      it("explains where a call is allowed, if Lua cannot yield: " .. what, function()
        map("a", { v = "1" })
        widget "w"
        reconciles([[
          local function said(name, f, ...)
            local arg = table.pack(...)
            local function call() return f(table.unpack(arg)) end
            local ok, e = pcall(function()
              ]] .. way .. [[

            end)
            local text = tostring(e)
            if not ok and text:find(name .. " cannot wait inside a function that a library function calls",
              1, true) then
              return "refused"
            end
            return text
          end
          report(ctx, table.concat({
            said("ctx:sleep", ctx.sleep, ctx, "1h"),
            said("get v1/ConfigMap", ctx.live.get, ctx.live, "v1/ConfigMap", "a"),
            said("apply v1/ConfigMap", ctx.apply, ctx, { kind = "v1/ConfigMap", name = "never" }),
            said("list batch/v1/CronJob", ctx.live.list, ctx.live, "batch/v1/CronJob"),
            said("ctx.http", ctx.http.get, ctx.http, "http://127.0.0.1:1"),
          }, " "))]])
        reported("w", "refused refused refused refused refused")
      end)
    end

    it("fails the key on an uncaught error in a coroutine", function()
      widget "w"
      reconciles [[
        if runs[ctx.key] == 1 then
          coroutine.wrap(function() ctx.live:get("v1/ConfigMap", "x"); error "inside" end)()
        end
        local ok, why = pcall(coroutine.yield, 1)
        report(ctx, tostring(ok) .. " " .. why)]]
      assert.truthy(reported("w"):find("false attempt to yield from outside a coroutine", 1, true))
      says "inside"
    end)

    it("has many active keys on one worker", function()
      for i = 1, 20 do widget("w" .. i) end
      reconciles([[
        flying = flying + 1
        most = math.max(most, flying)
        ctx:sleep "300ms"
        flying = flying - 1
        if flying == 0 then report(ctx, most > 1 and most <= 8, "most") end]],
          [[workers = 1, concurrency = 8,]])
      reported("most", "true")
    end)

    it("is stopped by its timeout, closes its variables, and affects no others", function()
      widget "slow"
      widget "quick"
      reconciles([[
        if ctx.name == "slow" then
          local _ <close> = setmetatable({}, { __close = function() ctx.log:info("closed") end })
          coroutine.wrap(function() ctx:sleep "1h" end)()
        end
        report(ctx, "quick")]], [[timeout = "300ms",]])
      says "timed out after 300ms while waiting for sleep"
      says "closed"
      says("key=" .. ns .. "/slow")
      reported "quick"
      assert.is_nil(client:get("v1/ConfigMap", ns, "report-slow"))
    end)

    -- ------------------------------------------------------------ the rest

    it("records events, and counts them when they repeat", function()
      local w = widget "w"
      reconciles [[
        ctx:event("Seen", "it has %d labels", 0)
        ctx:warn("Doubtful", "plain %")
        if runs[ctx.key] < 3 then return "10ms" end]]
      local function find(reason)
        for e in client:each("v1/Event", { namespace = ns, fields = "involvedObject.name=w" }) do
          if e.reason == reason then return e end
        end
      end
      -- Every repeat is counted, and the second one starts a series; further ones are sent later
      -- (events_spec.lua).
      local seen = wait.until_true(20, "three events in one", function()
        local e = find "Seen"
        return e and e("series.count") and e
      end)
      assert.truthy(seen.series.count == 2 or seen.series.count == 3)
      assert.equal("Normal it has 0 labels script-" .. ns,
        ("%s %s %s"):format(seen.type, seen.message, seen.reportingComponent))
      assert.equal(w.metadata.uid, seen.involvedObject.uid)
      assert.equal("Widget script-spec.kubelua.dev/v1",
        seen.involvedObject.kind .. " " .. seen.involvedObject.apiVersion)
      local doubt = wait.until_true(20, "the warning", function() return find "Doubtful" end)
      assert.equal("Warning plain %", doubt.type .. " " .. doubt.message)
    end)

    it("raises errors with all their parts", function()
      widget "w"
      reconciles [[
        local _, e = kube.try(ctx.create, ctx, { kind = "v1/ConfigMap", name = "Not A Name" })
        local _, absent = kube.try(ctx.patch, ctx,
          { apiVersion = "v1", kind = "ConfigMap",
            metadata = { name = "absent", namespace = ctx.namespace } }, { data = {} })
        local _, kindless = kube.try(ctx.live.get, ctx.live, "example.com/v1/Nothing", "x")
        local ok, mine = pcall(kube.try, ctx.get, ctx, 7)
        report(ctx, ("%s %s %s|%s %s %s %s %s|%s|%s"):format(e.code, e.kind,
          e.reason, absent.code, absent.reason, absent.verb, absent.resource,
          absent.key == ctx.namespace .. "/absent", kindless.kind, tostring(ok) .. type(mine)))]]
      reported("w", "422 rejected Invalid|404 NotFound patch v1/ConfigMap true|not_found|falsestring")
    end)

    it("logs with its key", function()
      widget "w"
      reconciles [[
        ctx.log:info("plain text")
        ctx.log:warn("with %d and %s", 3, obj.metadata.name)
        ctx.log:info(function() return "made when it is logged" end)
        local made = false
        ctx.log:debug(function() made = true return "deep" end)
        print("printed", 1)
        report(ctx, tostring(made))]]
      reported("w", "false")
      local log = run:log()
      for _, part in ipairs { "plain text", "with 3 and w", "made when it is logged", "printed\t1" } do
        local line
        for l in log:gmatch "[^\n]+" do
          if l:find(part, 1, true) or l:find((part:gsub("\t", " ")), 1, true) then line = l end
        end
        assert.truthy(line, part .. " is not in\n" .. log)
        assert.truthy(line:find("key=" .. ns .. "/w", 1, true), line)
      end
    end)

    it("is rejected for undefined names, at load and at run time", function()
      for _, name in ipairs { "typo", "global", "later", "method", "dot", "connect", "module", "gc" } do
        widget(name)
      end
      reconciles [[
        if ctx.name == "typo" then return kount end
        if ctx.name == "global" then count = 1 end
        if ctx.name == "later" then ctx:exec(obj, { "date" }) end
        if ctx.name == "method" then ctx:aply {} end
        if ctx.name == "dot" then ctx.log.info "x" end
        if ctx.name == "connect" then kube.connect() end
        if ctx.name == "module" then require "something.new" end
        if ctx.name == "gc" then setmetatable({}, { __gc = print }) end]]
      for _, part in ipairs { "undefined global 'kount'", "assignment to undefined global 'count'",
        "ctx.exec: a reconcile cannot use streams", "did you mean 'apply'?",
        "ctx.log.info is a method", "kube.connect is for standalone programs",
        "was not required while the script loaded", "may not have __gc" } do
        says((part:gsub('"', '\\"')))
      end
    end)

    it("reconciles cluster-scoped objects, and has two controllers in one file", function()
      local text = ([[
        local kube = require "kubelua"
        local function labels(name, label)
          return kube.controller { name = name, resource = "v1/Namespace", when = { "labels" },
            reconcile = function(o, ctx)
            if o.metadata.name ~= NS then return end
            assert(ctx.namespace == nil and ctx.key == NS and ctx:get("v1/Namespace", NS).kind == "Namespace")
            ctx:patch(o, function(n) n.metadata.labels[label] = "yes" end)
          end } end
        return { labels("first-" .. NS, "first"), labels("second-" .. NS, "second") }]]):gsub(
          "%f[%w]NS%f[%W]", ("%q"):format(ns))
      run = controller.start(server, text)
      wait.until_true(20, "both labels", function()
        local labels = client:get("v1/Namespace", ns)("metadata.labels")
        return labels and labels("first") == "yes" and labels("second") == "yes"
      end)
    end)
  end)
end)
