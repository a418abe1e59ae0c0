-- demo.lua - the agents of the demo cluster as a controller: every node's metric is renewed every few seconds, except where
-- the agent fell silent.

local kube = require "kubelua"
local cluster = require "cluster"

local PERIOD = 5 -- seconds

local loaded = {} -- node name -> its NodeMetric as it was when we first saw it

return kube.controller {
  name = "demo-agents",
  resource = "slo.koordinator.sh/v1alpha1/NodeMetric",

  reconcile = function(metric, ctx)
    if cluster.silent(metric) then return end
    local name, now = metric.metadata.name, ctx:now()
    loaded[name] = loaded[name] or metric
    local seconds = now:unix()
    if metric.status.updateTime and seconds - kube.time(metric.status.updateTime):unix() < PERIOD then return PERIOD end
    local status = cluster.touch(loaded[name], tostring(now), seconds // PERIOD)
    ctx:patch_status(metric, function(m) m.status = status end)
    return PERIOD
  end,
}
