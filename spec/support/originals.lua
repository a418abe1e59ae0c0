-- originals.lua - Koordinator's own programs for specs. `make soak` builds them from the published module,
-- and .ci/run does not (spec/realserver/build.sh).

local busted = require "busted"
local luassert = require "luassert"
local process = require "support.process"
local sizes = require "support.sizes"

local M = {}

--- Whether this run is the long form, which needs the programs.
M.LONG = sizes.of { short = 0, long = 1 } == 1

local function version(of)
  return process.read(("spec/realserver/%s/go.mod"):format(of)):match "koordinator%-sh/koordinator (v%S+)"
end

--- The path of a program, or nil if it was not built: then a short run prints that the spec does not run, and
--- a long one has a pending spec, or a failing one in CI.
---@param dir string   of spec/realserver and build/assets
---@param name string  of the program
function M.program(dir, name)
  busted.it(name .. " has the version of the functions that our policies are compared with", function()
    luassert.equal(version "koordinator", version(dir))
  end)
  local path = ("build/assets/%s/%s"):format(dir, name)
  if process.run(("ls -L %s 2>/dev/null"):format(path)) ~= "" then return path end
  local why = ("%s is missing, `make soak F=spec/e2e/%s_spec.lua` builds it"):format(name, dir)
  if not M.LONG then
    print(dir .. ": not run: " .. why)
  elseif (os.getenv "CI" or "") ~= "" then
    busted.it("runs " .. name, function() error(why, 0) end)
  else
    busted.pending(why)
  end
end

return M
