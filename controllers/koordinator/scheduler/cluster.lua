-- cluster.lua - what a decision of the scheduler reads: the state of cycle.lua out of the caches, and what was
-- decided a moment ago and no cache shows yet. That is kept in kube.shared, so that it outlives a reload:
--
--   assumed/NAMESPACE/NAME   of a pod: { uid, node, got, room, at, by, held_until, bound }
--   reserved/NAME            of a Reservation: { uid, node, at }
--
-- at: when it was decided; by: the key whose run binds it; held_until: it is not to be bound (a gang that waits).

local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local forest = require "elasticquota.forest"
local gang = require "scheduler.gang"
local kube = require "kubelua"
local lists = require "lib.lists"
local members = require "elasticquota.members"
local numa = require "scheduler.numa"
local pods = require "pods"
local quota = require "elasticquota.quota"
local reservation = require "scheduler.reservation"

local M = {}

M.POD, M.NODE, M.NAMESPACE = "v1/Pod", "v1/Node", "v1/Namespace"
M.BUDGET = "policy/v1/PodDisruptionBudget"
M.METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local ASSUMED, RESERVED, DECIDING = "assumed/", "reserved/", "deciding"
local LONGEST = 30 -- seconds; a decision that is not over by then was ended

function M.is_waiting(pod)
  local node, phase = fields.dig(pod, "spec", "nodeName"), fields.dig(pod, "status", "phase")
  local gates = fields.dig(pod, "spec", "schedulingGates")
  return (node == nil or node == "") and phase ~= "Succeeded" and phase ~= "Failed"
    and pod.metadata.deletionTimestamp == nil and (gates == nil or #gates == 0)
end

-- ---------------------------------------------------------------- what was decided

function M.assumed(key, uid)
  local known = kube.shared:get(ASSUMED .. key)
  return known and known.uid == uid and known or nil
end

function M.assume(key, what) kube.shared:set(ASSUMED .. key, what) end
function M.reserved(name) return kube.shared:get(RESERVED .. name) end
function M.reserve(name, what) kube.shared:set(RESERVED .. name, what) end

-- Calls `decide` when nobody else decides, and returns true and what it returns.
function M.alone(now, decide)
  local taken, other = kube.shared:cas(DECIDING, nil, { at = now })
  if not taken and now - other.at > LONGEST then taken = kube.shared:cas(DECIDING, other, { at = now }) end
  if not taken then return false end
  local ok, result = pcall(decide)
  kube.shared:set(DECIDING, nil)
  if not ok then error(result, 0) end
  return true, result
end

-- { [pod key] = what was assumed } of pods whose cached copy does not say it yet. The others are forgotten.
local function assumed(ctx, now)
  local out = {}
  for _, name in ipairs(kube.shared:names(ASSUMED)) do
    local key, known = name:sub(#ASSUMED + 1), fields.copy(kube.shared:get(name))
    local pod = known and ctx:get(M.POD, key)
    if pod and pod.metadata.uid == known.uid and M.is_waiting(pod)
      and (known.held_until == nil or now < known.held_until) then
      out[key] = known
    else
      kube.shared:set(name, nil)
    end
  end
  return out
end

-- All Reservations, those that have a node since a moment ago with the status that they are about to have.
local function reservations(ctx, now)
  local out = {}
  for i, object in ipairs(ctx:list(reservation.KIND)) do
    local name = object.metadata.name
    local known = M.reserved(name)
    out[i] = object
    if known and known.uid == object.metadata.uid and (object("status.nodeName") or "") == "" then
      out[i] = { metadata = object.metadata, spec = object.spec,
        status = reservation.placed(object, known.node, now) }
    elseif known then
      M.reserve(name, nil)
    end
  end
  return out
end

-- ---------------------------------------------------------------- the state

-- What was read of pods in the last decision: { [uid] = { version, quota } }.
local read_before = {}

local function add_quotas(ctx, state, read_pods)
  local quotas, total = {}, {}
  for i, object in ipairs(ctx:list(quota.KIND)) do quotas[i] = quota.read(object) end
  if #quotas == 0 then return end
  for node in ctx:each(M.NODE) do lists.accumulate(total, lists.of(node("status.allocatable"))) end
  state.quotas = members.index(quotas)
  state.infos = forest.calculate(state.quotas, read_pods, total, ctx.params)
end

-- Whether a pod has a node already, or waits for one from us; nil for neither.
local function membership(scheduler, bound)
  return function(pod)
    local node, known = pod("spec.nodeName") or "", bound[pods.key(pod)]
    if node ~= "" or known and not known.held_until then return true end
    if pod("spec.schedulerName") == scheduler and M.is_waiting(pod) then return false end
    return nil
  end
end

-- Reads all pods; of those that did not change since the last time only where they are.
local function read_pods(ctx, state, bound)
  local all, counted, known = {}, {}, {}
  for pod in ctx:each(M.POD) do
    local key, meta = pods.key(pod), pod.metadata
    local uid, version, mine = meta.uid, meta.resourceVersion, bound[key]
    local node = pod("spec.nodeName") or mine and mine.node
    local old = read_before[uid]
    if not old or old.version ~= version then old = { version = version, quota = members.read_pod(pod) } end
    known[uid] = old
    if node and old.quota then
      state.pods_on[node] = state.pods_on[node] or {}
      table.insert(state.pods_on[node], pod)
    end
    if old.quota then
      state.requests[key] = old.quota.request
      if mine then old.quota.assigned, old.version = true, nil end
      counted[#counted + 1] = old.quota
    end
    all[#all + 1] = pod
  end
  read_before = known
  return all, counted
end

local function by_name(ctx, kind)
  local out = {}
  for object in ctx:each(kind) do out[object.metadata.name] = object end
  return out
end

-- The state for cycle.lua; what is assumed, by pod key; and all pods that wait for this scheduler and have no
-- node yet.
function M.read(ctx)
  local now = ctx:now():unix()
  local scheduler, bound = ctx.params.schedulerName, assumed(ctx, now)
  local state = { now = now, pods_on = {}, got = {}, requests = {}, groups = {}, namespaces = {}, held = {},
    reservations_on = reservation.index(reservations(ctx, now)) }
  for key, known in pairs(bound) do state.got[key] = known.got end
  local all, counted = read_pods(ctx, state, bound)
  for group in ctx:each(gang.KIND) do
    state.groups[group.metadata.namespace .. "/" .. group.metadata.name] = group
  end
  for space in ctx:each(M.NAMESPACE) do
    state.namespaces[space.metadata.name] = fields.copy(space.metadata.labels) or {}
  end
  state.devices, state.metrics = by_name(ctx, deviceshare.KIND), by_name(ctx, M.METRIC)
  state.topologies, state.budgets = by_name(ctx, numa.KIND), ctx:list(M.BUDGET)
  add_quotas(ctx, state, counted)
  state.gangs = gang.index(all, membership(scheduler, bound))
  local waiting = {}
  for _, pod in ipairs(all) do
    local known = bound[pods.key(pod)]
    if pod("spec.schedulerName") == scheduler and M.is_waiting(pod) and (not known or known.held_until) then
      waiting[#waiting + 1] = pod
    end
  end
  for key, known in pairs(bound) do
    local node = known.held_until and ctx:get(M.NODE, known.node)
    if node then
      state.held[key] = { pod = ctx:get(M.POD, key), node = node, room = known.room, got = known.got }
    end
  end
  return state, bound, waiting
end

return M
