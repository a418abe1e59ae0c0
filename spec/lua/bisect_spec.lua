-- bisect_spec.lua - the first decision in which two simulations differ, and the test case made from it.
-- not in tsan: it has one thread

local bisect = require "kubelua.sim.bisect"
local core = require "kubelua.core"
local fixtures = require "support.fixtures"
local settings = require "kubelua.sim.settings"

local POLICIES = "controllers/koordinator/"

local function cell(script, colocation)
  local s = settings.defaults()
  settings.words("the spec", "nodes=2", s)
  return { scripts = { POLICIES .. script }, crds = { POLICIES .. "crds" }, snapshot = {}, load = {},
    settings = s,
    params = {}, colocation = colocation or {}, seconds = 300, seed = 1 }
end

local BEFORE, AFTER = "noderesource.lua", "varied.lua"

describe("a bisection", function()
  it("finds nothing between a policy and itself, whatever the order of its tables", function()
    local found, n = bisect.first(cell(BEFORE), cell(BEFORE))
    assert.is_nil(found)
    assert.is_true(n > 10)
  end)

  it("names the first decision that differs", function()
    local found = assert(bisect.first(cell(BEFORE), cell(AFTER)))
    assert.is_true(found.n > 1)
    assert.equal(found.a.key, found.b.key)
    assert.equal(found.a.at, found.b.at)
    assert.not_same(found.a.wrote, found.b.wrote)
    assert.same(found.a, bisect.decision(cell(BEFORE), found.n))
    assert.same(bisect.decision(cell(BEFORE), found.n - 1), bisect.decision(cell(AFTER), found.n - 1))
    local words = bisect.text(found, { "old", "new" })
    assert.match(("^the first %d decisions are the same"):format(found.n - 1), words)
    assert.match("\nold: noderesource node%-00%d at .-\n  wrote: patch v1/Node/status node%-00%d {.-\nnew: ",
      words)
  end)

  it("compares settings as well", function()
    local found = assert(bisect.first(cell(BEFORE), cell(BEFORE, { cpuReclaimThresholdPercent = 70 })))
    assert.match('"kubernetes.io/batch%-cpu":"%d+"', found.b.wrote[1])
  end)

  it("makes a case that holds once the new policy decides as the old one did", function()
    local found = assert(bisect.first(cell(BEFORE), cell(AFTER)))
    local said = {}
    local function say(line) said[#said + 1] = line end
    assert.same({ 0, 1 }, { fixtures.run("case", bisect.fixture(found, cell(AFTER)), say) })
    assert.match("wrote: expected", said[1])
    assert.same({ 1, 0 }, { fixtures.run("case", bisect.fixture(found, cell(BEFORE)), say, true) })
    found.n = 1000000
    assert.same({ 0, 1 }, { fixtures.run("case", bisect.fixture(found, cell(BEFORE)), say) })
    assert.match("ends before that", said[2])
    assert.is_true(core.decode(bisect.fixture(found, cell(AFTER))).cases[1].input.n == 1000000)
  end)
end)
