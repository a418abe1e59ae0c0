-- preempt.lua - the victims of preemption for a pod of higher priority. There are two ways, tried in this
-- order, Koordinator's ElasticQuota and Kubernetes' DefaultPreemption:
--
--   ElasticQuota        pods of the same quota, unless it is the default one or their label forbids it
--   DefaultPreemption   any pods; not for a pod that its quota refuses
--
-- On each node all pods of lower priority that may be preempted are removed. If the pod fits then, they are
-- added again while it still fits: first those whose eviction breaks a PodDisruptionBudget, then the others,
-- the more important first. The rest are the victims. The best node has the fewest broken budgets, then the
-- lowest highest priority among its victims, the lowest sum of priorities, the fewest victims, and the
-- youngest.
--
-- state.budgets is a list of PodDisruptionBudgets.

local cycle = require "scheduler.cycle"
local fields = require "fields"
local keys = require "elasticquota.keys"
local kube = require "kubelua"
local order = require "lib.order"
local pods = require "pods"
local quota = require "scheduler.quota"
local snapshot = require "scheduler.snapshot"

local dig = fields.dig

local M = {}

-- As in Kubernetes: the search stops after this many candidates, a tenth of the nodes and at least 100.
local LEAST, PART = 100, 10
-- Added to each priority, which may be negative, so that every victim increases the sum.
local OFFSET = 1 << 31
-- The plugins whose refusal no preemption changes.
local LASTING = { NodeUnschedulable = true, TaintToleration = true, NodeAffinity = true,
  VolumeBinding = true }

function M.priority(pod) return dig(pod, "spec", "priority") or 0 end

local function started(pod, now)
  local text = dig(pod, "status", "startTime")
  return text and kube.time(text):unix() or now
end

-- Sorts by importance: higher priority first, then the earlier start.
local function by_importance(list, now)
  local ranks = {}
  for _, entry in ipairs(list) do
    ranks[entry] = { -M.priority(entry.pod), started(entry.pod, now), pods.key(entry.pod) }
  end
  order.sort(list, ranks)
end

-- ---------------------------------------------------------------- preemptible pods

-- A function from another pod to whether `pod` may preempt it.
local function default(pod)
  local own = M.priority(pod)
  return function(other) return M.priority(other) < own end
end

local function within_quota(pod, state, args)
  local name = quota.name_of(pod, state)
  if not name or name == quota.DEFAULT and args.quota.disable_default_preemption ~= false then return nil end
  local lower = default(pod)
  return function(other)
    return lower(other) and fields.label(other, keys.preemptible) ~= "false"
      and quota.name_of(other, state) == name
  end
end

-- ---------------------------------------------------------------- budgets

