-- history.lua - the last samples under a name, of cpu and memory, for predictors. Memory of this worker:
-- after a reload it begins anew, and until there are enough nobody predicts.

local M = {}

M.LEAST, M.MOST = 10, 120 -- samples; a report comes each minute

local known = {}

-- Takes a sample of a time once, and returns the peaks as { cpu, memory }, at least `used`: whole numbers.
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
