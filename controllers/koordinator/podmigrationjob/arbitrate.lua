-- arbitrate.lua - decides which of the waiting PodMigrationJobs may begin: the order of the jobs, the rules
-- that forbid a migration for good, and the limits that make a job wait.

local fields = require "fields"
local limits = require "podmigrationjob.limits"
local order = require "lib.order"
local pods = require "pods"
local victims = require "lownodeload.victims"
local workload = require "podmigrationjob.workload"

local M = {}

local dig = fields.dig

M.PASSED = "descheduler.koordinator.sh/passed-arbitration"
local FORCED = "descheduler.alpha.kubernetes.io/evict"
local EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
local NEVER = math.tointeger(2 ^ 31) - 1 -- as an eviction cost

-- The stage of a job: "waiting", "moving" or "ended".
function M.stage(job)
  local phase = dig(job, "status", "phase")
  if phase == "Running" then return "moving" end
  if phase ~= nil and phase ~= "" and phase ~= "Pending" then return "ended" end
  return fields.annotation(job, M.PASSED) == "true" and "moving" or "waiting"
end

-- "namespace/name" of the pod that a job migrates; nil: spec.podRef lacks one of them.
function M.pod_key(job)
  local namespace, name = dig(job, "spec", "podRef", "namespace"), dig(job, "spec", "podRef", "name")
  if namespace == nil or namespace == "" or name == nil or name == "" then return nil end
  return namespace .. "/" .. name
end

-- ---------------------------------------------------------------- running migrations

-- The pods that are migrating, by the object with a limit: { node = { [name] = { [pod key] = true } }, ... }.
local function ledger() return { all = { all = {} }, node = {}, namespace = {}, owner = {} } end

local function enter(book, job, pod)
  local key = M.pod_key(job)
  if not key then return end
  local function note(what, name)
    if name == nil or name == "" then return end
    book[what][name] = book[what][name] or {}
    book[what][name][key] = true
  end
  note("all", "all")
  note("namespace", dig(job, "spec", "podRef", "namespace"))
  note("node", dig(pod, "spec", "nodeName"))
  note("owner", pod and workload.controller_uid(pod))
end

-- The migrating pods of `name` except `key`, as a set of keys, and their number.
local function others(book, what, name, key)
  local out, n = {}, 0
  for other in pairs(book[what][name] or {}) do
    if other ~= key then out[other], n = true, n + 1 end
  end
  return out, n
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
    local _, moving = others(book, "owner", batch, nil)
    ranks[job] = { batch and -moving or 0, batch and first[batch] or i, i }
  end
  order.sort(jobs, ranks)
end

-- ---------------------------------------------------------------- forbidden

local function has_claim(pod)
  for _, volume in ipairs(dig(pod, "spec", "volumes") or {}) do
    if volume.persistentVolumeClaim ~= nil then return true end
  end
  return false
end

local function wrong_replicas(pod, settings, world)
  local load = not settings.skipCheckExpectedReplicas and workload.of(pod, world)
  if not load then return nil end
  local replicas = load.replicas
  if replicas == 1 or replicas == limits.most(replicas, settings.maxMigratingPerWorkload)
    or replicas == limits.most(replicas, settings.maxUnavailablePerWorkload) then
    return ("its whole workload (%d replica%s) would be unavailable"):format(replicas,
      replicas == 1 and "" or "s")
  end
end

-- Why a pod must never be migrated; nil: it may be.
function M.forbidden(pod, settings, world)
  if fields.annotation(pod, FORCED) ~= nil then return nil end
  if not victims.chosen(pod, { evictableNamespaces = settings.namespaces }) then
    return "its namespace is excluded"
  end
  if pods.cost(pod, EVICTION_COST) == NEVER then
    return "its eviction cost is the highest"
  end
  local fine, why = victims.evictable(pod, settings)
  if not fine then return why end
  if settings.ignorePvcPods and has_claim(pod) then return "it has a volume claim" end
  local selector, threshold = settings.labelSelector, settings.priorityThreshold
  if selector and not fields.selects(selector, dig(pod, "metadata", "labels") or {}) then
    return "its labels do not match those selected for migration"
  end
  local priority = dig(pod, "spec", "priority") or 0
  if (threshold or 0) > 0 and not settings.evictSystemCriticalPods and priority >= threshold then
    return ("its priority %d is not below %d"):format(priority, threshold)
  end
  return wrong_replicas(pod, settings, world)
end

-- ---------------------------------------------------------------- held

local LIMITS = {
  { "all", "maxMigratingGlobally", function() return "all" end },
  { "node", "maxMigratingPerNode", function(pod) return dig(pod, "spec", "nodeName") end },
  { "namespace", "maxMigratingPerNamespace", function(pod) return pod.metadata.namespace end },
}

-- Why the migration of a pod has to wait; nil: it may begin.
function M.held(pod, settings, world, book)
  if fields.annotation(pod, FORCED) ~= nil then return nil end
  local key = pods.key(pod)
  for _, limit in ipairs(LIMITS) do
    local what, setting, name_of = limit[1], limit[2], limit[3]
    local most, name = settings[setting] or 0, name_of(pod)
    local _, moving = others(book, what, name or "", key)
    if most > 0 and name and moving >= most then
      return ("%d pods move already, %s is %d"):format(moving, setting, most)
    end
  end

  local load = workload.of(pod, world)
  if not load then return nil end
  local away, moving = others(book, "owner", load.uid, key)
  local most = limits.most(load.replicas, settings.maxMigratingPerWorkload)
  if moving > 0 and moving >= most then
    return ("%d pods of its workload are migrating already, maxMigratingPerWorkload is %d")
      :format(moving, most)
  end
  local n = moving
  for _, other in ipairs(load.pods) do
    local name = pods.key(other)
    if not workload.available(other) and not away[name] then away[name], n = true, n + 1 end
  end
  most = limits.most(load.replicas, settings.maxUnavailablePerWorkload)
  if n >= most then
    return ("%d pods of its workload are unavailable already, maxUnavailablePerWorkload is %d")
      :format(n, most)
  end
end

-- ---------------------------------------------------------------- one pass

-- jobs: all of the cluster; world: as in workload.lua. Returns a list of { job, verdict = "passed", "failed"
-- or "waits", why } for the waiting jobs, in their order. A job without a pod passes: its first step fails
-- with its own reason.
function M.pass(jobs, settings, world)
  local book, waiting, pod_of, out = ledger(), {}, {}, {}
  for _, job in ipairs(jobs) do
    local stage, key = M.stage(job), M.pod_key(job)
    if stage ~= "ended" then
      pod_of[job] = key and world.get(workload.POD, dig(job, "spec", "podRef", "namespace"),
        dig(job, "spec", "podRef", "name")) or nil
      if stage == "moving" then enter(book, job, pod_of[job]) else waiting[#waiting + 1] = job end
    end
  end
  M.sort(waiting, pod_of, book)
  for i, job in ipairs(waiting) do
    local pod, verdict = pod_of[job], "passed"
    local never = pod and M.forbidden(pod, settings, world)
    local later = pod and not never and M.held(pod, settings, world, book)
    if never then verdict = "failed" elseif later then verdict = "waits" end
    if verdict == "passed" then enter(book, job, pod) end
    out[i] = { job = job, verdict = verdict, why = never or later or nil }
  end
  return out
end

return M
