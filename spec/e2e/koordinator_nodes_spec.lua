-- koordinator_nodes_spec.lua - the objects for agents (nodeslo, nodemetric) in `kubelua run` on both API
-- servers, with the real CRDs: the policies converge, become quiet, accept new logic, and need no more rights
-- than `kubelua rbac` prints.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local controller = require "support.controller"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NODE, MAP = "v1/Node", "v1/ConfigMap"
local NS, NAME = policies.NAMESPACE, "slo-controller-config"
local DEVICE = "scheduling.koordinator.sh/v1alpha1/Device"
local SLO, METRIC = "slo.koordinator.sh/v1alpha1/NodeSLO", "slo.koordinator.sh/v1alpha1/NodeMetric"
local QOS = [[{"clusterStrategy": {"beClass": {"networkQOS": {"enable": true}, "blkioQOS": {"blocks": [
  {"name": "/dev/vda", "type": "device", "ioCfg": {"ioWeightPercent": 60}}]}}}}]]

local CASES = {
  { name = "nodeslo", kind = SLO, path = "spec.cpuBurstStrategy.policy", key = "cpu-burst-config",
    configure = function(n) return ('{"clusterStrategy": {"policy": "policy-%d"}}'):format(n) end,
    value = function(n) return ("policy-%d"):format(n) end, module = "nodeslo/strategy.lua" },
  { name = "nodemetric", kind = METRIC, path = "spec.metricCollectPolicy.reportIntervalSeconds",
    key = "colocation-config", configure = function(n)
      return ('{"enable": true, "metricReportIntervalSeconds": %d}'):format(n)
    end, value = function(n) return n end, module = "nodemetric/spec.lua" },
}

servers.each(function(server_name, start)
  describe("what agents are told on " .. server_name, function()
    local server, client, dir, run

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      dir = policies.copy()
      client:create { kind = "v1/Namespace", name = NS }
      client:create { kind = MAP, namespace = NS, name = NAME, data = { ["resource-qos-config"] = QOS } }
      for _, name in ipairs { "n1", "n2" } do client:create { kind = NODE, name = name } end
    end)
    lazy_teardown(function() if server then server:stop() end end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    local function await(case, name, value)
      wait.until_true(policies.PATIENCE, ("%s of %s is %s"):format(case.path, name, value), function()
        local object = client:get(case.kind, name)
        local got = object and object(case.path)
        if got ~= value then error(("it is %s\n%s"):format(got, run:log()), 0) end
        return true
      end)
    end

    local function configure(case, n)
      client:patch(client:get(MAP, NS, NAME), { data = { [case.key] = case.configure(n) } })
    end

    it("noderesource offers devices, settles, and takes a reload", function()
      local function offers(value)
        wait.until_true(policies.PATIENCE, ("n2 offers %s of a GPU"):format(value), function()
          local got = client:get(NODE, "n2")("status.allocatable", "koordinator.sh/gpu")
          if got ~= value then error(("it is %s\n%s"):format(got, run:log()), 0) end
          return true
        end)
      end
      local function wake(text)
        client:patch(client:get(DEVICE, "n2"), { metadata = { labels = { looked = text } } })
      end
      local room = { cpu = "10", memory = "8Gi" }
      client:patch_status(client:get(NODE, "n2"), { allocatable = room, capacity = room })
      client:patch(client:get(MAP, NS, NAME), { data = { ["colocation-config"] = '{"enable": true}' } })
      local gpu = { type = "gpu", id = "a", minor = 0, health = true,
        resources = { ["koordinator.sh/gpu-core"] = "100", ["koordinator.sh/gpu-memory"] = "16Gi" } }
      client:create { kind = DEVICE, name = "n2", labels = { ["node.koordinator.sh/gpu-model"] = "A100" },
        spec = { devices = { gpu } } }
      run = policies.start(server, dir .. "/noderesource.lua")
      offers "100"
      -- The labels are written last.
      wait.until_true(policies.PATIENCE, "n2 is labelled", function()
        return client:get(NODE, "n2")("metadata.labels", "node.koordinator.sh/gpu-model") == "A100"
      end)
      policies.rests(run, client, "noderesource", { NODE }, wake)
      policies.save(run, dir .. "/devices.lua")
      client:patch(client:get(DEVICE, "n2"), { spec = { devices = { gpu, gpu } } })
      offers "200"
      client:delete(DEVICE, "n2")
      offers(nil)
    end)

    for _, case in ipairs(CASES) do
      local name = case.name
      it(("%s converges, rests, and takes new logic in the middle"):format(name), function()
        configure(case, 20)
        run = policies.start(server, dir .. "/" .. name .. ".lua")
        for _, node in ipairs { "n1", "n2" } do await(case, node, case.value(20)) end
        local function wake(text)
          client:patch(client:get(NODE, "n1"), { metadata = { labels = { looked = text } } })
        end
        policies.rests(run, client, name, { case.kind }, wake)
        policies.save(run, dir .. "/" .. case.module)
        configure(case, 30)
        await(case, "n1", case.value(30))
        await(case, "n2", case.value(30))
        policies.rests(run, client, name, { case.kind }, wake)
        client:create { kind = NODE, name = "late" }
        await(case, "late", case.value(30))
        client:delete(NODE, "late")
        wait.until_true(policies.PATIENCE, "the late node's object is gone", function()
          return client:get(case.kind, "late") == nil
        end)
      end)

      if server_name:find "kube%-apiserver" then
        it(("%s needs the rights that `kubelua rbac` prints and no more"):format(name), function()
          local role, code = process.run(("%s rbac --crds %s/crds %s/%s.lua 2>/dev/null"):format(
            KUBELUA, process.quote(dir), process.quote(dir), name))
          assert.equal(0, code, role)
          server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
          server:must_kubectl("create", "clusterrolebinding", name .. "-nobody", "--clusterrole", name,
            "--user", "nobody")
          server:must_kubectl("create", "rolebinding", name .. "-nobody", "-n", NS, "--role", name,
            "--user", "nobody")
          client:delete(case.kind, "n2")
          configure(case, 40)
          run = controller.start({ kubeconfig = server:kubeconfig_for(server.tokens.nobody) },
            dir .. "/" .. name .. ".lua")
          await(case, "n1", case.value(40))
          await(case, "n2", case.value(40))
          assert.is_nil(run:log():find("orbidden", 1, true), run:log())
        end)
      end
    end
  end)
end)
