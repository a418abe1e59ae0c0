-- podmigrationjob.lua - Koordinator's migration controller. It decides which PodMigrationJobs may begin, and
-- performs each job step by step: it reserves resources on another node, then evicts the pod. The policy is
-- in podmigrationjob/, as pure functions; reservations.lua maintains the Reservations.
--
--   kubelua run controllers/koordinator/podmigrationjob.lua
--
-- The arbitrator looks at all waiting jobs under one key, the namespace. The migrator has a key for each job.

local kube = require "kubelua"
local arbitrate = require "podmigrationjob.arbitrate"
local fields = require "fields"
local filter = require "podmigrationjob.filter"
local limits = require "podmigrationjob.limits"
local reserve = require "podmigrationjob.reserve"
local step = require "podmigrationjob.step"
local workload = require "podmigrationjob.workload"
local whole = require "lib.whole"

local POD = workload.POD
local JOB, RESERVATION = reserve.JOB, reserve.KIND
local CREATED_BY = "koordinator.sh/job-created-by"
local POLICY = "koordinator.sh/evict-policy"
local FORCED = "descheduler.alpha.kubernetes.io/evict"
local SOFT = "scheduling.koordinator.sh/soft-eviction"
local INTERVAL = 0.5   -- seconds between two arbitrations while jobs wait
local REFUSED = "3s"   -- the delay before a refused eviction is retried

-- As in MigrationControllerArgs.
local PARAMS = kube.merge(filter.PARAMS, {
  createdBy = "",                    -- jobs with another value in their annotation are ignored
  defaultJobMode = "ReservationFirst",
  objectLimiters = { workload = { duration = "5m" } },
  evictQPS = 10,
  evictBurst = 1,
  evictionPolicy = "Eviction",       -- or "Delete", "SoftEviction"
  defaultDeleteOptions = {},         -- of jobs without deleteOptions
})

local function is_ours(job, ctx)
  local mark = fields.annotation(job, CREATED_BY)
  return mark == nil or mark == ctx.params.createdBy
end

-- ---------------------------------------------------------------- arbitration

local function decide(ctx, verdict)
  local job, name = verdict.job, verdict.job.metadata.name
  if verdict.verdict == "passed" then
    ctx:patch(job, function(draft) draft.metadata.annotations[arbitrate.PASSED] = "true" end)
  elseif verdict.verdict == "failed" then
    ctx.log:info("PodMigrationJob %s is refused: %s", name, verdict.why)
    ctx:patch_status(job, { phase = "Failed", reason = "ForbiddenMigratePod",
      message = ("Pod %q is forbidden to migrate because it does not meet the requirements: %s"):format(
        filter.pod_key(job), verdict.why) })
  else
    ctx.log:debug("PodMigrationJob %s waits: %s", name, verdict.why)
  end
end

local arbitrator = whole.controller {
  name = "podmigrationjob-arbitrator",
  reads = workload.KINDS,
  watches = {
    [JOB] = { whole.anchor, when = { "status.phase", "annotations" } },
  },
  indexes = workload.INDEXES,
  params = PARAMS,

  reconcile = function(_, ctx)
    local waits = false
    local settings = filter.settings(ctx.params)
    for _, verdict in ipairs(arbitrate.pass(ctx:list(JOB), settings, workload.world(ctx))) do
      if is_ours(verdict.job, ctx) then
        decide(ctx, verdict)
        waits = waits or verdict.verdict == "waits"
      end
    end
    if waits then return { requeue_after = INTERVAL } end
  end,
}

-- ---------------------------------------------------------------- migration

-- Reads the cache, then the server: the cache may not have a Reservation that was just created.
local function reservation_of(ctx, job)
  local ref = fields.dig(job, "spec", "reservationOptions", "reservationRef")
  if ref == nil then return nil end
  return ctx:get(RESERVATION, ref.name) or ctx.live:get(RESERVATION, ref.name)
end

local function bound_pod(ctx, reservation)
  local ref = reservation and reserve.bound(reservation)
  return ref and ctx:get(POD, ref.namespace, ref.name) or nil
end

-- The token buckets that limit evictions are in kube.shared, so they survive reloads.
local function bucket(b) return fields.copy(kube.shared:get("evicted/" .. b.name)) end
local function keep(b, value) kube.shared:set("evicted/" .. b.name, value) end

-- Takes a token from each bucket and returns the buckets; or takes none, and returns nil and the seconds to
-- wait.
local function take_tokens(ctx, job, pod)
  local now, wait = ctx:now():seconds(), 0
  local load, forced = workload.of(pod, workload.world(ctx)), fields.annotation(job, FORCED) ~= nil
  local buckets = limits.buckets(pod, load, fields.copy(ctx.params), forced)
  ---@cast buckets table[]
  for _, b in ipairs(buckets) do wait = math.max(wait, limits.wait(bucket(b), now)) end
  if wait > 0 then return nil, wait end
  for _, b in ipairs(buckets) do keep(b, limits.take(bucket(b), now, b.most, b.window, b.burst)) end
  return buckets
end

-- Returns the tokens of a refused eviction, except that of the bucket of all evictions.
local function give_tokens(buckets)
  for _, b in ipairs(buckets) do
    if b.name ~= limits.ALL then keep(b, limits.give(bucket(b))) end
  end
