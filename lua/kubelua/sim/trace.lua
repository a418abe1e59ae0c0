-- trace.lua - clusters out of published traces: nodes, and pods that come and go when the trace says so. What
-- a trace does not have is assumed, and every report says what.
--
-- openb (Alibaba's GPU trace of 2023): a CSV file of nodes (sn, cpu_milli, memory_mib) and one of pods (name,
-- cpu_milli, memory_mib, qos, creation_time, deletion_time in seconds), in a directory.

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local dice = require "kubelua.sim.dice"
local suggest = require "kubelua.suggest"

local M = {}

local MIB = 1 << 20
local FORMATS = { "openb" }

--- What is assumed of a trace.
M.ASSUMED = {
  "of the trace: GPUs are left out",
  "of the trace: pods of qos BE are batch jobs that run for their lifetime at full speed, all others are \z
    prod pods whose usage follows the settings",
}

--- Reads "openb:DIR"; raises.
function M.read_option(text)
  local format, dir = text:match "^(%w+):(.+)$"
  if not format then
    error(("--trace: expected FORMAT:DIR, such as openb:traces, got %q"):format(text), 0)
  end
  if format ~= "openb" then
    error(("--trace: unknown format %q%s"):format(format, suggest.hint(format, FORMATS)), 0)
  end
  return { format = format, dir = dir, from = 0 }
end

--- Reads "from=24h,nodes=100" into a trace, or (no nodes) a recording; raises.
function M.read_cut(text, trace)
  for word in text:gmatch "[^,]+" do
    local name, value = word:match "^%s*(%w+)%s*=%s*(.-)%s*$"
    local ok, seconds = pcall(core.duration, value)
    local n = math.tointeger(tonumber(value))
    if name == "from" and ok and seconds >= 0 then
      trace.from = seconds
    elseif name == "nodes" and n and n >= 1 and trace.format then
      trace.nodes = n
    else
      error(("--cut: expected from=DURATION%s, got %q")
        :format(trace.format and " or nodes=NUMBER" or "", word), 0)
    end
  end
end

-- ---------------------------------------------------------------- files

-- The one CSV file of a directory whose name has a word in it.
local function find(dir, word)
  local found, files = {}, core.tree(dir, ".csv")
  if not files then error(("--trace: cannot read %s"):format(dir), 0) end
  for _, path in ipairs(files) do
    if path:match("[^/]*$"):find(word, 1, true) then found[#found + 1] = path end
  end
  if #found ~= 1 then
    error(("--trace: %s must have one file *%s*.csv, it has %d"):format(dir, word, #found), 0)
  end
  return found[1]
end

local function split(line)
  local out = {}
  for word in (line:gsub("\r$", "") .. ","):gmatch "([^,]*)," do out[#out + 1] = word end
  return out
end

-- Rows as tables by the names of the first line, one after another; those that are wanted have to be there.
local function rows(path, wanted)
  local file, why = io.open(path, "rb")
  if not file then error("cannot read " .. why, 0) end
  local at, number = {}, 1
  for i, name in ipairs(split(file:read "l" or "")) do at[name] = i end
  for _, name in ipairs(wanted) do
    if not at[name] then error(("%s:1: there is no column %q"):format(path, name), 0) end
  end
  return function()
    local line = file:read "l"
    number = number + 1
    if not line then return file:close() and nil end
    local words, row = split(line), {}
    for _, name in ipairs(wanted) do row[name] = words[at[name]] or "" end
    function row.number(name)
      local n = tonumber(row[name])
      return n or error(("%s:%d: %s is not a number: %q"):format(path, number, name, row[name]), 0)
    end
    return row
  end
end

-- A name that Kubernetes takes.
local function name_of(text) return (text:lower():gsub("[^%w.-]", "-")) end

-- Of so many nodes the first ones, evenly over the file.
local function read_nodes(trace)
  local all = {}
  for row in rows(find(trace.dir, "node"), { "sn", "cpu_milli", "memory_mib" }) do
    all[#all + 1] = { name = name_of(row.sn), cpu = row.number "cpu_milli",
      memory = row.number "memory_mib" * MIB }
  end
  local n = math.min(trace.nodes or #all, #all)
  local out = {}
  for k = 1, n do out[k] = all[1 + (k - 1) * #all // n] end
  return out, #all > 0 and n / #all or 0
end

-- Those that are there at some moment of the span, with the same share of them as of nodes.
local function read_pods(trace, share, seconds)
  local out, to = {}, trace.from + seconds
  for row in rows(find(trace.dir, "pod"),
    { "name", "cpu_milli", "memory_mib", "qos", "creation_time", "deletion_time" }) do
    local created = row.number "creation_time"
    local ends = row.deletion_time ~= "" and row.number "deletion_time" or math.huge
    local here = created < to and ends > trace.from and ends > created
    if here and (share == 1 or dice.unit(0, dice.of(row.name), 7) < share) then
      local batch = row.qos == "BE"
      out[#out + 1] = { name = name_of(row.name), class = batch and "batch" or "prod",
        namespace = batch and "batch" or "default", app = "app-" .. (1 + dice.of(row.name) % 8),
        cpu = math.max(1, row.number "cpu_milli" // 1 | 0), memory = row.number "memory_mib" * MIB // 1 | 0,
        created = math.max(0, created - trace.from), ends = ends - trace.from }
    end
  end
  table.sort(out, function(a, b)
    if a.created ~= b.created then return a.created < b.created end
    return a.name < b.name
  end)
  return out
end

-- ---------------------------------------------------------------- the cluster

--- Its nodes; the pods wait for their time.
---@param w kubelua.SimWorld
---@param trace { dir: string, from: number, nodes: integer? }
---@param seconds number
function M.begin(w, trace, seconds)
  local nodes, share = read_nodes(trace)
  if #nodes == 0 then error(("the trace in %s has no nodes"):format(trace.dir), 0) end
  for _, n in ipairs(nodes) do cluster.add_node(w, n.name, n.cpu, n.memory) end
  w.trace = { pods = read_pods(trace, share, seconds), next = 1 }
end

--- What comes and goes up to now.
---@param w kubelua.SimWorld
function M.pass(w)
  local t = w.trace
  while t.pods[t.next] and t.pods[t.next].created <= w.time do
    local o = t.pods[t.next]
    t.next = t.next + 1
    if o.class == "batch" then
      local work = o.ends - o.created
      w:add_pod { name = o.name, namespace = o.namespace, class = o.class, app = o.app, cpu = o.cpu,
        memory = o.memory, work = work < math.huge and work or nil }
    else
      w:add_pod(o)
    end
  end
  w:leave_due()
  w:put_workloads()
end

return M
