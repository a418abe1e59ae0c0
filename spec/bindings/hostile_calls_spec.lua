-- hostile_calls_spec.lua - each C function in a script's state is called with unusual arguments: from a run,
-- from coroutines, from metamethods and comparators, deep in the stack, without memory, and with values of
-- ended runs. Each call returns or raises an error.
-- not in tsan: one thread calls, and the suite has threads elsewhere
-- not in check: every function is called with everything

local process = require "support.process"
local sizes = require "support.sizes"

local BUILD = os.getenv "KL_BUILD" or "build"
-- The number of keys for all functions; a spent budget ends a key.
local PARTS = sizes.of { short = 85, long = 255, sanitized = 85 }

-- A file of objects with these names.
local function objects(kind, names)
  local out = {}
  for _, name in ipairs(names) do
    out[#out + 1] = ("apiVersion: v1\nkind: %s\nmetadata: { namespace: default, name: %s }\n"):format(kind,
      name)
  end
  return process.write(process.tmpname ".yaml", table.concat(out, "---\n"))
end

local function keys(places)
  local names = {}
  for _, place in ipairs(places) do
    for i = 1, PARTS do names[#names + 1] = ("%s-%d-of-%d"):format(place, i, PARTS) end
  end
  return names
end

-- The objects are reconciled or mapped; then an ordinary key must still work.
local function attack(reconciled, mapped)
  local maps, others = keys(reconciled), keys(mapped)
  maps[#maps + 1], others[#others + 1] = "sound", "quiet"
  return process.run(("timeout 300 %s/spec/walk spec/support/walker.lua \z
    spec/fixtures/closed/hostile.script.lua %s %s 2>&1"):format(BUILD, objects("ConfigMap", maps),
    objects("ServiceAccount", others)))
end

describe("a C function that is called in unusual ways", function()
  for name, case in pairs {
    ["in a run and in its coroutines"] = { { "run", "coroutine", "closing" }, {} },
    ["where nothing can wait, and deep down"] = { { "comparator", "nested", "deep" }, {} },
    ["where no memory is left, and by a mapping function"] = { { "full" }, { "run", "coroutine" } },
  } do
    it("does no harm: " .. name, function()
      local out, code = attack(table.unpack(case))
      local n, whole = out:match "sound: (%d+) functions, (%d+) keys to their end"
      assert.equal(0, code, out:sub(-4000))
      assert.truthy(n, out:sub(-4000))
      assert.truthy(tonumber(n) > 240, n)
      -- The first keys are of this worker; a few spend their budgets, more in a sanitized build.
      local share = os.getenv "KL_VARIANT" == "asan" and 0.75 or 0.9
      local most = case[1][1] == "full" and 0 or #keys(case[1]) * share
      assert.truthy(tonumber(whole) >= most, whole)
    end)
  end
end)
