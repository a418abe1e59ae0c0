-- seeds.lua - repeatable random cases: case N is made from seed N, which a failure names.

local M = {}

--- Runs fn once for each seed from 1 to n.
function M.each(n, fn)
  for seed = 1, n do
    math.randomseed(seed)
    local ok, why = pcall(fn)
    if not ok then error(("seed %d: %s"):format(seed, tostring(why)), 0) end
  end
end

return M
