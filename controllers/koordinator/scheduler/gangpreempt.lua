-- gangpreempt.lua - the victims of preemption for a whole gang, as in Koordinator's Coscheduling with
-- enablePreemption:
--
--   1. All preemptible pods are removed from all nodes: those of lower priority than every pod of the gang,
--      unless they have the label quota.scheduling.koordinator.sh/preemptible: "false" or
--      scheduling.koordinator.sh/disable-preemptible: "true".
--   2. Each pod of the gang without a node gets the cheapest node that fits now, the first by name among
--      equal ones, and is counted before the next. If one fits nowhere, nothing is preempted.
--   3. On each node the removed pods are added again, the more important first, while the pods of the gang
--      still fit. Those that cannot be added are the victims.
--
-- The cost of a node is the sum of the ranks of its preemptible pods' priorities; the lowest priority of all
-- has rank 0. The pods of one job (label questioned-object-key) count once. PodDisruptionBudgets are ignored,
-- as upstream does.

local cycle = require "scheduler.cycle"
local fields = require "fields"
local keys = require "elasticquota.keys"
local order = require "lib.order"
local pods = require "pods"
local preempt = require "scheduler.preempt"
local snapshot = require "scheduler.snapshot"

local M = {}

local NEVER = "scheduling.koordinator.sh/disable-preemptible"
local JOB = "scheduling.koordinator.sh/questioned-object-key"

local function may_go(pod, priority)
  return preempt.priority(pod) < priority and fields.label(pod, keys.preemptible) ~= "false"
    and fields.label(pod, NEVER) ~= "true"
end

-- The more important first, pods of one job together.
local function by_importance(entries)
  local ranks = {}
  for _, entry in ipairs(entries) do
    ranks[entry] = { -preempt.priority(entry.pod), fields.label(entry.pod, JOB) or "", pods.key(entry.pod) }
  end
  order.sort(entries, ranks)
end

