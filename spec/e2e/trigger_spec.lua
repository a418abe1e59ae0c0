-- trigger_spec.lua - ctx.trigger: the cause that woke a key, in a running controller.

local controller = require "support.controller"
local servers = require "support.servers"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "triggered", resource = "v1/ConfigMap", owns = { "v1/Secret" }, namespaces = { %q }, every = %s,
  reconcile = function(map, ctx)
    local t = ctx.trigger
    ctx.log:info("woken",
      { by = ("%%s %%s %%s %%s"):format(t.reason, t.kind or "-", t.key or "-", t.resourceVersion or "-"),
        of = map.metadata.name })
    if t.reason == "changed" and t.kind == "v1/ConfigMap" and map("data.fail") then error "as asked" end
    if map("data.later") and t.reason ~= "after" then return { requeue_after = "10ms" } end
  end,
}
]]

servers.each(function(name, start_server)
  describe("the trigger of a key, against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start_server {}
      client = controller.client(server)
      ns = controller.namespace(client, "trigger")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function woken(run, of, reason, o)
      run:wait_for_log(30, ('by="%s %s %s %s" of=%s'):format(reason,
        o and o.apiVersion .. "/" .. o.kind or "-",
        o and o.metadata.namespace .. "/" .. o.metadata.name or "-", o and o.metadata.resourceVersion or "-",
        of))
    end

    it("is known: the start, an event of the object or of an owned one, a failure, a requeue, a reload",
      function()
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { x = "1" } }
      local run = controller.start(server, SCRIPT:format(ns, "nil"))
      woken(run, "a", "started")
      local a = client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "a" }, { data = { x = "2" } })
      woken(run, "a", "changed", a)
      local b = client:create { kind = "v1/ConfigMap", namespace = ns, name = "b" }
      woken(run, "b", "added", b)
      local owned = client:create { apiVersion = "v1", kind = "Secret",
        metadata = { namespace = ns, name = "s", ownerReferences = {
        { apiVersion = "v1", kind = "ConfigMap", name = "a", uid = a.metadata.uid, controller = true } } } }
      woken(run, "a", "added", owned)
      client:delete("v1/Secret", ns, "s")
      run:wait_for_log(30, ('by="deleted v1/Secret %s/s '):format(ns))
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "b" }, { data = { fail = "yes" } })
      woken(run, "b", "retry")
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "a" }, { data = { later = "yes" } })
      woken(run, "a", "after")
      local script = require("support.process").read(run.script_path)
      require("support.process").write(run.script_path, script .. "\n-- saved\n")
      woken(run, "b", "reload")
      controller.finish(run)
    end)

    it("names `every` when its interval passed", function()
      local c = client:create { kind = "v1/ConfigMap", namespace = ns, name = "c" }
      local run = controller.start(server, SCRIPT:format(ns, '"1s"'))
      woken(run, "c", "trigger")
      client:delete("v1/ConfigMap", ns, c.metadata.name)
      controller.finish(run)
    end)
  end)
end)
