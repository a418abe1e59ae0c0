-- compareagents.lua - runs the policies of what agents are told beside koord-manager, and says where they
-- disagree: the specs of NodeSLOs and NodeMetrics that stand, against what nodeslo and nodemetric make of the
-- same inputs. Nothing of theirs is written. The ConfigMap koordinator-system/koordinator-compare-agents has
-- the report.
--
--   kubelua run controllers/koordinator/compareagents.lua

local colocation = require "colocation"
local fields = require "fields"
local lasting = require "compare.lasting"
local measure = require "nodemetric.spec"
local report = require "compare.report"
local sloconfig = require "sloconfig"
local spec = require "compare.spec"
local strategy = require "nodeslo.strategy"
local whole = require "lib.whole"

local NODE = "v1/Node"
local METRIC, SLO = "slo.koordinator.sh/v1alpha1/NodeMetric", "slo.koordinator.sh/v1alpha1/NodeSLO"
local REPORT = "koordinator-compare-agents"

local upstream -- of the worker's runs

local strategies = sloconfig.reader(strategy.new(), function(known, config_map)
  return strategy.sync(known, config_map, upstream)
end)

local collected = sloconfig.reader({ cfg = {}, available = false, errorStatus = false },
  function(known, config_map)
    local cache, _, why = colocation.sync(known, config_map)
    return cache, { why }
  end)

local function spec_of(ctx, kind, name)
  local object = ctx:get(kind, name)
  return object and (fields.copy(object("spec")) or {})
end

-- What stands and what the policy wants, of one node.
local function disagreements(node, ctx)
  local name, found = node.metadata.name, {}
  local function add(kind, theirs, ours, same)
    if ours == nil or theirs and same(theirs, ours) then return end
    for _, one in ipairs(spec.disagreements(name, kind, theirs, ours)) do found[#found + 1] = one end
  end
  local slo, metric, cache = spec_of(ctx, SLO, name), spec_of(ctx, METRIC, name), collected(ctx)
  add("NodeSLO", slo, (strategy.spec(strategies(ctx), node, slo)), strategy.same)
  if cache.available then add("NodeMetric", metric, (measure.desired(cache, node, metric)), fields.equal) end
  return found
end

return whole.controller {
  name = "compare-agents",
  reads = { NODE, METRIC, SLO, sloconfig.KIND },
  every = "60s",
  params = {
    upstream = "v1.8.0",    -- or "main": which of the two is there
    patienceSeconds = 300,  -- a disagreement that is younger is not told
  },

  reconcile = function(_, ctx)
    upstream = ctx.params.upstream
    local found, nodes = {}, ctx:list(NODE)
    for _, node in ipairs(nodes) do
      for _, one in ipairs(disagreements(node, ctx)) do found[#found + 1] = one end
    end
    report.write(ctx, REPORT, report.text(lasting.look(ctx, found), #nodes, "nodes"))
  end,
}
