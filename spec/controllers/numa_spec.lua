-- numa_spec.lua - NodeNUMAResource as functions: the processors and NUMA nodes that a pod gets under each
-- policy, the messages for pods that get none, and properties over random nodes from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cpus = require "scheduler.numa.cpus"
local cycle = require "scheduler.cycle"
local kube = require "kubelua"
local merge = require "scheduler.numa.merge"
local place = require "scheduler.numa.place"
local seeds = require "support.seeds"
local sizes = require "support.sizes"
local snapshot = require "scheduler.snapshot"
local topology = require "scheduler.numa.topology"

local NODE, SCHEDULING = "node.koordinator.sh/", "scheduling.koordinator.sh/"

-- A topology of 2 threads a core, numbered core by core.
local function machine(o)
  local detail, zones, id = {}, {}, 0
  for node = 0, o.nodes - 1 do
    for core = 0, o.cores - 1 do
      for _ = 1, 2 do
        detail[#detail + 1] = { id = id, core = node * o.cores + core, node = node,
          socket = node // (o.per_socket or 1) }
        id = id + 1
      end
    end
    zones[node + 1] = { name = "node-" .. node, type = "Node", resources = {
      { name = "cpu", allocatable = tostring(o.cores * 2) },
      { name = "memory", allocatable = (o.memory or 8) .. "Gi" } } }
  end
  local annotations = { [NODE .. "cpu-topology"] = kube.encode { detail = detail } }
  for name, text in pairs(o.annotations or {}) do annotations[name] = text end
  return { metadata = { name = "n", annotations = annotations }, zones = zones,
    topologyPolicies = o.policies }
end

local function node(o)
  return { metadata = { name = "n", labels = o.labels or {}, annotations = o.annotations or {} }, spec = {},
    status = { allocatable = { cpu = o.cpu, memory = "64Gi", pods = "110" } } }
end

local function pod(name, cpu, o)
  o = o or {}
  return { metadata = { name = name, namespace = "ns", uid = name, annotations = o.annotations or {},
    labels = { ["koordinator.sh/qosClass"] = o.qos or "LSR" } },
    spec = { containers = { { name = "c", resources = { requests = { cpu = cpu, memory = o.memory } } } } },
    status = {} }
end

local function state(o)
  return { now = 0, pods_on = { n = o.pods }, topologies = { n = o.topology } }
end

local function asks(required, preferred, exclusive)
  return { [SCHEDULING .. "resource-spec"] = kube.encode(kube.object { requiredCPUBindPolicy = required,
    preferredCPUBindPolicy = preferred, preferredCPUExclusivePolicy = exclusive }) }
end

local function has(text, zones)
  return { [SCHEDULING .. "resource-status"] = kube.encode(kube.object { cpuset = text,
    numaNodeResources = zones }) }
end

-- The processors that a pod gets, as text; or the reason why it gets none.
local function given(p, o)
  local result = cycle.run(p, { node(o) }, state(o))
  if not result.node then return (result.message:match "available: 1 (.*)%.$" or result.message) end
  return cpus.text(result.numa.cpus), result.numa.zones
end

describe("lists of processors", function()
  it("read and print as Linux does", function()
    for _, text in ipairs { "", "0", "0-3", "0-3,8", "1,3,5-6" } do
      assert.equal(text, cpus.text(cpus.list((cpus.parse(text)))))
    end
    for _, text in ipairs { "a", "1-", "-1", "1,,2", "0-99999999999999999999", "1.5" } do
      assert.is_nil(cpus.parse(text), text)
    end
  end)
end)

describe("a NodeResourceTopology", function()
  it("subtracts reservations of the kubelet, its pods, the node and the system", function()
    local read = topology.read(machine { nodes = 2, cores = 4, annotations = {
      ["kubelet.koordinator.sh/cpu-manager-policy"] =
        '{"policy":"static","options":{"full-pcpus-only":"true"},"reservedCPUs":"0"}',
      [NODE .. "pod-cpu-allocs"] =
        '[{"uid":"u","cpuset":"2-3","managedByKubelet":true},{"uid":"v","cpuset":"5"}]',
      [NODE .. "reservation"] = '{"reservedCPUs":"8"}',
      [NODE .. "system-qos-resource"] = '{"cpuset":"9"}',
    } })
    assert.equal("0,2-3,8-9", cpus.text(cpus.list(read.reserved)))
    assert.is_true(read.full_only)
    assert.same({ 5000, 6000 }, { read.zones[1].resources.cpu, read.zones[2].resources.cpu })
    assert.same({ 16, 2, 8, 8 }, { read.n_cpus, read.per_core, read.per_node, read.per_socket })
  end)

  it("that is invalid counts as empty", function()
    local read = topology.read { metadata = { annotations = { [NODE .. "cpu-topology"] = "{",
      [NODE .. "pod-cpu-allocs"] = '[{"uid":"u","cpuset":"x","managedByKubelet":true}]' } } }
    assert.same({ 0, {}, {} }, { read.n_cpus, read.zones, read.reserved })
  end)
end)

describe("a pod of its own processors", function()
  local two = machine { nodes = 2, cores = 4 }

  it("gets whole cores, from the NUMA node with the most free ones", function()
    assert.equal("0-3", given(pod("p", "4"), { cpu = "16", topology = two }))
    local busy = { pod("q", "2", { annotations = has "0-1" }) }
    assert.equal("8-11", given(pod("p", "4"), { cpu = "16", topology = two, pods = busy }))
    assert.equal("2-5", given(pod("p", "4"), { cpu = "16", topology = two, pods = busy,
      labels = { [NODE .. "numa-allocate-strategy"] = "MostAllocated" } }))
  end)

  it("gets one processor of each core, or whole cores where one thread is left of some", function()
    local spread = asks(nil, "SpreadByPCPUs")
    assert.equal("0,2,4,6", given(pod("p", "4", { annotations = spread }), { cpu = "16", topology = two }))
    local halves = { pod("q", "7", { annotations = has "0,2,4,6,8,10,12" }) }
    local o = { cpu = "16", topology = two, pods = halves }
    assert.equal("14-15", given(pod("p", "2"), o))
    assert.equal("not enough cpus available to satisfy request",
      given(pod("p", "4", { annotations = asks "FullPCPUs" }), o))
    assert.equal("node(s) requested cpus not multiple cpus per core",
      given(pod("p", "3", { annotations = asks "FullPCPUs" }), o))
  end)

  it("avoids cores and NUMA nodes of other exclusive pods, if possible", function()
    local function exclusive(policy, text)
      local annotations = asks(nil, "SpreadByPCPUs", policy)
      if text then annotations[SCHEDULING .. "resource-status"] = has(text)[SCHEDULING
        .. "resource-status"] end
      return annotations
    end
    local o = { cpu = "16", topology = two,
      pods = { pod("q", "1", { annotations = exclusive("PCPULevel", "0") }) },
      labels = { [NODE .. "numa-allocate-strategy"] = "MostAllocated" } }
    assert.equal("2", given(pod("p", "1", { annotations = exclusive "PCPULevel" }), o))
    assert.equal("1", given(pod("p", "1", { annotations = asks(nil, "SpreadByPCPUs") }), o))
    o.pods = { pod("q", "1", { annotations = exclusive("NUMANodeLevel", "0") }) }
    assert.equal("8", given(pod("p", "1", { annotations = exclusive "NUMANodeLevel" }), o))
  end)

  it("is one of LSE or LSR that asks for whole processors", function()
    local o = { cpu = "16", topology = two }
    assert.equal("", given(pod("p", "1500m", { qos = "LS" }), o))
    assert.equal("", given(pod("p", "1500m", { annotations = asks(nil, "ConstrainedBurst") }), o))
    assert.matches("the requested CPUs must be integer", given(pod("p", "1500m"), o))
    assert.equal("node(s) invalid CPU Topology", given(pod("p", "1"), { cpu = "16" }))
  end)

  it("has the policy of a node that has one, or is refused", function()
    local o = { cpu = "16", topology = two, labels = { [NODE .. "cpu-bind-policy"] = "SpreadByPCPUs" } }
    assert.equal("0,2", given(pod("p", "2"), o))
    assert.equal("0,2", given(pod("p", "2", { qos = "LS" }), o))
    assert.equal("node(s) cpu bind policy conflicts with pod's required cpu bind policy",
      given(pod("p", "2", { annotations = asks "FullPCPUs" }), o))
    assert.equal("the requested CPUs must be integer", given(pod("p", "1500m", { qos = "LS" }), o))
  end)

  it("counts for more on a node with amplified cpu", function()
    local o = { cpu = "32", topology = two, annotations = { [topology.RATIOS] = '{"cpu":2.0}' },
      pods = { pod("q", "12", { annotations = has "0-11" }) } }
    assert.equal("12-15", given(pod("p", "4"), o))
    assert.equal("", given(pod("p", "8", { qos = "LS" }), o))
    assert.equal("Insufficient amplified cpu", given(pod("p", "9", { qos = "LS" }), o))
    o.annotations[topology.RATIOS] = "{"
    assert.equal("node(s) invalid CPU amplification ratio", given(pod("p", "1"), o))
  end)

  it("reports its processors and its policy", function()
    local numa = require "scheduler.numa"
    local result = cycle.run(pod("p", "2"), { node { cpu = "16" } }, state { topology = two })
    assert.same({ '{"cpuset":"0-1"}', '{"preferredCPUBindPolicy":"FullPCPUs"}' },
      { numa.texts(result.numa, pod("p", "2")) })
    local said = pod("p", "2", { annotations = asks(nil, "FullPCPUs") })
    assert.is_nil(select(2, numa.texts(result.numa, said)))
    assert.is_nil(numa.texts({ cpus = {}, zones = {} }, said))
  end)
end)

describe("a NUMA policy", function()
  local small = machine { nodes = 2, cores = 2, memory = 4 }

  local function labels(policy) return { [NODE .. "numa-topology-policy"] = policy } end

  local function parts(zones)
    local out = {}
    for i, zone in ipairs(zones) do
      out[i] = { zone.node, zone.resources.cpu, (zone.resources.memory or 0) >> 30 }
    end
    return out
  end

  local function where(p, policy, pods)
    local text, zones = given(p, { cpu = "8", topology = small, pods = pods, labels = labels(policy) })
    return zones and parts(zones) or text
  end

  local function ls(name, cpu, memory, zones)
    return pod(name, cpu, { qos = "LS", memory = memory, annotations = zones and has(nil, zones) })
  end

  it("SingleNUMANode puts a pod into one NUMA node, or nowhere", function()
    assert.same({ { 0, 2000, 2 } }, where(ls("p", "2", "2Gi"), "SingleNUMANode"))
    assert.equal("Unaligned NUMA Hint cause cpu prefer [11] among [11],memory prefer [01 10] among [01 10 \z
      11]",
      (where(ls("p", "6", "2Gi"), "SingleNUMANode"):gsub("%[01 10%] among %[01 10 11%]",
        "[01 10] among [01 10 11]")
        :gsub("memory prefer %[11%] among %[11%]", "memory prefer [01 10] among [01 10 11]")))
  end)

  it("Restricted spreads a pod evenly where one NUMA node is too small", function()
    assert.same({ { 0, 3000, 1 }, { 1, 3000, 1 } }, where(ls("p", "6", "2Gi"), "Restricted"))
    local taken = { ls("q", "3", "1Gi", { { node = 0, resources = { cpu = "3", memory = "1Gi" } } }) }
    assert.same({ { 0, 1000, 1 }, { 1, 4000, 1 } }, where(ls("p", "5", "2Gi"), "Restricted", taken))
    assert.equal("Unsatisfied NUMA cpu, 1 Unsatisfied NUMA memory",
      where(ls("p", "5", "8Gi"), "Restricted", taken))
  end)

  it("BestEffort prefers one NUMA node, and takes any", function()
    assert.same({ { 0, 2000, 2 } }, where(ls("p", "2", "2Gi"), "BestEffort"))
    assert.same({ { 0, 3000, 1 }, { 1, 3000, 1 } }, where(ls("p", "6", "2Gi"), "BestEffort"))
  end)

  it("BestEffort is scored by the whole node, the others by the NUMA nodes", function()
    local numa = require "scheduler.numa"
    local function score(policy)
      local result = cycle.run(ls("p", "2", "2Gi"), { node { cpu = "8", labels = labels(policy) } },
        state { topology = small }, { plugins = { numa } })
      return cycle.scores(result).n.by[numa.name]
    end
    assert.same({ 85, 50, 85 }, { score "BestEffort", score "Restricted", score(nil) })
  end)

  it("of a pod is that of the node, where that has one", function()
    local asked = { [SCHEDULING .. "numa-topology-spec"] = '{"numaTopologyPolicy":"Restricted"}' }
    local p = pod("p", "2", { qos = "LS", memory = "1Gi", annotations = asked })
    assert.same({ { 0, 2000, 1 } }, where(p, nil))
    assert.equal("node(s) NUMA Topology policy not match", where(p, "BestEffort"))
    assert.equal("node(s) missing NUMA resources",
      given(p, { cpu = "8", topology = { metadata = { name = "n" } } }))
  end)

  it("of a pod keeps pods in one NUMA node apart from those in several", function()
    local function asked(policy)
      return pod("p", "1", { qos = "LS", annotations = {
        [SCHEDULING .. "numa-topology-spec"] = '{"numaTopologyPolicy":"' .. policy .. '"}' } })
    end
    local o = { cpu = "16", topology = machine { nodes = 2, cores = 4 },
      pods = { pod("q", "4", { annotations = has "0-1,8-9" }) } }
    assert.matches("Unaligned NUMA Hint", given(asked "SingleNUMANode", o))
    assert.same({ { 0, 500, 0 }, { 1, 500, 0 } }, parts(select(2, given(asked "Restricted", o))))
    o.pods = { pod("q", "4", { annotations = has "0-3" }) }
    assert.same({ { 0, 1000, 0 } }, parts(select(2, given(asked "SingleNUMANode", o))))
  end)
end)

