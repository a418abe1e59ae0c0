-- flaws_spec.lua - published bugs of the interpreter, each as a script: none crashes the process, and the
-- worker goes on.

local kube = require "kubelua"

local SCRIPT = [[
local kube = require "kubelua"

local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end

local tries = {
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
        local _ <close> = setmetatable({}, { __close = function() if previous then assert(coroutine.close(previous)) end end })
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
    local f = assert(load("local t = setmetatable({}, { __index = function(t) return t end }) return t" .. (".a"):rep(100000) .. ".b + 1"))
    return f()
  end,
  ["indexed chain"] = function() return assert(load("local t = {} return t" .. ("\n[ 'a' ] --[==[ ] ]==]\n"):rep(100000) .. " + 1"))() end,
  ["nested chain"] = function() return assert(load("local t = {} return " .. ("("):rep(100) .. "t" .. (".a.b.c)"):rep(100) .. " + 1"))() end,
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
  ["metatable of strings"] = function() getmetatable("").__index = 1 end,
  ["error in error handling"] = function()
    local function f() return xpcall(f, f) end
    local t = {}
    pcall(function() for i = 1, 1e9 do t[i] = ("x"):rep(100) .. i end end)
    return f()
  end,
}

return kube.controller { name = "flaws", resource = "v1/ConfigMap", cpu = "10s", memory = "16Mi", reconcile = function(o)
  local try = tries[o.metadata.annotations.try]
  if try then try() error "it came back" end
end }
]]

describe("a bug of the interpreter", function()
  local t, n = nil, 0
  lazy_setup(function() t = kube.testing.start { source = SCRIPT } end)
  lazy_teardown(function() if t then t:stop() end end)

  local function run(what)
    n = n + 1
    t:create { kind = "v1/ConfigMap", name = "o" .. n, annotations = { try = what } }
    local runs = t:runs("default/o" .. n, { controller = "flaws" })
    t:delete("v1/ConfigMap", "o" .. n)
    return runs[1]
  end

  for what, why in pairs {
    concat = "a metatable of a script may not have __concat: Lua",
    ["concat later"] = "attempt to concatenate a table value",
    ["weak metatable"] = "a metatable of a script may not have __mode: Lua",
    ["weak metatable later"] = "not enough memory",
    ["all weak"] = "all there", closing = "coroutines close each other more than 8 deep",
    ["wrapped closing"] = "",
    chain = "a chain of more than 250 fields (a.b.c ...): put a part of it into a local variable",
    ["indexed chain"] = ":502: a chain of more than 250 fields",
    ["nested chain"] = "a chain of more than 250 fields", bytecode = "attempt to load a binary chunk",
    ["bytecode of a function"] = "",
    ["constant environment"] = "attempt to index a number value", ["gmatch again"] = "",
    ["message handler"] = "false: ", unpack = "too many results to unpack",
    ["unpack overflow"] = "too many results to unpack", ["metatable of strings"] = "",
    ["error in error handling"] = "",
  } do
    it("ends the key alone: " .. what, function()
      local r = run(what)
      assert.equal("error", r.result)
      assert.truthy(r.message:find(why, 1, true), r.message)
      assert.is_nil(r.message:find("it came back", 1, true), r.message)
      assert.equal("done", run("nothing").result)
    end)
  end
end)
