-- admission.lua - `kubelua sim --queues FILE`: workloads that wait in queues with quotas, in virtual time.
-- The file has the form of the generator of Kueue's performance suites: cohorts of queues, with sets of
-- workloads. There are no objects, nodes or pods; the clock jumps from one arrival or end to the next. The
-- policy:
--
--   in each round the first workload of each queue, by priority and age, may be admitted: first those within
--   their queue's own quota, then those that borrow from the cohort; a workload that does not fit may preempt
--
-- Times are in milliseconds, amounts of cpu in thousandths.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

-- ---------------------------------------------------------------- the file

local function positive(n) return math.type(n) == "integer" and n >= 1 and n <= 1000000 end
local function amount(v)
  local ok, q = pcall(core.qty, v)
  return ok and q >= 0 and q:milli() or nil
end

local READ = {
  text = function(v) return type(v) == "string" and v or nil, "a string" end,
  count = function(v) return positive(v) and v or nil, "a whole number from 1 to 1000000" end,
  integer = function(v) return math.type(v) == "integer" and v or nil, "a whole number" end,
  cpu = function(v) return amount(v), "an amount of cpu such as 20 or 500m" end,
  list = function(v) return core.is_view(v) and #v > 0 and v or nil, "a list that is not empty" end,
  reclaims = function(v)
    return (v == "Never" or v == "LowerPriority" or v == "Any") and v or nil, "Never, LowerPriority or Any"
  end,
  preempts = function(v)
    return (v == "Never" or v == "LowerPriority") and v or nil, "Never or LowerPriority"
  end,
}

-- Fields, with their kinds; a kind with "?" may be absent.
local COHORTS = { className = "text", count = "count", queuesSets = "list" }
local QUEUES = { className = "text", count = "count", nominalQuota = "cpu", borrowingLimit = "cpu?",
  reclaimWithinCohort = "reclaims?", withinClusterQueue = "preempts?", workloadsSets = "list" }
local SETS = { count = "count", creationIntervalMs = "count", workloads = "list" }
local WORKLOADS = { className = "text", runtimeMs = "count", priority = "integer", request = "cpu" }

-- The fields of a view as a table; raises with the place.
local function fields(where, view, known)
  if not core.is_view(view) then error(("%s: expected an object"):format(where), 0) end
  local out = {}
  for name, v in pairs(view) do
    local kind = known[name]
    if not kind then
      error(("%s: unknown field %q%s"):format(where, tostring(name), suggest.hint(tostring(name), known)), 0)
    end
    local read, wanted = READ[kind:gsub("%?$", "")](v)
    if read == nil then error(("%s: %s must be %s"):format(where, name, wanted), 0) end
    out[name] = read
  end
  for name, kind in pairs(known) do
    if out[name] == nil and kind:sub(-1) ~= "?" then error(("%s: %s is missing"):format(where, name), 0) end
  end
  return out
end

local function each(where, view, known, fn)
  for i, item in ipairs(view) do
    local here = ("%s[%d]"):format(where, i)
    fn(fields(here, item, known), here)
  end
end

