-- lownodeload_spec.lua - LowNodeLoad in `kubelua run` on both API servers, with the real CRDs: it creates the
-- right job once, keeps across a reload how often a node was overloaded, and needs no more rights than
-- `kubelua rbac` prints.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local controller = require "support.controller"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local POD = "v1/Pod"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local PATIENCE = 60

-- A copy with an interval of a second that acts after three observations: the clock of a process is real.
local function copy()
  return (policies.changed("lownodeload.lua", { ["local INTERVAL = 60"] = "local INTERVAL = 1",
    ["consecutiveAbnormalities = 5"] = "consecutiveAbnormalities = 2" }))
end

servers.each(function(name, start)
  describe("LowNodeLoad on " .. name, function()
    local server, client, path, run

    local function add_pod(pod)
      client:create { apiVersion = "v1", kind = "Pod",
        metadata = { namespace = "default", name = pod,
          ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
        spec = { nodeName = "busy", schedulerName = "koord-scheduler",
          tolerations = { { operator = "Exists" } }, containers = { { name = "c", image = "none" } } } }
    end

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      path = copy()
      for _, node in ipairs { "busy", "idle" } do
        policies.add_node(client, node, { cpu = "10", memory = "10Gi", pods = "110" })
      end
      for _, pod in ipairs { "a", "b", "c" } do add_pod(pod) end
      policies.report(client, "busy", { "a", "b", "c" })
      policies.report(client, "idle", {})
      client:create { kind = "v1/Namespace", name = "koordinator-system" }
    end)
    lazy_teardown(function() if server then server:stop() end end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    it("creates each job once, across a reload, with only the needed rights", function()
      local kubeconfig = server.kubeconfig
      if name:find "kube%-apiserver" then
        local role, code = process.run(KUBELUA .. " rbac --record --crds controllers/koordinator/crds "
          .. "controllers/koordinator/lownodeload.lua 2>/dev/null")
        assert.equal(0, code, role)
        server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
        server:must_kubectl("create", "clusterrolebinding", "load-nobody", "--clusterrole", "lownodeload",
          "--user", "nobody")
        kubeconfig = server:kubeconfig_for(server.tokens.nobody)
      end
      local function begin()
        run = controller.start({ kubeconfig = kubeconfig }, path, "--metrics-bind-address", "127.0.0.1:0")
        run:wait_for_log(PATIENCE, "controller is running")
      end

      begin()
      policies.save(run, path)
      -- The node stays busy: a pod with a job is left alone, another follows, and the third waits for them.
      wait.until_true(PATIENCE, "as many jobs as may be on one node", function()
        if #client:list(JOB) == 2 then return true end
        error(run:log(), 0)
      end)
      for _, job in ipairs(client:list(JOB)) do
        assert.equal(client:get(POD, "default", job.spec.podRef.name).metadata.uid, job.spec.podRef.uid)
      end
      controller.finish(run)

      begin()
      wait.until_true(PATIENCE, "it has looked eight times", function()
        return policies.runs(run, "lownodeload") >= 8
      end)
      assert.equal(2, #client:list(JOB))
      assert.is_nil(run:log():find("WARN", 1, true), run:log())
    end)
  end)
end)
