-- sandbox_spec.lua - scripts that never return, in `kubelua run` on both API servers: each fails only its own
-- key, with a message that names the budget, while the other keys of the same worker continue.
-- real in asan: what scripts do to the process, on both servers

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

-- Ways to never return, by the name of the ConfigMap that requests them.
local WAYS = {
  { "plain", "while true do end" },
  { "pcalls", "while true do pcall(function() while true do end end) end" },
  { "errors", "while true do pcall(error, 'x') end" },
  { "handler", "xpcall(error, function() while true do end end)" },
  { "handlers", "while true do xpcall(function() while true do end end, function() while true do end \z
    end) end" },
  { "wraps", "while true do pcall(coroutine.wrap(function() while true do end end)) end" },
  { "resumes", "while true do coroutine.resume(coroutine.create(function() end)) end" },
  { "nested", [[local function deep(n)
      if n == 0 then while true do end end
      return coroutine.resume(coroutine.create(deep), n - 1)
    end
    while true do deep(20) end]] },
  { "nested-pcalls", "local n, f = 0 f = function() n = n + 1 while n > 2000 do end pcall(f) return f() \z
    end f()" },
  { "nested-xpcalls", "local n, f = 0 f = function() n = n + 1 while n > 2000 do end xpcall(f, function() \z
    end) return f() end f()" },
  { "nested-resumes", "local function f() coroutine.resume(coroutine.create(f)) return f() end f()" },
  { "nested-wraps", "local function f() pcall(coroutine.wrap(f)) return f() end f()" },
  { "nested-closing", [[local mt = { __close = function() while true do end end }
      local n, f = 0
      f = function() local x <close> = setmetatable({}, mt) n = n + 1 while n > 1000 do end pcall(f) f() end
      f()]] },
  { "old-coroutine", "while true do pcall(coroutine.resume, OLD, function() while true do end end) end" },
  { "closing", "local x <close> = setmetatable({}, { __close = function() while true do end end }) while \z
    true do end" },
  { "closing-coroutine", [[local co = coroutine.create(function()
      local x <close> = setmetatable({}, { __close = function() while true do end end })
      coroutine.yield()
    end)
    coroutine.resume(co)
    coroutine.close(co)]] },
  { "closing-wrap", [[coroutine.wrap(function()
      local x <close> = setmetatable({}, { __close = function() while true do end end })
      while true do end
    end)()]] },
  { "comparator", "table.sort({ 1, 2, 3 }, function() while true do end end)" },
  { "comparator-that-sleeps", [[table.sort({ 1, 2 }, function()
      while true do pcall(ctx.sleep, ctx, "9999h") end
    end)]] },
  { "callback", "('x'):gsub('x', function() while true do end end)" },
  { "metamethod", "return setmetatable({}, { __index = function() while true do end end }).x" },
  { "text", "error(setmetatable({}, { __tostring = function() while true do end end }))" },
  { "jump", "::again:: goto again" },
  { "after-a-wait", "ctx:sleep '1ms' while true do end" },
}

-- Each other failure has its own controller, since some of them park it.
local SCRIPT = [[
local kube = require "kubelua"
local NS = %q
local OLD = coroutine.create(function(f) while true do pcall(f) f = coroutine.yield() end end)
local WAYS = {
%s
}
local function bad(o, name) return o.metadata.name == name end
local function forever() while true do end end
local kept = {}

local function c(name, spec)
  spec.name, spec.resource, spec.namespaces = name .. "-" .. NS, spec.resource or "v1/ConfigMap", { NS }
  spec.cpu, spec.backoff = spec.cpu or "50ms", { base = "1h", max = "1h" }
  local seen = spec.reconcile or function() end
  spec.reconcile = function(o, ctx)
    seen(o, ctx)
    if o("data.ask") then ctx.log:info("seen by %%s: %%s", name, o.metadata.name) end
  end
  return kube.controller(spec)
end

return {
  c("loops", { reconcile = function(o, ctx)
    local way = WAYS[o.metadata.name]
    if way then return way(ctx) end
    if o("data.ask") and not o("data.answer") then ctx:patch(o, function(m) m.data.answer = "yes" end) end
  end }),
  c("late", { cpu = "1h", timeout = "200ms", reconcile = function(o)
    if bad(o, "late") then forever() end
  end }),
  c("bombs", { memory = "8Mi", cpu = "1m", reconcile = function(o)
    while bad(o, "bomb") do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end
    while bad(o, "hoard") do kept[#kept + 1] = ("x"):rep(1000) .. #kept end
  end }),
  c("serial", { serial = function(o) if bad(o, "serial") then forever() end end }),
  c("predicate", { when = function(now) if bad(now, "predicate") then forever() end return true end }),
  c("mapping", { resource = "v1/ServiceAccount",
    watches = { ["v1/ConfigMap"] = function(o) if bad(o, "mapping") then forever() end end } }),
  c("index", { indexes = { letter = function(o)
    if bad(o, "index") then forever() end return o.metadata.name:sub(1, 1)
  end } }),
  c("urgent", { priority = function(o) if bad(o, "urgent") then while true do pcall(forever) end end end }),
  c("grows", { memory = "8Mi", cpu = "1m", resource = "v1/ServiceAccount",
    watches = { ["v1/ConfigMap"] = function(o)
      if bad(o, "grows") then local t = {} while true do t[#t + 1] = {} end end
    end } }),
  c("jailed", { isolate = true, reconcile = function(o, ctx)
    if bad(o, "jailed") then
      table.sort({ 1, 2 }, function() while true do pcall(ctx.sleep, ctx, "9999h") end end)
    end
  end }),
  kube.webhook { name = "hook-" .. NS, resource = "v1/ConfigMap", namespaces = { NS },
    operations = { "CREATE" }, cpu = "50ms", memory = "8Mi",
    validate = function(o)
      if bad(o, "hooked") then forever() end
      if bad(o, "hooked-much") then pcall(function() return #("x"):rep(1e8) end) end
    end },
}
]]

local function script(ns)
  local ways = {}
  for i, way in ipairs(WAYS) do ways[i] = ("  [%q] = function(ctx) %s end,"):format(way[1], way[2]) end
  return SCRIPT:format(ns, table.concat(ways, "\n"))
end

servers.each(function(name, start)
  describe("a script that never returns, against " .. name .. ",", function()
    local server, client, ns, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "sandbox")
      run = controller.start(server, script(ns), "--metrics-bind-address", "127.0.0.1:0",
        "--health-probe-bind-address", "127.0.0.1:0",
        "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto", "--grace-period", "100ms")
      run:wait_for_log(60, "controller is running controller=jailed-" .. ns)
    end)
    lazy_teardown(function()
      if client then
        client:delete("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "hook-" .. ns)
      end
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    local function map(key, data)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = data }
    end

    -- The log line with all of these texts.
    local function line(...)
      local wanted = { ... }
      return wait.until_true(60, table.concat(wanted, ", "), function()
        for text in run:log():gmatch "[^\n]+" do
          local all = true
          for _, part in ipairs(wanted) do all = all and text:find(part, 1, true) end
          if all then return text end
        end
      end)
    end

    local asked = 0
    -- A new question is answered: the worker and the other controllers still run.
    local function others_go_on(...)
      asked = asked + 1
      local key = "question-" .. asked
      map(key, { ask = "?" })
      wait.until_true(60, "an answer", function()
        return client:get("v1/ConfigMap", ns, key)("data.answer")
      end)
      for _, who in ipairs { ... } do line(("seen by %s: %s "):format(who, key)) end
    end

    local function get(kind, path)
      local address = line("serving " .. kind):match "address=(%S+)"
      return (process.run(("curl -sS --max-time 30 http://%s/%s"):format(address, path)))
    end

    for _, way in ipairs(WAYS) do
      it("fails its key alone: " .. way[1], function()
        map(way[1])
        local text = line("reconcile failed controller=loops-" .. ns, "key=" .. ns .. "/" .. way[1] .. " ",
          "cpu budget of 50ms spent (`cpu` of loops-" .. ns .. ")")
        assert.matches("%.lua:%d+: cpu budget", text)
        others_go_on "loops"
      end)
    end

    it("is stopped by its timeout, too", function()
      map "late"
      line("reconcile failed controller=late-" .. ns,
        "timed out after 200ms while computing: raise `timeout` in the spec of late-" .. ns)
      others_go_on "late"
    end)

    it("fails its key alone in an isolated process, too, where it sleeps in a comparator", function()
      map "jailed"
      line("reconcile failed controller=jailed-" .. ns, "key=" .. ns .. "/jailed ",
        "cpu budget of 50ms spent (`cpu` of jailed-" .. ns .. ")")
      others_go_on "jailed"
    end)

    it("is stopped by its memory limit, even inside pcall", function()
      map "bomb"
      local text = line("reconcile failed controller=bombs-" .. ns,
        "not enough memory: a worker's state may hold 8Mi (`memory` of bombs-" .. ns .. ")")
      assert.matches("%.lua:%d+: not enough memory", text)
      others_go_on "bombs"
      map "hoard"
      line("reconcile failed controller=bombs-" .. ns, "key=" .. ns .. "/hoard ", "not enough memory")
      others_go_on "bombs"
      line("a worker's state was replaced by a fresh one", "controller=bombs-" .. ns)
    end)

    it("in `serial` fails its key alone", function()
      map "serial"
      line("reconcile failed controller=serial-" .. ns, "key=" .. ns .. "/serial ", "the `serial` function: ",
        "cpu budget of 50ms spent")
      others_go_on "serial"
    end)

    it("in a webhook is answered by the failure policy", function()
      map("hooked-not", { ask = "?" })
      wait.until_true(60, "the API server calls the webhook", function()
        local o, e = kube.try(map, "hooked")
        if o then client:delete("v1/ConfigMap", ns, "hooked") end
        return not o and tostring(e):find("cpu budget of 50ms spent (`cpu` of hook-" .. ns .. ")", 1, true)
      end)
      local _, e = kube.try(map, "hooked-much")
      assert.truthy(tostring(e):find("not enough memory: a worker's state may hold 8Mi (`memory` of hook-"
        .. ns .. ")", 1, true), tostring(e))
      others_go_on()
    end)

    for _, case in ipairs {
      { "predicate", "`when` function", true }, { "mapping",
        "mapping function of watches[\\\"v1/ConfigMap\\\"]" },
      { "index", "function of index letter" }, { "urgent", "`priority` function" },
      { "grows", "mapping function of watches[\\\"v1/ConfigMap\\\"]", false,
        "not enough memory: a worker's state may hold 8Mi" },
    } do
      it("in the functions of the mapper parks its controller: " .. case[1], function()
        map(case[1])
        if case[3] then
          client:patch({ kind = "v1/ConfigMap", namespace = ns, name = case[1] },
            { data = { changed = "yes" } })
        end
        line("a function exceeded its budget: the controller is parked until its script changes",
          "controller=" .. case[1] .. "-" .. ns, case[2], case[4] or "cpu budget of 50ms spent")
        wait.until_true(60, "not ready", function()
          return get("health probes", "readyz/" .. case[1] .. "-" .. ns):find("parked: ", 1, true)
        end)
        others_go_on("loops", "late", "bombs", "serial")
      end)
    end

    it("is counted by budget", function()
      local text = get("metrics", "metrics")
      local function count(who, budget)
        local _, at = text:find(('kubelua_budget_exceeded_total{controller="%s-%s",budget="%s"} '):format(who,
          ns, budget), 1, true)
        return tonumber(text:match("^%d+", at and at + 1))
      end
      assert.equal(#WAYS, count("loops", "cpu"))
      -- On a busy machine an ordinary run may exceed its 200 ms, too, and is retried.
      assert.is_true(count("late", "timeout") >= 1)
      assert.equal(2, count("bombs", "memory"))
      assert.equal(1, count("serial", "cpu"))
      assert.equal(1, count("predicate", "cpu"))
      assert.equal(1, count("grows", "memory"))
    end)
  end)
end)
