-- deployments.lua - plays the Deployment controller: a ReplicaSet for each template, the newest one's pods in
-- place of the others' by the strategy, revisions for `kubectl rollout history` and `undo`.

local kube = require "kubelua"
local conditions = require "lib.conditions"

local SET = "apps/v1/ReplicaSet"
local HASH = "pod-template-hash"
local REVISION = "deployment.kubernetes.io/revision"
-- Annotations that a Deployment does not pass to its sets.
local OWN = { [REVISION] = true, ["deployment.kubernetes.io/revision-history"] = true,
  ["kubectl.kubernetes.io/last-applied-configuration"] = true }

local function revision(set) return tonumber(set("metadata.annotations", REVISION)) or 0 end
local function available(set) return set("status.availableReplicas") or 0 end

local function sum(sets, of)
  local n = 0
  for _, set in ipairs(sets) do n = n + of(set) end
  return n
end

local function wanted(set) return set.spec.replicas end
local function present(set) return set("status.replicas") or 0 end

-- ---------------------------------------------------------------- the set of the template

local function has_template(set, template)
  local own = kube.copy(set.spec.template)
  own.metadata.labels[HASH] = nil
  return kube.equal(own, template)
end

local function annotations_of(d, number)
  local list = { [REVISION] = tostring(number) }
  for name, value in pairs(d("metadata.annotations") or {}) do
    if not OWN[name] then list[name] = value end
  end
  return list
end

local function make_set(d, number, ctx)
  local hash = kube.hash(d.spec.template)
  local labels = { [HASH] = hash }
  ctx:event("ScalingReplicaSet", "Created replica set %s-%s", d.metadata.name, hash)
  return ctx:create { apiVersion = "apps/v1", kind = "ReplicaSet",
    metadata = { name = d.metadata.name .. "-" .. hash, namespace = d.metadata.namespace,
      labels = kube.merge(d("spec.template.metadata.labels") or {}, labels),
      annotations = annotations_of(d, number) },
    spec = { replicas = 0, minReadySeconds = d("spec.minReadySeconds"),
      selector = kube.merge(d.spec.selector, { matchLabels = labels }),
      template = kube.merge(d.spec.template, { metadata = { labels = labels } }) } }
end

-- The set with a change; nil when it is gone, as with its Deployment. Its end wakes us.
local function patched(set, change, ctx)
  local out, why = kube.try(ctx.patch, ctx, set, change)
  if why and why.kind ~= "not_found" then error(why, 0) end
  return out
end

