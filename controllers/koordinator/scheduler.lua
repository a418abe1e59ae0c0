-- scheduler.lua - a scheduler with Koordinator's policies. It binds each pod of its schedulerName to a node,
-- or writes into the pod's status why no node fits. It does the same for Reservations whose template has that
-- schedulerName. The decisions are the pure functions of scheduler/cycle.lua.
--
--   kubelua run controllers/koordinator/scheduler.lua --param schedulerName=my-scheduler
--
-- Each pod is a key. A run whose pod is undecided decides for all waiting pods, the more important first, and
-- stores the decisions (scheduler/decided.lua). The runs of the other pods find their decision, and only
-- bind. So the cluster is read once for many pods, by one run at a time, while other runs bind.

local kube = require "kubelua"
local cluster = require "scheduler.cluster"
local cycle = require "scheduler.cycle"
local decided = require "scheduler.decided"
local fields = require "fields"
local gang = require "scheduler.gang"
local gangpreempt = require "scheduler.gangpreempt"
local lifecycle = require "reservations.lifecycle"
local marks = require "scheduler.marks"
local order = require "lib.order"
local pods = require "pods"
local preempt = require "scheduler.preempt"
local reservation = require "scheduler.reservation"
local settings = require "scheduler.settings"
local snapshot = require "scheduler.snapshot"
local template = require "scheduler.reservation.template"
local volumes = require "scheduler.volumes"
local wakes = require "scheduler.wakes"

local POD = cluster.POD
local AGAIN = 10   -- seconds until a pod that fits nowhere is tried again
local SOON = 0.05  -- seconds until a run is tried again while another run decides
local BATCH = 256  -- the most placements of one decision
local WAITING = wakes.WAITING

-- { [pod key] = { uid, message, at, said, room } } of pods without a node. said: whether the pod's status has
-- the message; room: the result of preempt.room.
local refused = {}

local read = cluster.reader() -- of the one worker

-- Maps the priorities of Koordinator's classes, 3000 to 9999, to the 99 priorities of keys.
local function priority(pod)
  local n = ((fields.dig(pod, "spec", "priority") or 0) - 6500) // 72
  return math.max(-49, math.min(49, n))
end

-- ---------------------------------------------------------------- deciding

-- Whether a pod was never decided; its own key is in the queue then.
local function is_fresh(pod)
  local condition = kube.find_condition(pod, "PodScheduled")
  return condition == nil or condition.status ~= "False"
end

-- The rank of an entry in the queue, kept in it: the facts of a pod stay the same for many decisions.
local function rank_of(entry)
  entry.rank = entry.rank or { -preempt.priority(entry.pod), preempt.nominated(entry.pod) and 0 or 1,
    order.created(entry.pod), entry.key }
  return entry.rank
end

-- The args of a cycle, the same table as long as the params are the same.
local args_of_params = {}

local function args_of(params)
  if not args_of_params.args or not kube.equal(args_of_params.params, params) then
    args_of_params = { params = fields.copy(params), args = settings.args(params) }
  end
  return args_of_params.args
end

