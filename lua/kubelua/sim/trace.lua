-- trace.lua - clusters from published traces: nodes, and pods that come and go as in the trace. What a trace
-- lacks is assumed, and every report lists the assumptions.
--
-- A format is a module: nodes(it, settings, from, to) gives { id, name, cpu, memory[, allocatable]
-- [, system] } ..., pods(it, settings, kept, share, from, to) gives { name, class, namespace, app, cpu,
-- memory, created, ends[, on][, uses][, holds][, labels] } ... of a span of time; kept: the places of the
-- simulated nodes, by id; share: their share of all nodes; on: the place of its node; system, uses:
-- { second, milli-cores, second, milli-cores ... }; holds: the same of bytes. `it` is the directory, or what
-- open(dir) makes of it (or of a file), whose began and ended are unix times.

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

local FORMATS = {
  alibaba2018 = require "kubelua.sim.trace_alibaba",
  alibaba2023 = require "kubelua.sim.trace_unified",
  openb = require "kubelua.sim.trace_openb",
  prometheus = require "kubelua.sim.trace_prometheus",
  simkube = require "kubelua.sim.trace_simkube",
}

--- The assumptions about a trace.
function M.assumed(trace) return FORMATS[trace.format].ASSUMED end

--- Reads "openb:DIR"; raises.
function M.read_option(text)
  local format, dir = text:match "^(%w+):(.+)$"
  if not format then
    error(("--trace: expected FORMAT:DIR, such as openb:traces, got %q"):format(text), 0)
  end
  if not FORMATS[format] then
    error(("--trace: unknown format %q%s"):format(format, suggest.hint(format, FORMATS)), 0)
  end
  return { format = format, dir = dir, from = 0 }
end

--- The commands that fetch the files of a format; nil if they are published.
---@param format string
function M.commands(format)
  local commands = FORMATS[format] and FORMATS[format].commands
  return commands and commands()
end

-- The trace that was opened last: its length is needed before its simulation.
local last = {}

--- The opened trace, if its format says when it began and ended; else nil. Raises.
---@return { began: number, ended: number }?
function M.open(trace)
  local open = FORMATS[trace.format].open
  if open and (last.format ~= trace.format or last.dir ~= trace.dir) then
    last = { format = trace.format, dir = trace.dir, it = open(trace.dir) }
  end
  return open and last.it
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

-- ---------------------------------------------------------------- the cluster

-- A job takes its lifetime at full speed. A pod that has a node is placed there, if that node is simulated.
local function come(w, o)
  local work = o.class ~= "prod" and o.ends - o.created
  local p = w:add_pod { name = o.name, namespace = o.namespace, class = o.class, app = o.app, cpu = o.cpu,
    memory = o.memory, node = o.on and w.nodes.ready[o.on] and o.on or nil, labels = o.labels,
    work = work and work < math.huge and work or nil,
    ends = not work and o.ends < math.huge and o.ends or nil }
  local followed = w.trace.followed
  if o.uses then followed[#followed + 1] = { into = w.uses, at = p, curve = o.uses, next = 1 } end
  if o.holds then followed[#followed + 1] = { into = w.holds, at = p, curve = o.holds, next = 1 } end
end

-- The simulated nodes: all, or as many as the cut says, spread evenly over the file; and their share.
local function chosen(all, trace)
  local n, out = math.min(trace.nodes or #all, #all), {}
  for k = 1, n do out[k] = all[1 + (k - 1) * #all // n] end
  return out, n / math.max(1, #all)
end

--- Adds the nodes of a trace, or those of a cut; its pods are added when their time comes.
---@param w kubelua.SimWorld
---@param trace { format: string, dir: string, from: number, nodes: integer? }
---@param seconds number
---@param opened table?  what M.open made of it
function M.begin(w, trace, seconds, opened)
  local format, kept = FORMATS[trace.format], {}
  local it, from, to = opened or trace.dir, trace.from, trace.from + seconds
  local all = format.nodes(it, w.settings, from, to)
  if #all == 0 then error(("the trace in %s has no nodes"):format(trace.dir), 0) end
  w.trace, w.uses, w.holds = { format = trace.format, next = 1, followed = {} }, {}, {}
  local nodes, share = chosen(all, trace)
  for _, one in ipairs(nodes) do
    local i = cluster.add_node(w, one.name, one.cpu, one.memory, one.allocatable)
    kept[one.id] = i
    if one.system then
      table.insert(w.trace.followed, { into = w.nodes.system, at = i, curve = one.system, next = 1 })
    end
  end
  w.trace.pods = format.pods(it, w.settings, kept, share, from, to)
  for i, o in ipairs(w.trace.pods) do o.order = i end
  table.sort(w.trace.pods, function(a, b)
    if a.created ~= b.created then return a.created < b.created end
    if a.name ~= b.name then return a.name < b.name end
    return a.order < b.order
  end)
end

--- Whether a trace says when it began and ended.
function M.timed(trace) return FORMATS[trace.format].open ~= nil end

--- The use of prod pods that existed from the beginning to the end: { node, cpu, curve = { second,
--- milli-cores, ... } } each, node: a name; and the number of the others.
---@return table[], integer
function M.usage(trace, settings, seconds)
  local format, kept, out, others = FORMATS[trace.format], {}, {}, 0
  local it, from, to = M.open(trace) or trace.dir, trace.from, trace.from + seconds
  local nodes, share = chosen(format.nodes(it, settings, from, to), trace)
  for _, one in ipairs(nodes) do kept[one.id] = one.name end
  for _, o in ipairs(format.pods(it, settings, kept, share, from, to)) do
    local whole = o.on and o.uses and #o.uses > 0 and o.created == 0 and o.ends >= seconds
    if whole and o.class == "prod" and o.cpu > 0 then
      out[#out + 1] = { node = o.on, cpu = o.cpu, curve = o.uses }
    elseif o.class == "prod" then
      others = others + 1
    end
  end
  return out, others
end

-- Sets the use that the trace has. A pod that has started again elsewhere follows its model instead.
local function use(w)
  for _, f in ipairs(w.trace.followed) do
    local curve, k = f.curve, f.next
    while curve[k] and curve[k] <= w.time do
      f.into[f.at] = curve[k + 1]
      k = k + 2
    end
    f.next = k
  end
end

--- Lets pods come and go up to now.
---@param w kubelua.SimWorld
function M.pass(w)
  local t = w.trace
  w:leave_due() -- a new pod may have the name of one that has gone
  while t.pods[t.next] and t.pods[t.next].created <= w.time do
    come(w, t.pods[t.next])
    t.next = t.next + 1
  end
  use(w)
  w:leave_due()
  w:put_workloads()
end

return M
