-- statefulsets.lua - plays the StatefulSet controller: pods with names of their own, one after the other
-- unless the set says Parallel, each with its claims; updates from the highest down to the partition.

local kube = require "kubelua"
local pods = require "lib.pods"
local revisions = require "lib.revisions"

local POD, CLAIM = "v1/Pod", "v1/PersistentVolumeClaim"

local function ordinal(set, pod)
  local base, number = pod.metadata.name:match "^(.*)%-(%d+)$"
  return base == set.metadata.name and math.tointeger(tonumber(number)) or nil
end

local function claim_name(set, template, i)
  return ("%s-%s-%d"):format(template.metadata.name, set.metadata.name, i)
end

local function make_claims(set, i, ctx)
  for _, template in ipairs(set("spec.volumeClaimTemplates") or {}) do
    local name = claim_name(set, template, i)
    if not ctx:get(CLAIM, set.metadata.namespace, name) then
      local claim = kube.from_template(template,
        { kind = CLAIM, name = name, namespace = set.metadata.namespace })
      claim.metadata.labels = kube.merge(claim.metadata.labels or {}, set("spec.selector.matchLabels") or {})
      ctx.try:create(claim)
    end
  end
end

local function make_pod(set, i, revision, ctx)
  make_claims(set, i, ctx)
  local name = ("%s-%d"):format(set.metadata.name, i)
  local pod = kube.from_template(revision.data.spec.template, { apiVersion = "v1", kind = "Pod",
    metadata = { name = name, namespace = set.metadata.namespace, labels = {
      ["statefulset.kubernetes.io/pod-name"] = name, ["apps.kubernetes.io/pod-index"] = tostring(i),
      [revisions.HASH] = revisions.hash_of(revision) } },
    spec = { hostname = name, subdomain = set("spec.serviceName") } })
  pod["$patch"] = nil
  local volumes = {}
  for _, template in ipairs(set("spec.volumeClaimTemplates") or {}) do
    volumes[#volumes + 1] = { name = template.metadata.name,
      persistentVolumeClaim = { claimName = claim_name(set, template, i) } }
  end
  for _, v in ipairs(pod.spec.volumes or {}) do volumes[#volumes + 1] = v end
  pod.spec.volumes = #volumes > 0 and volumes or nil
  return ctx:create(pod)
end

local function delete(pod, ctx)
  if not pod("metadata.deletionTimestamp") then pods.delete(pod, ctx) end
end

local function is_well(pod) return pod ~= nil and pods.is_active(pod) and pods.is_ready(pod) end

-- Creates missing pods, in order; returns whether all exist and are ready.
local function fill(set, from, to, by, revision_of, ctx)
  local ordered = set("spec.podManagementPolicy") ~= "Parallel"
  local well = true
  for i = from, to do
    if by[i] and pods.ended(by[i]) then delete(by[i], ctx) end
    if not by[i] then by[i] = make_pod(set, i, revision_of(i), ctx) end
    well = well and is_well(by[i])
    if ordered and not well then return false end
  end
  return well
end

-- Deletes surplus pods, from the highest down, one at a time unless the set is Parallel; returns whether the
-- others may be updated: of a Parallel set at once, else when there is no surplus.
local function cut(set, from, to, by, well, ctx)
  local beyond = {}
  for i in pairs(by) do
    if i < from or i > to then beyond[#beyond + 1] = i end
  end
  table.sort(beyond, function(a, b) return a > b end)
  local parallel = set("spec.podManagementPolicy") == "Parallel"
  local now = parallel and #beyond or well and math.min(#beyond, 1) or 0
  for n = 1, now do delete(by[beyond[n]], ctx) end
  return parallel or #beyond == 0
end

-- Deletes one pod of another revision once those above it are ready.
local function roll(set, from, to, by, newest, ctx)
  local partition = set("spec.updateStrategy.rollingUpdate.partition") or 0
  for i = to, math.max(from, from + partition), -1 do
    local pod = by[i]
    if not pod then return end
    if pod("metadata.labels", revisions.HASH) ~= revisions.hash_of(newest) then return delete(pod, ctx) end
    if not is_well(pod) then return end
  end
end

local function report(set, by, current, newest, ctx)
  local n = { current = 0, updated = 0, all = 0 }
  local list = {}
  for _, pod in pairs(by) do
    local hash = pod("metadata.labels", revisions.HASH)
    n.all = n.all + 1
    list[#list + 1] = pod
    if pods.is_active(pod) and hash == revisions.hash_of(current) then n.current = n.current + 1 end
    if pods.is_active(pod) and hash == revisions.hash_of(newest) then n.updated = n.updated + 1 end
  end
  local c = pods.count(list, ctx, set("spec.minReadySeconds"))
  local done = n.updated == set.spec.replicas and c.ready == n.updated and n.all == n.updated
  if done then current, n.current = newest, n.updated end
  ctx:patch_status(set, { observedGeneration = set.metadata.generation, replicas = n.all,
    readyReplicas = c.ready, availableReplicas = c.available,
    currentReplicas = n.current, updatedReplicas = n.updated,
    currentRevision = current.metadata.name, updateRevision = newest.metadata.name, collisionCount = 0 })
  return c.again
end

return kube.controller {
  name = "simulate-statefulsets",
  resource = "apps/v1/StatefulSet",
  owns = { POD, revisions.KIND },
  reads = { CLAIM },
  reconcile = function(set, ctx)
    if set("metadata.deletionTimestamp") then return end
    local all, newest = revisions.sync(set, ctx)
    local current = all[set("status.currentRevision")] or newest
    local by, used = {}, { [revisions.hash_of(current)] = true, [revisions.hash_of(newest)] = true }
    for _, pod in ipairs(ctx:claim(POD, { labels = set.spec.selector })) do
      local i = ordinal(set, pod)
      if i then by[i] = pod end
      used[pod("metadata.labels", revisions.HASH) or ""] = true
    end
    local from = set("spec.ordinals.start") or 0
    local to = from + set.spec.replicas - 1
    local kept = from + (set("spec.updateStrategy.rollingUpdate.partition") or 0)
    local well = fill(set, from, to, by, function(i) return i < kept and current or newest end, ctx)
    local update = cut(set, from, to, by, well, ctx)
    if update and set("spec.updateStrategy.type") ~= "OnDelete" then
      roll(set, from, to, by, newest, ctx)
    end
    revisions.prune(all, used, set("spec.revisionHistoryLimit") or 10, ctx)
    return report(set, by, current, newest, ctx)
  end,
}
