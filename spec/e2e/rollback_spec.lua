-- rollback_spec.lua - new logic that fails or writes much more than the old logic is rolled back: the old
-- logic runs again, and the log, the metrics and an Event report why.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local MAPS = 60

local function script(body)
  return ([[
    local kube = require "kubelua"
    return {
      kube.controller {
        name = "echo", resource = "v1/ConfigMap",
        reconcile = function(map, ctx)
          if not map("data.touch") then return end
          %s
        end,
      },
      kube.controller { name = "bystander", resource = "v1/Secret", reconcile = function() end },
    }
  ]]):format(body)
end

local function echoing(word)
  return script(([[local echo = "%s " .. map.data.touch
    if map("data.echo") ~= echo then ctx:patch(map, function(m) m.data.echo = echo end) end]]):format(word))
end
local FAILING = script [[error "no such luck"]]
local COUNTING = script [[ctx:patch(map,
  function(m) m.data.count = tostring((tonumber(m.data.count) or 0) + 1) end)]]

servers.each(function(name, start)
  describe("a generation that is much worse than the one before it, against " .. name, function()
    local server, client, ns, run, path
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function save(text)
      process.write(path .. ".new", text)
      assert(os.rename(path .. ".new", path))
    end

    local function touch(key, value)
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = key }, { data = { touch = value } })
    end

    local function echoes(key, echo)
      wait.until_true(30, key .. " echoes " .. echo, function()
        local got = client:get("v1/ConfigMap", ns, key)("data.echo")
        if got ~= echo then error(("it is %s; the log:\n%s"):format(tostring(got), run:log()), 0) end
        return true
      end)
    end

    local function begin(maps, ...)
      ns = controller.namespace(client, "rollback")
      for i = 1, maps do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = "map-" .. i, data = { touch = "0" } }
      end
      path = process.write(process.tmpname ".lua", echoing "old")
      run = controller.start_with({ "POD_NAME=kubelua-0", "POD_NAMESPACE=" .. ns, "POD_UID=1234" }, server,
        path, "--namespace", ns,
        "--metrics-bind-address", "127.0.0.1:0", ...)
      for i = 1, maps do echoes("map-" .. i, "old 0") end
    end

    local function metrics() return controller.metrics(run) end

    local TAKEN_BACK = "the new logic does much worse than the previous one, which runs again"

    it("is rolled back when its runs fail, with all controllers of the script, and stays so until it \z
      changes", function()
      begin(MAPS)
      save(FAILING)
      run:wait_for_log(60, TAKEN_BACK)
      local line = run:log():match("[^\n]*" .. TAKEN_BACK .. "[^\n]*")
      assert.matches("generation=3 taken_back=2 why=\"?echo: %d+ of %d+ runs failed, 0 of %d+ did before",
        line)
      touch("map-1", "1")
      echoes("map-1", "old 1")
      wait.until_true(30, "generation 3 of both", function()
        local text = metrics()
        return text:find('\nkubelua_generation{controller="echo"} 3\n', 1, true)
          and text:find('\nkubelua_generation{controller="bystander"} 3\n', 1, true)
      end)
      assert.truthy(metrics():find('result="rolled_back"} 1\n', 1, true))
      local event = wait.until_true(30, "an Event", function()
        for e in client:each("events.k8s.io/v1/Event", { namespace = ns }) do
          if e("reason") == "RolledBack" then return e end
        end
      end)
      assert.equal("Warning", event.type)
      assert.equal("kubelua-0", event.regarding.name)
      assert.matches("runs failed, 0 of %d+ did before", event.note)

      save(FAILING)                        -- the same text, saved again
      save(echoing "new")
      echoes("map-1", "new 1")
      assert.equal(1, select(2, run:log():gsub(TAKEN_BACK, "")))
      controller.finish(run)
    end)

    it("is rolled back even with a single object", function()
      begin(1)
      save(FAILING)
      run:wait_for_log(60, TAKEN_BACK)
      touch("map-1", "1")
      echoes("map-1", "old 1")
      controller.finish(run)
    end)

    it("is rolled back when its keys trigger themselves, and tried again on request", function()
      begin(3)
      save(COUNTING)
      run:wait_for_log(60, TAKEN_BACK)
      assert.truthy(run:log():find("keys write again and again", 1, true), run:log())
      touch("map-1", "1")
      echoes("map-1", "old 1")
      run:signal "HUP"
      wait.until_true(60, "it is taken back once more", function()
        return select(2, run:log():gsub(TAKEN_BACK, "")) == 2
      end)
      controller.finish(run)
    end)

    it("stays without a comparison", function()
      begin(MAPS, "--rollback-window", "0s")
      save(FAILING)
      wait.until_true(30, "all fail", function()
        return select(2, run:log():gsub("reconcile failed", "")) >= 2 * MAPS
      end)
      assert.is_nil(run:log():find(TAKEN_BACK, 1, true))
      controller.finish(run)
    end)
  end)
end)
