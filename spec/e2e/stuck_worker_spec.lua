-- stuck_worker_spec.lua - a worker hangs in a computation that no budget ends: probes, metrics, the control
-- socket, a reload and signals do not wait for it. The same holds when it hangs in C.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- Budgets of an hour: only the specs end these.
local SCRIPT = [[
local kube = require "kubelua"   -- %s
local function sort(f) table.sort({ 1, 2 }, f) end
local ways = {
  computes = function() while true do end end,
  ["tries to wait"] = function(ctx) sort(function() while true do pcall(ctx.sleep, ctx, "1h") end end) end,
}
return kube.controller { name = "stuck", resource = "v1/ConfigMap", namespaces = { %q }, workers = 2,
  cpu = "1h", timeout = "1h", when = function(o) return o.data ~= nil end,
  reconcile = function(o, ctx)
    ctx.log:info("%s sees %%s", o.metadata.name)
    local way = ways[o.data.way]
    if way then way(ctx) end
  end }
]]

-- A process that ends at once may leave a thread that has returned and is not yet joined.
local LEAVES_THREADS = "TSAN_OPTIONS=" .. (os.getenv "TSAN_OPTIONS" or "") .. ":report_thread_leaks=0"

servers.each_long(function(name, start)
  describe("a worker that does not return, against " .. name .. ",", function()
    local server, client, ns, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function()
      ns = controller.namespace(client, "stuck")
      run = controller.start(server, SCRIPT:format("one", ns, "one"), "--metrics-bind-address", "127.0.0.1:0",
        "--health-probe-bind-address", "127.0.0.1:0", "--grace-period", "100ms")
      run:wait_for_log(60, "controller is running controller=stuck")
    end)
    after_each(function()
      if run then run:stop(45) end
    end)

    local function map(key, way)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = { way = way } }
    end

    local function get(kind, path)
      local address = run:log():match("serving " .. kind .. " address=(%S+)")
      return process.run(("curl -sS --max-time 30 -w ' %%{http_code}' http://%s/%s"):format(address, path))
    end

    -- The kernel's alarm watches the end as a whole. The spec does not wait for it.
    it("does not keep a late process from exiting", function()
      run:stop(45)
      run = controller.start_with({ LEAVES_THREADS }, server, SCRIPT:format("one", ns, "one"),
        "--grace-period", "1h")
      map("bad", "computes")
      run:wait_for_log(60, "one sees bad")
      run:signal "TERM"
      run:wait_for_log(60, "stopping grace_seconds=3600")
      run:signal "ALRM"
      local ended = run
      run = nil
      assert.equal(1, ended:wait(45), ended:log())
      assert.matches("the process has not ended; exiting", ended:log())
    end)

    for _, way in ipairs { "computes", "tries to wait" } do
      it("blocks no probe, metric, command, reload or signal: it " .. way, function()
        map("bad", way)
        run:wait_for_log(60, "one sees bad")
        for _, path in ipairs { "healthz", "readyz" } do
          assert.matches(" 200$", get("health probes", path))
        end
        assert.matches("workqueue_unfinished_work_seconds", get("metrics", "metrics"))
        local said, code = process.run(("%s why v1/ConfigMap %s/bad --pid %d"):format(KUBELUA, ns, run.pid))
        assert.equal(0, code, said)

        process.write(run.script_path, SCRIPT:format("two", ns, "two"))
        local told, status = process.run(("%s reload --pid %d"):format(KUBELUA, run.pid))
        assert.equal(0, status, told)
        map("good", "none")
        run:wait_for_log(60, "two sees good")

        map("worse", way)
        run:wait_for_log(60, "two sees worse")
        local ended = run
        run = nil
        assert.equal(0, ended:stop(45), ended:log())
      end)

      it("blocks no signal: it " .. way, function()
        map("bad", way)
        run:wait_for_log(60, "one sees bad")
        local ended = run
        run = nil
        assert.equal(0, ended:stop(45), ended:log())
      end)
    end
  end)
