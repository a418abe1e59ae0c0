-- spec.lua - what each node's agent measures and how often: the spec of its NodeMetric, from the node's
-- colocation strategy (colocation.lua).

local colocation = require "colocation"
local fields = require "fields"

local M = {}

-- NodeMetric's field by the strategy's.
local FIELDS = {
  metricAggregateDurationSeconds = "aggregateDurationSeconds",
  metricReportIntervalSeconds = "reportIntervalSeconds",
  metricAggregatePolicy = "nodeAggregatePolicy",
  metricMemoryCollectPolicy = "nodeMemoryCollectPolicy",
}

local function policy_of(strategy)
  local policy = {}
  for from, to in pairs(FIELDS) do policy[to] = fields.copy(strategy[from]) end
  return policy
end

-- The policy of a strategy; nil and why if it has none.
function M.policy(strategy)
  local ok, wrong = colocation.valid(strategy)
  if not ok then return nil, wrong end
  if strategy.enable ~= true then return nil, "node colocation is disabled" end
  return policy_of(strategy)
end

-- cache: { cfg, available, errorStatus } of colocation.sync. With an invalid configuration the present spec
-- stays; a node without colocation is measured by the defaults. Returns the spec, and why it differs from the
-- strategy's; nil and why without a node.
function M.desired(cache, node, old)
  if node == nil then return nil, "there is no node" end
  if old and cache.errorStatus then return old end
  local policy, why = M.policy(colocation.strategy(cache.cfg, node))
  return { metricCollectPolicy = policy or policy_of(colocation.defaults()) }, why
end

return M
