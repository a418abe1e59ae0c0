-- eviction.lua - compares the pods that koord-descheduler (the original) moved with those that one pass of
-- our policy would move in the same cluster. Our pass counts a node above a threshold as overutilized at
-- once: the original has waited already.

local balance = require "lownodeload.balance"
local case = require "compare.case"
local fields = require "fields"
local kube = require "kubelua"
local measure = require "lownodeload.load"
local pods = require "pods"

local M = {}

local NODES = 100 -- the most nodes of a case

-- The settings with a single observation above a threshold as enough.
local function at_once(settings)
  local out = fields.copy(settings)
  out.anomalyCondition = { consecutiveAbnormalities = 1 }
  for _, pool in ipairs(out.nodePools or {}) do pool.anomalyCondition = nil end
  return out
end

-- The usage of a node before any move: "cpu 52 % (threshold 75 %)".
local function usage_of(load, settings, world)
  local was = measure.loads({ load.node }, world.pods_on, world.metrics, load.high,
    settings.nodeMetricExpirationSeconds, world.now)[1]
  local parts = {}
  for i, name in ipairs(fields.names(load.high)) do
    local all = load.allocatable[name] or 0
    local function percent(n) return all == 0 and 0 or 100 * n // all end
    parts[i] = ("%s %d %% (threshold %d %%)"):format(name, percent(was.usage[name]), percent(load.high[name]))
  end
  return table.concat(parts, ", ")
end

-- The load of a node, and the result of the last pool with that node; or nil.
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

-- Why our policy does not move a pod that the original moves: the name of the rule, and the reason in words.
-- refused: why no job may be made for it, or nil.
local function refusal(pod, refused, results, moved, settings, world)
  if refused then return "pod", refused end
  local load, result = load_of(results, pod.spec.nodeName)
  if not load then return "node", "its node is in no pool, or has no recent NodeMetric" end
  if not is_in(result.classes.high, load) and not is_in(result.classes.prodHigh, load) then
    return "node", usage_of(load, settings, world)
  end
  if moved[load.name] then return "order", "our pass moves " .. table.concat(moved[load.name], ", ") end
  return "room", "no other node fits"
end

--- theirs: the pods that the original has just decided to move; world: nodes, pods_on, metrics and now as for
--- balance.all, and gate, a filter (podmigrationjob/filter.lua) without the jobs of `theirs`; our moves are
--- counted in it. Returns two lists of { object, name, theirs, ours, reason, why }: the pods that only the
--- original moves, and those that only our pass would move.
function M.judge(theirs, settings, world)
  local here, moved, there, refused = {}, {}, {}, {}
  -- Our own moves of the pass are no reason against a pod.
  for _, pod in ipairs(theirs) do refused[pod] = world.gate.refused(pod) end
  local results = balance.all(at_once(settings), fields.merge(world, { detectors = { node = {}, prod = {} },
    evictable = function(pod, fact) return not world.gate.refused(pod, fact) end,
    move = function(move)
      if world.gate.refused(move.pod, move.fact) then return false end
      here[#here + 1] = move
      world.gate.note(move.pod)
      moved[move.node] = moved[move.node] or {}
      table.insert(moved[move.node], pods.key(move.pod))
      return true
    end }))
  local only_there, only_here, ours = {}, {}, {}
  for _, move in ipairs(here) do ours[pods.key(move.pod)] = true end
  for _, pod in ipairs(theirs) do
    local key = pods.key(pod)
    there[key] = true
    if not ours[key] then
      local name, why = refusal(pod, refused[pod], results, moved, settings, world)
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

--- A case for spec/fixtures/koordinator that expects the pods of the original, after a judgement; nil: the
--- cluster has more than NODES nodes. world has, besides, jobs, the list of those under way, and loads, the
--- workloads that gate has read, by the uid of the pods' controller.
function M.case(theirs, settings, world)
  if #world.nodes > NODES then return nil end
  local input = { args = at_once(settings), passes = 1, now = tostring(kube.time(world.now)), nodes = {},
    pods = {}, nodeMetrics = {}, jobs = {}, workloads = {} }
  for i, job in ipairs(world.jobs) do input.jobs[i] = case.bare(job) end
  for uid, load in pairs(world.loads) do
    input.workloads[#input.workloads + 1] = { controller = uid, replicas = load.replicas,
      unavailable = kube.array(fields.names(load.unavailable)) }
  end
  table.sort(input.workloads, function(a, b) return a.controller < b.controller end)
  for _, node in ipairs(world.nodes) do
    input.nodes[#input.nodes + 1] = case.bare(node)
    input.nodeMetrics[#input.nodeMetrics + 1] = case.bare(world.metrics[node.metadata.name])
  end
  -- Those of nodes that are not ready, too: jobs that move them count for the limits.
  for _, list in pairs(world.pods_on) do
    for _, pod in ipairs(list) do input.pods[#input.pods + 1] = case.bare(pod) end
  end
  table.sort(input.pods, function(a, b) return pods.key(a) < pods.key(b) end)
  for _, name in ipairs { "nodes", "pods", "nodeMetrics", "jobs", "workloads" } do
    input[name] = kube.array(input[name])
  end
  return { name = "moved at " .. input.now, source = case.SOURCE, input = input,
    expect = { moved = names_of(theirs) } }
end

return M
