-- nodeslo.lua - Koordinator's NodeSLO controller: creates a NodeSLO for each node, whose spec tells the
-- node's agent when to suppress, evict and burst. The policy is nodeslo/strategy.lua.
--
--   kubelua run controllers/koordinator/nodeslo.lua

local kube = require "kubelua"
local pernode = require "lib.pernode"
local sloconfig = require "sloconfig"
local strategy = require "nodeslo.strategy"

local upstream -- of the worker's runs

local function sync(known, config_map) return strategy.sync(known, config_map, upstream) end

local read = sloconfig.reader(strategy.new(), sync, kube.shared, "strategies")

return pernode.controllers {
  name = "nodeslo",
  kind = "slo.koordinator.sh/v1alpha1/NodeSLO",
  params = { upstream = "main" }, -- or "v1.8.0"
  same = strategy.same,
  desired = function(node, old, ctx)
    upstream = ctx.params.upstream
    local spec, missing = strategy.spec(read(ctx), node, old)
    for _, why in ipairs(missing) do ctx.log:warn(why) end
    return spec
  end,
}
