-- saying_spec.lua - the Events and log messages of scripts.

local saying = require "kubelua.saying"
local kube = require "kubelua"

describe("a format of a script", function()
  local function mistake(...)
    local ok, why = pcall(saying.format, "ctx.log:info", ...)
    assert.is_false(ok)
    return (why:gsub("^[^:]*saying_spec.lua:%d+: ", ""))
  end

  it("is filled in", function()
    assert.equal("100%", saying.format("x", "100%"))
    assert.equal("a 1 nil", saying.format("x", "%s %d %s", "a", 1, nil))
    assert.equal(tostring(kube.json '{"a":1}'), saying.format("x", "%s", kube.json '{"a":1}'))
    assert.equal("nil", saying.format("x"))
  end)

  it("reports its mistakes with positions as written", function()
    assert.equal('ctx.log:info("%d of %s"): argument 1 of the format: number expected, got string',
      mistake("%d of %s", "x", "y"))
    assert.equal('ctx.log:info("%s of %s"): argument 2 of the format is missing', mistake("%s of %s", "x"))
    assert.equal("ctx.log:info(\"%y\"): invalid conversion '%y'", mistake("%y", 1))
    assert.equal("ctx.log:info: the format must be a string, got table", mistake({}, 1))
  end)
end)

describe("a raised value", function()
  it("is a string, or uses __tostring", function()
    assert.equal("no", saying.shown "no")
    assert.equal("nil", saying.shown(nil))
    assert.equal("me", saying.shown(setmetatable({ a = 1 }, { __tostring = function() return "me" end })))
  end)

  it("is JSON if it is a table, with strings for values that JSON lacks", function()
    assert.equal('{"code":7,"why":{"a":[1,2]}}', saying.shown { code = 7, why = { a = { 1, 2 } } })
    local odd = saying.shown { code = 7, well = false, fn = print, [1] = "one" }
    assert.matches('"1":"one"', odd, 1, true)
    assert.matches('"well":false', odd, 1, true)
    assert.matches('"fn":"function: ', odd, 1, true)
    local ring = { code = 7 }
    ring.ring = ring
    assert.matches('^{"code":7,"ring":"table: 0x', saying.shown(ring))
  end)

  it("is cut to its beginning", function()
    local text = saying.shown { a = ("ä"):rep(4000) }
    assert.matches("... (8008 bytes)", text, 1, true)
    assert.is_true(#text < 1100)
    assert.is_truthy(utf8.len(text))
  end)
end)
