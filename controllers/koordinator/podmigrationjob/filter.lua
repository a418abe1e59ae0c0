-- filter.lua - which pods may be migrated at all, and which have to wait for the migrations that are under
-- way: the rules and limits of MigrationControllerArgs. Arbitration applies them to waiting jobs, and
-- descheduling policies to pods before they create jobs.
--   load  the workload of the pod: { uid, replicas, unavailable = { [pod key] = true } }, or nil; it is read
--         anew for each pass, and so has one set of settings

local fields = require "fields"
local limits = require "podmigrationjob.limits"
local pods = require "pods"
local victims = require "lownodeload.victims"
local workload = require "podmigrationjob.workload"

local M = {}

local dig = fields.dig

local FORCED = "descheduler.alpha.kubernetes.io/evict"
local EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
local NEVER = math.tointeger(2 ^ 31) - 1 -- as an eviction cost

--- As in MigrationControllerArgs. 0 means no limit, and "" the default for the size of the workload.
M.PARAMS = {
  maxMigratingGlobally = 0,
  maxMigratingPerNode = 2,
  maxMigratingPerNamespace = 0,
  maxMigratingPerWorkload = "",           -- 3 or "10%"
  maxUnavailablePerWorkload = "",
  skipCheckExpectedReplicas = false,
  namespaces = { include = {}, exclude = {} },
  labelSelector = {},
  evictLocalStoragePods = false,
  evictSystemCriticalPods = false,
  evictFailedBarePods = false,
  evictAllBarePods = false,
  ignorePvcPods = false,
  priorityThreshold = 0,
  skipEvictionGates = {},                 -- names in GATES
}

-- What a skipped gate changes in the settings. `NodeFit` changes nothing: no policy here calls that check.
local GATES = {
  MaxMigratingGlobally = { maxMigratingGlobally = 0 },
  MaxMigratingPerNode = { maxMigratingPerNode = 0 },
  MaxMigratingPerNamespace = { maxMigratingPerNamespace = 0 },
  MaxMigratingPerWorkload = { any_migrating = true },
  MaxUnavailablePerWorkload = { any_unavailable = true },
  ExpectedReplicas = { skipCheckExpectedReplicas = true },
  PVC = { ignorePvcPods = false },
  BarePods = { evictAllBarePods = true },
  LocalStorage = { evictLocalStoragePods = true },
  SystemCritical = { evictSystemCriticalPods = true },
  PriorityThreshold = { priorityThreshold = 0 },
  LabelSelector = { labelSelector = {} },
  Namespaces = { namespaces = {} },
  NodeFit = {},
}

--- A copy of a controller's params, as the other functions take them: without the skipped gates.
function M.settings(params)
  local out = fields.copy(params)
  for _, name in ipairs(out.skipEvictionGates or {}) do
    local changes = GATES[name]
    if not changes then
      error(("skipEvictionGates: unknown gate %q; there are %s"):format(name,
        table.concat(fields.names(GATES), ", ")), 0)
    end
    for key, value in pairs(changes) do out[key] = value end
  end
  return out
end

-- "namespace/name" of the pod that a job migrates; nil: spec.podRef lacks one of them.
function M.pod_key(job)
  local namespace, name = dig(job, "spec", "podRef", "namespace"), dig(job, "spec", "podRef", "name")
  if namespace == nil or namespace == "" or name == nil or name == "" then return nil end
  return namespace .. "/" .. name
end

-- The pod of a job, or nil. world: as in workload.lua.
function M.pod_of(job, world)
  return M.pod_key(job) and world.get(workload.POD, dig(job, "spec", "podRef", "namespace"),
    dig(job, "spec", "podRef", "name")) or nil
end

-- ---------------------------------------------------------------- migrations under way

-- The pods that are migrating, by the object with a limit: { node = { [name] = { n, has = { [pod key] =
-- true } } }, ... }.
function M.ledger() return { all = {}, node = {}, namespace = {}, owner = {} } end

local function note(book, what, name, key)
  if name == nil or name == "" then return end
  local entry = book[what][name] or { n = 0, has = {} }
  book[what][name] = entry
  if not entry.has[key] then entry.n, entry.has[key] = entry.n + 1, true end
end

-- Counts the pod with this key. pod: nil if it is gone.
function M.enter(book, key, pod)
  note(book, "all", "all", key)
  note(book, "namespace", key:match "^[^/]*", key)
  note(book, "node", dig(pod, "spec", "nodeName"), key)
  note(book, "owner", pod and workload.controller_uid(pod), key)
end

-- The number of migrating pods of `name`, except the pod with that key.
function M.moving(book, what, name, key)
  local entry = name and book[what][name]
  if not entry then return 0, {} end
  return entry.n - (entry.has[key] and 1 or 0), entry.has
end

-- ---------------------------------------------------------------- forbidden

local function has_claim(pod)
  for _, volume in ipairs(dig(pod, "spec", "volumes") or {}) do
    if volume.persistentVolumeClaim ~= nil then return true end
  end
  return false
end

-- Why the pod itself must never be migrated.
local function unfit(pod, settings)
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
end

-- How many pods of the workload may migrate, and be unavailable.
local function most_of(load, settings)
  load.most_migrating = load.most_migrating or limits.most(load.replicas, settings.maxMigratingPerWorkload)
  load.most_unavailable = load.most_unavailable
    or limits.most(load.replicas, settings.maxUnavailablePerWorkload)
  return load.most_migrating, load.most_unavailable
end

