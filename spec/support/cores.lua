-- cores.lua - detects idle cores, to decide whether one more spec file may run.
--
--   local has_room = cores.watch(function() return process.read "/proc/stat" end)
--   if has_room(now) then ... one more ... end

local M = {}

local TICKS = 100           -- /proc/stat counts hundredths of a second
local WINDOW = 0.2          -- seconds of one measurement
local STALE = 2             -- a longer window says little about now
local ENOUGH = 0.5          -- idle cores

--- The seconds for which cores were idle, or ran niced processes: make, which compiles the next variant.
---@param text string?    of /proc/stat
---@return number?
function M.idle_seconds(text)
  local nice, idle, iowait = (text or ""):match "cpu +%d+ (%d+) %d+ (%d+) (%d+)"
  return nice and (nice + idle + iowait) / TICKS
end

--- A function of the time in seconds: whether half a core or more was idle since its last measurement. It
--- measures five times a second, so that a started file shows in the next measurement; in between it returns
--- false.
---@param read fun(): string?    the text of /proc/stat; without one nothing is idle
function M.watch(read)
  local last, before
  return function(now)
    local seconds = last and now - last or math.huge
    if seconds < WINDOW then return false end
    local after = M.idle_seconds(read())
    local idle = before and after and (after - before) / seconds or 0
    last, before = now, after
    return seconds <= STALE and idle >= ENOUGH
  end
end

return M
