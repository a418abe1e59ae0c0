-- nodemetric.lua - Koordinator's NodeMetric controller: creates a NodeMetric for each node, whose spec tells
-- the node's agent what to measure. The agent writes the status. The policy is nodemetric/spec.lua.
--
--   kubelua run controllers/koordinator/nodemetric.lua

local kube = require "kubelua"
local colocation = require "colocation"
local fields = require "fields"
local pernode = require "lib.pernode"
local sloconfig = require "sloconfig"
local spec = require "nodemetric.spec"

local function sync(known, config_map)
  local cache, _, why = colocation.sync(known, config_map)
  return cache, { why }
end

local read = sloconfig.reader({ cfg = {}, available = false, errorStatus = false }, sync, kube.shared,
  "colocation")

return pernode.controllers {
  name = "nodemetric",
  kind = "slo.koordinator.sh/v1alpha1/NodeMetric",
  same = fields.equal,
  desired = function(node, old, ctx)
    local cache = read(ctx)
    if not cache.available then return nil end
    return (spec.desired(cache, node, old))
  end,
}
