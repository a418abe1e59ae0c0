--- wait.lua - a condition with a bound, the only way in which specs wait.
--
--   local pod = wait.until_true(5, "the pod shows up", function() return c:get("v1/Pod", "default", "a") end)

local system = require "system"

local M = {}

-- Sanitizers need several times the processor time; bounds only detect hangs, so they are generous there.
local SLOWER = { release = 1, asan = 4, tsan = 8 }
M.factor = SLOWER[os.getenv "KL_VARIANT" or "release"] or 1

-- Seconds between two calls. A call that starts a program (kubectl, curl) uses more of the processor than the
-- awaited work, so the pause is as long as the call. What has taken long takes some time more: the pause is a
-- half of the first milliseconds, and a twentieth of what is longer.
local SHORTEST_STEP, STEP, LONGEST_STEP = 0.001, 0.02, 0.5

local function pause_after(waited, call)
  local part = math.max(math.min(waited / 2, STEP), waited / 20)
  return math.min(math.max(SHORTEST_STEP, call, part), LONGEST_STEP)
end

--- Calls `fn` until its result is truthy, and returns it; after `seconds` raises an error that names `what`.
--- An error of `fn` counts as "not yet", and is shown at the end.
function M.until_true(seconds, what, fn)
  local start = system.monotime()
  local deadline = start + seconds * M.factor
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
    system.sleep(pause_after(now - start, now - began))
  end
end

--- Sleeps for that many seconds. For the loop of a runner: specs use until_true.
M.pause = system.sleep

--- Seconds on a clock that only runs forward.
function M.now() return system.monotime() end

return M
