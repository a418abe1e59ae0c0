-- flaws_spec.lua - published bugs of the Lua interpreter, each as a script: none crashes the process, and the
-- worker continues.

local process = require "support.process"

local kube = require "kubelua"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local SCRIPT = [===[
local kube = require "kubelua"

local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end

local tries = {
  plain = function() while true do pcall(string.rep, "x", 10) end end,
  -- CVE-2022-33099's fix: the stack moves during a __concat. Also with a field that came after setmetatable.
  ["concat"] = function() return setmetatable({}, { __concat = function() deep(150000) return "w" end }) end,
  ["concat later"] = function()
    local mt = {}
    local x = setmetatable({}, mt)
    mt.__concat = function() deep(150000) return "w" end
    return coroutine.wrap(function() for _ = 1, 100 do local _ = "a" .. x .. "b" end end)()
  end,
  ["weak metatable"] = function() return setmetatable({ __newindex = {} }, { __mode = "v" }) end,
  ["weak metatable later"] = function()
    local m = {}
    local mt = setmetatable({ __newindex = {} }, m)
    m.__mode = "v"
    local t, full = setmetatable({}, mt), {}
    for i = 1, 1e9 do t[i] = i full[i] = { i } end
  end,
  ["all weak"] = function()
    local m = {}
    for r = 1, 20 do
      local ts = {}
      for i = 1, 500 do ts[i] = setmetatable({}, {}) getmetatable(ts[i]).__mode = "kv" end
      for i = 1, 500 do setmetatable(ts[i], { n = i }) if i % 50 == 0 then collectgarbage "step" end end
      collectgarbage()
      for i = 1, 500 do assert(getmetatable(ts[i]).n == i) end
    end
    error "all there"
  end,
  ["closing"] = function()
    local co = false
    for _ = 1, 5000 do
      local previous = co
      co = coroutine.create(function()
        local _ <close> = setmetatable({},
          { __close = function() if previous then assert(coroutine.close(previous)) end end })
        coroutine.yield()
      end)
      assert(coroutine.resume(co))
    end
    local ok, why = coroutine.close(co)
    error(tostring(ok) .. ": " .. tostring(why))
  end,
  ["wrapped closing"] = function()
    local function nest(n)
      return coroutine.wrap(function()
        local _ <close> = setmetatable({}, { __close = function() if n > 0 then nest(n - 1)() end end })
        error "inside"
      end)
    end
    nest(20000)()
  end,
  ["chain"] = function()
    local f = assert(load("local t = setmetatable({}, { __index = function(t) return t end }) return t"
      .. (".a"):rep(100000) .. ".b + 1"))
    return f()
  end,
  ["indexed chain"] = function()
    return assert(load("local t = {} return t" .. ("\n[ 'a' ] --[==[ ] ]==]\n"):rep(100000) .. " + 1"))()
  end,
  ["nested chain"] = function()
    return assert(load("local t = {} return " .. ("("):rep(100) .. "t" .. (".a.b.c)"):rep(100) .. " + 1"))()
  end,
  ["bytecode"] = function() return assert(load("\27Lua" .. ("\0"):rep(100))) end,
  ["bytecode of a function"] = function() return assert(load(string.dump(deep), "x", "b")) end,
  ["constant environment"] = function() return assert(load "local _ENV <const> = 1 x = 2")() end,
  ["gmatch again"] = function()
    local n = 20000
    local iter = string.gmatch(("a"):rep(n), ("a?"):rep(n))
    pcall(iter) pcall(iter)
    iter()
    error "came back"
  end,
  ["message handler"] = function()
    local c = coroutine.create(function()
      local _ <close> = setmetatable({}, { __close = function() local x = 134 error(x) end })
      xpcall(coroutine.yield, function() return "XXX" end)
    end)
    assert(coroutine.resume(c))
    local ok, why = coroutine.close(c)
    error(tostring(ok) .. ": " .. tostring(why))
  end,
  ["unpack"] = function() return table.unpack({}, 1, 1e7) end,
  ["unpack overflow"] = function() return table.unpack({}, math.mininteger, math.maxinteger) end,
  ["break leaves a closing value"] = function()
    local closed = 0
    local o = setmetatable({}, { __close = function() closed = closed + 1 end })
    local function left()
      for k in next, { 1, 2 }, nil, o do
        local function held() return k end
        if held() then break end
      end
      assert(closed == 1)
      local y <close> = o
      return y
    end
    left()
    assert(closed == 2)
    error "each was closed in its turn"
  end,
  ["loaded break"] = function()
    assert(load [=[
      local o = setmetatable({}, { __close = function() end })
      for _ = 1, 3 do
        for k in next, { 1 }, nil, o do local function held() return k end break end
        local y <close> = o
      end]=])()
    error "went on"
  end,
  ["loaded comparison as an index"] = function()
    return assert(load("local t = {}\nlocal function f(a, b)\n  return t[not (a < b)]\nend return f(1, 2)",
      "=part"))()
  end,
  ["sound comparisons"] = function()
    local t = { [true] = "yes", [false] = "no" }
    local function f(a, b)
      local u = t return u[a < b], t[a < b and true or false], ({ [a < b] = 1 })[true]
    end
    local yes, again, one = f(1, 2)
    assert(yes == "yes" and again == "yes" and one == 1 and f(2, 1) == "no")
    error "right"
  end,
  ["bitwise operations"] = function()
    local parts = {}
    for i = 1, 257 do parts[i] = i .. ".1," end
    local ok, x = pcall(assert(load("local x = {" .. table.concat(parts) .. "} return (1 ~ (2 or 3))")))
    error(ok and math.type(x) == "integer" and "a number" or x)
  end,
  ["continuation bytes"] = function()
    for _ in utf8.codes "ab\x80\x80c" do local _ end
    error "at its end"
  end,
  ["line of arithmetic"] = function()
    local a, b = {}, 1
    return a
      + b
  end,
  ["line of a call"] = function()
    local nothing
    nothing
    (
    1
    )
  end,
  ["locale"] = function() return os.setlocale "km_KH.UTF-8" end,
  ["joined strings"] = function()
    local x = ("x"):rep(8e6)
    return x .. x .. x .. x .. x .. x
  end,
  ["string as environment"] = function() return load("local x = _ENV.u + 1", "=x", "t", "text")() end,
  ["many fields"] = function()
    local parts = {}
    for i = 1, 100000 do parts[i] = "[1]=1," end
    local ok = load("return {" .. table.concat(parts) .. "}")
    error(ok and "compiled" or "not compiled")
  end,
  ["debug library"] = function() return require "debug" end,
  ["metatable of strings"] = function() getmetatable("").__index = 1 end,
  ["error in error handling"] = function()
    local function f() return xpcall(f, f) end
    local t = {}
    pcall(function() for i = 1, 1e9 do t[i] = ("x"):rep(100) .. i end end)
    return f()
  end,
}

local function c(name, cpu)
  return kube.controller { name = name, resource = "v1/ConfigMap", cpu = cpu, memory = "16Mi",
    reconcile = function(o)
      local try = tries[o.metadata.annotations[name]]
      if try then try() error "it came back" end
    end }
end

return { c("flaws", "10s"), c("brief", "20ms") }
]===]

