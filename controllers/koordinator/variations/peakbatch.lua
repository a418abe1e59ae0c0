-- peakbatch.lua - batch = capacity - margin - system - the predicted peak of high-priority pods, instead of
-- their current usage. It affects only the policy "usage".

local batch = require "batchresource"
local history = require "variations.history"
local lists = require "lib.lists"
local predictors = require "variations.predictors"

local PREDICTOR = predictors.maximum(predictors.n_sigma(3), predictors.percentile(0.98))

local place_of, at -- the node of the current calculation, and its time; places: the node, then its zones
local calculate, left = batch.calculate, batch.left

function batch.left(strategy, place)
  place_of.n = place_of.n + 1
  local sum = lists.copy(place.sum)
  sum.used = history.peak(("batch/%s/%d"):format(place_of.node, place_of.n), sum.used, at, PREDICTOR)
  place.sum = sum
  return left(strategy, place)
end

function batch.calculate(input)
  place_of = { node = input.node and input.node.metadata.name, n = 0 }
  at = input.now
  return calculate(input)
end
