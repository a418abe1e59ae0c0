-- facts.lua - the scheduler's memory of the caches between two decisions: facts read from each version of a
-- pod, the objects of a kind by name, and in `touched` the nodes that have changed since the last look.
--
--   local memory = facts.new()
--   facts.look(memory)                              begins each decision
--   facts.by_name(memory, ctx, kind, of_nodes)      of_nodes: its objects are named after nodes
--   facts.pods(memory, ctx, bound)
--   memory.touched                                  { [node name] = true }

local decided = require "scheduler.decided"
local gang = require "scheduler.gang"
local kube = require "kubelua"
local members = require "elasticquota.members"
local pods = require "pods"
local volumes = require "scheduler.volumes"

local M = {}

function M.new() return { pods = {}, kinds = {}, touched = {} } end

function M.look(memory) memory.touched = {} end

local function touch(memory, node)
  if node then memory.touched[node] = true end
end

-- The objects of a kind by name, which are the same table until one changes; and their list.
function M.by_name(memory, ctx, kind, of_nodes)
  local list, known = ctx:list(kind), memory.kinds[kind] or { objects = {}, versions = {} }
  if known.list == list then return known.objects, list end
  local names, versions = kube.columns(list, "metadata.name", "metadata.resourceVersion")
  local now, changed = { list = list, objects = {}, versions = {} }, not known.list
  local function differs(name)
    changed = true
    if of_nodes then touch(memory, name) end
  end
  for i, name in ipairs(names) do
    now.objects[name], now.versions[name] = list[i], versions[i]
    if known.versions[name] ~= versions[i] then differs(name) end
  end
  for name in pairs(known.versions) do
    if not now.versions[name] then differs(name) end
  end
  if not changed then now.objects = known.objects end
  memory.kinds[kind] = now
  return now.objects, list
end

-- The facts of a version of a pod, read once:
--   { pod, key, version, node = its name, scheduler, waits = whether it could be bound, gang, claims =
--     whether it has some, quota = members.read_pod, nil for one that has ended }
-- M.pods adds `on`: the pod's node or, until it has one, the decided node. The scheduler adds more.
local function read(pod, version)
  local node = pod("spec.nodeName") or ""
  return {
    pod = pod,
    key = pods.key(pod),
    version = version,
    node = node ~= "" and node or nil,
    scheduler = pod("spec.schedulerName"),
    waits = decided.is_waiting(pod),
    gang = gang.of(pod),
    claims = #volumes.claims_of(pod) > 0,
    quota = members.read_pod(pod),
  }
end

-- The facts of each pod, in the order of pods. bound: decisions by the pods' keys (decided.pods).
function M.pods(memory, ctx, bound)
  local list, before, now, out = ctx:list(decided.POD), memory.pods, {}, {}
  local uids, versions = kube.columns(list, "metadata.uid", "metadata.resourceVersion")
  for i, uid in ipairs(uids) do
    local old = before[uid]
    local same = old and old.version == versions[i]
    local fact = same and old or read(list[i], versions[i])
    local mine = bound[fact.key]
    local on = fact.node or mine and mine.node or nil
    if not same or mine or on ~= fact.on then
      touch(memory, on)
      touch(memory, old and old.on)
    end
    fact.on = on
    now[uid], out[i] = fact, fact
  end
  for uid, fact in pairs(before) do
    if not now[uid] then touch(memory, fact.on) end
  end
  memory.pods = now
  return out
end

return M
