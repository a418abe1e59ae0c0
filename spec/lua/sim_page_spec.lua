-- sim_page_spec.lua - the figures on a simulation's page equal the numbers of its results.
-- not in tsan: it has one thread

local page_script = require "kubelua.sim.page_script"
local process = require "support.process"
local svg = require "kubelua.sim.svg"

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

describe("a chart", function()
  it("of shares ends with 100 % at the largest value", function()
    local chart = svg.cdf("use", " %", { { values = { 30, 10, 40, 20 }, label = "a<b", colour = "--prod" } })
    -- x: 52 is 0 and 708 is 40; y: 194 is no node and 10 is all nodes
    assert.match('d="M216,194L216,148L380,102L544,56L708,10"', chart)
    assert.match("a&lt;b", chart)
    assert.match('class="line"', svg.cdf("none", "", { { values = {}, label = "x", colour = "--prod" } }))
  end)

  it("of bars has each value with its interval, left and right of 0", function()
    local chart = svg.bars("change", "core-hours", { { label = "up", value = 10, half = 2.5 },
      { label = "down", value = -5, half = 0 } })
    assert.match("<title>up: 10 ± 2.5 core%-hours</title>", chart)
    assert.match("<title>down: %-5 ± 0 core%-hours</title>", chart)
    local up, up_width = chart:match '<rect fill="var%(%-%-lent%)" x="([%d.]+)" y="%d+" width="([%d.]+)"'
    local down, down_width = chart:match '<rect fill="var%(%-%-batch%)" x="([%d.]+)" y="%d+" width="([%d.]+)"'
    assert.is_true(math.abs(up_width - 2 * down_width) < 0.2)
    assert.is_true(math.abs(down + down_width - up) < 0.2)
  end)

  it("of evictions has a mark for each, in the row of its node", function()
    local chart = svg.raster("evictions", 7200, { "a", "b", "c" }, { { 0, 3 }, { 3600, 1 }, { 3600, 3 } })
    assert.equal(3, count(chart, "<rect"))
    assert.equal(2, count(chart, "<title>c, "))
    assert.equal(1, count(chart, "<title>a, 1.0 h</title>"))
    assert.equal(0, count(chart, ">b</text>")) -- nothing was evicted there
  end)

  it("of teams is as wide as each team's quota, with children below it", function()
    local chart = svg.icicle("teams", "cores", { { name = "a<", runtime = 30, used = 15 },
      { name = "b", runtime = 10, used = 20 }, { name = "a1", parent = "a<", runtime = 30, used = 3 } },
      { ["team a<"] = true })
    -- 696 wide for 30 and 20, as b uses more than it may
    assert.match('<g data%-why="team a&lt;" data%-at="0"><title>a&lt;: uses 15 of 30 cores</title>\z
      <rect class="may" x="12" y="10" width="415.6" height="40"/>\z
      <rect class="uses" x="12" y="10" width="206.8"', chart)
    assert.match('<g><title>b: uses 20 of 10 cores</title><rect class="may" x="429.6" y="10" width="276.4"',
      chart)
    assert.match('<title>a1: .-x="12" y="54" width="415.6"', chart)
    assert.match('^<figure class="pick" tabindex="0" data%-columns="3">', chart)
  end)

  it("of points leaves a tenth above the largest, has round ticks, and a larger first point", function()
    local chart = svg.scatter("gain", "risk", "cores", { { x = 10, y = 100, label = "a", first = true },
      { x = 5, y = 50, label = "b" } })
    assert.match('cx="648.4" cy="31.1" r="7"><title>a: risk 10, cores 100</title>', chart)
    assert.match('cx="350.2" cy="136.5" r="5"><title>b: risk 5, cores 50</title>', chart)
    for _, tick in ipairs { "5", "10", "50", "100" } do assert.match(">" .. tick .. "</text>", chart) end
  end)

  it("of nodes by hour has a mean of several hours where there are many", function()
    local hours = {}
    for h = 1, 96 do hours[h] = h % 2 == 1 and 20 or 40 end
    local chart = svg.heat("use", { "n" }, { hours }, { n = true })
    assert.equal(48, count(chart, "<rect"))
    assert.match('data%-why="n" data%-at="7200"><title>n, hour 0: 30 %%</title>', chart)
    assert.match('data%-at="345600"><title>n, hour 94: 30 %%</title>', chart)
    assert.not_match("data%-why", svg.heat("use", { "n" }, { hours }, {}))
  end)

  it("over time carries the numbers that its crosshair reads", function()
    local rows = { { time = 0, v = 1 }, { time = 1800, v = 2.5 } }
    local chart = svg.bands("x", "cores", 3600, { { rows = rows, mid = "v", high = "v",
      label = "</script><!--<script>", colour = "--prod" } })
    assert.match('{"times":%[0,1800%],"series":%[{"label":"\\u003c/script>\\u003c!%-%-\\u003cscript>",\z
      "values":%[1,2.5%]}%]}', chart)
    assert.equal(1, count(chart, "</script>"))
  end)
end)

describe("a page", function()
  it("names the hash of its script in its policy, so that a browser runs that one", function()
    local file = process.write(process.tmpname ".js", page_script.TEXT)
    local sum = process.run("openssl dgst -sha256 -binary " .. file .. " | base64"):gsub("%s", "")
    assert.equal(page_script.HASH, "sha256-" .. sum)
  end)

  it("escapes a text, in an attribute and in JSON alike", function()
    assert.equal("a&lt;b&gt; &quot;\\u202e^[[2J\\x9b", svg.text 'a<b> "\u{202e}\27[2J\x9b')
    assert.equal([["a\u003cb \\u202e^[[2J\\x9b"]], svg.json "a<b \u{202e}\27[2J\x9b")
  end)
end)
