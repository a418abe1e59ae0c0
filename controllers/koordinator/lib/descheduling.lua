-- descheduling.lua - the frame of controllers that look at all nodes and pods each interval, and create
-- PodMigrationJobs for the pods to move. Such a controller has one key, the namespace.
--   descheduling.controller { name, plugin, interval, reads, params,
--     pass = function(ctx, settings, cluster) }
-- params have paused, dryRun, jobMode, jobTTL, and, if the policy uses them, evictableNamespaces and
-- podSelectors.
--   cluster  { nodes = list, pods_on = { [node name] = pods }, evictable = function(pod, fact),
--              move = function({ pod, node, reason }) }; fact as for victims.may_go

local fields = require "fields"
local kube = require "kubelua"
local victims = require "lownodeload.victims"
local whole = require "lib.whole"

local M = {}

local NODE, POD = "v1/Node", "v1/Pod"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
M.NODE, M.POD, M.JOB = NODE, POD, JOB

--- The index that by_node needs.
M.INDEXES = { [POD] = { node = "spec.nodeName" } }

--- { [node name] = its pods }
function M.by_node(ctx)
  local out = {}
  for _, name in ipairs((kube.columns(ctx:list(NODE), "metadata.name"))) do
    out[name] = ctx:list(POD, { index = "node", value = name })
  end
  return out
end

function M.is_under_way(job)
  local phase = job("status.phase")
  return phase ~= "Succeeded" and phase ~= "Failed"
end

-- The uids of pods with an unfinished job.
local function under_way(ctx)
  local out = {}
  for job in ctx:each(JOB) do
    local uid = job("spec.podRef.uid")
    if uid and M.is_under_way(job) then out[uid] = true end
  end
  return out
end

-- The job is named after the pod's uid, so a second pass with the same decision creates no second job.
local function migrate(ctx, move, settings, o)
  local meta = move.pod.metadata
  ctx.log:info("pod %s/%s should leave node %s: %s", meta.namespace, meta.name, move.node, move.reason)
  if settings.dryRun then return end
  local _, why = kube.try(ctx.create, ctx, { kind = JOB, name = o.name .. "-" .. meta.uid,
    annotations = { ["koordinator.sh/evict-reason"] = move.reason,
      ["koordinator.sh/evict-trigger"] = o.plugin },
    spec = { podRef = { namespace = meta.namespace, name = meta.name, uid = meta.uid },
      mode = settings.jobMode,
      ttl = settings.jobTTL } })
  if why then ctx.log:warn("no PodMigrationJob for %s/%s: %s", meta.namespace, meta.name, tostring(why)) end
end

local function cluster_of(ctx, settings, o)
  local jobs = under_way(ctx)
  return {
    nodes = ctx:list(NODE),
    pods_on = M.by_node(ctx),
    evictable = function(pod, fact)
      return victims.may_go(pod, fact) and not jobs[pod.metadata.uid] and victims.chosen(pod, settings)
    end,
    move = function(move)
      migrate(ctx, move, settings, o)
      jobs[move.pod.metadata.uid] = true
    end,
  }
end

function M.controller(o)
  local reads = { NODE, POD, JOB }
  for _, kind in ipairs(o.reads or {}) do reads[#reads + 1] = kind end
  return whole.controller {
    name = o.name,
    reads = reads,
    indexes = M.INDEXES,
    every = o.interval,
    params = o.params,

    reconcile = function(_, ctx)
      local settings, now = fields.copy(ctx.params), ctx:now():unix()
      if settings.paused or now - (ctx.memo.last or -math.huge) < o.interval then return end
      o.pass(ctx, settings, cluster_of(ctx, settings, o))
      ctx.memo.last = now
    end,
  }
end

return M
