-- history.lua - the past usage of a target's containers: two histograms for each container name, over all
-- pods of the target, as in the vertical pod autoscaler.
--   cpu     each sample; its weight is the container's request, at least 0.1 core
--   memory  the peak of each day of a pod, with weight 1: too little memory at any moment kills the container
--   { containers = { [name] = { cpu, memory, first, last, samples } }, seen = second,
--     pods = { [uid] = { last = second, peaks = { [container] = { peak, ends } } } } }

local histogram = require "lib.histogram"
local usage = require "recommender.usage"

local M = {}

local DAY = 24 * 3600
local HALF_LIFE = DAY
local LEAST_WEIGHT = 0.1
M.SHAPES = {
  cpu = histogram.shape(10, 1000000, 1.05),  -- milli-cores, up to 1,000 cores
  memory = histogram.shape(1e7, 1e12, 1.05), -- bytes, up to 1 TB
}

function M.new() return { containers = {}, pods = {}, seen = 0 } end

local function container_of(history, name, at)
  local one = history.containers[name]
  if not one then
    one = { first = at, last = at, samples = 0, cpu = histogram.new(M.SHAPES.cpu, HALF_LIFE),
      memory = histogram.new(M.SHAPES.memory, HALF_LIFE) }
    history.containers[name] = one
  end
  return one
end

-- Adds a peak; it replaces a lower one of the same day.
local function add_peak(h, peaks, name, memory, at)
  local day = peaks[name]
  if not day or at >= day.ends then
    local days = day and (at - day.ends) // DAY + 1 or 1
    day = { peak = -1, ends = (day and day.ends or at) + days * DAY }
    peaks[name] = day
  end
  if memory <= day.peak then return end
  if day.peak >= 0 then histogram.remove(h, day.peak, 1.0, day.ends) end
  histogram.add(h, memory, 1.0, day.ends)
  day.peak = memory
end

-- Adds the usage of a pod at a time. Returns false, and adds nothing, when the time is not after the pod's
-- last sample.
function M.sample(history, pod, used, at)
  local known = history.pods[pod.metadata.uid]
  if not known then
    known = { last = history.loaded or 0, peaks = {} }
    history.pods[pod.metadata.uid] = known
  end
  if at <= known.last then return false end
  known.last = at
  history.seen = math.max(history.seen, at)
  for _, c in ipairs(usage.split(pod, used)) do
    local one = container_of(history, c.name, at)
    histogram.add(one.cpu, c.cpu, math.max(c.request / 1000, LEAST_WEIGHT), at)
    add_peak(one.memory, known.peaks, c.name, c.memory, at)
    one.first, one.last = math.min(one.first, at), math.max(one.last, at)
    one.samples = one.samples + 1
  end
  return true
end

-- Forgets deleted pods; their usage stays in the histograms. uids: { [uid] = true } of the existing pods.
function M.prune(history, uids)
  for uid in pairs(history.pods) do
    if not uids[uid] then history.pods[uid] = nil end
  end
end

-- The history as a table for JSON. Today's peaks are in the histograms; after a load, each pod begins a new
-- day.
function M.save(history)
  local containers = {}
  for name, one in pairs(history.containers) do
    containers[name] = { first = one.first, last = one.last, samples = one.samples,
      cpu = histogram.save(one.cpu), memory = histogram.save(one.memory) }
  end
  return { seen = history.seen, containers = containers }
end

local function number(v) return type(v) == "number" and v or 0 end

-- The history of a saved table, or an empty one.
function M.load(saved)
  local history = M.new()
  if type(saved) ~= "table" or type(saved.containers) ~= "table" then return history end
  history.seen = number(saved.seen)
  history.loaded = history.seen
  for name, one in pairs(saved.containers) do
    if type(one) == "table" then
      history.containers[name] = {
        first = number(one.first), last = number(one.last), samples = number(one.samples),
        cpu = histogram.load(M.SHAPES.cpu, HALF_LIFE, one.cpu),
        memory = histogram.load(M.SHAPES.memory, HALF_LIFE, one.memory),
      }
    end
  end
  return history
end

return M
