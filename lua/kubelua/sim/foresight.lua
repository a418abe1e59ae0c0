-- foresight.lua - `kubelua sim --predictors`: runs the predictors over the pods of a cluster, without a
-- scheduler or controllers: how often each is wrong, by how much, and how much it saves.

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local node = require "kubelua.sim.node"
local dice = require "kubelua.sim.dice"
local predictors = require "kubelua.sim.predictors"
local recording = require "kubelua.sim.recording"
local svg = require "kubelua.sim.svg"
local text = require "kubelua.sim.text"
local trace = require "kubelua.sim.trace"
local world = require "kubelua.sim.world"

local M = {}

local DAY = 86400

-- The prod pods of node i, with their use at each step.
local function machine_of(w, i, seconds)
  local pods, s = w.pods, w.settings
  local m, rows = { limit = 0, limits = {}, samples = {} }, {}
  for _, p in ipairs(w.nodes.pods[i]) do
    if pods.class[p] == "prod" and pods.cpu[p] > 0 then
      rows[#rows + 1] = p
      m.limits[#rows], m.limit = pods.cpu[p], m.limit + pods.cpu[p]
    end
  end
  for k = 0, seconds // predictors.STEP - 1 do
    local t, uses = k * predictors.STEP, {}
    for r, p in ipairs(rows) do
      local share = node.curve(w, pods.app[p], t) * w.factor[p]
        + s.noise * dice.normal(w.seed + p, math.tointeger(k), 3)
      uses[r] = pods.cpu[p] * math.max(0.01, share)
    end
    m.samples[#m.samples + 1] = uses
  end
  return m
end

-- Machines made of recorded pods and their use, grouped by node; a pod is { node, cpu, curve }.
local function recorded(list, seconds)
  local machines, by_node = {}, {}
  for _, p in ipairs(list) do
    local m = by_node[p.node] or { limit = 0, limits = {}, samples = {}, curves = {} }
    if not by_node[p.node] then machines[#machines + 1] = m end
    by_node[p.node] = m
    m.limits[#m.limits + 1], m.limit = p.cpu, m.limit + p.cpu
    m.curves[#m.limits] = { at = 1, list = p.curve }
  end
  for _, m in ipairs(machines) do
    for k = 0, seconds // predictors.STEP - 1 do
      local uses = {}
      for r, c in ipairs(m.curves) do
        while c.list[c.at + 2] and c.list[c.at + 2] <= k * predictors.STEP do c.at = c.at + 2 end
        uses[r] = c.list[c.at + 1]
      end
      m.samples[#m.samples + 1] = uses
    end
  end
  return machines
end

-- The number of machines, a function that makes the i-th, and a note about them.
local function machines_of(cell)
  if not cell.trace and not cell.recording then
    local sim = core.sim(0.0, cell.seed)
    for _, path in ipairs(cell.crds) do sim:load_path(path) end
    local w = world.new(sim, cell.settings, cell.seed)
    if #cell.snapshot > 0 then cluster.load(w, cell.snapshot) else cluster.generate(w) end
    return w.nodes.n, function(i) return machine_of(w, i, cell.seconds) end
  end
  local list, others
  if cell.trace then
    list, others = trace.usage(cell.trace, cell.settings, cell.seconds)
  else
    list, others = recording.usage(recording.read(cell.recording.path), cell.recording.from, cell.seconds)
  end
  if #list == 0 then
    error("no prod pod was there all the time with its use: nothing can be predicted", 0)
  end
  local machines = recorded(list, cell.seconds)
  return #machines, function(i) return machines[i] end,
    ("of %d prod pods that were there all the time; %d others are left out"):format(#list, others)
end

local function percentile(sorted, q) return sorted[math.max(1, math.ceil(q * #sorted))] end

--- { { name, words, violation, worst, severity, savings, machines } ... }: means over machines; worst: the
--- 99th percentile of machines; machines: their violation rates, sorted. The oracle is last. Also returns the
--- number of machines, and a note about their pods.
---@return table[] rows, integer machines, string? said
function M.run(cell, progress)
  local n, machine, said = machines_of(cell)
  local horizon, rows, machines = DAY // predictors.STEP | 0, {}, 0
  for i, p in ipairs(predictors.list) do rows[i] = { name = p[1], words = p[3] } end
  rows[#rows + 1] = { name = "oracle", words = "who knows the next day" }
  for _, r in ipairs(rows) do r.violation, r.severity, r.savings, r.machines, r.wrong = 0, 0, 0, {}, 0 end
  for i = 1, n do
    local m = machine(i)
    if m.limit > 0 then
      machines = machines + 1
      local judged = predictors.judge(m, horizon + 1, horizon)
      for _, r in ipairs(rows) do
        local j = judged[r.name]
        r.violation, r.savings = r.violation + j.violation, r.savings + j.savings
        r.machines[#r.machines + 1] = j.violation
        if j.violation > 0 then r.wrong, r.severity = r.wrong + 1, r.severity + j.severity end
      end
    end
    if progress then progress(i, n) end
  end
  if machines == 0 then error("no prod pod requests cpu: nothing can be predicted", 0) end
  for _, r in ipairs(rows) do
    r.violation, r.savings = 100 * r.violation / machines, 100 * r.savings / machines
    r.severity = r.wrong > 0 and 100 * r.severity / r.wrong or 0
    table.sort(r.machines)
    r.worst = 100 * percentile(r.machines, 0.99)
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