end)

-- No C function of a script hangs, so this process gets one: a sine function in a replaced C library.
local SINE = [[
#include <unistd.h>
double sin(double x);
double sin(double x)
{
    while (x == 4711)
        pause();
    return 0;
}
]]

-- One of two workers hangs; the other controller continues.
local IN_C = [[
local kube = require "kubelua"   -- %s
local NS = %q
local function controller(name, reconcile)
  return kube.controller { name = name, resource = "v1/ConfigMap", namespaces = { NS },
    workers = 2, timeout = "200ms",
    when = function(o) return o.data ~= nil end, reconcile = reconcile }
end
return {
  controller("sticks", function(o, ctx)
    ctx.log:info("%s: sticks sees %%s", o.metadata.name)
    if o.data.way == "sticks" then pcall(math.sin, 4711) end
  end),
  controller("neighbour", function(o, ctx)
    ctx.log:info("%s: neighbour sees %%s", o.metadata.name)
  end),
}
]]

local function library()
  local path, source = process.tmpname ".so", process.write(process.tmpname ".c", SINE)
  local said, code = process.run(("cc -shared -fPIC -fno-builtin -o %s %s 2>&1"):format(path, source))
  assert(code == 0, said)
  return path
end

servers.each_long(function(name, start)
  describe("a worker that is stuck in a C function, against " .. name .. ",", function()
    local server, client, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function()
      if run then run:stop(5) end
      if server then server:stop() end
    end)

    it("blocks nothing else, and the process exits with status 1 after the grace period", function()
      local ns = controller.namespace(client, "stuck")
      local function map(key, way)
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = { way = way } }
      end
      run = controller.start_with({ "LD_PRELOAD=" .. library(),
        "ASAN_OPTIONS=" .. (os.getenv "ASAN_OPTIONS" or "") .. ":verify_asan_link_order=0",
        LEAVES_THREADS }, server, IN_C:format("one", ns, "one", "one"),
        "--health-probe-bind-address", "127.0.0.1:0",
        "--metrics-bind-address", "127.0.0.1:0", "--grace-period", "1s")
      for _, who in ipairs { "sticks", "neighbour" } do
        run:wait_for_log(60, "controller is running controller=" .. who)
      end
      local function get(kind, path)
        local address = run:log():match("serving " .. kind .. " address=(%S+)")
        return process.run(("curl -sS --max-time 30 -w ' %%{http_code}' http://%s/%s"):format(address, path))
      end

      map("bad", "sticks")
      run:wait_for_log(60, "one: sticks sees bad")
      local story = "the run of key " .. ns .. "/bad cannot be ended: it is stuck in a C function"
      wait.until_true(60, "it is called stuck", function()
        return get("health probes", "healthz"):find(story, 1, true)
      end)
      assert.truthy(get("health probes", "healthz"):find("worker/sticks", 1, true))
      for _, kind in ipairs { { "health probes", "readyz" }, { "metrics", "metrics" } } do
        assert.matches("[25]00$", get(table.unpack(kind)))
      end

      map("good", "none")
      for _, who in ipairs { "sticks", "neighbour" } do run:wait_for_log(60,
        "one: " .. who .. " sees good") end
      local said, code = process.run(("%s why v1/ConfigMap %s/good --pid %d"):format(KUBELUA, ns, run.pid))
      assert.equal(0, code, said)

      process.write(run.script_path, IN_C:format("two", ns, "two", "two"))
      local told, status = process.run(("%s reload --pid %d"):format(KUBELUA, run.pid))
      assert.equal(0, status, told)
      map("better", "none")
      for _, who in ipairs { "sticks", "neighbour" } do run:wait_for_log(60,
        "two: " .. who .. " sees better") end

      local ended = run
      run = nil
      assert.equal(1, ended:stop(45), ended:log())
      local word = "the grace period is over and a run is stuck; exiting without waiting for it"
      assert.truthy(ended:log():find(word, 1, true), ended:log())
    end)
  end)
end)
