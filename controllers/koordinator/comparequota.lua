-- comparequota.lua - runs the elastic quotas' policy beside koord-scheduler and reports where they disagree:
-- it compares runtime, requests and use on the quotas with the policy's results for the same pods and nodes.
-- No quota is written. The ConfigMap koordinator-system/koordinator-compare-quota has the report, and the
-- inputs of disagreements as cases for `make fixtures`.
--
--   kubelua run controllers/koordinator/comparequota.lua

local kube = require "kubelua"
local compare = require "compare.quota"
local forest = require "elasticquota.forest"
local inputs = require "elasticquota.inputs"
local lasting = require "compare.lasting"
local quota = require "elasticquota.quota"
local report = require "compare.report"
local whole = require "lib.whole"

local REPORT = "koordinator-compare-quota"

local read = inputs.reader() -- of the one worker

return whole.controller {
  name = "compare-quota",
  reads = { quota.KIND, inputs.POD, inputs.NODE },
  fields = inputs.FIELDS,
  every = "60s",
  params = kube.merge(inputs.PARAMS, {
    patienceSeconds = 60, -- younger disagreements are not reported: koord-scheduler writes once a second
  }),

  reconcile = function(_, ctx)
    local known = read(ctx)
    local infos = forest.calculate(known.index, known.pods, known.total, ctx.params)
    local found = lasting.look(ctx, compare.disagreements(known.objects, infos))
    local cases = compare.cases(known, ctx.params, found)
    report.write(ctx, REPORT, report.text(found, #known.objects, "quotas"), { ["elastic_quota.json"] =
      #cases > 0 and kube.encode { calc = "elastic_quota", cases = cases } or nil })
  end,
}
