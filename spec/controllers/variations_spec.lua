-- variations_spec.lua - variations of Koordinator's policies: each replaces a function of the original, and
-- its effect is compared with the original over random nodes and quotas from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local kube = require "kubelua"
local process = require "support.process"
local seeds = require "support.seeds"

local NOW = 1767225600 -- 2026-01-01T00:00:00Z
local CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
local MID_CPU = "kubernetes.io/mid-cpu"
local OWN = { "plan", "prepare", "batchresource", "midresource", "elasticquota.", "podmigrationjob.",
  "variations." }

-- A fresh copy of a policy's module, with or without a variation, whose replacements stay in the copy.
local function fresh(name, variation)
  for loaded in pairs(package.loaded) do
    for _, own in ipairs(OWN) do
      if loaded:sub(1, #own) == own then package.loaded[loaded] = nil end
    end
  end
  if variation then require("variations." .. variation) end
  return require(name)
end

local function pod(name, class, cpu)
  return { metadata = { namespace = "ns", name = name,
    labels = { ["koordinator.sh/priority-class"] = class } },
    spec = { containers = { { name = "c", resources = {
      requests = { cpu = cpu .. "m", memory = "1Gi" } } } } },
    status = { phase = "Running" } }
end

-- used: milli-cores of the prod pod. more: { now, requested, annotations, reclaimable }
local function input(used, more)
  more = more or {}
  local now = more.now or NOW
  local has = { cpu = "20", memory = "40Gi" }
  return { now = now, pods = { pod("web", "koord-prod", more.requested or 8000) },
    node = { metadata = { name = "n", annotations = more.annotations or {}, labels = {} },
      status = { capacity = has, allocatable = has } },
    strategy = { enable = true, cpuReclaimThresholdPercent = 60, memoryReclaimThresholdPercent = 65,
      degradeTimeMinutes = 15, midCPUThresholdPercent = 100, midMemoryThresholdPercent = 100,
      midUnallocatedPercent = 0, cpuCalculatePolicy = "usage", memoryCalculatePolicy = "usage" },
    nodeMetric = { status = { updateTime = tostring(kube.time(now)),
      prodReclaimableMetric = { resource = { resources = more.reclaimable
        or { cpu = "6", memory = "1Gi" } } },
      podsMetric = { { namespace = "ns", name = "web", priority = "koord-prod",
        podUsage = { resources = { cpu = used .. "m", memory = "1Gi" } } } },
      nodeMetric = { systemUsage = { resources = { cpu = "1", memory = "1Gi" } },
        nodeUsage = { resources = { cpu = used + 1000 .. "m", memory = "2Gi" } } } } } }
end

local function origin(cpu) return { ["node.koordinator.sh/originExtendedAllocatable"] =
  ('{"resources":{"%s":"%d","%s":"1Gi"}}'):format(CPU, cpu, MEMORY) } end

describe("a variation", function()
  it("is a small file", function()
    local files = process.run "ls controllers/koordinator/variations/*.lua"
    local seen = 0
    for path in files:gmatch "[^\n]+" do
      local lines = 0
      for text in io.lines(path) do
        if text:find "%S" and not text:find "^%s*%-%-" then lines = lines + 1 end
      end
      assert.is_true(lines < 40, ("%s has %d lines"):format(path, lines))
      seen = seen + 1
    end
    assert.is_true(seen >= 8)
  end)
end)

describe("smoothed batch resources", function()
  it("fall at once, rise in steps, and ignore small changes", function()
    local original, smoothed = fresh "batchresource", fresh("batchresource", "smoothed")
    seeds.each(300, function()
      local used, has = math.random(0, 8000), math.random(0, 12000)
      local one = input(used, { annotations = origin(has) })
      local new, cpu = original.calculate(one).resources[CPU], smoothed.calculate(one).resources[CPU]
      if new <= has then
        assert.equal(new, cpu)
      elseif new - has <= has * 0.05 then
        assert.equal(has, cpu)
      else
        assert.is_true(cpu > has and cpu <= math.max(has + (new - has) * 0.3, has + 1))
      end
    end)
    assert.equal(original.calculate(input(100)).resources[CPU], smoothed.calculate(input(100)).resources[CPU])
  end)

  it("reach the original, except for small changes", function()
    local original, smoothed = fresh "batchresource", fresh("batchresource", "smoothed")
    local goal, has = original.calculate(input(1000)).resources[CPU], 0
    for _ = 1, 50 do has = smoothed.calculate(input(1000, { annotations = origin(has) })).resources[CPU] end
    assert.is_true(has <= goal and has >= goal * 0.94, has)
  end)
end)

describe("predictors", function()
  local predictors = require "variations.predictors"

  it("predict the peak of usage", function()
    local samples = {}
    for i = 1, 100 do samples[i] = (i * 37) % 100 + 1 end
    assert.equal(95, predictors.percentile(0.95)(samples))
    assert.equal(7.0, predictors.n_sigma(5) { 7, 7, 7 })
    assert.is_true(math.abs(predictors.n_sigma(2) { 1, 3 } - (2 + 2 * math.sqrt(2))) < 1e-9)
    assert.equal(9, predictors.maximum(function() return 9 end, predictors.percentile(1)) { 1, 8 })
  end)

  -- Runs reports of a pod with high usage in every tenth minute; returns the last result.
  local function run(module, name)
    local cpu
    for minute = 1, 41 do
      local out = module.calculate(input(minute % 10 == 0 and 7000 or 1000, { now = NOW + 60 * minute }))
      cpu = out.resources[name]
    end
    return cpu
  end

  it("offer the unused part below the peaks, and never more than the original", function()
    local original, peak = fresh "batchresource", fresh("batchresource", "peakbatch")
    local was, is = run(original, CPU), run(peak, CPU)
    assert.equal(10000, was)
    assert.is_true(is <= 4000, is)
    seeds.each(100, function()
      local one = input(math.random(0, 9000), { now = NOW + 86400 + math.random(60) })
      assert.is_true(peak.calculate(one).resources[CPU] <= original.calculate(one).resources[CPU])
    end)
  end)

  it("replace the agent's prediction for mid", function()
    local original, peak = fresh "midresource", fresh("midresource", "peakmid")
    assert.equal(6000, run(original, MID_CPU))
    -- Without samples it is the request minus the usage.
    assert.equal(7000, peak.calculate(input(1000)).resources[MID_CPU])
    local is = run(peak, MID_CPU)
    assert.is_true(is < 1000, is)
    assert.is_nil((peak.calculate {}))
  end)
end)

describe("mid below batch", function()
  it("is the smaller of both, and batch is unchanged", function()
    local original, below = fresh "plan", fresh("plan", "midbelowbatch")
    seeds.each(200, function()
      local one = input(math.random(0, 20000), { requested = math.random(0, 16000) })
      local was, is = original.calculate(one).resources, below.calculate(one).resources
      assert.equal(was[CPU], is[CPU])
      assert.equal(math.min(was[MID_CPU], was[CPU]), is[MID_CPU])
    end)
    local old = input(100)
    old.nodeMetric.status.updateTime = "2025-01-01T00:00:00Z"
    assert.is_true(below.calculate(old).resets[CPU])
  end)
end)

describe("reclaim by time of day", function()
  it("lends less from 8 to 20, and the full amount at night", function()
    local original, day = fresh "plan", fresh("plan", "timeofday")
    for hour = 0, 23 do
      local one = input(1000, { now = NOW + hour * 3600 })
      local was, is = original.calculate(one).resources[CPU], day.calculate(one).resources[CPU]
      assert.equal(hour >= 8 and hour < 20 and was - 4000 or was, is, hour)
      assert.equal(60, one.strategy.cpuReclaimThresholdPercent)
    end
  end)
end)

describe("a split with a third party", function()
  it("keeps each part, whatever the other takes", function()
    local original = fresh "prepare"
    local split = fresh("prepare", "thirdparty")
    seeds.each(200, function()
      local cpu, taken = math.random(0, 20000), math.random(0, 20000)
      local node = { metadata = { annotations = { ["node.koordinator.sh/thirdPartyAllocations"] =
        ('{"allocations":[{"name":"yarn","priority":"koord-batch","resources":{"%s":%d}}]}'):format(CPU,
          taken) } } }
      local given = { resources = { [CPU] = cpu, [MEMORY] = 1024 * cpu } }
      local was, out = original.prepare(node, given), split.prepare(node, given)
      local theirs = kube.decode(out.annotations["kubelua.dev/third-party-share"])
      assert.equal(cpu * 40 // 100, kube.qty(theirs[CPU]):value())
      assert.equal(math.min(was.resources[CPU], cpu - cpu * 40 // 100), out.resources[CPU])
    end)
    local none = split.prepare({ metadata = {} }, { resets = { [CPU] = true, [MEMORY] = true } })
    assert.same({ false, false }, { none.resources[CPU], none.annotations["kubelua.dev/third-party-share"] })
  end)
end)

describe("a budget of evictions for a team", function()
  it("adds a bucket for its pods, and none if an eviction is forced", function()
    local limits = fresh("podmigrationjob.limits", "teambudget")
    local function names(labels, forced)
      local out = {}
      for i, b in ipairs(limits.buckets({ metadata = { namespace = "ns", labels = labels } }, nil, {},
        forced)) do
        out[i] = b.name
      end
      return table.concat(out, " ")
    end
    assert.equal(names {} .. (names {} == "" and "" or " ") .. "team/web", names { team = "web" })
    assert.equal(names({}, true), names({ team = "web" }, true))
  end)

  it("evicts no more pods of a team than it allows, however many jobs there are", function()
    local limits = fresh("podmigrationjob.limits", "teambudget")
    seeds.each(50, function()
      local bucket, gone, at = nil, 0, 0
      local own = { metadata = { namespace = "ns", labels = { team = "web" } } }
      while at < 3600 do
        local list = limits.buckets(own, nil, {}, false)
        local b = list[#list]
        if limits.wait(bucket, at) == 0 then
          bucket, gone = limits.take(bucket, at, b.most, b.window, b.burst), gone + 1
        end
        at = at + math.random(1, 100)
      end
      assert.is_true(gone >= 6 and gone <= 8, gone)
    end)
  end)
end)

describe("an explained quota", function()
  it("contains the numbers of its runtime, and is written when they change", function()
    local tree = fresh("elasticquota.tree", "quotaexplain")
    local status = require "elasticquota.status"
    local quota = require "elasticquota.quota"
    local function make(name, min, max, request)
      return { metadata = { name = name, labels = {} }, spec = { min = { cpu = min }, max = { cpu = max } } },
        { request = { cpu = request }, used = {}, non_preemptible_request = {}, non_preemptible_used = {} }
    end
    local a, a_pods = make("a", "2", "8", 7000)
    local b, b_pods = make("b", "2", "4", 1000)
    local infos = tree.calculate { quotas = { quota.read(a), quota.read(b) }, total = { cpu = 6000 },
      pods = { a = a_pods, b = b_pods }, upstream = "main" }
    assert.equal("cpu: runtime 5: koordinator-root-quota has 6, others got 1; min 2 (counts 2), asks for \z
      7, max 8, \z
      lends true, weight 8 of 12", infos.a.explained)
    local draft = { metadata = { annotations = {} }, status = {} }
    status.write(draft, status.changes(a, infos.a))
    assert.equal(infos.a.explained, draft.metadata.annotations["kubelua.dev/quota-explain"])
    a.metadata.annotations, a.status = draft.metadata.annotations, draft.status
    assert.is_nil(status.changes(a, infos.a))
  end)
end)