local function wrong_replicas(settings, load)
  if settings.skipCheckExpectedReplicas or not load then return nil end
  local replicas, migrating, unavailable = load.replicas, most_of(load, settings)
  if replicas == 1 or replicas == migrating or replicas == unavailable then
    return ("its whole workload (%d replica%s) would be unavailable"):format(replicas,
      replicas == 1 and "" or "s")
  end
end

local function forced(pod) return fields.annotation(pod, FORCED) ~= nil end

-- Why a pod must never be migrated; nil: it may be.
function M.forbidden(pod, settings, load)
  if forced(pod) then return nil end
  return unfit(pod, settings) or wrong_replicas(settings, load)
end

-- ---------------------------------------------------------------- held

local LIMITS = {
  { what = "all", name = "maxMigratingGlobally", of = function() return "all" end },
  { what = "node", name = "maxMigratingPerNode", of = function(pod) return dig(pod, "spec", "nodeName") end },
  { what = "namespace", name = "maxMigratingPerNamespace",
    of = function(pod) return pod.metadata.namespace end },
}

-- The limits that the settings set.
local function limits_of(settings)
  local out = {}
  for _, limit in ipairs(LIMITS) do
    if (settings[limit.name] or 0) > 0 then out[#out + 1] = limit end
  end
  return out
end

-- "1 pod is migrating", "2 pods of its workload are migrating".
local function are(n, whose, what)
  return ("%d %s%s %s %s"):format(n, n == 1 and "pod" or "pods", whose, n == 1 and "is" or "are", what)
end

-- The number of pods of the workload that are unavailable or migrate, except this one if it only migrates.
local function away(load, moving, migrating, key)
  local n = moving
  for other in pairs(load.unavailable) do
    if other == key or not migrating[other] then n = n + 1 end
  end
  return n
end

local function held_by_workload(settings, load, book, key)
  local moving, migrating = M.moving(book, "owner", load.uid, key)
  local most, most_away = most_of(load, settings)
  if moving > 0 and moving >= most and not settings.any_migrating then
    return ("%s already, maxMigratingPerWorkload is %d"):format(
      are(moving, " of its workload", "migrating"), most)
  end
  local n = away(load, moving, migrating, key)
  if n >= most_away and not settings.any_unavailable then
    return ("%s already, maxUnavailablePerWorkload is %d"):format(
      are(n, " of its workload", "unavailable"), most_away)
  end
end

-- Why the migration of a pod that is not forced has to wait.
local function waits(pod, settings, load, book, key, set)
  for _, limit in ipairs(set) do
    local moving, most = M.moving(book, limit.what, limit.of(pod), key), settings[limit.name]
    if moving >= most then
      return ("%s already, %s is %d"):format(are(moving, "", "migrating"), limit.name, most)
    end
  end
  return load and held_by_workload(settings, load, book, key)
end

-- Why the migration of a pod has to wait; nil: it may begin. book: the migrations that count.
function M.held(pod, settings, load, book)
  return not forced(pod) and waits(pod, settings, load, book, pods.key(pod), limits_of(settings)) or nil
end

-- ---------------------------------------------------------------- for descheduling policies

-- Why the pod itself gets no job; false: it may get one.
local function barred(pod, settings)
  local scheduler = dig(pod, "spec", "schedulerName") or ""
  if settings.jobMode == "ReservationFirst" then
    local serves = false
    for _, name in ipairs(settings.schedulerNames or {}) do serves = serves or name == scheduler end
    if not serves then
      return ("its scheduler %q is not in schedulerNames, so nobody would place its Reservation")
        :format(scheduler)
    end
  end
  if not victims.chosen(pod, settings) then return "the settings exclude it" end
  return not forced(pod) and unfit(pod, settings) or false
end

-- What the settings alone say of a pod: { key, uid, barred, forced }. fact: what is known of this version of
-- the pod, where it is kept for the next pass with the same table of settings; nil: it is not kept.
local function judged(pod, settings, fact)
  fact = fact or { key = pods.key(pod) }
  if fact.judged_by ~= settings then
    fact.judged_by, fact.uid = settings, pod.metadata.uid
    fact.barred, fact.forced = barred(pod, settings), forced(pod)
  end
  return fact
end

-- The filter of one pass of a policy: { refused = function(pod, fact), note = function(pod) }.
--   settings  as M.settings returns them, with the policy's jobMode, schedulerNames, evictableNamespaces and
--             podSelectors
--   jobs      those under way; unlike in arbitration, waiting ones count
--   pod_of    function(job): its pod, or nil
--   load_of   function(pod): its workload
-- refused returns why the pod gets no job now, or nil; note counts a job that was just made for it.
function M.open(settings, jobs, pod_of, load_of)
  local book, uids, set = M.ledger(), {}, limits_of(settings)
  for _, job in ipairs(jobs) do
    local uid, key = dig(job, "spec", "podRef", "uid"), M.pod_key(job)
    if uid ~= nil then uids[uid] = true end
    if key then M.enter(book, key, pod_of(job)) end
  end

  local function refused(pod, fact)
    local all, known = book.all.all, judged(pod, settings, fact)
    if uids[known.uid] or all and all.has[known.key] then return "a job moves it already" end
    if known.barred or known.forced then return known.barred or nil end
    local load = load_of(pod)
    return wrong_replicas(settings, load) or waits(pod, settings, load, book, known.key, set)
  end

  return {
    refused = refused,
    note = function(pod)
      uids[pod.metadata.uid or ""] = true
      M.enter(book, pods.key(pod), pod)
    end,
  }
end

return M
