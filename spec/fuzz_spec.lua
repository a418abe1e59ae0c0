-- fuzz_spec.lua - the fuzz targets over their seeds and some mutations: bugs that `make fuzz` found do not
-- come back.
-- not in tsan: the parsers run in one thread
-- not in check: every parser reads thousands of mutated texts

local process = require "support.process"
local sizes = require "support.sizes"

-- `make fuzz` searches; this holds what was found. Each target of spec/fuzz runs over its seeds and some
-- mutations of them.
local MUTATIONS = sizes.of { short = 100, long = 400 }

local function names(command)
  local list = {}
  for path in process.run(command):gmatch "[^\n]+" do list[#list + 1] = path end
  return list
end

describe("input from outside", function()
  for _, path in ipairs(names "ls spec/fuzz/*.c") do
    local name = path:match "([^/]+)%.c$"
    it("keeps the laws of " .. path, function()
      local seeds = names("find spec/fuzz/seeds/" .. name .. " -type f | sort")
      assert.truthy(#seeds > 0 and not seeds[1]:find "No such file",
        "spec/fuzz/seeds/" .. name .. " has no seeds")
      local words = { process.quote(os.getenv "KL_BUILD" .. "/fuzzers/" .. name), "-n", MUTATIONS }
      if process.read("spec/fuzz/" .. name .. ".dict") then
        words[#words + 1] = "-t spec/fuzz/" .. name .. ".dict"
      end
      for _, seed in ipairs(seeds) do words[#words + 1] = process.quote(seed) end
      local input = process.tmpname "-input"
      local out, code = process.run("KL_REPLAY_INPUT=" .. process.quote(input) .. " "
        .. table.concat(words, " "))
      assert.truthy(code == 0, ("exit status %s; the input is in %s\n%s"):format(code, input, out))
      assert.equal(#seeds * (MUTATIONS + 1), tonumber(out:match "(%d+) inputs"))
    end)
  end
end)
