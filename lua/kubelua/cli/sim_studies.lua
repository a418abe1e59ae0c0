-- sim_studies.lua - what `kubelua sim` simulates without a script: predictors, placement on GPUs, queues.

local admission = require "kubelua.sim.admission"
local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local foresight = require "kubelua.sim.foresight"
local page = require "kubelua.sim.page"
local placement = require "kubelua.sim.placement"
local sweep = require "kubelua.sim.sweep"
local trace = require "kubelua.sim.trace"

local M = {}

local DAY = 86400
local WEEK = 7 * DAY

local function predict(env, hands)
  local o = env.options
  if common.wants_json(env) then common.usage "--predictors has no JSON: --out DIR writes predictors.csv" end
  local cell = hands.base_cell(env, {})
  local timed = cell.recording or cell.trace and trace.timed(cell.trace)
  cell.seconds = o["for"] or timed and cell.seconds or WEEK
  if cell.seconds < 3 * DAY then
    common.usage "--predictors needs at least three days, to learn, to judge and to predict: --for 72h"
  end
  local tell, done = hands.progress(env)
  local rows, machines, said = foresight.run(cell, tell, o.jobs or sweep.cores())
  done()
  local report = foresight.report(rows, machines, common.span(cell.seconds), said)
  io.write(report)
  if o.out then
    hands.make_dir(env, o.out)
    hands.write(o.out .. "/predictors.csv", foresight.csv(rows))
    hands.write(o.out .. "/predictors.html", page.plain("Predictors of cpu", hands.command(env),
      foresight.chart(rows), report .. "\n" .. foresight.words(rows)))
    print(("report: %s/predictors.html"):format(o.out))
  end
  return 0
end

local function place(env, hands)
  local o, policies = env.options, {}
  if common.wants_json(env) then common.usage "--placement has no JSON: --out DIR writes placement.csv" end
  local of = o.trace and trace.read_option(o.trace)
  if not of or of.format ~= "openb" then common.usage "--placement needs --trace openb:DIR" end
  for name in o.placement:gmatch "[^,]+" do policies[#policies + 1] = name end
  if #policies == 0 then common.usage "--placement: name a policy, such as fgd" end
  local tell, done = hands.progress(env)
  local seed = o.seed or 1
  local rows = placement.run { dir = of.dir, policies = policies, seed = seed, seeds = o.seeds or 1,
    jobs = o.jobs, progress = tell }
  done()
  io.write(placement.text(rows))
  if o.out then
    hands.make_dir(env, o.out)
    hands.write(o.out .. "/placement.csv", placement.csv(rows, seed))
    print(("wrote %s/placement.csv"):format(o.out))
  end
  return 0
end

local function queue(env)
  local result = admission.run(admission.read(env.options.queues))
  if common.wants_json(env) then
    common.print_json(result)
  else
    io.write(admission.text(result))
  end
  return 0
end

local KINDS = { predictors = predict, placement = place, queues = queue }

--- Runs the study that the options name. hands: base_cell, progress, make_dir, write and command of sim.lua.
function M.run(env, hands)
  local chosen
  for _, name in ipairs { "predictors", "placement", "queues" } do
    if env.options[name] then
      if #env.words > 0 then common.usage(("--%s runs without a script"):format(name)) end
      if chosen then common.usage(("--%s and --%s exclude each other"):format(chosen, name)) end
      chosen = name
    end
  end
  return KINDS[chosen](env, hands)
end

--- One part of a study, as sweeps ask for it; nil: the cell is a simulation.
---@return table?
function M.part(cell)
  if cell.machines then return { judged = core.array((foresight.part(cell))) } end
  return cell.placement and placement.once(cell.placement) or nil
end

return M
