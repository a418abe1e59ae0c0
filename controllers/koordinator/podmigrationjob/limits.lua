-- limits.lua - the limits of migrations: the number of pods of a workload that may be migrating or
-- unavailable at a time, and the rate of evictions. A rate is a token bucket, the plain table { tokens, at,
-- rate, burst, till }, in seconds and tokens per second.

local kube = require "kubelua"

local M = {}

M.ALL = "all" -- the bucket of all evictions

-- The number of pods that `wanted` (nil, a number, or "10%") means for a workload of `replicas`, at least
-- one. The default is a tenth of more than ten replicas, two of four to ten, and one of fewer.
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

-- Seconds until the bucket has a token; 0: it has one. A bucket that is nil or past its `till` is full.
function M.wait(bucket, now)
  if not bucket or now >= bucket.till then return 0 end
  local missing = 1 - filled(bucket, now)
  -- A smaller lack comes from rounding.
  if missing <= 1e-9 then return 0 end
  return missing / bucket.rate
end

-- The bucket with one token less, or unchanged when it has none. It gains `most` tokens in `window` seconds,
-- holds up to `burst`, and expires after one and a half windows without use.
function M.take(bucket, now, most, window, burst)
  local rate, full = most / window, burst
  local tokens = bucket and now < bucket.till and math.min(filled(bucket, now), full) or full
  if tokens >= 1 - 1e-9 then tokens = math.max(tokens - 1, 0) end
  return { tokens = tokens, at = now, rate = rate, burst = full, till = now + 1.5 * window }
end

-- The bucket with a token put back, after an eviction that did not happen.
function M.give(bucket)
  local out = {}
  for key, value in pairs(bucket) do out[key] = value end
  out.tokens = math.min(bucket.tokens + 1, bucket.burst)
  return out
end

-- The buckets from which an eviction takes a token: { { name, most, window, burst }, ... }.
--   load      the pod's workload (workload.lua) or nil
--   settings  evictQPS, evictBurst, maxMigratingPerWorkload, and of objectLimiters
--             { workload, namespace = { duration, maxMigrating, burst } }
--   forced    true: only the bucket of all evictions counts
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
    -- A percentage of a namespace's pods has no meaning: then there is no limit.
    add("namespace/" .. pod.metadata.namespace, math.tointeger(one.maxMigrating or 0) or 0,
      kube.duration(one.duration), math.max(one.burst or 1, 1))
  end
  return out
end

return M
