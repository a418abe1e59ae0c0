-- peakmid.lua - mid resources from our own prediction instead of the agent's prodReclaimable: the requests of
-- prod pods less their predicted peak.

local amounts = require "amounts"
local fields = require "fields"
local history = require "variations.history"
local lists = require "lib.lists"
local metric = require "metric"
local mid = require "midresource"
local pods = require "pods"
local predictors = require "variations.predictors"

local PREDICTOR = predictors.n_sigma(5)

local original = mid.calculate

local function reclaimable(input)
  local asked, used, reported = amounts.new(), amounts.new(), metric.reports(input.nodeMetric)
  for _, facts in ipairs(input.facts or pods.facts(input.pods)) do
    if mid.is_prod(facts) then
      local own, at = facts.request, reported.at[facts.key]
      asked, used = amounts.add(asked, own),
        amounts.add(used, at and amounts.new(reported.cpu[at], reported.memory[at]) or own)
    end
  end
  local peak = history.peak("mid/" .. input.node.metadata.name, used, input.now, PREDICTOR)
  return amounts.floor0(amounts.sub(asked, peak))
end

function mid.calculate(input)
  if not (input.strategy and input.node and input.pods and input.nodeMetric) then return original(input) end
  local left, copy = reclaimable(input), lists.copy(input)
  copy.nodeMetric = fields.merge(input.nodeMetric,
    { status = { prodReclaimableMetric = { resource = {
    resources = { cpu = left.cpu .. "m", memory = tostring(amounts.bytes(left.memory)) } } } } })
  return original(copy)
end
