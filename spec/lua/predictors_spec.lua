-- predictors_spec.lua - predictors of peaks against results calculated by hand, and the judgement of
-- predictors.
-- not in tsan: it has one thread

local core = require "kubelua.core"
local foresight = require "kubelua.sim.foresight"
local predictors = require "kubelua.sim.predictors"
local process = require "support.process"
local settings = require "kubelua.sim.settings"

local function by_name(name)
  for _, p in ipairs(predictors.list) do
    if p[1] == name then return p end
  end
  error("there is no predictor " .. name)
end

-- A machine with these limits, and the usage of its pods, one list for each.
local function machine_of(limits, pods)
  local usage = core.usage(limits, #pods[1])
  for p, series in ipairs(pods) do usage:set(p, series) end
  return predictors.machine(limits), usage
end

-- The prediction after these usages, one list for each pod.
local function says(name, limits, ...)
  local machine, usage = machine_of(limits, { ... })
  local one, answer = by_name(name)[2](machine), nil
  for t, total in ipairs(usage:cap()) do
    machine:see(total, usage, t)
    answer = one(total)
  end
  return answer
end

-- n samples, each `a` and `b` in turn.
local function turns(n, a, b)
  local out = {}
  for i = 1, n do out[i] = i % 2 == 1 and a or b or a end
  return out
end

describe("predictors", function()
  it("compute their definitions", function()
    local steady = turns(24, 100)
    assert.equal(3000, says("limit", { 1000, 2000 }, steady, steady))
    assert.equal(2700, says("borg-default", { 1000, 2000 }, steady, steady))
    assert.equal(200, says("n-sigma", { 1000, 1000 }, steady, steady))
    -- 24 samples of 100 and 200 in turn: mean 150, the sample's deviation sqrt(24 / 23) * 50
    assert.near(150 + 5 * 50 * math.sqrt(24 / 23), says("n-sigma", { 1000 }, turns(24, 100, 200)), 1e-6)
    assert.equal(1000, says("n-sigma", { 1000 }, turns(23, 100, 200))) -- too few to tell
    -- two pods that take turns: together they stand still, each alone does not
    assert.equal(300, says("n-sigma", { 1000, 1000 }, turns(24, 100, 200), turns(24, 200, 100)))
    assert.near(2 * (150 + 5 * 50 * math.sqrt(24 / 23)),
      says("n-sigma-pods", { 1000, 1000 }, turns(24, 100, 200), turns(24, 200, 100)), 1e-6)
    assert.equal(400, says("max-seen", { 1000, 1000 }, turns(4, 100, 200), turns(4, 200, 100)))
    -- the 95th percentile of 5 % at 900 and the rest at 100 of 1000
    local spikes = turns(100, 100)
    for i = 1, 5 do spikes[i * 20] = 900 end
    assert.near(100, says("rc-like", { 1000 }, spikes), 1e-6)
    spikes[99] = 900
    assert.near(900, says("rc-like", { 1000 }, spikes), 1e-6)
    assert.near(100, says("node-percentile", { 1000 }, turns(100, 100)), 1e-6)
  end)

  it("that decay forget old samples", function()
    local series = turns(10, 1000)
    for i = 11, 2000 do series[i] = 100 end
    for _, name in ipairs { "koordlet", "vpa", "autopilot" } do
      local late = says(name, { 2000 }, series)
      assert.is_true(late > 100 and late < 130, ("%s says %g"):format(name, late))
    end
  end)

  it("of Koordinator's agent predict nothing on the first day", function()
    assert.equal(1000, says("koordlet", { 1000 }, turns(288, 100)))
    assert.is_true(says("koordlet", { 1000 }, turns(289, 100)) < 130)
  end)

  it("never predict more than the pods' limits", function()
    for _, p in ipairs(predictors.list) do
      for _, n in ipairs { 1, 24, 300 } do
        local x = says(p[1], { 500, 500 }, turns(n, 400, 500), turns(n, 500, 1))
        assert.is_true(x <= 1000 and x >= 0, ("%s says %g"):format(p[1], x))
      end
    end
  end)
end)

describe("the oracle", function()
  it("knows the highest use within its horizon", function()
    local totals = {}
    for i = 1, 200 do totals[i] = (i * 7919 + i * i * 31) % 997 end
    for _, horizon in ipairs { 0, 1, 5, 50 } do
      local truth = predictors.oracle(totals, horizon)
      for t = 1, #totals do
        local most = 0
        for k = t, math.min(#totals, t + horizon) do most = math.max(most, totals[k]) end
        assert.equal(most, truth[t])
      end
    end
  end)

  it("is never too low, nor is the limit; predictors that are too low are measured", function()
    local samples = {}
    for t = 1, 100 do samples[t] = t <= 50 and 100 or 950 end
    local machine, usage = machine_of({ 1000 }, { samples })
    local judged = predictors.judge(machine, usage, 1, 10)
    assert.same({ violation = 0, severity = 0, savings = 0 }, judged.limit)
    assert.equal(0, judged.oracle.violation)
    -- nine tenths of the limit are too little from sample 41 on, by 50 of 950
    assert.near(50 / 90, judged["borg-default"].violation, 1e-9)
    assert.near(50 / 950, judged["borg-default"].severity, 1e-9)
    assert.near(0.1, judged["borg-default"].savings, 1e-9)
    -- and the most that was seen from there to where it comes
    assert.near(10 / 90, judged["max-seen"].violation, 1e-9)
  end)
end)

describe("predictors of a generated cluster", function()
  it("give the same result in one process and in two", function()
    local kubelua = os.getenv "KUBELUA" or "build/kubelua"
    local function judged(jobs)
      return process.run(("%s sim --predictors --generate nodes=100,prod=0.2 --for 72h --jobs %d"):format(
        kubelua, jobs))
    end
    local one, code = judged(1)
    assert.equal(0, code, one)
    assert.matches("on 100 machines", one)
    assert.equal(one, judged(2))
  end)
end)

describe("predictors over what was recorded", function()
  local DAYS = 3
  local SECONDS = DAYS * 86400

  local function cell(more)
    local out = { crds = {}, snapshot = {}, settings = settings.defaults(), seed = 1, seconds = SECONDS }
    for k, v in pairs(more) do out[k] = v end
    return out
  end

  -- A machine whose pods use 1 core, and each night for an hour 3.
  local function use(t) return t % 86400 < 3600 and 3 or 1 end

  local function judged(more)
    local rows, machines, said = foresight.run(cell(more))
    local by = {}
    for _, r in ipairs(rows) do by[r.name] = r end
    return by, machines, said
  end

  it("of a trace judge the pods that were there all the time", function()
    local dir = process.tmpdir() .. "/predicted"
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/machine_meta.csv", "m_1,0,1,1,16,100,USING\nm_2,0,1,1,16,100,USING\n")
    process.write(dir .. "/container_meta.csv",
      "c_1,m_1,0,a,started,400,400,1\nc_2,m_2,0,a,started,400,400,1\n")
    process.write(dir .. "/batch_task.csv", "")
    local lines = {}
    for t = 0, SECONDS, 300 do lines[#lines + 1] = ("c_1,m_1,%d,%d,3,,,,,,\n"):format(t, use(t) * 25) end
    process.write(dir .. "/container_usage.csv", table.concat(lines))
    local by, machines, said = judged { trace = { format = "alibaba2018", dir = dir, from = 0 } }
    assert.equal(1, machines)
    assert.equal("of 1 prod pods that existed the whole time; 1 others are left out", said)
    -- of four cores the day's peak is three
    assert.equal(25, by.oracle.savings)
    assert.same({ 0, 0 }, { by.limit.savings, by.limit.violation })
    assert.equal(17.5, (by.seasonal.savings * 1e6 + 0.5) // 1 / 1e6)
    assert.equal(0, by.seasonal.violation)
    assert.is_true(by["n-sigma"].violation > 50)
  end)

  it("of a recording follow what nodes reported", function()
    local out = {}
    local function tell(t, template, name, o)
      out[#out + 1] = ("---\n%s"):format(
        core.to_yaml(core.value({ apiVersion = "action.kwok.x-k8s.io/v1alpha1",
        kind = "ResourcePatch", resource = template, target = { name = name }, method = "create",
        durationNanosecond = t * 1000000000, template = o }, "a change")))
    end
    local function pod(name)
      return { apiVersion = "v1", kind = "Pod", metadata = { name = name, namespace = "default" },
        spec = { nodeName = "a", priority = 9000, containers = { { name = "m", image = "i",
          resources = { requests = { cpu = "4", memory = "1Gi" } } } } } }
    end
    for _, o in ipairs { { apiVersion = "v1", kind = "Node", metadata = { name = "a" },
      status = { capacity = { cpu = "16", memory = "64Gi" } } }, pod "steady", pod "silent" } do
      out[#out + 1] = "---\n" .. core.to_yaml(core.value(o, "an object"))
    end
    for t = 0, SECONDS + 600, 1800 do
      tell(t, { group = "slo.koordinator.sh", version = "v1alpha1", resource = "nodemetrics" }, "a",
        { apiVersion = "slo.koordinator.sh/v1alpha1", kind = "NodeMetric", metadata = { name = "a" },
          status = { nodeMetric = core.object {}, podsMetric = { { name = "steady", namespace = "default",
            podUsage = { resources = { cpu = ("%dm"):format(use(t) * 1000) } } } } } })
    end
    local path = process.write(process.tmpname ".yaml", table.concat(out))
    local by, machines, said = judged { recording = { path = path, from = 0 } }
    assert.equal(1, machines)
    assert.equal("of 1 prod pods that existed the whole time; 1 others are left out", said)
    assert.equal(25, by.oracle.savings)
    assert.equal(0, by.seasonal.violation)
  end)

  it("report unknown usage", function()
    local dir = process.tmpdir() .. "/unused"
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/node.csv", "sn,cpu_milli,memory_mib\na,16000,65536\n")
    process.write(dir .. "/pod.csv",
      "name,cpu_milli,memory_mib,qos,creation_time,deletion_time\np,1000,1024,LS,0,\n")
    local ok, why = pcall(judged, { trace = { format = "openb", dir = dir, from = 0 } })
    assert.is_false(ok)
    assert.matches("no prod pod has usage for the whole time", tostring(why))
  end)
end)
