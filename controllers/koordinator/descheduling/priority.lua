-- priority.lua - moves pods from expensive kinds of nodes to cheap ones that have room; or only from nodes
-- that become empty by that.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local order = require "lib.order"
local victims = require "lownodeload.victims"

local M = {}

local dig = fields.dig

-- The nodes of each level that has any; a node belongs to the first level of the order that selects it.
local function levels(input)
  local of, out = {}, {}
  for _, node in ipairs(input.nodes) do
    local labels = dig(node, "metadata", "labels") or {}
    if input.nodeSelector == nil or fields.selects(input.nodeSelector, labels) then
      for i, level in ipairs(input.evictionOrder) do
        if level.nodeSelector ~= nil and fields.selects(level.nodeSelector, labels) then
          of[i] = of[i] or { name = level.name or tostring(i), loads = {} }
          table.insert(of[i].loads, { node = node, pods = input.pods_on[node.metadata.name] or {} })
          break
        end
      end
    end
  end
  for i in ipairs(input.evictionOrder) do out[#out + 1] = of[i] end
  return out
end

local function small_first(pods)
  local rank = {}
  for _, pod in ipairs(pods) do
    local asked = lists.of(kube.requests(pod))
    rank[pod] = { asked.cpu or 0, asked.memory or 0, pod.metadata.namespace or "", pod.metadata.name }
  end
  order.sort(pods, rank)
  return pods
end

-- The first target with room for the pod, which is then taken.
local function place(pod, targets, node_fit)
  for _, load in ipairs(targets) do
    local fits = victims.fits(pod, load)
    if fits or not node_fit and victims.room(pod, load) then
      load.free = lists.sub(load.free, lists.of(kube.requests(pod)))
      load.free.pods = load.free.pods - 1
      return true
    end
  end
  return false
end

local function room_of(targets)
  local kept = {}
  for i, load in ipairs(targets) do kept[i] = load.free end
  return kept
end

local function give_back(targets, kept)
  for i, load in ipairs(targets) do load.free = kept[i] end
end

local function leave(load, level, targets, input, moves)
  for _, pod in ipairs(small_first(load.movable)) do
    if not input.nodeFit or place(pod, targets, true) then
      moves[#moves + 1] = { pod = pod, node = load.node.metadata.name,
        reason = ("evicting from %s priority resource to lower priority resource"):format(level.name) }
    end
  end
end

-- All of a node's pods, or none.
local function drain(load, level, targets, input, moves, cordons)
  local kept, name = room_of(targets), load.node.metadata.name
  for _, pod in ipairs(small_first(load.movable)) do
    if not place(pod, targets, input.nodeFit) then
      give_back(targets, kept)
      return
    end
  end
  for _, pod in ipairs(load.movable) do
    moves[#moves + 1] = { pod = pod, node = name,
      reason = ("drain node %s (sourcePriority=%s)"):format(name, level.name) }
  end
  if input.autoCordon and #load.movable > 0 then cordons[#cordons + 1] = load.node end
end

-- input: nodes, pods_on, evictable; nodeSelector, nodeFit, evictionOrder (expensive kinds first), mode
-- ("BestEffort" or "DrainNode"), autoCordon as in CustomPriorityArgs. Returns a list of { pod, node,
-- reason }, and the nodes to cordon.
function M.pass(input)
  local tiers, moves, cordons = levels(input), {}, {}
  for i = 1, #tiers - 1 do
    local targets = {}
    for k = i + 1, #tiers do table.move(tiers[k].loads, 1, #tiers[k].loads, #targets + 1, targets) end
    for _, load in ipairs(tiers[i].loads) do
      load.movable = {}
      for _, pod in ipairs(load.pods) do
        if input.evictable(pod) then table.insert(load.movable, pod) end
      end
      if input.mode == "DrainNode" then
        drain(load, tiers[i], targets, input, moves, cordons)
      else
        leave(load, tiers[i], targets, input, moves)
      end
    end
  end
  return moves, cordons
end

return M
