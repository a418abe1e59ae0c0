-- demo.lua - the agents of the demo cluster as a controller: every node's metric is renewed every few
-- seconds, except where the agent has stopped.

local kube = require "kubelua"
local cluster = require "cluster"

local PERIOD = 5 -- seconds

local loaded = {} -- node name -> its NodeMetric when it was first seen

return kube.controller {
  name = "demo-agents",
  resource = "slo.koordinator.sh/v1alpha1/NodeMetric",

  reconcile = function(metric, ctx)
    if cluster.silent(metric) or not metric("status.nodeMetric") then return end
    local name, now = metric.metadata.name, ctx:now()
    local reported = metric("status.updateTime")
    local due = reported and kube.time(reported):unix() + PERIOD - now:unix() or 0
    if due > 0 then return due end

    loaded[name] = loaded[name] or metric
    local status = cluster.touch(loaded[name], kube.format_time(now), now:unix() // PERIOD)
    ctx:patch_status(metric, function(m) m.status = status end)
    return PERIOD
  end,
}
