-- sizes.lua - the size of a spec's work: a short form in the suite, a long one in `make soak`.
--
--   local FREEZES = sizes.of { short = 8, long = 200, sanitized = 16 }
--
-- Both forms run the same code. Sanitized processes are slower by an order of magnitude: under a sanitizer
-- neither form is larger than `sanitized`, which is `short` where nothing is said. The runner's --long
-- chooses the long form; without names of files it runs those that have one: they require this module, or
-- call test_size of support/sizes.h.

local M = {}

local variant = os.getenv "KL_VARIANT" or "release"
local long = os.getenv "KL_LONG" == "1"

--- The size of this run.
---@param size { short: integer, long: integer, sanitized?: integer }
function M.of(size)
  local chosen = long and size.long or size.short
  return variant == "release" and chosen or math.min(chosen, size.sanitized or size.short)
end

return M
