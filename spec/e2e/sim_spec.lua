--- sim_spec.lua - `kubelua sim`: its tables, files and page, a sweep that was ended, and its mistakes.
--- not in tsan: it has one thread

local browser = require "support.browser"
local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local SCRIPT = "controllers/koordinator/noderesource.lua"

local function sim(args) return process.run(("%s sim %s"):format(KUBELUA, args)) end

describe("kubelua sim", function()
  it("says what a policy comes to", function()
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
    local node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: %q, memory: %q}}\n"
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
      [node:format("1e999999999", "1Gi")] = 'the snapshot: Node "n1": .*"1e999999999": more than 10000 digits',
      [node:format("4", "8Gi") .. pod] = 'the snapshot: Pod "p": quantity 9223372036854775807 in units of 1/1000',
    } do
      local out, code = sim(("%s --snapshot %s --for 1m"):format(SCRIPT,
        process.write(process.tmpname ".yaml", text)))
      assert.equal(1, code, out)
      assert.matches(why, out)
    end
  end)

  it("ends a run that asks for ever", function()
    local script = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "restless", resource = "v1/Node",
        reconcile = function(_, ctx) while true do pcall(ctx.sleep, ctx, 0) end end }
    ]])
    local out, code = sim(script .. " --generate nodes=1 --for 1m")
    assert.equal(0, code, out)
    assert.matches("stopped after 10000 requests and sleeps at one moment: a loop of restless does not end", out)
  end)

  it("finds the first decision that differs", function()
    local dir = process.tmpdir() .. "/parted"
    local out, code = sim(("controllers/koordinator/varied.lua --against %s --generate nodes=1 --for 5m --bisect \z
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

  it("compares settings, and takes up a sweep where it was ended", function()
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

  it("ends with 1 when nothing keeps the budget", function()
    local out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --budget 'batch_lent>=1000'")
    assert.equal(1, code)
    assert.matches("NOT KEPT: batch_lent>=1000, it is %d", out)
    assert.matches("nothing keeps the budget", out)
    local dir = process.tmpname ".sim"
    out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --budget 'evictions<=3,batch_lent>=1000' --set cpu=16,32 --out " .. dir)
    assert.equal(1, code, out)
    local xml = process.read(dir .. "/junit.xml")
    assert.matches('<testsuite name="cpu=32" tests="2" failures="1" skipped="0" time="0.000">', xml)
    assert.matches('<testcase classname="cpu=16" name="evictions&lt;=3" time="0.000"/>', xml)
    assert.matches('name="batch_lent&gt;=1000" time="0.000">\n      <failure message="exceeded: it is %d', xml)
    out, code = sim(SCRIPT .. " --generate nodes=1 --for 5m --budget 'evictions<=3'")
    assert.equal(0, code, out)
    assert.matches("best within the budget: as given", out)
  end)

  it("compares a script with what it was", function()
    local dir = process.tmpdir()
    process.run(("cp -R controllers/koordinator %s/before"):format(dir))
    local path = dir .. "/before/batchresource.lua"
    process.write(path, (process.read(path):gsub("local left = math.max%(capacity %- safe",
      "local left = math.max(capacity // 2 - safe")))
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
    [SCRIPT .. " --goal eviction --for 1m"] = [[nothing is called "eviction"; did you mean 'evictions']],
    [SCRIPT .. " --generate nodes=1 --for 1m --budget 'used.nobody>=1'"] = 'has no team "nobody"',
    [SCRIPT .. " --explain node-001 --set cpu=16,32"] = "needs a single simulation",
    [SCRIPT .. " --explain node-001 --for 1h --at 2h"] = "after the end",
    [SCRIPT .. " --at 2h"] = "goe?s? with %-%-explain",
    [SCRIPT .. " --explain node-009 --generate nodes=1 --at 1m"] = "no node or pod is called",
    [SCRIPT .. " --trace openc:/tmp"] = "did you mean 'openb'",
    [SCRIPT .. " --trace openb:/no/such"] = "cannot read /no/such",
    [SCRIPT .. " --trace openb:/tmp --cut hours=3"] = "from=DURATION or nodes=NUMBER",
    [SCRIPT .. " --cut nodes=3"] = "%-%-cut needs %-%-trace",
    ["--predictors --trace openb:/tmp"] = "reads no trace",
    ["--predictors --for 1h"] = "at least three days",
    ["--predictors " .. SCRIPT] = "runs without a script",
  } do
    it("names the mistake in: " .. args, function()
      local out, code = sim(args)
      assert.matches(words, out)
      assert.is_true(code == 1 or code == 2)
    end)
  end

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

  -- In a directory that has what the page speaks of, whose cluster is written beforehand.
  it("does what docs/whatif.md says", function()
    local dir, root = process.tmpdir() .. "/page of docs", process.run("pwd"):gsub("\n", "")
    process.run(("mkdir -p '%s/new' && cp -R controllers examples '%s' && cp -R controllers/koordinator/* \z
      '%s/new'")
      :format(dir, dir, dir))
    process.write(dir .. "/cluster.yaml", [[
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "8", memory: 32Gi}, allocatable: {cpu: "8", memory: 32Gi}}
]])
    local text, commands = process.read "docs/whatif.md", 0
    process.write(dir .. "/scenario.lua", text:match "```lua\n(.-)```")
    local more = { "kubelua sim controllers/koordinator/noderesource.lua --generate nodes=3 --scenario scenario.lua \z
      --for 1h" }
    for block in text:gmatch "```sh\n(.-)```" do
      for command in (block:gsub("\\\n%s*", "")):gmatch "[^\n]+" do more[#more + 1] = command end
    end
    for _, block in ipairs(more) do
      -- the page has the figures of hours; here its commands have to work
      local args = block:gsub("%-%-for 4h %-%-seeds 3", "--for 20m"):match "^kubelua (.*)"
      local below = args and (args:find "koordinator/studies/" or args:find "%-%-for 120h") -- in the next one
      if args and not below then
        local kubelua = KUBELUA:sub(1, 1) == "/" and KUBELUA or root .. "/" .. KUBELUA
        local out, code = process.run(("cd '%s' && %s %s"):format(dir, kubelua, args))
        local parts = args:find "%-%-bisect" -- the two differ, which is status 1
        assert.equal(parts and 1 or 0, code, block .. out)
        assert.matches(parts and "the next one differs" or args:find "predictors" and "oracle"
          or args:find "%-%-explain" and "batchAllocatable" or "batch_used", out)
        commands = commands + 1
      end
    end
    assert.equal(11, commands)
  end)

  -- The tables below the commands of the worked decisions have their numbers: all that stands in one of them
  -- is said by the commands before it.
  it("comes to the numbers that docs/whatif.md has", function()
    local text = process.read "docs/whatif.md":match "### Which predictor%?.-\n## "
    local tables, dir = 0, process.tmpdir() .. "/hot"
    for block, rows in text:gmatch "```sh\n(.-)```\n\n(|.-)\n\n" do
      local said = ""
      for args in (block:gsub("\\\n%s*", "")):gmatch "kubelua sim ([^\n]+)" do
        said = said .. sim((args:gsub("%-%-out hot", "--out '" .. dir .. "'")))
      end
      for row in (rows:match "\n| %-%-%-[^\n]*\n(.*)" .. "\n"):gmatch "([^\n]+)\n" do
        for cell in row:match "^|.-|(.*)$":gmatch "%s*(.-)%s*|" do
          assert.truthy(said:find("[ ]" .. cell:gsub("%p", "%%%0")), ("%q of %s is not in:\n%s"):format(cell, row, said))
        end
      end
      tables = tables + 1
    end
    assert.equal(4, tables)
    assert.equal(process.read "docs/whatif-hot.svg", process.read(dir .. "/gain.svg"))
  end)

  it("writes a page that a browser reads", function()
    if not browser.available() then
      assert(not os.getenv "CI", "there is no chromium with chromedriver here, and in CI that is a failure")
      pending "there is no chromium with chromedriver here"
      return
    end
    local dir = process.tmpdir() .. "/page"
    local out, code = sim(("%s --generate nodes=2,batch_rate=20 --for 10m --set \z
      colocation.cpuReclaimThresholdPercent=50..80/5 --out %s"):format(SCRIPT, dir))
    assert.equal(0, code, out)
    local here = process.run("pwd"):gsub("\n", "")
    local page = browser.open { width = 1100, height = 1400 }
    page:visit(("file://%s/report.html"):format(dir:sub(1, 1) == "/" and dir or here .. "/" .. dir))
    assert.equal(7, page:eval "return document.querySelectorAll('svg').length")
    assert.equal(7, page:eval "return document.querySelectorAll('table.sorts')[0].tBodies[0].rows.length")
    assert.equal(2, page:eval "return document.querySelectorAll('table.sorts')[1].tBodies[0].rows.length")
    local best = "return document.querySelector('table.sorts tbody tr').cells[0].textContent"
    page:eval "document.querySelectorAll('table.sorts th button')[2].click()"
    local first = page:eval(best)
    page:eval "document.querySelectorAll('table.sorts th button')[2].click()"
    assert.same({ "cpuReclaimThresholdPercent=80", "cpuReclaimThresholdPercent=50" },
      { page:eval(best), first })
    assert.equal(0, page:eval "return document.querySelectorAll('[src],link').length")
    page:prefer "light"
    page:screenshot "sim-report"
    page:prefer "dark"
    page:width(390)
    assert.is_true(page:eval "return document.documentElement.scrollWidth <= \z
      document.documentElement.clientWidth")
    page:screenshot "sim-report-phone"
    page:close()
  end)

  -- Everything that moves on a page, with the pointer and with keys.
  it("explains on its page what a number is made of", function()
    if not browser.available() then
      assert(not os.getenv "CI", "there is no chromium with chromedriver here, and in CI that is a failure")
      pending "there is no chromium with chromedriver here"
      return
    end
    local dir = process.tmpdir() .. "/told"
    local koordinator = "controllers/koordinator/"
    local out, code = sim(("%slownodeload.lua %spodmigrationjob.lua %s --generate nodes=6,apps=26,swing=0.1,load_cpu=0.8 \z
      --for 1h --scenario %sstudies/hot.lua --set jobMode=EvictDirectly --set nodePools.1.highThresholds.cpu=50 \z
      --load %sstudies/teams.yaml --out %s"):format(koordinator, koordinator, SCRIPT, koordinator, koordinator, dir))
    assert.equal(0, code, out)
    local here = process.run("pwd"):gsub("\n", "")
    local page = browser.open { width = 1100, height = 1400 }
    page:visit(("file://%s/report.html"):format(dir:sub(1, 1) == "/" and dir or here .. "/" .. dir))
    local function js(text) return page:eval(text) end
    local function key(figure, name, times)
      js(([[const f = document.querySelectorAll("figure.%s")[0]; f.focus();
        for (let i = 0; i < %d; i++) f.dispatchEvent(new KeyboardEvent("keydown", { key: "%s", bubbles: true }));]])
        :format(figure, times or 1, name))
    end
    local said = "return document.querySelector('#why').open && document.querySelector('#why pre').textContent"

    -- the crosshair stands in all charts over time, and reads what the CSV file has
    assert.equal(4, js "return document.querySelectorAll('figure.time').length")
    key("time", "End")
    assert.equal(4, js "return document.querySelectorAll('.cross').length")
    local last = process.read(dir .. "/series.csv"):match "([^\n]+)\n$"
    local prod = tonumber(last:match "^[^,]*,[^,]*,[^,]*,([^,]*),")
    local read = js "return document.querySelector('figure.time .read').textContent"
    assert.equal(("%.1f"):format(prod), read:match "^1%.0 h: .-prod pods ([%d.]+)")
    key("time", "ArrowLeft", 30)
    assert.matches("^0%.5 h: ", js "return document.querySelector('figure.time .read').textContent")
    js "document.activeElement.blur()"
    assert.equal(0, js "return document.querySelectorAll('.cross').length")

    -- a cell of the heat map explains its node at its hour
    assert.is_false(js(said))
    key("pick", "ArrowDown")
    key("pick", "Enter")
    assert.matches("^node%-002 at 2026%-01%-01T01:00:00Z:\n.-\nnoderesource, last run .-batchAllocatable", js(said))
    page:screenshot "sim-report-told"
    js "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))"
    assert.is_false(js(said))
    assert.equal("FIGURE", js "return document.activeElement.tagName")

    -- an evicted pod says who wanted it gone, a team what it may use
    js [[document.querySelector("[aria-label='evictions by node'] [data-why]").dispatchEvent(
      new MouseEvent("click", { bubbles: true }))]]
    assert.matches("^default/app%-.-\npodmigrationjob, run of .-\n  wrote: create v1/Pod/eviction .-its node node%-00", js(said))
    js [[document.querySelector("[data-why='team ads']").dispatchEvent(new MouseEvent("click", { bubbles: true }))]]
    assert.matches("^team ads at the end:\n +min, cores +4%.0\n +max, cores +80%.0\n", js(said))
    assert.equal(0, js "return document.querySelectorAll('[src],link').length")
    page:prefer "dark"
    page:width(390)
    assert.is_true(js "return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page:screenshot "sim-report-told-phone"
    page:close()
  end)
end)
