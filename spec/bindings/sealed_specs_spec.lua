-- sealed_specs_spec.lua - random changes to the tables of controllers and webhooks, before and after
-- kube.controller read them: each is accepted or rejected with a message, and none ends or blocks the
-- process.
-- not in check: thousands of mutations

local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local BASE = {
  controller = [[
kube.controller {
  name = "x", resource = "v1/Pod", reconcile = function() end,
  finalize = function() end, finalizer = { "example.com/a", "example.com/b" },
  when = { "labels", "spec.nodeName", selector = { matchLabels = { a = "b" } } }, namespaces = { "default" },
  selector = { labels = "a=b", fields = "spec.nodeName=n" },
  indexes = { node = "spec.nodeName", own = function() end, ["v1/Node"] = { zone = "metadata.labels.zone" } },
  watches = { ["v1/Secret"] = { via = "node" }, ["v1/Node"] = { "same-name", when = { "labels" } },
    ["v1/ConfigMap"] = function() end },
  owns = { "v1/ServiceAccount", ["v1/Service"] = { when = { "generation" } } },
  reads = { "apps/v1/Deployment" },
  fields = { "spec.nodeName", ["v1/Node"] = { "spec.unschedulable" } }, managed_fields = false,
  workers = 4, concurrency = 10, timeout = "2s", cpu = "100ms", memory = "8Mi",
  resync = "10m", every = "1h", cron = { "0 3 * * *" },
  priority = function() end, serial = "spec.nodeName",
  backoff = { base = "5ms", max = "5m", jitter = 0.1, give_up = 20 }, own_writes = "1s",
  leader = true, shard = { by = "namespace", caches = "own" }, on_reload = "all",
  params = { a = { 1, 2, { b = "c" } } },
}]],
  webhook = [[
kube.webhook {
  name = "x", resource = { "v1/Pod", "apps/v1/Deployment" }, operations = { "CREATE", "UPDATE" },
  subresources = { "status" }, scope = "*",
  namespaces = { "default" }, object_selector = { matchLabels = { a = "b" } },
  match_conditions = { { name = "a", expression = "true" } },
  match_policy = "Equivalent", failure_policy = "Fail", timeout = "10s", side_effects = "None",
  reads = { "v1/Node" },
  fields = { ["v1/Node"] = { "spec.unschedulable" } }, workers = 2, concurrency = 4,
  cpu = "100ms", memory = "8Mi", validate = function() end,
}]],
}

local VALUES = {
  "nil", "true", "false", "0", "-1", "1", "1.5", "0/0", "1/0", "-1/0", "1e308", "math.maxinteger",
  "math.mininteger", "''", "'a'", "'a\\0b'", "'\\0'",
  "'v1/Pod\\0'", "'\\xff'", "('x'):rep(1 << 20)", "{}", "{ {} }", "{ { {} } }", "{ false }", "{ 1, 2 }",
  "{ a = 1 }", "{ [1] = 'a', [3] = 'b' }", "{ [{}] = {} }",
  "{ [0/1] = 1 }", "print", "function() error {} end", "coroutine.create(print)", "kube.null",
  "kube.uint64 '18446744073709551615'", "kube.qty '1Ki'",
  "kube.selector 'a=b'", "kube.array {}", "kube.object {}", "kube.time '2026-01-02T03:04:05Z'", "shared",
  "cycle", "deep", "wide", "lying", "endless",
  "setmetatable({}, { __name = 'kubelua.Controller' })", "{ 'v1/Pod', 'v1/Pod' }",
  "{ ['v1/Pod\\0'] = 'owner' }", "{ kind = 'v1/Pod' }",
}

local KEYS = {
  "name", "resource", "manager", "owns", "watches", "indexes", "fields", "reads", "when", "params",
    "param_rules",
  "functions", "namespaces", "select_labels", "select_fields", "selects",
  "finalizer", "former", "metadata", "managed_fields", "workers", "concurrency", "timeout", "cpu", "memory",
  "resync", "every", "cron", "priority", "priority_of",
  "serial", "backoff", "give_up", "own_writes", "leader", "shard", "shard_own", "on_reload", "webhook",
  "mutating", "ignore", "kinds", "operations", "scope", "entry",
  "reconcile", "finalize", "finalizer", "validate", "mutate", "decide", "selector", "subresources",
  "match_conditions", "object_selector", "what", "1", "x",
}

local HEAD = [[
local kube = require "kubelua"
local shared, deep, cycle, wide = { 1 }, { 1 }, {}, {}
for _ = 1, 11 do local t = {} for k = 1, 10 do t[k] = shared end shared = t end
for _ = 1, 3000 do deep = { deep } end
for i = 1, 20000 do wide["k" .. i] = i end
cycle[1] = cycle
cycle.a = cycle
local turns = 0
local lying = setmetatable({},
  { __index = function(_, k) turns = turns + 1 return turns % 2 == 0 and "v1/Pod" or {} end,
    __len = function() return 3 end,
    __pairs = function() return next, { a = 1 } end })
local endless = setmetatable({}, { __index = function(_, k) return {} end,
  __len = function() return math.maxinteger end, __pairs = function() return function() return 1, 1 end end })
]]

-- Its own random numbers: the same in every Lua and every run.
local function random(seed)
  local x = seed * 2654435761 % 2 ^ 32
  return function(n)
    x = (x * 1103515245 + 12345) % 2 ^ 31
    return math.floor(x / 65536) % n + 1
  end
