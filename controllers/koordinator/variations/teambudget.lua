-- teambudget.lua - a team has a budget of evictions: a bucket of tokens for each value of the label `team`,
-- beside those of the workload and the namespace.

local fields = require "fields"
local limits = require "podmigrationjob.limits"

local LABEL = "team"
local MOST, WINDOW, BURST = 6, 3600, 2 -- evictions in so many seconds, and at once

local original = limits.buckets

function limits.buckets(pod, load, settings, forced)
  local out, team = original(pod, load, settings, forced), fields.label(pod, LABEL)
  if team and not forced then
    out[#out + 1] = { name = "team/" .. team, most = MOST, window = WINDOW, burst = BURST }
  end
  return out
end
