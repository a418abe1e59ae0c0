-- koordletpredict.lua - compares a prediction of what prod pods do not need with the prodReclaimable that the
-- agents of nodes (koordlets) report. It reports differences and changes nothing. The policy is
-- koordlet/predict.lua; its histograms are kept in a ConfigMap for each node.
--
--   kubelua run controllers/koordinator/koordletpredict.lua

local kube = require "kubelua"
local checkpoint = require "lib.checkpoint"
local fields = require "fields"
local lists = require "lib.lists"
local node_of = require "koordlet.node"
local predict = require "koordlet.predict"

local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"

local kept = checkpoint.keeper { prefix = "koordlet-predict-", load = predict.load, save = predict.save }

-- "more", "less" or nil: the agent's figure compared with ours, if they differ by more than a share of the
-- requests of prod pods.
local function apart(agent, ours, requests, percent)
  if math.abs(agent - ours) * 100 <= requests * percent then return nil end
  return agent > ours and "more" or "less"
end

-- A sentence for each resource that differs, and a text that changes only with the kind of difference.
local function compare(prediction, metric, percent)
  local agent = lists.of(fields.dig(metric, "status", "prodReclaimableMetric", "resource", "resources"))
  local said, key = {}, {}
  for _, what in ipairs(lists.names(prediction.reclaimable)) do
    local ours, part = prediction.reclaimable[what], prediction.parts[what]
    local way = apart(agent[what] or 0, ours, part.requests, percent)
    if way then
      key[#key + 1] = what .. " " .. way
      said[#said + 1] = ("%s: the agent predicts %s, its reports give %s = \z
        min(by pods %s, by classes %s) of %s requested"):format(what, lists.text(what, agent[what] or 0),
        lists.text(what, ours), lists.text(what, part.by_pods), lists.text(what, part.by_classes),
        lists.text(what, part.requests))
    end
  end
  return table.concat(said, "; "), table.concat(key, "; ")
end

return kube.controller {
  name = "koordlet-predict",
  resource = NODE,
  when = { "status.allocatable" },
  watches = { [METRIC] = "same-name" },
  indexes = { [POD] = { node = "spec.nodeName" } },
  workers = 1,
  params = {
    namespace = "koordinator-system",   -- of the checkpoints
    checkpointSeconds = 600,
    tolerancePercent = 10,              -- of the requests of prod pods
    coldStartSeconds = predict.DEFAULTS.coldStartSeconds,
    safetyMarginPercent = predict.DEFAULTS.safetyMarginPercent,
  },

  reconcile = function(node, ctx)
    local name, params = node.metadata.name, ctx.params
    local metric = ctx:get(METRIC, name)
    local updated = fields.dig(metric, "status", "updateTime")
    if not updated then return end
    local known, why = node_of.read { node = node, metric = metric,
      pods = ctx:list(POD, { index = "node", value = name }) }
    if not known then
      ctx.log:debug(why)
      return
    end
    local state = kept:state(ctx, node, params.namespace)
    if not predict.sample(state, known, metric, kube.time(updated):unix()) then return end
    kept:keep(ctx, node, params.namespace, params.checkpointSeconds)
    local prediction = predict.predict(state, known, ctx:now():unix(), params)
    local said, key = compare(prediction, metric, params.tolerancePercent)
    if key ~= (ctx.memo.told or "") and key ~= "" then ctx:event("PredictsOther", "%s", said) end
    ctx.memo.told = key
  end,
}
