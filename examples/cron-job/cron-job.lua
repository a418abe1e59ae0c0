-- cron-job.lua - creates Jobs on a schedule. A policy says what happens while the last one still runs; old
-- Jobs are deleted.

local kube = require "kubelua"

local JOB = "batch/v1/Job"
local AT = "examples.kubelua.dev/scheduled-at"

local function finished(job)
  for _, c in ipairs(job("status.conditions") or {}) do
    if c.status == "True" and (c.type == "Complete" or c.type == "Failed") then return c.type end
  end
end

-- The active Jobs of the list, and the finished ones, the oldest first.
local function sorted(list)
  local active, over = {}, {}
  for _, job in ipairs(list) do
    local to = finished(job) and over or active
    to[#to + 1] = job
  end
  table.sort(over, function(a, b) return a.metadata.annotations[AT] < b.metadata.annotations[AT] end)
  return active, over
end

-- The last time of the schedule that has no Job yet; nil: there is none, or its deadline has passed.
local function due(cron, now)
  local since = kube.time(cron("status.lastScheduleTime") or cron.metadata.creationTimestamp)
  local at = kube.cron(cron.spec.schedule):previous(now + 1) -- this very second counts
  local latest = cron("spec.startingDeadlineSeconds")
  if at and at > since and not (latest and now - at > latest) then return at end
end

return kube.controller {
  name = "cron-job",
  resource = "examples.kubelua.dev/v1/CronJob",
  owns = { JOB },

  reconcile = function(cron, ctx)
    local now, name = ctx:now(), cron.metadata.name
    local active, over = sorted(ctx:owned(JOB))
    for i = 1, #over - (cron("spec.keep") or 3) do ctx:delete(over[i], { propagation = "Background" }) end

    local at = not cron("spec.suspend") and due(cron, now)
    local policy, status = cron("spec.concurrencyPolicy") or "Allow", { active = #active }
    if at and not (policy == "Forbid" and #active > 0) then
      if policy == "Replace" then
        for _, job in ipairs(active) do ctx:delete(job, { propagation = "Background" }) end
      end
      -- the name contains the scheduled time, so one time never makes two Jobs
      local made, err = kube.try(ctx.create, ctx, { kind = JOB,
        name = ("%s-%d"):format(name, at:unix() // 60),
        namespace = cron.metadata.namespace, labels = { cron = name }, annotations = { [AT] = tostring(at) },
        spec = kube.copy(cron.spec.jobTemplate) })
      if not made and err.kind ~= "already_exists" then error(err, 0) end
      status.lastScheduleTime = tostring(at)
      if made then status.active = policy == "Replace" and 1 or #active + 1 end
    end
    local next_at = kube.cron(cron.spec.schedule):next(now)
    return { status = status, requeue_after = next_at and next_at - now }
  end,
}