describe("laws of NUMA nodes:", function()
  local CASES = sizes.of { short = 60, long = 600 }
  local BINDS = { "FullPCPUs", "SpreadByPCPUs" }
  local POLICIES = { "", "BestEffort", "Restricted", "SingleNUMANode" }

  local function pick(list) return list[math.random(#list)] end

  local function random_pod(i)
    local annotations = math.random() < 0.5
      and asks(nil, pick(BINDS), pick { "", "PCPULevel", "NUMANodeLevel" })
      or asks(pick(BINDS))
    return pod("p" .. i, tostring(math.random(1, 6)), { annotations = annotations,
      qos = pick { "LSR", "LSE", "LS" }, memory = math.random(1, 4) .. "Gi" })
  end

  it("no processor is assigned twice or while reserved, and no NUMA node is overcommitted", function()
    seeds.each(CASES, function()
      local o = { nodes = math.random(1, 4), cores = math.random(1, 4), per_socket = math.random(1, 2),
        annotations = { [NODE .. "reservation"] = '{"reservedCPUs":"0"}' } }
      local object, policy = machine(o), pick(POLICIES)
      local n = node { cpu = tostring(o.nodes * o.cores * 2 - 1),
        labels = { [NODE .. "numa-topology-policy"] = policy } }
      local all, owner, taken = state { topology = object }, { [0] = "the node" }, {}
      for i = 1, 12 do
        local p = random_pod(i)
        local result = cycle.run(p, { n }, all)
        if result.node then
          snapshot.assume(all, p, n, cycle.got(result))
          local bound = p.metadata.labels["koordinator.sh/qosClass"] ~= "LS"
          assert.equal(bound and tonumber(p.spec.containers[1].resources.requests.cpu) or 0,
            #result.numa.cpus)
          for _, id in ipairs(result.numa.cpus) do
            assert.is_nil(owner[id], "processor " .. id)
            owner[id] = p.metadata.name
          end
          for _, zone in ipairs(result.numa.zones) do
            for name, amount in pairs(zone.resources) do
              local key = zone.node .. name
              taken[key] = (taken[key] or 0) + amount
            end
          end
          if policy == "SingleNUMANode" and o.nodes > 1 then assert.equal(1, #result.numa.zones) end
        end
      end
      for _, zone in ipairs(topology.read(object).zones) do
        for name, amount in pairs(zone.resources) do
          assert.is_true((taken[zone.node .. name] or 0) <= amount, name)
        end
      end
    end)
  end)

  it("a pod gets its request under its policy", function()
    seeds.each(CASES * 5, function()
      local read = topology.read(machine { nodes = math.random(1, 3), cores = math.random(1, 4) })
      local placed, set = {}, {}
      for id in pairs(read.cpus) do
        if math.random() < 0.3 then set[id] = true end
      end
      placed[1] = { cpus = cpus.list(set), zones = {} }
      local view = place.view(read, placed, nil, pick { "LeastAllocated", "MostAllocated" })
      local want = { n = math.random(1, 6), bind = true, policy = pick(BINDS),
        required = math.random() < 0.5 }
      want.request = { cpu = want.n * 1000 }
      local mask = math.random() < 0.5 and 1 << math.random(0, #read.zones - 1) or nil
      local got = place.allocate(view, want, mask)
      if got then
        local cores, n = {}, 0
        for _, id in ipairs(got.cpus) do
          local core = read.cpus[id].core
          if not cores[core] then cores[core], n = true, n + 1 end
          assert.is_nil(set[id])
          if mask then assert.equal(mask, 1 << read.cpus[id].node) end
        end
        assert.equal(want.n, #got.cpus)
        if want.required then
          assert.equal(want.n, want.policy == "FullPCPUs" and n * read.per_core or n)
        end
      elseif not want.required and not mask then
        assert.is_true(cpus.size(view.available) < want.n)
      end
    end)
  end)

  it("a merged mask suits every resource, unless it is the full mask", function()
    seeds.each(CASES * 5, function()
      local all, hints = (1 << math.random(1, 4)) - 1, {}
      for _, name in ipairs { "cpu", "memory" } do
        hints[name] = {}
        for mask = 1, all do
          if math.random() < 0.5 then
            table.insert(hints[name],
              { mask = mask, preferred = math.random() < 0.5, score = math.random(9) })
          end
        end
      end
      local policy = pick { "BestEffort", "Restricted", "SingleNUMANode" }
      local mask = merge.merge(hints, { policy = policy, all = all, exclusive = "", status = {} })
      if mask and mask ~= all then
        for _, list in pairs(hints) do
          local found = false
          for _, hint in ipairs(list) do found = found or hint.mask & mask == mask end
          assert.is_true(found)
        end
        if policy == "SingleNUMANode" then assert.equal(1, merge.count(mask)) end
      end
    end)
  end)
end)
