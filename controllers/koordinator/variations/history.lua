-- history.lua - the last samples of cpu and memory under a name, for predictors. They are in the memory of
-- the worker, and lost at a reload; with fewer than LEAST samples, the peak is the current usage.

local M = {}

M.LEAST, M.MOST = 10, 120 -- samples; a report comes each minute

local known = {}

-- Adds the sample of a time, once, and returns the predicted peaks as { cpu, memory }: whole numbers, at
-- least `used`.
function M.peak(name, used, at, predictor)
  local h = known[name] or { at = -math.huge, cpu = {}, memory = {} }
  known[name] = h
  local out = {}
  for _, what in ipairs { "cpu", "memory" } do
    local samples = h[what]
    if at > h.at then samples[#samples + 1] = used[what] end
    if #samples > M.MOST then table.remove(samples, 1) end
    local peak = #samples >= M.LEAST and predictor(samples) or used[what]
    out[what] = math.max(math.ceil(peak), used[what])
  end
  h.at = math.max(h.at, at)
  return out
end

return M
