-- run.lua - one simulation: a cluster, scripts, a scenario and a span of time; its result as numbers.
--
--   each report interval: use changes, jobs come and go -> nodes report -> controllers run -> pods are placed
--   between two intervals the clock jumps from one wake-up of a controller to the next

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local explain = require "kubelua.sim.explain"
local measure = require "kubelua.sim.measure"
local node = require "kubelua.sim.node"
local plain = require "kubelua.plain"
local recording = require "kubelua.sim.recording"
local scenario = require "kubelua.sim.scenario"
local scheduler = require "kubelua.sim.scheduler"
local still = require "kubelua.sim.still"
local told = require "kubelua.sim.told"
local trace = require "kubelua.sim.trace"
local world = require "kubelua.sim.world"

local M = {}

-- The same Thursday as in kube.testing.
local EPOCH = "2026-01-01T00:00:00Z"
-- The most rows that a result keeps; the sums include what happens between two rows.
local ROWS_MAX = 480
-- The most rounds of placement and reaction at one moment; more than that is reported as an endless loop.
local ROUNDS_MAX = 1000
local FAILURES_TOLD = 5

-- Runs controllers and places pods in turn until nothing is left to do.
local function settle(w)
  for _ = 1, ROUNDS_MAX do
    local next_at = w.sim:settle()
    if w.explain then w.explain:look() end
    if w.decided then w.decided(w) end
    local moved = w:hear()
    if scheduler.run(w) == 0 and not moved then return next_at end
    w:hear()
  end
  error(("at %s controllers and the scheduler undo each other's work without end"):format(w:timestamp()), 0)
end

-- Runs the steps of the scenario that are due.
local function happen(w, hands, s)
  while s.at[s.next] and s.at[s.next][1] <= w.time do
    local entry = s.at[s.next]
    s.next = s.next + 1
    local ok, why = pcall(entry[2], hands)
    if not ok then error(("the scenario's at[%q]: %s"):format(entry[3], tostring(why)), 0) end
  end
  local before = s.time or 0
  s.time = w.time
  for _, entry in ipairs(s.every) do
    for _ = 1, w.time // entry[1] - before // entry[1] do
      local ok, why = pcall(entry[2], hands)
      if not ok then error(("the scenario's every[%q]: %s"):format(entry[3], tostring(why)), 0) end
    end
  end
end

-- Lets pods come and go by themselves.
local function arrive(w, step)
  if w.trace then return trace.pass(w) end
  if w.recording then return recording.pass(w) end
  cluster.arrivals(w, step)
end

-- Advances to a moment, stopping at each wake-up that a controller asked for.
local function pass(w, until_time)
  while true do
    local next_at = settle(w)
    if not next_at or w.time + next_at >= until_time then break end
    w.sim:move(next_at)
    w.time = w.time + next_at
  end
  w.sim:move(until_time - w.time)
  w.time = until_time
end

