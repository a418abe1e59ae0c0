--- sim_page_spec.lua - the figures of a simulation's page are the numbers of its results.
--- not in tsan: it has one thread

local svg = require "kubelua.sim.svg"

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

describe("a chart", function()
  it("of shares ends with all of them at the largest value", function()
    local chart = svg.cdf("use", " %", { { values = { 30, 10, 40, 20 }, label = "a<b", colour = "--prod" } })
    -- x: 52 is 0 and 708 is 40; y: 194 is nobody and 10 is everybody
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
end)
