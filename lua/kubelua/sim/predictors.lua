-- predictors.lua - how much cpu a node's pods will need at most, said by those who cannot know, and by an
-- oracle that does: which of them saves how much, and how often it is wrong.
--
-- A predictor is a function of a machine that returns another one, of what all pods use now together: it is
-- called every five minutes, and returns the peak to come. The machine has `limit` (what all pods together
-- may use), `seen` (the number of samples) and instruments, which have seen the present sample:
--
--   m:window(n), m:windows(n)    the last n samples of the machine, and of each pod
--   m:shares(n), m:each_share(n) histograms of the shares of the limit that were used in the last n samples
--   m:fading(half_life)          a histogram of the machine in which older samples lose weight
--
-- Each instrument exists once for all predictors that ask for it (core/sim/samples.h).

local core = require "kubelua.core"

local M = {}

M.STEP = 300
local HOUR, DAY = 12, 288 -- samples

-- ---------------------------------------------------------------- what they are made of

---@class kubelua.SimMachine
---@field limit number
---@field limits number[]
---@field seen integer
local Machine = {}
Machine.__index = Machine

--- A machine whose pods have these limits, without samples.
---@param limits number[]
---@return kubelua.SimMachine
function M.machine(limits)
  local limit = 0
  for _, l in ipairs(limits) do limit = limit + l end
  return setmetatable({ limit = limit, limits = limits, seen = 0, whole = {}, each = {} }, Machine)
end

-- The instrument of a list (whole or each) that `make` makes, once for each kind and size.
local function instrument(list, kind, size, make, ...)
  local key = ("%s %g"):format(kind, size)
  if not list[key] then
    list[key] = make(...)
    list[#list + 1] = list[key]
  end
  return list[key]
end

function Machine:window(n) return instrument(self.whole, "window", n, core.window, 1, n) end
function Machine:windows(n) return instrument(self.each, "window", n, core.window, #self.limits, n) end
function Machine:shares(n) return instrument(self.whole, "shares", n, core.shares, { self.limit }, n) end
function Machine:each_share(n) return instrument(self.each, "shares", n, core.shares, self.limits, n) end
function Machine:fading(half_life)
  return instrument(self.whole, "fading", half_life, core.fading, half_life)
end

--- All instruments see the sample of step t: what all pods use together, and the usage of each.
---@param total number
---@param usage userdata  of core.usage
---@param t integer
function Machine:see(total, usage, t)
  self.seen = self.seen + 1
  for _, one in ipairs(self.whole) do one:add(total) end
  for _, one in ipairs(self.each) do one:add(usage, t) end
end

local function n_sigma(m, n)
  local w = m:window(2 * HOUR)
  return function() return math.min(w:sigma(n) or m.limit, m.limit) end
end

local function resource_central(m, q)
  local shares = m:each_share(10 * HOUR)
  return function() return shares:percentile(q, 2 * HOUR) or m.limit end
end

-- ---------------------------------------------------------------- the predictors

--- name, how it is made, what it is.
M.list = {
  { "limit", function(m) return function() return m.limit end end, "the limit of all pods: nothing is lent" },
  { "borg-default", function(m) return function() return 0.9 * m.limit end end, "nine tenths of that" },
  { "rc-like", function(m) return resource_central(m, 0.95) end,
    "the 95th percentile of each pod over ten hours, summed (Resource Central's kind)" },
  { "node-percentile", function(m)
    local shares = m:shares(10 * HOUR)
    return function() return shares:percentile(0.95, 2 * HOUR) or m.limit end
  end, "the 95th percentile of all pods together over ten hours" },
  { "n-sigma", function(m) return n_sigma(m, 5) end, "mean plus five deviations of two hours" },
  { "n-sigma-pods", function(m)
    local node, pods = n_sigma(m, 5), m:windows(2 * HOUR)
    return function() return math.min(m.limit, math.max(node(), pods:sigma(5) or m.limit)) end
  end, "the same, but at least that of each pod, summed" },
  { "max-seen", function(m)
    local pods = m:windows(2 * HOUR)
    return function() return pods:most() end
  end, "the maximum that each pod has used so far, summed" },
  { "max-of-both", function(m)
    local a, b = n_sigma(m, 3), resource_central(m, 0.80)
    return function() return math.max(a(), b()) end
  end, "the larger of three deviations and 80th percentiles (Take it to the limit)" },
  { "koordlet", function(m)
    local fading = m:fading(12 * HOUR)
    return function()
      return m.seen <= DAY and m.limit or math.min(fading:percentile(0.95) * 1.1, m.limit)
    end
  end, "95th percentile, half-life 12 h, plus a tenth; nothing in the first day (Koordinator's agent)" },
  { "vpa", function(m)
    local fading = m:fading(DAY)
    return function() return math.min(fading:percentile(0.90) * 1.15, m.limit) end
  end, "90th percentile, half-life a day, plus 15 % (the vertical pod autoscaler's target)" },
  { "autopilot", function(m)
    local most, recent, fade = 0, m:window(HOUR), 2 ^ (-1 / (12 * HOUR))
    return function(total)
      most = math.max(most * fade, total)
      return math.min(m.limit, math.max(1.1 * most, recent:highest()))
    end
  end, "the maximum, fading with a half-life of 12 h, plus a tenth; no less than in the last hour" },
  { "seasonal", function(m)
    local days = {} -- the maximum of each whole or begun day
    return function(total)
      local day = (m.seen - 1) // DAY
      days[day] = math.max(days[day] or 0, total)
      local most = math.max(days[day - 1] or 0, days[day - 2] or 0, days[day - 3] or 0)
      return most > 0 and math.min(m.limit, math.max(1.1 * most, total)) or m.limit
    end
  end, "the maximum of the last three days, plus a tenth" },
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
---@param machine kubelua.SimMachine
---@param usage userdata  of core.usage: nobody uses more than its limit from here on
---@param from integer
---@param horizon integer
function M.judge(machine, usage, from, horizon)
  local totals, predictors, out = usage:cap(), {}, {}
  local truth, last, limit = M.oracle(totals, horizon), #totals - horizon, machine.limit
  for i, p in ipairs(M.list) do
    predictors[i] = p[2](machine)
    out[i] = { violations = 0, missing = 0, saved = 0 }
  end
  local best = { violations = 0, missing = 0, saved = 0 }
  predictors[#predictors + 1], out[#out + 1] = false, best
  for t, total in ipairs(totals) do
    machine:see(total, usage, t)
    for i, predict in ipairs(predictors) do
      local peak = predict and predict(total) or truth[t]
      if t >= from and t <= last then
        local o = out[i]
        o.saved = o.saved + 1 - peak / limit
        if peak < truth[t] * (1 - 1e-9) then
          o.violations, o.missing = o.violations + 1, o.missing + (truth[t] - peak) / truth[t]
        end
      end
    end
  end
  local n, result = math.max(0, last - from + 1), {}
  for i, o in ipairs(out) do
    result[M.list[i] and M.list[i][1] or "oracle"] = { violation = n > 0 and o.violations / n or 0,
      severity = o.violations > 0 and o.missing / o.violations or 0,
      savings = n > 0 and o.saved / n or 0 }
  end
  return result
end

return M
