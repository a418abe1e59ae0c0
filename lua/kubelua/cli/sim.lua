-- sim.lua - kubelua sim: simulates a day of scripts on a cluster in seconds.

local bisect = require "kubelua.sim.bisect"
local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local explain = require "kubelua.sim.explain"
local export = require "kubelua.sim.export"
local junit = require "kubelua.cli.junit"
local measure = require "kubelua.sim.measure"
local page = require "kubelua.sim.page"
local recording = require "kubelua.sim.recording"
local run = require "kubelua.sim.run"
local scenario = require "kubelua.sim.scenario"
local settings = require "kubelua.sim.settings"
local studies = require "kubelua.cli.sim_studies"
local sweep = require "kubelua.sim.sweep"
local text = require "kubelua.sim.text"
local trace = require "kubelua.sim.trace"

local M = {}

M.no_cluster = true
M.options = {
  { "--for", "DURATION", "how long the simulated cluster runs (24h)", type = "duration" },
  { "--generate", "NAME=VALUE,...", "settings of a generated cluster; --generate help lists them" },
  { "--snapshot", "FILE|DIR",
    "a snapshot of a cluster, the output of `kubectl get nodes,pods,... -A -o yaml` (may be repeated)",
    type = "list" },
  { "--recording", "FILE",
    "the cluster that `kubelua run --record FILE` recorded, and what happened to it; `replay` gives each \z
    run its recorded inputs, here decisions have consequences" },
  { "--trace", "FORMAT:DIR", "nodes and pods from a published trace (openb, alibaba2018, alibaba2023), from \z
    what Prometheus recorded (prometheus; --trace prometheus:help prints commands that fetch it), or from a \z
    trace of SimKube (simkube:FILE)" },
  { "--cut", "from=DURATION,nodes=N",
    "part of the trace or the recording: its start; of a trace the number of nodes, with the same share of \z
    pods" },
  { "--load", "FILE|DIR", "objects to apply before the scripts start (may be repeated)",
    type = "list" },
  { "--scenario", "FILE.lua", "events during the simulation, and expected results" },
  { "--scheduler", "SCRIPT.lua",
    "a scheduler script that places pods instead of the simulation's own model" },
  { "--set", "NAME=VALUE[,VALUE...]", "a setting, a param of a script or PARAM.FIELD, colocation.FIELD, \z
    scenario.NAME, or cut.from, a moment of the recording; several values or FROM..TO/STEP: each \z
    is simulated (may be repeated)", type = "list" },
  { "--seed", "N", "the seed of random numbers (1)", type = "count" },
  { "--seeds", "N", "the number of seeds, from --seed on: shows means and their errors (1)", type = "count" },
  { "--against", "SCRIPT.lua", "an earlier version of the script, to compare with" },
  { "--bisect", nil, "with --against, or with two values of one --set (cut.from: two moments): the first \z
    decision that differs; with --out also as a case for `make fixtures`", type = "flag" },
  { "--budget", "LIMITS", "limits such as \"evictions<=5,violation<=0.1%\": prints the best setting that \z
    keeps them, or exits with 1" },
  { "--goal", "MEASURE", "the gain that settings are ranked by (batch_used)" },
  { "--explain", "KEY", "instead of the table: why a node (NAME), a pod (also an evicted one) or an \z
    ElasticQuota (NAMESPACE/NAME) is in its state: the last runs of that key, with their calculations" },
  { "--at", "DURATION", "with --explain: at which moment (the end)", type = "duration" },
  { "--export", "FORMAT:DIR", "instead of the table: the simulation for KWOK (kwok:DIR) or SimKube \z
    (simkube:DIR), to confirm it on a real API server" },
  { "--output", "FORMAT", "plain, or json: results or the explanation (plain)", brief = "-o",
    values = "plain json" },
  { "--predictors", nil,
    "without a script: compare how well predictors predict the peaks of the next day (7d, or the recording)",
    type = "flag" },
  { "--placement", "POLICY,...",
    "without a script: place the pods of --trace openb:DIR on nodes with GPUs until they are full; fgd, \z
    bestfit, dotprod, packing, clustering, random, or a Lua file" },
  { "--queues", "FILE", "without a script: workloads in queues with quotas, by a file in the form of the \z
    generator of Kueue's performance suites" },
  { "--crds", "FILE|DIR", "definitions of kinds (may be repeated; crds/ and crd.yaml beside a script are \z
    always used)",
    type = "list" },
  { "--out", "DIR",
    "directory for report.html, gain.svg, summary.csv, series.csv, results.jsonl; an interrupted sweep \z
    resumes there" },
  { "--jobs", "N", "simulations at once (as many as there are cores)", type = "count" },
  { "--cell", "JSON", "one simulation of a sweep, its result as JSON; sweeps call it" },
}

local DAY = 86400
-- A recording of more than that is not simulated unless somebody says how much of it.
local RECORDING_MAX = 366 * DAY

-- ---------------------------------------------------------------- what is asked

local function list_settings()
  for _, s in ipairs(settings.list) do print(("%-16s %-8s %s"):format(s[1], s[3], s[4])) end
  return 0
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local function crds_of(scripts, given)
  local out, seen = {}, {}
  local function add(path)
    if not seen[path] then out[#out + 1] = path end
    seen[path] = true
  end
  for _, path in ipairs(given or {}) do add(path) end
  for _, script in ipairs(scripts) do
    for _, name in ipairs { "crds", "crd.yaml" } do
      local path = (script:match "^(.*/)" or "") .. name
      if exists(path) then add(path) end
    end
  end
  table.sort(out)
  return out
end

local BLANK = { integer = 0, number = 0.0, boolean = false }

-- Params of all controllers of the scripts, with their defaults; those that have to be given with something
-- of their type.
local function params_of(env, scripts)
  local out = {}
  for _, program in ipairs(common.programs(env, scripts)) do
    for _, spec in ipairs(program.controllers) do
      for name, rule in pairs(spec.param_rules or {}) do
        local blank = BLANK[rule.type]
        out[name] = blank == nil and "" or blank
      end
      for name, value in pairs(spec.params or {}) do out[name] = value end
    end
  end
  return out
end

-- The pods that a scheduler is for: it says so in its param schedulerName, or it takes all.
local function scheduler_of(env, script)
  local name = params_of(env, { script }).schedulerName
  return type(name) == "string" and name ~= "" and name or "*"
end

-- The scripts, and the scheduler as one of them.
local function with_scheduler(scripts, scheduler)
  local out = table.move(scripts, 1, #scripts, 1, {})
  for _, path in ipairs(out) do
    if path == scheduler then return out end
  end
  out[#out + 1] = scheduler
  return out
end

local function limits_of(o, expect)
  local out = {}
  for word in ((o.budget or "") .. ","):gmatch "%s*(.-)%s*," do
    if word ~= "" then out[#out + 1] = measure.limit("--budget", word) end
  end
  local names = {}
  for name in pairs(expect) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    out[#out + 1] = measure.limit("expect of the scenario", ("%s %s"):format(name, expect[name]))
  end
  return out
end

-- How long a recording or a trace with times is from where it is cut, or as much of it as is asked for.
local function rest_of(what, past, from, asked)
  local rest = (past.ended - past.began - from) // 1
  if rest > RECORDING_MAX and not asked then
    common.usage(("--for: by its times the %s is %s long; give the length of the part to simulate")
      :format(what, common.span(past.ended - past.began)))
  elseif rest < 1 then
    common.usage(("--cut: the %s is %s long"):format(what, common.span(past.ended - past.began)))
  elseif asked and asked > rest then
    common.usage(("--for: the %s lasts only %s"):format(what, common.span(rest)))
  end
  return asked or rest
end

local function base_cell(env, scripts)
  local o, given = env.options, settings.defaults()
  local source
  for _, name in ipairs { "recording", "trace", "snapshot", "generate" } do
    -- settings of --generate say what a trace does not
    if o[name] and source and not (source == "trace" and name == "generate") then
      common.usage(("--%s and --%s exclude each other"):format(name, source))
    end
    source = source or o[name] and name
  end
  if o.cut and not o.trace and not o.recording then common.usage "--cut needs --trace or --recording" end
  if o.generate then settings.words("--generate", o.generate, given) end
  local of_trace = o.trace and trace.read_option(o.trace)
  local of_recording = o.recording and { path = o.recording, from = 0 }
  if o.cut then trace.read_cut(o.cut, of_trace or of_recording) end
  local seconds, past = o["for"] or DAY, of_trace and trace.open(of_trace)
  if of_recording then past = recording.read(of_recording.path) end
  if past then seconds = rest_of(source, past, (of_recording or of_trace).from, o["for"]) end
  return {
    trace = of_trace, recording = of_recording, scripts = scripts, crds = crds_of(scripts, o.crds),
    snapshot = o.snapshot or {}, load = o.load or {}, settings = given,
    params = {}, colocation = {}, scenario = o.scenario, seconds = seconds, seed = o.seed or 1,
  }, past
end

-- As much of a recording as there is behind each of the moments that are compared.
local function fit(base, past, axes, asked)
  for _, axis in ipairs(axes) do
    for _, from in ipairs(axis.name == "cut.from" and past and axis.values or {}) do
      base.seconds = math.min(base.seconds, rest_of(axis.kind, past, from, asked))
    end
  end
end

-- ---------------------------------------------------------------- answers

local function judge(report)
  local sums, goal = {}, report.goal
  for _, name in ipairs(report.names) do
    if not report.variants[1].sums[name] then
      error(("the simulated cluster has no team %q: no ElasticQuota has that name")
        :format(name:match "%.(.+)$"), 0)
    end
  end
  for i, v in ipairs(report.variants) do
    sums[i], v.broken = v.sums, {}
    for _, l in ipairs(report.limits) do
      local worst = { [l.name] = v.sums[l.name].mean + (l.how:find "<" and 1 or -1) * v.sums[l.name].half }
      if not measure.keeps(l, worst) then v.broken[l.text] = true end
    end
    local keeps = next(v.broken) == nil
    local is = v.sums[goal].mean
    if keeps and (not report.best or sweep.better(goal, is, report.best.sums[goal].mean)) then
      report.best = v
    end
  end
  report.risk = sweep.risk(sums, goal)
  for i, front in ipairs(sweep.pareto(sums, goal, report.risk)) do
    report.variants[i].front = front
  end
  report.ranking = sweep.ranking(report.variants, goal)
end

local function write(path, content)
  local file, why = io.open(path, "wb")
  if not file then error("cannot write " .. why, 0) end
  file:write(content)
  file:close()
end

local function make_dir(env, path)
  local made, why = env.make_dir(path)
  if not made then error(why, 0) end
end

local function progress(env)
  if not env.tty_err then return function() end, function() end end
  local began = core.monotonic()
  return function(done, all)
    local gone = core.monotonic() - began
    local left = done > 0 and gone / done * (all - done) or 0
    io.stderr:write(("\r%3d %%  %s left \27[K"):format(100 * done // all, common.span(left)))
  end, function() io.stderr:write "\r\27[K" end
end

local function results_of(env, cells)
  local tell, done = progress(env)
  local results
  if #cells == 1 and not env.options.out then
    results = { (run.run(cells[1], function(t) tell(t, cells[1].seconds) end)) }
  else
    results = sweep.run(cells, { jobs = env.options.jobs, dir = env.options.out, progress = tell })
  end
  done()
  return results
end

local function quoted(word)
  return word:find "[^%w_./=,:%-]" and "'" .. word:gsub("'", "'\\''") .. "'" or word
end

local function title(env, base, n)
  local what = #base.snapshot > 0 and table.concat(base.snapshot, ", ")
    or base.recording and base.recording.path or base.trace and base.trace.dir
    or ("%d generated nodes"):format(base.settings.nodes)
  local scripts = #env.words > 0 and table.concat(env.words, " ") or "no script"
  return ("%s: %s on %s%s"):format(scripts, common.span(base.seconds), what,
    n > 1 and (", %d simulations"):format(n) or "")
end

local function command(env)
  local words = { "kubelua sim" }
  for _, w in ipairs(env.words) do words[#words + 1] = quoted(w) end
  for _, option in ipairs(M.options) do
    local value = env.options[option[1]:sub(3):gsub("-", "_")]
    if value ~= nil and option[1] ~= "--out" and option[1] ~= "--jobs" then
      for _, v in ipairs(type(value) == "table" and value or { value }) do
        local text_of = option.type == "duration" and ("%gs"):format(v) or tostring(v)
        words[#words + 1] = option.type == "flag" and option[1]
          or ("%s %s"):format(option[1], quoted(text_of))
      end
    end
  end
  return table.concat(words, " ")
end

-- Each limit on each setting is a test.
local function verdicts(report)
  local suites = {}
  for i, v in ipairs(report.variants) do
    suites[i] = { name = v.label, cases = {} }
    for k, l in ipairs(report.limits) do
      local is = v.sums[l.name]
      suites[i].cases[k] = { class = v.label, name = l.text,
        failure = v.broken[l.text] and ("exceeded: it is %s +- %s"):format(text.number(is.mean),
          text.number(is.half)) or nil }
    end
  end
  return junit.text(suites)
end

-- Runs one setting with one seed, up to the time to explain.
local function explained(env, variants)
  local o = env.options
  if #variants > 1 or (o.seeds or 1) > 1 then
    common.usage "--explain needs a single simulation: one value for each --set, one seed, no --against"
  end
  local cell = variants[1].cell
  cell.explain = o.explain
  if o.at and o.at > cell.seconds then common.usage "--at is after the end: raise --for" end
  cell.seconds = o.at or cell.seconds
  local tell, done = progress(env)
  local result = run.run(cell, function(t) tell(t, cell.seconds) end)
  done()
  if common.wants_json(env) then
    common.print_json(result.explanation)
  else
    io.write(explain.text(result.explanation))
  end
  return 0
end

-- Runs one setting with one seed, and exports it for other tools.
local function exported(env, variants)
  local format, dir = export.read_option(env.options.export)
  if #variants > 1 or (env.options.seeds or 1) > 1 then
    common.usage "--export needs a single simulation: one value for each --set, one seed, no --against"
  end
  local cell, exporter = variants[1].cell, nil
  local tell, done = progress(env)
  run.run(cell, function(t) tell(t, cell.seconds) end, nil, function(w) exporter = export.new(w) end)
  done()
  make_dir(env, dir)
  for _, f in ipairs(exporter:files(format)) do
    write(("%s/%s"):format(dir, f[1]), f[2])
    print(("wrote %s/%s"):format(dir, f[1]))
  end
  print("next: " .. export.words(format, dir))
  return 0
end

-- Two settings, one seed: status 1 when they differ.
local function bisected(env, variants)
  local o = env.options
  if #variants ~= 2 or (o.seeds or 1) > 1 then
    common.usage "--bisect is about two simulations: --against SCRIPT.lua, or one --set with two values; \z
      one seed"
  end
  local a, b = variants[1], variants[2]
  local tell, done = progress(env)
  local found, n = bisect.first(a.cell, b.cell, function(t) tell(t, a.cell.seconds) end)
  done()
  if not found then
    print(("no decision differs: both took the same %d"):format(n))
    return 0
  end
  io.write(bisect.text(found, { a.label, b.label }))
  if o.out and found.a then
    make_dir(env, o.out)
    write(o.out .. "/decision.json", bisect.fixture(found, (found.moved and a or b).cell))
    print(("case: %s/decision.json"):format(o.out))
  end
  return 1
end

local function one_cell(json)
  local ok, cell = pcall(core.decode, json)
  if not ok then common.usage("--cell: %s", common.message(cell)) end
  cell = core.copy(cell)
  local result = studies.part(cell) or run.run(cell)
  print(core.encode(core.value(result, "a result")))
  return 0
end

function M.run(env)
  local o = env.options
  if o.generate == "help" then return list_settings() end
  local commands = o.trace and trace.commands(o.trace:match "^(%w+):help$")
  if commands then return io.write(commands) and 0 end
  if o.cell then return one_cell(o.cell) end
  if o.seeds == 0 then common.usage "--seeds must be at least 1" end
  if o.predictors or o.placement or o.queues then
    return studies.run(env, { base_cell = base_cell, progress = progress, make_dir = make_dir, write = write,
      command = command })
  end
  if #env.words == 0 and not o.scheduler and not (o.generate or o.trace) then
    common.usage "name a script: kubelua sim SCRIPT.lua...; a cluster of --generate or --trace needs none"
  end
  local scheduler = o.scheduler and common.scripts({ o.scheduler })[1]
  local scripts = with_scheduler(common.scripts(env.words), scheduler)
  local base, past = base_cell(env, scripts)
  base.scheduler = scheduler and scheduler_of(env, scheduler)
  -- Reports mistakes before anything runs.
  local told = o.scenario and scenario.read(o.scenario) or { expect = {}, params = {} }
  local limits, goal = limits_of(o, told.expect), o.goal or "batch_used"
  measure.check("--goal", goal)
  local axes = sweep.axes(o.set or {}, params_of(env, scripts), told.params,
    base.recording and "recording" or base.trace and "trace" or nil)
  fit(base, past, axes, o["for"])
  local variants = sweep.variants(base, axes,
    o.against and with_scheduler(common.scripts { o.against }, scheduler) or nil)
  if o.explain then return explained(env, variants) end
  if o.bisect then return bisected(env, variants) end
  if o.export then return exported(env, variants) end
  if o.at then common.usage "--at goes with --explain" end
  local seeds, cells = o.seeds or 1, {}
  for _, v in ipairs(variants) do
    for k = 1, seeds do
      local cell = core.copy(core.value(v.cell, "a cell"))
      cell.seed = base.seed + k - 1
      cell.told = o.out and #cells == 0 or nil -- a page explains its first setting
      cells[#cells + 1] = cell
    end
  end
  if o.out then make_dir(env, o.out .. "/cells") end
  local results = results_of(env, cells)
  local report = { title = title(env, base, #cells), command = command(env), variants = variants,
    span = common.span(base.seconds), limits = limits, seeds = seeds, goal = goal, names = { goal } }
  for _, l in ipairs(limits) do report.names[#report.names + 1] = l.name end
  for i, v in ipairs(variants) do
    v.results = table.move(results, (i - 1) * seeds + 1, i * seeds, 1, {})
    v.first, v.sums = v.results[1], sweep.together(v.results)
  end
  report.measures = measure.all(variants[1].sums)
  judge(report)
  local json = common.wants_json(env)
  if json then
    common.print_json { results = core.array(text.results(report)), best = report.best and report.best.label,
      ranking = core.array(text.ranked(report)),
      report = o.out and o.out .. "/report.html" }
  else
    io.write(text.report(report))
  end
  if o.out then
    write(o.out .. "/report.html", page.make(report))
    if #variants > 1 then write(o.out .. "/gain.svg", page.picture(page.gain(report))) end
    write(o.out .. "/summary.csv", text.summary_csv(report))
    write(o.out .. "/series.csv", text.series_csv(report))
    write(o.out .. "/results.jsonl", text.json_lines(report))
    if #report.limits > 0 then write(o.out .. "/junit.xml", verdicts(report)) end
    if not json then print(("report: %s/report.html"):format(o.out)) end
  end
  return #report.limits > 0 and not report.best and 1 or 0
end

return M
