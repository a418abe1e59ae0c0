-- measure.lua - the measures of a simulation: a row for each moment, and sums over the whole.

local scheduler = require "kubelua.sim.scheduler"
local suggest = require "kubelua.suggest"

local M = {}

--- name, unit, what is better ("more", "less" or nil), words. The order of every table.
M.list = {
  { "batch_lent", "core-hours", "more", "batch cpu that nodes offered" },
  { "batch_used", "core-hours", "more", "cpu that batch jobs used" },
  { "utilization", "%", "more", "cpu in use, of the total" },
  { "jobs_done", "jobs", "more", "batch jobs that completed" },
  { "violation", "%", "less", "node-minutes in which more batch cpu was lent than prod pods left" },
  { "severity", "%", "less", "mean share of the lent cpu that was missing then" },
  { "hot", "%", "less", "node-minutes in which a node used more of its cpu than the setting `hot`" },
  { "unmet", "core-hours", "less", "cpu that prod pods needed but their node did not have" },
  { "suppressed", "core-hours", "less", "cpu that batch jobs needed but did not get" },
  { "evictions", "pods", "less", "pods that a controller evicted" },
  { "oom", "pods", "less", "batch jobs that ran out of memory" },
  { "lost_work", "core-hours", "less", "work lost by jobs that had to restart" },
  { "wait_p50", "s", "less", "time from a job's creation until it is placed" },
  { "wait_p99", "s", "less", "99th percentile of that time" },
  { "waiting", "pods", "less", "pods that are pending at the end" },
  { "nowhere", "pods", "less", "pods that lost their node and are not placed again at the end" },
  { "spare", "nodes", "more", "nodes that could be removed at the end, with their pods moved to the others" },
  { "changes", "cores/node-hour", "less", "how much the offer moved up and down" },
  { "turns", "/node-day", "less", "how often the offer changed direction" },
  { "reconciles", "/node-hour", "less", "reconciles of controllers" },
  { "writes", "/node-hour", "less", "writes of controllers" },
  { "errors", "runs", "less", "reconciles that failed" },
  { "failing", "keys", "less", "keys whose last reconcile failed, at the end" },
}
local by_name = {}
for _, m in ipairs(M.list) do by_name[m[1]] = m end

-- For each team of a cluster with ElasticQuotas: "used.TEAM" and "wait.TEAM".
local OF_TEAMS = {
  used = { "core-hours", "more", "cpu that running pods of the team's quota request" },
  wait = { "s", "less", "90th percentile of the time until a pod of the team's quota is placed" },
}

--- The measure of a name, or nil.
function M.of(name)
  local kind, team = name:match "^(%a+)%.(.+)$"
  local m = team and OF_TEAMS[kind]
  return by_name[name] or m and { name, table.unpack(m) }
end

