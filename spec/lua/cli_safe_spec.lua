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

describe("a terminal", function()
  -- What a command prints on a terminal of its own.
  local function on_terminal(command)
    return (process.run(("script -qec %s /dev/null </dev/null"):format(process.quote(BIN .. " " .. command))))
  end

  it("does not obey what a script says in a simulation, and a pipe gets it as it is", function()
    local path = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "evil", resource = "v1/Node",
        reconcile = function() error "\27[31mred\27]0;title\7" end }]])
    local command = ("sim %s --generate nodes=1 --for 10m"):format(path)
    local out = on_terminal(command)
    assert.truthy(out:find("^[[31mred^[]0;title\\x07", 1, true), out)
    assert.falsy(out:find("\27[31m", 1, true) or out:find("\7", 1, true), out)
    assert.truthy(process.run(BIN .. " " .. command .. " 2>/dev/null"):find("\27[31mred", 1, true))
  end)

  it("does not obey what a recording says in a replay", function()
    local script = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "web", resource = "v1/Pod", reconcile = function() end }]])
    local tape = process.write(process.tmpname ".tape",
      '{"t":"tape","format":1,"version":"1","recording":"a","file":1,"at":5,"scripts":[]}\n' ..
      '{"t":"kind","kind":"v1/Pod","group":"","version":"v1","is":"Pod","plural":"pods","namespaced":true}\n'
        ..
      '{"t":"cache","c":1,"label":"v1/Pod","kind":"v1/Pod"}\n' ..
      '{"t":"put","c":1,"o":1,"v":{"metadata":{"name":"a","namespace":"b"}}}\n' ..
      '{"t":"began","r":"r1","at":100,"controller":"web","worker":1,"key":"b/a","o":1}\n' ..
      '{"t":"ended","r":"r1","at":101,"result":"error","message":"\\u001b[2Jgone"}\n')
    local out = on_terminal(("replay %s %s"):format(tape, script))
    assert.truthy(out:find("recorded: ^[[2Jgone", 1, true), out)
    assert.falsy(out:find("\27", 1, true), out)
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
