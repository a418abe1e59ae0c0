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

-- Each calculation makes these parts anew; its others may be constants.
local OWN = { resources = true, messages = true }

local function both(one, other)
  local out = {}
  for name, value in next, one do out[name] = value end
  for name, value in next, other do out[name] = value end
  return out
end

local NOTHING = {} -- constant

local function empty()
  return { resources = {}, resets = NOTHING, zones = NOTHING, annotations = NOTHING, labels = NOTHING,
    messages = NOTHING }
end

-- Adds a result to a plan. A part of which one result alone says something is the table of that result.
local function add(out, result)
  for part, said in next, result do
    local before = out[part]
    if next(before) == nil then
      if next(said) ~= nil then out[part] = said end
    elseif OWN[part] then
      for name, value in next, said do before[name] = value end
    elseif next(said) ~= nil then
      out[part] = both(before, said)
    end
  end
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
  local out, failed = empty(), {}
  for i = 1, #STEPS do
    local result, why = STEPS[i].calculate(input)
    if result then
      add(out, result)
    else
      failed[#failed + 1] = STEPS[i].name .. ": " .. why
    end
  end
  return out, failed
end

-- The plan of a node without colocation: mid and batch resources are removed. Device resources stay.
function M.reset(message)
  local out = empty()
  add(out, midresource.reset(message))
  add(out, batchresource.reset(message))
  return out
end

return M
