-- comparedescheduler.lua - runs LowNodeLoad beside koord-descheduler and says where the two disagree: the
-- pods for which it has just made PodMigrationJobs, against those that a pass of ours would move in the same
-- cluster. No job is made. The ConfigMap koordinator-system/koordinator-compare-descheduler has the report,
-- and the inputs of disagreements as cases for `make fixtures`.
--
--   kubelua run controllers/koordinator/comparedescheduler.lua

local kube = require "kubelua"
local descheduling = require "lib.descheduling"
local eviction = require "compare.eviction"
local fields = require "fields"
local filter = require "podmigrationjob.filter"
local kept_of = require "compare.kept"
local lasting = require "compare.lasting"
local pools = require "lownodeload.pools"
local report = require "compare.report"
local whole = require "lib.whole"

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local REPORT = "koordinator-compare-descheduler"
local PLUGIN = "LowNodeLoad"

-- The uids of pods with a job that the plugin made from `since` on, and that the last look has not `seen`;
-- and the list of older jobs that go on.
local function jobs_of(ctx, since, seen)
  local new, older = {}, {}
  for job in ctx:each(descheduling.JOB) do
    local uid, made = job("spec.podRef.uid"), kube.time(job.metadata.creationTimestamp):unix()
    local trigger = job("metadata.annotations", "koordinator.sh/evict-trigger")
    if uid and trigger == PLUGIN and made >= since and not seen[uid] then
      new[uid] = true
    elseif descheduling.is_under_way(job) then
      older[#older + 1] = job
    end
  end
  return new, older
end

local function world_of(ctx, settings, jobs)
  local metrics = {}
  for metric in ctx:each(METRIC) do metrics[metric.metadata.name] = metric end
  local gate, loads = descheduling.filter(ctx, settings, jobs)
  return { nodes = descheduling.nodes(ctx), pods_on = descheduling.by_node(ctx), metrics = metrics,
    now = ctx:now():unix(), jobs = jobs, loads = loads, gate = gate }
end

local function of_uids(world, uids)
  local out = {}
  for _, node in ipairs(world.nodes) do
    for _, pod in ipairs(world.pods_on[node.metadata.name] or {}) do
      if uids[pod.metadata.uid] then out[#out + 1] = pod end
    end
  end
  return out
end

return whole.controller {
  name = "compare-descheduler",
  reads = table.move({ METRIC }, 1, 1, #descheduling.READS + 1, fields.copy(descheduling.READS)),
  indexes = descheduling.INDEXES,
  every = "10s",
  params = kube.merge(kube.merge(descheduling.PARAMS, pools.PARAMS), {
    patienceSeconds = 600, -- a pod that stays there and would go here is told after so long
    cases = 10,            -- that are kept
  }),

  reconcile = function(_, ctx)
    local memo, now, settings = ctx.memo, ctx:now():unix(), filter.settings(ctx.params)
    -- What was before the first look is another cluster by now.
    local new, older = jobs_of(ctx, memo.looked_at or now, fields.copy(memo.seen or {}))
    local world = world_of(ctx, settings, older)
    local theirs = of_uids(world, new)
    local only_there, only_here = eviction.judge(theirs, settings, world)
    local kept = kept_of.read()
    for _, one in ipairs(only_there) do kept_of.tell(kept, one) end
    if #only_there > 0 and #kept.cases < settings.cases then
      kept_of.add(kept, eviction.case(theirs, settings, world), settings.cases)
    end
    only_here = lasting.look(ctx, only_here)

    kept_of.write(kept)
    memo.looked_at, memo.seen, memo.compared = now, new, (memo.compared or 0) + #theirs
    local all = table.move(only_here, 1, #only_here, #kept.told + 1, fields.copy(kept.told))
    report.write(ctx, REPORT, report.text(all, memo.compared, "moved pods"),
      { ["low_node_load_passes.json"] = kept_of.text(kept, "low_node_load_passes") })
  end,
}
