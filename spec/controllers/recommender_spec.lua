-- recommender_spec.lua - the recommender and the agents' predictor as functions: the histogram with decaying
-- samples, the history of containers, the recommended requests; and properties over random usage from fixed
-- seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local estimate = require "recommender.estimate"
local histogram = require "lib.histogram"
local history = require "recommender.history"
local kube = require "kubelua"
local lists = require "lib.lists"
local node_of = require "koordlet.node"
local predict = require "koordlet.predict"
local seeds = require "support.seeds"
local target = require "recommender.target"
local usage = require "recommender.usage"

local DAY, GI = 24 * 3600, 2 ^ 30
local START = 1767225600 -- 2026-01-01
local SHAPE = histogram.shape(10, 1000000, 1.05)
local OPTIONS = { targetPercentile = 90, lowerPercentile = 50, upperPercentile = 95, safetyMarginPercent = 15,
  minCPU = "25m", minMemory = "250Mi" }

-- JSON and back, as a ConfigMap keeps it.
local function stored(saved) return kube.copy(kube.decode(kube.encode(saved))) end

local function filled(values, at)
  local h = histogram.new(SHAPE, DAY)
  for _, value in ipairs(values) do histogram.add(h, value, 1.0, at or START) end
  return h
end

local function random_values(n)
  local out = {}
  for i = 1, n do out[i] = 10 * 2 ^ (math.random() * 12) end
  return out
end

