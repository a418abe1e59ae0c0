-- clock.lua - waiting, in any state of the library: a worker's key yields, a program's thread sleeps in
-- slices, so that ^C works.

local core = require "kubelua.core"

local M = {}

--- Waits for some seconds.
---@param seconds number
function M.sleep(seconds)
  if core.run then return core.run.sleep(seconds) end
  while seconds > 0 do seconds = core.rest(seconds) end
end

return M
