-- cycle.lua - one pod, one decision: which node, and why not the others. A cycle changes nothing that it is
-- given but state.sums, writes nothing and asks nobody, so that a scheduler, a simulator and a spec call the
-- same function.
--
--   local result = cycle.run(pod, nodes, state, args)
--   if result.node then snapshot.assume(state, pod, result.node, cycle.got(result)) end
--
-- A plugin is a table of functions, all of which are optional:
--   name
--   prefilter(pod, cycle)      nil, or why no node will do
--   filter(pod, info, cycle)   nil, or a list of reasons why this node (snapshot.info) will not do
--   score(pod, info, cycle)    0 to 100
--   normalize(scores, cycle)   changes the scores of all nodes that fit, { [node name] = score }
-- cycle is { state, args, request }, and theirs to remember in what they know of the pod.

local deviceshare = require "scheduler.deviceshare"
local fit = require "scheduler.fit"
local kube = require "kubelua"
local lists = require "lib.lists"
local loadaware = require "scheduler.loadaware"
local quota = require "scheduler.quota"
local reservation = require "scheduler.reservation"
local snapshot = require "scheduler.snapshot"

local M = {}

-- In the order in which they are asked; the first that refuses a node says why.
M.PLUGINS = { quota, fit.unschedulable, fit.taints, fit.affinity, reservation, fit.resources,
  deviceshare, loadaware }
M.WEIGHTS = { NodeResourcesFit = 1, LoadAwareScheduling = 1, DeviceShare = 1, Reservation = 5000 }

-- args: { plugins = list, weights = { [plugin] = weight }, loadaware = LoadAwareSchedulingArgs, quota,
-- deviceshare = scoringStrategy of DeviceShareArgs }, all of it optional. What is worth doing once for many
-- cycles.
function M.args(given)
  given = given or {}
  return {
    complete = true,
    plugins = given.plugins or M.PLUGINS,
    weights = given.weights or M.WEIGHTS,
    loadaware = loadaware.args(given.loadaware),
    quota = given.quota or {},
    deviceshare = given.deviceshare or deviceshare.DEFAULTS,
  }
end

-- In Kubernetes' words: how many nodes lack what.
local function explain(total, counts)
  local parts = {}
  for reason, n in pairs(counts) do parts[#parts + 1] = n .. " " .. reason end
  table.sort(parts)
  local why = #parts > 0 and ": " .. table.concat(parts, ", ") or ""
  return ("0/%d nodes are available%s."):format(total, why)
end

local function prefilter(pod, cycle)
  for _, plugin in ipairs(cycle.args.plugins) do
    local why = plugin.prefilter and plugin.prefilter(pod, cycle)
    if why then return why end
  end
  return nil
end

local function filter(pod, info, cycle)
  for _, plugin in ipairs(cycle.args.plugins) do
    local reasons = plugin.filter and plugin.filter(pod, info, cycle)
    if reasons then return { plugin = plugin.name, reasons = reasons } end
  end
  return nil
end

-- For each of the nodes the weighted sum, and what each plugin gave.
local function score(pod, infos, cycle)
  local out = {}
  for _, info in ipairs(infos) do out[info.name] = { total = 0, by = {} } end
  for _, plugin in ipairs(cycle.args.plugins) do
    local weight, scores = plugin.score and cycle.args.weights[plugin.name] or 0, {}
    if weight ~= 0 then
      for _, info in ipairs(infos) do scores[info.name] = plugin.score(pod, info, cycle) end
      if plugin.normalize then plugin.normalize(scores, cycle) end
    end
    for name, n in pairs(scores) do
      out[name].by[plugin.name] = n
      out[name].total = out[name].total + weight * n
    end
  end
  return out
end

-- nodes: list of Nodes; state: see snapshot.lua. Returns
--   { node         the Node, or nil
--     reservation  the Reservation whose room the pod gets there, or nil
--     devices      the GPUs that it gets there, as { minor, resources }
--     message      why there is no node
--     scores       { [node name] = { total, by = { [plugin] = score } } } of those that fit
--     refused      { [node name] = { plugin, reasons } } of the others }
-- Of several nodes with the best score the first by name is taken.
function M.run(pod, nodes, state, args)
  if not (args and args.complete) then args = M.args(args) end
  local cycle = { state = state, args = args, request = lists.of(kube.requests(pod)) }
  local result, counts, infos, best = { scores = {}, refused = {} }, {}, {}, nil
  local why = prefilter(pod, cycle)
  if why then
    result.message = ("0/%d nodes are available: %s."):format(#nodes, why)
    return result
  end
  for _, node in ipairs(nodes) do
    local info = snapshot.info(state, node)
    local refused = filter(pod, info, cycle)
    if refused then
      result.refused[info.name] = refused
      for _, reason in ipairs(refused.reasons) do counts[reason] = (counts[reason] or 0) + 1 end
    else
      infos[#infos + 1] = info
    end
  end
  result.scores = score(pod, infos, cycle)
  local function total(info) return result.scores[info.name].total end
  for _, info in ipairs(infos) do
    if not best or total(info) > total(best) or total(info) == total(best) and info.name < best.name then
      best = info
    end
  end
  if best then
    local room = reservation.nominate(pod, best, cycle)
    result.node, result.reservation = best.node, room and room.object
    result.devices = deviceshare.allocate(best, cycle)
  else
    result.message = explain(#nodes, counts)
  end
  return result
end

-- What the pod of a result got: { uid of the Reservation, devices }.
function M.got(result)
  return { uid = result.reservation and result.reservation.metadata.uid, devices = result.devices }
end

return M
