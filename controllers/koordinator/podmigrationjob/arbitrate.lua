-- arbitrate.lua - decides which of the waiting PodMigrationJobs may begin, and in which order. filter.lua has
-- the rules that forbid a migration for good, and the limits that make a job wait.

local fields = require "fields"
local filter = require "podmigrationjob.filter"
local order = require "lib.order"
local victims = require "lownodeload.victims"
local workload = require "podmigrationjob.workload"

local M = {}

local dig = fields.dig

M.PASSED = "descheduler.koordinator.sh/passed-arbitration"

-- The stage of a job: "waiting", "moving" or "ended".
function M.stage(job)
  local phase = dig(job, "status", "phase")
  if phase == "Running" then return "moving" end
  if phase ~= nil and phase ~= "" and phase ~= "Pending" then return "ended" end
  return fields.annotation(job, M.PASSED) == "true" and "moving" or "waiting"
end

-- ---------------------------------------------------------------- order

local function is_batch(pod)
  local owner = pod and workload.controller(pod)
  return owner and owner.kind == "Job" and owner.uid or nil
end

-- { [pod] = position } of the jobs' pods in the order of eviction.
local function pod_ranks(jobs, pod_of)
  local list, rank = {}, {}
  for _, job in ipairs(jobs) do
    local pod = pod_of[job]
    if pod and not rank[pod] then
      rank[pod] = 0
      list[#list + 1] = pod
    end
  end
  victims.sort(list, { metrics = {} }, {}, {})
  for i, pod in ipairs(list) do rank[pod] = i end
  return rank
end

-- Sorts waiting jobs. First come pods of batch Jobs, by the number of the batch Job's migrating pods, the
-- most first; pods of one batch Job stay together. The rest is in LowNodeLoad's order of eviction, jobs
-- without a pod before all others, and newer jobs before older ones.
function M.sort(jobs, pod_of, book)
  local rank, ranks = pod_ranks(jobs, pod_of), {}
  for _, job in ipairs(jobs) do
    ranks[job] = { pod_of[job] and rank[pod_of[job]] or 0, -order.created(job), job.metadata.name }
  end
  order.sort(jobs, ranks)
  local first = {}
  for i, job in ipairs(jobs) do
    local batch = is_batch(pod_of[job])
    if batch then first[batch] = first[batch] or i end
    local moving = filter.moving(book, "owner", batch)
    ranks[job] = { batch and -moving or 0, batch and first[batch] or i, i }
  end
  order.sort(jobs, ranks)
end

-- ---------------------------------------------------------------- one pass

-- jobs: all of the cluster; settings: as of filter.settings; world: as in workload.lua. Returns a list of
-- { job, verdict = "passed", "failed" or "waits", why } for the waiting jobs, in their order. A job without a
-- pod passes: its first step fails with its own reason.
function M.pass(jobs, settings, world)
  local book, waiting, pod_of, out = filter.ledger(), {}, {}, {}
  local load_of = workload.loads(world)
  local function enter(job, pod)
    local key = filter.pod_key(job)
    if key then filter.enter(book, key, pod) end
  end
  for _, job in ipairs(jobs) do
    local stage = M.stage(job)
    if stage ~= "ended" then
      pod_of[job] = filter.pod_of(job, world)
      if stage == "moving" then enter(job, pod_of[job]) else waiting[#waiting + 1] = job end
    end
  end
  M.sort(waiting, pod_of, book)
  for i, job in ipairs(waiting) do
    local pod, verdict = pod_of[job], "passed"
    local load = pod and load_of(pod)
    local never = pod and filter.forbidden(pod, settings, load)
    local later = pod and not never and filter.held(pod, settings, load, book)
    if never then verdict = "failed" elseif later then verdict = "waits" end
    if verdict == "passed" then enter(job, pod) end
    out[i] = { job = job, verdict = verdict, why = never or later or nil }
  end
  return out
end

return M
