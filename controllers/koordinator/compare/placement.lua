-- placement.lua - where the original's decision about a pod differs from ours: the node that it gave the pod,
-- against what a cycle of our plugins says of that node and of the others, in a cluster as it was then.

local case = require "compare.case"
local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local kube = require "kubelua"
local lifecycle = require "reservations.lifecycle"
local numa = require "scheduler.numa"
local pods = require "pods"
local reserved = require "scheduler.reservation.reserved"
local snapshot = require "scheduler.snapshot"

local M = {}

-- What a scheduler writes on a pod: removed, as it was absent when the pod was decided.
local WRITTEN = { deviceshare.ANNOTATION, numa.STATUS, lifecycle.ALLOCATED }

-- The pod as it was before it had a node.
function M.undecided(pod)
  local copy = case.bare(pod)
  copy.spec.nodeName = nil
  for _, name in ipairs(WRITTEN) do
    if copy.metadata.annotations then copy.metadata.annotations[name] = nil end
  end
  return copy
end

-- "20150 of LoadAwareScheduling 80, Reservation 100"
local function show(score)
  local parts = {}
  for i, name in ipairs(fields.names(score.by)) do parts[i] = ("%s %s"):format(name, score.by[name]) end
  return ("%s of %s"):format(score.total, table.concat(parts, ", "))
end

-- What our cycle says against a node for a pod: nil where it would have taken the node as well (fits, and no
-- other scores more), else { name = what decided, theirs, ours = nodes, reason, why }. theirs is nil where
-- the original found no node.
--   pod    as undecided gives it, and counted on no node of `state` (snapshot.lua)
--   args   cycle.args
function M.judge(pod, theirs, nodes, state, args)
  local result = cycle.run(pod, nodes, state, args)
  local ours = result.node and result.node.metadata.name
  if theirs == nil then
    return ours and { name = "no node there", ours = ours, reason = "only here" }
  end
  if result.prefilter then
    return { name = "no node here", theirs = theirs, reason = "only there", why = result.message }
  end
  local refused = result.refused[theirs]
  if refused then
    return { name = refused.plugin, theirs = theirs, ours = ours, reason = "refused here",
      why = table.concat(refused.reasons, ", ") }
  end
  local scores = cycle.scores(result)
  if not scores[theirs] or scores[ours].total <= scores[theirs].total then return nil end
  return { name = "score", theirs = theirs, ours = ours, reason = "another node",
    why = ("there %s; here %s"):format(show(scores[theirs]), show(scores[ours])) }
end

-- Judges pods that the original has just placed, { { pod, node = its name, at = seconds }, ... }, each in the
-- cluster of its moment: those that came later are not there, nor are those of `later`, which are not judged
-- yet. Returns a list of what judge says, with the pod's key as `object` and what `keep(pod, found)` returned
-- as `case`.
function M.judge_all(placed, later, nodes, state, args, keep)
  local out, by_name, entries = {}, {}, {}
  for _, node in ipairs(nodes) do by_name[node.metadata.name] = node end
  for _, list in ipairs { placed, later } do
    for _, one in ipairs(list) do
      local node = by_name[one.node]
      entries[one] = node and snapshot.take_out(state, one.pod, node)
    end
  end
  for _, one in ipairs(placed) do
    if entries[one] then
      local pod = M.undecided(one.pod)
      local found = M.judge(pod, one.node, nodes, state, args)
      if found then
        found.object, found.case = pods.key(pod), keep(pod, found)
        out[#out + 1] = found
      end
      snapshot.put_back(state, entries[one], by_name[one.node])
    end
  end
  for _, one in ipairs(later) do
    if entries[one] then snapshot.put_back(state, entries[one], by_name[one.node]) end
  end
  return out
end

-- ---------------------------------------------------------------- cases

local function by_node(list)
  local out = {}
  for _, object in ipairs(list or {}) do out[object.metadata.name] = object end
  return out
end

local function state_of(input)
  local on = {}
  for _, pod in ipairs(input.pods or {}) do
    on[pod.spec.nodeName] = on[pod.spec.nodeName] or {}
    table.insert(on[pod.spec.nodeName], pod)
  end
  return { now = kube.time(input.now):unix(), pods_on = on, metrics = by_node(input.nodeMetrics),
    devices = by_node(input.devices), topologies = by_node(input.topologies),
    reservations_on = reserved.index(input.reservations or {}) }
end

-- The verdict on a case's input: as judge.
function M.verdict(input, node)
  return M.judge(input.pod, node, input.nodes, state_of(input), cycle.args(input.args))
end

-- A case of spec/fixtures/koordinator that expects the original's node, with the nodes of both and what is on
-- them; nil where these alone do not make the decision (quotas, spread, pods elsewhere).
--   given  what cycle.args took
function M.case(pod, found, nodes, state, given)
  if not found.theirs then return nil end
  local input = { pod = case.bare(pod), nodes = {}, pods = {}, nodeMetrics = {}, devices = {},
    topologies = {}, reservations = {}, now = tostring(kube.time(state.now)), args = given }
  local function add(to, object) if object then to[#to + 1] = case.bare(object) end end
  for _, node in ipairs(nodes) do
    local name = node.metadata.name
    if name == found.theirs or name == found.ours then
      add(input.nodes, node)
      for _, entry in pairs(snapshot.info(state, node).pods) do add(input.pods, entry.pod) end
      add(input.nodeMetrics, state.metrics[name])
      add(input.devices, state.devices[name])
      add(input.topologies, state.topologies[name])
      for _, object in ipairs(state.reservations_on[name] or {}) do add(input.reservations, object) end
    end
  end
  table.sort(input.pods, function(a, b) return pods.key(a) < pods.key(b) end)
  local again = M.verdict(input, found.theirs)
  if not again or again.reason ~= found.reason or again.name ~= found.name then return nil end
  for name, list in pairs(input) do
    if type(list) == "table" and name ~= "pod" and name ~= "args" then input[name] = kube.array(list) end
  end
  return { name = pods.key(pod), source = case.SOURCE, input = input,
    expect = { node = found.theirs } }
end

return M
