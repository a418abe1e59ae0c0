-- histogram.lua - a histogram of the usage of a resource, in which a sample loses half of its weight in each
-- half-life. Each bucket is wider than the one before by a constant ratio, so a percentile is wrong by that
-- ratio at most. The vertical pod autoscaler and Koordinator's agent have the same histogram. Times are in
-- seconds.
--   { shape, half_life, reference = second, total = weight, weights = { [bucket] = weight } }
-- A sample at time t is stored with weight * 2^((t - reference) / half_life), so stored weights stay correct
-- as time passes. The reference moves before the weights become too large.

local M = {}

-- A smaller weight is removed: that of a sample with the smallest weight (0.1) after ten half-lives.
local NOTHING = 0.0001
local MAX_EXPONENT = 100

-- Buckets from 0 up to `max`; the first is `first` wide, each other wider than the one before by `ratio`.
function M.shape(first, max, ratio)
  local last = math.ceil(math.log(max * (ratio - 1) / first + 1, ratio))
  return { first = first, ratio = ratio, last = last }
end

function M.new(shape, half_life)
  return { shape = shape, half_life = half_life, reference = 0, total = 0.0, weights = {} }
end

-- The lower bound of a bucket.
function M.start(shape, bucket) return shape.first * (shape.ratio ^ bucket - 1) / (shape.ratio - 1) end

function M.bucket(shape, value)
  if value < shape.first then return 0 end
  local bucket = math.floor(math.log(value * (shape.ratio - 1) / shape.first + 1, shape.ratio))
  return math.min(bucket, shape.last)
end

-- Moves the reference to about `now`.
local function shift(h, now)
  local half_lives = math.floor((now - h.reference) / h.half_life + 0.5)
  local factor = 2.0 ^ -half_lives
  h.reference = h.reference + half_lives * h.half_life
  h.total = 0.0
  for bucket, weight in pairs(h.weights) do
    local left = weight * factor
    h.weights[bucket] = left >= NOTHING and left or nil
    h.total = h.total + (h.weights[bucket] or 0.0)
  end
end

local function faded(h, weight, at)
  if (at - h.reference) / h.half_life > MAX_EXPONENT then shift(h, at) end
  return weight * 2.0 ^ ((at - h.reference) / h.half_life)
end

function M.add(h, value, weight, at)
  local more, bucket = faded(h, weight, at), M.bucket(h.shape, value)
  h.weights[bucket] = (h.weights[bucket] or 0.0) + more
  h.total = h.total + more
end

-- Removes a sample that was added with the same arguments.
function M.remove(h, value, weight, at)
  local less, bucket = faded(h, weight, at), M.bucket(h.shape, value)
  local left = (h.weights[bucket] or 0.0) - less
  h.weights[bucket] = left >= NOTHING and left or nil
  h.total = math.max(h.total - less, 0.0)
end

function M.is_empty(h) return next(h.weights) == nil end

-- The buckets that are not empty, sorted.
local function buckets(h)
  local out = {}
  for bucket in pairs(h.weights) do out[#out + 1] = bucket end
  table.sort(out)
  return out
end

-- The upper bound of the first bucket up to which the weights add up to `part` (0 to 1) of the total; 0 for
-- an empty histogram.
function M.percentile(h, part)
  local order, sum = buckets(h), 0.0
  for i, bucket in ipairs(order) do
    sum = sum + h.weights[bucket]
    if sum >= part * h.total or i == #order then
      return M.start(h.shape, math.min(bucket + 1, h.shape.last))
    end
  end
  return 0.0
end

-- The histogram as a table for JSON, without the shape and the half-life, which are constants of the caller.
function M.save(h)
  local weights = {}
  for bucket, weight in pairs(h.weights) do weights[tostring(bucket)] = weight end
  return { reference = h.reference, weights = weights }
end

-- The histogram of a saved table; invalid parts of the table are ignored.
function M.load(shape, half_life, saved)
  local h = M.new(shape, half_life)
  if type(saved) ~= "table" or type(saved.reference) ~= "number" or type(saved.weights) ~= "table" then
    return h
  end
  h.reference = saved.reference
  for text, weight in pairs(saved.weights) do
    local bucket = math.tointeger(tonumber(text))
    local known = bucket and bucket >= 0 and bucket <= shape.last
    if known and type(weight) == "number" and weight >= NOTHING then
      h.weights[bucket] = weight + 0.0
      h.total = h.total + weight
    end
  end
  return h
end

return M
