-- refusal_spec.lua - a script that is rejected when it is saved: the log, the Event, `kubelua reload`, the
-- control socket and the metric report the same, and the old script keeps running.
-- real in asan: what scripts do to the process, on both servers

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local kube = require "kubelua"

local ALL = sizes.of { short = 0, long = 1 } == 1
local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local SOUND = [[
local kube = require "kubelua"
return kube.controller { name = "sound", resource = "v1/ConfigMap", reconcile = function(o, ctx)
  ctx.log:info("sees %s", o.metadata.name)
end }
]]
local HEAD = 'local kube = require "kubelua"\n'
local function spec_of(fields)
  return HEAD .. 'return kube.controller { name = "sound", resource = "v1/ConfigMap",\n  ' .. fields
    .. ',\n  reconcile = function() end }\n'
end

-- The mistake: its line, and the message of each report, which names budgets and rules.
local REFUSALS = {
  { "does not compile", HEAD .. "return (\n", 3, "unexpected symbol near <eof>" },
  { "raises", HEAD .. "local nothing\nreturn nothing.field\n", 3, "attempt to index a nil value" },
  { "has an unknown key", spec_of "onwer = 1", 2, "controller \"sound\": unknown key 'onwer'; " },
  { "reaches for files", HEAD .. "io.open 'x'\n", 2, "'io' is not available to scripts: scripts do no I/O" },
  { "calls the API", HEAD .. "return require 'kubelua.client'\n", 2,
    "module \"kubelua.client\" is not available to scripts" },
  { "spends the load's processor time", HEAD .. "while true do end\n", 2,
    "loading takes longer than 2s of processor time", dear = true },
  { "spends the load's memory", HEAD .. "local t, x = {}, ('x'):rep(1e3):rep(1e3) while true do t[#t + 1] \z
    = x .. #t end\n", 2,
    "loading needs more than 256Mi of memory", dear = true },
  { "has a construct that Lua gets wrong", HEAD .. "local t = {}\nlocal function f(a) return t[a == 1] end\n",
    3, "a comparison is the index of a variable of an outer function" },
  { "has a metamethod that Lua gets wrong", HEAD .. "setmetatable({}, { __concat = print })\n", 2,
    "a metatable of a script may not have __concat" },
}

-- The time of a load differs at each try.
local function untimed(text) return (text:gsub("%([%w.]+ have passed%)", "(...)")) end

servers.each(function(name, start)
  describe("a script that is refused, against " .. name .. ",", function()
    local server, client, ns, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "refusal")
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "logic", data = { ["main.lua"] = SOUND } }
      run = controller.start(server, "configmap/" .. ns .. "/logic", "--namespace", ns,
        "--metrics-bind-address", "127.0.0.1:0")
      run:wait_for_log(60, "controller is running controller=sound")
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    local function refused_metric()
      local text = controller.metrics(run)
      local _, at = text:find('kubelua_reload_refused{script="configmap/' .. ns .. '/logic"} ', 1, true)
      return at and text:sub(at + 1, at + 1)
    end

    local function event_with(text)
      for event in client:each("events.k8s.io/v1/Event", { namespace = ns }) do
        if event.reason == "ReloadRefused" and event.note:find(text, 1, true) then return event end
      end
    end

    for n, case in ipairs(REFUSALS) do
      if case.dear and not ALL and name ~= servers.EMBEDDED then goto continue end
      local what, text, line, why = table.unpack(case)
      it("is reported everywhere in the same words: it " .. what, function()
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "logic" },
          { data = { ["main.lua"] = text } })
        local event = wait.until_true(60, "an Event that says " .. why, function() return event_with(why) end)
        assert.same({ "Warning", "logic" }, { event.type, event.regarding.name })
        local said, code = process.run(("%s reload --pid %d"):format(KUBELUA, run.pid))
        assert.equal(1, code, said)
        local message = said:match "refused, generation %d+ runs on: ([^\n]*)"
        local place = ("/logic/main.lua:%d: "):format(line)
        assert.truthy(message and message:find(place, 1, true) and message:find(why, 1, true), said)
        message = untimed(message)
        assert.truthy(untimed(event.note):find(message, 1, true), event.note .. "\n" .. message)
        local quoted = kube.encode(message):sub(2, -2)
        local logged = untimed(run:log()):find("the new script was refused; the old one keeps running \z
          script=configmap/" .. ns
          .. "/logic error=\"" .. quoted, 1, true)
        assert.truthy(logged, quoted .. "\n" .. run:log())
        assert.equal("1", refused_metric())

        client:create { kind = "v1/ConfigMap", namespace = ns, name = "seen-" .. n }
        run:wait_for_log(60, "sees seen-" .. n)
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "logic" },
          { data = { ["main.lua"] = SOUND } })
        wait.until_true(60, "the metric", function() return refused_metric() == "0" end)
      end)
      ::continue::
    end
  end)
end)
