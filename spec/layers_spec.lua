-- layers_spec.lua - the sources keep to the rules of support/layers.lua and support/lint.lua, which find
-- violations.
-- not in asan, tsan: it reads source files

local layers = require "support.layers"
local lint = require "support.lint"
local process = require "support.process"

local function violations(path, text) return layers.check { [path] = text } end

describe("the house", function()
  it("has only includes that the layers allow", function()
    local files = layers.tree()
    assert.is_truthy(next(files), "no source file was found; run from the project's root")
    assert.same({}, layers.check(files))
  end)

  it("has no unused arrows",
    function() assert.same({}, layers.unused(layers.tree())) end)

  it("names an unused arrow", function()
    assert.same({ "core/queue may include from base/ and never does" },
      layers.unused { ["core/queue/a.c"] = '#include "queue/workqueue.h"\n' })
  end)

  it("has no cycle of headers or modules", function() assert.same({}, layers.circles(layers.tree())) end)

  it("names a cycle of headers by its files", function()
    assert.same({ "core/run/a.h -> core/run/b.h -> core/run/a.h" }, layers.circles {
      ["core/run/a.h"] = '#include "run/b.h"\n', ["core/run/b.h"] = '#include "run/a.h"\n',
      ["core/run/c.h"] = '#include "run/a.h"\n',
    })
    assert.same({ "lua/kubelua/a.lua -> lua/kubelua/b.lua -> lua/kubelua/a.lua" }, layers.circles {
      ["lua/kubelua/a.lua"] = 'local b = require "kubelua.b"\n',
      ["lua/kubelua/b.lua"] = '-- b\nlocal a = require "kubelua.a"\nlocal function f() require "kubelua.c" \z
        end\n',
      ["lua/kubelua/c.lua"] = 'local function f() local b = require "kubelua.b" end\n',
    })
  end)

  it("has no room that is too large to know", function() assert.same({}, layers.large(layers.tree())) end)

  it("names a room that is too large", function()
    assert.same({ "core/run has 8001 lines of C; a room has 8000 at most" },
      layers.large { ["core/run/a.c"] = ("x\n"):rep(8001) })
  end)

  it("has a page in each room that names its headers", function()
    assert.same({}, layers.readmes(layers.tree()))
  end)

  it("has all of its rooms on the map", function()
    assert.same({}, layers.unmapped(layers.tree(), process.read "docs/architecture.md"))
    assert.same({ "docs/architecture.md does not name core/run" },
      layers.unmapped({ ["core/run/a.c"] = "", ["core/wire/a.c"] = "" }, "core/wire and core/runs"))
  end)

  it("names a header that its room's page forgot, and a room without a page", function()
    assert.same({ "core/run has no README.md", "core/wire/README.md does not name b.h" }, layers.readmes {
      ["core/run/a.h"] = "", ["core/wire/a.h"] = "", ["core/wire/b.h"] = "",
      ["core/wire/README.md"] = "- `a.h`\n" .. ("\n"):rep(20),
    })
  end)

  describe("refuses", function()
    local wrong = {
      { "a neighbour", "core/http/a.c", '#include "cache/indexer.h"\n',
        "core/http/a.c:1: core/http may not include from cache/" },
      { "an arrow upwards", "core/model/a.c", '\n#include "manager/manager.h"\n',
        "core/model/a.c:2: core/model may not include from manager/" },
      { "a queue that knows objects", "core/queue/a.h", '#include "value/value.h"\n',
        "core/queue/a.h:1: core/queue may not include from value/" },
      { "a server that calls out", "core/server/a.c", '#include "http/http.h"\n',
        "core/server/a.c:1: core/server may not include from http/" },
      { "curl beside its door", "core/client/client.c", "#include <curl/curl.h>\n",
        "core/client/client.c:1: <curl/curl.h> has its door in core/http/http; go through that" },
      { "Lua in the core", "core/run/a.c", "# include <lua.h>\n",
        "core/run/a.c:1: <lua.h> has its door in bindings/; go through that" },
      { "a pthread of one's own", "core/run/a.c", "#include <pthread.h>\n",
        "core/run/a.c:1: <pthread.h> has its door in core/base/sync.h, core/base/sync.c; go through that" },
      { "an arrow upwards in the bindings", "bindings/state/a.c", '#include "script/program.h"\n',
        "bindings/state/a.c:1: bindings/state may not include from script/" },
      { "a header without its room", "bindings/api/a.c", '#include "lkl.h"\n',
        'bindings/api/a.c:1: "lkl.h" has no directory; includes are rooted at core/ and bindings/' },
      { "a library without a door", "core/base/a.c", "#include <lzma.h>\n",
        "core/base/a.c:1: <lzma.h> is foreign and has no door in spec/support/layers.lua" },
      { "the system clock beside its door", "core/cache/a.c", "  clock_gettime(CLOCK_REALTIME, &ts);\n",
        "core/cache/a.c:1: clock_gettime() belongs to core/base/clock.c alone" },
      { "a room that is not in the picture", "core/attic/a.c", '#include "base/buf.h"\n',
        "core/attic/a.c:1: core/attic/ is not in the picture of spec/support/layers.lua" },
      { "a controller that reaches below kubelua", "controllers/a.lua", 'local c = require "kubelua.core"\n',
        'controllers/a.lua:1: a controller requires "kubelua" and nothing below it, so not "kubelua.core"' },
    }
    for _, case in ipairs(wrong) do
      it(case[1], function() assert.same({ case[4] }, violations(case[2], case[3])) end)
    end
  end)

  it("does not mistake a comment for code", function()
    assert.same({}, violations("core/queue/a.c",
      '/* once:\n#include "value/value.h"\n*/\n// clock_gettime(x)\n'))
  end)

  it("allows the files that wrap a library", function()
    assert.same({}, layers.check {
      ["core/http/http.c"] = "#include <curl/curl.h>\n", ["core/base/sync.h"] = "#include <pthread.h>\n",
      ["bindings/api/a.c"] = '#include <lua.h>\n#include "manager/manager.h"\n#include "state/lkl.h"\n',
      ["core/value/json.c"] = "#include <cjson/cJSON.h>\n",
    })
  end)
end)

