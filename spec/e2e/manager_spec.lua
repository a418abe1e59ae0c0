-- manager_spec.lua - kube.manager: controllers, informers and an event loop in a program of stock Lua. The
-- programs of docs/clients.md run unchanged.

local carry = require "kubelua.carry"
local controller = require "support.controller"
local http = require "support.http"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local HELLO = process.read "controllers/hello.lua"

-- The program of docs/clients.md that begins with "-- NAME".
local function documented(name)
  for block in process.read "docs/clients.md":gmatch "```lua\n(.-)```" do
    if block:find("-- " .. name, 1, true) == 1 then return block end
  end
  error("docs/clients.md has no program " .. name)
end

servers.each(function(name, start)
  describe("kube.manager, against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "manager")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function card(key)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, labels = { hello = "world" } }
    end

    local function greeting(key) return client:get("v1/ConfigMap", ns, key)("data.greeting") end

    -- A manager of one script with its own client; its source begins with the greeting controller's.
    local function manager(opts)
      local c = kube.connect { kubeconfig = server.kubeconfig, cache_dir = false }
      opts.client, opts.namespace = c, ns
      local m = kube.manager(opts)
      finally(function() c:close() end)
      return m, c
    end

    -- An error of a step ends the wait.
    local function step_until(m, what, fn)
      local raised
      wait.until_true(30, what, function()
        local ok, why = pcall(m.step, m, 0)
        raised = not ok and why
        return raised or fn()
      end)
      if raised then error(raised, 0) end
    end

    for _, library in ipairs { "blocking", "luv", "cqueues" } do
      local there = library == "blocking" or process.run(("lua5.4 -e 'require %q'"):format(library)) == ""
      local case = there and it or pending
      case(("runs the program of the documentation: %s%s"):format(library,
        there and "" or " (skipped: apt install lua-" .. library .. ")"), function()
        local dir = process.tmpname ".d"
        process.run("mkdir " .. process.quote(dir))
        process.write(dir .. "/hello.lua", HELLO)
        -- the server is shared: a namespace of our own in place of the default one
        local text = documented(library == "blocking" and "blocking.lua" or "with_"
          .. library .. ".lua"):gsub('"default"', ("%q"):format(ns))
          :gsub("kube.manager { ", ("%%0namespace = %q, "):format(ns))
        process.write(dir .. "/program.lua", 'io.stdout:setvbuf "line"\n' .. text)
        local here = process.run "pwd":gsub("%s+$", "")
        local build = os.getenv "KL_BUILD" or "build"
        local p = process.spawn { "sh", "-c",
          ("cd %s && exec %s program.lua"):format(process.quote(dir), process.lua()), env = {
            KUBECONFIG = (server.kubeconfig:find "^/" and "" or here .. "/") .. server.kubeconfig,
            LUA_PATH_5_4 = ("%s/lua/?.lua;%s/lua/?/init.lua;;"):format(here, here),
            LUA_CPATH_5_4 = ("%s/%s/lua/?.so;;"):format(here, build) } }
        local key = "card-" .. library
        card(key)
        wait.until_true(30, "a greeting", function()
          return not p:alive() or greeting(key) == "Hello, world!"
        end)
        assert.is_true(p:alive(), p:log())
        if library == "blocking" then
          p:wait_for_log(20, key .. "\tHello, world!")
          p:stop()
        else
          p:signal "TERM"
          assert.equal(0, p:wait(30), p:log())
        end
      end)
    end

    it("reports the state of its controllers, in the program's own thread", function()
      local told = 0
      local m = manager { controllers = { { name = "hello.lua", source = HELLO } }, on_change = function(m)
        assert.equal("hello", m:controllers()[1].name)
        told = told + 1
      end }
      assert.is_false(m:ready())
      m:start()
      step_until(m, "a controller that runs", function() return m:ready() end)
      assert.is_true(told > 0)
      card "told"
      step_until(m, "a greeting", function() return greeting "told" == "Hello, world!" end)
      local state = m:controllers()[1]
      assert.same({ "running", 1, 0 }, { state.state, state.generation, state.failing })
      assert.is_true(state.runs > 0)
      assert.is_true(m:leading())
      assert.match('controller_runtime_reconcile_total{controller="hello"', m:metrics())
      m:stop()
      assert.same({}, m:controllers())
      assert.is_false(m:ready())
      assert.equal(0, m:step())                                     -- it waits for nothing any more
      m:run()
    end)

    it("runs handlers of informers in steps, each of them once, also those behind one that raises", function()
      local c = kube.connect { kubeconfig = server.kubeconfig, cache_dir = false }
      finally(function() c:close() end)
      local f = kube.informers(c, { namespace = ns })
      local seen, raised = {}, 0
      local handler = f:informer("v1/Secret"):on { add = function(o)
        seen[o.metadata.name] = (seen[o.metadata.name] or 0) + 1
        if o.metadata.name == "bad" then error("a mistake", 0) end
      end }
      local m <close> = kube.manager { client = c, informers = f }
      m:start()
      for _, key in ipairs { "bad", "good" } do
        client:create { kind = "v1/Secret", namespace = ns, name = key }
      end
      wait.until_true(30, "both secrets", function()
        local ok, why = pcall(m.step, m, "100ms")
        if not ok then
          assert.equal("a mistake", why)
          raised = raised + 1
        end
        return seen.bad and seen.good
      end)
      assert.same({ 1, 1, 1 }, { seen.bad, seen.good, raised })
      assert.is_true(handler:synced())
    end)

    it("reloads when told to, and reports why it could not", function()
      local path = process.write(process.tmpname ".lua", HELLO)
      local m <close> = manager { controllers = { path } }
      m:start()
      step_until(m, "a controller that runs", function() return m:ready() end)
      assert.same({ { script = path, result = "unchanged" } }, m:reload())
      process.write(path, "return = 1")
      local said = m:reload()[1]
      assert.equal("refused", said.result)
      assert.match("unexpected symbol near '='", said.message)
      process.write(path, (HELLO:gsub("Hello, ", "Good morning, ")))
      assert.equal("taken", m:reload()[1].result)
      step_until(m, "the second generation", function() return m:controllers()[1].generation == 2 end)
      card "morning"
      step_until(m, "the new greeting", function() return greeting "morning" == "Good morning, world!" end)
    end)

    it("leads by a lease that it releases, writes nothing in a dry run, takes params", function()
      local m = manager { controllers = { { name = "hello.lua", source = HELLO } }, dry_run = true }
      m:start()
      card "dry"
      step_until(m, "a run", function() return m:controllers()[1].runs > 0 end)
      assert.is_nil(greeting "dry")
      m:stop()
      m = manager { controllers = { { name = "said.lua", source = HELLO:gsub('"Hello, "', "ctx.params.word")
        :gsub('name = "hello"', '%0, params = { word = "Hello, " }') } }, params = { word = "Ahoy, " },
        election = { name = "hello", namespace = ns, identity = "me" }, health = "127.0.0.1:0" }
      m:start()
      step_until(m, "the lease", function() return m:leading() end)
      step_until(m, "a greeting", function() return greeting "dry" == "Ahoy, world!" end)
      local _, health = m:addresses()
      assert.match("ok", process.run(("curl -fsS http://%s/readyz"):format(health)))
      m:stop()
      assert.equal("", client:get("coordination.k8s.io/v1/Lease", ns, "hello").spec.holderIdentity or "")
    end)

    it("allows ctx.http as its client is configured", function()
      local web = http.web()
      finally(function() web:stop() end)
      local script = HELLO:gsub('name = "hello"', ("%%0, http = %q"):format(web.url)):gsub("ctx:patch",
        ("who = ctx.http:get(%q).body %%0"):format(web.url .. "/text"))
      for _, allowed in ipairs { false, true } do
        local c = kube.connect { kubeconfig = server.kubeconfig, cache_dir = false, allow_http = allowed }
        local m = kube.manager { client = c, namespace = ns,
          controllers = { { name = "asks.lua", source = script } } }
        m:start()
        if not allowed then
          card "asked"
          step_until(m, "a failure", function() return m:controllers()[1].failing > 0 end)
          assert.is_nil(greeting "asked")
        else
          step_until(m, "a greeting", function() return greeting "asked" == "Hello, a text!" end)
        end
        c:close()
      end
    end)

    it("runs controllers made by the program, with their upvalues", function()
      local words, mark = { hello = "Good day" }, "?"
      local function polite(who)
        return words.hello .. ", " .. who .. mark
      end
      local function sum(n) return n == 0 and 0 or n + sum(n - 1) end
      local Greeter = {}
      function Greeter:says(who) return self.before .. polite(who) end
      local function greet(key)
        return function(map, ctx)
          local who = map("metadata.labels", "made")
          if not who then return end
          local _, why = pcall(function() error "here" end)
          ctx:patch(map, function(d)
            d.data[key] = Greeter.says({ before = ctx.params.before }, who) .. sum(3) .. kube.hash(who):len()
            d.data.where = why
          end)
        end
      end
      local line = debug.getinfo(greet, "S").linedefined + 4
      local one = kube.controller { name = "made-one", resource = "v1/ConfigMap",
        params = { before = ">" }, reconcile = greet "one" }
      local both = kube.controller { name = "made", resource = { "v1/Secret", "v1/ServiceAccount" },
        reconcile = function(o, ctx)
          if o("metadata.labels", "made") then
            ctx:patch(o, function(d) d.metadata.annotations.made = o.kind end)
          end
        end }
      mark = "!"                                                    -- as it is when the manager is made
      local m = manager { controllers = { one, { name = "hello.lua", source = HELLO }, both },
        params = { before = "> " } }
      mark = "no longer"
      m:start()
      local labels = { made = "world", hello = "world" }
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "made", labels = labels }
      client:create { kind = "v1/ServiceAccount", namespace = ns, name = "made", labels = labels }
      step_until(m, "what they wrote", function()
        return greeting "made" and client:get("v1/ConfigMap", ns, "made")("data.one")
          and client:get("v1/ServiceAccount", ns, "made")("metadata.annotations.made")
      end)
      local data = client:get("v1/ConfigMap", ns, "made").data
      assert.equal("> Good day, world!6" .. #kube.hash "world", data.one)
      assert.equal(("spec/e2e/manager_spec.lua:%d: here"):format(line), data.where)
      assert.equal("Hello, world!", data.greeting)
      local names = {}
      for i, state in ipairs(m:controllers()) do names[i] = state.name end
      table.sort(names)
      assert.same({ "hello", "made-one", "made-secret", "made-serviceaccount" }, names)
      assert.same({}, m:reload())                                   -- files alone
      m:stop()
    end)

    it("stops interruptibly; an interrupt ends the grace period", function()
      local program = process.write(process.tmpname ".lua", ([[
        local kube = require "kubelua"
        local c = kube.connect { kubeconfig = %q, cache_dir = false }
        local m = kube.manager { client = c, namespace = %q, grace = "1h",
          controllers = { { name = "busy.lua", source = %q } } }
        m:start()
        while m:controllers()[1].running == 0 do m:step "50ms" end
        local calls = 0
        debug.sethook(function()                 -- as lua5.4 does for ^C
          calls = calls + 1
          if calls == 5 then debug.sethook() error "interrupted!" end
        end, "c")
        local ok, why = pcall(m.stop, m)
        io.stderr:write(tostring(ok), " ", tostring(why), "\n")
        io.stderr:write(#m:controllers(), " controllers, ready: ", tostring(m:ready()), "\n")
        io.stderr:write(select(2, pcall(m.metrics, m)), "\n")
      ]]):format(server.kubeconfig, ns,
        [[return require "kubelua".controller { name = "busy", resource = "v1/ConfigMap",
          timeout = "2h", reconcile = function(_, ctx) ctx:sleep "1h" end }]]))
      card "busy"
      local p = process.spawn { "sh", "-c", "exec " .. process.lua() .. " " .. process.quote(program),
        env = { LUA_PATH_5_4 = "lua/?.lua;lua/?/init.lua;;",
          LUA_CPATH_5_4 = ("%s/lua/?.so;;"):format(os.getenv "KL_BUILD" or "build") } }
      assert.equal(0, p:wait(120), p:log())
      assert.match("false [^\n]*interrupted!\n0 controllers, ready: false\n[^\n]*the manager is stopping",
        p:log())
    end)

    it("ends with its client, and with its scope", function()
      local m, c = manager { controllers = { { name = "hello.lua", source = HELLO } } }
      m:start()
      c:close()
      assert.same({}, m:controllers())
      assert.error_matches(function() m:reload() end, "the manager has stopped, or its client was closed")
      m:stop()
      c = kube.connect { kubeconfig = server.kubeconfig, cache_dir = false }
      do
        local one <close> = kube.manager { client = c }
        assert.error_matches(function() kube.manager { client = c } end, "this client has a manager")
        one:start()
      end
      kube.manager { client = c }:stop()
      c:close()
    end)
  end)
end)

describe("kube.manager", function()
  local c
  lazy_setup(function() c = kube.connect { server = "http://127.0.0.1:1", cache_dir = false } end)
  lazy_teardown(function() c:close() end)

  it("copies a function with up to the maximum of locals", function()
    local function copied(n)
      local names, values = {}, {}
      for i = 1, n do names[i], values[i] = "v" .. i, i end
      names = table.concat(names, ", ")
      local reconcile = load(("local %s = %s\nreturn function() return %s end"):format(names,
        table.concat(values, ", "), names))()
      return pcall(carry.script, "x", { name = "x", reconcile = reconcile }, "v1/Pod")
    end
    assert.is_true(copied(148)) -- two are always there
    local ok, why = copied(149)
    assert.is_false(ok)
    assert.match("its functions use 151 locals and functions, 150 at most", tostring(why))
  end)

  it("explains invalid arguments", function()
    local function made(reconcile)
      return kube.controller { name = "x", resource = "v1/Pod", reconcile = reconcile }
    end
    local loop, twins = {}, { function() end, function() end }
    loop.inside = loop
    local hook = [[return require "kubelua".webhook { name = "x", resource = "v1/Pod",
      mutate = function() end }]]
    for _, case in ipairs {
      { {}, "client is missing" },
      { { client = c, controler = {} }, "unknown option 'controler'; did you mean 'controllers'" },
      { { client = c, controllers = { 7 } },
        "controllers%[1%] must be a file, what kube.controller returned, or { name =" },
      { { client = c, controllers = { {} } }, "controllers%[1%] must be a file, .*, got table" },
      { { client = c, controllers = { made(function() c:close() end) } },
        'controller "x" cannot be copied into worker states: the local "c", which reconcile uses, is a \z
          table with a metatable' },
      { { client = c, controllers = { made(function() return loop end) } },
        "which reconcile uses, %(inside%) is a table inside itself" },
      { { client = c, controllers = { made(function() return twins[1], twins[2] end) } },
        "two functions start on line %d+ of spec/e2e/manager_spec.lua; give each its own line" },
      { { client = c, controllers = { made(load("return (...)", "=gone")) } },
        "reconcile is not where it was" },
      { { client = c, controllers = { "no-such.lua" } }, "no%-such.lua" },
      { { client = c, controllers = { { name = "x.lua", source = "return = 1" } } },
        "x.lua:1: unexpected symbol" },
      { { client = c, controllers = { { name = "hook.lua", source = hook } } }, "hook.lua has webhooks" },
      { { client = c, controllers = { { source = "return 1" } } }, "give it a name, which messages use" },
      { { client = c, controllers = { { name = "x.lua", source = HELLO } }, params = { wrod = 1 } },
        "no controller here has a param wrod" },
      { { client = c, informers = { 1 } }, "informers%[1%] must be what kube.informers gives" },
      { { client = c, workers = 0 }, "workers must be at least 1" },
      { { client = c, dry_run = "client" }, 'dry_run must be true or "server"' },
      { { client = c, election = {} }, "election: name is missing" },
      { { client = c, log = "loud" }, "loud" },
      { { client = c, metrics = "nowhere" }, "nowhere" },
    } do
      local ok, why = pcall(function() kube.manager(case[1]):start() end)
      assert.is_false(ok, case[2])
      assert.match(case[2], tostring(why))
    end
  end)

  it("suggests the nearest name for a mistyped call", function()
    local d <close> = kube.connect { server = "http://127.0.0.1:1", cache_dir = false }
    local m <close> = kube.manager { client = d }
    assert.error_matches(function() m:strat() end,
      "m:strat: unknown method of a manager; did you mean 'start'")
  end)
end)