-- Removes all preemptible pods. Returns { [node name] = entries }, and the infos sorted by name.
local function clear(infos, state, priority)
  local gone, sorted = {}, table.move(infos, 1, #infos, 1, {})
  table.sort(sorted, function(a, b) return a.name < b.name end)
  for _, info in ipairs(sorted) do
    local entries = {}
    for _, entry in pairs(info.pods) do
      if may_go(entry.pod, priority) then entries[#entries + 1] = entry end
    end
    by_importance(entries)
    for _, entry in ipairs(entries) do snapshot.take_out(state, entry.pod, info.node) end
    gone[info.name] = entries
  end
  return gone, sorted
end

-- { [node name] = cost }
local function costs_of(gone)
  local seen, list, rank, costs = {}, {}, {}, {}
  for _, entries in pairs(gone) do
    for _, entry in ipairs(entries) do
      local priority = preempt.priority(entry.pod)
      if not seen[priority] then list[#list + 1], seen[priority] = priority, true end
    end
  end
  table.sort(list)
  for i, priority in ipairs(list) do rank[priority] = i - 1 end
  for name, entries in pairs(gone) do
    local jobs, cost = {}, 0
    for _, entry in ipairs(entries) do
      local job = fields.label(entry.pod, JOB) or entry
      if not jobs[job] then cost, jobs[job] = cost + rank[preempt.priority(entry.pod)], true end
    end
    costs[name] = cost
  end
  return costs
end

local function cheapest(pod, infos, state, args, costs)
  local best, got
  for _, info in ipairs(infos) do
    if not best or costs[info.name] < costs[best.name] then
      local one = cycle.place(pod, info, state, args)
      if one then best, got = info, one end
    end
  end
  return best, got
end

-- Whether all the pods fit a node together. The state is unchanged afterwards.
local function fit_together(list, info, state, args)
  local there = {}
  for _, pod in ipairs(list) do
    local got = cycle.place(pod, info, state, args)
    if not got then break end
    snapshot.assume(state, pod, info.node, got)
    there[#there + 1] = pod
  end
  for _, pod in ipairs(there) do snapshot.take_out(state, pod, info.node) end
  return #there == #list
end

-- Adds the removed pods that still fit a node beside its pods of the gang, and returns the others.
local function victims_on(info, entries, list, state, args)
  local victims = {}
  for _, pod in ipairs(list) do snapshot.take_out(state, pod, info.node) end
  for _, entry in ipairs(entries) do
    snapshot.put_back(state, entry, info.node)
    if not fit_together(list, info, state, args) then
      snapshot.take_out(state, entry.pod, info.node)
      victims[#victims + 1] = entry
    end
  end
  for _, pod in ipairs(list) do
    snapshot.assume(state, pod, info.node, cycle.place(pod, info, state, args))
  end
  return victims
end

-- Places the pods that fit without preemption, and returns the others.
local function place_what_fits(list, nodes, state, args, placed)
  local pending = {}
  for _, pod in ipairs(list) do
    local result = cycle.run(pod, nodes, state, args)
    if result.node then
      snapshot.assume(state, pod, result.node, cycle.got(result))
      placed[#placed + 1] = { pod = pod, info = state.sums[result.node.metadata.name] }
    else
      pending[#pending + 1] = pod
    end
  end
  return pending
end

-- Places each pod of `pending`, counts it, and adds it to `placed`. Returns { [info] = its pods }; nil: one
-- fits nowhere.
local function place_the_rest(pending, infos, state, args, costs, placed)
  local on = {}
  for _, pod in ipairs(pending) do
    local info, got = cheapest(pod, infos, state, args, costs)
    if not info then return nil end
    snapshot.assume(state, pod, info.node, got)
    placed[#placed + 1] = { pod = pod, info = info }
    on[info] = on[info] or {}
    table.insert(on[info], pod)
  end
  return on
end

-- list: the waiting pods of a gang, the more important first. Returns { nodes = { [pod key] = Node }, victims
-- = { { node, pod }, ... } }; nil: preemption does not help. The state is unchanged afterwards.
function M.find(list, nodes, state, args)
  if #list == 0 or fields.dig(list[1], "spec", "preemptionPolicy") == "Never" then return nil end
  local placed, out = {}, { nodes = {}, victims = {} }
  local pending = place_what_fits(list, nodes, state, args, placed)
  local gone, infos = clear(state.infos_of or {}, state, preempt.priority(list[#list]))
  local on = #pending > 0 and place_the_rest(pending, infos, state, args, costs_of(gone), placed)
  for _, one in ipairs(placed) do
    out.nodes[pods.key(one.pod)] = one.info.node
  end
  for _, info in ipairs(on and infos or {}) do
    if on[info] then
      gone[info.name] = victims_on(info, gone[info.name], on[info], state, args)
      for _, entry in ipairs(gone[info.name]) do
        table.insert(out.victims, { node = info.node, pod = entry.pod })
      end
    end
  end
  for _, info in ipairs(infos) do
    for _, entry in ipairs(gone[info.name]) do snapshot.put_back(state, entry, info.node) end
  end
  for _, one in ipairs(placed) do snapshot.take_out(state, one.pod, one.info.node) end
  return on and #out.victims > 0 and out or nil
end

-- ---------------------------------------------------------------- from decision to decision

local function hold(list, rooms, state)
  for _, pod in ipairs(list) do
    local room = rooms[pods.key(pod)]
    if room then snapshot.hold(state, pod, state.sums[room.node].node) end
  end
  return rooms
end

-- The rooms of an earlier decision, while a victim of one of them still exists; or nil. old_of(pod) returns
-- the earlier room of a pod.
local function promised(list, state, old_of)
  local rooms, going = {}, false
  for _, pod in ipairs(list) do
    local room = old_of(pod)
    local waits = preempt.waits(pod, state)
    if not room and waits then room = { node = preempt.nominated(pod), victims = {}, made = true } end
    if room and state.sums[room.node] then
      rooms[pods.key(pod)] = room
      going = going or waits or preempt.is_there(room, state)
    end
  end
  return going and rooms or nil
end

-- The rooms of a gang's waiting pods, in the form of preempt.room, by pod key; the state counts them. All
-- victims are in the room of the pod `own`, or of the first pod, whose run deletes them. Empty: preemption
-- does not help.
function M.rooms(list, nodes, state, args, own, old_of)
  local rooms = promised(list, state, old_of)
  if rooms then return hold(list, rooms, state) end
  local found = M.find(list, nodes, state, args)
  if not found then return {} end
  rooms = {}
  for key, node in pairs(found.nodes) do rooms[key] = { node = node.metadata.name, victims = {}, on = {} } end
  local room = rooms[own] or rooms[pods.key(list[1])]
  for _, one in ipairs(found.victims) do
    local key = pods.key(one.pod)
    snapshot.take_out(state, one.pod, one.node)
    room.victims[key], room.on[key] = one.pod.metadata.uid, one.node.metadata.name
  end
  return hold(list, rooms, state)
end

return M