-- The pods and Reservations to decide, the most important first, as { key, pod, object = the Reservation }:
-- new pods, pods with a nominated node, pods that were refused some time ago, and the pod `own`. If `own` was
-- refused before, all refused pods: what woke it may have freed resources for them, too. waiting: the facts
-- (facts.lua) of pods without a node; the entry of a pod is its facts.
local function queue_of(ctx, state, waiting, own)
  local out, ranks, again = {}, {}, refused[own] ~= nil
  local function add(entry)
    out[#out + 1] = entry
    ranks[entry] = rank_of(entry)
  end
  for _, fact in ipairs(waiting) do
    local key, before = fact.key, refused[fact.key]
    if fact.fresh == nil then fact.fresh = is_fresh(fact.pod) end
    if key == own or preempt.nominated(fact.pod) or not before and fact.fresh
      or before and (before.room or again and before.said or state.now - before.at >= AGAIN) then
      add(fact)
    end
  end
  for _, object in ipairs(ctx:list(reservation.KIND)) do
    local name = object.metadata.name
    if template.is_waiting(object, ctx.params.schedulerName)
      and not decided.reservation(name, object.metadata.uid) then
      add { key = name, pod = template.as_pod(object), object = object }
    end
  end
  order.sort(out, ranks)
  return out
end

-- Stores a placement until the cache shows it.
local function remember(placement, more)
  local what = { uid = placement.pod.metadata.uid, node = placement.node.metadata.name,
    room = placement.room, got = placement.got }
  for name, value in pairs(more) do what[name] = value end
  decided.assume(pods.key(placement.pod), what)
end

local function place_reservation(entry, nodes, state, args)
  local result = cycle.run(entry.pod, nodes, state, args)
  if not result.node then return result.message end
  local got = cycle.got(result)
  local owners = {}
  for i, one in ipairs(result.owners) do
    owners[i] = { key = pods.key(one.pod), uid = one.pod.metadata.uid }
  end
  snapshot.reserve(state, marks.on(entry.object, marks.texts(got, entry.pod)), result.node, result.owners)
  decided.reserve(entry.key, { uid = entry.pod.metadata.uid, node = result.node.metadata.name, got = got,
    owners = owners, at = state.now })
end

-- The room that an earlier decision found for a pod, or nil.
local function promised(pod)
  local before = refused[pods.key(pod)]
  return before and before.uid == pod.metadata.uid and before.room or nil
end

-- The pods that share the refusal of this one: the waiting pods of its gang, or, if rooms were found, those
-- of all gangs that are bound together with it.
local function one_with(pod, state, rooms)
  local id = gang.of(pod)
  if id and next(rooms) then return gang.waiting(pod, state) end
  local known = id and state.gangs[id]
  return known and #known.waiting > 0 and known.waiting or { pod }
end

-- The rooms that preemption can make for a pod without a node, or for all pods of its gang, by pod key.
local function rooms_for(pod, result, held, nodes, state, args, ctx)
  if not ctx.params.preemption then return {} end
  if result then return { [pods.key(pod)] = preempt.room(pod, result, state, args, promised(pod)) } end
  local list = ctx.params.gangPreemption and gang.waiting(pod, state, held and held.placements) or {}
  return gangpreempt.rooms(list, nodes, state, args, ctx.key, promised)
end

-- Decides for all waiting pods and Reservations. Returns { mine, messages }: the keys of the pods that this
-- run must bind, and the messages of Reservations that fit no node, by name.
local function pass(ctx, own)
  local args = args_of(ctx.params)
  local state, bound, waiting, nodes = read(ctx, args)
  local out = { mine = {}, messages = {} }
  local done, placed = {}, 0
  if bound[own] and not bound[own].held_until then return out end
  for _, entry in ipairs(queue_of(ctx, state, waiting, own)) do
    if placed >= BATCH then break end
    if entry.object then
      out.messages[entry.key] = place_reservation(entry, nodes, state, args)
      placed = placed + 1
    elseif not done[entry.key] then
      local placements, why, held, result = gang.decide(entry.pod, nodes, state, args)
      local rooms = why and rooms_for(entry.pod, result, held, nodes, state, args, ctx) or {}
      for _, one in ipairs(placements) do
        local key = pods.key(one.pod)
        local by = not is_fresh(one.pod) and key ~= own and own or nil
        remember(one, { at = state.now, by = by })
        if by then out.mine[#out.mine + 1] = key end
        done[key], refused[key] = true, nil
      end
      for _, one in ipairs(held and held.placements or {}) do
        local key = pods.key(one.pod)
        local known = state.held[key]
        if not known then remember(one, { at = state.now, held_until = state.now + held.seconds }) end
      end
      for _, pod in ipairs(why and one_with(entry.pod, state, rooms) or {}) do
        local key = pods.key(pod)
        done[key] = true
        refused[key] = { uid = pod.metadata.uid, message = why, at = state.now, room = rooms[key] }
      end
      placed = placed + #placements
    end
  end
  return out
end

-- ---------------------------------------------------------------- pods

-- The text of a pod's annotation that names its Reservation.
local function room_text(room) return kube.encode(kube.object { name = room.name, uid = room.uid }) end

-- Writes the pod's Reservation, devices and processors into its annotations before it is bound: nobody may
-- see it on the node without them.
local function mark(ctx, pod, known)
  local texts = marks.texts(known.got and fields.copy(known.got) or {}, pod)
  texts[lifecycle.ALLOCATED] = known.room and room_text(known.room) or false
  if marks.says(pod, texts) then return end
  ctx:patch(pod, function(draft) marks.write(draft, texts) end)
end

-- Writes the node into the claims that wait for the pod: their volumes are created where the node can use
-- them.
local function tell_claims(ctx, pod, node)
  if #volumes.claims_of(pod) == 0 then return end
  for _, claim in ipairs(volumes.waiting_of(pod, cluster.volumes_of(ctx, { pod }))) do
    if fields.annotation(claim, volumes.SELECTED) ~= node then
      local meta = claim.metadata
      ctx:patch({ kind = volumes.CLAIM, namespace = meta.namespace, name = meta.name },
        { metadata = { annotations = { [volumes.SELECTED] = node } } })
    end
  end
end

-- Binds a pod to its decided node. When that fails, the decision is dropped, and the pod is decided again.
local function bind(ctx, key)
  local pod = ctx:get(POD, key)
  local known = pod and decided.pod(key, pod.metadata.uid)
  if not known or known.bound or known.held_until then return end
  local ok, err = pcall(function()
    mark(ctx, pod, known)
    tell_claims(ctx, pod, known.node)
    ctx:bind(pod, known.node)
  end)
  if not ok then
    decided.assume(key, nil)
    error(err, 0)
  end
  local now = fields.copy(known)
  now.bound = true
  decided.assume(key, now)
  if key == ctx.key then
    ctx:event({ reason = "Scheduled", action = "Binding" }, "Successfully assigned %s to %s", key, known.node)
  end
end

-- Deletes the victims of a room, with the reason in their status, as Kubernetes' scheduler does.
local function make(ctx, room)
  for key, uid in pairs(room.victims) do
    local victim = ctx:get(POD, key)
    if victim and victim.metadata.uid == uid and victim.metadata.deletionTimestamp == nil then
      local node = victim.spec.nodeName
      local _, why = kube.try(function()
        ctx:patch_status(victim, function(draft)
          kube.set_condition(draft, { type = "DisruptionTarget", status = "True",
            reason = "PreemptionByScheduler",
            message = ctx.params.schedulerName .. ": preempting to accommodate a higher priority pod" })
        end)
        ctx:delete(POD, key, { uid = uid })
      end)
      if why then
        ctx.log:warn("pod %s could not be preempted on node %s for %s: %s", key, node, ctx.key, tostring(why))
      else
        ctx:event({ reason = "Preempting", action = "Preempting", related = victim },
          "Preempted %s on node %s", key, node)
      end
    end
  end
  room.made = true
end

-- Writes the reason and the nominated node into the pod's status, before any victim is deleted.
local function refuse(ctx, pod, known)
  local room = known.room
  ctx:patch_status(pod, function(draft)
    kube.set_condition(draft, { type = "PodScheduled", status = "False", reason = "Unschedulable",
      message = known.message })
    draft.status.nominatedNodeName = room and room.node or nil
  end)
  ctx:warn({ reason = "FailedScheduling", action = "Scheduling" }, "%s", known.message)
  if room and not room.made then make(ctx, room) end
  return { requeue_after = AGAIN }
end

-- The recent decision about the pod: { bind, done } for a node, { message, room } for a refusal, { again }
-- while another run must bind it; nil: there is none.
local function known_of(ctx, pod)
  local now, known = ctx:now():unix(), decided.pod(ctx.key, pod.metadata.uid)
  local message = refused[ctx.key]
  if known and not known.held_until then
    local others = known.by and known.by ~= ctx.key and now - known.at < AGAIN
    if others then return { again = AGAIN } end
    return { bind = not known.bound, done = known.bound }
  end
  if message and message.uid == pod.metadata.uid and not message.said and now - message.at < AGAIN then
    message.said = true
    return { message = message.message, room = message.room }
  end
  return nil
end

-- ---------------------------------------------------------------- the controllers

local params = kube.merge(settings.PARAMS, {
  preemption = true,               -- a pod without a node may preempt pods of lower priority
  gangPreemption = false,          -- so may a gang (CoschedulingArgs: enablePreemption)
})

local function waits(object)
  return (fields.dig(object, "status", "nodeName") or "") == "" and WAITING or nil
end

local scheduler = kube.controller {
  name = "scheduler",
  resource = POD,
  reads = settings.reads(),
  watches = wakes.of_pods(),
  indexes = { state = function(pod) return decided.is_waiting(pod) and WAITING or nil end },
  when = { "spec", "labels" },
  priority = priority,
  workers = 1,
  cpu = "20s",
  memory = "2Gi",
  params = params,

  reconcile = function(pod, ctx)
    if pod("spec.schedulerName") ~= ctx.params.schedulerName or not decided.is_waiting(pod) then
      refused[ctx.key] = nil
      return nil
    end
    local known = known_of(ctx, pod)
    if not known then
      local alone, out = decided.alone(ctx:now():unix(), function() return pass(ctx, ctx.key) end)
      if not alone then return { requeue_after = SOON } end
      for _, key in ipairs(out.mine) do bind(ctx, key) end
      known = known_of(ctx, pod) or { again = SOON }
    end
    if known.bind then return bind(ctx, ctx.key) end
    if known.message then return refuse(ctx, pod, known) end
    return known.again and { requeue_after = known.again } or nil
  end,
}

-- Writes the Reservation into the annotations of the pods that it pre-allocates for. False: one of them is
-- gone.
local function mark_owners(ctx, object, known)
  for _, owner in ipairs(fields.copy(known.owners) or {}) do
    local pod = ctx:get(POD, owner.key)
    if not pod or pod.metadata.uid ~= owner.uid then return false end
    ctx:patch(pod, { metadata = { annotations = { [lifecycle.ALLOCATED] = room_text(object.metadata) } } })
  end
  return true
end

-- Writes the devices and processors of a Reservation into its annotations, and then its node into its status.
-- When a pod that it pre-allocates for is gone, it is decided again.
local function settle(ctx, object, known)
  if not mark_owners(ctx, object, known) then
    decided.reserve(object.metadata.name, nil)
    return { requeue_after = SOON }
  end
  local texts = marks.texts(fields.copy(known.got), template.says(object))
  if not marks.says(object, texts) then
    object = ctx:patch(object, function(draft) marks.write(draft, texts) end)
  end
  local status = template.placed(object, known.node, ctx:now():unix())
  ctx:patch_status(object, function(draft) draft.status = status end)
end

-- Reservations are decided together with pods.
local reserver = kube.controller {
  name = "scheduler-reservations",
  resource = reservation.KIND,
  reads = settings.reads(),
  watches = wakes.of(reservation.KIND),
  indexes = { state = waits },
  when = { "spec", "labels", "status.phase" },
  workers = 1,
  cpu = "20s",
  memory = "2Gi",
  params = params,

  reconcile = function(object, ctx)
    if not template.is_waiting(object, ctx.params.schedulerName) then return nil end
    local name, uid, now = object.metadata.name, object.metadata.uid, ctx:now():unix()
    local known, message = decided.reservation(name, uid), nil
    if not known then
      local alone, out = decided.alone(now, function() return pass(ctx, name) end)
      if not alone then return { requeue_after = SOON } end
      for _, key in ipairs(out.mine) do bind(ctx, key) end
      known, message = decided.reservation(name, uid), out.messages[name]
    end
    if known then return settle(ctx, object, known) end
    local status = message and template.refused(object, message, now)
    if status then ctx:patch_status(object, function(draft) draft.status = status end) end
    return { requeue_after = message and AGAIN or SOON }
  end,
}

return { scheduler, reserver }
