-- histogram.lua - how much of a resource was used, as a histogram whose old samples fade: a sample loses half
-- of its weight in each half-life. Buckets grow by a ratio, so that an answer is off by that ratio at most.
-- It is the histogram of the vertical pod autoscaler and of Koordinator's agent. Times are in seconds.
--   { shape, half_life, reference = second, total = weight, weights = { [bucket] = weight } }
-- A sample of time t weighs weight * 2^((t - reference) / half_life): what is there needs no change as time
-- goes by. The reference moves on before these weights get too large.

local M = {}

-- A weight below this is gone: a sample of the smallest weight (0.1) ten half-lives ago.
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

-- Where a bucket begins.
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

-- Takes back a sample that was added with the same numbers.
function M.remove(h, value, weight, at)
  local less, bucket = faded(h, weight, at), M.bucket(h.shape, value)
  local left = (h.weights[bucket] or 0.0) - less
  h.weights[bucket] = left >= NOTHING and left or nil
  h.total = math.max(h.total - less, 0.0)
end

function M.is_empty(h) return next(h.weights) == nil end

-- The buckets that hold something, in order.
local function buckets(h)
  local out = {}
  for bucket in pairs(h.weights) do out[#out + 1] = bucket end
  table.sort(out)
  return out
end

-- The end of the bucket up to which `part` (0 to 1) of the weight lies; 0 when there is none.
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

-- What JSON can say of it. A shape and a half-life are the code's.
function M.save(h)
  local weights = {}
  for bucket, weight in pairs(h.weights) do weights[tostring(bucket)] = weight end
  return { reference = h.reference, weights = weights }
end

-- A histogram of what was saved; what does not read as one is left out.
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
