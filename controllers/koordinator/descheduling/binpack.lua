-- binpack.lua - the order in which pods of shrinking workloads are removed, so that whole nodes become empty:
-- first from nodes where little else runs.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local order = require "lib.order"

local M = {}

local dig = fields.dig

M.COST = "controller.kubernetes.io/pod-deletion-cost"
M.LAST = math.tointeger(2 ^ 31) - 1

local function part(pods, allocatable, name)
  local sum = 0
  for _, pod in ipairs(pods) do sum = sum + (lists.of(kube.requests(pod))[name] or 0) end
  return sum / allocatable[name]
end

-- What else runs on the node, relative to what may go: 0 means nothing else, more is worse.
local function burden(info, allocatable, weights)
  local other, target = 0.0, 0.0
  for _, name in ipairs(lists.names(weights)) do
    if (allocatable[name] or 0) > 0 then
      other = other + weights[name] * part(info.others, allocatable, name)
      target = target + weights[name] * part(info.eligible, allocatable, name)
    end
  end
  if target > 0 then return other / target end
  return other > 0 and math.huge or 0.0
end

local function size(pod, allocatable, weights)
  local sum = 0.0
  for _, name in ipairs(lists.names(weights)) do
    if (allocatable[name] or 0) > 0 then sum = sum + weights[name] * part({ pod }, allocatable, name) end
  end
  return sum
end

local function sorted_pods(info, weights)
  local rank = {}
  for _, pod in ipairs(info.eligible) do
    rank[pod] = { -size(pod, info.allocatable, weights), -order.created(pod), pod.metadata.namespace or "",
      pod.metadata.name }
  end
  order.sort(info.eligible, rank)
  return info.eligible
end

local function divide(node, input)
  local info = { node = node, eligible = {}, others = {}, skipped = {},
    allocatable = lists.of(dig(node, "status", "allocatable")) }
  for _, pod in ipairs(input.pods_on[node.metadata.name] or {}) do
    local phase = dig(pod, "status", "phase")
    if phase ~= "Succeeded" and phase ~= "Failed" then
      local target = input.target(pod)
      if target and input.evictable(pod) then
        table.insert(info.eligible, pod)
      else
        table.insert(info.others, pod)
        if target then table.insert(info.skipped, pod) end
      end
    end
  end
  return info
end

-- input: nodes, pods_on, evictable, target = function(pod): whether it is of those workloads; nodeSelector,
-- resources, resourceWeights as in ScaleDownBinPackArgs. Returns the pods { pod, node, burden } in the order
-- of their removal; and the pods of these workloads that must not go.
function M.rank(input)
  local weights, infos, rank = {}, {}, {}
  for _, name in ipairs(input.resources) do weights[name] = (input.resourceWeights or {})[name] or 1 end
  local skipped, out = {}, {}
  for _, node in ipairs(input.nodes) do
    local labels = dig(node, "metadata", "labels") or {}
    local chosen = input.nodeSelector == nil or fields.selects(input.nodeSelector, labels)
    local info = chosen and divide(node, input) or { eligible = {}, skipped = {} }
    -- Pods that must stay are returned even where no pod may go.
    table.move(info.skipped, 1, #info.skipped, #skipped + 1, skipped)
    if #info.eligible > 0 then
      infos[#infos + 1] = info
      info.burden = burden(info, info.allocatable, weights)
      rank[info] = { info.burden, #info.eligible, node.metadata.name }
    end
  end
  order.sort(infos, rank)
  for _, info in ipairs(infos) do
    for _, pod in ipairs(sorted_pods(info, weights)) do
      out[#out + 1] = { pod = pod, node = info.node.metadata.name, burden = info.burden }
    end
  end
  return out, skipped
end

return M
