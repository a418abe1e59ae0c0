-- snapshot.lua - the state of the cluster for a scheduling cycle, a plain table:
--
--   { pods_on = { [node name] = list of pods }, metrics = { [node name] = NodeMetric }, now = seconds,
--     quotas = index of members.index, infos = results of tree.calculate,
--     reservations_on = index of reserved.index,
--     devices = { [node name] = Device },
--     templates = of parts of NPUs, { [model] = { [name] = list of amounts } } (deviceshare.lua),
--     topologies = { [node name] = NodeResourceTopology },
--     got = { [pod key] = { uid, devices, numa } } of pods whose annotations lack them yet,
--     requests = { [pod key] = request } of pods whose request is known,
--     namespaces = { [name] = labels } for affinities that select namespaces,
--     volumes = { claims, volumes, classes } by key or name (volumes.lua), { limits, attached } by node
--       (volumelimits.lua),
--     budgets = list of PodDisruptionBudgets }
--
-- All of it is optional but pods_on. What is summed up per node is kept in state.sums, so that a cycle costs
-- the same whether a node has three pods or three hundred; assume, hold, take_out, put_back and report keep
-- the sums current, and inherit takes those of nodes that stayed the same over into the next state.

local kube = require "kubelua"
local fields = require "fields"
local lifecycle = require "reservations.lifecycle"
local lists = require "lib.lists"
local pods = require "pods"
local quota = require "scheduler.quota"
local reserved = require "scheduler.reservation.reserved"
local template = require "scheduler.reservation.template"

local M = {}

-- Whether a pod has ended, and uses nothing any more.
function M.ended(pod)
  local phase = fields.dig(pod, "status", "phase")
  return phase == "Succeeded" or phase == "Failed"
end

-- Clears the plugins' caches of a node, and gives it a new stamp, which outdates the results for it.
function M.renew(info)
  info.load, info.added, info.devices, info.numa, info.ports, info.volumes = nil, nil, nil, nil, nil, nil
  info.stamp = {}
end

-- added: the entry that was added, if nothing else changed.
local function change(info, added)
  local load, list = info.load, info.added
  M.renew(info)
  if added and load then
    list = list or {}
    list[#list + 1] = added
    info.load, info.added = load, list
  end
  info.touched = true
end

local function request_of(state, pod)
  return state.requests and state.requests[pods.key(pod)] or lists.of(kube.requests(pod))
end

-- Counts the pods of a node with affinity terms, for affinity.lua; most clusters have none.
local function count_minding(state, info, pod, n)
  local affinity = fields.dig(pod, "spec", "affinity")
  if affinity == nil or affinity.podAffinity == nil and affinity.podAntiAffinity == nil then return end
  state.minding = state.minding or {}
  local left = (state.minding[info.name] or 0) + n
  state.minding[info.name] = left > 0 and left or nil
end

-- Adds an entry to the sums of a node (n = 1), or removes it (n = -1).
local function count(state, info, entry, n)
  local pod = entry.pod
  local request, key = request_of(state, pod), pods.key(pod)
  local is_new = n > 0 and info.pods[key] == nil
  info.pods[key] = n > 0 and entry or nil
  if n > 0 then
    lists.accumulate(info.requested, request)
  else
    info.requested = lists.sub(info.requested, request)
  end
  info.requested.pods = info.requested.pods + n
  count_minding(state, info, pod, n)
  reserved.count(info, entry.uid, request, n > 0)
  change(info, is_new and entry)
end

local function entry_of(pod, at, got)
  return { pod = pod, at = at, uid = got.uid, devices = got.devices, numa = got.numa }
end

-- What is known of a node:
--   { node, name, allocatable, requested   as lists of amounts, `pods` being one of their names
--     pods = { [key] = { pod, at, uid, devices, numa } }
--       at: when the scheduler put it there; uid: of the Reservation that it uses; devices: its own; numa:
--       its processors and NUMA nodes; each nil for what the pod says
--     rooms                                of its Reservations (reservation.lua)
--     metric                               the NodeMetric, or nil
--     load, devices, numa, ports, volumes  what plugins keep here until the node changes
--     added                                entries that came since `load` was set, which stays
--     stamp                                another table after each change
--     touched }                            whether it is not only what was read
function M.info(state, node)
  state.sums = state.sums or {}
  local name = node.metadata.name
  local info = state.sums[name]
  if not info then
    local rooms = reserved.of(fields.dig(state.reservations_on, name))
    info = {
      node = node,
      name = name,
      allocatable = lists.of(fields.dig(node, "status", "allocatable")),
      requested = { pods = 0 },
      pods = {},
      rooms = rooms,
      metric = state.metrics and state.metrics[name],
      stamp = {},
    }
    for _, pod in ipairs(state.pods_on[name] or {}) do
      local got = state.got and state.got[pods.key(pod)]
        or { uid = #rooms > 0 and lifecycle.used_by(pod) or nil }
      if not M.ended(pod) then count(state, info, entry_of(pod, nil, got), 1) end
    end
    info.touched = nil
    state.sums[name] = info
  end
  return info
end

-- Goes on with what an earlier state knew of nodes, but for those of `changed`, { [name] = true }, and those
-- that were counted on since they were read.
function M.inherit(state, before, changed)
  local minding = {}
  state.sums, state.minding = {}, nil
  for name, info in pairs(before.sums or {}) do
    if not info.touched and not changed[name] then
      info.volumes = nil -- what is known of claims may have changed
      state.sums[name], minding[name] = info, before.minding and before.minding[name]
    end
  end
  if next(minding) then state.minding = minding end
end

-- Counts a pod on a node and in its quota, with its result of cycle.got, before the API server shows it.
function M.assume(state, pod, node, got)
  M.put_back(state, entry_of(pod, state.now, got or {}), node)
end

-- Counts a pod on a node, and in no quota: it will be bound there after its victims are gone.
function M.hold(state, pod, node) count(state, M.info(state, node), entry_of(pod, state.now, {}), 1) end

-- Replaces the NodeMetric of a node.
function M.report(state, metric)
  state.metrics = state.metrics or {}
  local name = metric.metadata.name
  state.metrics[name] = metric
  local info = state.sums and state.sums[name]
  if info then
    info.metric = metric
    change(info)
  end
end

-- Removes a pod from its node and its quota. Returns its entry, for put_back; nil: it is not on the node.
function M.take_out(state, pod, node)
  local info = M.info(state, node)
  local entry = info.pods[pods.key(pod)]
  if not entry then return nil end
  count(state, info, entry, -1)
  quota.count(state, entry.pod, false)
  return entry
end

function M.put_back(state, entry, node)
  count(state, M.info(state, node), entry, 1)
  quota.count(state, entry.pod, true)
end

-- Counts a Reservation on a node before the API server shows it. owners: the pods that it takes over, as
-- entries of info.pods.
function M.reserve(state, object, node, owners)
  local info, name = M.info(state, node), node.metadata.name
  local placed = { metadata = object.metadata, spec = object.spec,
    status = template.placed(object, name, state.now) }
  state.reservations_on = state.reservations_on or {}
  state.reservations_on[name] = state.reservations_on[name] or {}
  table.insert(state.reservations_on[name], placed)
  table.insert(info.rooms, reserved.of({ placed })[1])
  for _, entry in ipairs(owners or {}) do
    count(state, info, entry, -1)
    entry.uid = object.metadata.uid
    count(state, info, entry, 1)
  end
  change(info)
end

return M
