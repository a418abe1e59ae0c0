-- firstfit.lua - finds the first of many bins that has room, without a look at each: in a tree over the bins,
-- each node knows the largest room of each resource below it.
--
--   local bins = firstfit.new(rooms)     a list of { [resource] = free amount }, all with the same resources
--   bins:first(amounts)                  the first bin that has all of that free, or nil
--   bins:next(from, amounts)             the first such bin at or after `from`
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
  local self = setmetatable({ size = size, names = {}, most = {} }, Bins)
  for name in pairs(rooms[1] or {}) do
    local most = {}
    for i = 1, size do most[size - 1 + i] = rooms[i] and rooms[i][name] or NONE end
    for k = size - 1, 1, -1 do most[k] = math.max(most[2 * k], most[2 * k + 1]) end
    table.insert(self.names, name)
    table.insert(self.most, most)
  end
  return self
end

local function has(mosts, k, needs)
  for i = 1, #needs do
    if mosts[i][k] < needs[i] then return false end
  end
  return true
end

-- Walks the tree to the right: over a node without room, into one with room.
function Bins:next(from, amounts)
  local size, mosts, needs = self.size, self.most, {}
  if #mosts == 0 or from > size then return nil end
  for i, name in ipairs(self.names) do needs[i] = amounts[name] or 0 end
  -- Most searches are for two resources: these are compared here, as a call costs as much as the rest.
  local one, other, some, more = mosts[1], mosts[2] or mosts[1], needs[1], needs[2] or needs[1]
  local few = #needs <= 2
  local k = from == 1 and 1 or size - 1 + from
  while true do
    if one[k] >= some and other[k] >= more and (few or has(mosts, k, needs)) then
      if k >= size then return k - size + 1 end
      k = 2 * k
    else
      while k & 1 == 1 and k > 1 do k = k >> 1 end -- the last below its parent
      if k <= 1 then return nil end
      k = k + 1
    end
  end
end

-- Rooms only become smaller: a search for no less than the last one begins where that ended.
function Bins:first(amounts)
  local last, from = self.last, self.last and self.last.at or 1
  for _, name in ipairs(self.names) do
    if last and (amounts[name] or 0) < (last.amounts[name] or 0) then from = 1 end
  end
  local at = self:next(from, amounts)
  self.last = { at = at or self.size + 1, amounts = amounts }
  return at
end

function Bins:take(at, amounts)
  for i, name in ipairs(self.names) do
    local most, n = self.most[i], amounts[name] or 0
    if n < 0 then self.last = nil end -- this bin gains room
    local k = self.size - 1 + at
    most[k] = most[k] - n
    while n ~= 0 and k > 1 do
      k = k >> 1
      local left, right = most[2 * k], most[2 * k + 1]
      local more = left > right and left or right
      if more == most[k] then break end
      most[k] = more
    end
  end
end

return M
