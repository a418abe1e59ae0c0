-- victims.lua - which pods may be moved, where they fit, and which goes first.

local fields = require "fields"
local firstfit = require "lib.firstfit"
local kube = require "kubelua"
local lists = require "lib.lists"
local nodefit = require "lib.nodefit"
local order = require "lib.order"
local pods = require "pods"

local M = {}

local dig = fields.dig

-- ---------------------------------------------------------------- may it be evicted at all

local CRITICAL = 2000000000 -- of system-node-critical and above
local MIRROR, SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"
local FORCED = "descheduler.alpha.kubernetes.io/evict"

local function has_local_storage(pod)
  for _, volume in ipairs(dig(pod, "spec", "volumes") or {}) do
    if volume.hostPath ~= nil or volume.emptyDir ~= nil then return true end
  end
  return false
end

-- The descheduler's default evictor: true, or false and why not. settings, each off unless said:
-- evictAllBarePods, evictFailedBarePods, evictSystemCriticalPods, evictLocalStoragePods.
function M.evictable(pod, settings)
  if fields.annotation(pod, FORCED) ~= nil then return true end
  local allow = settings or {}
  local owners = dig(pod, "metadata", "ownerReferences") or {}
  local bare = allow.evictAllBarePods
    or allow.evictFailedBarePods and dig(pod, "status", "phase") == "Failed"
  if #owners == 0 and not bare then return false, "nothing would recreate it" end
  for _, owner in ipairs(owners) do
    if owner.kind == "DaemonSet" then return false, "its daemon set would recreate it" end
  end
  local source = fields.annotation(pod, SOURCE)
  if fields.annotation(pod, MIRROR) ~= nil or source ~= nil and source ~= "api" then
    return false, "it is a static pod of its node"
  end
  if not allow.evictSystemCriticalPods and (dig(pod, "spec", "priority") or 0) >= CRITICAL then
    return false, "it is critical"
  end
  if not allow.evictLocalStoragePods and has_local_storage(pod) then return false, "it has local storage" end
  if dig(pod, "metadata", "deletionTimestamp") ~= nil then return false, "it is going" end
  return true
end

-- Whether the settings select the pod: evictableNamespaces { include, exclude }, podSelectors.
function M.chosen(pod, settings)
  local namespace, spaces = pod.metadata.namespace, settings.evictableNamespaces or {}
  local function names(list)
    for _, name in ipairs(list or {}) do
      if name == namespace then return true end
    end
    return false
  end
  if names(spaces.exclude) then return false end
  if spaces.include and #spaces.include > 0 and not names(spaces.include) then return false end
  local any = false
  for _, entry in ipairs(settings.podSelectors or {}) do
    if entry.selector ~= nil then
      if fields.selects(entry.selector, dig(pod, "metadata", "labels") or {}) then return true end
      any = true
    end
  end
  return not any
end

-- ---------------------------------------------------------------- does it fit there

-- What is known of a version of a pod, kept if the load is one of load.lua.
local function fact_of(pod, load) return load.fact_of and load.fact_of[pod] or { key = pods.key(pod) } end

-- The requests of a pod. fact: what is known of it, where they are kept.
function M.asked(pod, fact)
  fact.asked = fact.asked or lists.of(kube.requests(pod))
  return fact.asked
end

-- What pods occupy. facts: what is known of each, or nil; one with counts = false occupies nothing.
local function sum_of(list, facts)
  local sum = { pods = 0 }
  for i = 1, #list do
    local fact = facts and facts[i] or { counts = true }
    if fact.counts then
      lists.accumulate(sum, fact.asked or M.asked(list[i], fact))
      sum.pods = sum.pods + 1
    end
  end
  return sum
end

-- What the load's pods occupy. In a load of load.lua it is added up again when one of them has changed.
local function occupied(load)
  local facts = load.facts
  if not facts then return sum_of(load.pods) end
  local known = pods.recall(load.place)
  if known.occupied_by ~= facts then
    known.occupied, known.occupied_by = sum_of(load.on_node, facts), facts
  end
  return known.occupied
