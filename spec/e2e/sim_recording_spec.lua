-- sim_recording_spec.lua - `kubelua sim --recording`: the cluster and the events of a recording.
-- not in tsan: a simulation has one thread

local controller = require "support.controller"
local core = require "kubelua.core"
local process = require "support.process"
local run = require "kubelua.sim.run"
local servers = require "support.servers"
local settings = require "kubelua.sim.settings"
local recording = require "kubelua.sim.recording"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local KOORDINATOR = "controllers/koordinator/"
local SCRIPT = KOORDINATOR .. "noderesource.lua"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

local function sim(args) return process.run(("%s sim %s"):format(KUBELUA, args)) end

local function node(name)
  return ('{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s"},"status":{"capacity":{"cpu":"16",\z
    "memory":"64Gi"},\z
    "allocatable":{"cpu":"16","memory":"64Gi"}}}'):format(name)
end

local function pod(name, cpu, on)
  return ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","namespace":"default"},\z
    "spec":{"nodeName":"%s",\z
    "priority":9000,"containers":[{"name":"m","image":"i","resources":{"requests":{"cpu":"%d",\z
      "memory":"2Gi"}}}]},\z
    "status":{"phase":"Running"}}'):format(name, on, cpu)
end

local function metric(time, web)
  return ('{"apiVersion":"slo.koordinator.sh/v1alpha1","kind":"NodeMetric","metadata":{"name":"a"},\z
    "spec":{},"status":{\z
    "updateTime":"%s","nodeMetric":{"nodeUsage":{"resources":{"cpu":"%d","memory":"9Gi"}},\z
      "systemUsage":{"resources":{\z
    "cpu":"1","memory":"3Gi"}}},"podsMetric":[{"namespace":"default","name":"web",\z
      "podUsage":{"resources":{"cpu":"%d",\z
    "memory":"1Gi"}}}]}}'):format(time, web + 1, web)
end

local CONFIG = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slo-controller-config",\z
  "namespace":"koordinator-system"},"data":{"colocation-config":"{\\"enable\\":true}"}}'

local START = core.time "2026-03-01T00:00:00Z":unix()

-- Two hours: web uses 1 core and from 1h on 3; a pod without a report is there for half an hour;
-- a node comes.
local function lines()
  local out, objects = {}, 0
  local function say(text, ...) out[#out + 1] = text:format(...) end
  local function put(cache, json)
    objects = objects + 1
    say('{"t":"put","c":%d,"o":%d,"v":%s}', cache, objects, json)
  end
  say('{"t":"tape","format":1,"version":"1","recording":"r","file":1,"at":%d}', START * 1000000000)
  for c, kind in ipairs { "v1/Node", "v1/Pod", METRIC, "v1/ConfigMap" } do
    say('{"t":"cache","c":%d,"label":"%s","kind":"%s"}', c, kind, kind)
  end
  put(1, node "a")
  put(2, pod("web", 4, "a"))
  put(4, CONFIG)
  for second = 0, 7200, 60 do
    say('{"t":"began","r":"1-%d","at":%d}', second, (START + second) * 1000000000)
    put(3, metric(tostring(core.time(START + second)), second < 3600 and 1 or 3))
    if second == 4800 then put(2, pod("guest", 2, "a")) end
    if second == 6600 then say '{"t":"gone","c":2,"key":"default/guest"}' end
    if second == 5400 then put(1, node "b") end
  end
  return table.concat(out, "\n") .. "\n"
end

local function cell(path, from, seconds)
  return { scripts = { SCRIPT }, crds = { KOORDINATOR .. "crds" }, snapshot = {}, load = {}, colocation = {},
    settings = settings.defaults(), params = {}, seconds = seconds, seed = 1,
    recording = { path = path, from = from } }
end

describe("a simulation of a recording", function()
  local path
  lazy_setup(function() path = process.write(process.tmpname ".tape", lines()) end)

  it("has reports of nodes, and the lives of pods", function()
    local r = run.run(cell(path, 0, 7200))
    assert.same({}, r.failed)
    assert.same({ "a", "b" }, r.nodes)
    local at = {}
    for _, row in ipairs(r.rows) do at[row.time] = row end
    -- 60 % of 16 cores are lent, minus the usage of the system and of prod pods; a pod without a report
    -- counts with its request
    assert.same({ 7.6, 1 }, { at[1800].lent, at[1800].prod })
    assert.same({ 5.6, 3 }, { at[3900].lent, at[3900].prod })
    assert.equal(1, at[4500].running)
    assert.equal(2, at[5100].running)
    assert.equal(3.6, at[5100].lent)
    assert.equal(16, at[5100].capacity)
    assert.equal(32, at[6000].capacity)
    assert.equal(1, at[6900].running)
    assert.equal(0, r.sums.waiting)
  end)

  it("starts and ends at its cut", function()
    local out, code = sim(("%s --recording %s --cut from=1h --explain a --at 5m"):format(SCRIPT, path))
    assert.equal(0, code, out)
    assert.matches("^a at 2026%-03%-01T01:05:00Z:\n", out)
    assert.matches("CPU%(Milli%-Core%)%]:5600 = nodeCapacity:16000 .- %- podHPUsed:3000", out)
    out, code = sim(("%s --recording %s --cut from=90m"):format(SCRIPT, path))
    assert.equal(0, code, out)
    assert.matches("^[^\n]*: 30m on ", out)
  end)

  it("names what is wrong", function()
    for args, words in pairs {
      ["--recording " .. path .. " --for 3h"] = "the recording lasts only 2h",
      ["--recording " .. path .. " --cut from=9h"] = "the recording is 2h long",
      ["--recording " .. path .. " --cut nodes=3"] = 'expected from=DURATION, got "nodes=3"',
      ["--recording " .. path .. " --generate nodes=3"] = "%-%-generate and %-%-recording exclude each other",
      ["--recording /no/such"] = "cannot read /no/such",
      ["--recording " .. SCRIPT] = "is not a recording; kubelua run or dev %-%-record FILE",
    } do
      local out, code = sim(SCRIPT .. " " .. args)
      assert.matches(words, out)
      assert.is_true(code == 1 or code == 2)
    end
  end)
end)

servers.each(function(name, start)
  describe("a simulation of what `kubelua run` recorded against " .. name, function()
    local server
    lazy_setup(function() server = start {} end)
    lazy_teardown(function() server:stop() end)

    it("makes the same decisions", function()
      local tape = process.tmpname ".tape"
      local function apply(text, subresource)
        server:must_kubectl("apply", "--server-side", "--force-conflicts", "--subresource", subresource or "",
          "-f",
          process.write(process.tmpname ".json", text))
      end
      server:must_kubectl("apply", "--server-side", "-f", KOORDINATOR .. "crds")
      server:wait_established("crd", "--all")
      apply '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"koordinator-system"}}'
      apply(CONFIG)
      for _, o in ipairs { node "a", metric(tostring(core.time(os.time())), 3) } do
        apply(o)
        apply(o, "status")
      end
      local live = controller.start(server, SCRIPT, "--record", tape)
      local function batch()
        return server:must_kubectl("get", "node", "a", "-o",
          "jsonpath={.status.allocatable.kubernetes\\.io/batch-cpu}")
      end
      wait.until_true(90, "batch-cpu", function() return batch() ~= "" end)
      local decided = tonumber(batch())
      controller.finish(live)
      local past = recording.read(tape)
      local r = run.run(cell(tape, math.max(0, past.ended - past.began), 60))
      assert.same({}, r.failed)
      assert.is_true(decided > 0)
      assert.equal(decided / 1000, r.rows[1].lent)
    end)
  end)
end)
