-- fit.lua - Kubernetes' own plugins NodeUnschedulable, TaintToleration, NodeAffinity, NodeResourcesFit and
-- NodeResourcesBalancedAllocation. Batch and mid resources, and devices that a node counts as a whole, are
-- ordinary resources here.

local fields = require "fields"
local lists = require "lib.lists"
local nodefit = require "lib.nodefit"
local reservation = require "scheduler.reservation"
local scores = require "scheduler.scores"

local M = {}

local CORDON = { key = "node.kubernetes.io/unschedulable", effect = "NoSchedule" }
local MAX = 100

local UNKNOWN = { cordoned = true, repelling = true, disliking = true }

-- Whether a node is cordoned, and whether one has taints that repel or dislike pods: { cordoned, repelling,
-- disliking }, computed once for all pods of a state.
local function some_node(cycle)
  local infos, state = cycle.infos, cycle.state
  if not infos then return UNKNOWN end
  if state.tainted_of ~= infos then
    local some = {}
    for _, info in ipairs(infos) do
      some.cordoned = some.cordoned or nodefit.cordoned(info.node)
      for _, taint in ipairs(fields.dig(info.node, "spec", "taints") or {}) do
        some[taint.effect == "PreferNoSchedule" and "disliking" or "repelling"] = true
      end
    end
    state.tainted_of, state.tainted = infos, some
  end
  return state.tainted
end

M.unschedulable = { name = "NodeUnschedulable" }

function M.unschedulable.agrees(_, cycle) return not some_node(cycle).cordoned end

function M.unschedulable.filter(pod, info)
  if nodefit.cordoned(info.node) and not nodefit.tolerates(pod, CORDON) then
    return { "node(s) were unschedulable" }
  end
  return nil
end

M.taints = { name = "TaintToleration" }

function M.taints.agrees(_, cycle) return not some_node(cycle).repelling end

function M.taints.filter(pod, info)
  local taint = nodefit.repelling(pod, info.node)
  if not taint then return nil end
  return { ("node(s) had untolerated taint {%s: %s}"):format(taint.key, taint.value or "") }
end

function M.taints.silent(_, cycle) return not some_node(cycle).disliking end

function M.taints.score(pod, info) return nodefit.disliking(pod, info.node) end

M.taints.normalize = scores.reverse

M.affinity = { name = "NodeAffinity" }

function M.affinity.filter(pod, info)
  if nodefit.selected(pod, info.node) then return nil end
  return { "node(s) didn't match Pod's node affinity/selector" }
end

function M.affinity.agrees(pod) return nodefit.selects_all(pod) end

function M.affinity.silent(pod) return #nodefit.preferred(pod) == 0 end

function M.affinity.score(pod, info)
  local sum = 0
  for _, one in ipairs(nodefit.preferred(pod)) do
    if one.preference and nodefit.means(one.preference, info.node) then sum = sum + (one.weight or 0) end
  end
  return sum
end

M.affinity.normalize = scores.stretch

M.resources = { name = "NodeResourcesFit" }

function M.resources.prefilter(_, cycle)
  cycle.names = lists.names(cycle.request)
  return nil
end

-- Names every missing resource. A request of 0 needs nothing.
function M.resources.filter(pod, info, cycle)
  local reasons, asked, taken = {}, cycle.request, reservation.taken(pod, info, cycle)
  if taken.pods + 1 > (info.allocatable.pods or 0) then reasons[1] = "Too many pods" end
  for _, name in ipairs(cycle.names) do
    local free = (info.allocatable[name] or 0) - (taken[name] or 0)
    if asked[name] > 0 and asked[name] > free then reasons[#reasons + 1] = "Insufficient " .. name end
  end
  return #reasons > 0 and reasons or nil
end

-- The part of an amount that stays free, from 0 to 100.
local function free(used, all) return used <= all and (all - used) * MAX // all or 0 end

-- LeastAllocated over cpu and memory: the part of the node that stays free with the pod.
function M.resources.score(pod, info, cycle)
  local has, asked, taken = info.allocatable, cycle.request, reservation.taken(pod, info, cycle)
  local cpus, bytes = has.cpu or 0, has.memory or 0
  local sum, n = 0, 0
  if cpus > 0 then sum, n = free((taken.cpu or 0) + (asked.cpu or 0), cpus), 1 end
  if bytes > 0 then sum, n = sum + free((taken.memory or 0) + (asked.memory or 0), bytes), n + 1 end
  return n > 0 and sum // n or 0
end

M.balanced = { name = "NodeResourcesBalancedAllocation" }

-- A pod that requests neither cpu nor memory would leave each node as balanced as it is.
function M.balanced.silent(_, cycle)
  local asked = cycle.request
  return (asked.cpu or 0) == 0 and (asked.memory or 0) == 0
end

-- 100 minus the standard deviation, in percent, of the parts of cpu and memory that are requested with the
-- pod: of two numbers, half of their difference. A resource that the node lacks does not count.
function M.balanced.score(pod, info, cycle)
  local has, asked, taken = info.allocatable, cycle.request, reservation.taken(pod, info, cycle)
  local cpus, bytes = has.cpu or 0, has.memory or 0
  if cpus == 0 or bytes == 0 then return MAX end
  local cpu = ((taken.cpu or 0) + (asked.cpu or 0)) / cpus
  local memory = ((taken.memory or 0) + (asked.memory or 0)) / bytes
  local apart = (cpu < 1 and cpu or 1) - (memory < 1 and memory or 1)
  return (1 - (apart < 0 and -apart or apart) / 2) * MAX // 1 | 0
end

return M