-- The name of an attempt, and the error of its key.
local EXPECTED = {
  plain = "cpu budget of 20ms spent", concat = "a metatable of a script may not have __concat: Lua",
  ["concat later"] = "attempt to concatenate a table value",
  ["weak metatable"] = "a metatable of a script may not have __mode: Lua",
  ["weak metatable later"] = "not enough memory", ["all weak"] = "all there",
  closing = "coroutines close each other more than 8 deep", ["wrapped closing"] = "",
  chain = "a chain of more than 250 fields (a.b.c ...): put a part of it into a local variable",
  ["indexed chain"] = ":502: a chain of more than 250 fields",
  ["nested chain"] = "a chain of more than 250 fields", bytecode = "attempt to load a binary chunk",
  ["bytecode of a function"] = "", ["constant environment"] = "attempt to index a number value",
  ["gmatch again"] = "", ["message handler"] = "false: ", unpack = "too many results to unpack",
  ["unpack overflow"] = "too many results to unpack", ["metatable of strings"] = "",
  ["error in error handling"] = "", ["break leaves a closing value"] = "each was closed in its turn",
  ["loaded break"] = "went on", ["sound comparisons"] = "right",
  ["loaded comparison as an index"] = "part:3: a comparison is the index of a variable of an outer function",
  ["bitwise operations"] = "", ["continuation bytes"] = "at its end",
  ["line of arithmetic"] = "attempt to perform arithmetic on a table value",
  ["line of a call"] = "attempt to call a nil value", locale = "setlocale",
    ["joined strings"] = "not enough memory",
  ["string as environment"] = "attempt to", ["many fields"] = "compiled",
  ["debug library"] = "debug",
}

