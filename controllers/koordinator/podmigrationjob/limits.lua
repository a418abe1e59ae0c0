-- limits.lua - how many: how many pods of a workload may move or be away at a time, and how often one of it
-- may be evicted. The second is a bucket of tokens that fills with time, a plain table
-- { tokens, at, rate, burst, till } of seconds and tokens per second.

local kube = require "kubelua"

local M = {}

M.ALL = "all" -- the bucket of all evictions

-- The number that `wanted` (nil, a number, or "10%") means for a workload of so many replicas. Unless said it
-- is a tenth of more than ten, two of four to ten, else one. A part below one pod is one pod.
function M.most(replicas, wanted)
  local percent = type(wanted) == "string" and wanted:match "^(%d+)%%$"
  local whole = math.tointeger(tonumber(wanted))
  local n
  if percent then
    n = math.max(replicas * math.tointeger(percent) // 100, 1)
  elseif whole then
    n = math.max(whole, 1)
  elseif replicas > 10 then
    n = replicas // 10
  else
    n = replicas >= 4 and 2 or 1
  end
  return math.min(n, replicas)
end

local function filled(bucket, now)
  return math.min(bucket.tokens + (now - bucket.at) * bucket.rate, bucket.burst)
end

-- Seconds until the bucket has a token, 0 when it has one. Nil, and one that nobody used for long, are full.
function M.wait(bucket, now)
  if not bucket or now >= bucket.till then return 0 end
  local missing = 1 - filled(bucket, now)
  -- A hair's breadth less than one token is rounding.
  if missing <= 1e-9 then return 0 end
  return missing / bucket.rate
end

-- The bucket with one token less; with none left nothing is taken. `most` tokens come in every `window`
-- seconds, up to `burst` are kept, and after one and a half windows without use it is forgotten.
function M.take(bucket, now, most, window, burst)
  local rate, full = most / window, burst
  local tokens = bucket and now < bucket.till and math.min(filled(bucket, now), full) or full
  if tokens >= 1 - 1e-9 then tokens = math.max(tokens - 1, 0) end
  return { tokens = tokens, at = now, rate = rate, burst = full, till = now + 1.5 * window }
end

-- The bucket with a token put back: nobody was evicted.
function M.give(bucket)
  local out = {}
  for key, value in pairs(bucket) do out[key] = value end
  out.tokens = math.min(bucket.tokens + 1, bucket.burst)
  return out
end

-- The buckets that an eviction takes a token of: { { name, most, window, burst }, ... }.
--   load      the pod's workload (workload.lua) or nil
--   settings  evictQPS, evictBurst, maxMigratingPerWorkload, and of objectLimiters
--             { workload, namespace = { duration, maxMigrating, burst } }
--   forced    true: nobody is asked but the one of all evictions
---@return table[]
function M.buckets(pod, load, settings, forced)
  local out, limiters = {}, not forced and settings.objectLimiters or {}
  local function add(name, most, window, burst)
    if most > 0 and window > 0 then
      out[#out + 1] = { name = name, most = most, window = window, burst = burst }
    end
  end
  local burst = math.max(settings.evictBurst or 1, 1)
  if (settings.evictQPS or 0) > 0 then add(M.ALL, burst, burst / settings.evictQPS, burst) end
  local one = limiters.workload
  if one and load then
    add("workload/" .. load.uid, M.most(load.replicas, one.maxMigrating or settings.maxMigratingPerWorkload),
      kube.duration(one.duration), math.max(one.burst or 1, 1))
  end
  one = limiters.namespace
  if one then
    -- A part of a namespace's pods means nothing.
    add("namespace/" .. pod.metadata.namespace, math.tointeger(one.maxMigrating or 0) or 0,
      kube.duration(one.duration), math.max(one.burst or 1, 1))
  end
  return out
end

return M
