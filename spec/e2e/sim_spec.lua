-- sim_spec.lua - `kubelua sim`: its tables and files, an interrupted sweep, and its errors.
-- not in tsan: it has one thread

local core = require "kubelua.core"
local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local SCRIPT = "controllers/koordinator/noderesource.lua"

local function sim(args) return process.run(("%s sim %s"):format(KUBELUA, args)) end

describe("kubelua sim", function()
  it("reports the results of a policy", function()
    local out, code = sim(SCRIPT .. " --generate nodes=2 --for 10m")
    assert.equal(0, code, out)
    assert.matches("10m on 2 generated nodes", out)
    assert.matches("batch_lent %(core%-hours%)%s+%d", out)
    assert.matches("prod pods +%S+ +most", out)
  end)

  it("takes a scheduler as a script", function()
    local out, code = sim(SCRIPT .. " --scheduler controllers/koordinator/scheduler.lua --generate \z
      nodes=1,batch_rate=30 --for 10m --set batch_cpu=1,2")
    assert.equal(0, code, out)
    assert.matches("batch_used %(core%-hours%)%s+0?%.?[1-9]", out)
    assert.matches("nowhere %(pods%)%s+0", out)
    out, code = sim(SCRIPT .. " --scheduler /no/such.lua --for 10m")
    assert.equal(1, code)
    assert.matches("/no/such.lua", out)
  end)

  it("explains a node, now and before, as text and as JSON", function()
    local out, code = sim(SCRIPT .. " --generate nodes=1 --explain node-001 --at 5m")
    assert.equal(0, code, out)
    assert.matches("^node%-001 at 2026%-01%-01T00:05:00Z:\n", out)
    assert.matches("\n  batchAllocatable%[CPU%(Milli%-Core%)%]:%d+ = nodeCapacity:32000 %-", out)
    local json
    json, code = sim(SCRIPT .. " --generate nodes=1 --explain node-001 --at 5m -o json")
    assert.equal(0, code, json)
    assert.matches('"said":%s*%[%s*"batchAllocatable', json)
  end)

  it("names the object of a snapshot that it cannot take", function()
    local node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: %q, memory: \z
      %q}}\n"
    local pod = [[
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  nodeName: n1
  containers: [{name: a, image: b, resources: {requests: {cpu: '9223372036854775807'}}}]
]]
    for text, why in pairs {
      [node:format("1e999999999",
        "1Gi")] = 'the snapshot: Node "n1": .*"1e999999999": more than 10000 digits',
      [node:format("4", "8Gi") .. pod] = 'the snapshot: Pod "p": quantity 9223372036854775807 in units of \z
        1/1000',
    } do
      local out, code = sim(("%s --snapshot %s --for 1m"):format(SCRIPT,
        process.write(process.tmpname ".yaml", text)))
      assert.equal(1, code, out)
      assert.matches(why, out)
    end
  end)

  it("ends a run with endless calls", function()
    local script = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "restless", resource = "v1/Node",
        reconcile = function(_, ctx) while true do pcall(ctx.sleep, ctx, 0) end end }
    ]])
    local out, code = sim(script .. " --generate nodes=1 --for 1m")
    assert.equal(0, code, out)
    assert.matches("stopped after 10000 requests and sleeps at one moment: a loop of restless does not end",
      out)
  end)

  it("finds the first decision that differs", function()
    local dir = process.tmpdir() .. "/parted"
    local out, code = sim(
      ("controllers/koordinator/varied.lua --against %s --generate nodes=1 --for 5m --bisect \z
      --out %s"):format(SCRIPT, dir))
    assert.equal(1, code, out)
    assert.matches("\nbefore: noderesource node%-001 at .-\nafter: noderesource node%-001 at ", out)
    assert.matches('^{"', process.read(dir .. "/decision.json"))
    out, code = sim(("%s --against %s --generate nodes=1 --for 5m --bisect"):format(SCRIPT, SCRIPT))
    assert.equal(0, code, out)
    assert.matches("^no decision differs: both took the same %d+\n", out)
    out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --bisect")
    assert.equal(2, code)
    assert.matches("two simulations", out)
  end)

  it("compares settings, and resumes an interrupted sweep", function()
    local dir = process.tmpdir() .. "/what if"
    local args = ("%s --generate nodes=1 --for 10m --set cpu=16,32 --seeds 2 --out '%s'"):format(SCRIPT, dir)
    local out, code = sim(args)
    assert.equal(0, code, out)
    assert.matches("cpu=16", out)
    assert.matches("batch_lent.-%+\n", out)
    local summary, page = process.read(dir .. "/summary.csv"), process.read(dir .. "/report.html")
    assert.matches("^setting,batch_lent,batch_lent_ci,", summary)
    local cells = process.run(("ls '%s/cells'"):format(dir))
    local first = cells:match "[^\n]+"
    assert.equal(4, select(2, cells:gsub("\n", "")))
    assert.equal(0, os.remove(dir .. "/cells/" .. first) and 0 or 1)
    local again = sim(args .. " --jobs 1")
    assert.equal(out, again)
    assert.equal(summary, process.read(dir .. "/summary.csv"))
    assert.equal(page, process.read(dir .. "/report.html"))
    assert.is_true(#page < 1500000)
  end)

  it("exits with 1 when no setting keeps the budget", function()
    local out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --budget 'batch_lent>=1000'")
    assert.equal(1, code)
    assert.matches("NOT KEPT: batch_lent>=1000, it is %d", out)
    assert.matches("no setting keeps the budget", out)
    local dir = process.tmpname ".sim"
    out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --budget 'evictions<=3,batch_lent>=1000' --set \z
      cpu=16,32 --out " .. dir)
    assert.equal(1, code, out)
    local xml = process.read(dir .. "/junit.xml")
    assert.matches('<testsuite name="cpu=32" tests="2" failures="1" skipped="0" time="0.000">', xml)
    assert.matches('<testcase classname="cpu=16" name="evictions&lt;=3" time="0.000"/>', xml)
    assert.matches('name="batch_lent&gt;=1000" time="0.000">\n      <failure message="exceeded: it is %d',
      xml)
    out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --budget 'evictions<=3'")
    assert.equal(0, code, out)
    assert.matches("best within the budget: as given", out)
  end)

  it("compares a script with its earlier version", function()
    local dir = process.tmpdir()
    process.run(("cp -R controllers/koordinator %s/before"):format(dir))
    local path = dir .. "/before/batchresource.lua"
    local text, n = process.read(path):gsub("capacity %- place", "capacity // 2 - place")
    assert.equal(1, n)
    process.write(path, text)
    local out, code = sim(("%s --against %s/before/noderesource.lua --generate nodes=1 --for 10m"):format(
      SCRIPT, dir))
    assert.equal(0, code, out)
    assert.matches("before%s+after", out)
    assert.matches("batch_lent %(core%-hours%)%s+[%d.]+%s+[%d.]+ %+", out)
  end)

  for args, words in pairs {
    [""] = "name a script",
    [SCRIPT .. " --generate node=3"] = [[no setting "node"; did you mean 'nodes']],
    [SCRIPT .. " --generate nodes=3 --snapshot x.yaml"] = "exclude each other",
    [SCRIPT .. " --set thresholds=3"] = "unknown setting or param",
    [SCRIPT .. " --snapshot /no/such.yaml"] = "/no/such.yaml",
    [SCRIPT .. " --scenario /no/such.lua"] = "/no/such.lua",
    ["/no/such.lua"] = "/no/such.lua",
    [SCRIPT .. " --budget nonsense"] = "NAME<=NUMBER",
    [SCRIPT .. " --seeds 0 --for 1m"] = "--seeds must be at least 1",
    [SCRIPT .. " --goal eviction --for 1m"] = [[nothing is called "eviction"; did you mean 'evictions']],
    [SCRIPT .. " --generate nodes=1 --for 1m --budget 'used.nobody>=1'"] = 'has no team "nobody"',
    [SCRIPT .. " --explain node-001 --set cpu=16,32"] = "needs a single simulation",
    [SCRIPT .. " --explain node-001 --for 1h --at 2h"] = "after the end",
    [SCRIPT .. " --set cut.from=1h,2h"] = "a moment of %-%-recording or %-%-trace",
    [SCRIPT .. " --trace openb:/no/such --set cut.from=soon"] = "expected a duration such as 2h",
    [SCRIPT .. " --at 2h"] = "goe?s? with %-%-explain",
    [SCRIPT .. " --explain node-009 --generate nodes=1 --at 1m"] = "no node or pod is called",
    [SCRIPT .. " --trace openc:/tmp"] = "did you mean 'openb'",
    [SCRIPT .. " --trace openb:/no/such"] = "cannot read /no/such",
    [SCRIPT .. " --trace prometheus:/no/such"] = "cannot read /no/such",
    [SCRIPT .. " --trace openb:/tmp --cut hours=3"] = "from=DURATION or nodes=NUMBER",
    [SCRIPT .. " --cut nodes=3"] = "%-%-cut needs %-%-trace",
    ["--predictors --trace openb:/no/such"] = "cannot read /no/such",
    ["--predictors --for 1h"] = "at least three days",
    ["--predictors " .. SCRIPT] = "runs without a script",
  } do
    it("names the mistake in: " .. args, function()
      local out, code = sim(args)
      assert.matches(words, out)
      assert.is_true(code == 1 or code == 2)
    end)
  end

  it("ranks settings within a budget, as text and as JSON", function()
    local args = SCRIPT .. " --generate nodes=1,batch_rate=30 --for 20m --seeds 2 --budget 'violation<=1%' \z
      --set \z
      colocation.cpuReclaimThresholdPercent=65,95"
    local out, code = sim(args)
    assert.equal(0, code, out)
    assert.matches("ranking by batch_used, within the budget:\n +batch_used +%w+\n[* ]  [1-] cpuReclaim", out)
    assert.matches("\n[* ]  %- cpuReclaimThresholdPercent=95 .- breaks violation<=1%%: [%d.]+ ?[±%d.]*, \z
      kept by 0 of 2 seeds",
      out)
    local json = core.decode((sim(args .. " -o json")))
    assert.same({ true, false }, { json.ranking[1].keeps, json.ranking[2].keeps })
    assert.equal("violation<=1%", json.ranking[2].broken[1].limit)
    assert.equal(json.best, json.ranking[1].setting)
  end)

  it("compares predictors, with a page", function()
    local dir = process.tmpdir() .. "/predictors"
    local out, code = sim("--predictors --generate nodes=2 --for 72h --out " .. dir)
    assert.equal(0, code, out)
    assert.matches("\n  oracle +[%d.]+ +0 +0 +0\n", out)
    assert.matches("\nkoordlet,", process.read(dir .. "/predictors.csv"))
    local page = process.read(dir .. "/predictors.html")
    assert.matches("<svg.-oracle.-</svg>", page)
    assert.matches("<code>kubelua sim [^<]*%-%-predictors[ <]", page)
    assert.not_matches("%-%-predictors true", page)
    assert.matches("vpa +90th percentile", page)
  end)
end)