describe("a bug of the interpreter", function()
  local t, n = nil, 0
  lazy_setup(function() t = kube.testing.start { source = SCRIPT } end)
  lazy_teardown(function() if t then t:stop() end end)

  local function run(what, who)
    n = n + 1
    t:create { kind = "v1/ConfigMap", name = "o" .. n, annotations = { [who or "flaws"] = what } }
    local runs = t:runs("default/o" .. n, { controller = who or "flaws" })
    t:delete("v1/ConfigMap", "o" .. n)
    return runs[1]
  end

  -- A row of `kubelua version --bugs`: what a script tries, or what no file of bindings/ has.
  local ROWS = {
    { "lua.c assumes", absent = "pmain" },
    { "`local _ENV <const>`", "constant environment" },
    { "an error in error handling overflows", "error in error handling" },
    { "a __concat that", "concat", "concat later" },
    { "lua_settop may", absent = "lua_toclose" },
    { "`break` may leave", "break leaves a closing value", "loaded break" },
    { "bitwise operations", "bitwise operations" },
    { "a generational collector", "all weak" },
    { "utf8.codes takes", "continuation bytes" },
    { "coroutines that close", "closing", "wrapped closing" },
    { "an error of arithmetic", "line of arithmetic" },
    { "a corrupt binary chunk", "bytecode", "bytecode of a function" },
    { "a comparison of strings", "locale", absent = "LC_ALL" },
    { "a hook for calls", "plain" },
    { "an error of a call", "line of a call" },
    { "an error in a long chain", "chain", "indexed chain", "nested chain" },
    { "the length of joined strings", "joined strings" },
    { "a coroutine that a hook yielded", "plain" },
    { "the lines of a stripped", "debug library" },
    { "the compiler copies", "plain" },
    { "a traceback needs", "plain" },
    { "a comparison as an index", "loaded comparison as an index", "sound comparisons" },
    { "an error in error handling may raise", "error in error handling" },
    { "closing a coroutine may", "message handler" },
    { "the collector frees a weak", "weak metatable", "weak metatable later" },
    { "an error with a field of a string", "string as environment" },
    { "a panic function", absent = "lua_atpanic" },
    { "a constructor of", "many fields" },
    { "the collector misses", "all weak" },
    { "a gmatch that failed", "gmatch again" },
    { "loading binary chunks", "bytecode" },
    { "lua_load moves", "loaded break" },
  }

  it("has a row in `kubelua version --bugs`, and a test or a reason here", function()
    local out, code = process.run(KUBELUA .. " version -o json")
    assert.equal(0, code, out)
    local bugs = kube.decode(out)("lua.bugs")
    assert.equal(#ROWS, #bugs)
    for i, row in ipairs(ROWS) do
      assert.equal(row[1], bugs[i]("bug"):sub(1, #row[1]))
      for at = 2, #row do assert.truthy(EXPECTED[row[at]], row[at]) end
      if row.absent then
        local found = process.run("grep -rlw " .. row.absent .. " bindings --include=*.c")
        assert.equal("", found)
      end
    end
  end)

  it("is refused when a script is loaded: a comparison as an index", function()
    local path = process.write(process.tmpname ".lua", [[
local kube = require "kubelua"
local t = {}
local function f(a, b)
  return t[a < b]
end
return kube.controller { name = "index", resource = "v1/ConfigMap", reconcile = f }
]])
    local out, code = process.run(KUBELUA .. " check " .. path)
    assert.equal(1, code, out)
    assert.truthy(out:find(path .. ":4: a comparison is the index of a variable of an outer function, t[a \z
      < b]",
      1, true), out)
  end)

  for what, why in pairs(EXPECTED) do
    it("ends the key alone: " .. what, function()
      local r = run(what, what == "plain" and "brief")
      assert.equal("error", r.result)
      assert.truthy(r.message:find(why, 1, true), r.message)
      assert.is_nil(r.message:find("it came back", 1, true), r.message)
      assert.equal("done", run("nothing").result)
    end)
  end
end)
