-- koordinator_recommender_spec.lua - the recommender in `kubelua run` on both API servers, with the real
-- CRDs: it fills a Recommendation, saves its state in a ConfigMap that the Recommendation owns, continues
-- from it after a restart, and needs no more rights than `kubelua rbac` prints.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local kube = require "kubelua"
local controller = require "support.controller"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local NODE, POD, CONFIG_MAP = "v1/Node", "v1/Pod", "v1/ConfigMap"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local RECOMMENDATION = "analysis.koordinator.sh/v1alpha1/Recommendation"
local NAME = "measured"
local PATIENCE = 60

-- A copy with an interval of a second.
local function copy()
  return (policies.changed("recommender.lua", { ["intervalSeconds = 60"] = "intervalSeconds = 1",
    ["checkpointSeconds = 600"] = "checkpointSeconds = 0" }))
end

servers.each(function(name, start)
  describe("the recommender on " .. name, function()
    local server, client, namespace, run

    lazy_setup(function()
      server = start { crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      namespace = controller.namespace(client, "recommend")
      client:create { kind = NODE, name = NAME }
      client:create { kind = POD, namespace = namespace, name = "web", labels = { app = "web" },
        spec = { nodeName = NAME, terminationGracePeriodSeconds = 0,
          tolerations = { { operator = "Exists" } }, containers = { { name = "c", image = "none" } } } }
      client:create { kind = RECOMMENDATION, namespace = namespace, name = "web", spec = { target = {
        type = "podSelector", podSelector = { matchLabels = { app = "web" } } } } }
    end)
    lazy_teardown(function()
      client:delete(POD, namespace, "web")
      client:delete(NODE, NAME)
      server:stop()
    end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    local function measure(second)
      local object = client:get(METRIC, NAME) or client:create { kind = METRIC, name = NAME, spec = {} }
      client:patch_status(object, { updateTime = ("2026-01-01T00:00:%02dZ"):format(second),
        podsMetric = { { namespace = namespace, name = "web",
          podUsage = { resources = { cpu = "500m", memory = "1Gi" } } } } })
    end

    local function recommended()
      return client:get(RECOMMENDATION, namespace, "web")("status.podStatus.containerStatuses") or {}
    end

    local function await_filled()
      local found
      wait.until_true(PATIENCE, "it is filled", function()
        found = recommended()[1]
        if not found then error(run:log(), 0) end
        return true
      end)
      return { found.containerName, found("resources.cpu"), found("resources.memory") }
    end

    local function checkpoint()
      local uid = client:get(RECOMMENDATION, namespace, "web").metadata.uid
      return client:get(CONFIG_MAP, namespace, "recommender-" .. uid), uid
    end

    local function kubeconfig()
      if not name:find "kube%-apiserver" then return server.kubeconfig end
      local role, code = process.run(("%s rbac --crds controllers/koordinator/crds \z
        controllers/koordinator/recommender.lua 2>/dev/null"):format(KUBELUA))
      assert.equal(0, code, role)
      server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
      server:must_kubectl("create", "clusterrolebinding", "recommender-nobody", "--clusterrole",
        "recommender",
        "--user", "nobody")
      return server:kubeconfig_for(server.tokens.nobody)
    end

    it("writes recommendations, and another process continues from its checkpoint", function()
      local config, path = kubeconfig(), copy()
      run = controller.start({ kubeconfig = config }, path)
      measure(1)
      local first = await_filled()
      assert.equal("c", first[1])
      wait.until_true(PATIENCE, "a checkpoint", function()
        local map = checkpoint()
        return map and map("data")["state.json"]:find('"samples":1', 1, true)
      end)
      local map, uid = checkpoint()
      assert.equal(uid, map.metadata.ownerReferences[1].uid)
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
      controller.finish(run)
      -- There are no reports any more, and the status is lost: only the checkpoint is left.
      client:delete(METRIC, NAME)
      client:patch_status(client:get(RECOMMENDATION, namespace, "web"), { podStatus = kube.null,
        conditions = kube.null })
      assert.equal(0, #recommended())
      run = controller.start({ kubeconfig = config }, path)
      assert.same(first, await_filled())
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
    end)
  end)
end)