describe("a header", function()
  it("passes when each paragraph of declarations carries a comment", function()
    assert.same({}, lint.header("core/a.h",
      "/* a.h - an idea. */\n\n/* Any thread. */\nvoid kl_a(void);\nvoid kl_b(void);\n\nint kl_c(void);   \z
      /* owner */\n"))
  end)

  it("is reported with the line of an undocumented paragraph", function()
    local found = lint.header("core/a.h",
      "/* a.h - an idea. */\n\n/* Any thread. */\nvoid kl_a(void);\n\nconst char *kl_b(int x);\n")
    assert.equal(1, #found)
    assert.truthy(found[1]:find("core/a.h:6: ", 1, true))
  end)

  it("is reported if it does not open with its idea", function()
    assert.truthy(lint.header("core/a.h", "#ifndef A\n#endif\n")[1]:find("core/a.h:1: ", 1, true))
  end)
end)

describe("a line of code", function()
  it("is reported with its columns if it is wide", function()
    assert.same({ "spec/a_spec.lua:3: 111 columns, 110 at most" }, lint.wide("spec/a_spec.lua",
      ("x"):rep(110) .. "\n" .. ("ü"):rep(110) .. "\n" .. ("x"):rep(111)
      .. "\n---@field " .. ("x"):rep(111) .. "\n"))
    assert.same({}, lint.wide("spec/fixtures/a.lua", ("x"):rep(111) .. "\n"))
  end)

  it("counts a tab as four columns", function()
    assert.same({}, lint.wide("a.go", "\t" .. ("x"):rep(106) .. "\n"))
    assert.same({ "a.go:1: 111 columns, 110 at most" }, lint.wide("a.go", "\t" .. ("x"):rep(107) .. "\n"))
  end)

  it("may be wide if it imports a package of Go", function()
    local path = ('"%s"'):format(("x"):rep(105))
    assert.same({}, lint.wide("a.go", "\tname " .. path .. "\n"))
    assert.equal(1, #lint.wide("a.go", "\tname = " .. path .. "\n"))
  end)
end)

describe("a function", function()
  it("is reported if it is too long, or takes too many parameters", function()
    local found = lint.functions("core/a.c",
      "static int f(int a, void (*b)(int, int))\n{\n" .. ("\n"):rep(75) .. "}\n"
      .. "\nstatic void g(int a, int b, int c, int d, int e, int f, int g, int h, int i) KL_REQUIRES(a)\n{\n"
      .. ("\n"):rep(76) .. "}\n")
    assert.same({ "core/a.c:81: g takes 9 parameters, 8 at most: give it a struct",
      "core/a.c:81: a function of 76 lines, 75 at most: it does more than one thing" }, found)
    assert.same({ "lua/a.lua:1: a function of 76 lines, 75 at most: it does more than one thing" },
      lint.lua_functions("lua/a.lua", "function M.f()\n" .. ("\n"):rep(76) .. "end\n"))
  end)
end)
