--- wait.lua - a condition with a bound, the only way in which specs wait.
--
--   local pod = wait.until_true(5, "the pod shows up", function() return c:get("v1/Pod", "default", "a") end)

local system = require "system"

local M = {}

-- Sanitizers cost several times the processor time; bounds are for hangs, so they may be generous there.
local SLOWER = { release = 1, asan = 4, tsan = 8 }
M.factor = SLOWER[os.getenv "KL_VARIANT" or "release"] or 1

-- Seconds between two looks. A look that starts a program (kubectl, curl) takes more of the processor than
-- what it waits for, so the pause is as long as the look was.
local STEP, LONGEST_STEP = 0.02, 0.5

--- The first truthy result of `fn`, asked until `seconds` have passed; then an error that names `what`.
-- An error raised by `fn` counts as "not yet" and is shown when time is up.
function M.until_true(seconds, what, fn)
  local deadline = system.monotime() + seconds * M.factor
  while true do
    local began = system.monotime()
    local ok, result = pcall(fn)
    if ok and result then return result end
    local now = system.monotime()
    if now > deadline then
      local last = ok and ("the last look gave " .. tostring(result))
        or ("the last look raised: " .. tostring(result))
      error(("%s: not within %g s; %s"):format(what, seconds * M.factor, last), 2)
    end
    system.sleep(math.min(math.max(STEP, now - began), LONGEST_STEP))
  end
end

--- Lets others run for that many seconds. For a runner's loop: specs use until_true.
M.pause = system.sleep

--- Seconds on a clock that only runs forward.
function M.now() return system.monotime() end

return M
