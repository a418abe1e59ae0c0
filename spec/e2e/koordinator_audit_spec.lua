-- koordinator_audit_spec.lua - the audit of koordlet in `kubelua run` on both API servers, with the real
-- CRDs: it reports once what it would do, does nothing, and needs no more rights than `kubelua rbac` prints.
-- not in asan, tsan: policies are Lua; the quotas', migration's and scheduler's run on what C does below them

local controller = require "support.controller"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local SCRIPT = "controllers/koordinator/koordletaudit.lua"
local NODE, POD, EVENT = "v1/Node", "v1/Pod", "events.k8s.io/v1/Event"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local SLO = "slo.koordinator.sh/v1alpha1/NodeSLO"
local NAME = "audited"
local PATIENCE = 60

-- A copy in which the audit also writes the condition.
local function copy()
  return (policies.changed("koordletaudit.lua", { ["condition = false,"] = "condition = true,",
    ["BEMemoryEvict = true, MemoryEvict = true"] = "BEMemoryEvict = true" }))
end

servers.each(function(name, start)
  describe("the audit of agents on " .. name, function()
    local server, client, namespace, run

    lazy_setup(function()
      server = start { crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      namespace = controller.namespace(client, "audit")
      local amounts = { cpu = "10", memory = "10Gi" }
      client:patch_status(client:create { kind = NODE, name = NAME },
        { allocatable = amounts, capacity = amounts })
      client:create { kind = SLO, name = NAME, spec = { resourceUsedThresholdWithBE = { enable = true,
        cpuSuppressThresholdPercent = 65, memoryEvictThresholdPercent = 70 } } }
      client:create { kind = POD, namespace = namespace, name = "job",
        labels = { ["koordinator.sh/qosClass"] = "BE" },
        spec = { nodeName = NAME, terminationGracePeriodSeconds = 0,
          tolerations = { { operator = "Exists" } }, containers = { { name = "c", image = "none" } } } }
    end)
    lazy_teardown(function()
      client:delete(POD, namespace, "job")
      for _, kind in ipairs { NODE, METRIC, SLO } do client:delete(kind, NAME) end
      server:stop()
    end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    local function measure(memory)
      local object = client:get(METRIC, NAME) or client:create { kind = METRIC, name = NAME, spec = {} }
      client:patch_status(object, { updateTime = os.date "!%Y-%m-%dT%H:%M:%SZ",
        podsMetric = { { namespace = namespace, name = "job",
          podUsage = { resources = { cpu = "1", memory = "3Gi" } } } },
        nodeMetric = { nodeUsage = { resources = { cpu = "2", memory = memory } } } })
    end

    local function await_condition(reason)
      local found
      wait.until_true(PATIENCE, "the condition says " .. reason, function()
        for _, one in ipairs(client:get(NODE, NAME)("status.conditions") or {}) do
          if one.type == "koordinator.sh/Reactions" then found = one end
        end
        if not found or found.reason ~= reason then error(run:log(), 0) end
        return true
      end)
      return found
    end

    local function events()
      local out = {}
      for _, event in ipairs(client:list(EVENT)) do
        if event("regarding.name") == NAME and event.reason == "WouldEvict" then out[#out + 1] = event end
      end
      return out
    end

    local function kubeconfig()
      if not name:find "kube%-apiserver" then return server.kubeconfig end
      local role, code = process.run(("%s rbac --crds controllers/koordinator/crds %s 2>/dev/null")
        :format(KUBELUA, SCRIPT))
      assert.equal(0, code, role)
      server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
      server:must_kubectl("create", "clusterrolebinding", "audit-nobody", "--clusterrole", "koordlet-audit",
        "--user", "nobody")
      return server:kubeconfig_for(server.tokens.nobody)
    end

    it("reports once which pods would be evicted, and when that ends; evicts none", function()
      measure "3Gi"
      run = controller.start({ kubeconfig = kubeconfig() }, copy())
      await_condition "Quiet"
      measure "8Gi"
      local found = await_condition "WouldEvict"
      assert.equal("True", found.status)
      local told = ("BEMemoryEvict would evict %s/job to release memory:"):format(namespace)
      assert.equal(1, found.message:find(told, 1, true))
      wait.until_true(PATIENCE, "an Event", function() return #events() > 0 end)
      -- Other numbers, the same victim.
      measure "8500Mi"
      wait.until_true(PATIENCE, "the numbers are new", function()
        return await_condition("WouldEvict").message ~= found.message
      end)
      assert.equal(1, #events())
      measure "3Gi"
      await_condition "Quiet"
      assert.is_truthy(client:get(POD, namespace, "job"))
      assert.is_nil(run:log():find("ERROR", 1, true), run:log())
    end)
  end)
end)
