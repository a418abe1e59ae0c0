-- dice.lua - random numbers that depend on the question and not on its time: the same seed and the same names
-- give the same numbers, in any order of calls.

local core = require "kubelua.core"

local M = {}

-- splitmix64's finaliser, as in core/base/random.h.
local function mix(z)
  z = (z ~ (z >> 30)) * -4658895280553007687
  z = (z ~ (z >> 27)) * -7723592293110705685
  return z ~ (z >> 31)
end

--- A number in [0, 1) for three integers.
---@param seed integer
---@param a integer
---@param b integer
---@return number
function M.unit(seed, a, b)
  local z = mix(mix(seed * -7046029254386353131 + a) * -7046029254386353131 + b)
  return (z >> 11) * 0x1p-53
end

--- Roughly normally distributed: mean 0, standard deviation 1, within -3 and 3 (core/sim/samples.h).
---@return number
function M.normal(seed, a, b) return core.normal(seed, a, b) end

--- An integer for a text.
---@param text string
---@return integer
function M.of(text)
  local z = #text
  for i = 1, #text do z = mix(z * -7046029254386353131 + text:byte(i)) end
  return z
end

return M