local function logs_of(list)
  local out, seen = {}, {}
  for _, l in ipairs(list) do
    if (l.level == "warn" or l.level == "error") and not seen[l.message] and #out < 20 then
      seen[l.message] = true
      out[#out + 1] = plain.readable(("%s: %s %s"):format(l.level, l.message, l.fields))
    end
  end
  return out
end

local function thinned(rows)
  if #rows <= ROWS_MAX then return rows end
  local out, step = {}, #rows / ROWS_MAX
  for k = 1, ROWS_MAX do out[k] = rows[math.min(#rows, (k * step + 0.5) // 1 | 0)] end
  return out
end

-- The mean use of each node in each hour, in percent.
local function by_hour(measured, interval)
  local out, per = {}, math.max(1, 3600 // interval | 0)
  for i, list in ipairs(measured.nodes) do
    local hours = {}
    for first = 1, #list, per do
      local sum, n = 0, 0
      for k = first, math.min(first + per - 1, #list) do sum, n = sum + list[k], n + 1 end
      hours[#hours + 1] = (1000 * sum / n + 0.5) // 1 / 10
    end
    out[i] = hours
  end
  return out
end

---@class kubelua.SimCell
---@field scripts string[]
---@field crds string[]
---@field snapshot string[]
---@field load string[]      objects beside the cluster, as somebody would apply them
---@field settings table<string, number>
---@field params table<string, any>
---@field colocation table<string, any>
---@field scenario string?
---@field scene table<string, any>?  params of the scenario
---@field seconds number
---@field seed integer
---@field trace { format: string, dir: string, from: number, nodes: integer? }?
---@field recording { path: string, from: number }?
---@field explain string?  a key, about which the result has an explanation
---@field told boolean?  the result has explanations of nodes, victims, waiting pods and teams
---@field scheduler string?  the schedulerName whose pods a script places; "*": all

-- Whether nobody sees the objects of a cell's cluster.
local function is_still(cell)
  return #cell.scripts + #cell.snapshot + #cell.load + #cell.crds == 0 and not cell.recording
    and not cell.explain
end

local function prepare(cell, watched)
  local past = cell.recording and recording.read(cell.recording.path)
  local opened = cell.trace and trace.open(cell.trace)
  local start = past and past.began + cell.recording.from or opened and opened.began + cell.trace.from
    or core.time(EPOCH):unix()
  local sim = not watched and is_still(cell) and still.new(start + 0.0) or core.sim(start + 0.0, cell.seed)
  for _, path in ipairs(cell.crds) do sim:load_path(path) end
  local w = world.new(sim, cell.settings, cell.seed)
  w.scheduler = cell.scheduler
  if cell.explain then w.explain = explain.new(w, cell.explain) end
  local left_out = {}
  if #cell.snapshot > 0 then
    left_out = cluster.load(w, cell.snapshot)
  elseif past then
    left_out = recording.begin(w, past, cell.recording.from)
  elseif cell.trace then
    trace.begin(w, cell.trace, cell.seconds, opened)
  else
    cluster.generate(w)
  end
  for _, path in ipairs(cell.load) do sim:load_path(path) end
  if cell.told then w.told = told.new(w, cell.seconds) end
  w.from_snapshot = #cell.snapshot > 0 or past ~= nil
  cluster.configure(w, cell.colocation)
  sim:follow "v1/Node"
  sim:follow "v1/Pod"
  w.started = true
  return w, left_out
end

local function programs(cell)
  local out = {}
  for i, path in ipairs(cell.scripts) do out[i] = { path = path } end
  return out
end

--- Runs a cell. `progress` is called with the virtual seconds that have passed, `decided` each time nothing
--- is left to do; w.sim:told() then has all runs.
---@param cell kubelua.SimCell
---@param progress fun(seconds: number)?
---@param decided fun(w: kubelua.SimWorld)?
---@param began fun(w: kubelua.SimWorld)?  called with what there is before anything happens
---@return table result  of texts, numbers, lists and tables of such
function M.run(cell, progress, decided, began)
  local started = core.monotonic()
  core.stage_logs()
  local w, left_out = prepare(cell, decided or began)
  if began then began(w) end
  if decided then
    w.decided = decided
    w.sim:about "*"
  end
  local s = cell.scenario and scenario.read(cell.scenario)
    or { at = {}, every = {}, expect = {}, params = {} }
  s.next = 1
  local hands, measured = scenario.hands(w, s.params, cell.scene), measure.new(w)
  local reports = w.sim:resource(world.METRIC) ~= nil
  local interval = cell.settings.report_interval
  w.sim:start(programs(cell), next(cell.params) and core.value(cell.params, "params") or nil)
  settle(w)
  while w.time < cell.seconds do
    local step = math.min(interval, cell.seconds - w.time)
    happen(w, hands, s)
    arrive(w, step)
    node.pass(w, step)
    if reports then node.report(w) end
    settle(w)
    measured:sample(step)
    pass(w, w.time + step)
    if w.told then w.told:pass() end
    if progress then progress(w.time) end
  end
  local failed = w.sim:failed()
  for _, f in ipairs(failed) do f.message = plain.readable(f.message) end
  local logs = w.explain and w.explain.others or core.stage_logs()
  local placing = cell.scheduler and scheduler.NOT_MODELLED_OF_OTHERS or scheduler.NOT_MODELLED
  local counts = w.sim:counts()
  local not_modelled = table.move(placing, 1, #placing, #node.NOT_MODELLED + 1,
    { table.unpack(node.NOT_MODELLED) })
  local assumed = w.trace and trace.assumed(w.trace) or w.recording and w.recording.assumed or {}
  table.move(assumed, 1, #assumed, #not_modelled + 1, not_modelled)
  local result = {
    sums = measured:sum_up(), rows = thinned(measured.rows), hours = by_hour(measured, interval),
    nodes = { table.unpack(w.nodes.name) }, controllers = {}, logs = logs_of(logs),
    failed = table.move(failed, 1, math.min(#failed, FAILURES_TOLD), 1, {}), left_out = left_out,
    seconds = cell.seconds, seed = cell.seed, reports = reports,
    evictions = core.array(w.evictions), explanation = cell.explain and w.explain:answer(),
    not_modelled = not_modelled, quotas = core.array(w.quotas:result(thinned)),
  }
  if w.told then result.told, result.waiting = w.told:answer() end
  for i, c in ipairs(counts) do
    result.controllers[i] = { name = c.name, runs = c.runs, errors = c.errors, writes = c.writes,
      refused = c.refused }
  end
  -- The cost of the simulation is not part of the result, which is the same each time.
  return result, { seconds = core.monotonic() - started, cpu = M.cpu(counts) }
end

function M.cpu(counts)
  local cpu, runs = 0, 0
  for _, c in ipairs(counts) do cpu, runs = cpu + c.cpu, runs + c.runs end
  return { seconds = cpu, runs = runs }
end

return M
