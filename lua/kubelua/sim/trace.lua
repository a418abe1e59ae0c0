-- trace.lua - clusters out of published traces: nodes, and pods that come and go when the trace says so. What
-- a trace does not have is assumed, and every report says what.
--
-- A format is a module: nodes(dir, settings) gives { id, name, cpu, memory } ..., pods(dir, settings, kept,
-- share, from, to) gives { name, class, namespace, app, cpu, memory, created, ends[, on][, uses] } ... of a
-- span of time; kept: the places of the nodes that are simulated, by id; share: their share of all; on: the
-- place of its node; uses: { { second, percent of the request } ... }.

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

local FORMATS = {
  alibaba2018 = require "kubelua.sim.trace_alibaba",
  openb = require "kubelua.sim.trace_openb",
}

--- What is assumed of a trace.
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

-- A job takes its lifetime at full speed; a pod with a node is there.
local function come(w, o)
  local work = o.class == "batch" and o.ends - o.created
  local p = w:add_pod { name = o.name, namespace = o.namespace, class = o.class, app = o.app, cpu = o.cpu,
    memory = o.memory, node = o.on, work = work and work < math.huge and work or nil,
    ends = not work and o.ends < math.huge and o.ends or nil }
  if o.uses then w.trace.followed[#w.trace.followed + 1] = { p = p, uses = o.uses, next = 1 } end
end

--- Its nodes, and of a cut so many of them, evenly over the file; pods wait for their time.
---@param w kubelua.SimWorld
---@param trace { format: string, dir: string, from: number, nodes: integer? }
---@param seconds number
function M.begin(w, trace, seconds)
  local format, kept = FORMATS[trace.format], {}
  local all = format.nodes(trace.dir, w.settings)
  if #all == 0 then error(("the trace in %s has no nodes"):format(trace.dir), 0) end
  local n = math.min(trace.nodes or #all, #all)
  for k = 1, n do
    local one = all[1 + (k - 1) * #all // n]
    kept[one.id] = cluster.add_node(w, one.name, one.cpu, one.memory)
  end
  local pods = format.pods(trace.dir, w.settings, kept, n / #all, trace.from, trace.from + seconds)
  table.sort(pods, function(a, b)
    if a.created ~= b.created then return a.created < b.created end
    return a.name < b.name
  end)
  w.trace, w.uses = { format = trace.format, pods = pods, next = 1, followed = {} }, {}
end

-- What the pods use now whose use is in the trace. One that starts again elsewhere follows its model.
local function use(w)
  for _, f in ipairs(w.trace.followed) do
    while f.uses[f.next] and f.uses[f.next][1] <= w.time do
      w.uses[f.p] = w.pods.cpu[f.p] * f.uses[f.next][2] / 100
      f.next = f.next + 1
    end
  end
end

--- What comes and goes up to now.
---@param w kubelua.SimWorld
function M.pass(w)
  local t = w.trace
  while t.pods[t.next] and t.pods[t.next].created <= w.time do
    come(w, t.pods[t.next])
    t.next = t.next + 1
  end
  use(w)
  w:leave_due()
  w:put_workloads()
end

return M
