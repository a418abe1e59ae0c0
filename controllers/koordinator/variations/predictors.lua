-- predictors.lua - predictors of peak usage. Each is a function of a list of samples, the newest last.

local M = {}

-- The mean plus n sample deviations.
function M.n_sigma(n)
  return function(samples)
    local sum, squares = 0, 0
    for _, x in ipairs(samples) do sum = sum + x end
    local mean = sum / #samples
    for _, x in ipairs(samples) do squares = squares + (x - mean) ^ 2 end
    return mean + n * math.sqrt(squares / math.max(#samples - 1, 1))
  end
end

-- The value below which `part` of the samples lie.
function M.percentile(part)
  return function(samples)
    local sorted = table.move(samples, 1, #samples, 1, {})
    table.sort(sorted)
    return sorted[math.max(math.ceil(part * #sorted), 1)]
  end
end

-- The highest prediction of several predictors.
function M.maximum(...)
  local all = { ... }
  return function(samples)
    local most = -math.huge
    for _, one in ipairs(all) do most = math.max(most, one(samples)) end
    return most
  end
end

return M
