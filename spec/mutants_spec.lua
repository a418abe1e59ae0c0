-- mutants_spec.lua - support/mutants.lua and mutant_places.lua: the places that they find, the order of a
-- seed, the specs of a place, and the report.
-- not in asan, tsan: it reads text and runs a small tree of its own

local equals = require "support.mutant_equals"
local mutants = require "support.mutants"
local places = require "support.mutant_places"
local process = require "support.process"

local function news(text, language)
  local list = {}
  for _, place in ipairs(places.of(text, language)) do
    list[#list + 1] = place.line .. " " .. place.new:match "^%s*(.-)$"
  end
  return list
end

describe("places of a C file", function()
  it("are comparisons, conditions, constants, statements and whole functions", function()
    assert.same({ "2 { return false;", "3 if (a != b && c)", "3 if (a == b || c)", "3 if (!(a == b && c))",
      "4 ;", "5 return n <= 7;", "5 return n < 8;" },
      news("static bool f(int a)\n{\n    if (a == b && c)\n        go(a);\n    return n < 7;\n}\n", "c"))
  end)

  it("are not in comments, strings, declarations and statements that only free memory", function()
    assert.same({},
      news('/* a == 1 */\n    say("a && 2" // 3\n#define A 4\n    kl_free(a);\n    int n = x;\n', "c"))
    assert.same({}, news("static void x_free(x *p)\n{\n    kl_free(p);\n}\n", "c"))
  end)

  it("exclude the bound of a clamp, where both operators are equivalent", function()
    assert.same({}, news("    return b > c ? b : c;\n    return x->n < n ? x->n : n;\n", "c"))
    assert.same({ "1 return b >= c ? c : d;" }, news("    return b > c ? c : d;\n", "c"))
  end)

  it("exclude a statement that started on the line before", function()
    assert.same({}, news("    a = b +\n    f(c);\n", "c"))
  end)
end)

describe("places of a Lua file", function()
  it("are comparisons, conditions, statements and whole functions", function()
    assert.same({ "1 local function f(a) do return end", "2 if a ~= b and c then go(a) end",
      "2 if a == b or c then go(a) end", "2 if not (a == b and c) then go(a) end", "3 do end" },
      news("local function f(a)\n  if a == b and c then go(a) end\n  t.x = a\nend\n", "lua"))
  end)

  it("are not in comments and strings", function()
    assert.same({}, news("--[[ a == 1\n b < 2 ]]\nlocal s = 'x and 3' .. [[ 4 ]]\n", "lua"))
  end)
end)

describe("a seed", function()
  it("selects the same places again, each once", function()
    local all = {}
    for i = 1, 50 do all[i] = i end
    local one, other = mutants.choose(all, 7), mutants.choose(all, 7)
    assert.same(one, other)
    assert.not_same(one, mutants.choose(all, 8))
    table.sort(one)
    assert.same(all, one)
  end)
end)

describe("the specs of a place", function()
  it("are near when they stand in its room, bear its name or include its header", function()
    local index = mutants.index {
      ["spec/core/cache/reflector_test.c"] = "",
      ["spec/core/http/x_test.c"] = '#include "cache/reflector.h"',
      ["spec/bindings/time_spec.lua"] = "",
    }
    assert.same({ "spec/core/cache/reflector_test.c", "spec/core/http/x_test.c" },
      (mutants.specs_of("core/cache/reflector.c", "", 1, index)))
    assert.same({ "spec/bindings/time_spec.lua" }, (mutants.specs_of("bindings/api/ltime.c", "", 1, index)))
  end)

  it("of a policy are those that bear its directory's name, and the tests of policies that fit it", function()
    local index = mutants.index {
      ["spec/controllers/quota_spec.lua"] = "",
      ["controllers/koordinator/quota_test.lua"] = "",
      ["controllers/demo/far_test.lua"] = "nothing",
      ["controllers/demo/other_test.lua"] = "orphan",
      ["controllers/demo/third_test.lua"] = "nothing",
    }
    local text = "local function orphan() end\n"
    assert.same({ "controllers/koordinator/quota_test.lua", "spec/controllers/quota_spec.lua",
      "controllers/demo/other_test.lua", "controllers/demo/far_test.lua" },
      (mutants.specs_of("controllers/koordinator/quota/tree.lua", text, 1, index)))
    assert.same({}, (mutants.specs_of("lua/kubelua/tree.lua", text, 1, index)))
  end)

  it("are in the wider set by the words around it, the rare ones first", function()
    local index = mutants.index {
      ["spec/e2e/common_spec.lua"] = "local server = start() assert(server:lease())",
      ["spec/e2e/rare_spec.lua"] = "local server = start() assert(server:bookmark())",
      ["spec/e2e/other_spec.lua"] = "server lease",
      ["spec/e2e/none_spec.lua"] = "nothing",
    }
    local text = "x" .. ("\n"):rep(30) .. 'static void f(void)\n{\n    say("server sent a bookmark");\n}\n'
    local _, wide = mutants.specs_of("core/cache/reflector.c", text, 33, index)
    assert.equal("spec/e2e/rare_spec.lua", wide[1])
    assert.equal(3, #wide)
    assert.same({}, (select(2, mutants.specs_of("core/cache/reflector.c", text, 1, index))))
  end)

  it("are known for every file", function()
    local found = {}
    for path in process.run("ls spec/core/*/*_test.c spec/*/*_spec.lua"):gmatch "%S+" do
      found[path] = process.read(path)
    end
    local index = mutants.index(found)
    for path in process.run("ls bindings/*/*.c lua/kubelua/*.lua"):gmatch "%S+" do
      local near, wide = mutants.specs_of(path, process.read(path), 20, index)
      assert.is_true(#near + #wide > 0, path)
    end
  end)

  it("are not mutated if they are generated tables", function()
    assert.falsy(places.counts("core/wire/proto_data.c", ""))
    assert.falsy(places.counts("lua/kubelua/typed_meta.lua", ""))
    assert.falsy(places.counts("spec/x.lua", ""))
    assert.falsy(places.counts("controllers/demo/demo_test.lua", ""))
    assert.truthy(places.counts("core/cache/reflector.c", ""))
  end)
end)

describe("a run", function()
  -- Its runner runs each spec as a script, which fails by raising.
  local RUNNER = [[
    for _, path in ipairs { table.unpack(arg, 6) } do
      if not pcall(dofile, path) then print("FAILED  " .. path) os.exit(1) end
    end]]

  local function tree(files)
    local dir = process.tmpname ".tree"
    for path, text in pairs(files) do
      process.run(("mkdir -p %s/%s"):format(dir, path:match "^(.*)/" or "."))
      process.write(dir .. "/" .. path, text)
    end
    process.run(("mkdir -p %s/build && cd %s && git init -q && git add -A && make"):format(dir, dir))
    return dir
  end

  local function run(dir)
    local counts = mutants.run { tree = dir, n = 20, seed = 1, from = 1, quiet = true }
    return counts, process.read(dir .. "/build/mutants/report.txt")
  end

  -- Its program is made of the file.
  local MAKEFILE = "all: build/kubelua build/lua/kubelua/core.so\n"
    .. "build/kubelua build/lua/kubelua/core.so: lua/age.lua\n\t@mkdir -p $(@D)\n\tcat $< > $@\n"

  it("kills noticed mutants, names survivors, and leaves the tree unchanged", function()
    local text = "local M = {}\nfunction M.is_old(n)\n  return n > 18\nend\nreturn M\n"
    local dir = tree {
      ["lua/age.lua"] = text,
      ["spec/lua/age_spec.lua"] = "local age = dofile 'build/kubelua' assert(age.is_old(30) == true)",
      ["spec/support/run.lua"] = RUNNER,
      Makefile = MAKEFILE,
    }
    local counts, said = run(dir)
    assert.same({ killed = 1, survived = 2, broken = 0 }, counts)
    assert.truthy(said:find("killed   lua/age.lua:2 return: `", 1, true))
    assert.truthy(said:find("survived lua/age.lua:3 compare: `return n > 18` -> `return n >= 18`", 1, true))
    assert.truthy(said:find("3 mutants, 1 killed (33.3 %), 2 survived; 0 more did not compile", 1, true))
    for _, at in ipairs { "", "/build/mutants/mutated" } do
      assert.equal(text, process.read(dir .. at .. "/lua/age.lua"))
      assert.equal(text, process.read(dir .. at .. "/build/kubelua"))
    end
  end)

  it("does not judge mutants that are known to be equal", function()
    local key = "lua/age.lua: return n >= 18"
    equals[key] = "nobody is that old"
    local counts, said = run(tree {
      ["lua/age.lua"] = "return function(n)\n  return n > 18\nend\n",
      ["spec/lua/age_spec.lua"] = "assert(dofile 'build/kubelua'(18) == false)",
      ["spec/support/run.lua"] = RUNNER,
      Makefile = MAKEFILE,
    })
    equals[key] = nil
    assert.equal(0, counts.broken)
    assert.truthy(said:find("equal    lua/age.lua:2: nobody is that old\n", 1, true), said)
    assert.falsy(said:find("-> `return n >= 18`", 1, true), said)
  end)

  it("knows each equal mutant by a line that no other mutant has", function()
    for key in pairs(equals) do
      local path, line = key:match "^(%S+): (.*)$"
      local found = 0
      for _, place in ipairs(places.of(assert(process.read(path)), path:match "%.(%w+)$")) do
        if place.new:match "^%s*(.-)$" == line then found = found + 1 end
      end
      assert.equal(1, found, key)
    end
  end)

  it("skips a spec that fails without a mutant, and mutants that do not build", function()
    local dir = tree {
      ["lua/age.lua"] = "return 18\n",
      ["spec/lua/age_spec.lua"] = "error 'always'",
      ["spec/support/run.lua"] = RUNNER,
      Makefile = MAKEFILE,
    }
    assert.same({ killed = 0, survived = 1, broken = 0 }, (run(dir)))
    process.write(dir .. "/Makefile", (MAKEFILE:gsub("cat", "grep -q 18 $<\n\tcat")))
    assert.same({ killed = 0, survived = 0, broken = 1 }, (run(dir)))
  end)

  it("compiles the file of a mutant alone, and links it before the library", function()
    local program = "build/spec/core/age/age_test"
    local dir = tree {
      ["core/age/age.c"] = "int is_old(int n)\n{\n    return n > 18;\n}\n",
      ["core/age/young.c"] = "int is_old(int n);\nint is_young(int n)\n{\n    return !is_old(n);\n}\n",
      ["spec/core/age/age_test.c"] = "int is_young(int n);\nint main(void) { return !is_young(18); }\n",
      ["spec/support/run.lua"] = ([[
        if not os.execute "%s" then print "FAILED  %s.c" os.exit(1) end]]):format(program,
        program:gsub("^build/", "")),
      Makefile = [[
build/spec/core/age/age_test: build/obj/spec/core/age/age_test.o build/age.a
	@mkdir -p $(@D)
	cc -o $@ $^ \
	  -lm
build/age.a: build/obj/core/age/age.o build/obj/core/age/young.o
	ar rcs $@ $^
build/obj/%.o: %.c
	@mkdir -p $(@D)
	cc $(OPT_release) -c -o $@ $<
]],
    }
    local counts, said = run(dir)
    assert.same({ killed = 2, survived = 2, broken = 0 }, counts)
    assert.truthy(said:find("killed   core/age/age.c:3 compare", 1, true), said)
    assert.truthy(said:find("killed   core/age/young.c:3 return", 1, true), said)
    for _, path in ipairs { program, "build/age.a" } do
      assert.equal(process.read(dir .. "/" .. path), process.read(dir .. "/build/mutants/mutated/" .. path))
    end
  end)
end)
