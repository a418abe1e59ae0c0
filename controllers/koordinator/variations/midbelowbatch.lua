-- midbelowbatch.lua - mid resources never exceed batch resources: a node with little idle now offers little
-- to mid pods.

local batch = require "batchresource"
local mid = require "midresource"
local plan = require "plan"

local LIMITS = { [mid.CPU] = batch.CPU, [mid.MEMORY] = batch.MEMORY }

local original = plan.calculate

function plan.calculate(input)
  local out, failed = original(input)
  for name, by in pairs(LIMITS) do
    local most = out.resources[by]
    if out.resets[by] or most == nil then most = 0 end
    if out.resources[name] then out.resources[name] = math.min(out.resources[name], most) end
  end
  return out, failed
end
