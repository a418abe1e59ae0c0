-- table_spec.lua - options of a controller's table other than caches: several kinds, predicates of watches,
-- triggers, memory; on both API servers.

local controller = require "support.controller"
local servers = require "support.servers"
local wait = require "support.wait"

servers.each(function(server_name, start)
  describe("a controller's table, against " .. server_name, function()
    local client, ns, run
    local begin = controller.frame("table", start, function(_, c, n) client, ns = c, n end)

    local function play(text, ...)
      run = begin('local kube = require "kubelua"\n' .. text, "--namespace", ns, ...)
    end

    -- The counter that a script increments in a ConfigMap.
    local function count(name)
      local o = client:get("v1/ConfigMap", ns, name)
      return o and tonumber(o("data.n")) or 0
    end

    local COUNT = [[
      local function count(ctx, name)
        local o = ctx.live:get("v1/ConfigMap", ctx.namespace, name)
        ctx:apply({ kind = "v1/ConfigMap", name = name,
          data = { n = tostring((o and tonumber(o("data.n")) or 0) + 1) } }, { force = true })
      end
    ]]

    it("reconciles several kinds under one name", function()
      play [[
        return kube.controller { name = "many", resource = { "v1/ConfigMap", "v1/Secret" },
          reconcile = function(o, ctx)
            if o("metadata.labels.mark") == "me" then
              ctx:patch(o, function(d)
                d.metadata.labels.mark = "done" d.metadata.annotations = { by = o.kind }
              end)
            end
          end }
      ]]
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", labels = { mark = "me" } }
      client:create { kind = "v1/Secret", namespace = ns, name = "a", labels = { mark = "me" } }
      for _, kind in ipairs { "v1/ConfigMap", "v1/Secret" } do
        local o = wait.until_true(30, kind, function()
          local it_is = client:get(kind, ns, "a")
          return it_is("metadata.labels.mark") == "done" and it_is
        end)
        assert.equal(kind:match "[^/]+$", o.metadata.annotations.by)
        local managers = {}
        for _, m in ipairs(o.metadata.managedFields) do managers[m.manager] = true end
        assert.is_true(managers.many)
      end
    end)

    it("runs on relevant changes of a watched kind, and on a selector's transitions", function()
      play(COUNT .. [[
        return kube.controller { name = "watcher", resource = "v1/ServiceAccount",
          when = function() return false end,
          watches = { ["v1/Secret"] = { "same-name", when = { "data", selector = "tier=front" } } },
          reconcile = function(o, ctx) if o.metadata.name == "it" then count(ctx, "seen") end end }
      ]])
      client:create { kind = "v1/ServiceAccount", namespace = ns, name = "it" }
      wait.until_true(30, "the first run", function() return count "seen" == 1 end)
      client:create { kind = "v1/Secret", namespace = ns, name = "it", labels = { tier = "back" } }
      local function change(f) client:patch(client:get("v1/Secret", ns, "it"), f) end
      change(function(s) s.data = { a = "eA==" } end)
      change(function(s) s.metadata.labels.tier = "front" end)               -- the first that counts
      wait.until_true(30, "the transition", function() return count "seen" == 2 end)
      change(function(s) s.metadata.annotations = { x = "y" } end)
      change(function(s) s.data.a = "eQ==" end)                              -- the second
      wait.until_true(30, "the change of data", function() return count "seen" == 3 end)
      client:delete("v1/Secret", ns, "it")                                   -- and a delete
      wait.until_true(30, "the delete", function() return count "seen" == 4 end)
    end)

    it("runs every key again at its interval", function()
      play(COUNT .. [[
        return kube.controller { name = "ticker", resource = "v1/ServiceAccount",
          every = "1s", when = function() return false end,
          reconcile = function(o, ctx) if o.metadata.name == "it" then count(ctx, "ticks") end end }
      ]])
      client:create { kind = "v1/ServiceAccount", namespace = ns, name = "it" }
      wait.until_true(60, "three ticks", function() return count "ticks" >= 4 end)
    end)

    it("fails only the key that needs too much memory", function()
      play [[
        local hoard
        return kube.controller { name = "hoarder", resource = "v1/ConfigMap", memory = "8Mi",
          reconcile = function(o, ctx)
            if o("data.much") then
              hoard = nil
              local parts = {}
              for i = 1, 1e9 do parts[i] = ("x"):rep(1000) .. i end
              hoard = parts
            elseif o("data.ask") then
              ctx:patch(o, function(d) d.data.answer = ("y"):rep(1000, d.data.ask):sub(1, 10) end)
            end
          end }
      ]]
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "much", data = { much = "1" } }
      run:wait_for_log(30, "not enough memory: a worker's state may hold 8Mi (`memory` of hoarder)")
      for i = 1, 20 do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = "a" .. i, data = { ask = "q" } }
      end
      wait.until_true(60, "answers", function()
        for i = 1, 20 do
          if not client:get("v1/ConfigMap", ns, "a" .. i)("data.answer") then return false end
        end
        return true
      end)
    end)
  end)
end)
