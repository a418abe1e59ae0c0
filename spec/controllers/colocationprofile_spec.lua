-- colocationprofile_spec.lua - colocation profiles as pure functions, and properties that hold for every pod.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local kube = require "kubelua"
local amplify = require "colocationprofile.amplify"
local audit = require "colocationprofile.audit"
local config = require "colocationprofile.config"
local fields = require "fields"
local mutate = require "colocationprofile.mutate"
local strategic = require "lib.strategic"
local validate = require "colocationprofile.validate"

local CASES, SEED = 2000, 17
local QOS, CLASS = "koordinator.sh/qosClass", "koordinator.sh/priority-class"

local function profile(name, spec, more)
  local meta = { name = name }
  for k, v in pairs(more or {}) do meta[k] = v end
  return { metadata = meta, spec = spec }
end

local function pod_of(labels, containers, more)
  local pod = { metadata = { name = "p", namespace = "ns", labels = labels },
    spec = { containers = containers or {} } }
  for k, v in pairs(more or {}) do pod.spec[k] = v end
  return pod
end

local function container(name, requests, limits)
  return { name = name, resources = { requests = requests, limits = limits } }
end

local function world(more)
  local w = { priority_class = function(name)
    return name == "batch" and { value = 5500, preemptionPolicy = "Never" } or nil
  end, draw = function() return 0 end }
  for k, v in pairs(more or {}) do w[k] = v end
  return w
end

describe("which profiles select a pod", function()
  local function names(profiles, pod, ns)
    local out = {}
    for i, one in ipairs(mutate.matching(profiles, pod, ns)) do out[i] = one.metadata.name end
    return out
  end
  local A = { matchLabels = { a = "1" } }

  it("is decided by both selectors, and sorted by name", function()
    local ns = { metadata = { labels = { a = "1" } } }
    local profiles = { profile("z", {}), profile("b", { selector = A }),
      profile("a", { namespaceSelector = A }),
      profile("c", { selector = { matchLabels = { a = "2" } } }) }
    assert.same({ "a", "b", "z" }, names(profiles, pod_of { a = "1" }, ns))
    assert.same({ "z" }, names(profiles, pod_of {}, { metadata = {} }))
  end)

  it("counts an unknown namespace as selected, as Koordinator does", function()
    assert.same({ "a" }, names({ profile("a", { namespaceSelector = A }) }, pod_of {}, nil))
  end)

  it("counts an invalid selector as selected", function()
    local broken = { matchExpressions = { { key = "a", operator = "Sometimes" } } }
    assert.same({ "a" }, names({ profile("a", { selector = broken }) }, pod_of {}, { metadata = {} }))
  end)
end)

describe("a profile's probability", function()
  it("is a number or a percentage", function()
    assert.equal(100, mutate.percent(profile("p", {})))
    assert.equal(30, mutate.percent(profile("p", { probability = 30 })))
    assert.equal(30, mutate.percent(profile("p", { probability = "30%" })))
    assert.is_nil(mutate.percent(profile("p", { probability = "30" })))
  end)

  it("applies to a draw up to it, never at 0 and always at 100", function()
    local function applied(probability, draw)
      local one = profile("p", { probability = probability, labels = { x = "1" } })
      local _, names = mutate.mutate(pod_of {}, { one }, world { draw = function() return draw end })
      return #names == 1
    end
    assert.is_false(applied(0, 0))
    assert.is_true(applied(50, 50))
    assert.is_false(applied(50, 51))
    assert.is_true(applied(100, 99))
  end)
end)

describe("a profile", function()
  it("can leave cpu and memory alone, also when its draw fails", function()
    local skipping = profile("p", { probability = 0 },
      { annotations = { ["config.koordinator.sh/skip-update-resources"] = "" } })
    local pod = pod_of({ [CLASS] = "koord-batch" }, { container("c", { cpu = "1" }) })
    assert.same({ cpu = "1" },
      mutate.mutate(pod, { skipping }, world()).spec.containers[1].resources.requests)
  end)

  it("does not change its input", function()
    local pod = pod_of({ [CLASS] = "koord-batch" }, { container("c", { cpu = "1" }) })
    local before = fields.copy(pod)
    mutate.mutate(pod, { profile("p", { labels = { x = "1" } }) }, world())
    assert.same(before, pod)
  end)

  it("makes a request of a limit, in init containers and the overhead, too", function()
    local pod = pod_of({ [CLASS] = "koord-mid" }, { container("c", nil, { cpu = "2", memory = "1Gi" }) },
      { initContainers = { container("i", { cpu = "500m" }) }, overhead = { cpu = "100m", memory = "1Mi" } })
    local spec = mutate.mutate(pod, { profile("p", {}) }, world()).spec
    local mid = { ["kubernetes.io/mid-cpu"] = "2k", ["kubernetes.io/mid-memory"] = "1Gi" }
    assert.same({ requests = mid, limits = mid }, spec.containers[1].resources)
    assert.same({ ["kubernetes.io/mid-cpu"] = "500" }, spec.initContainers[1].resources.requests)
    assert.same({ ["kubernetes.io/mid-cpu"] = "100", ["kubernetes.io/mid-memory"] = "1Mi" }, spec.overhead)
  end)
end)

