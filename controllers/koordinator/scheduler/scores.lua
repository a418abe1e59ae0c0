-- scores.lua - functions over the scores of all nodes, { [node name] = score }.

local M = {}

local MAX = 100

-- Scales the scores so that the best one is 100.
function M.stretch(scores)
  local best = 0
  for _, score in pairs(scores) do best = math.max(best, score) end
  if best == 0 then return end
  for name, score in pairs(scores) do scores[name] = MAX * score // best end
end

-- Reverses the scores: 0 becomes 100, and the highest one becomes 0.
function M.reverse(scores)
  local most = 0
  for _, score in pairs(scores) do most = math.max(most, score) end
  for name, score in pairs(scores) do scores[name] = MAX - (most > 0 and MAX * score // most or 0) end
end

-- The score of a resource with this usage and total, by LeastAllocated or by MostAllocated.
function M.points(strategy, used, total)
  if strategy.type == "MostAllocated" then return math.min(used, total) * MAX // total end
  return used <= total and (total - used) * MAX // total or 0
end

-- The lowest and the highest score.
function M.range(scores)
  local least, most = math.huge, -math.huge
  for _, n in pairs(scores) do least, most = math.min(least, n), math.max(most, n) end
  return least, most
end

return M