end

local function free_of(load)
  return lists.sub(lists.of(dig(load.node, "status", "allocatable")), occupied(load))
end

-- Whether the node has room for the pod's requests. load: { node, pods }; free is filled in. asked: the
-- requests, if known.
function M.room(pod, load, asked)
  load.free = load.free or free_of(load)
  for name, n in pairs(asked or lists.of(kube.requests(pod))) do
    if n > (load.free[name] or 0) then return false end
  end
  return load.free.pods > 0
end

-- Whether the pod can run on the node: selector and affinity, taints, requests.
function M.fits(pod, load, asked)
  local node = load.node
  return M.room(pod, load, asked) and nodefit.selected(pod, node) and not nodefit.cordoned(node)
    and not nodefit.repelling(pod, node)
end

-- The targets of a pass with what is left below the limits of each, for M.place.
function M.targets(loads, prod)
  local rooms = {}
  for i, load in ipairs(loads) do
    local limit, usage = prod and load.prod_high or load.high, prod and load.prod_usage or load.usage
    rooms[i] = {}
    for name, n in pairs(limit) do rooms[i][name] = n - (usage[name] or 0) end
  end
  return { loads = loads, bins = firstfit.new(rooms), prod = prod }
end

-- Finds a target that stays within its limits with the pod's usage, and counts the pod there: what one pod
-- is promised no other gets, in this pass. asked: its requests. Returns whether there is one.
function M.place(pod, used, targets, asked)
  local bins = targets.bins
  local at = bins:first(used)
  while at and not M.fits(pod, targets.loads[at], asked) do at = bins:next(at + 1, used) end
  if not at then return false end
  bins:take(at, used)
  local load = targets.loads[at]
  local usage = targets.prod and load.prod_usage or load.usage
  for name in pairs(targets.prod and load.prod_high or load.high) do
    if usage[name] then usage[name] = usage[name] + (used[name] or 0) end
  end
  return true
end

-- ---------------------------------------------------------------- which goes first

local CLASS = { ["koord-free"] = 1, ["koord-batch"] = 2, ["koord-mid"] = 3, ["koord-prod"] = 4 }
local QOS = { BE = 1, LS = 2, LSR = 3, LSE = 4, SYSTEM = 4 }
local KUBE_QOS = { BestEffort = 1, Burstable = 2, Guaranteed = 3 }

-- How the pod's usage compares with the excess of the node: equal is best, then less, then more.
local function score(used, excess, weights)
  local sum, all = 0.0, 0
  for name, n in pairs(used) do
    local weight = excess[name] and weights[name] or 0
    if weight ~= 0 and excess[name] ~= 0 then
      local ratio = n / excess[name]
      sum = sum + (ratio >= 1 and 1 / ratio + 1 or ratio) * weight
    end
    all = all + weight
  end
  return all == 0 and 0 or sum / all
end

-- The ranks of a version of a pod, kept with what is known of it. All but the 7th and the 8th stay the same.
local function standing(pod, fact)
  if not fact.standing then
    fact.standing = { CLASS[pods.class(pod)] or 5, dig(pod, "spec", "priority") or 0,
      KUBE_QOS[pods.kube_qos(pod)] or 0, QOS[pods.qos(pod)] or 5,
      pods.cost(pod, "controller.kubernetes.io/pod-deletion-cost"),
      pods.cost(pod, "scheduling.koordinator.sh/eviction-cost"), 0, 0, -order.created(pod), fact.key }
  end
  return fact.standing
end

local function rank(pod, load, excess, weights)
  local fact = fact_of(pod, load)
  local used, out = load.metrics[fact.key], standing(pod, fact)
  out[7], out[8] = used and 0 or 1, used and -score(used, excess, weights) or 0
  return out
end

-- Sorts pods of an overloaded node, the first to go first. excess: { [resource] = amount above the limit }.
function M.sort(list, load, excess, weights)
  local ranks = {}
  for _, pod in ipairs(list) do ranks[pod] = rank(pod, load, excess, weights) end
  order.sort(list, ranks)
end

return M