describe("a histogram", function()
  it("finds the bucket that contains a value", function()
    assert.equal(0, histogram.bucket(SHAPE, 0))
    assert.equal(SHAPE.last, histogram.bucket(SHAPE, 1e12))
    seeds.each(1000, function()
      local value = 10 * 2 ^ (math.random() * 16)
      local bucket = histogram.bucket(SHAPE, value)
      assert.is_true(histogram.start(SHAPE, bucket) <= value * (1 + 1e-9))
      assert.is_true(value < histogram.start(SHAPE, bucket + 1) * (1 + 1e-9))
    end)
  end)

  it("rounds a percentile up, by one bucket at most", function()
    seeds.each(300, function()
      local values, part = random_values(math.random(1, 60)), math.random()
      local h = filled(values)
      table.sort(values)
      local exact = values[math.max(math.ceil(part * #values - 1e-9), 1)]
      local answer = histogram.percentile(h, part)
      assert.is_true(answer >= exact * (1 - 1e-9), ("%g for %g"):format(answer, exact))
      assert.is_true(answer <= exact * 1.05 + 10 + 1e-6, ("%g for %g"):format(answer, exact))
    end)
    assert.equal(0.0, histogram.percentile(histogram.new(SHAPE, DAY), 0.9))
    assert.is_true(histogram.percentile(filled { 100, 1000 }, 0.5) < 200) -- half of them reach exactly half
  end)

  it("gives a sample half of its weight after a half-life", function()
    local h = filled { 100, 100, 100, 100, 100, 100, 100, 100, 100, 100 }
    for _ = 1, 4 do histogram.add(h, 1000, 1.0, START + DAY) end
    assert.is_true(histogram.percentile(h, 0.5) < 200)
    for _ = 1, 2 do histogram.add(h, 1000, 1.0, START + DAY) end
    assert.is_true(histogram.percentile(h, 0.5) > 900)
  end)

  it("shifts an old reference time, and drops samples that have decayed", function()
    local h = filled({ 100 }, 0)
    for day = 1, 2000, 50 do histogram.add(h, 1000, 1.0, day * DAY) end
    assert.is_true(h.reference > 1000 * DAY)
    assert.is_true(h.total < math.huge and h.total > 0)
    assert.is_true(histogram.percentile(h, 0) > 900)
  end)

  it("is unchanged by adding and subtracting, and by saving and loading", function()
    seeds.each(200, function()
      local values = random_values(20)
      local h, same = filled(values), filled(values)
      local extra, at = random_values(5), START + math.random(0, 3 * DAY)
      for _, value in ipairs(extra) do histogram.add(h, value, 1.0, at) end
      for _, value in ipairs(extra) do histogram.remove(h, value, 1.0, at) end
      local loaded = histogram.load(SHAPE, DAY, stored(histogram.save(same)))
      for _, part in ipairs { 0.13, 0.52, 0.93 } do
        assert.equal(histogram.percentile(same, part), histogram.percentile(h, part))
        assert.equal(histogram.percentile(same, part), histogram.percentile(loaded, part))
      end
    end)
  end)

  it("ignores an invalid saved state", function()
    for _, saved in ipairs { "x", {}, { reference = 1 }, { reference = 1, weights = { a = 1, ["-1"] = 2,
      ["100000"] = 1, ["3"] = "x" } } } do
      assert.is_true(histogram.is_empty(histogram.load(SHAPE, DAY, saved)))
    end
  end)
end)

local function container(name, cpu, memory)
  return { name = name, resources = { requests = { cpu = cpu, memory = memory } } }
end

local function pod(uid, containers, more)
  more = more or {}
  return { metadata = { uid = uid, namespace = "ns", name = uid, labels = more.labels,
    creationTimestamp = more.created }, spec = { containers = containers, initContainers = more.init,
    priority = more.priority }, status = { phase = "Running" } }
end

describe("the usage of a pod", function()
  it("is divided among its containers by their requests, without loss", function()
    local one = pod("p", { container("a", "3", "1Gi"), container("b", "1", "1Gi") }, { init = {
      { name = "once" }, { name = "side", restartPolicy = "Always" } } })
    assert.same({ { name = "side", request = 0, cpu = 0.0, memory = 0.0 },
      { name = "a", request = 3000, cpu = 750.0, memory = 50.0 },
      { name = "b", request = 1000, cpu = 250.0, memory = 50.0 } },
      usage.split(one, { cpu = 1000, memory = 100 }))
    local batch = { name = "c", resources = { requests = { ["kubernetes.io/batch-cpu"] = 500 } } }
    assert.same({ { name = "c", request = 500, cpu = 7.0, memory = 0.0 } }, usage.split(pod("p", { batch }),
      { cpu = 7 }))
    seeds.each(200, function()
      local list, sum = {}, 0
      for i = 1, math.random(1, 5) do list[i] = container("c" .. i, math.random(0, 2), nil) end
      for _, c in ipairs(usage.split(pod("p", list), { cpu = 1000 })) do sum = sum + c.cpu end
      assert.is_true(math.abs(sum - 1000) < 1e-6)
    end)
  end)
end)

describe("the history of a target", function()
  local one = pod("p", { container("c", "1", "1Gi") })

  it("counts a report once", function()
    local known = history.new()
    assert.is_true(history.sample(known, one, { cpu = 500, memory = GI }, START))
    assert.is_false(history.sample(known, one, { cpu = 900, memory = GI }, START))
    assert.equal(1, known.containers.c.samples)
  end)

  it("counts the daily peak of a pod once", function()
    local known = history.new()
    for hour = 0, 47 do
      history.sample(known, one, { cpu = 500, memory = hour == 20 and 4 * GI or GI }, START + hour * 3600)
    end
    local h, n = known.containers.c.memory, 0
    for _ in pairs(h.weights) do n = n + 1 end
    assert.equal(2, n)
    -- The second day weighs twice the first one, so its 1Gi is the median; the peak is the rest.
    local function about(want, got) assert.is_true(got >= want and got <= want * 1.06, got) end
    about(GI, histogram.percentile(h, 0.5))
    about(4 * GI, histogram.percentile(h, 0.9))
  end)

  it("continues after saving and loading, and skips the last report", function()
    seeds.each(50, function()
      local known = history.new()
      for i = 1, 200 do
        history.sample(known, one, { cpu = math.random(2000), memory = math.random(4) * GI }, START + 60 * i)
      end
      local loaded = history.load(stored(history.save(known)))
      assert.same(estimate.containers(known, OPTIONS), estimate.containers(loaded, OPTIONS))
      assert.is_false(history.sample(loaded, one, { cpu = 1, memory = 1 }, known.seen))
      assert.is_true(history.sample(loaded, one, { cpu = 1, memory = 1 }, known.seen + 60))
    end)
    assert.same(history.new(), history.load "nothing")
  end)

  it("forgets deleted pods, and keeps their usage", function()
    local known = history.new()
    history.sample(known, one, { cpu = 500, memory = GI }, START)
    history.prune(known, {})
    assert.is_nil(next(known.pods))
    assert.equal(1, known.containers.c.samples)
  end)
end)

describe("a recommendation", function()
  local function learned(days, each)
    local known = history.new()
    for minute = 0, days * 1440, 10 do
      history.sample(known, pod("p", { container("c", "1", "1Gi") }), each(minute), START + minute * 60)
    end
    return estimate.containers(known, OPTIONS)[1]
  end

  it("lies between its bounds, which narrow with age", function()
    seeds.each(30, function()
      local last_width = math.huge
      local most = math.random(100, 4000)
      for _, days in ipairs { 1, 3, 8 } do
        local e = learned(days, function() return { cpu = most, memory = GI } end)
        for _, what in ipairs { "cpu", "memory" } do
          local r = e[what]
          assert.is_true(r.lower <= r.target and r.target <= (r.upper or math.huge))
        end
        assert.is_true(e.cpu.upper - e.cpu.lower <= last_width)
        last_width = e.cpu.upper - e.cpu.lower
      end
    end)
  end)

  it("never falls when usage rises", function()
    seeds.each(50, function()
      local base, more = math.random(10, 2000), math.random(0, 2000)
      local less = learned(1, function(m) return { cpu = base + m % 100, memory = GI } end)
      local other = learned(1, function(m) return { cpu = base + m % 100 + more, memory = 2 * GI } end)
      assert.is_true(other.cpu.target >= less.cpu.target)
      assert.is_true(other.memory.target >= less.memory.target)
    end)
  end)

  it("is not below the minimum of a pod, which its containers share", function()
    local known = history.new()
    history.sample(known, pod("p", { container("a"), container("b") }), { cpu = 0, memory = 0 }, START)
    local found = estimate.containers(known, OPTIONS)
    assert.same({ "a", "b" }, { found[1].name, found[2].name })
    assert.same({ { containerName = "a", resources = { cpu = "13m", memory = "125Mi" } },
      { containerName = "b", resources = { cpu = "13m", memory = "125Mi" } } }, estimate.statuses(found))
    assert.is_nil(found[1].cpu.upper)
  end)

  it("is the percentile with its margin, and explains it", function()
    local e = learned(2, function() return { cpu = 1000, memory = GI } end)
    local bucket = histogram.start(SHAPE, histogram.bucket(SHAPE, 1000) + 1)
    assert.equal(math.ceil(bucket * 1.15), e.cpu.target)
    local text = estimate.explain({ e }, OPTIONS)
    assert.equal(1, text:find(("c: cpu %s = max(p90 %s + 15%%, floor), within "):format(
      lists.text("cpu", e.cpu.target), lists.text("cpu", e.cpu.percentile)), 1, true), text)
    assert.matches("289 samples, confidence 0.20 days$", text)
  end)
end)

describe("a target", function()
  local function object(name, kind, owner, version)
    return { metadata = { name = name, uid = "u-" .. name, ownerReferences = owner and { {
      apiVersion = version or "apps/v1", kind = kind, name = owner, uid = "u-" .. owner,
      controller = true } } } }
  end
  local objects = {
    ["apps/v1/ReplicaSet"] = { object("web-1", "Deployment", "web"), object("web-2", "Deployment", "web") },
    ["v1/Pod"] = { object("a", "ReplicaSet", "web-1"), object("b", "ReplicaSet", "web-2"),
      object("c", "CloneSet", "web", "apps.kruise.io/v1alpha1"), object "d" },
  }
  local world = { controlled = function(kind, _, owner)
    local out = {}
    for _, one in ipairs(objects[kind]) do
      if target.controller_name(one) == owner then out[#out + 1] = one end
    end
    return out
  end, selected = function() return { objects["v1/Pod"][4] } end }
  local function names(spec)
    local found, why = target.pods({ metadata = { namespace = "ns" }, spec = { target = spec } }, world)
    if not found then return why end
    local out = {}
    for i, one in ipairs(found) do out[i] = one.metadata.name end
    return table.concat(out, " ")
  end

  it("is a workload of any kind, a Deployment by its ReplicaSets, or what labels choose", function()
    assert.equal("a b", names { type = "workload", workload = { kind = "Deployment", name = "web" } })
    assert.equal("c", names { type = "workload", workload = { apiVersion = "apps.kruise.io/v1",
      kind = "CloneSet",
      name = "web" } })
    assert.equal("", names { type = "workload", workload = { apiVersion = "apps/v1", kind = "CloneSet",
      name = "web" } })
    assert.equal("d", names { type = "podSelector", podSelector = {} })
  end)

  it("names what is missing", function()
    assert.matches("target.workload is absent", names { type = "workload" })
    assert.matches("target.podSelector is absent", names { type = "podSelector" })
    assert.matches('target.type is "x"', names { type = "x" })
  end)
end)

describe("the predictor of an agent", function()
  local function read(list, used, annotations)
    local reports = {}
    for name, one in pairs(used) do
      reports[#reports + 1] = { namespace = "ns", name = name, podUsage = { resources = one } }
    end
    local metric = { status = { podsMetric = reports, nodeMetric = {
      nodeUsage = { resources = { cpu = "5", memory = "5Gi" } },
      systemUsage = { resources = { cpu = "500m", memory = "1Gi" } } } } }
    return node_of.read { metric = metric, pods = list, node = { metadata = { name = "n",
      annotations = annotations }, status = { capacity = { cpu = "20", memory = "40Gi" },
      allocatable = { cpu = "20", memory = "40Gi" } } } }, metric
  end
  local NOW = START + 3 * DAY
  local O = { coldStartSeconds = DAY, safetyMarginPercent = 10 }
  local OLD, NEW = "2025-12-01T00:00:00Z", "2026-01-03T12:00:00Z"

  local function predicted(list, used, annotations)
    local state, node, metric = predict.new(), read(list, used, annotations)
    for minute = 1, 30 do predict.sample(state, node, metric, NOW - 60 * (30 - minute)) end
    return predict.predict(state, node, NOW, O), state, node, metric
  end

  it("offers the requests of prod pods above their peaks, the smaller of two estimates", function()
    local out = predicted({ pod("web", { container("c", "8", "8Gi") }, { created = OLD, priority = 9500 }) },
      { web = { cpu = "2", memory = "2Gi" } })
    local p = out.parts.cpu
    -- 8000 - 2000 * 1.1, less a bucket; then less the system, and a bucket of the class that nobody is of.
    assert.is_true(p.by_pods <= 5800 and p.by_pods > 5800 - 2200 * 0.05, p.by_pods)
    assert.is_true(p.by_classes <= 5800 - 550 and p.by_classes > 5800 - 550 - 2750 * 0.05 - 60, p.by_classes)
    assert.equal(p.by_classes, out.reclaimable.cpu)
  end)

  it("offers nothing of pods that are new, ending, or of a lower class", function()
    for _, more in ipairs { { created = NEW }, { created = OLD, priority = 5500 } } do
      local out = predicted({ pod("web", { container("c", "8", "8Gi") }, more) },
        { web = { cpu = "2", memory = "2Gi" } })
      assert.equal(0, out.parts.cpu.by_pods)
      assert.equal(0, out.reclaimable.cpu)
    end
    local going = pod("web", { container("c", "8", "8Gi") }, { created = OLD })
    going.metadata.deletionTimestamp = NEW
    assert.equal(0, predicted({ going }, { web = { cpu = "2" } }).reclaimable.cpu)
  end)

  it("uses the node's resources before amplification", function()
    local list = { pod("web", { container("c", "18", "8Gi") }, { created = OLD }) }
    local used = { web = { cpu = "1", memory = "1Gi" } }
    local whole = predicted(list, used).reclaimable.cpu
    local raw = predicted(list, used,
      { ["node.koordinator.sh/raw-allocatable"] = '{"cpu":"10","memory":"40Gi"}' })
    assert.is_true(whole > 15000 and raw.reclaimable.cpu < 9000)
  end)

  it("counts a report once, forgets deleted pods, and continues after saving and loading", function()
    local out, state, node, metric = predicted({ pod("web", { container("c", "8", "8Gi") },
      { created = OLD }) },
      { web = { cpu = "2", memory = "2Gi" } })
    assert.is_false(predict.sample(state, node, metric, NOW))
    assert.same(out, predict.predict(predict.load(stored(predict.save(state))), node, NOW, O))
    node.pods[1].used = nil
    predict.sample(state, node, metric, NOW + 1801)
    assert.is_nil(state.models["pod/web"])
    assert.same(predict.new(), predict.load { models = "x" })
  end)

  it("never offers more than requested or allocatable, nor more when usage rises", function()
    seeds.each(200, function()
      local list, used, more = {}, {}, {}
      for i = 1, math.random(1, 6) do
        local name = "p" .. i
        local priority = ({ 9500, 7500, 5500 })[math.random(4)]
        list[i] = pod(name, { container("c", math.random(8), math.random(8) .. "Gi") },
          { created = math.random(4) == 1 and NEW or OLD, priority = priority })
        local cpu, memory = math.random(0, 4000), math.random(0, 4096)
        used[name] = { cpu = cpu .. "m", memory = memory .. "Mi" }
        more[name] = { cpu = cpu + math.random(0, 2000) .. "m",
          memory = memory + math.random(0, 999) .. "Mi" }
      end
      local out, worse = predicted(list, used), predicted(list, more)
      for what, n in pairs(out.reclaimable) do
        assert.is_true(n >= 0 and n <= out.parts[what].requests)
        assert.is_true(n <= (what == "cpu" and 20000 or 40 * GI))
        assert.is_true(worse.reclaimable[what] <= n, what)
      end
    end)
  end)
end)
