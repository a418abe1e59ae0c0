-- sweep.lua - the simulations of a command: every combination of varied values, with every seed. Each runs in
-- a process of its own, so that all cores work; results of earlier commands are reused.

local core = require "kubelua.core"
local measure = require "kubelua.sim.measure"
local recording = require "kubelua.sim.recording"
local settings = require "kubelua.sim.settings"
local suggest = require "kubelua.suggest"
local tables = require "kubelua.tables"

local M = {}

local VALUES_MAX, CELLS_MAX = 1000, 10000

-- ---------------------------------------------------------------- what is varied

local function range(name, text)
  local from, to, step = text:match "^(-?[%d.]+)%.%.(-?[%d.]+)/([%d.]+)$"
  if not from then
    from, to = text:match "^(-?%d+)%.%.(-?%d+)$"
    step = "1"
  end
  from, to, step = tonumber(from), tonumber(to), tonumber(step)
  if not from then return nil end
  if not to or not step or step <= 0 or to < from or (to - from) / step > VALUES_MAX then
    error(("--set %s=%s: a range is FROM..TO or FROM..TO/STEP, upwards, of at most %d values")
      :format(name, text, VALUES_MAX), 0)
  end
  local out = {}
  for k = 0, ((to - from) / step + 1e-9) // 1 | 0 do
    local x = from + k * step
    out[#out + 1] = math.type(x) == "integer" and ("%d"):format(x) or ("%.10g"):format(x)
  end
  return out
end

local function values(name, text)
  local out = {}
  for word in (text .. ","):gmatch "(.-)," do
    if word == "" then error(("--set %s=%s: an empty value"):format(name, text), 0) end
    for _, v in ipairs(range(name, word) or { word }) do out[#out + 1] = v end
  end
  return out
end

local function typed(name, text, default)
  local n = tonumber(text)
  if type(default) == "number" then
    return n or error(("--set %s: expected a number, got %q"):format(name, text), 0)
  elseif type(default) == "boolean" then
    if text ~= "true" and text ~= "false" then
      error(("--set %s: expected true or false, got %q"):format(name, text), 0)
    end
    return text == "true"
  end
  return text
end

local function plain(value) return core.is_view(value) and core.copy(value) or value end

-- The names of a table's fields as --set expects them, for messages.
local function names_of(t)
  local out = {}
  for key in pairs(t) do out[#out + 1] = tostring(key) end
  table.sort(out)
  return out
end

-- "nodePools.1.highThresholds.cpu" as { "nodePools", 1, "highThresholds", "cpu" } and the value that is
-- there; nil unless the first of them is a param with fields.
local function field_of(name, params)
  local first = name:match "^([%w_]+)%."
  local value = first and plain(params[first])
  if type(value) ~= "table" then return nil end
  local path, said = { first }, first
  for part in name:sub(#first + 2):gmatch "[^.]+" do
    local key = math.tointeger(tonumber(part)) or part
    local fields = type(value) == "table" and value or {}
    local below = fields[key]
    if below == nil then
      local known = names_of(fields)
      error(("--set %s: %s has no %q%s"):format(name, said, part,
        #known > 0 and suggest.hint(part, known) or "; it has no fields"), 0)
    end
    path[#path + 1], said, value = key, said .. "." .. part, below
  end
  if type(value) == "table" then
    error(("--set %s: this is an object; set one of its fields: %s"):format(name,
      table.concat(names_of(value), ", ")), 0)
  end
  return path, value
end

-- The fields of Koordinator's colocation strategy.
local STRATEGY = { "enable", "metricAggregateDurationSeconds", "metricReportIntervalSeconds",
  "metricAggregatePolicy", "metricMemoryCollectPolicy", "cpuReclaimThresholdPercent", "cpuCalculatePolicy",
  "memoryReclaimThresholdPercent", "memoryCalculatePolicy", "degradeTimeMinutes",
  "updateTimeThresholdSeconds", "resourceDiffThreshold", "midReclaimMode", "midCPUThresholdPercent",
  "midMemoryThresholdPercent", "midUnallocatedPercent", "midStaticCPUReservedPercent",
  "midStaticMemoryReservedPercent", "batchCPUThresholdPercent", "batchMemoryThresholdPercent", "extensions" }

-- A policy may have fields of its own, but not such as are nearly one of these.
local function check_field(name, field)
  for _, known in ipairs(STRATEGY) do
    if known == field then return end
  end
  local near = suggest.nearest(field, STRATEGY)
  if near then
    error(("--set %s: the colocation strategy has no field %q; did you mean '%s'?")
      :format(name, field, near), 0)
  end
end

-- The meaning of a name: { kind, path = the place in the cell's table of that kind, read = parses its texts,
-- param = the whole default of a param of which it is a field }.
local function meaning(name, params, scene, past)
  if name == "cut.from" then
    if not past then error("--set cut.from: this is a moment of --recording or --trace", 0) end
    return { kind = past, path = { "from" }, read = function(text)
      local ok, seconds = pcall(core.duration, text)
      if not ok or seconds < 0 then
        error(("--set cut.from: expected a duration such as 2h, got %q"):format(text), 0)
      end
      return seconds
    end }
  end
  if settings.known(name) then
    return { kind = "settings", path = { name },
      read = function(text) return settings.read("--set", name, text) end }
  end
  if params[name] ~= nil then
    return { kind = "params", path = { name },
      read = function(text) return typed(name, text, params[name]) end }
  end
  local field = name:match "^colocation%.(%a+)$"
  if field then
    check_field(name, field)
    return { kind = "colocation", path = { field }, read = function(text)
      if text == "true" or text == "false" then return text == "true" end
      return tonumber(text) or text
    end }
  end
  local of_scene = name:match "^scenario%.([%w_]+)$"
  if of_scene then
    if next(scene) == nil then
      error(("--set %s: there is no scenario with params"):format(name), 0)
    end
    if scene[of_scene] == nil then
      error(("--set %s: the scenario has no param %q%s"):format(name, of_scene,
        suggest.hint(of_scene, names_of(scene))), 0)
    end
    return { kind = "scene", path = { of_scene },
      read = function(text) return typed(name, text, scene[of_scene]) end }
  end
  local path, default = field_of(name, params)
  if path then
    return { kind = "params", path = path, param = plain(params[path[1]]),
      read = function(text) return typed(name, text, default) end }
  end
  local known = settings.names()
  for p in pairs(params) do known[#known + 1] = p end
  table.sort(known)
  error(("--set: unknown setting or param %q%s; write a field of the colocation strategy as \z
    colocation.FIELD, one of a param as PARAM.FIELD, a param of the scenario as \z
    scenario.NAME"):format(name, suggest.hint(name, known)), 0)
end

--- Reads "cpu=16,32", "colocation.cpuReclaimThresholdPercent=50..80/5" and
--- "nodePools.1.highThresholds.cpu=65,75".
---@param texts string[]
---@param params table<string, any>  of the scripts, with their defaults
---@param scene table<string, any>?  params of the scenario
---@param past "recording"|"trace"|nil  what the cluster is from, a moment of which is cut.from
function M.axes(texts, params, scene, past)
  local out = {}
  for _, text in ipairs(texts) do
    local name, rest = text:match "^([%w_.]+)=(.+)$"
    if not name then error(("--set: expected NAME=VALUE[,VALUE...], got %q"):format(text), 0) end
    local axis = meaning(name, params, scene or {}, past)
    axis.name = name
    axis.texts, axis.values = values(name, rest), {}
    for i, v in ipairs(axis.texts) do axis.values[i] = axis.read(v) end
    out[#out + 1] = axis
  end
  return out
end

-- ---------------------------------------------------------------- cells

local function copy(t)
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  return out
end

-- Sets the value of an axis in a cell, which owns its tables; deeper tables are copied on the way.
local function put(cell, axis, value)
  local t, path = cell[axis.kind], axis.path
  if #path > 1 and t[path[1]] == nil then t[path[1]] = axis.param end
  for i = 1, #path - 1 do
    t[path[i]] = copy(t[path[i]])
    t = t[path[i]]
  end
  t[path[#path]] = value
end

-- The name of an axis in labels: the shortest end of its path that tells it from the others.
local function short_names(axes)
  local out = {}
  for i, axis in ipairs(axes) do
    local n, same = math.min(2, #axis.path), true
    while same and n <= #axis.path do
      out[i], same = table.concat(axis.path, ".", #axis.path - n + 1), false
      for k, other in ipairs(axes) do
        same = same or k ~= i and ("." .. other.name):sub(-#out[i] - 1) == "." .. out[i]
      end
      n = n + 1
    end
  end
  return out
end

--- Every combination: { { label, cell } ... }; the others are compared with the first.
---@param base kubelua.SimCell
---@param axes table[]
---@param against string[]?  other scripts, which come first
function M.variants(base, axes, against)
  local out, names = {}, short_names(axes)
  local function add(scripts, name)
    local chosen = {}
    local function deeper(k)
      if k > #axes then
        local cell = copy(base)
        cell.scripts = scripts
        for _, kind in ipairs { "settings", "params", "colocation", "scene" } do
          cell[kind] = copy(base[kind] or {})
        end
        cell.recording, cell.trace = base.recording and copy(base.recording), base.trace and copy(base.trace)
        local words = { name }
        for i, axis in ipairs(axes) do
          put(cell, axis, axis.values[chosen[i]])
          if #axis.texts > 1 then words[#words + 1] = ("%s=%s"):format(names[i], axis.texts[chosen[i]]) end
        end
        out[#out + 1] = { label = #words > 0 and table.concat(words, " ") or "as given", cell = cell }
        return
      end
      for v = 1, #axes[k].values do
        chosen[k] = v
        deeper(k + 1)
      end
    end
    deeper(1)
  end
  if against then add(against, "before") end
  add(base.scripts, against and "after" or nil)
  if #out > CELLS_MAX then
    error(("that is %d combinations; the limit is %d"):format(#out, CELLS_MAX), 0)
  end
  return out
end

-- ---------------------------------------------------------------- running

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- The path of this program, and its size and time, which differ between builds.
local function exe()
  local own = os.getenv "KUBELUA_SELF"      -- a script that starts us with a loader of our own
  if own then
    local binary = own:gsub("/bin/kubelua$", "/lib/kubelua/kubelua")
    local pipe = assert(io.popen("stat -Lc '%s %Y' " .. quote(binary)))
    local build = pipe:read "l"
    pipe:close()
    return own, build
  end
  local pipe = assert(io.popen "readlink /proc/$PPID/exe; stat -Lc '%s %Y' /proc/$PPID/exe")
  local path, build = pipe:read("l", "l")
  pipe:close()
  return path, build
end

--- How many cores this process may use.
---@return integer
function M.cores()
  local pipe = assert(io.popen "nproc 2>/dev/null")
  local n = math.tointeger(tonumber(pipe:read "l" or "1"))
  pipe:close()
  return n or 1
end

-- kube.hash takes at most 4 MiB as JSON, where a byte may become five.
local PIECE = 1 << 19

-- A hash of a text of any bytes and any length.
local function digest(text)
  local out = {}
  for at = 1, #text, PIECE do out[#out + 1] = tables.hash(core.visible(text:sub(at, at + PIECE - 1))) end
  return tables.hash(out)
end

-- A hash of all that a result depends on: the cell, the program, and the text of every file of the cell.
-- `known`: the hashes of files by their paths.
local function fingerprint(cell, program, known)
  local parts = { core.encode(core.value(cell, "a cell")), program }
  local function add(path, suffix)
    for _, file in ipairs(core.tree(path, suffix or "") or {}) do
      known[file] = known[file] or digest(read(file) or "")
      parts[#parts + 1] = file
      parts[#parts + 1] = known[file]
    end
  end
  -- A script's modules are beside it, and maybe the directory of the results, too.
  for _, path in ipairs(cell.scripts) do add(path:match "^(.*/)" or "./", ".lua") end
  for _, path in ipairs(cell.crds) do add(path) end
  for _, path in ipairs(cell.snapshot) do add(path) end
  for _, path in ipairs(cell.load) do add(path) end
  if cell.trace then add(cell.trace.dir) end
  if cell.recording then
    add(cell.recording.path)
    for _, older in ipairs(recording.older(cell.recording.path)) do add(older) end
  end
  if cell.scenario then add(cell.scenario) end
  return digest(table.concat(parts, "\0"))
end

local function parse(text)
  local ok, v = pcall(core.decode, text)
  return ok and plain(v) or nil
end

--- Runs cells, each in a process, at most `jobs` at once; results are in the order of cells.
---@param cells kubelua.SimCell[]
---@param o { jobs: integer?, dir: string?, progress: fun(done: integer, all: integer, kept: integer) }
function M.run(cells, o)
  local results, kept, done, running, at = {}, 0, 0, {}, 1
  local jobs, known, me, build = o.jobs or M.cores(), {}, exe()
  local function file_of(i)
    return o.dir and ("%s/cells/%s.json"):format(o.dir, fingerprint(cells[i], build, known)) or nil
  end
  local function start(i)
    local path = file_of(i)
    local text = path and read(path)
    results[i] = text and parse(text)
    if results[i] then
      kept, done = kept + 1, done + 1
      o.progress(done, #cells, kept)
      return
    end
    local json = core.encode(core.value(cells[i], "a cell"))
    running[#running + 1] = { i = i, path = path,
      pipe = assert(io.popen(("%s sim --cell %s"):format(quote(me), quote(json)), "r")) }
  end
  local function finish()
    local r = table.remove(running, 1)
    local text = r.pipe:read "a"
    local ok = r.pipe:close()
    results[r.i] = ok and parse(text) or nil
    if not results[r.i] then
      for _, other in ipairs(running) do other.pipe:close() end
      error("a simulation failed; its output is above", 0)
    end
    if r.path then
      -- written as a whole or not at all: a sweep that was killed continues from complete results
      local file = assert(io.open(r.path .. ".part", "wb"))
      file:write(text)
      file:close()
      assert(os.rename(r.path .. ".part", r.path))
    end
    done = done + 1
    o.progress(done, #cells, kept)
  end
  while at <= #cells or #running > 0 do
    while at <= #cells and #running < jobs do
      start(at)
      at = at + 1
    end
    if #running > 0 then finish() end
  end
  return results, kept
end

-- ---------------------------------------------------------------- what they say together

-- Student's t for 95 %, by degrees of freedom; 1.96 beyond the table.
local T = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228 }

--- The mean of a list, and half of its 95 % interval.
---@param list number[]
---@return kubelua.SimSum
function M.spread(list)
  local n, sum = #list, 0
  for _, x in ipairs(list) do sum = sum + x end
  local mean, square = sum / n, 0
  for _, x in ipairs(list) do square = square + (x - mean) ^ 2 end
  local half = n > 1 and (T[n - 1] or 1.96) * math.sqrt(square / (n - 1) / n) or 0
  return { mean = mean, half = half, list = list }
end

---@class kubelua.SimSum
---@field mean number
---@field half number    half of the 95 % interval; 0 with one seed
---@field list number[]  one for each seed

--- Each number of the results of one variant, which has one result per seed.
---@return table<string, kubelua.SimSum>
function M.together(results)
  local out = {}
  for _, m in ipairs(measure.all(results[1].sums)) do
    local list = {}
    for i, r in ipairs(results) do list[i] = r.sums[m[1]] or 0 end
    out[m[1]] = M.spread(list)
  end
  return out
end

--- Compares b with a: "better", "worse" or "". The difference, seed by seed since both saw the same events,
--- must be significant and more than half a percent.
---@param name string
---@param a kubelua.SimSum
---@param b kubelua.SimSum
function M.verdict(name, a, b)
  local wanted, apart = measure.of(name)[3], {}
  for i, x in ipairs(b.list) do apart[i] = x - a.list[i] end
  local d = M.spread(apart)
  if math.abs(d.mean) <= d.half or math.abs(d.mean) <= 0.005 * math.max(math.abs(a.mean), 1e-9) then
    return ""
  end
  return (d.mean > 0) == (wanted == "more") and "better" or "worse"
end

--- How many fewer of n nodes b needs than a for the same work, by how full nodes are: n (Rb - Ra) / Rb; nil
--- unless b's better use is significant.
---@return number?
function M.saved(n, a, b)
  if M.verdict("utilization", a.utilization, b.utilization) ~= "better" then return nil end
  return n * (b.utilization.mean - a.utilization.mean) / b.utilization.mean
end

--- The sentence for people, or nil.
function M.saved_words(variants, k)
  local n = #variants[1].first.nodes
  local saved = k > 1 and M.saved(n, variants[1].sums, variants[k].sums)
  return saved and ("%s needs %.1f fewer of %d nodes for the same work, by its utilization"):format(
    variants[k].label, saved, n) or nil
end

-- The measures of risk; the first one that is above 0 in some setting is used.
local RISKS = { "violation", "evictions", "suppressed", "changes" }

--- The unwanted measures in which settings differ, except the goal.
function M.risk(sums, goal)
  for _, name in ipairs(RISKS) do
    for _, s in ipairs(sums) do
      if name ~= goal and s[name].mean > 0 then return name end
    end
  end
  return RISKS[1] ~= goal and RISKS[1] or RISKS[2]
end

--- Whether x of a measure is better than y.
function M.better(name, x, y)
  if measure.of(name)[3] == "less" then return x < y end
  return x > y
end

--- Ranks variants: first those that keep every limit, the best of `goal` first. Each is
--- { variant, keeps, tied }; tied: the seeds do not tell it from the one before.
---@param variants table[]  with their sums, and broken, the limits that each breaks
---@param goal string
function M.ranking(variants, goal)
  local out = {}
  for i, v in ipairs(variants) do
    out[i] = { variant = v, keeps = next(v.broken) == nil, order = i, is = v.sums[goal].mean }
  end
  table.sort(out, function(a, b)
    if a.keeps ~= b.keeps then return a.keeps end
    if a.is ~= b.is then return M.better(goal, a.is, b.is) end
    return a.order < b.order
  end)
  for i = 2, #out do
    local a, b = out[i - 1].variant.sums[goal], out[i].variant.sums[goal]
    out[i].tied = out[i].keeps and #a.list > 1 and M.verdict(goal, a, b) == ""
  end
  return out
end

--- The number of seeds of a variant in which a limit is kept.
---@return integer
function M.kept(variant, limit)
  local n = 0
  for _, x in ipairs(variant.sums[limit.name].list) do
    if measure.keeps(limit, { [limit.name] = x }) then n = n + 1 end
  end
  return n
end

--- Marks the variants that no other beats in both: a better `gain`, less of `risk`.
function M.pareto(sums, gain, risk)
  local out = {}
  for i, a in ipairs(sums) do
    out[i] = true
    for k, b in ipairs(sums) do
      local more = M.better(gain, b[gain].mean, a[gain].mean)
      local beats = (more or b[gain].mean == a[gain].mean) and b[risk].mean <= a[risk].mean
        and (more or b[risk].mean < a[risk].mean)
      if k ~= i and beats then out[i] = false end
    end
  end
  return out
end

return M
