-- cronjobs.lua - plays the CronJob controller: creates a Job at each time of the schedule. Every time zone
-- counts as UTC.

local kube = require "kubelua"
local conditions = require "lib.conditions"

local JOB = "batch/v1/Job"

-- Finds the unfinished Jobs and the latest success; deletes Jobs beyond the history's limits.
local function look(cron, ctx)
  local active, last = {}, cron("status.lastSuccessfulTime")
  local over = { Complete = {}, Failed = {} } ---@type table<string, kubelua.view[]>
  for _, job in ipairs(ctx:owned(JOB)) do
    local list = conditions.holds(job, "Complete") and over.Complete
      or conditions.holds(job, "Failed") and over.Failed or active
    list[#list + 1] = job
    local at = job("status.completionTime")
    if at and (last == nil or kube.time(at) > last) then last = at end
  end
  for type, list in pairs(over) do
    local limit = type == "Complete" and (cron("spec.successfulJobsHistoryLimit") or 3)
      or type == "Failed" and (cron("spec.failedJobsHistoryLimit") or 1)
    table.sort(list, function(a, b) return (a("status.startTime") or "") < (b("status.startTime") or "") end)
    for i = 1, #list - limit do ctx:delete(list[i], { propagation = "Background" }) end
  end
  return active, last
end

-- The latest time of the schedule that has passed without a Job, or nil.
local function due(cron, schedule, ctx)
  local now = ctx:now()
  local since = kube.time(cron("status.lastScheduleTime") or cron.metadata.creationTimestamp)
  local time = schedule:previous(now + 1)
  if time <= since or time > now then return nil end
  local deadline = cron("spec.startingDeadlineSeconds")
  if deadline and now - time > deadline then return nil end
  return time
end

local function start(cron, time, active, ctx)
  local policy = cron("spec.concurrencyPolicy")
  if policy == "Forbid" and #active > 0 then
    ctx:event("JobAlreadyActive",
      "Not starting job because prior execution is running and concurrency policy is Forbid")
    return
  end
  for i = policy == "Replace" and #active or 0, 1, -1 do
    ctx:delete(active[i], { propagation = "Background" })
    active[i] = nil
  end
  local seconds = math.floor(time:unix())
  local name = ("%s-%d"):format(cron.metadata.name, seconds // 60)
  local job = ctx.try:create(kube.from_template(cron.spec.jobTemplate, { kind = JOB, name = name,
    namespace = cron.metadata.namespace, annotations = {
      ["batch.kubernetes.io/cronjob-scheduled-timestamp"] = tostring(time) } }))
    or ctx.live:get(JOB, cron.metadata.namespace, name)
  if not job then error(("job %s could not be made"):format(name)) end
  active[#active + 1] = job
  ctx:event("SuccessfulCreate", "Created job %s", name)
end

local function references(jobs)
  local list = kube.array {}
  for i, job in ipairs(jobs) do
    local m = job.metadata
    list[i] = { apiVersion = "batch/v1", kind = "Job", name = m.name, namespace = m.namespace, uid = m.uid,
      resourceVersion = m.resourceVersion }
  end
  return list
end

return kube.controller {
  name = "simulate-cronjobs",
  resource = "batch/v1/CronJob",
  owns = { [JOB] = { when = { "status" } } },
  reconcile = function(cron, ctx)
    if cron("metadata.deletionTimestamp") then return end
    local active, last = look(cron, ctx)
    local ok, schedule = pcall(kube.cron, cron.spec.schedule)
    if not ok then
      ctx:warn("UnparseableSchedule", "unparseable schedule: %s: %s", cron.spec.schedule, tostring(schedule))
      return
    end
    local time = not cron("spec.suspend") and due(cron, schedule, ctx)
    if time then start(cron, time, active, ctx) end
    ctx:patch_status(cron, { active = references(active), lastSuccessfulTime = last,
      lastScheduleTime = time and tostring(time) or cron("status.lastScheduleTime") })
    if cron("spec.suspend") then return end
    return schedule:next(ctx:now()) - ctx:now()
  end,
}
