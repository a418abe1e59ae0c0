-- gangpreempt.lua - which pods must go so that a whole gang fits, as Koordinator's Coscheduling decides with
-- enablePreemption:
--
--   1. All pods that the gang may have go are taken away, on every node: those of lower priority than any of
--      the gang, unless a label says quota.scheduling.koordinator.sh/preemptible: "false" or
--      scheduling.koordinator.sh/disable-preemptible: "true".
--   2. Each pod of the gang without a node gets one where it fits then: the one that costs least, then the
--      first by name. It counts before the next. When one fits nowhere, nobody goes.
--   3. On each node those that were taken away are let back, the more important first, as long as the pods of
--      the gang still fit there. The others are the victims.
--
-- A node costs the ranks of the priorities of those that may go, the least of all being 0. Pods of one job
-- (label questioned-object-key) cost once. PodDisruptionBudgets do not count, as upstream.

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

-- Takes away all that may go. Returns { [node name] = entries }, and the infos of all nodes by name.
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

-- { [node name] = what those that went from there cost }
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

-- Whether pods fit a node, one after the other; the state is as before.
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

-- Lets back who may stay on a node with pods of the gang, which are counted there, and returns the others.
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

-- Puts the pods that fit without anybody's going where they fit, and returns the others.
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

-- A node for each pod of `pending`: { [info] = its pods }; nil when one fits nowhere. They are counted, and
-- added to `placed`.
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

-- For the pods of a gang that wait, the more important first: { nodes = { [pod key] = Node },
-- victims = { { node, pod }, ... } }; nil where it would not help that others go. The state is as before.
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

-- Rooms that were promised before, while somebody is still to go from one of them; or nil. old_of(pod) is the
-- room that is remembered of a pod.
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

-- The rooms of a gang's waiting pods, as preempt.room has them, by pod key; the state then counts them. All
-- victims are in that of the pod with the key `own`, or of the first, which has them go. None where it would
-- not help.
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
