-- whatif_spec.lua - docs/whatif.md: its commands work, its tables have the resulting numbers, and the page of
-- a simulation works in a browser.
-- not in asan, tsan: pages are the subject; what `kubelua sim` does, sim_spec runs

local browser = require "support.browser"
local process = require "support.process"
local sizes = require "support.sizes"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local SCRIPT = "controllers/koordinator/noderesource.lua"

-- Three of the four worked decisions take 22 s of the processor: `make soak` has them.
local ALL = sizes.of { short = 1, long = 4 } == 4

local function sim(args) return process.run(("%s sim %s"):format(KUBELUA, args)) end

describe("docs/whatif.md", function()
  local page
  lazy_teardown(function() if page then page:close() end end)

  -- One browser for all pages, as wide as it began.
  local function visit(dir)
    local here = process.run("pwd"):gsub("\n", "")
    page = page or browser.open { width = 1100, height = 1400 }
    page:width()
    page:visit(("file://%s/report.html"):format(dir:sub(1, 1) == "/" and dir or here .. "/" .. dir))
  end

  -- A part of what a command of the page prints, or writes into a file.
  local PRINTED = { { "prometheus:help", "query_range" }, { "%-%-export", "wrote on%-" },
    { "%-%-bisect", "the next one differs" }, { "predictors", "oracle" },
      { "%-%-explain", "batchAllocatable" } }
  local function printed(args)
    for _, p in ipairs(PRINTED) do
      if args:find(p[1]) then return p[2] end
    end
    return "batch_used"
  end

  -- In a directory with the page's files, for which a cluster was written before.
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
    local more = { "kubelua sim controllers/koordinator/noderesource.lua --generate nodes=3 \z
      --scenario scenario.lua --for 1h" }
    for block in text:gmatch "```sh\n(.-)```" do
      for command in (block:gsub("\\\n%s*", "")):gmatch "[^\n]+" do more[#more + 1] = command end
    end
    for _, block in ipairs(more) do
      -- the page shows hours; here the commands only have to work
      local args = block:gsub("%-%-for 4h %-%-seeds 3", "--for 20m"):match "^kubelua (.*)"
      local below = args and (args:find "koordinator/studies/" or args:find "%-%-for 120h") -- in the next one
      if args and not below then
        local kubelua = KUBELUA:sub(1, 1) == "/" and KUBELUA or root .. "/" .. KUBELUA
        local out, code = process.run(("cd '%s' && %s %s"):format(dir, kubelua, args))
        local parts = args:find "%-%-bisect" -- the two differ, which is status 1
        local file = args:match ">(%S+)$"
        assert.equal(parts and 1 or 0, code, block .. out)
        assert.matches(printed(args), file and process.read(dir .. "/" .. file) or out)
        commands = commands + 1
      end
    end
    assert.equal(15, commands)
  end)

  -- The numbers in the tables of the worked decisions appear in the output of the commands before them.
  it("reproduces the numbers of docs/whatif.md", function()
    local text = process.read "docs/whatif.md":match "### Which predictor%?.-\n## "
    local tables, dir = 0, process.tmpdir() .. "/hot"
    for block, rows in text:gmatch "```sh\n(.-)```\n\n(|.-)\n\n" do
      if not ALL and not block:find "%-%-predictors" then goto continue end
      local said = ""
      for args in (block:gsub("\\\n%s*", "")):gmatch "kubelua sim ([^\n]+)" do
        said = said .. sim((args:gsub("%-%-out hot", "--out '" .. dir .. "'")))
      end
      for row in (rows:match "\n| %-%-%-[^\n]*\n(.*)" .. "\n"):gmatch "([^\n]+)\n" do
        for cell in row:match "^|.-|(.*)$":gmatch "%s*(.-)%s*|" do
          assert.truthy(said:find("[ ]" .. cell:gsub("%p", "%%%0")),
            ("%q of %s is not in:\n%s"):format(cell, row, said))
        end
      end
      tables = tables + 1
      ::continue::
    end
    assert.equal(ALL and 4 or 1, tables)
    if ALL then assert.equal(process.read "docs/whatif-hot.svg", process.read(dir .. "/gain.svg")) end
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
    visit(dir)
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
    -- Injected markup would have no effect.
    page:eval [[
      window.refused = []
      document.addEventListener("securitypolicyviolation", e => window.refused.push(e.effectiveDirective))
      document.body.insertAdjacentHTML("beforeend", `<img src="x" onerror="window.broken = true">`)]]
    page:until_true(30, "window.refused.includes('script-src-attr') && window.refused.includes('img-src')")
    assert.is_nil(page:eval "document.querySelector('img').remove(); return window.broken")
    page:prefer "light"
    page:screenshot "sim-report"
    page:prefer "dark"
    page:width(390)
    assert.is_true(page:eval "return document.documentElement.scrollWidth <= \z
      document.documentElement.clientWidth")
    page:screenshot "sim-report-phone"
  end)

  -- All interactive parts of the page, with the pointer and with keys.
  it("explains on its page how a number was computed", function()
    if not browser.available() then
      assert(not os.getenv "CI", "there is no chromium with chromedriver here, and in CI that is a failure")
      pending "there is no chromium with chromedriver here"
      return
    end
    local dir = process.tmpdir() .. "/told"
    local koordinator = "controllers/koordinator/"
    local out, code = sim(("%slownodeload.lua %spodmigrationjob.lua %s \z
      --generate nodes=6,apps=26,swing=0.1,load_cpu=0.8 --for 1h --scenario %sstudies/hot.lua \z
      --set jobMode=EvictDirectly --set nodePools.1.highThresholds.cpu=50 \z
      --load %sstudies/teams.yaml --out %s"):format(koordinator, koordinator, SCRIPT, koordinator,
      koordinator, dir))
    assert.equal(0, code, out)
    visit(dir)
    local function js(text) return page:eval(text) end
    local function key(figure, name, times)
      js(([[const f = document.querySelectorAll("figure.%s")[0]; f.focus();
        for (let i = 0; i < %d; i++)
          f.dispatchEvent(new KeyboardEvent("keydown", { key: "%s", bubbles: true }));]])
        :format(figure, times or 1, name))
    end
    local said = "return document.querySelector('#why').open && document.querySelector('#why \z
      pre').textContent"

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
    assert.matches("^node%-002 at 2026%-01%-01T01:00:00Z:\n.-\nnoderesource, last run .-batchAllocatable",
      js(said))
    page:prefer "light"
    page:screenshot "sim-report-told"
    js "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))"
    assert.is_false(js(said))
    assert.equal("FIGURE", js "return document.activeElement.tagName")

    -- an evicted pod says who wanted it gone, a team what it may use
    js [[document.querySelector("[aria-label='evictions by node'] [data-why]").dispatchEvent(
      new MouseEvent("click", { bubbles: true }))]]
    assert.matches("^default/app%-.-\npodmigrationjob, run of .-\n  wrote: create v1/Pod/eviction .-its \z
      node node%-00", js(said))
    js [[document.querySelector("[data-why='team ads']").dispatchEvent(
      new MouseEvent("click", { bubbles: true }))]]
    assert.matches("^team ads at the end:\n +min, cores +4%.0\n +max, cores +80%.0\n", js(said))
    assert.equal(0, js "return document.querySelectorAll('[src],link').length")
    page:prefer "dark"
    page:width(390)
    assert.is_true(js "return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page:screenshot "sim-report-told-phone"
  end)
end)
