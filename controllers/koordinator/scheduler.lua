-- scheduler.lua - a scheduler out of Koordinator's policies: gives each pod of its schedulerName a node, or
-- says on the pod why it has none; and each Reservation whose template has that schedulerName. What decides
-- is scheduler/cycle.lua, as pure functions.
--
--   kubelua run controllers/koordinator/scheduler.lua --param schedulerName=my-scheduler
--
-- Each pod is a key. A run that finds its pod undecided decides for all that wait, the more important first,
-- and remembers that (scheduler/cluster.lua); the runs of the others find their pod decided, and only bind
-- it. So one decision at a time reads the cluster once for many pods, while many are being bound.

local kube = require "kubelua"
local cluster = require "scheduler.cluster"
local cycle = require "scheduler.cycle"
local decided = require "scheduler.decided"
local fields = require "fields"
local gang = require "scheduler.gang"
local gangpreempt = require "scheduler.gangpreempt"
local lifecycle = require "reservations.lifecycle"
local loadaware = require "scheduler.loadaware"
local marks = require "scheduler.marks"
local order = require "lib.order"
local pods = require "pods"
local preempt = require "scheduler.preempt"
local quota = require "elasticquota.quota"
local reservation = require "scheduler.reservation"
local settings = require "scheduler.settings"
local snapshot = require "scheduler.snapshot"
local volumelimits = require "scheduler.volumelimits"
local volumes = require "scheduler.volumes"

local POD, NODE = cluster.POD, cluster.NODE
local AGAIN = 10   -- seconds until a pod that fits nowhere is looked at again
local SOON = 0.05  -- seconds until a run that met another one's decision looks again
local BATCH = 256  -- nodes given in one decision
local WAITING = "waiting"

-- { [pod key] = { uid, message, at, said, room } } of pods that were refused; said: whether the pod says so;
-- room: what preempt.room found for it.
local refused = {}

local read = cluster.reader() -- of the one worker

-- Keys have 99 priorities, and classes of pods reach from 3000 to 9999: 72 of theirs are one of ours.
local function priority(pod)
  local n = ((fields.dig(pod, "spec", "priority") or 0) - 6500) // 72
  return math.max(-49, math.min(49, n))
end

-- ---------------------------------------------------------------- deciding

-- Whether a pod was never decided for: its own key is in the queue.
local function is_fresh(pod)
  local condition = kube.find_condition(pod, "PodScheduled")
  return condition == nil or condition.status ~= "False"
end

-- Where one stands in the queue, kept with what is known of it.
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

-- Who is decided for, the most important first: all that are new, those that were promised a node, those that
-- were refused some time ago, the one whose run this is, and when that was refused before, all others that
-- were: what woke it may have made room for them. { key, pod, object = the Reservation }, or what is known of
-- a pod.
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
    if reservation.is_waiting(object, ctx.params.schedulerName)
      and not decided.reservation(name, object.metadata.uid) then
      add { key = name, pod = reservation.as_pod(object), object = object }
    end
  end
  order.sort(out, ranks)
  return out
end

-- What is remembered of a placement until the cache shows it.
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

-- The room that was found for a pod before.
local function promised(pod)
  local before = refused[pods.key(pod)]
  return before and before.uid == pod.metadata.uid and before.room or nil
end

-- The pods that a refusal of this one speaks of: all of its gang that wait, or of all gangs that are bound
-- with it where they have rooms.
local function one_with(pod, state, rooms)
  local id = gang.of(pod)
  if id and next(rooms) then return gang.waiting(pod, state) end
  local known = id and state.gangs[id]
  return known and #known.waiting > 0 and known.waiting or { pod }
end

-- What pods of lower priority make room for, by pod key: for one without a node, or for all of its gang.
local function rooms_for(pod, result, held, nodes, state, args, ctx)
  if not ctx.params.preemption then return {} end
  if result then return { [pods.key(pod)] = preempt.room(pod, result, state, args, promised(pod)) } end
  local list = ctx.params.gangPreemption and gang.waiting(pod, state, held and held.placements) or {}
  return gangpreempt.rooms(list, nodes, state, args, ctx.key, promised)
end

-- Decides for all that wait. Returns { mine = the keys of pods that this run is to bind, messages = of
-- Reservations that no node takes, by name }.
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

-- The text of a pod's annotation that says whose room it has.
local function room_text(room) return kube.encode(kube.object { name = room.name, uid = room.uid }) end

-- The pod says whose room, which GPUs and which processors it has before it is bound, so that nobody sees it
-- on the node without that.
local function mark(ctx, pod, known)
  local texts = marks.texts(known.got and fields.copy(known.got) or {}, pod)
  texts[lifecycle.ALLOCATED] = known.room and room_text(known.room) or false
  if marks.says(pod, texts) then return end
  ctx:patch(pod, function(draft) marks.write(draft, texts) end)
end

-- Claims that wait for the pod are told its node, so that their volumes are made where it can be.
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

-- One that cannot be bound has no node, and is decided again.
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

-- Has the victims go, as Kubernetes' scheduler does: by deletion, with the reason on the pod.
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
        ctx.log:warn("pod %s is to leave node %s for %s and does not: %s", key, node, ctx.key, tostring(why))
      else
        ctx:event({ reason = "Preempting", action = "Preempting", related = victim },
          "Preempted %s on node %s", key, node)
      end
    end
  end
  room.made = true
