-- predictors.lua - how much cpu a node's pods will need at most, said by those who cannot know, and by an
-- oracle that does: which of them saves how much, and how often it is wrong.
--
-- A predictor is a function of a machine that returns one of (total, uses): it is given what the pods use
-- now, all together and each, every five minutes, and says the peak to come. The machine has `limit` (what
-- all pods together may use) and `limits` (each).

local M = {}

M.STEP = 300
local HOUR, DAY = 12, 288 -- samples

-- ---------------------------------------------------------------- what they are made of

-- The last n samples: add(x) returns how many there are, their sum, the sum of squares, and what fell out.
local function window(n)
  local ring, at, count, sum, squares = {}, 0, 0, 0, 0
  return function(x)
    at = at % n + 1
    local out = ring[at]
    ring[at] = x
    if out then sum, squares = sum - out, squares - out * out else count = count + 1 end
    sum, squares = sum + x, squares + x * x
    return count, sum, squares, out
  end
end

-- mean + n deviations of the last samples; nil until there are so many. The deviation is the sample's (n -
-- 1).
local function sigma(deviations, samples)
  local add = window(samples)
  return function(x)
    local count, sum, squares = add(x)
    if count < samples then return nil end
    local mean = sum / count
    return mean + deviations * math.sqrt(math.max(0, (squares - sum * mean) / (count - 1)))
  end
end

-- A percentile of the shares of the last samples, in steps of a hundredth; nil until there are `least`.
local SHARES = 100
local function percentile(q, samples, least)
  local add, counts = window(samples), {}
  for k = 0, SHARES do counts[k] = 0 end
  return function(share)
    local bucket = math.min(SHARES, math.max(0, math.ceil(share * SHARES)))
    local count, _, _, out = add(bucket)
    counts[bucket] = counts[bucket] + 1
    if out then counts[out] = counts[out] - 1 end
    if count < least then return nil end
    local seen = 0
    for k = 0, SHARES do
      seen = seen + counts[k]
      if seen >= q * count then return k / SHARES end
    end
  end
end

-- A percentile over buckets that grow by a twentieth, where a sample loses half of its weight in each
-- half-life.
local FIRST, RATIO = 25, 1.05 -- milli-cores
local function fading(q, half_life)
  local weights, last, total, now = {}, 0, 0, 0
  return function(x)
    now = now + 1
    local w = 2 ^ (now / half_life)
    local bucket = x < FIRST and 0 or math.log(x * (RATIO - 1) / FIRST + 1, RATIO) // 1 | 0
    weights[bucket], total, last = (weights[bucket] or 0) + w, total + w, math.max(last, bucket)
    local seen = 0
    for k = 0, last do
      seen = seen + (weights[k] or 0)
      if seen >= q * total then return FIRST * (RATIO ^ (k + 1) - 1) / (RATIO - 1) end
    end
  end
end

-- One of a kind for each pod; their sum, or nil as soon as one does not know yet.
local function each_pod(machine, make)
  local of = {}
  for p in ipairs(machine.limits) do of[p] = make(p) end
  return function(uses)
    local sum = 0
    for p, one in ipairs(of) do
      local x = one(uses[p], machine.limits[p]) -- each hears of every moment
      sum = sum and x and sum + x
    end
    return sum
  end
end

local function n_sigma(machine, n)
  local of = sigma(n, 2 * HOUR)
  return function(total) return math.min(of(total) or machine.limit, machine.limit) end
end

local function resource_central(machine, q)
  local of = each_pod(machine, function()
    local shares = percentile(q, 10 * HOUR, 2 * HOUR)
    return function(use, limit)
      local share = shares(use / limit)
      return share and share * limit
    end
  end)
  return function(_, uses) return of(uses) or machine.limit end
end

-- ---------------------------------------------------------------- the predictors