end

local function pick(draw, list) return list[draw(#list)] end

local WAYS = {
  -- Changes the argument of kube.controller or kube.webhook.
  function(draw, base)
    local key, value = pick(draw, KEYS), pick(draw, VALUES)
    return base:gsub("^kube%.(%a+) {", function(what)
      return ("kube.%s(with({"):format(what)
    end):gsub("}$", ("}, %q, %s))"):format(key, value))
  end,
  -- Changes a part of the argument.
  function(draw, base)
    local n = draw(select(2, base:gsub("[{,=] ['\"%d]", "")))
    local i = 0
    return (base:gsub("([{,=]) ([\"']?[%w./ :*=-]+[\"']?)", function(before, _)
      i = i + 1
      if i == n then return before .. " " .. pick(draw, VALUES) end
    end))
  end,
  -- Changes the result.
  function(draw, base)
    return ("after(%s, %q, %s)"):format(base, pick(draw, KEYS), pick(draw, VALUES))
  end,
  -- Changes what the script returns.
  function(draw, base)
    local whole = { "{ c, %s }", "{ %s, c }", "{ { c, %s } }", "{ c, c, %s }",
      "setmetatable({ c }, { __index = %s })", "setmetatable({}, getmetatable(c)), %s",
      "setmetatable({ c }, { __len = function() return 1 << 40 end }), %s", "next(c), %s",
      "{ c, { c, { c, %s } } }" }
    return ("(function(c) local l = { c } l[2] = l return %s end)(%s)"):format(pick(draw,
      whole):format(pick(draw, VALUES)), base)
  end,
}

local TAIL = [[
local function with(spec, key, value)
  spec[key] = value
  if key == "1" then spec[1] = value end
  return spec
end
local function after(c, key, value)
  pcall(function() c[key] = value end)
  pcall(function() for i = 1, 3 do c[key][i] = value end end)
  pcall(rawset, c, key, value)
  pcall(function() table.insert(c, value) end)
  pcall(function() setmetatable(c, { __index = value }) end)
  pcall(function() getmetatable(c).__index = value end)
  return c
end
return %s
]]

-- With ThreadSanitizer this takes many times as long, and finds nothing.
local MANY, AT_ONCE = os.getenv "KL_VARIANT" == "tsan" and 40 or 400, 40

describe("kubelua check", function()
  for first = 1, MANY, AT_ONCE do
    it(("takes or refuses what is made of specs, seeds %d to %d"):format(first, first + AT_ONCE - 1),
      function()
      local dir = process.tmpname()
      process.run("mkdir -p " .. process.quote(dir))
      local files = {}
      for seed = first, first + AT_ONCE - 1 do
        local draw = random(seed)
        local base = draw(3) == 1 and BASE.webhook or BASE.controller
        local path = ("%s/%d.lua"):format(dir, seed)
        process.write(path, HEAD .. TAIL:format(pick(draw, WAYS)(draw, base)))
        files[#files + 1] = process.quote(path)
      end
      local out, code = process.run(("timeout -s KILL 240 %s check %s"):format(process.quote(KUBELUA),
        table.concat(files, " ")))
      assert.is_true(code == 0 or code == 1, ("status %s:\n%s"):format(code, out:sub(-2000)))
      assert.is_nil(out:find("Sanitizer", 1, true), out:sub(-4000))
      -- Each file has an output: its description, or the reason of its rejection.
      for seed = first, first + AT_ONCE - 1 do
        local said = out:find(("%s/%d.lua"):format(dir, seed), 1, true) or out:find("controller x", 1, true)
          or out:find("webhook x", 1, true)
        assert.truthy(said, ("seed %d: %s"):format(seed, out:sub(-2000)))
      end
    end)
  end
end)

describe("what kube.controller returns", function()
  local function refused(code, part)
    local path = process.tmpname()
    process.write(path, "local kube = require 'kubelua'\nlocal c = kube.controller { name = 'x', resource = \z
      'v1/Pod', reconcile = function() end }\n" .. code)
    local out, status = process.run(("%s check %s"):format(process.quote(KUBELUA), process.quote(path)))
    assert.equal(1, status, out)
    if not out:find(part, 1, true) then error(("%q is not in %s"):format(part, out), 2) end
  end

  it("cannot be changed", function()
    refused("c.watches = { {} } return c", ":3: kubelua.Controller: watches cannot be set")
  end)
  it("has no fields", function()
    refused("local w = c.watches return c", ":3: kubelua.Controller: watches cannot be read")
  end)
  it("hides its metatable", function() refused("getmetatable(c).__index = print", "attempt to index") end)

  it("is the checked spec, whatever is written past its metatable", function()
    local path = process.tmpname()
    process.write(path, [[
      local kube = require "kubelua"
      local spec = { name = "x", resource = "v1/Pod", reconcile = function() end,
        reads = { "v1/Node" }, fields = { ["v1/Node"] = { "spec.a" } } }
      local c = kube.controller(spec)
      pcall(rawset, c, "watches", { {} })
      spec.fields["v1/Node"][1] = {}
      spec.reads[1] = print
      return c
    ]])
    local out, status = process.run(("%s check %s"):format(process.quote(KUBELUA), process.quote(path)))
    assert.equal(0, status, out)
    assert.truthy(out:find("v1/Node: spec.a", 1, true), out)
    assert.is_nil(out:find("watches", 1, true), out)
  end)
end)