end

-- The options of the pod's deletion, or nil.
local function delete_options(ctx, job)
  local default = fields.copy(ctx.params.defaultDeleteOptions)
  return fields.copy(fields.dig(job, "spec", "deleteOptions")) or next(default) and default or nil
end

local function soft_evict(ctx, job, pod)
  local text = kube.encode {
    timestamp = tostring(ctx:now()), deleteOptions = delete_options(ctx, job),
    initiator = fields.annotation(job, "koordinator.sh/evict-trigger"), reason = step.reason(job),
  }
  ctx:patch(pod, function(draft) draft.metadata.annotations[SOFT] = text end)
end

local function evict(ctx, job, pod)
  local policy = fields.label(pod, POLICY) or fields.label(job, POLICY) or ctx.params.evictionPolicy
  local given = delete_options(ctx, job) or {}
  local opts = { uid = pod.metadata.uid, grace = given.gracePeriodSeconds,
    propagation = given.propagationPolicy }
  if policy == "SoftEviction" then
    soft_evict(ctx, job, pod)
  elseif policy == "Delete" then
    ctx:delete(POD, pod.metadata.namespace .. "/" .. pod.metadata.name, opts)
  else
    ctx:evict(pod, opts)
  end
end

-- Performs the action of a step, without its status. Returns the delay or result for the next run, or nil.
local function act(ctx, job, out, pod)
  if out.uid then
    ctx:patch(job, function(draft) draft.spec.podRef.uid = out.uid end)
  end
  if out.timeout then
    local ref = fields.dig(job, "spec", "reservationOptions", "reservationRef")
    if ref ~= nil then ctx:delete(RESERVATION, ref.name) end
  end
  if not out.evict then return nil end
  local taken, wait = take_tokens(ctx, job, pod)
  if not taken then return wait end
  local _, why = kube.try(evict, ctx, job, pod)
  if why then
    give_tokens(taken)
    ctx:warn("Evicting", "Failed evict Pod %q caused by %s", filter.pod_key(job), tostring(why))
    return kube.retry(REFUSED, tostring(why))
  end
  step.note_eviction(out.status, ctx:now():seconds(), out.evicted)
  ctx:event("Evicting", "%s", out.evicted)
end

local function make_reservation(ctx, job, manifest)
  local made, why = kube.try(ctx.create, ctx, { apiVersion = reserve.API, kind = "Reservation",
    metadata = manifest.metadata, spec = manifest.spec })
  if not made and why.code == 409 then made = ctx.live:get(RESERVATION, manifest.metadata.name) end
  if not made then
    ctx:warn("FailedCreateReservation", "%s", tostring(why))
    return nil, tostring(why)
  end
  ctx:patch(job, { spec = { reservationOptions = { reservationRef = reserve.reference(made) } } })
end

local function work(job, ctx)
  local reservation = reservation_of(ctx, job)
  local ref = fields.dig(job, "spec", "podRef") or {}
  local pod = filter.pod_key(job) and ctx:get(POD, ref.namespace, ref.name) or nil
  local out = step.step {
    job = job, now = ctx:now():seconds(), default_mode = ctx.params.defaultJobMode, reservation = reservation,
    pod = pod, bound_pod = bound_pod(ctx, reservation),
  }
  if not out then return nil end
  local later = act(ctx, job, out, pod)
  ctx:patch_status(job, function(draft) draft.status = out.status end)
  for _, event in ipairs(out.events) do
    ctx[event.type == "Warning" and "warn" or "event"](ctx, event.reason, "%s", event.message)
  end
  if out.order then
    ctx:patch(reservation, function(draft) draft.metadata.labels[reserve.ORDER] = out.order end)
  end
  if out.reserve then return make_reservation(ctx, job, out.reserve) end
  return later or out.after
end

-- The pods of a job, for an index: the pod that is migrated, and the pod that took its reservation.
local function its_pods(job)
  local keys, bound = { filter.pod_key(job) }, fields.dig(job, "status", "podRef")
  if bound ~= nil then keys[#keys + 1] = (bound.namespace or "") .. "/" .. bound.name end
  return keys
end

local migrator = kube.controller {
  name = "podmigrationjob",
  resource = JOB,
  reads = workload.KINDS,
  watches = { [RESERVATION] = { via = "reservation" }, [POD] = { via = "pod" } },
  indexes = fields.merge(workload.INDEXES, {
    pod = its_pods,
    reservation = "spec.reservationOptions.reservationRef.name",
  }),
  workers = 1,
  memory = "2Gi",
  params = PARAMS,

  reconcile = function(job, ctx)
    if not is_ours(job, ctx) then return nil end
    local left = step.until_swept(job, ctx:now():seconds())
    if left <= 0 then
      local ref = fields.dig(job, "spec", "reservationOptions", "reservationRef")
      if ref ~= nil then ctx:delete(RESERVATION, ref.name) end
      ctx:delete(JOB, job.metadata.name, { uid = job.metadata.uid })
      return nil
    end
    local next_look, why = work(job, ctx)
    if why or type(next_look) == "table" or type(next_look) == "userdata" then return next_look, why end
    return next_look and math.min(next_look, left) or left
  end,
}

return { arbitrator, migrator }
