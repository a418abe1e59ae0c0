-- koordlet_spec.lua - the reactions of a node's agent as functions: suppression, eviction and bursts; and
-- properties over random nodes from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local burst = require "koordlet.burst"
local evict = require "koordlet.evict"
local node_of = require "koordlet.node"
local report = require "koordlet.report"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local suppress = require "koordlet.suppress"

local CASES = sizes.of { short = 400, long = 1500 }

local GI = 1024 * 1024 * 1024

-- A pod with its request and usage: more { qos, class, priority, evictable, annotations, cpu, memory }.
local function pod(name, more)
  more = more or {}
  local labels = { ["koordinator.sh/qosClass"] = more.qos, ["koordinator.sh/priority-class"] = more.class }
  if more.evictable ~= false then labels["koordinator.sh/eviction-enabled"] = "true" end
  local requests = more.requests or { cpu = "1" }
  return { metadata = { namespace = "ns", name = name, labels = labels, annotations = more.annotations or {},
    deletionTimestamp = more.going and "2026-01-01T00:00:00Z" or nil },
    spec = { priority = more.priority, containers = { { name = "c",
      resources = { requests = requests, limits = more.limits or requests } } } },
    status = { phase = more.phase or "Running" } }
end

-- The agent's knowledge of a node with 10 cores and 10Gi. used: { [pod name] = { cpu, memory } }.
local function known(threshold, list, used, more)
  more = more or {}
  local amounts, reports = more.allocatable or { cpu = "10", memory = "10Gi" }, {}
  for name, one in pairs(used or {}) do
    reports[#reports + 1] = { namespace = "ns", name = name,
      podUsage = { resources = { cpu = one[1], memory = one[2] or "0" } } }
  end
  threshold.enable = true
  return node_of.read {
    node = { metadata = { name = "n", annotations = more.annotations },
      status = { capacity = { cpu = "10", memory = "10Gi" }, allocatable = amounts } },
    metric = { status = { nodeMetric = { nodeUsage = { resources = { cpu = more.cpu or "5",
      memory = more.memory or "5Gi" } } }, podsMetric = reports, hostApplicationMetric = more.apps } },
    slo = { spec = { resourceUsedThresholdWithBE = threshold, cpuBurstStrategy = more.burst,
      hostApplications = more.hosts } },
    pods = list,
  }
end

local function all_gates()
  return { BECPUEvict = true, CPUEvict = true, CPUAllocatableEvict = true, BEMemoryEvict = true,
    MemoryEvict = true, MemoryAllocatableEvict = true }
end

describe("a node without a measurement", function()
  it("is not judged", function()
    local node = { metadata = { name = "n" }, status = { capacity = { cpu = "1", memory = "1Gi" } } }
    local read, why = node_of.read { node = node, pods = {} }
    assert.is_nil(read)
    assert.matches("no measurement", why)
  end)
end)

describe("suppression", function()
  local function allowed(threshold, more)
    threshold.cpuSuppressThresholdPercent = 65
    return suppress.allowed(known(threshold, { pod("web", { qos = "LS" }), pod("job", { qos = "BE" }) },
      { web = { "2" }, job = { "1" }, gone = { "500m" } }, more))
  end

  it("allows the threshold minus the use of others and the system", function()
    -- 6500 - 2000 of web - 500 of one that is gone - (5000 - 3500) of the system
    assert.equal(2500, allowed {})
    assert.equal(1000, allowed({}, { annotations = {
      ["node.koordinator.sh/reservation"] = '{"resources":{"cpu":"3"}}' } }))
    assert.equal(-500, allowed({}, { cpu = "8" }))
    assert.equal(2000, allowed({ cpuSuppressMinPercent = 20 }, { cpu = "8" }))
  end)

  it("counts host applications that are not BE", function()
    local apps = { { name = "a", usage = { resources = { cpu = "1" } } } }
    local hosts = { { name = "a", qos = "LS" } }
    assert.equal(2500, allowed({}, { apps = apps, hosts = hosts }))
    hosts = { { name = "a", qos = "BE", cgroupPath = { base = "KubepodsBesteffort" } } }
    assert.equal(3500, allowed({}, { apps = apps, hosts = hosts }))
    assert.equal(2500, allowed({}, { apps = apps }))
  end)

  it("counts processors: two at least, and a tenth more at a time", function()
    assert.equal(3, suppress.cpus(2001, 10, 10))
    assert.equal(2, suppress.cpus(-700, 10, 10))
    assert.equal(5, suppress.cpus(9000, 4, 10))
    assert.equal(4, suppress.cpus(9000, 2, 16))
  end)

  it("sets quotas: not below 2 ms, not for small changes, a tenth of the node at a time", function()
    assert.equal(250000, suppress.quota(2500, suppress.UNSET, 10))
    assert.equal(2000, suppress.quota(-5, 1000000, 10))
    assert.equal(250000, suppress.quota(2509, 250000, 10))
    assert.equal(350000, suppress.quota(9000, 250000, 10))
    assert.equal(100000, suppress.quota(1000, 900000, 10))
  end)

  it("is reported when BE pods use all they get, and not when the strategy is off", function()
    local node = known({ cpuSuppressThresholdPercent = 65 }, { pod("job", { qos = "BE" }) },
      { job = { "4" } })
    assert.same({ allowed = 5500, used = 4000, pods = 1, limit = 6000, policy = "cpuset",
      suppressed = false },
      suppress.decide(node))
    node.threshold.cpuSuppressPolicy, node.threshold.cpuSuppressThresholdPercent = "cfsQuota", 50
    assert.same({ true, 4000 }, { suppress.decide(node).suppressed, suppress.decide(node).limit })
    node.threshold.enable = false
    assert.is_nil(suppress.decide(node))
  end)
end)

