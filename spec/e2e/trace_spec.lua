-- trace_spec.lua - `kubelua run --trace-requests`: the trace headers of requests to an API server. No server
-- shows the headers that it received (a real one only to a collector), so a proxy (spec/support/recorder.py)
-- records them.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "traced", resource = "v1/ConfigMap",
  reconcile = function(map, ctx)
    if not map("data.ask") or map("data.answer") then return end
    ctx.live:get("v1/Namespace", map.metadata.namespace)
    ctx:patch(map, function(m) m.data.answer = "yes" end)
    ctx.log:info("answered")
  end,
}
]]

servers.each(function(name, start)
  describe("the requests of `kubelua run` to " .. name, function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    -- Runs the script until it has answered once. Returns the requests to the server (a list of { method,
    -- path, value }), and the record of the run.
    local function run(...)
      local ns, port = controller.namespace(client, "trace"), servers.free_port()
      local words = { "python3", "spec/support/recorder.py", port, server.url:match ":(%d+)/?$",
        "traceparent" }
      if server.ca then
        table.move({ server.dir .. "/server.crt", server.dir .. "/server.key", server.ca }, 1, 3, 6, words)
      end
      local recorder = process.spawn(words)
      finally(function() recorder:stop() end)
      recorder:wait_for_log(20, "ready")
      local kubeconfig = process.write(process.tmpname ".kubeconfig",
        (process.read(server.kubeconfig):gsub("127%.0%.0%.1:%d+", "127.0.0.1:" .. port)))
      controller.ask(client, ns, 1, 1)
      local it = controller.start({ kubeconfig = kubeconfig }, SCRIPT, "-n", ns, "--http1", "--log-format",
        "json", ...)
      it:wait_for_log(60, '"msg":"answered"')
      controller.finish(it)
      local seen = {}
      for method, path, value in recorder:log():gmatch "(%u+) (/%S*) (%S+)\n" do
        seen[#seen + 1] = { method = method, path = path, value = value }
      end
      return seen, kube.json(it:log():match '[^\n]*"msg":"answered"[^\n]*'), ns
    end

    it("carry the trace of their reconcile, and no trace outside of one", function()
      local seen, record, ns = run "--trace-requests"
      local parent = ("00-%s-%s-01"):format(record.traceID, record.spanID)
      local of = {}
      for _, r in ipairs(seen) do
        if r.method == "PATCH" and r.path:find("/namespaces/" .. ns .. "/configmaps/question-1", 1,
          true) then of.patch = r.value
        elseif r.path == "/api/v1/namespaces/" .. ns then of.read = r.value
        else assert.equal("-", r.value, r.method .. " " .. r.path) end
      end
      assert.same({ patch = parent, read = parent }, of)
    end)

    it("carry none by default", function()
      local seen = run()
      assert.is_true(#seen > 3)
      for _, r in ipairs(seen) do assert.equal("-", r.value, r.method .. " " .. r.path) end
    end)
  end)
end)