-- A line has the workloads of a queue that are alike; the first of them is the oldest.
local function new_line(q, o)
  local line = { queue = q, class = o.className, priority = o.priority, request = o.request,
    runtime = o.runtimeMs, first = 1, last = 0, tried = -1 }
  q.lines[#q.lines + 1] = line
  return line
end

local function add_queue(world, cohort, set, where)
  local q = { cohort = cohort, class = set.className, nominal = set.nominalQuota, used = 0, lines = {},
    running = {}, work = 0, at = 0, limit = set.borrowingLimit and set.nominalQuota + set.borrowingLimit
      or math.huge, reclaim = set.reclaimWithinCohort or "Never", within = set.withinClusterQueue or "Never" }
  cohort.queues[#cohort.queues + 1], world.queues[#world.queues + 1] = q, q
  cohort.nominal = cohort.nominal + q.nominal
  each(where .. ".workloadsSets", set.workloadsSets, SETS, function(s, here)
    local lines = {}
    each(here .. ".workloads", s.workloads, WORKLOADS, function(o)
      if o.request > q.limit then
        error(("%s: a request of %s is more than the queue may ever use"):format(here, o.className), 0)
      end
      lines[#lines + 1] = new_line(q, o)
    end)
    local at = 0
    for _ = 1, s.count do
      for _, line in ipairs(lines) do
        at = at + s.creationIntervalMs
        local due = world.arrivals[at] or {}
        world.arrivals[at], due[#due + 1] = due, line
      end
    end
    world.n = world.n + s.count * #lines
  end)
  table.sort(q.lines, function(a, b)
    if a.priority ~= b.priority then return a.priority > b.priority end
    return a.request < b.request or a.request == b.request and a.class < b.class
  end)
end

--- The queues and workloads of a file; raises.
---@param path string
function M.read(path)
  local file, why = io.open(path, "rb")
  if not file then error("cannot read " .. why, 0) end
  local text = file:read "a"
  file:close()
  local ok, docs = pcall(core.yaml, text or "", path)
  if not ok then error(core.is_error(docs) and docs.message or docs, 0) end
  local world = { queues = {}, cohorts = {}, arrivals = {}, n = 0, time = 0, seq = 0, evictions = 0,
    classes = {} }
  local top = fields(path, docs[1], { cohorts = "list" })
  each("cohorts", top.cohorts, COHORTS, function(c, where)
    for _ = 1, c.count do
      local cohort = { queues = {}, nominal = 0, used = 0, version = 0 }
      world.cohorts[#world.cohorts + 1] = cohort
      each(where .. ".queuesSets", c.queuesSets, QUEUES, function(set, here)
        for _ = 1, set.count do add_queue(world, cohort, set, here) end
      end)
    end
  end)
  return world
end

-- ---------------------------------------------------------------- the policy

-- What an amount changes: a queue's use and its integral over time.
local function use(world, q, by)
  q.work, q.at = q.work + q.used * (world.time - q.at), world.time
  q.used, q.cohort.used = q.used + by, q.cohort.used + by
end

local function fits(q, request, freed, freed_here)
  return q.used - freed_here + request <= q.limit and q.cohort.used - freed + request <= q.cohort.nominal
end

local function put_back(line, workload)
  line.first = line.first - 1
  line[line.first] = workload
end

local function evict(world, workload)
  local q, line = workload.line.queue, workload.line
  for k, other in ipairs(q.running) do
    if other == workload then
      table.remove(q.running, k)
      break
    end
  end
  use(world, q, -line.request)
  workload.ends, world.evictions = nil, world.evictions + 1
  put_back(line, workload)
end

-- Workloads that a line's first one may preempt: those of queues that borrow, then those of its own queue; of
-- each the lowest priority first, and the youngest among equals.
local function candidates(line)
  local q, out = line.queue, {}
  local within = q.used + line.request <= q.nominal
  for _, other in ipairs(within and q.reclaim ~= "Never" and q.cohort.queues or {}) do
    for _, v in ipairs(other ~= q and other.used > other.nominal and other.running or {}) do
      if q.reclaim == "Any" or v.line.priority < line.priority then out[#out + 1] = v end
    end
  end
  for _, v in ipairs(q.within ~= "Never" and q.running or {}) do
    if v.line.priority < line.priority then out[#out + 1] = v end
  end
  table.sort(out, function(a, b)
    local x, y = a.line.queue == q, b.line.queue == q
    if x ~= y then return y end
    if a.line.priority ~= b.line.priority then return a.line.priority < b.line.priority end
    return a.admitted > b.admitted
  end)
  return out
end

-- The victims that make room for a line's first workload, as few as their order allows; nil if none do.
local function victims(line)
  local q, chosen, freed, freed_here, taken = line.queue, {}, 0, 0, {}
  local function room() return fits(q, line.request, freed, freed_here) end
  for _, v in ipairs(candidates(line)) do
    local other = v.line.queue
    local gone = taken[other] or 0
    if other == q or other.used - gone > other.nominal then
      chosen[#chosen + 1] = v
      taken[other], freed = gone + v.line.request, freed + v.line.request
      freed_here = taken[q] or 0
      if room() then break end
    end
  end
  if not room() then return nil end
  for k = #chosen, 1, -1 do -- those that turn out not to be needed stay
    local v = chosen[k]
    local here = v.line.queue == q and v.line.request or 0
    freed, freed_here = freed - v.line.request, freed_here - here
    if room() then
      table.remove(chosen, k)
    else
      freed, freed_here = freed + v.line.request, freed_here + here
    end
  end
  return chosen
end

local function admit(world, line)
  local workload, q = line[line.first], line.queue
  line[line.first] = nil
  line.first = line.first + 1
  use(world, q, line.request)
  world.seq = world.seq + 1
  workload.admitted, workload.ends = world.seq, world.time + line.runtime
  q.running[#q.running + 1] = workload
  local ending = world.ending[workload.ends] or {}
  if not world.ending[workload.ends] then world:wake(workload.ends) end
  world.ending[workload.ends], ending[#ending + 1] = ending, workload
  if not workload.waited then
    workload.waited = world.time - workload.created
    local waits = world.classes[line.class] or {}
    world.classes[line.class], waits[#waits + 1] = waits, workload.waited
  end
end

-- The line whose first workload is next in its queue: of those that were not refused since something left.
local function head(q)
  local version, best = q.cohort.version, nil
  for _, line in ipairs(q.lines) do
    if best and line.priority < best.priority then break end
    if line.first <= line.last and line.tried < version
      and (not best or line[line.first].created < best[best.first].created) then
      best = line
    end
  end
  return best
end

local function before(a, b)
  local x, y = a.borrows, b.borrows
  if x ~= y then return y end
  if a.priority ~= b.priority then return a.priority > b.priority end
  local one, other = a[a.first], b[b.first]
  if one.created ~= other.created then return one.created < other.created end
  return one.number < other.number
end

--- Admits workloads of a cohort until nobody else can be.
function M.admit(world, cohort)
  while true do
    local heads = {}
    for _, q in ipairs(cohort.queues) do
      local line = head(q)
      if line then
        line.borrows = q.used + line.request > q.nominal
        heads[#heads + 1] = line
      end
    end
    if #heads == 0 then return end
    if #heads > 1 then table.sort(heads, before) end
    for _, line in ipairs(heads) do
      local q = line.queue
      if fits(q, line.request, 0, 0) then
        admit(world, line)
      else
        local list = victims(line)
        for _, v in ipairs(list or {}) do evict(world, v) end
        if list then
          admit(world, line)
          cohort.version = cohort.version + 1
        else
          line.tried = cohort.version
        end
      end
    end
  end
end

-- ---------------------------------------------------------------- time

-- Moments are a heap; each is there once.
local function push(heap, x)
  local i = #heap + 1
  heap[i] = x
  while i > 1 and heap[i // 2] > heap[i] do
    heap[i // 2], heap[i] = heap[i], heap[i // 2]
    i = i // 2
  end
end

local function pop(heap)
  local top, last = heap[1], table.remove(heap)
  if #heap == 0 then return top end
  heap[1] = last
  local i = 1
  while true do
    local least = 2 * i
    if heap[least + 1] and heap[least + 1] < heap[least] then least = least + 1 end
    if not heap[least] or heap[least] >= heap[i] then return top end
    heap[i], heap[least] = heap[least], heap[i]
    i = least
  end
end

local function arrive(world, line, dirty)
  world.number = (world.number or 0) + 1
  line.last = line.last + 1
  line[line.last] = { line = line, created = world.time, number = world.number }
  dirty[line.queue.cohort] = true
end

local function leave(world, workload, dirty)
  if workload.ends ~= world.time then return end -- it was preempted, and ends later
  local q = workload.line.queue
  for k, other in ipairs(q.running) do
    if other == workload then
      table.remove(q.running, k)
      break
    end
  end
  use(world, q, -workload.line.request)
  workload.ends, q.cohort.version = nil, q.cohort.version + 1
  world.done, dirty[q.cohort] = (world.done or 0) + 1, true
end

local function mean(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x end
  return #list > 0 and sum / #list or 0
end

--- Lets all workloads of a world come, run and go: { workloads, done, queues, seconds, evictions, usage,
--- classes = { { name, n, mean, p99 } ... } }; usage: the share of its own quota that a queue used until all
--- had ended, in percent; mean, p99: seconds until a workload was admitted for the first time.
function M.run(world)
  local moments = {}
  world.ending, world.wake = {}, function(self, at)
    if not self.arrivals[at] then push(moments, at) end
  end
  for at in pairs(world.arrivals) do moments[#moments + 1] = at end
  table.sort(moments) -- a sorted list is a heap
  while moments[1] do
    world.time = pop(moments)
    local dirty = {}
    for _, workload in ipairs(world.ending[world.time] or {}) do leave(world, workload, dirty) end
    for _, line in ipairs(world.arrivals[world.time] or {}) do arrive(world, line, dirty) end
    world.ending[world.time], world.arrivals[world.time] = nil, nil
    for _, cohort in ipairs(world.cohorts) do
      if dirty[cohort] then M.admit(world, cohort) end
    end
  end
  local shares, classes = {}, {}
  for i, q in ipairs(world.queues) do
    use(world, q, 0)
    shares[i] = world.time > 0 and q.nominal > 0 and 100 * q.work / q.nominal / world.time or 0
  end
  for name, waits in pairs(world.classes) do
    table.sort(waits)
    classes[#classes + 1] = { name = name, n = #waits, mean = mean(waits) / 1000,
      p99 = waits[math.ceil(0.99 * #waits)] / 1000 }
  end
  table.sort(classes, function(a, b) return a.name < b.name end)
  return { workloads = world.n, done = world.done or 0, queues = #world.queues, seconds = world.time / 1000,
    evictions = world.evictions, usage = mean(shares), classes = classes }
end

--- The result for a terminal.
function M.text(r)
  local out = { ("%d workloads in %d queues: all had ended after %g s; %d were preempted; mean use of a \z
    queue's own quota: %.1f %%"):format(r.workloads, r.queues, r.seconds, r.evictions, r.usage), "",
    ("%-16s %10s %14s %14s"):format("", "workloads", "wait, mean s", "wait, p99 s") }
  for _, c in ipairs(r.classes) do
    out[#out + 1] = ("%-16s %10d %14.3f %14.3f"):format(c.name, c.n, c.mean, c.p99)
  end
  return table.concat(out, "\n") .. "\n"
end

return M