end

-- The pod says why it has no node, and which one it is promised, before anybody goes for it.
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

-- What is known of the pod already: it is bound, or the message of a decision that is not old.
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

-- A function that names all of a kind that wait, for what may have made room.
local function waiting(kind)
  return function(_, ctx)
    local keys = {}
    for _, object in ipairs(ctx:list(kind, { index = "state", value = WAITING })) do
      local meta = object.metadata
      keys[#keys + 1] = meta.namespace and meta.namespace .. "/" .. meta.name or meta.name
    end
    return keys
  end
end

-- The same for a pod that had a node: when it is gone or over.
local function freed(kind)
  local all = waiting(kind)
  return function(pod, ctx)
    if (pod("spec.nodeName") or "") == "" then return {} end
    local now = ctx:get(POD, pods.key(pod))
    local there = now and now.metadata.uid == pod.metadata.uid and not snapshot.ended(now)
    return there and {} or all(pod, ctx)
  end
end

-- The same for those that said that nodes are used too much.
local function overloaded(kind)
  local all = waiting(kind)
  return function(metric, ctx)
    local keys = {}
    for _, key in ipairs(all(metric, ctx)) do
      local condition = kube.find_condition(ctx:get(kind, key) or {}, "PodScheduled")
      if condition and loadaware.refuses(condition.message or "") then keys[#keys + 1] = key end
    end
    return keys
  end
end

-- What may make room for pods, or Reservations, that wait.
local function wakers(kind)
  local all = waiting(kind)
  return {
    [NODE] = { all, when = { "labels", "annotations", "spec", "status.allocatable" } },
    [POD] = { freed(kind), when = function(now, old) return snapshot.ended(now) ~= snapshot.ended(old) end },
    [quota.KIND] = { all, when = { "labels", "spec", "deletionTimestamp" } },
  }
end

local params = kube.merge(settings.PARAMS, {
  preemption = true,               -- pods of lower priority go where one of higher has no room
  gangPreemption = false,          -- also where a gang has none (CoschedulingArgs: enablePreemption)
})

-- What wakes pods that wait: what may make room for any, and a Reservation that is there now.
local wakes_pods = wakers(POD)
local claimed = waiting(POD)
wakes_pods[volumes.CLAIM] = { claimed, when = { "spec", "annotations", "deletionTimestamp" } }
wakes_pods[volumes.VOLUME] = { claimed, when = { "spec", "labels" } }
wakes_pods[volumes.CLASS] = claimed
wakes_pods[volumelimits.NODE] = { claimed, when = { "spec" } }
wakes_pods[volumelimits.ATTACHMENT] = { claimed, when = { "spec" } }
wakes_pods[cluster.METRIC] = { overloaded(POD), when = loadaware.eases }
wakes_pods[reservation.KIND] = { waiting(POD), when = { "labels", "spec", "status.phase" } }

local function waits(object)
  return (fields.dig(object, "status", "nodeName") or "") == "" and WAITING or nil
end

local scheduler = kube.controller {
  name = "scheduler",
  resource = POD,
  reads = settings.reads(),
  watches = wakes_pods,
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

-- The pods that a Reservation pre-allocates for say so. Whether they are all there.
local function mark_owners(ctx, object, known)
  for _, owner in ipairs(fields.copy(known.owners) or {}) do
    local pod = ctx:get(POD, owner.key)
    if not pod or pod.metadata.uid ~= owner.uid then return false end
    ctx:patch(pod, { metadata = { annotations = { [lifecycle.ALLOCATED] = room_text(object.metadata) } } })
  end
  return true
end

-- A Reservation says what it got before it is on the node, as a pod does. It is decided again when a pod that
-- it was for is gone.
local function settle(ctx, object, known)
  if not mark_owners(ctx, object, known) then
    decided.reserve(object.metadata.name, nil)
    return { requeue_after = SOON }
  end
  local texts = marks.texts(fields.copy(known.got), reservation.says(object))
  if not marks.says(object, texts) then
    object = ctx:patch(object, function(draft) marks.write(draft, texts) end)
  end
  local status = reservation.placed(object, known.node, ctx:now():unix())
  ctx:patch_status(object, function(draft) draft.status = status end)
end

-- Decides with the pods, in one decision of both.
local reserver = kube.controller {
  name = "scheduler-reservations",
  resource = reservation.KIND,
  reads = settings.reads(),
  watches = wakers(reservation.KIND),
  indexes = { state = waits },
  when = { "spec", "labels", "status.phase" },
  workers = 1,
  cpu = "20s",
  memory = "2Gi",
  params = params,

  reconcile = function(object, ctx)
    if not reservation.is_waiting(object, ctx.params.schedulerName) then return nil end
    local name, uid, now = object.metadata.name, object.metadata.uid, ctx:now():unix()
    local known, message = decided.reservation(name, uid), nil
    if not known then
      local alone, out = decided.alone(now, function() return pass(ctx, name) end)
      if not alone then return { requeue_after = SOON } end
      for _, key in ipairs(out.mine) do bind(ctx, key) end
      known, message = decided.reservation(name, uid), out.messages[name]
    end
    if known then return settle(ctx, object, known) end
    local status = message and reservation.refused(object, message, now)
    if status then ctx:patch_status(object, function(draft) draft.status = status end) end
    return { requeue_after = message and AGAIN or SOON }
  end,
}

return { scheduler, reserver }
