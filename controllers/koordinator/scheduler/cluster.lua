-- cluster.lua - builds the state of cycle.lua from the caches, and from recent decisions that no cache shows
-- yet (decided.lua). A reader goes on with what it knew of nodes that did not change since its last look
-- (facts.lua).

local cycle = require "scheduler.cycle"
local decided = require "scheduler.decided"
local deviceshare = require "scheduler.deviceshare"
local facts = require "scheduler.facts"
local fields = require "fields"
local forest = require "elasticquota.forest"
local gang = require "scheduler.gang"
local inputs = require "elasticquota.inputs"
local marks = require "scheduler.marks"
local members = require "elasticquota.members"
local numa = require "scheduler.numa"
local reservation = require "scheduler.reservation"
local reserved = require "scheduler.reservation.reserved"
local template = require "scheduler.reservation.template"
local volumelimits = require "scheduler.volumelimits"
local volumes = require "scheduler.volumes"
local whole = require "lib.whole"

local M = {}

M.POD, M.NODE, M.NAMESPACE = decided.POD, "v1/Node", "v1/Namespace"
M.BUDGET = "policy/v1/PodDisruptionBudget"
M.METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
M.CONFIG_MAP = "v1/ConfigMap"
local TEMPLATES = "gpu-shared-resource-templates" -- a ConfigMap in Koordinator's namespace

-- What was read of it: { version, templates }.
local templates_before = {}

-- What a pod is to its quota: one with a decided node counts as assigned, although it does not show it yet.
local function quota_of(fact, bound)
  local quota = fact.quota
  if not quota or quota.assigned or not bound[fact.key] then return quota end
  return fields.merge(quota, { assigned = true })
end

