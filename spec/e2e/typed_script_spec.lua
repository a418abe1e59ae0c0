-- typed_script_spec.lua - generated clientsets in controller scripts: reads use the cache, writes use ctx.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

servers.each(function(server_name, start)
  describe("a script with typed clients, against " .. server_name, function()
    local server, client, ns

    lazy_setup(function()
      server = start { crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
    end)
    lazy_teardown(function()
      if client then client:close() end
      if server then server:stop() end
    end)
    before_each(function() ns = controller.namespace(client, "typed-script") end)

    local function report()
      local secret
      wait.until_true(30, "the report of the script", function()
        secret = client:get("v1/ConfigMap", ns, "report")
        return secret
      end)
      return kube.copy(secret.data)
    end

    it("reads from the cache, writes, and learns what ctx cannot do", function()
      client:create { kind = "analysis.koordinator.sh/v1alpha1/Recommendation", namespace = ns, name = "r" }
      local run = controller.start(server, ([[
        local kube = require "kubelua"
        local koord = require "kubelua.koordinator"
        local k8s = require "kubelua.kubernetes"
        return kube.controller {
          name = "%s", resource = "analysis.koordinator.sh/v1alpha1/Recommendation",
          owns = { "scheduling.sigs.k8s.io/v1alpha1/PodGroup", "v1/ConfigMap" },
          reconcile = function(obj, ctx)
            local cs = koord.clientset(ctx)
            local name, ns = obj.metadata.name, obj.metadata.namespace
            local recommendations = cs.analysis_v1alpha1.recommendations(ns)
            local data = { same = tostring(recommendations:get(name) == obj),
              listed = tostring(#recommendations:list()) }
            recommendations:patch_status(obj, { updateTime = "2026-01-02T03:04:05Z" })
            local group = cs.scheduling_v1alpha1.podgroups:apply(koord.scheduling_v1alpha1.PodGroup(name,
              ns) { spec = { minMember = 2 } })
            data.owner = group.metadata.ownerReferences[1].name
            data.watch = select(2, pcall(function() recommendations:watch() end))
            data.wrong = select(2,
              pcall(function() return koord.scheduling_v1alpha1.PodGroup(name) {
                spec = { minMembers = 2 } } end))
            k8s.clientset(ctx).core_v1.configmaps:apply(k8s.core_v1.ConfigMap("report", ns) { data = data })
          end,
        }]]):format(ns), "--namespace", ns, "--metrics-bind-address", "127.0.0.1:0")
      finally(function() controller.finish(run) end)
      local data = report()
      assert.equal("true", data.same)
      assert.equal("1", data.listed)
      assert.equal("r", data.owner)
      assert.matches("recommendations:watch: this client has no watch", data.watch, 1, true)
      assert.matches("lua:%d+: koordinator.scheduling_v1alpha1.PodGroup: spec has no field 'minMembers'; \z
        did you mean 'minMember'?", data.wrong)
      assert.equal("2026-01-02T03:04:05Z", client:get("analysis.koordinator.sh/v1alpha1/Recommendation", ns,
        "r").status.updateTime)
      assert.equal(2, client:get("scheduling.sigs.k8s.io/v1alpha1/PodGroup", ns, "r").spec.minMember)
    end)

    it("has its own modules beside it, which belong to its generation", function()
      local dir = process.tmpname ".script"
      local said,
        code = process.run(("mkdir -p %s && %s gen --crds \z
        controllers/koordinator/crds/scheduling.sigs.k8s.io_podgroups.yaml --out %s/groups"):format(
        process.quote(dir), KUBELUA, process.quote(dir)))
      assert.equal(0, code, said)
      process.write(dir .. "/main.lua", ([[
        local kube = require "kubelua"
        local groups = require "groups"
        return kube.controller {
          name = "%s", resource = "v1/ConfigMap", when = { "labels" },
          reconcile = function(obj, ctx)
            if obj.metadata.name ~= "it" then return end
            local group = groups.clientset(ctx).scheduling_v1alpha1.podgroups:apply(
              groups.scheduling_v1alpha1.PodGroup("own", obj.metadata.namespace) {
              spec = { minMember = 4 },
            })
            ctx:apply { kind = "v1/ConfigMap", namespace = obj.metadata.namespace,
              name = "report", data = { min = tostring(group.spec.minMember) } }
          end,
        }]]):format(ns))
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "it" }
      local run = controller.start(server, dir .. "/main.lua", "--namespace", ns, "--metrics-bind-address",
        "127.0.0.1:0")
      finally(function() controller.finish(run) end)
      assert.same({ min = "4" }, report())
    end)
  end)
end)
