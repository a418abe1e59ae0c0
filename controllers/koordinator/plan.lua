-- plan.lua - runs the calculations for one node, in Koordinator's order, and merges their results:
--   { resources = { name = quantity }, resets = { name = true }, zones = { zone = { name = quantity } },
--     annotations = { name = text }, labels = { name = text },
--     messages = { name = function that returns a text } }
-- A failed calculation is reported by name; the results of the others are used.

local batchresource = require "batchresource"
local cpunormalization = require "cpunormalization"
local devices = require "devices"
local midresource = require "midresource"
local pods = require "pods"
local resourceamplification = require "resourceamplification"

local M = {}

local STEPS = {
  { name = "cpu normalization", calculate = cpunormalization.calculate },
  { name = "resource amplification", calculate = resourceamplification.calculate },
  { name = "mid resource", calculate = midresource.calculate },
  { name = "batch resource", calculate = batchresource.calculate },
  { name = "devices", calculate = devices.calculate },
}

local function both(one, other)
  local out = {}
  for name, value in next, one do out[name] = value end
  for name, value in next, other do out[name] = value end
  return out
end

-- A part of which one result alone says something is the table of that result.
---@return table<string, any>
local function gather(results)
  local out = {}
  for i = 1, #results do
    for part, said in next, results[i] do
      local before = out[part]
      if not before or next(before) == nil then
        out[part] = said
      elseif next(said) ~= nil then
        out[part] = both(before, said)
      end
    end
  end
  return { resources = out.resources or {}, resets = out.resets or {}, zones = out.zones or {},
    annotations = out.annotations or {}, labels = out.labels or {}, messages = out.messages or {} }
end

-- given: strategy, node, nodeMetric, pods, now, and, where there are some, nodeResourceTopology, device,
-- sync_gpu_shared, cpuNormalization, resourceAmplification. Returns the plan and a list of "calculation: why
-- it failed". The calculations share the facts of the pods, and what is remembered under the node's name.
---@return table<string, any>, string[]
function M.calculate(given)
  local place, list = given.node and given.node.metadata.name, given.pods
  local input = {
    strategy = given.strategy, node = given.node, nodeMetric = given.nodeMetric, now = given.now,
    pods = list, facts = list and pods.facts(list, place), place = place,
    nodeResourceTopology = given.nodeResourceTopology, device = given.device,
    sync_gpu_shared = given.sync_gpu_shared, cpuNormalization = given.cpuNormalization,
    resourceAmplification = given.resourceAmplification,
  }
  local results, failed = {}, {}
  for i = 1, #STEPS do
    local result, why = STEPS[i].calculate(input)
    if result then
      results[#results + 1] = result
    else
      failed[#failed + 1] = STEPS[i].name .. ": " .. why
    end
  end
  return gather(results), failed
end

-- The plan of a node without colocation: mid and batch resources are removed. Device resources stay.
function M.reset(message) return gather { midresource.reset(message), batchresource.reset(message) } end

return M
