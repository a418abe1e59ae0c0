-- scheduler.lua - a scheduler out of Koordinator's policies: gives each pod of its schedulerName a node, or
-- says on the pod why it has none. What decides is scheduler/cycle.lua, as pure functions.
--
--   kubelua run controllers/koordinator/scheduler.lua --param schedulerName=my-scheduler
--
-- Each pod is a key, the ones of higher priority first. One worker decides one pod at a time, and knows of
-- the pods that it bound itself although its cache does not have them yet.

local kube = require "kubelua"
local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local forest = require "elasticquota.forest"
local gang = require "scheduler.gang"
local lifecycle = require "reservations.lifecycle"
local lists = require "lib.lists"
local loadaware = require "scheduler.loadaware"
local members = require "elasticquota.members"
local pods = require "pods"
local quota = require "elasticquota.quota"
local reservation = require "scheduler.reservation"

local POD, NODE = "v1/Pod", "v1/Node"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
-- In what outlives a reload: { uid, node, got } of pods that were bound a moment ago.
local ASSUMED = "assumed/"
local AGAIN = 10 -- seconds until a pod that fits nowhere is looked at again
local WAITING = "waiting"

local function is_waiting(pod)
  local node, phase = fields.dig(pod, "spec", "nodeName"), fields.dig(pod, "status", "phase")
  local gates = fields.dig(pod, "spec", "schedulingGates")
  return (node == nil or node == "") and phase ~= "Succeeded" and phase ~= "Failed"
    and pod.metadata.deletionTimestamp == nil and (gates == nil or #gates == 0)
end

-- Keys have 99 priorities, and classes of pods reach from 3000 to 9999: 72 of theirs are one of ours.
local function priority(pod)
  local n = ((fields.dig(pod, "spec", "priority") or 0) - 6500) // 72
  return math.max(-49, math.min(49, n))
end

-- { [pod key] = node name } of the pods that were bound and whose cached copy does not say so yet, and { [pod
-- key] = what they got }.
local function assumed(ctx)
  local out, got = {}, {}
  for _, name in ipairs(kube.shared:names(ASSUMED)) do
    local key, known = name:sub(#ASSUMED + 1), kube.shared:get(name)
    local pod = ctx:get(POD, key)
    if pod and pod.metadata.uid == known.uid and is_waiting(pod) then
      out[key], got[key] = known.node, known.got
    else
      kube.shared:set(name, nil)
    end
  end
  return out, got
end

-- What the quotas count of a pod; one that was bound a moment ago is used.
local function quota_pod(pod, bound)
  local read = members.read_pod(pod)
  if read and bound then read.assigned = true end
  return read
end

local function add_quotas(ctx, state, read_pods)
  local quotas, total = {}, {}
  for i, object in ipairs(ctx:list(quota.KIND)) do quotas[i] = quota.read(object) end
  for node in ctx:each(NODE) do lists.accumulate(total, lists.of(node("status.allocatable"))) end
  state.quotas = members.index(quotas)
  state.infos = forest.calculate(state.quotas, read_pods, total, ctx.params)
end

-- Whether a pod has a node already, or waits for one from us; nil for neither.
local function membership(ctx, bound)
  return function(pod)
    local node = pod("spec.nodeName") or ""
    if node ~= "" or bound[pods.key(pod)] then return true end
    local ours = pod("spec.schedulerName") == ctx.params.schedulerName and is_waiting(pod)
    if ours then return false end
    return nil
  end
end

local function state_of(ctx)
  local bound, got = assumed(ctx)
  local state = { now = ctx:now():unix(), pods_on = {}, metrics = {}, devices = {}, got = got,
    reservations_on = reservation.index(ctx:list(reservation.KIND)) }
  local read_pods, all = {}, {}
  for pod in ctx:each(POD) do
    local key = pods.key(pod)
    local node = pod("spec.nodeName") or bound[key]
    if node then
      state.pods_on[node] = state.pods_on[node] or {}
      table.insert(state.pods_on[node], pod)
    end
    all[#all + 1], read_pods[#read_pods + 1] = pod, quota_pod(pod, bound[key])
  end
  state.gangs, state.groups = gang.index(all, membership(ctx, bound)), {}
  for group in ctx:each(gang.KIND) do
    state.groups[group.metadata.namespace .. "/" .. group.metadata.name] = group
  end
  for device in ctx:each(deviceshare.KIND) do state.devices[device.metadata.name] = device end
  for metric in ctx:each(METRIC) do state.metrics[metric.metadata.name] = metric end
  add_quotas(ctx, state, read_pods)
  return state, bound
end

-- The pod says whose room and which GPUs it has before it is bound, so that nobody sees it on the node
-- without that.
local function mark(ctx, placement)
  local pod, meta = placement.pod, placement.reservation and placement.reservation.metadata
  local room = meta and kube.encode(kube.object { name = meta.name, uid = meta.uid })
  local gpus = deviceshare.text(placement.devices)
  local same = fields.annotation(pod, lifecycle.ALLOCATED) == room
    and fields.annotation(pod, deviceshare.ANNOTATION) == gpus
  if same then return end
  ctx:patch(pod, function(draft)
    draft.metadata.annotations[lifecycle.ALLOCATED] = room
    draft.metadata.annotations[deviceshare.ANNOTATION] = gpus
  end)
end

-- Events are about the pod whose key this is; the others of its gang have their node without one.
local function bind(ctx, placement)
  local key, name = pods.key(placement.pod), placement.node.metadata.name
  mark(ctx, placement)
  ctx:bind(placement.pod, name)
  kube.shared:set(ASSUMED .. key, { uid = placement.pod.metadata.uid, node = name,
    got = cycle.got(placement) })
  if key == ctx.key then
    ctx:event({ reason = "Scheduled", action = "Binding" }, "Successfully assigned %s to %s", key, name)
  end
end

local function refuse(ctx, pod, message)
  ctx:patch_status(pod, function(draft)
    kube.set_condition(draft, { type = "PodScheduled", status = "False", reason = "Unschedulable",
      message = message })
  end)
  ctx:warn({ reason = "FailedScheduling", action = "Scheduling" }, "%s", message)
  return { requeue_after = AGAIN }
end

-- A node that changed, or a Reservation on it, may take a pod that waits.
local function waiting_pods(_, ctx)
  local keys = {}
  for _, pod in ipairs(ctx:list(POD, { index = "state", value = WAITING })) do
    keys[#keys + 1] = pods.key(pod)
  end
  return keys
end

return kube.controller {
  name = "scheduler",
  resource = POD,
  reads = { METRIC, quota.KIND, gang.KIND, deviceshare.KIND },
  watches = {
    [NODE] = { waiting_pods, when = { "labels", "annotations", "spec", "status.allocatable" } },
    [reservation.KIND] = { waiting_pods, when = { "labels", "spec", "status.phase" } },
  },
  indexes = { state = function(pod) return is_waiting(pod) and WAITING or nil end },
  when = { "spec", "labels" },
  priority = priority,
  workers = 1,
  concurrency = 1,
  cpu = "20s",
  memory = "2Gi",
  params = {
    schedulerName = "koord-scheduler",
    weights = cycle.WEIGHTS,         -- of the plugins' scores
    loadaware = loadaware.DEFAULTS,  -- LoadAwareSchedulingArgs
    deviceshare = deviceshare.DEFAULTS, -- scoringStrategy of DeviceShareArgs
    enable_runtime_quota = true,     -- false: max is the limit of a quota, and not its runtime
    check_parent_quota = false,      -- the quotas above need room, too
    upstream = "main",               -- and the following: as in elasticquota.lua
    multi_quota_tree = true,
    enable_min_quota_scale = true,
    guarantee_usage = false,
  },

  reconcile = function(pod, ctx)
    if pod("spec.schedulerName") ~= ctx.params.schedulerName or not is_waiting(pod) then return nil end
    local state, bound = state_of(ctx)
    if bound[ctx.key] then return nil end
    local params = fields.copy(ctx.params)
    local placements, why = gang.decide(pod, ctx:list(NODE), state, {
      weights = params.weights,
      loadaware = params.loadaware,
      deviceshare = params.deviceshare,
      quota = { runtime_quota = params.enable_runtime_quota, check_parents = params.check_parent_quota },
    })
    for _, placement in ipairs(placements) do bind(ctx, placement) end
    if why then return refuse(ctx, pod, why) end
    if not assumed(ctx)[ctx.key] then return { requeue_after = AGAIN } end
  end,
}