local function add_quotas(memory, ctx, state, known, bound)
  local objects, index = memory.quotas_of(ctx)
  if #objects == 0 then return end
  local counted = {}
  for _, fact in ipairs(known) do
    local quota = quota_of(fact, bound)
    if quota and members.counts(quota, ctx.params, state.now) then counted[#counted + 1] = quota end
  end
  state.quotas = index
  state.infos = memory.calculate(index, counted, inputs.total(ctx), ctx.params)
end

-- Puts the pods on their nodes.
local function add_pods(state, known)
  local pods_on, requests = state.pods_on, state.requests
  for _, fact in ipairs(known) do
    local on, quota = fact.on, fact.quota
    if quota then
      requests[fact.key] = quota.request
      if on then
        local list = pods_on[on]
        if not list then
          list = {}
          pods_on[on] = list
        end
        list[#list + 1] = fact.pod
        if fact.claims then state.claiming[#state.claiming + 1] = fact.pod end
      end
    end
  end
end

-- The gangs of pods that have a node already, or wait for one from us.
local function gangs_of(known, scheduler, bound)
  local list, fact_of = {}, {}
  for _, fact in ipairs(known) do
    if fact.gang then list[#list + 1], fact_of[fact.pod] = fact.pod, fact end
  end
  return gang.index(list, function(pod)
    local fact = fact_of[pod]
    local mine = bound[fact.key]
    if fact.node or mine and not mine.held_until then return true end
    if fact.scheduler == scheduler and fact.waits then return false end
    return nil
  end)
end

-- The templates of NPU parts, for state.templates; those of the last valid ConfigMap if it is invalid.
local function templates(ctx)
  local object = ctx:get(M.CONFIG_MAP, whole.NAMESPACE, TEMPLATES)
  local version = object and object.metadata.resourceVersion
  if templates_before.version == version then return templates_before.templates end
  local said, why = deviceshare.templates(object and object("data") and object.data["data.yaml"])
  if why then ctx.log:warn("ConfigMap %s/%s is not used: %s", whole.NAMESPACE, TEMPLATES, why) end
  templates_before = { version = version, templates = said or templates_before.templates }
  return templates_before.templates
end

-- All Reservations; a recently decided one has the annotations and the status that it is about to get. Adds
-- the pods that these pre-allocate for to `got`.
local function reservations(ctx, now, got)
  local out, known = {}, decided.reservations(ctx)
  for i, object in ipairs(ctx:list(reservation.KIND)) do
    local mine = known[object.metadata.name]
    for _, owner in ipairs(mine and mine.owners or {}) do got[owner.key] = { uid = mine.uid } end
    if mine then
      object = marks.on(object, marks.texts(mine.got, template.says(object)))
      object.status = template.placed(object, mine.node, now)
    end
    out[i] = object
  end
  return out
end

-- What is known of the pods that wait for this scheduler and have no node, and of those that keep one their
-- placements.
local function waiting_of(ctx, known, bound)
  local waiting, held, scheduler = {}, {}, ctx.params.schedulerName
  for _, fact in ipairs(known) do
    if fact.waits then
      local mine = bound[fact.key]
      if fact.scheduler == scheduler and (not mine or mine.held_until) then waiting[#waiting + 1] = fact end
      local node = mine and mine.held_until and ctx:get(M.NODE, mine.node)
      if node then held[fact.key] = { pod = fact.pod, node = node, room = mine.room, got = mine.got } end
    end
  end
  return waiting, held
end

-- The volumes of the pods in `list`. With `others`, and if a pod of `list` has volumes, also those of
-- `others`, and the limits and attachments of nodes.
function M.volumes_of(ctx, list, others)
  local function get(...) return ctx:get(...) end
  local some = false
  for _, pod in ipairs(others and list or {}) do some = some or #volumes.claims_of(pod) > 0 end
  if not some then return volumes.known(list, get) end
  local all = table.move(list, 1, #list, 1, {})
  local known = volumes.known(table.move(others, 1, #others, #all + 1, all), get)
  known.limits = volumelimits.limits(ctx:list(volumelimits.NODE))
  known.attached = volumelimits.attached(ctx:list(volumelimits.ATTACHMENT),
    function(name) return get(volumes.VOLUME, name) end)
  return known
end

-- Nodes with Reservations are summed up anew, and those that had some.
local function touch_rooms(memory, reservations_on)
  for _, index in ipairs { memory.reservations_on or {}, reservations_on } do
    for name in pairs(index) do memory.touched[name] = true end
  end
  memory.reservations_on = reservations_on
end

-- What affinities select of namespaces, { [name] = labels }: the same table as long as none changed.
local function namespaces_of(memory, ctx)
  local objects = facts.by_name(memory, ctx, M.NAMESPACE)
  if memory.namespaces_of ~= objects then
    memory.namespaces, memory.namespaces_of = {}, objects
    for name, space in pairs(objects) do
      memory.namespaces[name] = fields.copy(space.metadata.labels) or {}
    end
  end
  return memory.namespaces
end

local function read(memory, ctx, args)
  local now = ctx:now():unix()
  local bound, got = decided.pods(ctx, now), {}
  facts.look(memory)
  local _, nodes = facts.by_name(memory, ctx, M.NODE, true)
  local state = { now = now, pods_on = {}, claiming = {}, got = got, requests = {}, groups = {},
    namespaces = namespaces_of(memory, ctx),
    reservations_on = reserved.index(reservations(ctx, now, got)),
    devices = facts.by_name(memory, ctx, deviceshare.KIND, true), templates = templates(ctx),
    metrics = facts.by_name(memory, ctx, M.METRIC, true),
    topologies = facts.by_name(memory, ctx, numa.KIND, true), budgets = ctx:list(M.BUDGET) }
  touch_rooms(memory, state.reservations_on)
  for key, known in pairs(bound) do state.got[key] = known.got end
  for group in ctx:each(gang.KIND) do
    state.groups[group.metadata.namespace .. "/" .. group.metadata.name] = group
  end
  local known = facts.pods(memory, ctx, bound)
  add_pods(state, known)
  add_quotas(memory, ctx, state, known, bound)
  state.gangs = gangs_of(known, ctx.params.schedulerName, bound)
  local waiting, held = waiting_of(ctx, known, bound)
  local wanting = {}
  state.held = held
  for _, fact in ipairs(waiting) do
    if fact.claims then wanting[#wanting + 1] = fact.pod end
  end
  state.volumes = M.volumes_of(ctx, wanting, state.claiming)
  if args then cycle.go_on(state, memory.state, memory.touched, args) end
  memory.state = state
  return state, bound, waiting, nodes
end

-- A function of ctx and args (cycle.args) that returns the state for cycle.lua; what is assumed, by pod key;
-- what is known (facts.lua) of all pods that wait for this scheduler and have no node yet; and the nodes.
function M.reader()
  local memory = facts.new()
  memory.quotas_of, memory.calculate = inputs.quotas(), forest.keeper()
  return function(ctx, args) return read(memory, ctx, args) end
end

return M
