-- estimate.lua - computes the requests of a container from its usage. With confidence in days:
--   target = percentile 90 + margin
--   lower  = (percentile 50 + margin) * (1 + 0.001 / confidence)^-2
--   upper  = (percentile 95 + margin) * (1 + 1 / confidence)
-- Each is at least the container's part of the pod's floor.

local histogram = require "lib.histogram"
local lists = require "lib.lists"

local M = {}

local DAY = 24 * 3600
local SAMPLES_OF_A_DAY = 24 * 60

-- Days: from the first to the last sample, or the number of samples at one a minute, whichever is less.
function M.confidence(one) return math.min((one.last - one.first) / DAY, one.samples / SAMPLES_OF_A_DAY) end

local function up(confidence) return confidence > 0 and 1 + 1 / confidence or math.huge end
local function down(confidence) return confidence > 0 and (1 + 0.001 / confidence) ^ -2 or 0 end

-- Amounts are whole milli-cores and MiB.
local GRAIN = { cpu = 1, memory = 2 ^ 20 }

-- One resource: { target, lower, upper, percentile }. percentile is the target without margin and floor;
-- upper is nil while it would be above the histogram's range.
local function resource(h, grain, floor, confidence, o)
  local with_margin = 1 + o.safetyMarginPercent / 100
  local function whole(x, least) return math.max(math.ceil(math.ceil(x / grain) * grain), least) end
  local function at(percent) return histogram.percentile(h, percent / 100) * with_margin end
  local out = {
    percentile = whole(histogram.percentile(h, o.targetPercentile / 100), 0),
    target = whole(at(o.targetPercentile), floor),
    lower = whole(at(o.lowerPercentile) * down(confidence), floor),
  }
  local upper = at(o.upperPercentile) * up(confidence)
  if upper <= histogram.start(h.shape, h.shape.last) then out.upper = whole(upper, out.target) end
  out.lower = math.min(out.lower, out.target)
  return out
end

-- o: targetPercentile, lowerPercentile, upperPercentile, safetyMarginPercent, minCPU, minMemory. Returns a
-- list by name of { name, cpu, memory, confidence, samples }.
function M.containers(history, o)
  local out, names = {}, lists.names(history.containers)
  local floors = { cpu = lists.amount("cpu", o.minCPU), memory = lists.amount("memory", o.minMemory) }
  for i, name in ipairs(names) do
    local one = history.containers[name]
    local confidence = M.confidence(one)
    out[i] = { name = name, confidence = confidence, samples = one.samples }
    for what, floor in pairs(floors) do
      out[i][what] = resource(one[what], GRAIN[what], math.ceil(floor / #names), confidence, o)
    end
  end
  return out
end

-- For `status.podStatus.containerStatuses`.
function M.statuses(estimates)
  local out = {}
  for i, e in ipairs(estimates) do
    out[i] = { containerName = e.name,
      resources = lists.texts { cpu = e.cpu.target, memory = e.memory.target } }
  end
  return out
end

local function shown(what, r, o)
  local function text(n) return n and lists.text(what, n) or "unbounded" end
  return ("%s %s = max(p%g %s + %g%%, floor), within %s to %s"):format(what, text(r.target),
    o.targetPercentile,
    text(r.percentile), o.safetyMarginPercent, text(r.lower), text(r.upper))
end

-- The calculation as text, a line for each container.
function M.explain(estimates, o)
  local lines = {}
  for i, e in ipairs(estimates) do
    lines[i] = ("%s: %s; %s; %d samples, confidence %.2f days"):format(e.name, shown("cpu", e.cpu, o),
      shown("memory", e.memory, o), e.samples, e.confidence)
  end
  return table.concat(lines, "\n")
end

return M