describe("a pod's request for GPUs", function()
  local PREFIX = "koordinator.sh/"

  local function spec_of(requests, limits)
    local pod = pod_of({}, { container("c", requests, limits or requests and fields.copy(requests)) })
    mutate.device_spec(pod)
    return pod.spec.containers[1].resources
  end

  local function shared(name, amount)
    return spec_of({ [PREFIX .. name] = amount }).limits[PREFIX .. "gpu.shared"]
  end

  it("is written as cores and memory of so many GPUs, in requests and limits", function()
    local two = { [PREFIX .. "gpu-core"] = "200", [PREFIX .. "gpu-memory-ratio"] = "200",
      [PREFIX .. "gpu.shared"] = "2" }
    assert.same({ requests = two, limits = two }, spec_of { [PREFIX .. "gpu"] = "200" })
    assert.same({ "1", "1", "4" }, { shared("gpu-memory-ratio", "50"), shared("gpu-memory-ratio", "150"),
      shared("gpu-memory-ratio", "400") })
    assert.equal("2", shared("gpu-core", "200"))
    assert.equal("3", spec_of({ [PREFIX .. "gpu.shared"] = "3", [PREFIX .. "gpu-core"] = "200" })
      .requests[PREFIX .. "gpu.shared"])
  end)

  it("is absent without GPUs", function()
    assert.same({ requests = { cpu = "1" }, limits = { cpu = "1" } }, spec_of { cpu = "1" })
    assert.same({}, spec_of(nil, nil))
  end)
end)

