-- stop_spec.lua - the end of `kubelua run`: running keys may finish, no new ones begin, probes fail, and
-- nothing blocks it forever.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

-- Runs until the ConfigMap "go" exists, then writes.
local SLOW = [[
local kube = require "kubelua"
return kube.controller {
  name = "slow-%s", resource = "v1/ConfigMap",
  reconcile = function(map, ctx)
    if map.metadata.namespace ~= %q or not map("data.ask") or map("data.answer") then return end
    ctx.log:info("begun %%s", map.metadata.name)
    while not ctx.live:get("v1/ConfigMap", "go") do ctx:sleep "20ms" end
    ctx:patch(map, function(m) m.data.answer = "done" end)
  end,
}
]]

-- Never returns by itself.
local STUCK = [[
return require("kubelua").controller {
  name = "stuck-%s", resource = "v1/ConfigMap", cpu = "1h",
  reconcile = function(map, ctx)
    if map.metadata.namespace ~= %q then return end
    ctx.log:info "in it"
    while true do end
  end,
}
]]

-- An index function, then a mapping function, that never returns by itself.
local STUCK_FUNCTION = [[
local function stuck(o)
  if o.metadata.name ~= %q then return nil end
  print "in it"
  while true do end
end
return require("kubelua").controller {
  name = "stuck-%s", resource = "v1/ConfigMap", namespaces = { %q }, cpu = "1h",
  %s, reconcile = function() end,
}
]]

-- Its functions take their time for each change. Events that wait for the mapping function keep their
-- generation, and so its index.
local SLOW_FUNCTIONS = [[
local function slow()
  local from = os.clock()
  repeat until os.clock() - from > 0.1
  return "%s"
end
return require("kubelua").controller { name = "slow-%s", resource = "v1/ConfigMap", namespaces = { %q },
  indexes = { slow = slow }, watches = { ["v1/Secret"] = function() slow() return nil end },
  reconcile = function() end }
]]

servers.each(function(name, start)
  describe("`kubelua run` against " .. name .. ", when it is told to end", function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("exits although functions of an earlier generation have hundreds of changes queued", function()
      local ns = controller.namespace(client, "functions")
      local function make(kind, n)
        for i = 1, n do client:create { kind = kind, namespace = ns, name = "n" .. i } end
      end
      local run = controller.start(server, SLOW_FUNCTIONS:format("first", ns, ns), "--grace-period", "1s")
      run:wait_for_log(60, "controller is running")
      make("v1/Secret", 300)
      process.write(run.script_path, SLOW_FUNCTIONS:format("second", ns, ns))
      run:wait_for_log(60, "a new generation took over")
      make("v1/ConfigMap", 300)
      assert.equal(0, run:stop(30))
    end)

    it("becomes unready, starts no runs, finishes active ones, releases the lease and exits with \z
      0", function()
      local ns = controller.namespace(client, "stop")
      controller.ask(client, ns, 1, 1)
      local run = controller.start(server, SLOW:format(ns, ns), "--health-probe-bind-address", "127.0.0.1:0",
        "--grace-period", "300s",
        "--leader-elect", "--leader-elect-resource-namespace", ns)
      run:wait_for_log(60, "begun question-1")
      local health = wait.until_true(30, "the address", function()
        return run:log():match "serving health probes address=(%S+)"
      end)
      local function readyz()
        return (process.run(("curl -sS --max-time 30 http://%s/readyz"):format(health)))
      end
      wait.until_true(60, "it is ready", function() return readyz() == "ok" end)
      run:signal "TERM"
      wait.until_true(60, "it is not ready", function()
        return readyz():find("[-]shutdown failed: this process is stopping", 1, true)
      end)
      controller.ask(client, ns, 2, 2)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "go" }
      assert.equal(0, run:wait(120 * wait.factor), run:log())
      assert.equal("done", client:get("v1/ConfigMap", ns, "question-1").data.answer)
      assert.is_nil(client:get("v1/ConfigMap", ns, "question-2")("data.answer"))
      assert.is_nil(run:log():find("begun question-2", 1, true))
      local lease = client:get("coordination.k8s.io/v1/Lease", ns, "slow-" .. ns)
      assert.truthy((lease("spec.holderIdentity") or "") == "")
    end)

    it("stops waiting runs after the grace period", function()
      local ns = controller.namespace(client, "grace")
      controller.ask(client, ns, 1, 1)
      local run = controller.start(server, SLOW:format(ns, ns), "--grace-period", "100ms")
      run:wait_for_log(60, "begun question-1")
      run:signal "TERM"
      assert.equal(0, run:wait(120 * wait.factor), run:log())
      assert.truthy(run:log():find("the grace period is over", 1, true))
      assert.is_nil(client:get("v1/ConfigMap", ns, "question-1")("data.answer"))
    end)

    it("stops computing runs, too, without delay", function()
      local ns = controller.namespace(client, "stuck")
      controller.ask(client, ns, 1, 1)
      local run = controller.start(server, STUCK:format(ns, ns), "--grace-period", "100ms")
      run:wait_for_log(60, "in it")
      run:signal "TERM"
      assert.equal(0, run:wait(120 * wait.factor), run:log())
      assert.truthy(run:log():find("the grace period is over", 1, true), run:log())
    end)

    for what, field in pairs {
      ["an index function"] = "indexes = { who = stuck }",
      ["a mapping function"] = 'watches = { ["v1/ConfigMap"] = stuck }',
      ["a `when` function"] = "when = stuck",
    } do
      it("ends " .. what .. " that only computes", function()
        local ns = controller.namespace(client, "function")
        local run = controller.start(server, STUCK_FUNCTION:format("stuck", ns, ns, field))
        run:wait_for_log(60, "controller is running")
        client:create { kind = "v1/ConfigMap", namespace = ns, name = "stuck" }
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "stuck" }, { data = { it = "changes" } })
        run:wait_for_log(60, "in it")
        run:signal "TERM"
        assert.equal(0, run:wait(120 * wait.factor), run:log())
      end)
    end
  end)
end)

describe("`kubelua run`, when told to stop,", function()
  it("is not delayed by a credential plugin that does not return", function()
    local mark, plugin = process.tmpname "", process.tmpname ".sh"
    process.write(plugin, ("#!/bin/sh\necho > %s.there\nexec sleep 600\n"):format(mark))
    process.run("chmod +x " .. plugin)
    local kubeconfig = process.write(process.tmpname ".json", ([[{ "apiVersion": "v1", "kind": "Config",
      "current-context": "c", "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
      "clusters": [{ "name": "c", "cluster": { "server": "https://127.0.0.1:1" } }],
      "users": [{ "name": "u", "user": { "exec": { "apiVersion": "client.authentication.k8s.io/v1",
        "command": %q, "interactiveMode": "Never" } } }] }]]):format(plugin))
    local run = controller.start({ kubeconfig = kubeconfig }, SLOW:format("plugin", "plugin"),
      "--grace-period", "1s")
    wait.until_true(60, "the plugin runs", function() return process.read(mark .. ".there") end)
    assert.equal(0, run:stop(45), run:log())
  end)
end)
