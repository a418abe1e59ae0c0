-- reload_keys_spec.lua - the keys that run again on new logic: all, the failed ones, or none; and the time
-- limit for runs on the old logic.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

-- Each run appends its generation to data.seen; "bad" fails on the first one, "gone" is given up at once.
-- Only data.touch wakes a key.
local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "notes", resource = "v1/ConfigMap", when = { "data.touch" },
  backoff = { base = "1h", max = "1h" }, OPTIONS
  reconcile = function(map, ctx)
    if not map("data.touch") then return end
    if map.metadata.name == "bad" and ctx.generation == 1 then error "not yet" end
    ctx:patch(map, function(m) m.data.seen = (m.data.seen or "") .. ctx.generation end)
  end,
}
-- ROUND
]]

servers.each(function(name, start)
  describe("new logic, against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function() ns = controller.namespace(client, "reloadkeys") end)

    local function save(path, text)
      process.write(path .. ".new", text)
      assert(os.rename(path .. ".new", path))
    end

    local function touch(key, value)
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = key }, { data = { touch = value } })
    end
    local function saw(key, seen)
      wait.until_true(30, key .. " saw " .. seen, function()
        local got = client:get("v1/ConfigMap", ns, key)("data.seen") or ""
        if got ~= seen then error("it saw " .. got, 0) end
        return true
      end)
    end

    -- The process, after generation 1 has looked at "good" and failed on "bad", and generation 2 has taken
    -- over.
    local function reloaded(options, ...)
      local text = SCRIPT:gsub("OPTIONS", options)
      local path = process.write(process.tmpname ".lua", text)
      for _, key in ipairs { "good", "bad" } do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = { touch = "0" } }
      end
      local p = controller.start(server, path, "--namespace", ns, ...)
      saw("good", "1")
      p:wait_for_log(30, "reconcile failed")
      save(path, (text:gsub("ROUND", "round 2")))
      p:wait_for_log(30, "a new generation took over")
      return p
    end

    it("runs every key again by itself", function()
      local p = reloaded ""
      saw("good", "12")
      saw("bad", "2")
      controller.finish(p)
    end)

    for what, words in pairs { ["its spec"] = { 'on_reload = "failing",', "--reload-keys", "none" },
      ["the command line"] = { "", "--reload-keys", "failing" } } do
      it("runs only failed keys again, if " .. what .. " says so", function()
        local p = reloaded(table.unpack(words))
        saw("bad", "2")
        touch("good", "1")
        saw("good", "12")                  -- once, by that touch
        controller.finish(p)
      end)
    end

    it("runs no key again if told so, and sees every later change", function()
      local p = reloaded('on_reload = "none",')
      touch("good", "1")
      saw("good", "12")
      touch("bad", "1")
      saw("bad", "2")                      -- once: it waits no longer
      controller.finish(p)
    end)

    for what, options in pairs { ["a run"] = "", ["a run in an isolated process"] = "isolate = true," } do
      it("ends " .. what .. " on the old logic that goes on for too long", function()
        client:create { kind = "v1/ConfigMap", namespace = ns, name = "bed", data = {} }
        local text = ([[
          local kube = require "kubelua"
          return kube.controller {
            name = "sleeps", resource = "v1/ConfigMap", %s
            reconcile = function(map, ctx)
              if map.metadata.name ~= "bed" then return end
              if ctx.generation == 1 then
                ctx.log:info "asleep"
                ctx:sleep "1h"
              end
              ctx:patch(map, function(m) m.data.awake = "on " .. ctx.generation end)
            end,
          }
        ]]):format(options)
        local path = process.write(process.tmpname ".lua", text)
        local p = controller.start(server, path, "--namespace", ns, "--reload-deadline", "100ms")
        p:wait_for_log(30, "asleep")
        save(path, text .. "-- another")
        wait.until_true(30, "it is awake", function()
          return client:get("v1/ConfigMap", ns, "bed")("data.awake") == "on 2"
        end)
        p:wait_for_log(10, "a run on the old logic was ended; its key runs again on the new logic")
        controller.finish(p)
      end)
    end
  end)
end)

describe("kubelua run --reload-keys", function()
  it("has three values", function()
    local out, code = process.run((os.getenv "KUBELUA" or "build/kubelua")
      .. " run x.lua --reload-keys some 2>&1")
    assert.equal(2, code)
    assert.truthy(out:find("--reload-keys must be all, failing or none, not \"some\"", 1, true), out)
  end)
end)