describe("eviction", function()
  local function decide(node, gates, upstream)
    local tasks, broken = evict.decide(node, 10000, gates, upstream or "main")
    local out = {}
    for i, task in ipairs(tasks) do
      local names = {}
      for k, one in ipairs(task.evicted) do names[k] = one.key:match "/(.*)" end
      out[i] = ("%s: %s%s"):format(task.reaction, table.concat(names, " "), task.enough and "" or " ...")
    end
    return out, broken, tasks
  end

  it("of BE pods for memory takes the lowest priority, then the highest use, down to the lower \z
    mark", function()
    local list = { pod("a", { qos = "BE", priority = 5500 }), pod("b", { qos = "BE", priority = 5000 }),
      pod("c", { qos = "BE", priority = 5000 }), pod("web", { qos = "LS" }) }
    local used = { a = { "0", "4Gi" }, b = { "0", "1Gi" }, c = { "0", "2Gi" }, web = { "0", "1Gi" } }
    local threshold = { memoryEvictThresholdPercent = 70 }
    local gates = { BEMemoryEvict = true }
    assert.same({}, decide(known(threshold, list, used, { memory = "6.9Gi" }), gates))
    local out, _, tasks = decide(known(threshold, list, used, { memory = "8Gi" }), gates)
    assert.same({ "BEMemoryEvict: c" }, out)
    assert.same({ memory = 10 * GI * 12 // 100 }, tasks[1].release)
    threshold.memoryEvictLowerPercent = 50
    assert.same({ "BEMemoryEvict: c b" }, decide(known(threshold, list, used, { memory = "8Gi" }), gates))
    threshold.memoryEvictLowerPercent = 0
    assert.same({ "BEMemoryEvict: c b a ..." }, decide(known(threshold, list, used, { memory = "8Gi" }),
      gates))
  end)

  it("of any pod needs an opt-in, a measurement, and a low enough priority", function()
    local list = { pod("no", { priority = 5000, evictable = false }), pod("prod", { priority = 9000 }),
      pod("done", { priority = 5000, phase = "Succeeded" }), pod("unseen", { priority = 5000 }),
      pod("other", { priority = 5000,
        annotations = { ["koordinator.sh/eviction-policy"] = '["MemoryEvict"]' } }),
      pod("yes", { priority = 5500, annotations = { ["koordinator.sh/eviction-policy"] = '["CPUEvict"]' } }) }
    local used = { no = { "3" }, prod = { "3" }, done = { "3" }, other = { "3" }, yes = { "1" } }
    local node = known({ cpuEvictThresholdPercent = 70, evictEnabledPriorityThreshold = 5999 }, list, used,
      { cpu = "9" })
    assert.same({ "CPUEvict: yes ..." }, decide(node, { CPUEvict = true }))
  end)

  it("uses the eviction priority first, which v1.8.0 lacks", function()
    local first = { annotations = { ["koordinator.sh/eviction-priority"] = "-1" }, priority = 5900 }
    local node = known({ cpuEvictThresholdPercent = 70, evictEnabledPriorityThreshold = 5999 },
      { pod("first", first), pod("low", { priority = 5000 }) }, { first = { "3" }, low = { "3" } },
      { cpu = "8" })
    assert.same({ "CPUEvict: first" }, decide(node, { CPUEvict = true }))
    assert.same({ "CPUEvict: low" }, decide(node, { CPUEvict = true }, "v1.8.0"))
  end)

  it("takes one pod for memory of any class, because Koordinator counts its memory times 1000", function()
    local node = known({ memoryEvictThresholdPercent = 70, evictEnabledPriorityThreshold = 5999 },
      { pod("a", { priority = 5000 }), pod("b", { priority = 5000 }) },
      { a = { "0", "100Mi" }, b = { "0", "50Mi" } }, { memory = "9Gi" })
    assert.same({ "MemoryEvict: a" }, decide(node, { MemoryEvict = true }))
  end)

  it("by allocatable compares requests of batch pods with batch resources", function()
    local batch = { ["kubernetes.io/batch-cpu"] = "3000" }
    local more = { qos = "BE", class = "koord-batch", requests = batch }
    local node = known({ cpuAllocatableEvictThresholdPercent = 110, cpuAllocatableEvictLowerPercent = 100,
      allocatableEvictPriorityThreshold = 5999 }, { pod("a", more), pod("b", more), pod("c", more) },
      { a = { "1" }, b = { "1" }, c = { "1" } },
      { allocatable = { cpu = "10", memory = "10Gi", ["kubernetes.io/batch-cpu"] = "8000" } })
    local out, _, tasks = decide(node, { CPUAllocatableEvict = true })
    assert.same({ "CPUAllocatableEvict: a" }, out)
    assert.same({ ["kubernetes.io/batch-cpu"] = 1000 }, tasks[1].release)
    node.allocatable["kubernetes.io/batch-cpu"] = 8182
    assert.same({}, decide(node, { CPUAllocatableEvict = true }))
    node.allocatable["kubernetes.io/batch-cpu"] = 0
    assert.same({ "CPUAllocatableEvict: a b c" }, decide(node, { CPUAllocatableEvict = true }))
  end)

  it("of BE pods for cpu needs a low supply that they use up", function()
    local function job(name, priority)
      return pod(name, { qos = "BE", priority = priority,
        requests = { ["kubernetes.io/batch-cpu"] = "4000" } })
    end
    local node = known({ cpuEvictBESatisfactionLowerPercent = 60, cpuEvictBESatisfactionUpperPercent = 80 },
      { job("a", 5500), job("b", 5500), job("c", 5000) }, { a = { "2" }, b = { "2500m" }, c = { "1" } })
    local function at(limit)
      local tasks = evict.decide(node, limit, { BECPUEvict = true }, "main")
      return tasks[1] and tasks[1].release["kubernetes.io/batch-cpu"], tasks[1]
    end
    assert.is_nil(at(7201)) -- more than 60 % of 12 cores
    assert.is_nil(at(7000)) -- 5.5 of 7 are no full use
    local release, task = at(6000)
    assert.equal(3600, release)
    assert.same({ "ns/c", true }, { task.evicted[1].key, task.enough })
    node.threshold.cpuEvictPolicy, node.allocatable["kubernetes.io/batch-cpu"] = "evictByAllocatable", 0
    release, task = at(6000)
    assert.equal(9599, release)
    assert.same({ "ns/c", "ns/b", "ns/a" }, { task.evicted[1].key, task.evicted[2].key, task.evicted[3].key })
  end)

  it("counts resources freed by other reactions, and pods that are ending", function()
    local more = { qos = "BE", priority = 5000 }
    local node = known({ memoryEvictThresholdPercent = 70, memoryEvictLowerPercent = 60,
      evictEnabledPriorityThreshold = 5999 }, { pod("a", more), pod("b", more) },
      { a = { "0", "2Gi" }, b = { "0", "1Gi" } }, { memory = "8Gi" })
    assert.same({ "BEMemoryEvict: a", "MemoryEvict: " },
      decide(node, { BEMemoryEvict = true, MemoryEvict = true }))
    node.pods[1].pod.metadata.deletionTimestamp = "2026-01-01T00:00:00Z"
    assert.same({ "BEMemoryEvict: " }, decide(node, { BEMemoryEvict = true }))
  end)

  it("is off without its threshold, and names contradictory settings", function()
    local tasks, broken = decide(known({ evictEnabledPriorityThreshold = 5999 }, {}), all_gates())
    assert.same({ {}, {} }, { tasks, broken })
    local threshold = { memoryEvictThresholdPercent = 70, memoryEvictLowerPercent = 70,
      cpuEvictBESatisfactionLowerPercent = 70, cpuEvictBESatisfactionUpperPercent = 80,
      cpuAllocatableEvictThresholdPercent = 110 }
    tasks, broken = decide(known(threshold, {}), all_gates())
    assert.same({}, tasks)
    assert.matches("LowerPercent is not below", broken.BEMemoryEvict)
    assert.is_nil(broken.MemoryEvict)
    assert.matches("not a range", broken.BECPUEvict)
    assert.matches("not set", broken.CPUAllocatableEvict)
    local findings = report.findings(known(threshold, {}), { BEMemoryEvict = true })
    assert.same({ "CannotWork", "BEMemoryEvict is enabled but has no effect: memoryEvictLowerPercent is "
      .. "not below memoryEvictThresholdPercent" }, { findings[1].reason, findings[1].message })
  end)
end)

describe("a burst", function()
  local STRATEGY = { policy = "auto", cpuBurstPercent = 1000, cfsQuotaBurstPercent = 300,
    sharePoolThresholdPercent = 50 }

  it("depends on the processors that are shared", function()
    local list = { pod("own", { qos = "LSR", requests = { cpu = "4" } }), pod("job", { qos = "BE" }) }
    local function state(cpu)
      return (burst.state(known({}, list, { own = { "1" }, job = { "2" } }, { cpu = cpu, burst = STRATEGY })))
    end
    -- (used - 3) of 6 cores
    assert.same({ "idle", "cooling", "overload" }, { state "5600m", state "5800m", state "6" })
  end)

  it("has bounds by the limit, and by what the pod says for itself", function()
    local c = { resources = { limits = { cpu = "2" } } }
    assert.same({ saved = 2000000, base = 200000, ceiling = 600000 }, burst.container(c, STRATEGY))
    assert.same({ saved = 0, base = 200000, ceiling = 600000 },
      burst.container(c, { policy = "cfsQuotaBurstOnly", cfsQuotaBurstPercent = 300, cpuBurstPercent = 9 }))
    assert.same({ saved = 0, base = 200000, ceiling = 200000 }, burst.container(c, { policy = "none" }))
    assert.is_nil(burst.container({}, STRATEGY))
    local own = pod("p", { annotations = { ["koordinator.sh/cpuBurst"] = '{"policy":"none"}' } })
    assert.same({ "none", 300 }, { burst.config(own, STRATEGY).policy, burst.config(own, STRATEGY)
      .cfsQuotaBurstPercent })
    own.metadata.annotations["koordinator.sh/cpuBurst"] = "{"
    assert.equal(STRATEGY, burst.config(own, STRATEGY))
  end)

  it("grows by a fifth while there is room, and shrinks by a fifth otherwise", function()
    local bounds = { base = 100, ceiling = 300 }
    assert.same({ 240, 200, 160, 160, 100, 300 }, {
      burst.next_quota(bounds, 200, "idle", true, true),
      burst.next_quota(bounds, 200, "cooling", true, true),
      burst.next_quota(bounds, 200, "overload", true, true),
      burst.next_quota(bounds, 200, "idle", true, false),
      burst.next_quota(bounds, 110, "overload", nil, true),
      burst.next_quota(bounds, 290, "idle", true, true),
    })
  end)

  it("is open to pods that are neither exclusive nor BE, and have a limit", function()
    local decided = burst.decide(known({}, { pod("web", { qos = "LS" }), pod("own", { qos = "LSR" }),
      pod("job", { qos = "BE" }), pod("free", { qos = "LS", limits = {} }) }, {}, { burst = STRATEGY }))
    assert.same({ 1, "ns/web" }, { #decided.pods, decided.pods[1].pod.key })
  end)
end)

-- ---------------------------------------------------------------- laws

describe("over random nodes", function()
  local QOS = { "LSE", "LSR", "LS", "BE" }

  local function random_node()
    local list, used, memory = {}, {}, 0
    for i = 1, math.random(0, 12) do
      local name = "p" .. i
      local be = math.random(2) == 1
      list[i] = pod(name, { qos = be and "BE" or QOS[math.random(3)],
        class = be and "koord-batch" or nil, priority = be and math.random(5000, 5003)
        or math.random(7000, 9999),
        evictable = math.random(3) > 1, going = math.random(10) == 1,
        requests = be and { ["kubernetes.io/batch-cpu"] = math.random(0, 4) .. "000",
          ["kubernetes.io/batch-memory"] = math.random(0, 3) .. "Gi" } or { cpu = math.random(1, 3) .. "" } })
      local mib = math.random(0, 2000)
      memory = memory + mib
      if math.random(8) > 1 then used[name] = { math.random(0, 2500) .. "m", mib .. "Mi" } end
    end
    local function percent() return math.random(10, 95) end
    local threshold = { cpuSuppressThresholdPercent = percent(), memoryEvictThresholdPercent = percent(),
      cpuEvictThresholdPercent = percent(), evictEnabledPriorityThreshold = math.random(5000, 7999),
      cpuAllocatableEvictThresholdPercent = 110, cpuAllocatableEvictLowerPercent = 100,
      memoryAllocatableEvictThresholdPercent = 110, memoryAllocatableEvictLowerPercent = 90,
      allocatableEvictPriorityThreshold = 5999,
      cpuEvictBESatisfactionLowerPercent = 60, cpuEvictBESatisfactionUpperPercent = 80 }
    return known(threshold, list, used, { cpu = math.random(0, 10) .. "", memory = memory .. "Mi",
      allocatable = { cpu = "10", memory = "10Gi", ["kubernetes.io/batch-cpu"] = math.random(0, 9) .. "000",
        ["kubernetes.io/batch-memory"] = math.random(0, 9) .. "Gi" },
      burst = { policy = "auto", cpuBurstPercent = 100, cfsQuotaBurstPercent = math.random(100, 400),
        sharePoolThresholdPercent = percent() } })
  end

  local function going(one) return one.pod.metadata.deletionTimestamp ~= nil end

  it("no pod is evicted twice, without opt-in, without need, or above the allowed priority",
    function()
    local seen = {}
    seeds.each(CASES, function()
      local node = random_node()
      local gone = { cpu = {}, memory = {} }
      for _, task in ipairs((evict.decide(node, math.random(0, 10000), all_gates(), "main"))) do
        seen[task.reaction] = true
        local family = gone[task.reaction:find "CPU" and "cpu" or "memory"]
        local be = task.reaction:sub(1, 2) == "BE"
        for _, victim in ipairs(task.evicted) do
          if family[victim.key] or going(victim) then error("twice: " .. victim.key) end
          family[victim.key] = true
          local highest = task.reaction:find "Allocatable" and 5999
            or node.threshold.evictEnabledPriorityThreshold
          local may = be and victim.qos == "BE"
            or not be and victim.evictable and victim.used and victim.priority <= highest
          if not may then error(task.reaction .. " must not evict " .. victim.key) end
        end
        for name, n in pairs(task.release) do
          if n <= 0 and task.enough == false then error(name .. " is nothing and not enough") end
        end
      end
    end)
    for name in pairs(all_gates()) do assert.is_true(seen[name], name .. " never happened") end
  end)

  it("one reaction evicts no more pods than needed", function()
    seeds.each(CASES, function()
      local node = random_node()
      for name in pairs { BEMemoryEvict = 1, CPUEvict = 1 } do
        local task = evict.decide(node, 5000, { [name] = true }, "main")[1]
        local what, sum = name == "CPUEvict" and "cpu" or "memory", 0
        for i, victim in ipairs(task and task.evicted or {}) do
          if i < #task.evicted then sum = sum + (victim.used and victim.used[what] or 0) end
        end
        if task and #task.evicted > 0 then assert.is_true(sum < task.release[what]) end
      end
    end)
  end)

  it("suppression keeps its bounds and settles, and quotas stay between limit and ceiling", function()
    seeds.each(CASES, function()
      local node = random_node()
      local allowed = suppress.allowed(node)
      assert.is_true(allowed <= node.capacity.cpu * node.threshold.cpuSuppressThresholdPercent // 100)
      local cpus, quota = math.random(2, 10), math.random(2000, 1000000)
      for _ = 1, 12 do
        local more, higher = suppress.cpus(allowed, cpus, 10), suppress.quota(allowed, quota, 10)
        if more < 2 or more > cpus + 1 or higher < 2000 or higher > quota + 100000 then error "too much" end
        cpus, quota = more, higher
      end
      assert.equal(cpus, suppress.cpus(allowed, cpus, 10))
      assert.equal(quota, suppress.quota(allowed, quota, 10))
      local state = burst.state(node)
      for _, one in ipairs(burst.decide(node).pods) do
        local bounds, now = { base = one.base, ceiling = one.ceiling }, one.base
        for _ = 1, 8 do
          now = burst.next_quota(bounds, now, state, math.random(2) == 1, math.random(4) > 1)
          if now < one.base or now > one.ceiling then error("a quota of " .. now) end
        end
      end
    end)
  end)
end)
