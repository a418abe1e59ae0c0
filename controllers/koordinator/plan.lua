-- plan.lua - runs the calculations for one node, in Koordinator's order, and merges their results:
--   { resources = { name = quantity }, resets = { name = true }, zones = { zone = { name = quantity } },
--     annotations = { name = text }, labels = { name = text },
--     messages = { name = function that returns a text } }
-- A failed calculation is reported by name; the results of the others are used.

local batchresource = require "batchresource"
local cpunormalization = require "cpunormalization"
local devices = require "devices"
local midresource = require "midresource"
local nodemetric = require "metric"
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

local NOTHING = {} -- constant

local function fill(out, more)
  for name, value in next, more do out[name] = value end
  return out
end

-- Most parts may be constants. A part of which one result alone says something is the table of that result.
local function both(before, said)
  if next(said) == nil then return before end
  return before == NOTHING and said or fill(fill({}, before), said)
end

local function empty()
  -- With room for the amounts of mid and batch: a table that grows is made twice.
  return { resources = { a = nil, b = nil, c = nil, d = nil }, resets = NOTHING, zones = NOTHING,
    annotations = NOTHING, labels = NOTHING, messages = { a = nil, b = nil, c = nil, d = nil } }
end

-- Adds a result to a plan.
local function add(out, result)
  if result.resources then fill(out.resources, result.resources) end
  if result.messages then fill(out.messages, result.messages) end
  if result.resets then out.resets = both(out.resets, result.resets) end
  if result.zones then out.zones = both(out.zones, result.zones) end
  if result.annotations then out.annotations = both(out.annotations, result.annotations) end
  if result.labels then out.labels = both(out.labels, result.labels) end
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
  if input.strategy and input.nodeMetric then input.stale = nodemetric.is_stale(input) end
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
