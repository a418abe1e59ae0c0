-- timeofday.lua - nodes lend less by day: between two hours, the reclaim percentages of the strategy are
-- lower.

local fields = require "fields"
local lists = require "lib.lists"
local plan = require "plan"

local FROM, TO = 8, 20    -- UTC, hours
local CPU, MEMORY = 40, 50 -- the highest percentages in that time

local original = plan.calculate

function plan.calculate(input)
  local hour = input.now // 3600 % 24
  if hour < FROM or hour >= TO then return original(input) end
  local copy = lists.copy(input)
  copy.strategy = fields.copy(input.strategy)
  local s = copy.strategy
  s.cpuReclaimThresholdPercent = math.min(s.cpuReclaimThresholdPercent, CPU)
  s.memoryReclaimThresholdPercent = math.min(s.memoryReclaimThresholdPercent, MEMORY)
  return original(copy)
end