-- Splits entries into those whose eviction breaks a budget, and the others.
local function split(entries, budgets)
  local left, breaking, others = {}, {}, {}
  for _, budget in ipairs(budgets or {}) do
    local selector = dig(budget, "spec", "selector")
    local ok, compiled = pcall(kube.selector, selector)
    local some = selector and ((next(selector.matchLabels or {})) or #(selector.matchExpressions or {}) > 0)
    if ok and some then
      left[#left + 1] = { budget = budget, selector = compiled,
        n = dig(budget, "status", "disruptionsAllowed") or 0 }
    end
  end
  for _, entry in ipairs(entries) do
    local meta, breaks = entry.pod.metadata, false
    for _, one in ipairs(left) do
      if one.budget.metadata.namespace == meta.namespace and next(meta.labels or {})
        and one.selector:matches(meta.labels)
        and not dig(one.budget, "status", "disruptedPods", meta.name) then
        one.n = one.n - 1
        breaks = breaks or one.n < 0
      end
    end
    table.insert(breaks and breaking or others, entry)
  end
  return breaking, others
end

-- ---------------------------------------------------------------- one node

-- The victims on a node so that the pod fits: { info, victims = entries, broken = number of broken budgets },
-- or nil. The state is unchanged afterwards.
local function on_node(pod, info, state, args, may_go)
  local all = {}
  for _, entry in pairs(info.pods) do
    if may_go(entry.pod) then all[#all + 1] = entry end
  end
  if #all == 0 then return nil end
  by_importance(all, state.now)
  for _, entry in ipairs(all) do snapshot.take_out(state, entry.pod, info.node) end
  local victims, broken = {}, 0
  local fits = cycle.fits(pod, info, state, args)
  if fits then
    local breaking, others = split(all, state.budgets)
    for i, list in ipairs { breaking, others } do
      for _, entry in ipairs(list) do
        snapshot.put_back(state, entry, info.node)
        if not cycle.fits(pod, info, state, args) then
          snapshot.take_out(state, entry.pod, info.node)
          victims[#victims + 1] = entry
          broken = broken + (i == 1 and 1 or 0)
        end
      end
    end
    all = victims
  end
  for _, entry in ipairs(all) do snapshot.put_back(state, entry, info.node) end
  if #victims == 0 then return nil end
  by_importance(victims, state.now)
  return { info = info, victims = victims, broken = broken }
end

-- ---------------------------------------------------------------- all nodes

local function rank_of(candidate, now)
  local first, sum, youngest = M.priority(candidate.victims[1].pod), 0, math.huge
  for _, entry in ipairs(candidate.victims) do
    local priority = M.priority(entry.pod)
    sum = sum + priority + OFFSET
    if priority == first then youngest = math.min(youngest, started(entry.pod, now)) end
  end
  return { candidate.broken, first, sum, #candidate.victims, -youngest, candidate.info.name }
end

local function best(pod, infos, state, args, o)
  local candidates, ranks, wanted = {}, {}, math.max(#infos // PART, LEAST)
  for _, info in ipairs(infos) do
    local refused = o.refused[info.name]
    if #candidates < wanted and not (refused and LASTING[refused.plugin]) then
      local one = on_node(pod, info, state, args, o.may_go)
      if one then candidates[#candidates + 1], ranks[one] = one, rank_of(one, state.now) end
    end
  end
  order.sort(candidates, ranks)
  return candidates[1]
end

-- The nominated node of a pod, or nil.
function M.nominated(pod)
  local name = dig(pod, "status", "nominatedNodeName") or ""
  return name ~= "" and name or nil
end

-- Whether a pod of lower priority is terminating on the pod's nominated node.
function M.waits(pod, state)
  local info = state.sums[M.nominated(pod) or ""]
  for _, entry in pairs(info and info.pods or {}) do
    local going = entry.pod.metadata.deletionTimestamp ~= nil
    if going and M.priority(entry.pod) < M.priority(pod) then return true end
  end
  return false
end

-- The preemption for a pod without a node; result: that of cycle.run. Returns { node, victims = pods }, or
-- nil.
function M.find(pod, result, state, args)
  if dig(pod, "spec", "preemptionPolicy") == "Never" or pod.reserves then return nil end
  local ways = { within_quota(pod, state, args) }
  if not result.prefilter then ways[#ways + 1] = default(pod) end
  for _, may_go in ipairs(ways) do
    local found = best(pod, state.infos_of, state, args, { may_go = may_go, refused = result.refused })
    if found then
      local victims = {}
      for i, entry in ipairs(found.victims) do victims[i] = entry.pod end
      return { node = found.info.node, victims = victims }
    end
  end
  return nil
end

-- Applies the preemption to the state: the victims are gone, and their resources are the pod's.
function M.assume(state, pod, found)
  for _, victim in ipairs(found.victims) do snapshot.take_out(state, victim, found.node) end
  snapshot.hold(state, pod, found.node)
end

-- Whether a victim of an earlier decision still exists.
function M.is_there(room, state)
  for key, uid in pairs(room.victims) do
    local info = state.sums[room.on and room.on[key] or room.node]
    local entry = info and info.pods[key]
    if entry and entry.pod.metadata.uid == uid then return true end
  end
  return false
end

-- The room that preemption makes for a pod without a node: { node = its name, victims = { [pod key] = uid },
-- on = { [pod key] = node name } of victims on other nodes, made = whether the victims were deleted }. The
-- state then counts it as the pod's. nil: there is none. While victims of `old`, the earlier room, exist,
-- there are no new ones.
function M.room(pod, result, state, args, old)
  local room = old and M.is_there(old, state) and old
    or M.waits(pod, state) and { node = M.nominated(pod), victims = {}, made = true }
  if room then
    snapshot.hold(state, pod, state.sums[room.node].node)
    return room
  end
  local found = M.find(pod, result, state, args)
  if not found then return nil end
  M.assume(state, pod, found)
  room = { node = found.node.metadata.name, victims = {} }
  for _, victim in ipairs(found.victims) do room.victims[pods.key(victim)] = victim.metadata.uid end
  return room
end

return M
