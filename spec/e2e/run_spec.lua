-- run_spec.lua - kubelua run: it reconciles existing objects, takes over a saved script, and restores deleted
-- owned objects.
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

servers.each(function(name, start)
  describe("`kubelua run` against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "run")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("reconciles existing and new objects", function()
      controller.ask(client, ns, 1, 20)
      local run = controller.start(server, controller.answering(ns, "!"))
      controller.await_answers(client, ns, 20, 30, function(ask) return ask .. "!" end)
      controller.ask(client, ns, 21, 40)
      controller.await_answers(client, ns, 40, 30, function(ask) return ask .. "!" end)
      controller.finish(run)
    end)

    it("takes a saved script, and keeps the old one when the new one is broken", function()
      local mine = controller.namespace(client, "reload")
      controller.ask(client, mine, 1, 3)
      local run = controller.start(server, controller.answering(mine, " one"))
      controller.await_answers(client, mine, 3, 30, function(ask) return ask .. " one" end)

      process.write(run.script_path, "return kube.controler {")
      -- Lua cuts the front off a long path
      run:wait_for_log(20, run.script_path:match "/[^/]+$" .. ":1:")
      controller.ask(client, mine, 4, 6)
      controller.await_answers(client, mine, 6, 30, function(ask) return ask .. " one" end)

      process.write(run.script_path, controller.answering(mine, " two"))
      controller.ask(client, mine, 7, 9)
      -- New logic runs for all existing objects.
      controller.await_answers(client, mine, 9, 60, function(ask) return ask .. " two" end)
      controller.finish(run)
    end)

    it("owns applied objects, and restores deleted ones", function()
      local mine = controller.namespace(client, "owns")
      client:create { kind = "v1/ConfigMap", namespace = mine, name = "parent", data = { ask = "me" } }
      local run = controller.start(server, ([[
        local kube = require "kubelua"
        return kube.controller {
          name = "owner-%s", resource = "v1/ConfigMap", owns = { "v1/Secret" },
          reconcile = function(map, ctx)
            if map.metadata.namespace ~= %q or map.metadata.name ~= "parent" then return end
            ctx:apply { kind = "v1/Secret", name = "child", stringData = { of = map.data.ask } }
          end,
        }
      ]]):format(mine, mine))
      local first = wait.until_true(30, "the child", function()
        return client:get("v1/Secret", mine, "child")
      end)
      assert.equal("parent", first("metadata.ownerReferences[1].name"))
      client:delete("v1/Secret", mine, "child")
      wait.until_true(30, "another child", function()
        local child = client:get("v1/Secret", mine, "child")
        return child and child.metadata.uid ~= first.metadata.uid
      end)
      controller.finish(run)
    end)
  end)
end)