--- name, how it is made, what it is.
M.list = {
  { "limit", function(m) return function() return m.limit end end, "the limit of all pods: nothing is lent" },
  { "borg-default", function(m) return function() return 0.9 * m.limit end end, "nine tenths of that" },
  { "rc-like", function(m) return resource_central(m, 0.95) end,
    "the 95th percentile of each pod over ten hours, summed (Resource Central's kind)" },
  { "node-percentile", function(m)
    local of = percentile(0.95, 10 * HOUR, 2 * HOUR)
    return function(total) return (of(total / m.limit) or 1) * m.limit end
  end, "the 95th percentile of all pods together over ten hours" },
  { "n-sigma", function(m) return n_sigma(m, 5) end, "mean plus five deviations of two hours" },
  { "n-sigma-pods", function(m)
    local node, pods = n_sigma(m, 5), each_pod(m, function() return sigma(5, 2 * HOUR) end)
    return function(total, uses) return math.min(m.limit, math.max(node(total), pods(uses) or m.limit)) end
  end, "the same, but at least that of each pod, summed" },
  { "max-seen", function(m)
    local of = each_pod(m, function()
      local most = 0
      return function(use)
        most = math.max(most, use)
        return most
      end
    end)
    return function(_, uses) return of(uses) end
  end, "the maximum that each pod has used so far, summed" },
  { "max-of-both", function(m)
    local a, b = n_sigma(m, 3), resource_central(m, 0.80)
    return function(total, uses) return math.max(a(total), b(total, uses)) end
  end, "the larger of three deviations and 80th percentiles (Take it to the limit)" },
  { "koordlet", function(m)
    local of, seen = fading(0.95, 12 * HOUR), 0
    return function(total)
      seen = seen + 1
      local peak = of(total) * 1.1
      return seen <= DAY and m.limit or math.min(peak, m.limit)
    end
  end, "95th percentile, half-life 12 h, a tenth more; nothing in the first day (Koordinator's agent)" },
  { "vpa", function(m)
    local of = fading(0.90, DAY)
    return function(total) return math.min(of(total) * 1.15, m.limit) end
  end, "90th percentile, half-life a day, 15 % more (the vertical pod autoscaler's target)" },
  { "autopilot", function(m)
    local most, recent, at = 0, {}, 0
    local fade = 2 ^ (-1 / (12 * HOUR))
    return function(total)
      at = at % HOUR + 1
      recent[at] = total
      most = math.max(most * fade, total)
      return math.min(m.limit, math.max(1.1 * most, table.unpack(recent)))
    end
  end, "the maximum, fading with a half-life of 12 h, a tenth more; no less than in the last hour" },
  { "seasonal", function(m)
    local days, now = {}, 0
    return function(total)
      local hour, day = now // HOUR % 24, now // DAY
      now = now + 1
      days[day] = days[day] or {}
      days[day][hour] = math.max(days[day][hour] or 0, total)
      local most = 0
      for back = 1, 3 do -- the whole day before, and the two before that
        for h = 0, 23 do most = math.max(most, days[day - back] and days[day - back][h] or 0) end
      end
      return most > 0 and math.min(m.limit, math.max(1.1 * most, total)) or m.limit
    end
  end, "the maximum of the last three days, a tenth more" },
}

--- The peak that the next `horizon` samples will have, for each sample: nobody can do better. Pods count up
--- to their limit.
---@param totals number[]
---@param horizon integer
---@return number[]
function M.oracle(totals, horizon)
  local out, queue, first = {}, {}, 1 -- a queue of falling maxima, from the end
  for t = #totals, 1, -1 do
    while #queue >= first and totals[queue[#queue]] <= totals[t] do queue[#queue] = nil end
    queue[#queue + 1] = t
    while queue[first] > t + horizon do first = first + 1 end
    out[t] = totals[queue[first]]
  end
  return out
end

-- ---------------------------------------------------------------- how good they are

--- Each predictor over one machine: { [name] = { violation, severity, savings } }, shares of 1. `from`: the
--- first sample that counts; the last `horizon` have no future to be judged by.
---@param machine { limit: number, limits: number[], samples: number[][] }
---@param from integer
---@param horizon integer
function M.judge(machine, from, horizon)
  local totals, predictors, out = {}, {}, {}
  local capped = {} -- nobody uses more than it may
  for t, uses in ipairs(machine.samples) do
    local total, row = 0, {}
    for p, use in ipairs(uses) do
      row[p] = math.min(use, machine.limits[p])
      total = total + row[p]
    end
    totals[t], capped[t] = total, row
  end
  local truth = M.oracle(totals, horizon)
  for i, p in ipairs(M.list) do
    predictors[i] = p[2](machine)
    out[i] = { n = 0, violations = 0, missing = 0, saved = 0 }
  end
  local best = { n = 0, violations = 0, missing = 0, saved = 0 }
  local function count(o, peak, t)
    o.n, o.saved = o.n + 1, o.saved + 1 - peak / machine.limit
    if peak < truth[t] * (1 - 1e-9) then
      o.violations, o.missing = o.violations + 1, o.missing + (truth[t] - peak) / truth[t]
    end
  end
  for t, uses in ipairs(capped) do
    local counts = t >= from and t + horizon <= #totals
    for i in ipairs(M.list) do
      local peak = predictors[i](totals[t], uses)
      if counts then count(out[i], peak, t) end
    end
    if counts then count(best, truth[t], t) end
  end
  local result = {}
  local function sum_up(name, o)
    result[name] = { violation = o.n > 0 and o.violations / o.n or 0,
      severity = o.violations > 0 and o.missing / o.violations or 0,
      savings = o.n > 0 and o.saved / o.n or 0 }
  end
  for i, p in ipairs(M.list) do sum_up(p[1], out[i]) end
  sum_up("oracle", best)
  return result
end

return M
