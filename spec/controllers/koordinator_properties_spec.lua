-- koordinator_properties_spec.lua - properties of batch and mid resources that hold for every node, pod list
-- and metric, over random cases from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local kube = require "kubelua"
local amounts = require "amounts"
local batchresource = require "batchresource"
local cpunormalization = require "cpunormalization"
local midresource = require "midresource"
local plan = require "plan"
local reservation = require "reservation"

local CASES, SEED = 3000, 23
local NOW = kube.time("2026-01-01T00:00:00Z"):unix()
local POLICIES = { "usage", "request", "maxUsageRequest" }
local QOS = { "LSE", "LSR", "LS", "BE" }
local CLASSES = { "koord-prod", "koord-mid", "koord-batch", "koord-free" }

local function cpu(most) return math.random(0, most) .. "m" end
local function memory(most) return math.random(0, most) .. "Mi" end
local function usage(c, m) return { resources = { cpu = cpu(c), memory = memory(m) } } end

local function random_strategy()
  local s = { enable = true, degradeTimeMinutes = 15, resourceDiffThreshold = 0.1,
    cpuReclaimThresholdPercent = math.random(0, 100), memoryReclaimThresholdPercent = math.random(0, 100),
    cpuCalculatePolicy = POLICIES[math.random(3)], memoryCalculatePolicy = POLICIES[math.random(3)],
    midCPUThresholdPercent = math.random(0, 100), midMemoryThresholdPercent = math.random(0, 100),
    midUnallocatedPercent = math.random(0, 100) }
  if math.random() < 0.3 then s.batchCPUThresholdPercent = math.random(0, 100) end
  return s
end

local function random_input()
  local cores, mebi = math.random(1, 128) * 1000, math.random(1, 512) * 1024
  local pods, reports = {}, {}
  for i = 1, math.random(0, 12) do
    local name = "p" .. i
    pods[i] = { metadata = { name = name, namespace = "ns", labels = {
      ["koordinator.sh/qosClass"] = QOS[math.random(4)],
      ["koordinator.sh/priority-class"] = CLASSES[math.random(4)] } },
      spec = { containers = { { resources = { requests = { cpu = cpu(cores), memory = memory(mebi) } } } } },
      status = { phase = math.random() < 0.9 and "Running" or "Succeeded" } }
    if math.random() < 0.8 then
      reports[#reports + 1] = { namespace = "ns", name = name, priority = CLASSES[math.random(4)],
        podUsage = usage(cores // 4, mebi // 4) }
    end
  end
  local capacity = { cpu = cores .. "m", memory = mebi .. "Mi" }
  return {
    now = NOW, strategy = random_strategy(), pods = pods,
    node = { metadata = { name = "n", annotations = { ["node.koordinator.sh/reservation"] =
      ('{"resources":{"cpu":"%s","memory":"%s"}}'):format(cpu(cores // 2), memory(mebi // 2)) } },
      status = { capacity = capacity, allocatable = { cpu = (cores - math.random(0, cores // 2)) .. "m",
        memory = capacity.memory } } },
    nodeMetric = { status = { updateTime = "2026-01-01T00:00:00Z", podsMetric = reports,
      nodeMetric = { nodeUsage = usage(cores, mebi), systemUsage = usage(cores // 4, mebi // 4) },
      prodReclaimableMetric = { resource = usage(cores, mebi) } } },
  }
end

local function offered(module, input)
  local r = assert(module.calculate(input)).resources
  return kube.qty(r[module.CPU]):value(), kube.qty(r[module.MEMORY]):value()
end

describe("over random nodes, pods and metrics", function()
  local function each(check)
    math.randomseed(SEED)
    for i = 1, CASES do check(random_input(), "case " .. i) end
  end
  local function limits(input)
    local left = amounts.sub(amounts.of(input.node.status.capacity), reservation.of(input.node))
    return math.max(left.cpu, 0), math.max(amounts.bytes(left.memory), 0)
  end

  it("batch resources are between 0 and capacity minus the reserved part", function()
    each(function(input, label)
      local most_cpu, most_memory = limits(input)
      local c, m = offered(batchresource, input)
      assert.is_true(c >= 0 and c <= most_cpu, label)
      assert.is_true(m >= 0 and m <= most_memory, label)
    end)
  end)

  it("mid resources are between 0 and their part of the capacity", function()
    each(function(input, label)
      local capacity, strategy = amounts.of(input.node.status.capacity), input.strategy
      local c, m = offered(midresource, input)
      assert.is_true(c >= 0 and c <= capacity.cpu * strategy.midCPUThresholdPercent / 100, label)
      assert.is_true(m >= 0
        and m <= amounts.bytes(capacity.memory) * strategy.midMemoryThresholdPercent / 100, label)
    end)
  end)

  it("objects of a cache, of which much is remembered, give what tables give", function()
    local function said(input)
      local decided, failed = plan.calculate(input)
      local out = { failed = failed, resources = decided.resources, resets = decided.resets,
        annotations = decided.annotations, messages = {} }
      for name, say in pairs(decided.messages) do out.messages[name] = say() end
      return out
    end
    local function view(x) return kube.decode(kube.encode(x)) end
    each(function(input, label)
      if math.random(3) > 1 then return end -- the others take long
      input.cpuNormalization = { enable = math.random(4) == 1 }
      input.resourceAmplification = { enable = math.random(2) == 1,
        resourceAmplificationRatio = { cpu = math.random(9, 30) / 10, memory = 1.5 } }
      if math.random(2) == 1 then
        input.node.metadata.annotations[cpunormalization.ANNOTATION] = "1." .. math.random(10, 99)
      end
      if math.random(20) == 1 then input.now = NOW + 3600 end
      local expected, cached = said(input), kube.copy(input)
      cached.node, cached.nodeMetric = view(input.node), view(input.nodeMetric)
      cached.pods = view(kube.array(input.pods))
      assert.same(expected, said(cached), label)
      assert.same(expected, said(cached), label .. ", again")
    end)
  end)

  it("more usage of prod pods never makes more batch resources", function()
    each(function(input, label)
      input.strategy.cpuCalculatePolicy = "usage"
      local before = offered(batchresource, input)
      for _, report in ipairs(input.nodeMetric.status.podsMetric) do
        report.podUsage.resources.cpu = kube.qty(report.podUsage.resources.cpu):milli() * 2 .. "m"
      end
      assert.is_true(offered(batchresource, input) <= before, label)
    end)
  end)
end)
