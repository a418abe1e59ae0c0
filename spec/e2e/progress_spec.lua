-- progress_spec.lua - the number of received objects while caches fill. A proxy (spec/support/hold.py) stops
-- a list in the middle.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local OBJECTS, SIZE = 12, 200 * 1024
local LIMIT = 5 * SIZE

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller { name = "counts", resource = "v1/ConfigMap", reconcile = function() end }
]]

-- Letters that cannot be compressed much.
local function noise(size)
  local out = {}
  for i = 1, size do out[i] = string.char(math.random(48, 122)) end
  return (table.concat(out):gsub("[\\`]", "-"))
end

servers.each(function(name, start)
  describe("a controller whose cache fills slowly, from " .. name .. ",", function()
    local server, client, ns, held, kubeconfig, script
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "progress")
      for i = 1, OBJECTS do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = "large-" .. i,
          data = { text = noise(SIZE) } }
      end
      script = process.write(process.tmpname ".lua", SCRIPT)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    before_each(function()
      local port = servers.free_port()
      held = process.spawn { "python3", "spec/support/hold.py", port, server.url:match ":(%d+)/?$", LIMIT }
      held:wait_for_log(20, "ready")
      kubeconfig = process.write(process.tmpname ".kubeconfig",
        (process.read(server.kubeconfig):gsub("127%.0%.0%.1:%d+", "127.0.0.1:" .. port)))
    end)
    after_each(function() held:stop() end)

    local function await(run, seconds, pattern)
      return wait.until_true(seconds, pattern, function()
        assert(run:alive(), run:log())
        return run:log():match(pattern)
      end)
    end

    it("shows progress on a terminal, in one line that disappears at the end", function()
      local steps = process.write(process.tmpname ".steps", '["counts: running", "\\u0003"]\n')
      local run = process.spawn { "sh", "-c",
        ("exec python3 spec/support/terminal.py %d %s run %s --kubeconfig %s -n %s <%s"):format(
        60 * wait.factor, KUBELUA,
        process.quote(script), process.quote(kubeconfig), ns, process.quote(steps)) }
      local so_far = await(run, 30,
        "\r\27%[Kwaiting for caches, objects so far: v1/ConfigMap (%d+) %(0 of 1 synced%)")
      assert.is_true(tonumber(so_far) < OBJECTS)
      -- the line is written again in its place
      await(run, 30, "v1/ConfigMap [1-9]%d* [^\n]*\r\27%[Kwaiting for caches")
      held:signal "USR1"
      assert.equal(0, run:wait(60), run:log())
      -- the next output begins on an empty line
      assert.matches("synced%)\r\27%[K[^w]", run:log())
    end)

    it("logs progress every few seconds", function()
      local run = controller.start({ kubeconfig = kubeconfig }, SCRIPT, "-n", ns, "--log-format", "json")
      local line = await(run, 30, '[^\n]*"msg":"waiting for caches"[^\n]*')
      assert.matches('"seconds":%d+,"objects":"v1/ConfigMap [1-9]","filling":1,"synced":0', line)
      held:signal "USR1"
      run:wait_for_log(30, '"state":"running"')
      controller.finish(run)
    end)

    it("logs nothing if it is fast", function()
      local run = controller.start(server, SCRIPT, "-n", "kube-public", "--log-format", "json")
      run:wait_for_log(30, '"state":"running"')
      controller.finish(run)
      assert.is_nil(run:log():find('"msg":"waiting for caches"', 1, true), run:log())
    end)
  end)
end)
