-- memory_spec.lua - `memory` of a controller limits Lua's memory and the memory that C holds for the script:
-- a script that keeps it fails, one that drops it continues.
-- not in check: memory is filled until limits are reached
-- not in tsan: what is counted belongs to a state, which one thread runs at a time

local kube = require "kubelua"

-- Each makes something whose bytes are C's. `keep` is a table that outlives the key, or drops what it is
-- given. cpu is generous: a budget of time must not be what ends them.
local SCRIPT = [[
local kube = require "kubelua"
local kept = {}
local function keep(x) kept[#kept + 1] = x end
local function drop() end
local LONG = ("x"):rep(100 * 1024)

local function text(i, n)
  local items = {}
  for j = 1, n do items[j] = ('"%d-%d"'):format(i, j) end
  return "[" .. table.concat(items, ",") .. "]"
end

local makes = {
  decode = function(keep) for i = 1, 300 do keep(kube.decode(text(i, 2000))) end end,
  yaml = function(keep) for i = 1, 300 do keep(kube.yaml("a: " .. text(i, 2000))) end end,
  ["a part of decode"] = function(keep)
    for i = 1, 300 do keep(kube.decode("[" .. text(i, 2000) .. "]")[1]) end
  end,
  quantities = function(keep) for i = 1, 100000 do keep(kube.qty("1" .. ("0"):rep(100) .. i)) end end,
  selectors = function(keep) for i = 1, 20000 do keep(kube.selector("app in (a, b, c" .. i .. ")")) end end,
  drafts = function(keep, o, ctx)
    for i = 1, 100 do
      pcall(ctx.patch, ctx, o, function(d)
        keep(d)
        d.data = {}
        for j = 1, 100 do d.data["k" .. j] = i .. "-" .. j .. LONG:sub(1, 2000) end
        error("not sent")
      end)
    end
  end,
}

-- Lua collects garbage right before it grows the stack. Where the stack cannot grow, the finalisers of the
-- garbage must run all the same.
local function recurse() return (recurse()) end

function makes.deep(keep)
  for round = 1, 20 do
    for i = 1, 3000 do keep(kube.qty(i .. "m")) end
    local ok, why = pcall(recurse)
    if ok or not tostring(why):find("stack overflow", 1, true) then
      error(("round %d: %s"):format(round, why))
    end
  end
end

-- Stores keep by themselves.
local stores = {
  draft = function(n, o, ctx)
    ctx:patch(o, function(d)
      d.data = {}
      for i = 1, 3000 do d.data["k" .. i % n] = i .. LONG:sub(1, 10000) end
      d.data = nil
    end)
  end,
}

local builds = {
  encode = function() local t = {} for i = 1, 300 do t[i] = LONG end return kube.encode(t) end,
  ["encode, indented"] = function()
    local t = {} for i = 1, 300 do t[i] = LONG end return kube.encode(t, true)
  end,
  to_yaml = function() local t = {} for i = 1, 300 do t[i] = LONG end return kube.to_yaml { a = t } end,
  id = function() local t = {} for i = 1, 300 do t[i] = LONG end return kube.id(t) end,
}

return {
  kube.controller { name = "memory", resource = "v1/ConfigMap", cpu = "60s", timeout = "120s", memory = "8Mi",
    reconcile = function(o, ctx)
      local how, what = o.metadata.annotations.how, o.metadata.annotations.what
      if how == "keeps" then (makes[what])(keep, o, ctx) end
      if how == "drops" then (makes[what])(drop, o, ctx) end
      if how == "fills" then stores[what](1000000, o, ctx) end
      if how == "reuses" then stores[what](3, o, ctx) end
      if how == "builds" then pcall(builds[what]) end
      kept = {}
    end },
  kube.controller { name = "emits", resource = "v1/ServiceAccount", cpu = "60s", memory = "8Mi", indexes = {
    all = function(o)
      local all = {}
      for i = 1, o.metadata.name == "many" and 9000 or 1 do all[i] = LONG:sub(1, 1000) end
      return all
    end,
  }, reconcile = function() end },
}
]]

local NO_MEMORY = "not enough memory: a worker's state may hold 8Mi (`memory` of memory)"

describe("the memory of a controller", function()
  local t, n = nil, 0
  lazy_setup(function() t = kube.testing.start { source = SCRIPT } end)
  lazy_teardown(function() if t then t:stop() end end)

  local function run(how, what)
    n = n + 1
    t:create { kind = "v1/ConfigMap", name = "o" .. n, annotations = { how = how, what = what } }
    local runs = t:runs("default/o" .. n, { controller = "memory" })
    t:delete("v1/ConfigMap", "o" .. n)
    return runs[1]
  end

  local function fails(how, what)
    local r = run(how, what)
    assert.equal("error", r.result)
    assert.truthy(r.message:find(NO_MEMORY, 1, true), r.message)
    assert.equal("done", run("nothing", "").result)
  end

  local function passes(how, what)
    local r = run(how, what)
    assert.equal("done", r.result, r.message)
  end

  for _, what in ipairs { "decode", "yaml", "a part of decode", "quantities", "selectors", "drafts" } do
    it("counts kept values: " .. what, function() fails("keeps", what) end)
    it("releases dropped values: " .. what, function() passes("drops", what) end)
  end

  it("releases dropped values with a full stack: finalizers find room",
    function() passes("drops", "deep") end)

  for _, what in ipairs { "draft" } do
    it("counts the content of a store: " .. what, function() fails("fills", what) end)
    it("releases replaced values of a store: " .. what, function() passes("reuses", what) end)
  end

  for _, what in ipairs { "encode", "encode, indented", "to_yaml", "id" } do
    it("bounds a string that is being built: " .. what, function() fails("builds", what) end)
  end

  it("counts the results of an index function", function()
    t:create { kind = "v1/ServiceAccount", name = "many" }
    local emits
    for _, c in ipairs(t:controllers()) do if c.name == "emits" then emits = c end end
    assert.equal("parked", emits.state)
    assert.truthy(emits.message:find("not enough memory", 1, true), emits.message)
  end)
end)