describe("a strategic merge of a pod", function()
  local BASE = { spec = { containers = { { name = "a", image = "x", args = { "1" } }, { name = "b" } },
    nodeSelector = { z = "1" } } }

  it("merges lists by their keys, and replaces lists without", function()
    local out = strategic.merge(BASE, { spec = { containers = { { name = "a", args = { "2" } },
      { name = "c" } },
      nodeSelector = { y = "2" } } })
    assert.same({ { name = "a", image = "x", args = { "2" } }, { name = "c" }, { name = "b" } },
      out.spec.containers)
    assert.same({ z = "1", y = "2" }, out.spec.nodeSelector)
  end)

  it("keeps the patch's order, and each other item before its old successor", function()
    local function names(...)
      local patch = {}
      for i, name in ipairs { ... } do patch[i] = { name = name } end
      local list = { { name = "a" }, { name = "b" }, { name = "c" } }
      local out = {}
      for i, one in ipairs(strategic.merge({ env = list }, { env = patch }).env) do out[i] = one.name end
      return table.concat(out)
    end
    assert.equal("xabc", names "x")
    assert.equal("acb", names("c", "b"))
    assert.equal("abxc", names("b", "x"))
  end)

  it("deletes by null and by directives", function()
    local patch = kube.decode [[{"spec": {"nodeSelector": null,
      "containers": [{"name": "b", "$patch": "delete"}]}}]]
    local out = strategic.merge(BASE, patch)
    assert.is_nil(out.spec.nodeSelector)
    assert.equal(1, #out.spec.containers)
    assert.same({ { name = "n" } }, strategic.merge(BASE,
      { spec = { containers = { { ["$patch"] = "replace" },
      { name = "n" } } } }).spec.containers)
  end)
end)

describe("a pod", function()
  local function broken(labels, requests, old)
    return validate.pod(pod_of(labels, { container("c", requests) }), old and pod_of(old))
  end

  it("of QoS LSR or LSE asks for whole processors", function()
    local labels = { [QOS] = "LSR", [CLASS] = "koord-prod" }
    assert.same({}, broken(labels, { cpu = "2" }))
    assert.matches("must be integer", broken(labels, { cpu = "1500m" })[1])
    assert.matches("must declare the requested CPUs", broken(labels, nil)[1])
  end)

  it("is not marked as a Reservation's stand-in", function()
    local pod = pod_of({}, { container("a", { cpu = "1" }) })
    pod.metadata.annotations = { ["scheduling.koordinator.sh/reserve-pod"] = "true" }
    assert.matches("reserve%-pod: Forbidden: cannot set in annotations", validate.text(validate.pod(pod)))
  end)

  it("does not change its QoS or its priorities", function()
    local labels = { [QOS] = "LS", [CLASS] = "koord-prod", ["koordinator.sh/priority"] = "1" }
    local old = { [QOS] = "BE", [CLASS] = "koord-batch", ["koordinator.sh/priority"] = "2" }
    local why = broken(labels, nil, old)
    assert.equal(3, #why)
    assert.matches("^%[labels.koordinator.sh/qosClass: Invalid value", validate.text(why))
    assert.same({}, broken(labels, nil, labels))
  end)
end)

describe("amplification", function()
  local RATIOS = "node.koordinator.sh/resource-amplification-ratio"
  local function node(allocatable, annotations)
    return { metadata = { annotations = annotations }, status = { allocatable = allocatable } }
  end

  it("keeps the raw values, and follows the kubelet's changes", function()
    local ratios = { [RATIOS] = '{"cpu":2}' }
    local first = amplify.desired(node({ cpu = "4" }, ratios), node { cpu = "4" })
    assert.same({ raw = '{"cpu":"4"}', allocatable = { cpu = "8" } }, first)
    local known = { [RATIOS] = '{"cpu":2}', [amplify.RAW] = first.raw }
    assert.same({ allocatable = { cpu = "8" } }, amplify.desired(node({ cpu = "8" }, known),
      node { cpu = "8" }))
    assert.equal('{"cpu":"5"}', amplify.desired(node({ cpu = "5" }, known), node { cpu = "8" }).raw)
  end)

  it("names an invalid annotation", function()
    local _, why = amplify.desired(node({ cpu = "4" }, { [RATIOS] = "{" }), node {})
    assert.matches("resource-amplification-ratio: not valid JSON", why, 1, true)
  end)
end)

describe("a configuration", function()
  local KEY = "resource-threshold-config"
  local function entry(name, ...)
    return { name = name, nodeSelector = { matchExpressions = { ... } } }
  end
  local function has(key, ...) return { key = key, operator = "In", values = { ... } } end
  local function why(doc, nodes, key)
    return config.key(key or KEY, { data = { [key or KEY] = kube.encode(doc) } }, nodes or {})
  end

  it("has entries with selectors, and no node twice", function()
    assert.matches("entry number 1: nodeSelector must not be empty", why { nodeStrategies = { {} } })
    local a, b = entry("a", has("x", "1", "2"), has("y", "1", "2")), entry("b", has("x", "1"), has("y", "2"))
    assert.matches('"a" and "b" select the same nodes', why { nodeStrategies = { a, b } })
    local c = entry("c", has("z", "1"))
    assert.is_nil(why { nodeStrategies = { a, c } })
    assert.matches('"a" and "c"', why({ nodeStrategies = { a, c } }, { { x = "1", y = "1", z = "1" } }))
  end)

  it("has lower limits below the upper", function()
    assert.matches("memoryEvictLowerPercent must be below memoryEvictThresholdPercent",
      why { clusterStrategy = { memoryEvictLowerPercent = 70, memoryEvictThresholdPercent = 70 } })
    assert.matches("resourceDiffThreshold", why({ resourceDiffThreshold = 1.5 }, nil, "colocation-config"))
    assert.equal("memoryEvictThresholdPercent must be set together with memoryEvictLowerPercent",
      why { clusterStrategy = { memoryEvictThresholdPercent = 70 } })
    assert.is_nil(why { clusterStrategy = { memoryEvictThresholdPercent = 70,
      memoryEvictLowerPercent = 60 } })
  end)

  it("has network requests of one kind, within 100 and the bandwidth", function()
    local function said(requests, system)
      local doc = {}
      for class, v in pairs(requests) do doc[class] = { networkQOS = { ingressRequest = v } } end
      local function check(qos)
        return config.key("resource-qos-config", { data = { ["resource-qos-config"] = kube.encode(qos),
          ["system-config"] = system and kube.encode(system) } }, {})
      end
      local selector = { matchLabels = { pool = "a" } }
      return check { clusterStrategy = doc }, check { nodeStrategies = { fields.merge(doc,
        { nodeSelector = selector }) } }
    end
    local MORE, FEW = "network requests are more than 100 percent",
      "network requests are more than totalNetworkBandwidth"
    local wide = { clusterStrategy = { totalNetworkBandwidth = "1G" } }
    assert.same({}, { said({ lsClass = 60, beClass = 40 }, wide) })
    assert.same({ MORE, MORE }, { said({ lsClass = 60, beClass = 41 }, wide) })
    local narrow = { clusterStrategy = { totalNetworkBandwidth = "9" } }
    assert.same({ FEW, FEW }, { said({ lsClass = 60 }, narrow) })
    assert.same({ nil, FEW }, { said { lsClass = 60 } })
    assert.same({ MORE, MORE }, { said({ lsClass = "10M" }, wide) })
    assert.matches("all be percentages", said({ lsClass = 1, beClass = "1" }, wide))
    for _, most in ipairs { "50P", "9E", "10000E" } do
      assert.same({ MORE, MORE }, { said({ lsClass = most }, wide) })
      assert.same({}, { said({ lsClass = 60 }, { clusterStrategy = { totalNetworkBandwidth = most } }) })
    end
    local mistakes = { ["nodeStrategies must be a list"] = 5, ["entry number 1 must be an object"] = { 3 },
      ["nodeSelector must be an object"] = { { nodeSelector = 5 } } }
    for message, list in pairs(mistakes) do
      assert.matches("^system%-config: .*" .. message, said({ lsClass = 60 }, { nodeStrategies = list }))
    end
    assert.matches("from 0 to 100, got 101", said({ lsClass = 101 }, wide))
    assert.matches("expected integer or string", said({ lsClass = 50.5 }, wide))
    assert.matches("a percentage or an amount, got x", said({ lsClass = "x" }, wide))
    local other = { nodeStrategies = { { nodeSelector = { matchLabels = { pool = "a" } },
      totalNetworkBandwidth = "1G" } } }
    assert.same({}, { said({ lsClass = 60 }, other) })
  end)

  it("is checked in its changed keys", function()
    local bad = { data = { [KEY] = "{" } }
    assert.matches("^resource%-threshold%-config: not valid JSON", config.config_map(bad, nil, {}))
    assert.is_nil(config.config_map(bad, bad, {}))
  end)
end)

describe("whatever the pod is, colocating it", function()
  local function random_list()
    local list = {}
    if math.random() < 0.8 then list.cpu = math.random(1, 9000) .. "m" end
    if math.random() < 0.8 then list.memory = math.random(1, 4096) .. "Mi" end
    return list
  end
  local CLASSES = { "koord-prod", "koord-mid", "koord-batch", "koord-free", "other" }
  local function random_pod()
    local containers = {}
    for i = 1, math.random(1, 4) do containers[i] = container("c" .. i, random_list(), random_list()) end
    return pod_of({ app = "x" .. math.random(3), [CLASS] = CLASSES[math.random(#CLASSES)] }, containers,
      math.random() < 0.3 and { overhead = random_list() } or nil)
  end
  local function total(pod, native, extended)
    local sum = 0
    for _, c in ipairs(pod.spec.containers) do
      local requests, limits = c.resources.requests, c.resources.limits
      local own = requests[native] or limits[native]
      sum = sum + (own and kube.qty(own):milli() or 0)
      for _, name in ipairs(extended) do
        local q = requests[name]
        local unit = name:find "cpu$" and 1 or 1000
        sum = sum + (q and kube.qty(q):value() * unit or 0)
      end
    end
    return sum
  end

  local CPU = { "kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu" }
  local MEMORY = { "kubernetes.io/batch-memory", "kubernetes.io/mid-memory" }

  it("preserves its requests, and is idempotent", function()
    math.randomseed(SEED)
    for i = 1, CASES do
      local pod = random_pod()
      local one = profile("p", { labels = { x = "1" }, labelSuffixes = { app = "-s" },
        annotations = { a = "b" }, schedulerName = "koord" })
      local once = assert(mutate.mutate(pod, { one }, world()))
      assert.equal(total(pod, "cpu", CPU), total(once, "cpu", CPU), "case " .. i)
      assert.equal(total(pod, "memory", MEMORY), total(once, "memory", MEMORY), "case " .. i)
      local ns = { metadata = {} }
      assert.same({}, audit.pod(one, once, ns, world().priority_class), "case " .. i)
    end
  end)
end)
