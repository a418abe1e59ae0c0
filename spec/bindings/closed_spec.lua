-- closed_spec.lua - a script can reach only a closed set of values: everything in its state is known by name,
-- and every escape that was found once is blocked.

local kube = require "kubelua"

local process = require "support.process"

local BUILD = os.getenv "KL_BUILD" or "build"
local FIXTURES = "spec/fixtures/closed/"
local PHASES = { "load", "when", "index", "map", "priority", "serial", "reconcile", "finalize", "validate",
  "mutate" }

-- ---------------------------------------------------------------- the walk

-- { [phase] = { [thing] = true } }
local function walk(flags)
  local out,
    code = process.run(("%s/spec/walk %s spec/support/walker.lua %sphases.script.lua \z
    %sobjects.yaml 2>&1"):format(BUILD, flags or "", FIXTURES, FIXTURES))
  assert.equal(0, code, out)
  local found = {}
  for line in out:gmatch "[^\n]+" do
    local phase, thing = line:match "^(%l+) (%a+ .+)$"
    assert.truthy(phase, line)
    found[phase] = found[phase] or {}
    found[phase][thing] = true
  end
  return found
end

-- { [thing] = "always"|"at times" }
local function reviewed()
  local list = {}
  for line in process.read(FIXTURES .. "reviewed.txt"):gmatch "[^\n]+" do
    if not line:find "^#" then
      local at_times, thing, why = line:match "^(~?)(.-) %- (.+)$"
      assert.truthy(why, line)
      list[thing] = at_times == "~" and "at times" or "always"
    end
  end
  return list
end

local function unknown(found)
  local list, known = {}, reviewed()
  for thing in pairs(found) do
    if not known[thing] then list[#list + 1] = thing end
  end
  table.sort(list)
  return list
end

describe("the library", function()
  it("has every listed function for scripts, and the others only for programs", function()
    local touched = {}
    for name in process.read "lua/kubelua/names_meta.lua":gmatch "\nkube%.([%w_]+) =" do
      touched[#touched + 1] = ("touch %q"):format(name)
    end
    assert.truthy(#touched > 30)
    local path = process.write(process.tmpname ".lua", ([[
      local kube = require "kubelua"
      local out = {}
      local function touch(name)
        local ok, why = pcall(function() return kube[name] end)
        if not ok and not why:find("is for standalone programs; a", 1, true) then out[#out + 1] = why end
        if not ok and why:find("module \"", 1, true) then out[#out + 1] = why end
      end
      %s
      error("touched all" .. table.concat(out, "\n"), 0)
    ]]):format(table.concat(touched, "\n")))
    local said = process.run(("%s/kubelua check %s 2>&1"):format(BUILD, process.quote(path)))
    assert.truthy(said:find "touched all%s*$", said)
  end)
end)

describe("a script's state", function()
  local found
  lazy_setup(function() found = walk() end)

  for _, phase in ipairs(PHASES) do
    it("has only reviewed members: " .. phase, function()
      assert.truthy(found[phase], "no walk in this phase")
      assert.same({}, unknown(found[phase]))
    end)
  end

  it("has every member on the list", function()
    for thing, when in pairs(reviewed()) do
      local there = when == "at times"
      for _, phase in ipairs(PHASES) do there = there or found[phase][thing] end
      assert.truthy(there, thing)
    end
  end)

  it("is walked completely: metatables, upvalues and user values included",
    function()
    local planted = walk "--plant"
    assert.same({ "C <of _G.innocent>.__index", "C <of _G.innocent>.__index^1:1" },
      unknown(planted.reconcile))
  end)
end)

-- ---------------------------------------------------------------- ways out

local HEAD = 'local kube = require "kubelua"\n'
local TAIL = '\nreturn kube.controller { name = "good", resource = "v1/ConfigMap", reconcile = function() \z
  end }\n'

-- Each of these once reached a function of the host, a file or the work of the runtime. None may load, or
-- have an effect.
local LOADS = {
  { "asks kube's metatable for connect", "getmetatable(kube).__index(kube, 'connect')",
    "attempt to index a boolean value" },
  { "asks a text's metatable for the library", "getmetatable('').__index.format = print",
    "attempt to index a boolean value" },
  { "connects with a token file", "kube.connect { server = SERVER, token_file = '/etc/hostname' }",
    "kube.connect is for standalone programs" },
  { "writes a file as a certificate", "kube.certificate(setmetatable({}, {}), { dir = FILE })",
    "kube.certificate is for standalone programs" },
  { "asks for informers", "kube.informers {}", "kube.informers is for standalone programs" },
  { "starts a server", "kube.testing.start { source = 'x' }", "kube.testing is for standalone programs" },
  { "gets the client by its name", "require('kubelua.client').connect()", "is not available to scripts" },
  { "gets typed informers", "require('kubelua.koordinator').informers({})",
    "kube.informers is for standalone programs" },
  { "takes a path for a module of the library",
    "require 'kubelua.cli.apply'", "is not available to scripts" },
  { "changes kube behind its back", "rawset(kube, 'decode', print)", "this table belongs to kubelua" },
  { "gives kube another metatable", "setmetatable(kube, nil)", "cannot change a protected metatable" },
  { "gives an error another metatable", "local _, e = pcall(kube.decode, '{') setmetatable(e, nil)",
    "cannot change a protected metatable" },
  { "asks a denial for its class", "kube.deny('no').__index.__tostring = print",
    "kubelua.Denial: __index cannot be read" },
  { "asks a verdict for its class", "getmetatable(kube.retry('1s')).__tostring = print",
    "attempt to index a boolean value" },
  { "asks shared values for their class", "rawset(kube.shared, 'get', print)",
    "this table belongs to kubelua" },
  { "compiles bytecode", "assert(load(string.dump(print)))", "attempt to call a nil value" },
}

describe("a script that", function()
  local dir, file
  before_each(function()
    dir = process.tmpname ".d"
    process.run("mkdir -p " .. process.quote(dir))
    file = dir .. "/written"
  end)

  local function check(text)
    local path = dir .. "/script.lua"
    process.write(path, HEAD .. text:gsub("FILE", ("%q"):format(file)):gsub("SERVER", '"http://127.0.0.1:1"')
      .. TAIL)
    return process.run(("timeout 60 %s/kubelua check %s 2>&1"):format(BUILD, process.quote(path)))
  end

  for _, case in ipairs(LOADS) do
    it(case[1] .. " does not load", function()
      local out, code = check(case[2])
      assert.equal(1, code, out)
      assert.truthy(out:find("script.lua:2:", 1, true) or case[4], out)
      assert.truthy(out:find(case[3], 1, true), out)
      assert.is_nil(io.open(file))
    end)
  end

  -- Replacing these globals does not affect the runtime: its output about the controller stays the same.
  local REPLACED = [[
    local function forever() while true do end end
    for _, library in ipairs { string, table, math, utf8, os, coroutine } do
      for name in next, library do library[name] = forever end
    end
    for _, name in ipairs { "pairs", "ipairs", "next", "type", "tostring", "tonumber",
      "select", "error", "assert", "pcall", "xpcall", "rawget", "rawset",
      "rawequal", "rawlen", "getmetatable", "setmetatable", "print", "load", "require" } do
        _G[name] = forever
      end]]

  it("replaces every function does not affect the runtime's own calls", function()
    local plain, plain_code = check ""
    local out, code = check(REPLACED:gsub("\n", " "))
    assert.equal(0, plain_code, plain)
    assert.equal(0, code, out)
    assert.equal(plain, out)
  end)

  it("replaces functions of the public modules does not affect the runtime's own calls", function()
    local t = kube.testing.start { source = HEAD .. [[
      local object, quantity = require "kubelua.object", require "kubelua.quantity"
      object.normalize, object.kind_of, object.split_kind, quantity.max = error, error, error, error
      return kube.controller { name = "changed", resource = "v1/ConfigMap", reconcile = function(o, ctx)
        if o.metadata.name == "asked" then
          ctx:apply { kind = "v1/ConfigMap", name = "answer", data = { a = "b" } }
        end
      end }]] }
    finally(function() t:stop() end)
    t:create { kind = "v1/ConfigMap", name = "asked" }
    assert.equal("b", t:get("v1/ConfigMap", "answer").data.a)
  end)
end)

-- ---------------------------------------------------------------- other runs

local RUNS = HEAD .. [[
local waiting, inner, gen, old = nil, nil, nil, nil
local function wait(ctx) ctx:sleep "10s" end
local ATTACKS = {
  close = function() return coroutine.close(waiting) end,
  resume = function() assert(coroutine.resume(waiting)) end,
  ["close-inner"] = function() return coroutine.close(inner) end,
  ["resume-inner"] = function() assert(coroutine.resume(inner)) end,
  wrapped = function() return gen() end,
  ["old-method"] = function() return old:get("v1/ConfigMap", "victim") end,
  ["old-field"] = function() return old.key end,
  ["old-log"] = function() old.log:info "x" end,
  ["log-changed"] = function(ctx) ctx.log.info = print end,
  ["log-raw"] = function(ctx) rawset(ctx.log, "info", print) end,
  ["log-class"] = function(ctx) ctx.log.__index.info = print end,
  ["live-changed"] = function(ctx) ctx.live.get = print end,
  ["host-call"] = function() return getmetatable(kube).__index(kube, "connect") end,
  ["host-write"] = function()
    kube.connect { server = "http://127.0.0.1:1" }:apply { kind = "v1/ConfigMap", name = "written" }
  end,
}
return kube.controller {
  name = "runs", resource = "v1/ConfigMap", backoff = { base = "1h", max = "1h" },
  reconcile = function(o, ctx)
    local name = o.metadata.name
    if name == "finished" then old = ctx end
    if name == "victim" then
      waiting = coroutine.running()
      wait(ctx)
      ctx:patch(o, function(d) d.data = { done = "yes" } end)
    elseif name == "victim-inner" then
      inner = coroutine.create(wait)
      assert(coroutine.resume(inner, ctx))
      ctx:patch(o, function(d) d.data = { done = "yes" } end)
    elseif name == "victim-wrapped" then
      gen = coroutine.wrap(wait)
      gen(ctx)
      ctx:patch(o, function(d) d.data = { done = "yes" } end)
    elseif ATTACKS[name] then
      ATTACKS[name](ctx)
    end
  end,
}]]

local ERRORS = {
  close = "cannot close a normal coroutine: it is waiting in its own run",
  resume = "cannot resume normal coroutine: it is waiting in its own run",
  ["close-inner"] = "cannot close a normal coroutine: it is waiting in its own run",
  ["resume-inner"] = "cannot resume normal coroutine: it is waiting in its own run",
  wrapped = "cannot resume normal coroutine: it is waiting in its own run",
  ["old-method"] = "ctx.get: the reconcile of this ctx is over",
  ["old-field"] = "ctx.key: the reconcile of this ctx is over",
  ["old-log"] = "ctx.log: the reconcile of this ctx is over",
  ["log-changed"] = "ctx.log.info: ctx.log is shared by all runs and cannot be changed",
  ["log-raw"] = "this table belongs to kubelua", ["log-class"] = "attempt to set a field of a nil value",
  ["live-changed"] = "ctx.live is shared by all runs",
  ["host-call"] = "attempt to index a boolean value",
  ["host-write"] = "kube.connect is for standalone programs",
}

describe("a run", function()
  local t
  lazy_setup(function()
    t = kube.testing.start { source = RUNS }
    for _, name in ipairs { "finished", "victim", "victim-inner", "victim-wrapped" } do
      t:create { kind = "v1/ConfigMap", name = name }
    end
  end)
  lazy_teardown(function() if t then t:stop() end end)

  for name, why in pairs(ERRORS) do
    it("fails alone when it uses another run's objects: " .. name, function()
      t:create { kind = "v1/ConfigMap", name = name }
      local runs = t:runs("default/" .. name)
      assert.equal("error", runs[#runs].result)
      assert.truthy(runs[#runs].message:find(why, 1, true), runs[#runs].message)
      assert.is_nil(t:get("v1/ConfigMap", "written"))
    end)
  end

  it("continues unaffected by the others", function()
    t:advance "10s"
    for _, name in ipairs { "victim", "victim-inner", "victim-wrapped" } do
      assert.equal("yes", t:get("v1/ConfigMap", name)("data.done"), name)
    end
  end)
end)
