-- jobs.lua - plays the Job controller: as many pods at a time as a Job wants, until enough have succeeded or
-- too many have failed. Failure and success policies are not looked at.

local kube = require "kubelua"
local conditions = require "lib.conditions"
local pods = require "lib.pods"

local POD = "v1/Pod"
local INDEX = "batch.kubernetes.io/job-completion-index"
-- A failed pod is replaced after this time, which doubles with each failure.
local BACKOFF, BACKOFF_MOST = 10, 600

local function finished(job) return conditions.holds(job, "Complete") or conditions.holds(job, "Failed") end

local function index_of(pod) return math.tointeger(tonumber(pod("metadata.annotations", INDEX))) end

local function look(job, ctx)
  local n = { active = {}, ready = 0, succeeded = 0, failed = 0, restarts = 0, leaving = 0,
    done = {}, busy = {} } -- indexes
  for _, pod in ipairs(ctx:claim(POD, { labels = job.spec.selector })) do
    local phase, index = pod("status.phase"), index_of(pod)
    if phase == "Succeeded" then
      n.succeeded = n.succeeded + 1
      if index then n.done[index] = true end
    elseif phase == "Failed" then
      n.failed = n.failed + 1
      local c = pod("status.containerStatuses") or {}
      local at = c[1] and c[1]("state.terminated.finishedAt") or pod.metadata.creationTimestamp
      n.failed_at = math.max(n.failed_at or 0, kube.time(at):unix())
    elseif pod("metadata.deletionTimestamp") then
      n.leaving = n.leaving + 1
    else
      n.active[#n.active + 1] = pod
      if pods.is_ready(pod) then n.ready = n.ready + 1 end
      if index then n.busy[index] = true end
      for _, c in ipairs(pod("status.containerStatuses") or {}) do
        n.restarts = n.restarts + c.restartCount
      end
    end
  end
  if job("spec.completionMode") == "Indexed" then
    n.succeeded = 0
    for _ in pairs(n.done) do n.succeeded = n.succeeded + 1 end
  end
  n.succeeded = math.max(n.succeeded, job("status.succeeded") or 0) -- deleted pods still count
  n.failed = math.max(n.failed, job("status.failed") or 0)
  return n
end

-- What ends the Job: type, reason and message of a condition, or nil and seconds until a deadline.
local function verdict(job, n, ctx)
  if job("spec.completions") and n.succeeded >= job.spec.completions
    or not job("spec.completions") and n.succeeded > 0 and #n.active == 0 then
    return { "Complete", "CompletionsReached", "Reached expected number of succeeded pods" }
  end
  if n.failed + n.restarts > job.spec.backoffLimit then
    return { "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit" }
  end
  local deadline, started = job("spec.activeDeadlineSeconds"), job("status.startTime")
  local left = deadline and deadline - (started and ctx:now() - kube.time(started) or 0)
  if left and left <= 0 then
    return { "Failed", "DeadlineExceeded", "Job was active longer than specified deadline" }
  end
  return nil, left
end

local function make_pod(job, index, ctx)
  local name = job.metadata.name .. "-"
  local own = { apiVersion = "v1", kind = "Pod", metadata = { generateName = name,
    namespace = job.metadata.namespace } }
  if index then
    own.metadata.generateName = name .. index .. "-"
    own.metadata.annotations = { [INDEX] = tostring(index) }
    own.metadata.labels = { [INDEX] = tostring(index) }
    own.spec = { hostname = name .. index }
  end
  local pod = kube.from_template(job.spec.template, own)
  for _, c in ipairs(index and pod.spec.containers or {}) do
    c.env = c.env or {}
    table.insert(c.env, { name = "JOB_COMPLETION_INDEX", value = tostring(index) })
  end
  return ctx:create(pod)
end

local function remove(list, from, ctx)
  for _ = from, #list do pods.delete(table.remove(list), ctx) end
end

-- Creates the missing pods; returns the seconds until a failed one is replaced.
local function fill(job, n, ctx)
  local wanted = job.spec.parallelism
  if job("spec.completions") then
    wanted = math.min(wanted, job.spec.completions - n.succeeded)
  elseif n.succeeded > 0 then
    wanted = math.min(wanted, #n.active)
  end
  remove(n.active, wanted + 1, ctx)
  if #n.active >= wanted then return end
  if n.failed_at then
    local pause = math.min(BACKOFF_MOST, BACKOFF << math.min(n.failed - 1, 6))
    local left = n.failed_at + pause - ctx:now():unix()
    if left > 0 then return left end
  end
  local index = job("spec.completionMode") == "Indexed" and 0 or nil
  while #n.active < wanted do
    while index and (n.done[index] or n.busy[index]) do index = index + 1 end
    if index then n.busy[index] = true end
    n.active[#n.active + 1] = make_pod(job, index, ctx)
  end
end

-- "0-2,4"
local function ranges(done, completions)
  local parts, from = {}, nil
  for i = 0, completions do
    if done[i] and not from then from = i end
    if not done[i] and from then
      parts[#parts + 1] = i - 1 > from and ("%d-%d"):format(from, i - 1) or tostring(from)
      from = nil
    end
  end
  return table.concat(parts, ",")
end

local function report(job, n, verdict_of, ctx)
  local now, suspended = conditions.now(ctx), job("spec.suspend") == true
  local status = { active = #n.active, ready = math.min(n.ready, #n.active), succeeded = n.succeeded,
    failed = n.failed, terminating = n.leaving, uncountedTerminatedPods = kube.object {} }
  if not suspended then status.startTime = job("status.startTime") or now end
  if job("spec.completionMode") == "Indexed" then
    status.completedIndexes = ranges(n.done, job.spec.completions)
  end
  local news = {}
  if suspended or conditions.find(job, "Suspended") then
    news[1] = { type = "Suspended", status = suspended and "True" or "False",
      reason = suspended and "JobSuspended" or "JobResumed" }
  end
  if verdict_of then
    local type, reason, message = table.unpack(verdict_of)
    local over = #n.active == 0 and n.leaving == 0
    local good = type == "Complete"
    local function add(name)
      news[#news + 1] = { type = name, status = "True", reason = reason, message = message }
    end
    add(good and "SuccessCriteriaMet" or "FailureTarget")
    if over then
      add(type)
      if good then status.completionTime = now end
      ctx:event(good and "Completed" or reason, "%s", good and "Job completed" or message)
    end
  end
  for _, c in ipairs(news) do c.lastProbeTime = now end
  if #news > 0 then status.conditions = conditions.with(job("status.conditions"), news, now) end
  ctx:patch_status(job, status)
end

return kube.controller {
  name = "simulate-jobs",
  resource = "batch/v1/Job",
  owns = { POD },
  reconcile = function(job, ctx)
    if job("metadata.deletionTimestamp") then return end
    if finished(job) then
      local ttl = job("spec.ttlSecondsAfterFinished")
      local last = conditions.find(job, "Complete") or conditions.find(job, "Failed")
      local left = ttl and ttl - (ctx:now() - kube.time(last.lastTransitionTime))
      if left and left <= 0 then ctx:delete(job, { propagation = "Background" }) end
      return left and left > 0 and left or nil
    end
    local n = look(job, ctx)
    local over, left = verdict(job, n, ctx)
    local again
    if over or job("spec.suspend") then
      n.leaving = n.leaving + #n.active
      remove(n.active, 1, ctx)
    else
      again = fill(job, n, ctx)
    end
    report(job, n, over, ctx)
    if left then again = math.min(again or math.huge, left) end
    return again
  end,
}
