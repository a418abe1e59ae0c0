-- order.lua - sorting by several ranks: the first rank that differs decides.

local fields = require "fields"
local kube = require "kubelua"

local M = {}

-- Sorts a list by the ranks of its items: { [item] = { number or text, ... } }, all of one length.
function M.sort(list, ranks)
  local n = list[1] and #ranks[list[1]]
  table.sort(list, function(a, b)
    local x, y, i = ranks[a], ranks[b], 1
    while i < n and x[i] == y[i] do i = i + 1 end
    return x[i] < y[i]
  end)
end

-- The creation time of an object in seconds; 0: it has none.
function M.created(o)
  local time = fields.dig(o, "metadata", "creationTimestamp")
  return time and kube.time(time):unix() or 0
end

return M
