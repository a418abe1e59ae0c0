-- emitted_spec.lua - the bounds of what an index function or a mapping function may return for one object: a
-- larger result is rejected as a whole, and the controller continues.

local kube = require "kubelua"

local SCRIPT = [[
local kube = require "kubelua"

-- As many texts as asked for, of that length, no two alike.
local function texts(o)
  local n, length = tonumber(o.metadata.annotations.n), tonumber(o.metadata.annotations.length)
  local out, rest = {}, ("x"):rep(length - 6)
  for i = 1, n do out[i] = ("%06d"):format(i) .. rest end
  return out
end

return kube.controller {
  name = "emits", resource = "v1/Secret", cpu = "60s", memory = "256Mi",
  indexes = { ["v1/ServiceAccount"] = { text = texts } },
  watches = { ["v1/ConfigMap"] = function(o)
    local keys = texts(o)
    if o.metadata.annotations.first then keys[1] = "default/" .. o.metadata.annotations.first end
    return keys
  end },
  reconcile = function(o, ctx)
    ctx.log:info("%s found %d", o.metadata.name, #ctx:list("v1/ServiceAccount", { index = "text",
      value = "000001" .. ("x"):rep(tonumber(o.metadata.annotations.length) - 6) }))
  end,
}
]]

describe("the keys that a script's function returns for an object", function()
  local t
  before_each(function() t = kube.testing.start { source = SCRIPT } end)
  after_each(function() t:stop() end)

  local function make(kind, name, n, length, first)
    t:create { kind = kind, name = name,
      annotations = { n = tostring(n), length = tostring(length), first = first } }
    t:settle()
  end

  local function found(length)
    local name = "asks-" .. #t:logs()
    make("v1/Secret", name, 0, length)
    for _, l in ipairs(t:logs "info") do
      local n = l.message:match("^" .. name:gsub("%-", "%%-") .. " found (%d+)$")
      if n then return tonumber(n) end
    end
  end

  local function failure(message)
    for _, l in ipairs(t:logs "error") do
      if l.message == message then return l.fields end
    end
    error(message .. ": was not logged")
  end

  for _, case in ipairs {
    { n = 10000, length = 6, "more than 10000 values from one object" },
    { n = 16, length = 1 << 20, "more than 16 MiB of values from one object" },
  } do
    it("enter an index all or none: " .. case[1], function()
      make("v1/ServiceAccount", "most", case.n, case.length)
      assert.same({}, t:logs "error")
      assert.equal(1, found(case.length))
      t:delete("v1/ServiceAccount", "most")
      make("v1/ServiceAccount", "more", case.n + 1, case.length)
      assert.matches(case[1], failure "an index function failed; the object is not in this index", 1, true)
      assert.equal(0, found(case.length))
    end)
  end

  for _, case in ipairs {
    { good = 1000, bad = 100001, length = 6, "more than 100000 keys from one object" },
    { good = 16, bad = 17, length = 1 << 20, "more than 16 MiB of keys from one object" },
  } do
    it("are woken all or none: " .. case[1], function()
      local function runs() return #t:runs "default/woken" end
      make("v1/Secret", "woken", 0, 6)
      make("v1/ConfigMap", "good", case.good, case.length, "woken")
      assert.same({}, t:logs "error")
      assert.equal(2, runs())
      make("v1/ConfigMap", "bad", case.bad, case.length, "woken")
      assert.matches(case[1], failure "a mapping function failed; this event enqueued no key", 1, true)
      assert.equal(2, runs())
    end)
  end

  it("are ignored if one of them is not a string", function()
    t:stop()
    t = kube.testing.start { source = (SCRIPT:gsub("return out\n", "out[n + 1] = {} return out\n", 1)) }
    make("v1/ServiceAccount", "wrong", 3, 6)
    assert.matches("an index function must return a string, a list of strings or nothing, got table",
      failure "an index function failed; the object is not in this index", 1, true)
    assert.equal(0, found(6))
  end)
end)
