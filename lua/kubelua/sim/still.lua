-- still.lua - a cluster without objects, for a world that no script sees: what core.sim makes, with a clock
-- and nothing else. Nodes and pods are columns of the world alone.

local M = {}

---@class kubelua.SimStill
local S = {}
S.__index = S

--- A clock that starts at a unix time.
---@param at number
function M.new(at) return setmetatable({ at = at, still = true }, S) end

function S:now() return self.at end
function S:move(seconds) self.at = self.at + seconds end

-- No kind is known, and nothing happens by itself.
function S.resource() return nil end
function S.settle() return nil end
function S.news() return {} end
function S.counts() return {} end
function S.failed() return {} end
function S.told() return {} end

local function nothing() end
S.start, S.follow, S.about, S.lose, S.put, S.put_copy = nothing, nothing, nothing, nothing, nothing, nothing

function S.call() error("a simulation without a script has no objects", 0) end
S.load_path = S.call

return M
