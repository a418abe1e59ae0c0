-- koordletaudit_test.lua - the audit in virtual time: one node whose BE pod uses more and more.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local SLO = "slo.koordinator.sh/v1alpha1/NodeSLO"

local function pod(name, qos, cpu)
  return { kind = POD, namespace = "default", name = name, labels = { ["koordinator.sh/qosClass"] = qos },
    spec = { nodeName = "n", containers = { { name = "c", image = "i",
      resources = { limits = { cpu = cpu }, requests = { cpu = cpu } } } } } }
end

describe("koordlet-audit", function()
  local t ---@type kubelua.Testing

  local function start(params)
    local amounts = { cpu = "10", memory = "10Gi" }
    t = kube.testing.start { script = "koordletaudit.lua", crds = "crds", params = params, objects = {
      { kind = NODE, name = "n", status = { capacity = amounts, allocatable = amounts } },
      { kind = SLO, name = "n", spec = {
        resourceUsedThresholdWithBE = { enable = true, cpuSuppressThresholdPercent = 65,
          memoryEvictThresholdPercent = 70 },
        cpuBurstStrategy = { policy = "auto", cpuBurstPercent = 1000, cfsQuotaBurstPercent = 300,
          sharePoolThresholdPercent = 50 } } },
      pod("web", "LS", "2"),
      pod("job", "BE", "1"),
    } }
  end

  local function measure(web, job, memory)
    local function used(name, cpu)
      return { namespace = "default", name = name, podUsage = {
        resources = { cpu = tostring(cpu), memory = "1Gi" } } }
    end
    t:load { { kind = METRIC, name = "n", spec = {}, status = { updateTime = tostring(t:now()),
      podsMetric = { used("web", web), used("job", job) },
      nodeMetric = { nodeUsage = { resources = { cpu = tostring(web + job), memory = memory } } } } } }
    t:advance "1s"
  end

  local function condition()
    return kube.find_condition(t:get(NODE, "n"), "koordinator.sh/Reactions")
  end

  it("reports once which pods would be suppressed, evicted or lose their burst, and when that \z
    ends", function()
    start { condition = true, gates = { MemoryEvict = false, CPUEvict = false, BECPUEvict = false,
      CPUAllocatableEvict = false, MemoryAllocatableEvict = false } }
    assert.equal("Unknown", condition().status)
    measure(2, 1, "3Gi")
    assert.same({ "False", "Quiet" }, { condition().status, condition().reason })
    measure(6, 3, "8Gi")
    measure(6, 3.5, "8Gi")
    assert.equal("WouldSuppress", condition().reason)
    assert.matches("BE pods use 3.50 cores and may use 2.00 %(cpuset%): they are suppressed; "
      .. "BEMemoryEvict would evict default/job to release memory:1288490188: memory used 80%% >= 70%%",
        condition().message or "")
    assert.matches("60%% of the shared processors are in use %(overload%): quotas of default/web %(to 6.00 \z
      cores%)", condition().message or "")
    measure(1, 1, "3Gi")
    assert.equal("Quiet", condition().reason)
    t:advance "4m"
    assert.same({ "Unknown", "its report is too old" }, { condition().status, condition().message })
    assert.same({}, t:logs "error")
  end)

  it("records one Event as long as nothing changes", function()
    start()
    measure(2, 1, "3Gi")
    local before = #t:events()
    measure(4, 4, "8Gi")
    local after = #t:events()
    assert.is_true(after > before)
    measure(4, 4.2, "8Gi")
    assert.equal(after, #t:events())
    assert.equal(2, #t:list(POD))
  end)
end)
