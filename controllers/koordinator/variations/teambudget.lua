-- teambudget.lua - each team has a budget of evictions: a token bucket for each value of the label `team`, in
-- addition to those of the workload and the namespace.

local fields = require "fields"
local limits = require "podmigrationjob.limits"

local LABEL = "team"
local MOST, WINDOW, BURST = 6, 3600, 2 -- 6 evictions in 3600 s, at most 2 at once

local original = limits.buckets

function limits.buckets(pod, load, settings, forced)
  local out, team = original(pod, load, settings, forced), fields.label(pod, LABEL)
  if team and not forced then
    out[#out + 1] = { name = "team/" .. team, most = MOST, window = WINDOW, burst = BURST }
  end
  return out
end
