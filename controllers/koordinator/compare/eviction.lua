-- eviction.lua - where the pods that the original has moved differ from those that a pass of ours would move,
-- in the same cluster, with every node that is used too much counted as such at once.

local balance = require "lownodeload.balance"
local case = require "compare.case"
local fields = require "fields"
local kube = require "kubelua"
local measure = require "lownodeload.load"
local pods = require "pods"

local M = {}

local NODES = 100 -- the most nodes of a case

-- The settings without patience: the original has already waited.
local function at_once(settings)
  local out = fields.copy(settings)
  out.anomalyCondition = { consecutiveAbnormalities = 1 }
  for _, pool in ipairs(out.nodePools or {}) do pool.anomalyCondition = nil end
  return out
end

-- "cpu 52 % of at most 75 %", before anything moved.
local function usage_of(load, settings, world)
  local was = measure.loads({ load.node }, world.pods_on, world.metrics, load.high,
    settings.nodeMetricExpirationSeconds, world.now)[1]
  local parts = {}
  for i, name in ipairs(fields.names(load.high)) do
    local all = load.allocatable[name] or 0
    local function percent(n) return all == 0 and 0 or 100 * n // all end
    parts[i] = ("%s %d %% of at most %d %%"):format(name, percent(was.usage[name]), percent(load.high[name]))
  end
  return table.concat(parts, ", ")
end

-- The load of a node and the last pool that has it, or nil.
local function load_of(results, node)
  for i = #results, 1, -1 do
    for _, load in ipairs(results[i].loads) do
      if load.name == node then return load, results[i] end
    end
  end
end

local function is_in(list, load)
  for _, other in ipairs(list) do
    if other == load then return true end
  end
  return false
end

-- Why our policy leaves a pod of the original in place: the deciding rule, and its figures.
local function refusal(pod, results, moved, settings, world)
  local may, why = world.evictable(pod)
  if not may then return "pod", why or "the settings leave it out" end
  local load, result = load_of(results, pod.spec.nodeName)
  if not load then return "node", "it is in no pool, or its agent is silent" end
  if not is_in(result.classes.high, load) and not is_in(result.classes.prodHigh, load) then
    return "node", usage_of(load, settings, world)
  end
  if moved[load.name] then return "order", "here go " .. table.concat(moved[load.name], ", ") end
  return "room", "no node takes it"
end

--- theirs: the pods that the original has just decided to move; world: as of balance.all, with an
--- evictable(pod) that also says why not. Returns two lists of { object, name, theirs, ours, reason, why }:
--- what only the original moves, and what only ours would.
function M.judge(theirs, settings, world)
  local here, moved, there = {}, {}, {}
  local results = balance.all(at_once(settings), fields.merge(world, { detectors = { node = {}, prod = {} },
    move = function(move)
      here[#here + 1] = move
      moved[move.node] = moved[move.node] or {}
      table.insert(moved[move.node], pods.key(move.pod))
    end }))
  local only_there, only_here, ours = {}, {}, {}
  for _, move in ipairs(here) do ours[pods.key(move.pod)] = true end
  for _, pod in ipairs(theirs) do
    local key = pods.key(pod)
    there[key] = true
    if not ours[key] then
      local name, why = refusal(pod, results, moved, settings, world)
      only_there[#only_there + 1] = { object = key, name = name, theirs = "moves", ours = "stays",
        reason = "only there", why = why }
    end
  end
  for _, move in ipairs(here) do
    local key = pods.key(move.pod)
    if not there[key] then
      only_here[#only_here + 1] = { object = key, name = "node " .. move.node, theirs = "stays",
        ours = "moves", reason = "only here", why = move.reason }
    end
  end
  return only_there, only_here
end

-- ---------------------------------------------------------------- cases

local function names_of(list)
  local out = {}
  for i, pod in ipairs(list) do out[i] = pods.key(pod) end
  table.sort(out)
  return kube.array(out)
end

--- A case of spec/fixtures/koordinator that expects the original's pods; nil in a cluster too large for one.
function M.case(theirs, settings, world)
  if #world.nodes > NODES then return nil end
  local input = { args = at_once(settings), passes = 1, now = tostring(kube.time(world.now)), nodes = {},
    pods = {}, nodeMetrics = {} }
  for _, node in ipairs(world.nodes) do
    local name = node.metadata.name
    input.nodes[#input.nodes + 1] = case.bare(node)
    input.nodeMetrics[#input.nodeMetrics + 1] = case.bare(world.metrics[name])
    for _, pod in ipairs(world.pods_on[name] or {}) do input.pods[#input.pods + 1] = case.bare(pod) end
  end
  table.sort(input.pods, function(a, b) return pods.key(a) < pods.key(b) end)
  for _, name in ipairs { "nodes", "pods", "nodeMetrics" } do input[name] = kube.array(input[name]) end
  return { name = "moved at " .. input.now, source = case.SOURCE, input = input,
    expect = { moved = names_of(theirs) } }
end

return M
