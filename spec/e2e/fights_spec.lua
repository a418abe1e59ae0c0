-- fights_spec.lua - a key that its own writes wake, and a field that two controllers overwrite in turn, are
-- reported and slowed down; other keys are not.

local controller = require "support.controller"
local process = require "support.process"
local promtext = require "support.promtext"
local servers = require "support.servers"
local wait = require "support.wait"

local COUNTER = [[
local kube = require "kubelua"
return kube.controller {
  name = "counter", resource = "v1/ConfigMap",
  reconcile = function(map, ctx)
    if map.metadata.name == "good" then
      if map("data.echo") ~= map("data.touch") then
        ctx:patch(map, function(m) m.data.echo = m.data.touch end)
      end
    elseif map.metadata.name == "bad" then
      ctx:patch(map, function(m)
        m.metadata.annotations["example.com/seen"] =
          tostring((tonumber(m("metadata.annotations", "example.com/seen")) or 0) + 1)
      end)
    end
  end,
}
]]

local function replicas(name, n, more)
  return ([[
    local kube = require "kubelua"
    return kube.controller {
      name = "%s", resource = "apps/v1/Deployment", %s
      reconcile = function(d, ctx)
        if d.spec.replicas ~= %d then ctx:patch(d, { spec = { replicas = %d } }) end
      end,
    }
  ]]):format(name, more or "", n, n)
end

servers.each(function(name, start)
  describe("against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function() ns = controller.namespace(client, "fights") end)

    local function run(script)
      return controller.start(server, script, "--namespace", ns, "--metrics-bind-address", "127.0.0.1:0")
    end

    local function metric(p, family, who)
      local families = promtext.parse(controller.metrics(p))
      for _, sample in ipairs(families[family].samples) do
        if sample.labels.controller == who then return sample.value end
      end
    end

    local function event(reason, object)
      return wait.until_true(30, "an Event " .. reason, function()
        for e in client:each("events.k8s.io/v1/Event", { namespace = ns }) do
          if e("reason") == reason and e("regarding.name") == object then return e end
        end
      end)
    end

    it("a key that triggers itself by its own writes is named and slowed down, and no other", function()
      for _, key in ipairs { "good", "bad" } do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = { touch = "0" } }
      end
      local p = run(COUNTER)
      p:wait_for_log(60, "a key triggers itself by its own writes; it is slowed down")
      local line = p:log():match "[^\n]*a key triggers itself by its own writes[^\n]*"
      assert.matches(("key=%s/bad "):format(ns):gsub("%-", "%%-"), line)
      assert.truthy(line:find(("object=\"v1/ConfigMap %s/bad\""):format(ns), 1, true), line)
      assert.truthy(line:find("metadata.annotations", 1, true), line)
      assert.matches("its own writes triggered it %d+ times in a row", event("WriteLoop", "bad").note)
      assert.equal(1, metric(p, "kubelua_write_loops_total", "counter"))
      assert.equal(1, metric(p, "kubelua_slowed_keys", "counter"))
      -- It slows down: a handful of runs instead of hundreds in a second.
      local function seen()
        return tonumber(client:get("v1/ConfigMap", ns, "bad")("metadata.annotations", "example.com/seen"))
      end
      local before = seen()
      for i = 1, 10 do
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "good" },
          { data = { touch = tostring(i) } })
        wait.until_true(30, "an echo", function()
          return client:get("v1/ConfigMap", ns, "good")("data.echo") == tostring(i)
        end)
      end
      assert.is_true(seen() - before < 10, ("it went from %d to %d"):format(before, seen()))
      -- Logic without the fight starts without delays.
      process.write(p.script_path .. ".new", (COUNTER:gsub('== "bad"', '== "nobody"')))
      assert(os.rename(p.script_path .. ".new", p.script_path))
      wait.until_true(30, "the slate is clean", function()
        return metric(p, "kubelua_slowed_keys", "counter") == 0
      end)
      assert.is_nil(p:log():find("a key that was slowed down has settled", 1, true))
      controller.finish(p)
    end)

    it("a field that two controllers write in turn is named, with the other one if known, and both are \z
      slowed down", function()
      client:create { kind = "apps/v1/Deployment", namespace = ns, name = "web",
        spec = { replicas = 1, selector = { matchLabels = { a = "b" } },
          template = { metadata = { labels = { a = "b" } },
            spec = { containers = { { name = "c", image = "i" } } } } } }
      local left, right = run(replicas("left", 3, "managed_fields = true,")), run(replicas("right", 5))
      local TOLD = "two managers fight over a field; its key is slowed down"
      left:wait_for_log(60, TOLD)
      local line = left:log():match("[^\n]*" .. TOLD .. "[^\n]*")
      for _, words in ipairs { ("key=%s/web "):format(ns),
        ("object=\"apps/v1/Deployment %s/web\""):format(ns), "path=spec.replicas ", "other=right " } do
        assert.truthy(line:find(words, 1, true), ("%q in %s"):format(words, line))
      end
      assert.truthy(event("FieldFight", "web").note:find("is written alternately by this controller and", 1,
        true))
      assert.equal(1, metric(left, "kubelua_field_fights_total", "left"))
      controller.finish(right)
      controller.finish(left)
    end)
  end)
end)