-- The set of the present template, and all others, the oldest first.
local function sets_of(d, ctx)
  local new, old = nil, {}
  for _, set in ipairs(ctx:claim(SET, { labels = d.spec.selector })) do
    if not new and has_template(set, d.spec.template) then new = set else old[#old + 1] = set end
  end
  table.sort(old, function(a, b) return revision(a) < revision(b) end)
  local last = old[1] and revision(old[#old]) or 0
  if new then
    local number = math.max(revision(new), last + 1)
    if revision(new) > last then number = revision(new) end
    new = patched(new, { metadata = { annotations = annotations_of(d, number) } }, ctx)
  elseif not d("spec.paused") then
    new = make_set(d, last + 1, ctx)
  end
  return new, old
end

-- ---------------------------------------------------------------- how many of each

-- { [set] = replicas } after the next step of a rolling update.
local function roll(d, new, old)
  local total, target = d.spec.replicas, {}
  local surge = kube.share(d("spec.strategy.rollingUpdate.maxSurge") or 1, total, "up")
  local missing = kube.share(d("spec.strategy.rollingUpdate.maxUnavailable") or 0, total)
  if surge == 0 and missing == 0 then missing = 1 end
  local all = sum(old, wanted) + wanted(new)
  target[new] = wanted(new) > total and total
    or wanted(new) + math.max(0, math.min(total + surge - all, total - wanted(new)))
  if target[new] ~= wanted(new) then return target end -- scale up first
  local least = total - missing
  local spare = all - least - (wanted(new) - available(new))
  for _, set in ipairs(old) do -- sets with unavailable pods first
    local cut = math.max(0, math.min(spare, wanted(set) - available(set)))
    target[set], spare = wanted(set) - cut, spare - cut
  end
  spare = math.min(spare, sum(old, available) + available(new) - least)
  for _, set in ipairs(old) do
    local cut = math.max(0, math.min(spare, target[set]))
    target[set], spare = target[set] - cut, spare - cut
  end
  return target
end

local function recreate(d, new, old)
  local target = {}
  for _, set in ipairs(old) do target[set] = 0 end
  target[new] = sum(old, present) == 0 and d.spec.replicas or wanted(new)
  return target
end

local function scale(d, new, old, ctx)
  local step = d("spec.strategy.type") == "Recreate" and recreate or roll
  for set, n in pairs(step(d, new, old)) do
    local had = wanted(set)
    if had ~= n and patched(set, { spec = { replicas = n } }, ctx) then
      ctx:event("ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", had < n and "up" or "down",
        set.metadata.name, had, n)
    end
  end
end

-- ---------------------------------------------------------------- status

-- What Progressing says, and in how many seconds its deadline is over.
local function progress(d, n, name, ctx)
  local before = conditions.find(d, "Progressing")
  local text = ("ReplicaSet %q "):format(name)
  if n.updated == d.spec.replicas and n.replicas == n.updated and n.available == n.updated then
    return { status = "True", reason = "NewReplicaSetAvailable",
      message = text .. "has successfully progressed." }
  end
  local same = before and d("status.updatedReplicas") == n.updated and d("status.replicas") == n.replicas
    and d("status.availableReplicas") == n.available
    and d("status.observedGeneration") == d.metadata.generation
  local deadline = d("spec.progressDeadlineSeconds") or 600
  local left = same and deadline - (ctx:now() - kube.time(before.lastUpdateTime)) or deadline
  if left <= 0 or same and before.status == "False" then
    return { status = "False", reason = "ProgressDeadlineExceeded",
      message = text .. "has timed out progressing." }
  end
  return { status = "True", reason = "ReplicaSetUpdated", message = text .. "is progressing.",
    lastUpdateTime = same and before.lastUpdateTime or nil }, left
end

local function report(d, new, old, ctx)
  local now = conditions.now(ctx)
  local n = { replicas = sum(old, present) + (new and present(new) or 0), updated = new and present(new) or 0,
    available = sum(old, available) + (new and available(new) or 0) }
  local ready = 0
  for _, set in ipairs(old) do ready = ready + (set("status.readyReplicas") or 0) end
  if new then ready = ready + (new("status.readyReplicas") or 0) end
  local missing = kube.share(d("spec.strategy.rollingUpdate.maxUnavailable") or 0, d.spec.replicas)
  local enough = n.available >= d.spec.replicas - missing
  local list, left = { enough
    and { type = "Available", status = "True", reason = "MinimumReplicasAvailable",
      message = "Deployment has minimum availability." }
    or { type = "Available", status = "False", reason = "MinimumReplicasUnavailable",
      message = "Deployment does not have minimum availability." } }, nil
  if new and not d("spec.paused") then
    list[2], left = progress(d, n, new.metadata.name, ctx)
    list[2].type = "Progressing"
  end
  for _, c in ipairs(list) do
    local before = conditions.find(d, c.type)
    local same = before and before.status == c.status and before("reason") == c.reason
    c.lastUpdateTime = c.lastUpdateTime or same and c.reason ~= "ReplicaSetUpdated" and before.lastUpdateTime
      or now
  end
  ctx:patch_status(d, { observedGeneration = d.metadata.generation, replicas = n.replicas,
    updatedReplicas = n.updated, readyReplicas = ready, availableReplicas = n.available,
    unavailableReplicas = math.max(0, math.max(d.spec.replicas, n.replicas) - n.available),
    conditions = conditions.with(d("status.conditions"), list, now) })
  return left
end

return kube.controller {
  name = "simulate-deployments",
  resource = "apps/v1/Deployment",
  owns = { SET },
  reconcile = function(d, ctx)
    if d("metadata.deletionTimestamp") then return end
    local new, old = sets_of(d, ctx)
    if new then
      d = ctx:patch(d, { metadata = { annotations = { [REVISION] = tostring(revision(new)) } } })
      if not d("spec.paused") then scale(d, new, old, ctx) end
    end
    local idle = {}
    for _, set in ipairs(old) do
      if wanted(set) == 0 and present(set) == 0 then idle[#idle + 1] = set end
    end
    for i = 1, #idle - (d("spec.revisionHistoryLimit") or 10) do ctx:delete(idle[i]) end
    return report(d, new, old, ctx)
  end,
}
