-- reflector_spec.lua - the caches of `kubelua run` begin with one list, or with the initial events of a
-- watch, and each watch continues from there.
-- real in asan, tsan: lists and watches over TLS and HTTP/2
local controller = require "support.controller"
local servers = require "support.servers"
local wait = require "support.wait"

-- The value of an informer's metric.
local function metric(run, name, kind)
  return tonumber(controller.metrics(run):match("\nkubelua_informer_" .. name .. '{kind="'
    .. kind:gsub("%p", "%%%0") .. '"} (%S+)'))
end

servers.each(function(name, start)
  describe("the caches of `kubelua run` against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "reflector")
      controller.ask(client, ns, 1, 40)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function run_with(suffix, ...)
      local run = controller.start(server, controller.answering(ns, suffix), "--metrics-bind-address",
        "127.0.0.1:0", ...)
      controller.await_answers(client, ns, 40, 30, function(ask) return ask .. suffix end)
      return run
    end

    it("start with one list, and every watch continues from it", function()
      local run = run_with "!"
      assert.equal(1, metric(run, "lists_total", "v1/ConfigMap"))
      assert.equal(0, metric(run, "initial_streams_total", "v1/ConfigMap"))
      -- Existing objects wait behind changes: two priorities, as in controller-runtime.
      local labels = ('{name="answers-%s",controller="answers-%s",priority="%%d"} 0\n'):format(ns, ns)
      wait.until_true(20, "empty queues", function()
        local text = controller.metrics(run)
        return text:find("workqueue_depth" .. labels:format(0), 1, true)
          and text:find("workqueue_depth" .. labels:format(-100), 1, true)
      end)
      controller.finish(run)
    end)

    it("start with the initial events of a watch if told to, without a list", function()
      local run = run_with("?", "--watch-list")
      assert.equal(0, metric(run, "lists_total", "v1/ConfigMap"))
      assert.equal(1, metric(run, "initial_streams_total", "v1/ConfigMap"))
      assert.equal(0, metric(run, "list_fallbacks_total", "v1/ConfigMap"))
      assert.equal(1, metric(run, "synced", "v1/ConfigMap"))
      -- The same stream continues as a watch: new objects are seen, and deleted ones disappear.
      controller.ask(client, ns, 41, 45)
      controller.await_answers(client, ns, 45, 30, function(ask) return ask .. "?" end)
      local before = metric(run, "objects", "v1/ConfigMap")
      client:delete("v1/ConfigMap", ns, "question-45")
      wait.until_true(20, "the deleted one to go", function()
        return metric(run, "objects", "v1/ConfigMap") == before - 1
      end)
      assert.equal(1, metric(run, "watches_total", "v1/ConfigMap"))
      controller.finish(run)
    end)
  end)
end)
