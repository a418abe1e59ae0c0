-- koordinator_profiles_spec.lua - colocation profiles as webhooks of `kubelua run` on both API servers, with
-- the real CRDs: new pods are colocated, invalid pods are rejected, nodes are amplified, across a reload.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local kube = require "kubelua"
local controller = require "support.controller"
local policies = require "support.policies"
local servers = require "support.servers"
local wait = require "support.wait"

local PROFILE = "config.koordinator.sh/v1alpha1/ClusterColocationProfile"
local POD, NODE = "v1/Pod", "v1/Node"
local QOS, RATIOS = "koordinator.sh/qosClass", "node.koordinator.sh/resource-amplification-ratio"

servers.each(function(server_name, start)
  describe("colocation profiles on " .. server_name, function()
    local server, client, dir, run

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      dir = policies.copy()
      client:create { kind = "scheduling.k8s.io/v1/PriorityClass", name = "koord-batch", value = 5500 }
      client:create { kind = PROFILE, name = "batch",
        spec = { selector = { matchLabels = { colocated = "yes" } },
        qosClass = "BE", priorityClassName = "koord-batch", labels = { made = "here" } } }
      run = policies.start(server, dir .. "/colocationprofile.lua", "--webhook-listen", "127.0.0.1:0",
        "--webhook-url", "auto")
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    local function pod(name, labels, requests)
      return { kind = POD, namespace = "default", name = name, labels = labels, spec = { containers = {
        { name = "c", image = "none", resources = { requests = requests } } } } }
    end

    local function await_colocated(name)
      wait.until_true(policies.PATIENCE, "the API server asks the webhooks", function()
        local made = client:create(pod(name, { colocated = "yes" }, { cpu = "1" }), { dry_run = true })
        return made("metadata.labels.made") == "here"
      end)
    end

    local function assert_colocated(name)
      local made = client:create(pod(name, { colocated = "yes" }, { cpu = "1500m", memory = "1Gi" }))
      local requests = made.spec.containers[1].resources.requests
      assert.equal(kube.qty "1500", kube.qty(requests["kubernetes.io/batch-cpu"]))
      assert.equal("1Gi", requests["kubernetes.io/batch-memory"])
      assert.is_nil(requests.cpu)
      assert.equal(5500, made.spec.priority)
      assert.equal("BE", made.metadata.labels[QOS])
    end

    it("make new pods batch pods, and reject invalid ones", function()
      await_colocated "probe"
      assert_colocated "first"
      local ok, e = pcall(client.create, client, pod("bad", nil, { ["kubernetes.io/batch-cpu"] = "1" }))
      assert.is_false(ok)
      assert.equal(403, e.code)
      assert.matches("must specify koordinator QoS BE", e.message, 1, true)
    end)

    it("change nothing when their own pod is written again", function()
      local before = client:get(POD, "default", "first")
      client:patch(before, { metadata = { annotations = { looked = "at" } } })
      local after = client:get(POD, "default", "first")
      assert.equal(tostring(before.spec), tostring(after.spec))
      assert.equal(tostring(before.metadata.labels), tostring(after.metadata.labels))
    end)

    it("amplify a node's allocatable once, however often it is written", function()
      client:create { kind = NODE, name = "n", annotations = { [RATIOS] = '{"cpu":1.50}' } }
      for _ = 1, 2 do
        client:patch_status(client:get(NODE, "n"), { allocatable = { cpu = "10", memory = "8Gi" },
          capacity = { cpu = "10", memory = "8Gi" } })
        client:patch(client:get(NODE, "n"), { metadata = { labels = { looked = "at" } } })
        assert.equal(kube.qty "15", kube.qty(client:get(NODE, "n").status.allocatable.cpu))
      end
    end)

    it("take a reload", function()
      policies.save(run, dir .. "/colocationprofile/mutate.lua")
      assert_colocated "second"
    end)
  end)
end)
