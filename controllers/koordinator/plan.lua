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
  { name = "gpu devices", calculate = devices.gpu },
  { name = "rdma devices", calculate = devices.rdma },
}

---@return table<string, any>
local function gather(results)
  local out = { resources = {}, resets = {}, zones = {}, annotations = {}, labels = {}, messages = {} }
  for _, result in ipairs(results) do
    for part, said in pairs(result) do
      local all = out[part]
      for name, value in pairs(said) do all[name] = value end
    end
  end
  return out
end

-- Returns the plan and a list of "calculation: why it failed". The calculations share the facts of the pods.
---@return table<string, any>, string[]
function M.calculate(given)
  local results, failed, input = {}, {}, {}
  for name, value in pairs(given) do input[name] = value end
  input.place = input.node and input.node.metadata.name
  input.facts = input.pods and pods.facts(input.pods, input.place)
  for _, step in ipairs(STEPS) do
    local result, why = step.calculate(input)
    if result then
      results[#results + 1] = result
    else
      failed[#failed + 1] = step.name .. ": " .. why
    end
  end
  return gather(results), failed
end

-- The plan of a node without colocation: mid and batch resources are removed. Device resources stay.
function M.reset(message) return gather { midresource.reset(message), batchresource.reset(message) } end

return M
