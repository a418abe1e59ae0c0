-- descheduling.lua - the frame of controllers that look at all nodes and pods each interval, and create
-- PodMigrationJobs for the pods to move. Such a controller has one key, the namespace.
--   descheduling.controller { name, plugin, interval, reads, params,
--     pass = function(ctx, settings, cluster) }
-- params have paused, and, if the policy uses them, dryRun, evictableNamespaces and podSelectors; M.PARAMS
-- are added.
--   cluster  { nodes = list, pods_on = { [node name] = pods }, evictable = function(pod, fact),
--              move = function({ pod, fact, node, reason }) }
-- move returns whether it made a job (a dry run: would have made one); it asks once more, as the jobs before
-- count for the limits.
-- evictable returns whether a job may be made for the pod now, and if not, why (podmigrationjob/filter.lua).
-- fact: what is known of this version of the pod (pods.facts), or nil.

local arbitrate = require "podmigrationjob.arbitrate"
local fields = require "fields"
local filter = require "podmigrationjob.filter"
local kube = require "kubelua"
local pods = require "pods"
local whole = require "lib.whole"
local workload = require "podmigrationjob.workload"

local M = {}

local NODE, POD = "v1/Node", workload.POD
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
M.NODE, M.POD, M.JOB = NODE, POD, JOB

--- What the functions of this module need of a controller.
M.READS = table.move(workload.KINDS, 1, #workload.KINDS, 4, { NODE, POD, JOB })
M.INDEXES = fields.merge(workload.INDEXES,
  { [POD] = fields.merge(workload.INDEXES[POD], { node = "spec.nodeName" }) })
M.PARAMS = kube.merge(filter.PARAMS, {
  jobMode = "ReservationFirst",
  jobTTL = "5m0s",
  schedulerNames = { "koord-scheduler" }, -- those that place Reservations
})

-- The nodes that are ready, or say nothing about it.
function M.nodes(ctx)
  local out = {}
  for _, node in ipairs(ctx:list(NODE)) do
    if (workload.condition(node, "Ready") or "True") == "True" then out[#out + 1] = node end
  end
  return out
end

--- { [node name] = its pods }
function M.by_node(ctx)
  local out = {}
  for _, name in ipairs((kube.columns(ctx:list(NODE), "metadata.name"))) do
    out[name] = ctx:list(POD, { index = "node", value = name })
  end
  return out
end

function M.is_under_way(job) return arbitrate.stage(job) ~= "ended" end

local function under_way(ctx)
  local out = {}
  for job in ctx:each(JOB) do
    if M.is_under_way(job) then out[#out + 1] = job end
  end
  return out
end

--- The filter of a pass (filter.open), and the workloads that it has read. jobs: those that count.
function M.filter(ctx, settings, jobs)
  local world = workload.world(ctx)
  local load_of, loads = workload.loads(world)
  return filter.open(settings, jobs, function(job) return filter.pod_of(job, world) end, load_of), loads
end

-- The job is named after the pod's uid, so a second pass with the same decision creates no second job.
-- Returns whether it made one.
local function migrate(ctx, move, settings, o)
  local meta = move.pod.metadata
  ctx.log:info("pod %s/%s should leave node %s: %s", meta.namespace, meta.name, move.node, move.reason)
  if settings.dryRun then return false end
  local _, why = kube.try(ctx.create, ctx, { kind = JOB, name = o.name .. "-" .. meta.uid,
    annotations = { ["koordinator.sh/evict-reason"] = move.reason,
      ["koordinator.sh/evict-trigger"] = o.plugin },
    spec = { podRef = { namespace = meta.namespace, name = meta.name, uid = meta.uid },
      mode = settings.jobMode,
      ttl = settings.jobTTL } })
  if why then ctx.log:warn("no PodMigrationJob for %s/%s: %s", meta.namespace, meta.name, tostring(why)) end
  return not why
end

local function cluster_of(ctx, settings, o)
  local gate = M.filter(ctx, settings, under_way(ctx))
  return {
    nodes = M.nodes(ctx),
    pods_on = M.by_node(ctx),
    evictable = function(pod, fact)
      local why = gate.refused(pod, fact)
      return not why, why
    end,
    move = function(move)
      -- A policy has asked before other jobs were made.
      local why = gate.refused(move.pod, move.fact)
      if why then
        ctx.log:debug("pod %s stays: %s", pods.key(move.pod), why)
        return false
      end
      local made = migrate(ctx, move, settings, o)
      if made then gate.note(move.pod) end
      return made or settings.dryRun
    end,
  }
end

function M.controller(o)
  local settings -- one table, under which facts of pods keep what it says of them
  local reads = table.move(o.reads or {}, 1, #(o.reads or {}), #M.READS + 1, fields.copy(M.READS))
  return whole.controller {
    name = o.name,
    reads = reads,
    indexes = M.INDEXES,
    every = o.interval,
    params = kube.merge(M.PARAMS, o.params),

    reconcile = function(_, ctx)
      local now = ctx:now():unix()
      settings = settings or filter.settings(ctx.params)
      if settings.paused or now - (ctx.memo.last or -math.huge) < o.interval then return end
      local cluster = cluster_of(ctx, settings, o)
      if #cluster.nodes > 1 then o.pass(ctx, settings, cluster) end
      ctx.memo.last = now
    end,
  }
end

return M
