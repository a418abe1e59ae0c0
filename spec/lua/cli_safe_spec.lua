-- cli_safe_spec.lua - what the cluster says is shown, and never obeyed by a terminal.

local common = require "kubelua.cli.common"
local kube = require "kubelua"

describe("a text of the cluster", function()
  it("is spelled out where a terminal would obey it", function()
    assert.equal("^[[2Jx\\ry\\x07 \\u009b1m \\x7f", common.safe "\27[2Jx\ry\7 \u{9b}1m \127")
    assert.equal("two\nlines\tä", common.safe "two\nlines\tä")
  end)

  it("is one line in a cell", function()
    assert.equal("first...", common.cell "first\nsecond")
    assert.equal("a b^[", common.cell "a\tb\27")
    assert.equal("a...", common.cell "a\rb")
  end)
end)

local process = require "support.process"
local BIN = os.getenv "KL_BUILD" .. "/kubelua"

describe("what a script raises", function()
  it("is spelled out by check", function()
    local path = process.write(process.tmpname ".lua", 'error("\27[2Jx\\ry\\7 \\u{9b}1m \\127\\nz\tä")')
    local out, code = process.run(BIN .. " check " .. path .. " 2>&1")
    assert.equal(1, code)
    assert.truthy(out:find("^[[2Jx\\ry\\x07 \\u009b1m \\x7f\nz\tä", 1, true), out)
  end)
end)

describe("kubelua version", function()

  it("names the Lua that runs scripts, and with --bugs each bug of it that they could reach", function()
    local out, code = process.run(BIN .. " version")
    assert.equal(0, code)
    assert.matches("^kubelua %S+\nLua 5%.4%.%d+\n$", out)
    out, code = process.run(BIN .. " version --bugs")
    assert.equal(0, code)
    assert.truthy(out:find("__concat that makes the stack grow", 1, true), out)
  end)

  it("says it as JSON", function()
    local out, code = process.run(BIN .. " version -o json")
    assert.equal(0, code)
    local v = kube.decode(out)
    assert.truthy(v.version)
    assert.truthy(v.lua.version:find "^5%.4%.%d+$")
    for _, bug in ipairs(v.lua.bugs) do assert.truthy(bug.bug and bug.mended and bug.here) end
    assert.truthy(#v.lua.bugs > 5)
  end)
end)
