-- bounds_spec.lua - our string and table functions return the same as the interpreter's own, for random
-- input. spec/e2e/bounds_spec.lua shows that they can be stopped.

local core = require "kubelua.core"
local sizes = require "support.sizes"
local ours = core.bounds()
local SLOW = os.getenv "KL_VARIANT" ~= "release" and 10 or 1
local CASES = sizes.of { short = 25000, long = 100000, sanitized = 10000 }

-- The results or the error of a call, as a text. Messages have no name for a function outside of libraries.
local function shown(v)
  if type(v) == "string" then return ("%q"):format(v) end
  return type(v) == "table" and "a table" or tostring(v)
end

local function outcome(f, ...)
  local r = table.pack(pcall(f, ...))
  for i = 1, r.n do r[i] = shown(r[i]) end
  return (table.concat(r, " | ", 1, r.n):gsub(" to '[^']*'", ""))
end

-- Random numbers from a seed, the same on every machine.
local function numbers(seed)
  local state = seed
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return ((state >> 33) % n) + 1
  end
end

local function pick(random, list) return list[random(#list)] end

local function repeated(random, most, make)
  local t = {}
  for i = 1, random(most + 1) - 1 do t[i] = make(random) end
  return table.concat(t)
end

local SUBJECT = { "a", "b", "a", "c", "A", "(", ")", "[", "]", "%", "-", " ", "1", ".", "\0", "\n", "\255",
  "^", "x" }
local SINGLE = { "a", "b", "c", ".", "%a", "%w", "%d", "%s", "%A", "%p", "%.", "%%", "%)", "[ab]", "[^a]",
  "[a-c]", "[%w_]", "[]]", "[^]]", "[a-]", "[%a-z]", "%x", "%g", "%u", "%l",
  "%C", "%z", "\0", "\255", "[\1-\255]", "[%]]", "x", "-", "]", "[^%s%d]", "[--a]" }
local ODD = { "%", "[", "[^", "[%", "(", ")", "%b", "%bx", "%f", "%f[", "%0", "%9", "[a", "*", "+", "?", "^",
  "$", "[]", "[a-", "%1", "%2", "%3" }
local COMMON = { "()", "%1", "%2", "%b()", "%f[%w]", "%f[^a]", "%b[]", "$", "^" }
local TIMES = { "", "", "", "*", "+", "-", "?" }

local function token(random)
  local dice = random(20)
  if dice <= 11 then return pick(random, SINGLE) .. pick(random, TIMES) end
  if dice <= 13 then return "(" .. pick(random, SINGLE) .. pick(random, TIMES) .. ")" end
  if dice <= 15 then return "(" end
  if dice <= 17 then return ")" end
  return pick(random, dice == 18 and ODD or COMMON)
end

local function a_pattern(random)
  return (random(5) == 1 and "^" or "") .. repeated(random, 6, token) .. (random(6) == 1 and "$" or "")
end
local function a_subject(random) return repeated(random, 14, function(r) return pick(r, SUBJECT) end) end
local function an_init(random) return random(3) == 1 and random(20) - 10 or nil end

local function all_matches(lib, s, p, init)
  local found = {}
  for a, b, c in lib.gmatch(s, p, init) do
    found[#found + 1] = shown(a) .. shown(b) .. shown(c)
    assert(#found < 100)
  end
  return table.concat(found, ";")
end

local REPLACEMENTS = { "x", "", "<%0>", "%1", "%2-%1", "%%", "%", "%x", 7,
  { a = "1", b = false, [1] = 2, ab = {} }, setmetatable({},
  { __index = function(_, k) return #tostring(k) end }),
  function(...)
    return select("#", ...)
  end, function(a) return a ~= "a" and a end, function() return nil end, function() return {} end,
  function() error("no", 0) end, true }

local OPERATIONS = {
  function(lib, s, p, random) return outcome(lib.find, s, p, an_init(random)) end,
  function(lib, s, p, random) return outcome(lib.find, s, p, an_init(random), random(4) == 1) end,
  function(lib, s, p, random) return outcome(lib.match, s, p, an_init(random)) end,
  function(lib, s, p, random) return outcome(all_matches, lib, s, p, an_init(random)) end,
  function(lib, s, p, random)
    return outcome(lib.gsub, s, p, pick(random, REPLACEMENTS), random(3) == 1 and random(4) - 1 or nil)
  end,
  function(lib, s, p, random) return outcome(lib.gsub, s, p, pick(random, REPLACEMENTS)) end,
}

describe("patterns", function()
  it("find, match and replace like the interpreter's", function()
    for case = 1, CASES do
      local random = numbers(case)
      local s, p, op = a_subject(random), a_pattern(random), pick(random, OPERATIONS)
      local state = random(1 << 30)
      local theirs, mine = op(string, s, p, numbers(state)), op(ours.string, s, p, numbers(state))
      if theirs ~= mine then
        error(("case %d: pattern %q, subject %q\nthe interpreter: %s\nours:            %s"):format(case, p, s,
          theirs, mine))
      end
    end
  end)

  -- Built at run time, so each is a new string; then some again, which are partly found in the cache and
  -- partly made anew.
  it("are compiled again after eviction", function()
    for round = 1, 3 do
      for i = 1, 300 do
        local p = "^a" .. i .. "(b*)$"
        assert.equal("bb", ours.string.match("a" .. i .. "bb", p), round)
        assert.equal("a" .. i, ours.string.gsub("a" .. i .. "bb", "b+", ""))
      end
      collectgarbage()
    end
    assert.equal("b", ours.string.match("ab", "^" .. ("a?"):rep(300) .. "(b)"))
    assert.equal(2, select("#", ours.string.match("ab", "(a)(b)")))
  end)

  it("treat ^ as an anchor except in gmatch", function()
    for _ = 1, 3 do
      assert.equal(1, (ours.string.find("a^a", "^a")))
      assert.same({ "^a" }, { all_matches(ours.string, "a^a", "^a"):match '^"(.*)"nilnil$' })
    end
  end)

  it("can be used by a replacement function", function()
    local out = ours.string.gsub("a1b2", "(%a)(%d)", function(a, b)
      assert.equal("x", ours.string.match("x9", "(%a)"))
      return (ours.string.gsub(a .. b, "(%a)(%d)", "%2%1"))
    end)
    assert.equal("1a2b", out)
  end)

  it("are searched for by any coroutine", function()
    local each = ours.string.gmatch("one two three", "%a+")
    assert.equal("one", each())
    assert.equal("two", coroutine.wrap(each)())
    assert.equal("three", each())
    assert.is_nil(each())
  end)

  it("have no limit on how many items repeat", function()
    local p = ("a*"):rep(500) .. "(b)"
    assert.equal("b", ours.string.match(("a"):rep(10) .. "b", p))
  end)
end)

describe("string.rep", function()
  it("equals the interpreter's", function()
    for _, args in ipairs { { "x", 3 }, { "x", 0 }, { "x", -1 }, { "", 5 }, { "", 5, "," }, { "ab", 7, "--" },
      { "ab", 1, "--" }, { "abc", 1000 }, { "x", 1 << 62 }, { "xy", 1 << 62, "," }, { 12, 2 },
      { "x" }, { {}, 1 }, { "x", 2.5 }, { "x", 2, {} } } do
      assert.equal(outcome(string.rep, table.unpack(args)), outcome(ours.string.rep, table.unpack(args)))
    end
  end)

  it("of the empty string is empty, however often", function()
    assert.equal("", ours.string.rep("", math.maxinteger))
  end)
end)

describe("tables", function()
  -- The effect of an operation on a table, with its results or error.
  local function effect(f, make, ...)
    local t = make()
    -- Old interpreters name the wrong argument of table.remove.
    local said = outcome(f, t, ...):gsub("#%d %(position", "(position")
    local keys = {}
    for k, v in next, type(t) == "table" and t or {} do keys[#keys + 1] = shown(k) .. "=" .. shown(v) end
    table.sort(keys)
    return said .. " / " .. table.concat(keys, " ")
  end

  local function same(name, make, ...)
    assert.equal(effect(table[name], make, ...), effect(ours.table[name], make, ...))
  end

  local function proxy()
    local inner = { 5, 3, 9, 1 }
    return setmetatable({}, { __index = inner, __newindex = inner, __len = function() return #inner end })
  end
  local function liar(n)
    return function() return setmetatable({}, { __len = function() return n end }) end
  end
  local MAKERS = { function() return {} end, function() return { 1 } end, function() return { 3, 1, 2 } end,
    function()
    return { "b", "a", 7, "c" }
  end, proxy, liar "x", liar(3),
    function() return { 1, {}, 3 } end, function() return 5 end, function() return "text" end, function()
      return { "a", nil, "c" }
    end }

  it("are joined, moved and changed as by the interpreter", function()
    for _, make in ipairs(MAKERS) do
      for _, args in ipairs { {}, { "," }, { ",", 2 }, { ",", 2, 3 }, { ",", 3, 2 },
        { ",", math.maxinteger - 1, math.maxinteger }, { {} }, { ",", 1.5 } } do
        same("concat", make, table.unpack(args, 1, 3))
      end
      for _, args in ipairs { {}, { 8 }, { 1, 8 }, { 2, 8 }, { 5, 8 }, { 0, 8 }, { 9, 8 }, { -1, 8 },
        { 1, 2, 3 }, { "x", 1 } } do
        same("insert", make, table.unpack(args))
      end
      for _, args in ipairs { {}, { 1 }, { 2 }, { 3 }, { 4 }, { "x" } } do
        same("remove", make, table.unpack(args))
      end
      for _, args in ipairs { { 1, 2, 3 }, { 2, 3, 1 }, { 1, 3, 2 }, { 1, 0, 5 }, { 0, 2, 1 },
        { math.mininteger, 0, 2 }, { 1, 5, math.maxinteger - 2 }, { 1 }, { 1, 3, 2, {} }, { 1, 3, 1, 7 } } do
        same("move", make, table.unpack(args))
      end
    end
  end)

  it("name the wrong argument by its number", function()
    assert.error_matches(function()
      ours.table.remove({ 1, 2, 3 }, 7)
    end, "bad argument #2 .*position out of bounds")
  end)

  local function sorted_by_both(make, f)
    local theirs, mine = make(), make()
    table.sort(theirs, f)
    ours.table.sort(mine, f)
    assert.same(theirs, mine)
  end

  it("are sorted as by the interpreter", function()
    local random = numbers(1)
    for n = 0, 200 do
      local list, names = {}, {}
      for i = 1, n do
        list[i] = random(n)
        names[i] = "n" .. random(1000)
      end
      sorted_by_both(function() return table.move(list, 1, n, 1, {}) end)
      sorted_by_both(function() return table.move(list, 1, n, 1, {}) end, function(a, b) return a > b end)
      sorted_by_both(function() return table.move(names, 1, n, 1, {}) end)
    end
    for _, n in ipairs { 1, 2, 3, 5, 9, 10 } do same("sort", MAKERS[n]) end
    same("sort", function() return { 1, 2 } end, 7)
    same("sort", liar(math.maxinteger))
    local t = proxy()
    ours.table.sort(t)
    assert.same({ 1, 3, 5, 9 }, { t[1], t[2], t[3], t[4] })
  end)

  it("are sorted beyond what a stack holds", function()
    local random, n = numbers(2), 120000 // SLOW
    local list = {}
    for i = 1, n do list[i] = random(1 << 30) end
    local before = table.move(list, 1, n, 1, {})
    ours.table.sort(list)
    table.sort(before)
    assert.is_true(table.concat(list, ",") == table.concat(before, ","))
    ours.table.sort(list, function(a, b) return a > b end)
    for i = 2, n do assert(list[i - 1] >= list[i]) end
  end)

  it("keep the order of equal elements", function()
    local list = {}
    for i = 1, 1000 do list[i] = { key = i % 7, i = i } end
    ours.table.sort(list, function(a, b) return a.key < b.key end)
    for i = 2, #list do
      local a, b = list[i - 1], list[i]
      assert(a.key < b.key or (a.key == b.key and a.i < b.i))
    end
  end)

  it("stay unchanged when a comparator raises, and complete when it contradicts itself", function()
    local list = { 4, 2, 3, 1 }
    assert.error_matches(function()
      ours.table.sort(list, function() error("no order", 0) end)
    end, "no order")
    assert.same({ 4, 2, 3, 1 }, list)
    assert.error_matches(function() ours.table.sort({ 1, "x", 2 }) end, "attempt to compare")
    ours.table.sort(list, function() return true end)
    table.sort(list)
    assert.same({ 1, 2, 3, 4 }, list)
  end)

  it("take positions up to the largest integer", function()
    local function everywhere(n)
      local set = {}
      return setmetatable(set, { __len = function() return n end, __index = function(_, i) return i end }),
        set
    end
    local last = math.maxinteger
    for name, lib in pairs { ours = ours.table, theirs = table } do
      local to = lib.move(everywhere(0), last - 1, last, 1, {})
      assert.same({ last - 1, last }, to, name)
      local t, set = everywhere(0)
      lib.move(t, 1, 2, last - 1)
      assert.equal("1 2", rawget(set, last - 1) .. " " .. rawget(set, last), name)
      t, set = everywhere(last)
      lib.insert(t, last, "x")
      assert.equal("x", rawget(set, last), name)
      t = everywhere(-5)
      assert.is_true(pcall(lib.insert, t, last, "x"), name)
      t = everywhere(last)
      assert.equal(last, lib.remove(t), name)
    end
  end)
end)
