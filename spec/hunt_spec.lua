-- hunt_spec.lua - hostile scripts: random ones, and all those that once did harm.
local process = require "support.process"
local sizes = require "support.sizes"

-- `make hunt` searches; this is what of it fits into the suite: some programs by chance, and all that once
-- did harm.
-- not in check: a thousand programs take their time
local HUNTER = os.getenv "KL_BUILD" .. "/spec/hunter"
local VARIANT = os.getenv "KL_VARIANT"
local RELEASE, ASAN, TSAN = VARIANT == "release", VARIANT == "asan", VARIANT == "tsan"
-- ThreadSanitizer finds what threads do to each other: fewer programs, of which more run on the stage, among
-- its threads, with attach and a shadow.
local PROGRAMS = TSAN and 200 or ASAN and 1000 or sizes.of { short = 300, long = 1000 }
local STAGED = TSAN and 3 or 32
-- Among the programs from here is one of those, one in a thousand, that send requests elsewhere.
local FIRST = 1101

local function hunt(words)
  local out, code = process.run(process.quote(HUNTER) .. " " .. words)
  assert.truthy(code == 0, ("exit status %s\n%s"):format(code, out))
  return out
end

local function number(out, name) return tonumber(out:match("%f[%w]" .. name .. "=([%d.]+)")) or 0 end

describe("random hostile scripts", function()
  it("harm neither the process nor other controllers nor the machine", function()
    local out = hunt(("--seed %d --programs %d --staged %d"):format(FIRST, PROGRAMS, STAGED))
    assert.equal(PROGRAMS, number(out, "programs"))
    -- The programs are useful only while most of them run and reach the API.
    assert.truthy(number(out, "loaded") > PROGRAMS / 2, out)
    assert.truthy(number(out, "replayed") > PROGRAMS / 100, out)
    -- keys that ran in virtual time, of the one program in STAGED that runs on the stage
    assert.truthy(number(out, "turns") > PROGRAMS / 20, out)
    assert.truthy(number(out, "attached") > PROGRAMS / STAGED / 6, out)
    assert.truthy(number(out, "shadowed") > PROGRAMS / STAGED / 6, out)
    assert.truthy(number(out, "bodies") > PROGRAMS, out)
    assert.truthy(number(out, "calls") > PROGRAMS / 10, out)
    assert.truthy(number(out, "succeeded") > PROGRAMS / 50, out)
    assert.truthy(number(out, "reviews") > PROGRAMS / 10, out)
    assert.truthy(number(out, "isolated") >= PROGRAMS // 500, out)
    -- A bound for a hang: machines that run a suite are busy.
    if RELEASE then assert.truthy(number(out, "p99") < 1000, out) end
    -- Where a change of the generator moved that program, it is looked for.
    local seed, web = FIRST + PROGRAMS, number(out, "web")
    while web < math.max(1, PROGRAMS // 500) and seed < FIRST + PROGRAMS + 3000 do
      out = hunt(("--seed %d --programs 100"):format(seed))
      seed, web = seed + 100, web + number(out, "web")
    end
    assert.truthy(web >= math.max(1, PROGRAMS // 500), out)
  end)

  it("are the same for the same seed", function()
    assert.equal(hunt "--print --seed 77", hunt "--print --seed 77")
    assert.not_equal(hunt "--print --seed 77", hunt "--print --seed 78")
  end)
end)

describe("the hunter", function()
  -- An oracle that finds nothing would make the hunt worthless.
  it("reports the harmful program, reduced", function()
    local generator = process.write(process.tmpname ".lua", [[
      return function(seed)
        return "local kube = require 'kubelua'\nlocal unused = 1\n"
          .. (seed == 3 and "local m = require 'outside'\n" or "")
          .. "return kube.controller { name = 'hunt', resource = 'v1/Pod', reconcile = function() end }\n"
      end, {}
    ]])
    local out, code = process.run(process.quote(HUNTER) .. " --seed 1 --programs 5 --files --generator "
      .. process.quote(generator))
    assert.equal(1, code, out)
    assert.truthy(out:find("hunt: seed 3: the program got as far as the system call open", 1, true), out)
    assert.truthy(out:find("require 'outside'", 1, true), out)
    assert.falsy(out:find("unused", 1, true), out)
    assert.equal(1, number(out, "failures"))
  end)

  if ASAN then
    it("reports a sanitizer's finding, and not the files its report tried to open", function()
      local out, code = process.run(process.quote(HUNTER) .. " --seed 1 --programs 3 --overflow")
      assert.equal(1, code, out)
      assert.truthy(out:find("hunt: seed 2: spec/hunt/hunt%.c:%d+:%d+: runtime error: signed integer \z
        overflow: 2147483647 %+ 1"), out)
    end)

    it("sees accesses to collected objects of a Lua state", function()
      local out, code = process.run(process.quote(HUNTER) .. " --seed 1 --programs 3 --stale")
      assert.equal(1, code, out)
      assert.truthy(out:find("hunt: seed 2: ERROR: AddressSanitizer: use-after-poison", 1, true), out)
    end)
  end

  it("reports a program that is harmful after others, and how to reproduce it", function()
    local generator = process.write(process.tmpname ".lua", [[
      local made = 0
      return function()
        made = made + 1
        return "local kube = require 'kubelua'\n" .. (made == 3 and "local m = require 'outside'\n" or "")
          .. "return kube.controller { name = 'hunt', resource = 'v1/Pod', reconcile = function() end }\n"
      end, {}
    ]])
    local out, code = process.run(process.quote(HUNTER) .. " --seed 5 --programs 4 --files --generator "
      .. process.quote(generator))
    assert.equal(1, code, out)
    for _, part in ipairs { "hunt: seed 7 fails in its batch and not alone",
      "hunt: seed 7: the program got as far as the system call open", "--- the program\nlocal kube",
      "--- again: hunter --seed 5 --programs 3 --batch 3\n" } do
      assert.truthy(out:find(part, 1, true), part .. "\n" .. out)
    end
    assert.equal(1, number(out, "failures"))
  end)
end)

describe("a script that was harmful once is harmless now:", function()
  for path in process.run "find spec/hunt/seeds -name '*.lua' | sort":gmatch "[^\n]+" do
    it(path, function() hunt("--seed 1 --programs 4 " .. process.quote(path)) end)
  end
end)

describe("docs/security.md", function()
  it("names existing files", function()
    local names = 0
    for path in process.read "docs/security.md":gmatch "`([%w_/]+%.%a+)`" do
      local found = not path:find "%.lua$" and not path:find "%.c$"    -- a function: table.concat
      found = found or process.read(path) or process.read("spec/bindings/" .. path)
      assert.truthy(found, path .. " is not there")
      names = names + 1
    end
    assert.truthy(names > 10, names)
    assert.truthy(process.read "SECURITY.md")
  end)
end)
