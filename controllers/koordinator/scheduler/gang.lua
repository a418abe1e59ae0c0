-- gang.lua - Coscheduling: pods of a gang get nodes together or not at all. One decision places all waiting
-- pods of a gang, and counts each before the next. When too few of them fit, the mode decides: Strict drops
-- all placements; in NonStrict the placed pods keep their nodes, unbound, for the gang's waiting time, and
-- the next decision adds to them (Koordinator's Permit). Gangs that name each other in `groups` are decided
-- together.
--
-- state.gangs is the result of gang.index for all pods; state.groups is { [namespace/name] = PodGroup };
-- state.held is { [pod key] = placement } of pods that keep a node, on which they are counted.

local cycle = require "scheduler.cycle"
local fields = require "fields"
local kube = require "kubelua"
local order = require "lib.order"
local pods = require "pods"
local snapshot = require "scheduler.snapshot"

local M = {}

M.KIND = "scheduling.sigs.k8s.io/v1alpha1/PodGroup"

local LABEL = "pod-group.scheduling.sigs.k8s.io"
local PREFIX = "gang.scheduling.koordinator.sh/"
local PATIENCE = 600 -- seconds, the default waiting time of a gang

-- "namespace/name" of a pod's gang, or nil.
function M.of(pod)
  for _, name in ipairs { fields.label(pod, LABEL) or "", fields.label(pod, LABEL .. "/name") or "",
    fields.annotation(pod, PREFIX .. "name") or "" } do
    if name ~= "" then return (pod.metadata.namespace or "") .. "/" .. name end
  end
  return nil
end

-- { [gang] = { waiting = pods, bound = n } }. is_bound(pod): whether it has a node; nil: the pod does not
-- count.
function M.index(list, is_bound)
  local gangs = {}
  for _, pod in ipairs(list) do
    local id, bound = M.of(pod), is_bound(pod)
    if id and bound ~= nil then
      gangs[id] = gangs[id] or { waiting = {}, bound = 0 }
      if bound then
        gangs[id].bound = gangs[id].bound + 1
      else
        table.insert(gangs[id].waiting, pod)
      end
    end
  end
  return gangs
end

local function said(object, name) return object and fields.annotation(object, PREFIX .. name) end

-- The number of pods that must have a node: from the PodGroup, or, without one, from a pod of the gang.
local function least(id, pod, state)
  local group = state.groups and state.groups[id]
  if group then return fields.dig(group, "spec", "minMember") or 0 end
  local text = said(pod, "min-available") or fields.label(pod, LABEL .. "/min-available")
  return text and math.tointeger(tonumber(text)) or nil
end

-- An annotation of the gang: of its PodGroup, or, without one, of its pod.
local function own_word(id, pod, state, name) return said(state.groups and state.groups[id] or pod, name) end

-- The seconds for which its pods keep a node unbound; nil in mode Strict.
local function patience(id, pod, state)
  if own_word(id, pod, state, "mode") ~= "NonStrict" then return nil end
  local seconds = fields.dig(state.groups, id, "spec", "scheduleTimeoutSeconds")
  if seconds then return seconds end
  local text = own_word(id, pod, state, "waiting-time")
  local ok, n = pcall(kube.duration, text or "")
  return text and ok and n > 0 and n or PATIENCE
end

-- The gangs that are bound together with this one, including itself.
local function together(id, pod, state)
  local text = own_word(id, pod, state, "groups")
  local list = text and text ~= "" and fields.json(text) or {}
  return #list > 0 and list or { id }
end

-- The gangs of a group as { id, min, waiting, bound }; nil and the reason when one of them is incomplete.
local function gather(id, pod, state)
  local ids, out, missing, few = together(id, pod, state), {}, {}, {}
  for i, one in ipairs(ids) do
    local known = state.gangs[one] or { waiting = {}, bound = 0 }
    local min = least(one, known.waiting[1] or one == id and pod or nil, state)
    out[i] = { id = one, min = min, waiting = known.waiting, bound = known.bound }
    if not min then
      missing[#missing + 1] = one
    elseif #known.waiting + known.bound < min then
      few[#few + 1] = one
    end
  end
  local why = {}
  if #missing > 0 then
    why[1] = ("memberGangs [%s] doesn't exists"):format(table.concat(missing, " "))
  end
  if #few > 0 then
    why[#why + 1] = ("memberGangs [%s] child pod not collect enough"):format(table.concat(few, " "))
  end
  if #why == 0 then return out end
  return nil, ("gangGroup [%s] basic check: %s, current gang: %s, podName: %s"):format(table.concat(ids, " "),
    table.concat(why, ", "), id, pods.key(pod))
end

local function by_importance(list)
  local out, ranks = table.move(list, 1, #list, 1, {}), {}
  for _, pod in ipairs(out) do
    ranks[pod] = { -(fields.dig(pod, "spec", "priority") or 0), order.created(pod), pods.key(pod) }
  end
  order.sort(out, ranks)
  return out
end

-- Counts a pod on the node of its result, and returns its placement.
local function assume(pod, result, state)
  local room, got = result.reservation and result.reservation.metadata, cycle.got(result)
  snapshot.assume(state, pod, result.node, got)
  return { pod = pod, node = result.node, room = room and { name = room.name, uid = room.uid }, got = got }
end

-- Places the waiting pods of one gang. Returns the number of placed pods, and the first refusal's message.
local function place(gang, nodes, state, args, placements)
  local n, message = 0, nil
  for _, pod in ipairs(by_importance(gang.waiting)) do
    local held = state.held and state.held[pods.key(pod)]
    if held then
      placements[#placements + 1] = held
      n = n + 1
    else
      local result = cycle.run(pod, nodes, state, args)
      if result.node then
        placements[#placements + 1] = assume(pod, result, state)
        n = n + 1
      else
        message = message or result.message
      end
    end
  end
  return n, message
end

local function alone(pod, nodes, state, args)
  local result = cycle.run(pod, nodes, state, args)
  if not result.node then return {}, result.message, nil, result end
  return { assume(pod, result, state) }
end

-- The waiting pods of a pod's gang and of those bound together with it, without those in `placements`, the
-- more important first; empty when one of the gangs is incomplete.
function M.waiting(pod, state, placements)
  local id, out, placed = M.of(pod), {}, {}
  for _, one in ipairs(placements or {}) do placed[one.pod] = true end
  for _, gang in ipairs(id and gather(id, pod, state) or {}) do
    for _, other in ipairs(gang.waiting) do
      if not placed[other] then out[#out + 1] = other end
    end
  end
  return by_importance(out)
end

local function satisfied(gangs)
  for _, gang in ipairs(gangs) do
    if gang.bound < gang.min then return false end
  end
  return true
end

-- Decides a pod, or all pods of its gang while that is not satisfied. Placed pods are counted in the state.
-- Returns a list of { pod, node, room = { name, uid } of a Reservation, got = cycle.got }, all to be bound;
-- or an empty list, the reason, and { placements, seconds } of pods that keep their nodes unbound, or nil.
-- For a single pod the fourth result is that of cycle.run.
function M.decide(pod, nodes, state, args)
  local id = M.of(pod)
  if not id then return alone(pod, nodes, state, args) end
  local gangs, why = gather(id, pod, state)
  if not gangs then return {}, why end
  if satisfied(gangs) then return alone(pod, nodes, state, args) end
  local placements, failed = {}, nil
  for _, gang in ipairs(gangs) do
    local n, message = place(gang, nodes, state, args, placements)
    if not failed and n + gang.bound < gang.min then
      failed = ("%s Gang %q gets rejected: %d of %d pods have a node"):format(message, gang.id,
        n + gang.bound, gang.min)
    end
  end
  if not failed then return placements end
  local seconds = patience(id, pod, state)
  if seconds then return {}, failed, { placements = placements, seconds = seconds } end
  for _, one in ipairs(placements) do snapshot.take_out(state, one.pod, one.node) end
  return {}, failed
end

return M
