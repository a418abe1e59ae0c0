-- cluster.lua - what a decision of the scheduler reads: the state of cycle.lua out of the caches, and what
-- was decided a moment ago and no cache shows yet (decided.lua).

local decided = require "scheduler.decided"
local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local forest = require "elasticquota.forest"
local gang = require "scheduler.gang"
local inputs = require "elasticquota.inputs"
local marks = require "scheduler.marks"
local members = require "elasticquota.members"
local numa = require "scheduler.numa"
local pods = require "pods"
local reservation = require "scheduler.reservation"
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

-- What was read of pods in the last decision: { [uid] = { version, quota } }.
local read_before = {}

local function add_quotas(ctx, state, read_pods)
  local objects, index = inputs.quotas(ctx)
  if #objects == 0 then return end
  state.quotas = index
  state.infos = forest.calculate(index, read_pods, inputs.total(ctx), ctx.params)
end

-- Whether a pod has a node already, or waits for one from us; nil for neither.
local function membership(scheduler, bound)
  return function(pod)
    local node, known = pod("spec.nodeName") or "", bound[pods.key(pod)]
    if node ~= "" or known and not known.held_until then return true end
    if pod("spec.schedulerName") == scheduler and decided.is_waiting(pod) then return false end
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
    if not old or old.version ~= version then
      old = { version = version, quota = members.read_pod(pod), claims = #volumes.claims_of(pod) > 0 }
    end
    known[uid] = old
    if node and old.quota then
      state.pods_on[node] = state.pods_on[node] or {}
      table.insert(state.pods_on[node], pod)
      if old.claims then state.claiming[#state.claiming + 1] = pod end
    end
    if old.quota then
      state.requests[key] = old.quota.request
      if mine then old.quota.assigned, old.version = true, nil end
      if members.counts(old.quota, ctx.params, state.now) then counted[#counted + 1] = old.quota end
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

-- The templates of parts of NPUs, for state.templates; those of the last good ConfigMap where it does not
-- read.
local function templates(ctx)
  local object = ctx:get(M.CONFIG_MAP, whole.NAMESPACE, TEMPLATES)
  local version = object and object.metadata.resourceVersion
  if templates_before.version == version then return templates_before.templates end
  local said, why = deviceshare.templates(object and object("data") and object.data["data.yaml"])
  if why then ctx.log:warn("ConfigMap %s/%s is not used: %s", whole.NAMESPACE, TEMPLATES, why) end
  templates_before = { version = version, templates = said or templates_before.templates }
  return templates_before.templates
end

-- All Reservations, those that have a node since a moment ago with the annotations and the status that they
-- are about to have; and in `got`, what the pods have that they pre-allocate for.
local function reservations(ctx, now, got)
  local out, known = {}, decided.reservations(ctx)
  for i, object in ipairs(ctx:list(reservation.KIND)) do
    local mine = known[object.metadata.name]
    for _, owner in ipairs(mine and mine.owners or {}) do got[owner.key] = { uid = mine.uid } end
    if mine then
      object = marks.on(object, marks.texts(mine.got, reservation.says(object)))
      object.status = reservation.placed(object, mine.node, now)
    end
    out[i] = object
  end
  return out
end

-- The pods that wait for this scheduler and have no node, and of those that keep one their placements.
local function waiting_of(ctx, all, bound)
  local waiting, held = {}, {}
  for _, pod in ipairs(all) do
    local key = pods.key(pod)
    local known = bound[key]
    if pod("spec.schedulerName") == ctx.params.schedulerName and decided.is_waiting(pod)
      and (not known or known.held_until) then
      waiting[#waiting + 1] = pod
    end
    local node = known and known.held_until and ctx:get(M.NODE, known.node)
    if node then held[key] = { pod = pod, node = node, room = known.room, got = known.got } end
  end
  return waiting, held
end

-- What is known of the volumes of some pods; with those of `others`, if any of the pods has some, also what
-- nodes take and have.
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

-- The state for cycle.lua; what is assumed, by pod key; and all pods that wait for this scheduler and have no
-- node yet.
function M.read(ctx)
  local now = ctx:now():unix()
  local bound = decided.pods(ctx, now)
  local got = {}
  local state = { now = now, pods_on = {}, claiming = {}, got = got, requests = {}, groups = {},
    namespaces = {}, reservations_on = reservation.index(reservations(ctx, now, got)),
    devices = by_name(ctx, deviceshare.KIND), templates = templates(ctx), metrics = by_name(ctx, M.METRIC),
    topologies = by_name(ctx, numa.KIND), budgets = ctx:list(M.BUDGET) }
  for key, known in pairs(bound) do state.got[key] = known.got end
  for group in ctx:each(gang.KIND) do
    state.groups[group.metadata.namespace .. "/" .. group.metadata.name] = group
  end
  for name, space in pairs(by_name(ctx, M.NAMESPACE)) do
    state.namespaces[name] = fields.copy(space.metadata.labels) or {}
  end
  local all, counted = read_pods(ctx, state, bound)
  add_quotas(ctx, state, counted)
  state.gangs = gang.index(all, membership(ctx.params.schedulerName, bound))
  local waiting
  waiting, state.held = waiting_of(ctx, all, bound)
  state.volumes = M.volumes_of(ctx, waiting, state.claiming)
  return state, bound, waiting
end

return M
