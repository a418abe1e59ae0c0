-- fragmentation.lua - nodes where requests for one resource are much higher than for another, so that the
-- rest of the other is unusable. From each, the pod is removed that evens it out most.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local victims = require "lownodeload.victims"

local M = {}

local dig = fields.dig

-- Pods that have ended request nothing.
local function requests_of(pods)
  local out = {}
  for _, pod in ipairs(pods) do
    local phase = dig(pod, "status", "phase")
    if phase ~= "Succeeded" and phase ~= "Failed" then
      out[#out + 1] = { pod = pod, request = lists.of(kube.requests(pod)) }
    end
  end
  return out
end

local function sum_of(requests)
  local sum = { pods = #requests }
  for _, one in ipairs(requests) do lists.accumulate(sum, one.request) end
  return sum
end

-- The imbalance: the standard deviation of requested / allocatable over the node's resources.
function M.imbalance(asked, allocatable, resources)
  local parts, sum = {}, 0.0
  for _, name in ipairs(resources) do
    local there = allocatable[name] or 0
    if there ~= 0 then
      parts[#parts + 1] = (asked[name] or 0) / there
      sum = sum + parts[#parts]
    end
  end
  if #parts == 0 then return 0.0 end
  local mean, squares = sum / #parts, 0.0
  for _, part in ipairs(parts) do squares = squares + (part - mean) ^ 2 end
  return math.sqrt(squares / #parts)
end

local function fits_elsewhere(pod, loads, own)
  for _, load in ipairs(loads) do
    if load ~= own and victims.fits(pod, load) then return true end
  end
  return false
end

-- The pod whose removal helps most, with the resulting imbalance; nil if none helps enough.
local function best(load, loads, before, input)
  local found, least = nil, before - input.minImprovementThreshold
  local requests = requests_of(load.pods)
  local asked = sum_of(requests)
  for _, one in ipairs(requests) do
    local rest = lists.sub(asked, one.request)
    rest.pods = rest.pods - 1
    local after = M.imbalance(rest, load.allocatable, input.resources)
    if after < least and input.evictable(one.pod)
      and (not input.nodeFit or fits_elsewhere(one.pod, loads, load)) then
      found, least = one.pod, after
    end
  end
  return found, least
end

-- input: nodes, pods_on, evictable; nodeSelector, nodeFit, resources, imbalanceThreshold,
-- minImprovementThreshold as in FragmentationAwareArgs. Returns a list of { pod, node, reason }.
function M.pass(input)
  local loads, moves = {}, {}
  for _, node in ipairs(input.nodes) do
    local labels = dig(node, "metadata", "labels") or {}
    if input.nodeSelector == nil or fields.selects(input.nodeSelector, labels) then
      loads[#loads + 1] = { node = node, pods = input.pods_on[node.metadata.name] or {},
        allocatable = lists.of(dig(node, "status", "allocatable")) }
    end
  end
  for _, load in ipairs(loads) do
    local before = M.imbalance(sum_of(requests_of(load.pods)), load.allocatable, input.resources)
    local pod, after
    if before > input.imbalanceThreshold then pod, after = best(load, loads, before, input) end
    if pod then
      moves[#moves + 1] = { pod = pod, node = load.node.metadata.name,
        reason = ("fragmentation reduction: stdBefore=%.4f stdAfter=%.4f gain=%.4f"):format(before, after,
          before - after) }
    end
  end
  return moves
end

return M
