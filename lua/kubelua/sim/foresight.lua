-- foresight.lua - `kubelua sim --predictors`: runs the predictors over the pods of a cluster, without a
-- scheduler or controllers: how often each is wrong, by how much, and how much it saves.

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local node = require "kubelua.sim.node"
local predictors = require "kubelua.sim.predictors"
local recording = require "kubelua.sim.recording"
local still = require "kubelua.sim.still"
local svg = require "kubelua.sim.svg"
local sweep = require "kubelua.sim.sweep"
local text = require "kubelua.sim.text"
local trace = require "kubelua.sim.trace"
local world = require "kubelua.sim.world"

local M = {}

local DAY = 86400

-- The level of each app at each step.
local function levels_of(w, steps)
  return setmetatable({}, { __index = function(self, app)
    local out = {}
    for k = 1, steps do out[k] = node.curve(w, app, (k - 1) * predictors.STEP) end
    self[app] = out
    return out
  end })
end

-- The prod pods of node i: their limits and their usage; nil if it has none.
local function machine_of(w, i, levels, steps)
  local pods, limits, rows = w.pods, {}, {}
  for _, p in ipairs(w.nodes.pods[i]) do
    if pods.class[p] == "prod" and pods.cpu[p] > 0 then
      rows[#rows + 1], limits[#limits + 1] = p, pods.cpu[p]
    end
  end
  if #rows == 0 then return nil end
  local usage = core.usage(limits, steps)
  for r, p in ipairs(rows) do
    usage:demand(r, levels[pods.app[p]], w.factor[p], w.settings.noise, w.seed + p)
  end
  return limits, usage
end

-- The numbers of a curve { second, number, ... } at each step.
local function sampled(curve, steps)
  local out, at = {}, 1
  for k = 0, steps - 1 do
    while curve[at + 2] and curve[at + 2] <= k * predictors.STEP do at = at + 2 end
    out[k + 1] = curve[at + 1]
  end
  return out
end

-- Recorded pods { node, cpu, curve }, grouped by node.
local function by_node(list)
  local machines, known = {}, {}
  for _, p in ipairs(list) do
    local m = known[p.node]
    if not m then
      m = { limits = {}, curves = {} }
      known[p.node], machines[#machines + 1] = m, m
    end
    m.limits[#m.limits + 1], m.curves[#m.curves + 1] = p.cpu, p.curve
  end
  return machines
end

-- The cluster of a cell; a generated one has no objects, as nobody reads them.
local function world_of(cell)
  if #cell.snapshot == 0 then
    local w = world.new(still.new(0.0), cell.settings, cell.seed)
    cluster.generate(w)
    return w
  end
  local sim = core.sim(0.0, cell.seed)
  for _, path in ipairs(cell.crds) do sim:load_path(path) end
  local w = world.new(sim, cell.settings, cell.seed)
  cluster.load(w, cell.snapshot)
  return w
end

-- The number of machines, a function that makes the i-th, and a note about them.
local function machines_of(cell)
  local steps = cell.seconds // predictors.STEP | 0
  if not cell.trace and not cell.recording then
    local w = world_of(cell)
    local levels = levels_of(w, steps)
    return w.nodes.n, function(i) return machine_of(w, i, levels, steps) end
  end
  local list, others
  if cell.trace then
    list, others = trace.usage(cell.trace, cell.settings, cell.seconds)
  else
    list, others = recording.usage(recording.read(cell.recording.path), cell.recording.from, cell.seconds)
  end
  if #list == 0 then
    error("no prod pod has usage for the whole time: nothing can be predicted", 0)
  end
  local machines = by_node(list)
  return #machines, function(i)
    local m = machines[i]
    local usage = core.usage(m.limits, steps)
    for r, curve in ipairs(m.curves) do usage:set(r, sampled(curve, steps)) end
    return m.limits, usage
  end, ("of %d prod pods that existed the whole time; %d others are left out"):format(#list, others)
end

-- ---------------------------------------------------------------- many machines

-- Fewer machines than that are not worth another process.
local PART_MIN = 50

local NAMES = {}
for i, p in ipairs(predictors.list) do NAMES[i] = p[1] end
NAMES[#NAMES + 1] = "oracle"

--- Judges the predictors on the machines of a cell, or (cell.machines) on those from a first to a last one:
--- one flat list of violation, severity and savings of each predictor, machine by machine.
---@param progress fun(done: integer, all: integer)?
---@return number[] judged, string? said
function M.part(cell, progress)
  local n, machine, said = machines_of(cell)
  local first, last = table.unpack(cell.machines or { 1, n })
  local horizon, out = DAY // predictors.STEP | 0, {}
  for i = first, last do
    local limits, usage = machine(i)
    if limits then
      local judged = predictors.judge(predictors.machine(limits), usage, horizon + 1, horizon)
      for _, name in ipairs(NAMES) do
        local j = judged[name]
        local at = #out
        out[at + 1], out[at + 2], out[at + 3] = j.violation, j.severity, j.savings
      end
    end
    if progress then progress(i, n) end
  end
  return out, said
end

-- The same, in as many processes as there are cores if the machines are generated: anything else would be
-- read again by each. The parts of a list have its order, so the number of processes changes no result.
local function judged_by(cell, jobs, progress)
  local n = cell.settings.nodes
  local parts = math.min(jobs, n // PART_MIN)
  if #cell.snapshot > 0 or cell.trace or cell.recording or parts < 2 then return M.part(cell, progress) end
  local cells, out = {}, {}
  for k = 1, parts do
    cells[k] = { machines = { (k - 1) * n // parts + 1, k * n // parts } }
    for key, value in pairs(cell) do cells[k][key] = value end
  end
  for _, part in ipairs(sweep.run(cells, { jobs = parts, progress = progress or function() end })) do
    table.move(part.judged, 1, #part.judged, #out + 1, out)
  end
  return out
end

local function percentile(sorted, q) return sorted[math.max(1, math.ceil(q * #sorted))] end

--- { { name, words, violation, worst, severity, savings, machines } ... }: means over machines; worst: the
--- 99th percentile of machines; machines: their violation rates, sorted. The oracle is last. Also returns the
--- number of machines, and a note about their pods.
---@param jobs integer?  processes at most (1)
---@return table[] rows, integer machines, string? said
function M.run(cell, progress, jobs)
  local judged, said = judged_by(cell, jobs or 1, progress)
  local rows, machines = {}, #judged // (3 * #NAMES)
  if machines == 0 then error("no prod pod requests cpu: nothing can be predicted", 0) end
  for i, name in ipairs(NAMES) do
    local p = predictors.list[i]
    local r = { name = name, words = p and p[3] or "knows the next day", violation = 0, severity = 0,
      savings = 0, machines = {} }
    local wrong = 0
    for m = 1, machines do
      local at = 3 * ((m - 1) * #NAMES + i - 1)
      local violation = judged[at + 1]
      r.violation, r.savings, r.machines[m] = r.violation + violation, r.savings + judged[at + 3], violation
      if violation > 0 then wrong, r.severity = wrong + 1, r.severity + judged[at + 2] end
    end
    r.violation, r.savings = 100 * r.violation / machines, 100 * r.savings / machines
    r.severity = wrong > 0 and 100 * r.severity / wrong or 0
    table.sort(r.machines)
    r.worst = 100 * percentile(r.machines, 0.99)
    rows[i] = r
  end
  return rows, machines, said
end

-- Marks the predictors that no other beats in both savings and violations.
local function mark(rows)
  for _, a in ipairs(rows) do
    a.front = a.name ~= "oracle"
    for _, b in ipairs(rows) do
      local beats = b.name ~= "oracle" and b.savings >= a.savings and b.violation <= a.violation
        and (b.savings > a.savings or b.violation < a.violation)
      if beats then a.front = false end
    end
  end
end

--- The table for a terminal.
---@param said string?
function M.report(rows, machines, span, said)
  mark(rows)
  local out = {}
  out[1] = ("predictors of cpu: %s on %d machines, each judged by the day after"):format(span, machines)
  out[#out + 1] = said
  out[#out + 1] = ""
  out[#out + 1] = ("%-18s %10s %11s %10s %10s"):format("", "savings %", "violation %", "worst %",
    "severity %")
  for _, r in ipairs(rows) do
    out[#out + 1] = ("%s %-16s %10s %11s %10s %10s"):format(r.front and "*" or " ", r.name,
      text.number(r.savings),
      text.number(r.violation), text.number(r.worst), text.number(r.severity))
  end
  out[#out + 1] = ""
  out[#out + 1] = "savings: the share of the limit that could be lent; violation: the share of moments at"
  out[#out + 1] = "which a day's peak exceeded the prediction; worst: violation at the 99th percentile"
  out[#out + 1] = "of machines; severity: by how much."
  out[#out + 1] = "* no other predictor saves more at fewer violations"
  return table.concat(out, "\n") .. "\n"
end

--- A description of each predictor.
function M.words(rows)
  local out = {}
  for i, r in ipairs(rows) do out[i] = ("%-16s %s"):format(r.name, r.words) end
  return table.concat(out, "\n") .. "\n"
end

function M.csv(rows)
  local out = { "predictor,savings,violation,worst,severity\n" }
  for _, r in ipairs(rows) do
    out[#out + 1] = ("%s,%.10g,%.10g,%.10g,%.10g\n"):format(r.name, r.savings, r.violation, r.worst,
      r.severity)
  end
  return table.concat(out)
end

--- The chart of gain against risk.
function M.chart(rows)
  local points = {}
  for _, r in ipairs(rows) do
    points[#points + 1] = { x = r.violation, y = r.savings, label = r.name, front = r.front,
      first = r.name == "oracle" }
  end
  return svg.scatter("savings and violations of predictors", "violation, %", "savings, %", points)
end

return M