--- All measures that are in a result's sums, in the order of tables.
---@param sums table<string, any>
function M.all(sums)
  local out, more = table.move(M.list, 1, #M.list, 1, {}), {}
  for name in pairs(sums) do
    if not by_name[name] then more[#more + 1] = name end
  end
  table.sort(more)
  for _, name in ipairs(more) do out[#out + 1] = M.of(name) end
  return out
end

--- Columns of a row.
M.ROW = { "time", "capacity", "prod", "batch", "system", "lent", "wanted", "running", "waiting", "evicted",
  "used_p5", "used_p50", "used_p95", "lent_p5", "lent_p50", "lent_p95" }

---@class kubelua.SimMeasure
local R = {}
R.__index = R

function M.new(w)
  return setmetatable({ w = w, rows = {}, nodes = {}, samples = 0, over = 0, short = 0, hot = 0, sums = {},
    moved = 0, turned = 0, last = {}, direction = {} }, R)
end

local function percentile(sorted, q)
  if #sorted == 0 then return 0 end
  return sorted[math.max(1, math.ceil(q * #sorted))]
end

local function add(sums, name, x) sums[name] = (sums[name] or 0) + x end

-- The change of node i's offer since the last row.
local function follow(r, i, lent)
  local before = r.last[i]
  if before and lent ~= before then
    r.moved = r.moved + math.abs(lent - before)
    local up = lent > before
    if r.direction[i] ~= nil and r.direction[i] ~= up then r.turned = r.turned + 1 end
    r.direction[i] = up
  end
  r.last[i] = lent
end

--- A row, which counts for `seconds`.
function R:sample(seconds)
  local w, hours = self.w, seconds / 3600
  local nodes, use, lent = w.nodes, {}, {}
  local prod_used, batch_used, systems = nodes.prod_used, nodes.batch_used, nodes.system
  local cpu, ready = nodes.cpu, nodes.ready
  local capacity, prod, batch, system, offered, wanted = 0, 0, 0, 0, 0, 0
  local unmet, hot = self.sums.unmet or 0, w.settings.hot
  for i = 1, nodes.n do
    local offer, is_ready = nodes.batch_cpu[i], ready[i]
    local free = cpu[i] - prod_used[i] - systems[i]
    local mine = is_ready and (prod_used[i] + batch_used[i] + systems[i]) / cpu[i] or 0
    capacity, system = capacity + (is_ready and cpu[i] or 0), system + (is_ready and systems[i] or 0)
    prod, batch = prod + prod_used[i], batch + batch_used[i]
    offered, wanted = offered + offer, wanted + nodes.batch_wanted[i]
    unmet = unmet + nodes.unmet[i] * hours
    if mine > hot then self.hot = self.hot + 1 end
    if offer > free then
      self.over = self.over + 1
      self.short = self.short + (offer - free) / offer
    end
    if offer ~= self.last[i] then follow(self, i, offer) end
    use[i], lent[i] = mine, offer
    local list = self.nodes[i] or {}
    self.nodes[i], list[#list + 1] = list, mine
  end
  self.samples, self.sums.unmet = self.samples + nodes.n, unmet
  local sum = { capacity = capacity, prod = prod, batch = batch, system = system, lent = offered,
    wanted = wanted }
  for _, name in ipairs { "capacity", "prod", "batch", "system", "lent", "wanted" } do
    add(self.sums, name, sum[name] * hours)
  end
  table.sort(use)
  table.sort(lent)
  local running = 0
  for i = 1, nodes.n do running = running + #nodes.pods[i] end
  local row = { time = w.time, running = running, waiting = w.pending.n, evicted = w.sums.evicted }
  for name, x in pairs(sum) do row[name] = x / 1000 end
  for name, q in pairs { p5 = 0.05, p50 = 0.5, p95 = 0.95 } do
    row["used_" .. name] = percentile(use, q) * 100
    row["lent_" .. name] = percentile(lent, q) / 1000
  end
  self.rows[#self.rows + 1] = row
  w.quotas:sample(seconds)
end

-- Pending pods that had a node before: successors of pods that were evicted, ended or lost with their node.
local function nowhere(w)
  local n = 0
  for _, p in ipairs(w.pending:list()) do
    if w.pods.restarts[p] > 0 then n = n + 1 end
  end
  return n
end

--- The sums, by name.
---@return table<string, number>
function R:sum_up()
  local w, s = self.w, self.sums
  local n, hours = w.nodes.n, math.max(w.time, 1) / 3600
  local waited, runs, writes, errors, failing = { table.unpack(w.sums.waited) }, 0, 0, 0, 0
  table.sort(waited)
  for _, c in ipairs(w.sim:counts()) do
    runs, writes, errors, failing = runs + c.runs, writes + c.writes, errors + c.errors, failing + c.failing
  end
  local used = (s.prod or 0) + (s.batch or 0) + (s.system or 0)
  local sums = {
    batch_lent = (s.lent or 0) / 1000, batch_used = (s.batch or 0) / 1000,
    utilization = (s.capacity or 0) > 0 and 100 * used / s.capacity or 0,
    jobs_done = w.sums.finished, violation = self.samples > 0 and 100 * self.over / self.samples or 0,
    severity = self.over > 0 and 100 * self.short / self.over or 0,
    hot = self.samples > 0 and 100 * self.hot / self.samples or 0, unmet = (s.unmet or 0) / 1000,
    suppressed = ((s.wanted or 0) - (s.batch or 0)) / 1000, evictions = w.sums.evicted, oom = w.sums.oom,
    lost_work = w.sums.lost_work / 3600 / 1000, wait_p50 = percentile(waited, 0.5),
    wait_p99 = percentile(waited, 0.99), waiting = w.pending.n, nowhere = nowhere(w),
    spare = scheduler.spare(w), changes = self.moved / 1000 / n / hours, turns = self.turned / n / hours * 24,
    reconciles = runs / n / hours, writes = writes / n / hours, errors = errors, failing = failing,
  }
  for name, q in pairs(w.quotas.by_name) do
    table.sort(q.waits)
    sums["used." .. name], sums["wait." .. name] = q.used_hours, percentile(q.waits, 0.9)
  end
  return sums
end

-- ---------------------------------------------------------------- limits

local COMPARE = {
  ["<="] = function(a, b) return a <= b end, [">="] = function(a, b) return a >= b end,
  ["<"] = function(a, b) return a < b end, [">"] = function(a, b) return a > b end,
}

--- Raises an error if no measure has this name.
function M.check(where, name)
  if M.of(name) then return end
  local names = {}
  for i, m in ipairs(M.list) do names[i] = m[1] end
  error(("%s: nothing is called %q%s"):format(where, name, suggest.hint(name, names)), 0)
end

--- Reads "evictions <= 5" as { name, how, limit, text }; raises, with `where` in front.
---@param where string
---@param text string
function M.limit(where, text)
  local name, how, limit = text:match "^%s*([%w_][%w_.-]*)%s*([<>]=?)%s*([%d.]+)%s*%%?%s*$"
  if not name then
    error(("%s: expected NAME<=NUMBER, such as \"evictions<=5\" or \"violation<=0.1%%\", got %q")
      :format(where, text), 0)
  end
  M.check(where, name)
  return { name = name, how = how, limit = tonumber(limit), text = text }
end

--- Whether sums keep a limit.
function M.keeps(limit, sums) return COMPARE[limit.how](sums[limit.name], limit.limit) end

return M
