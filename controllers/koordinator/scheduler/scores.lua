-- scores.lua - what plugins do with the scores of all nodes, { [node name] = score }.

local M = {}

local MAX = 100

-- The best has 100 then, and the others as much less as they had.
function M.stretch(scores)
  local best = 0
  for _, score in pairs(scores) do best = math.max(best, score) end
  if best == 0 then return end
  for name, score in pairs(scores) do scores[name] = MAX * score // best end
end

-- The least has 100 then, and the others as much less as they had more.
function M.reverse(scores)
  local most = 0
  for _, score in pairs(scores) do most = math.max(most, score) end
  for name, score in pairs(scores) do scores[name] = MAX - (most > 0 and MAX * score // most or 0) end
end

-- What a node has of a resource of which so much would be used: by LeastAllocated, or by MostAllocated.
function M.points(strategy, used, total)
  if strategy.type == "MostAllocated" then return math.min(used, total) * MAX // total end
  return used <= total and (total - used) * MAX // total or 0
end

-- The least and the most of them.
function M.range(scores)
  local least, most = math.huge, -math.huge
  for _, n in pairs(scores) do least, most = math.min(least, n), math.max(most, n) end
  return least, most
end

return M
