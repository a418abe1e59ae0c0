-- bounds_spec.lua - calls of the standard library that would take minutes or all memory, in `kubelua run` on
-- both API servers: no hook runs inside C, and still each call fails only its own key, at once, with a
-- message that names the cause.
-- real in asan: what scripts do to the process, on both servers

local controller = require "support.controller"
local servers = require "support.servers"
local wait = require "support.wait"

local CPU = "cpu budget of 50ms spent (`cpu` of bounds-"
local DEEP = "stack overflow: the active calls hold more than 32768 values"
local COLLIDE = "the numeric keys of a large table collide"
local MEMORY = "not enough memory: a worker's state may hold 8Mi (`memory` of memory-"

-- name, code, what the log says, and the function that its traceback names.
local WAYS = {
  { "match", "return LONG:match(('a*'):rep(8) .. 'b')", CPU, "string.match" },
  { "find", "return LONG:find '.-.-.-b'", CPU, "string.find" },
  { "gmatch", "for _ in LONG:gmatch '(a*)(a*)%1(a*)b' do end", CPU, "for iterator" },
  { "gsub", "return LONG:gsub('.*.*.*b', '')", CPU, "string.gsub" },
  { "balanced", "return ('('):rep(1000000):find '%b()'", CPU, "string.find" },
  { "pcall", "while true do pcall(string.find, LONG, '.-.-.-b') end", CPU, "string.find" },
  { "coroutine", "coroutine.wrap(function() return LONG:find '.-.-.-b' end)()", CPU, "string.find" },
  { "move", "table.move({}, 1, 1 << 53, 2)", CPU, "table.move" },
  { "concat", "return table.concat(setmetatable({}, { __index = rawlen }), '', 1, 1 << 53)", CPU,
    "table.concat" },
  { "insert", "table.insert(setmetatable({}, { __len = function() return 1 << 53 end }), 1, 'x')", CPU,
    "table.insert" },
  { "remove", "table.remove(setmetatable({}, { __len = function() return 1 << 53 end }), 1)", CPU,
    "table.remove" },
  { "sort", "table.sort(NUMBERS)", CPU, "table.sort" },
  { "load", "load(('a = 1 '):rep(1500000))", CPU, "load" },
  { "rep-nothing", "return (''):rep(1 << 53) .. {}", "attempt to concatenate a table value" },
  { "rep-huge", "return ('x'):rep(10000000000)", "resulting string too large", "string.rep" },
  { "rep", "return ('x'):rep(1000000000, 'y')", MEMORY },
  { "doubled", "local s = 'x' while true do s = s .. s end", MEMORY },
  { "gsub-bomb", "local s = 'x' while true do s = s:gsub('.', '%0%0') end", CPU, "string.gsub" },
  { "pack", "return string.pack('c1000000000', 'x')", MEMORY },
  { "sort-lie", "table.sort(setmetatable({}, { __len = function() return (1 << 31) - 2 end }))", MEMORY },
  { "unpack", "return table.unpack({}, 1, 100000000)", "too many results to unpack", "table.unpack" },
  { "own-call", "local mt = {} local t = setmetatable({}, mt) mt.__call = t t()", DEEP },
  { "own-call-in-a-deep-stack", [[local mt = {} local t = setmetatable({}, mt) mt.__call = t
      select('#', table.unpack({}, 1, 30000)) local _, e = pcall(t) error(e, 0)]], DEEP },
  { "calls-in-a-circle", "local a, b = {}, {} setmetatable(a, { __call = b }) setmetatable(b, { __call = \z
    a }) a()", DEEP },
  { "own-operator", "local mt = {} local t = setmetatable({}, mt) mt.__call, mt.__add = t, t return t + 1",
    DEEP },
  { "recursion", "local function f() return 1 + f() end f()", DEEP },
  { "wide-recursion", "local function f(...) return f(1, ...) + 1 end f()", DEEP },
  { "bytes", "return LONG:rep(100):byte(1, -1)", "string slice too long", "string.byte" },
  { "codepoints", "return utf8.codepoint(LONG:rep(100), 1, -1)", "string slice too long" },
  { "quoted", "return ('%q'):format(('\\1'):rep(2000000))", "a string quoted by %q may have at most 1 MiB",
    "string.format" },
  { "collisions", "local t, n = {}, (1 << 17) - 1 for i = 1, (1 << 16) + 1 do t[i * n] = i end", COLLIDE },
  { "collisions-of-floats", "local t = {} for i = 1, 1 << 16 do t[1.5 + i * 2^-51] = i end", COLLIDE },
  { "format", "return ('%99999s'):format 'x'", "invalid conversion" },
}

-- The controller of a key: using up all memory takes a while, too.
local function by(way)
  return (way[3] == MEMORY or way[3] == DEEP or way[3] == COLLIDE) and "memory" or "bounds"
end

local SCRIPT = [[
local kube = require "kubelua"
local LONG, NUMBERS = ("a"):rep(4000), {}
local WAYS = {
%s
}
local function c(name, cpu, memory)
  return kube.controller {
    name = name .. "-%s",
    resource = "v1/ConfigMap",
    namespaces = { %q },
    cpu = cpu,
    memory = memory,
    backoff = { base = "1h", max = "1h" },
    reconcile = function(o, ctx)
      local way = WAYS[o.metadata.name]
      if not way then return ctx.log:info("seen: %%s by %%s", o.metadata.name, name) end
      if way.by ~= name then return end
      while way == WAYS.sort and #NUMBERS < 1000000 do
        for _ = 1, 10000 do NUMBERS[#NUMBERS + 1] = math.random(1000000) end
        ctx:sleep "1ms"
      end
      return way.run()
    end,
  }
end
return { c("bounds", "50ms", nil), c("memory", "1m", "8Mi") }
]]

servers.each(function(name, start)
  describe("a call that would not return, against " .. name .. ",", function()
    local server, client, ns, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "bounds")
      local ways = {}
      for i, way in ipairs(WAYS) do
        ways[i] = ("  [%q] = { by = %q, run = function() %s end },"):format(way[1], by(way), way[2])
      end
      run = controller.start(server, SCRIPT:format(table.concat(ways, "\n"), ns, ns))
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    local function map(key) client:create { kind = "v1/ConfigMap", namespace = ns, name = key } end

    for _, way in ipairs(WAYS) do
      it("ends, and fails its key alone: " .. way[1], function()
        map(way[1])
        local mark = ("reconcile failed controller=%s-%s "):format(by(way), ns)
        local said = wait.until_true(60, "the failure of " .. way[1], function()
          for line, behind in run:log():gmatch "([^\n]*)\n()" do
            if line:find(mark, 1, true) and line:find("key=" .. ns .. "/" .. way[1] .. " ", 1, true) then
              return line .. "\n" .. run:log():sub(behind, behind + 600)
            end
          end
        end)
        assert.truthy(said:find(way[3], 1, true), said)
        if way[4] then
          assert.truthy(said:find("in %a+ '" .. way[4] .. "'") or said:find("in for iterator", 1, true), said)
        end
        map("after-" .. way[1])
        run:wait_for_log(60, ("seen: after-%s by %s"):format(way[1], by(way)))
      end)
    end
  end)
end)
