-- firstfit.lua - finds the first of many bins that has room, without a look at each: in a tree over the bins,
-- each node knows the largest room of each resource below it.
--
--   local bins = firstfit.new(rooms)     a list of { [resource] = free amount }, all with the same resources
--   bins:next(from, amounts)             the first bin at or after `from` that has all of that free, or nil
--   bins:take(at, amounts)               what is taken is free no more
--
-- Bin i is the leaf size - 1 + i; the children of node k are 2k and 2k + 1.

local M = {}

local Bins = {}
Bins.__index = Bins

local NONE = math.mininteger -- the room of leaves without a bin

function M.new(rooms)
  local size = 1
  while size < #rooms do size = size * 2 end
  local self = setmetatable({ size = size, most = {} }, Bins)
  for name in pairs(rooms[1] or {}) do
    local most = {}
    for i = 1, size do most[size - 1 + i] = rooms[i] and rooms[i][name] or NONE end
    for k = size - 1, 1, -1 do most[k] = math.max(most[2 * k], most[2 * k + 1]) end
    self.most[name] = most
  end
  return self
end

-- The first bin below node k, whose leaves are `first` to `last`.
local function find(self, k, first, last, from, amounts)
  if last < from then return nil end
  for name, most in pairs(self.most) do
    if most[k] < (amounts[name] or 0) then return nil end
  end
  if first == last then return first end
  local middle = (first + last) // 2
  return find(self, 2 * k, first, middle, from, amounts)
    or find(self, 2 * k + 1, middle + 1, last, from, amounts)
end

function Bins:next(from, amounts)
  if next(self.most) == nil then return nil end
  return find(self, 1, 1, self.size, from, amounts)
end

function Bins:take(at, amounts)
  for name, most in pairs(self.most) do
    local k = self.size - 1 + at
    most[k] = most[k] - (amounts[name] or 0)
    while k > 1 do
      k = k // 2
      most[k] = math.max(most[2 * k], most[2 * k + 1])
    end
  end
end

return M
