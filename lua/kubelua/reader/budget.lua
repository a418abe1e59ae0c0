-- budget.lua - the processor time that reading one program may take, for what is said of scripts without
-- running them (kubelua check, rbac). It is bounded, since a script may be a text of megabytes.

local M = {}

--- Seconds for one program: a text of some 20,000 lines takes a second.
M.SECONDS = 10
local STEPS = 100000 -- instructions between two looks at the clock

--- Calls fn() within that time. Returns true and its result, or false when the time was over; raises what
--- fn raises.
---@param fn fun(): any
---@param clock? fun(): number  the processor time so far, in seconds (os.clock)
---@return boolean in_time
---@return any
function M.within(fn, clock)
  clock = clock or os.clock
  local ends, late = clock() + M.SECONDS, {}
  debug.sethook(function()
    if clock() > ends then error(late) end
  end, "", STEPS)
  local ok, result = pcall(fn)
  debug.sethook()
  if ok then return true, result end
  if result ~= late then error(result, 0) end
  return false
end

return M
