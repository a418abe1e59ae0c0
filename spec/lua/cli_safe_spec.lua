-- cli_safe_spec.lua - control characters in the cluster's data are shown, and never reach the terminal.

local common = require "kubelua.cli.common"
local kube = require "kubelua"
local logs = require "kubelua.cli.logs"
local process = require "support.process"
local BIN = os.getenv "KL_BUILD" .. "/kubelua"

describe("a text of the cluster", function()
  it("is escaped if a terminal would interpret it", function()
    assert.equal("^[[2Jx\\ry\\x07 \\u009b1m \\u007f", common.safe "\27[2Jx\ry\7 \u{9b}1m \127")
    assert.equal("two\nlines\tä", common.safe "two\nlines\tä")
    assert.equal("a\\u202egpj.exe\\u2066 \\u2028\\x9b1m",
      common.safe "a\u{202e}gpj.exe\u{2066} \u{2028}\x9b1m")
  end)

  it("is one line of TAP, valid XML and valid JSON as the name and the failure of a test", function()
    local name = "a\27[2J\u{9b}\x9b\u{ffff}<b> # TODO\nok 7 - forged"
    local path = process.write(process.tmpname "_test.lua", ([[
      describe("d", function() it(%q, function() error(%q, 0) end) end)]]):format(name, name))
    local shown = "d a^[[2J\\u009b\\x9b\u{ffff}<b> \\# TODO\\nok 7 - forged"
    local tap = process.run(BIN .. " test -o tap " .. path)
    assert.truthy(tap:find("\nnot ok 1 - " .. shown .. "\n", 1, true), tap)
    assert.falsy(tap:find "\nok 7", tap)
    local xml = process.run(BIN .. " test -o junit " .. path)
    assert.truthy(xml:find('name="d a^[[2J\\u009b\\x9b?&lt;b&gt; # TODO\nok 7 - forged"', 1, true), xml)
    local test = kube.decode((process.run(BIN .. " test -o json " .. path))).tests[1]
    assert.equal("failed", test.status)
    assert.truthy(test.message:find("a^[[2J\\u009b\\x9b", 1, true), test.message)
  end)

  it("is not offered as a completion if it would end the string", function()
    local complete = require "kubelua.cli.complete"
    local shell = { kinds = { "pods", 'po");os.exit()--', "po\27[2J", "po\u{202e}" }, globals = {} }
    assert.same({ "pods" }, (complete.at(shell, 'get("po')))
  end)

  it("is one line in a cell", function()
    assert.equal("first...", common.cell "first\nsecond")
    assert.equal("a b^[", common.cell "a\tb\27")
    assert.equal("a...", common.cell "a\rb")
  end)
end)

describe("a container's log on a terminal", function()
  it("keeps its colours and no other control sequences, wherever its pieces end", function()
    local text = "\27[1;31mred\27[0m\27[2J\27]0;t\7 a\r\nb\rc ä€\u{9b}1m\u{202e}\x9b 50 %"
    local shown = "\27[1;31mred\27[0m^[[2J^[]0;t\\x07 a\nb\\rc ä€\\u009b1m\\u202e\\x9b 50 %"
    for size = 1, #text do
      local painted, out = logs.painter(), {}
      for at = 1, #text, size do out[#out + 1] = painted(text:sub(at, at + size - 1)) end
      out[#out + 1] = painted()
      assert.equal(shown, table.concat(out))
    end
    local painted = logs.painter()
    assert.equal("^[[31", painted "\27[31" .. painted())
  end)
end)

describe("what a script raises", function()
  it("is escaped by check", function()
    local path = process.write(process.tmpname ".lua", 'error("\27[2Jx\\ry\\7 \\u{9b}1m \\127\\nz\tä")')
    local out, code = process.run(BIN .. " check " .. path .. " 2>&1")
    assert.equal(1, code)
    assert.truthy(out:find("^[[2Jx\\ry\\x07 \\u009b1m \\u007f\nz\tä", 1, true), out)
  end)
end)

describe("a terminal", function()
  -- What a command prints on a terminal of its own.
  local function on_terminal(command)
    return (process.run(("script -qec %s /dev/null </dev/null"):format(process.quote(BIN .. " " .. command))))
  end

  it("gets escaped output of a script in a simulation, and a pipe gets it unchanged", function()
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

  it("gets a script's output of several simulations as JSON, even if it is not UTF-8",
    function()
    local path = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "evil", resource = "v1/Node",
        reconcile = function(_, ctx) ctx.log:warn "log\xff" error "bad\xff" end }]])
    local out, code = process.run(("%s sim %s --generate nodes=1 --for 10m --seeds 2"):format(BIN, path))
    assert.equal(0, code, out)
    assert.truthy(out:find("bad\\xff", 1, true) and out:find("log\\xff", 1, true), out)
  end)

  it("gets escaped output of a replay", function()
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

  it("names its Lua version, and with --bugs each bug that scripts could reach", function()
    local out, code = process.run(BIN .. " version")
    assert.equal(0, code)
    assert.matches("^kubelua %S+\nLua 5%.4%.%d+\n$", out)
    out, code = process.run(BIN .. " version --bugs")
    assert.equal(0, code)
    assert.truthy(out:find("__concat that makes the stack grow", 1, true), out)
  end)

  it("prints it as JSON", function()
    local out, code = process.run(BIN .. " version -o json")
    assert.equal(0, code)
    local v = kube.decode(out)
    assert.truthy(v.version)
    assert.truthy(v.lua.version:find "^5%.4%.%d+$")
    for _, bug in ipairs(v.lua.bugs) do assert.truthy(bug.bug and bug.mended and bug.here) end
    assert.truthy(#v.lua.bugs > 5)
  end)
end)
