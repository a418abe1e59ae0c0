-- pods.lua - what Koordinator reads from a pod: its QoS, its priority class, its requests, and its NUMA
-- zones.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"

local dig = fields.dig

local M = {}

local QOS = { LSE = true, LSR = true, LS = true, BE = true, SYSTEM = true }
local CLASS = { ["koord-prod"] = true, ["koord-mid"] = true, ["koord-batch"] = true, ["koord-free"] = true }
local BANDS = {
  { class = "koord-prod", from = 9000, to = 9999 },
  { class = "koord-mid", from = 7000, to = 7999 },
  { class = "koord-batch", from = 5000, to = 5999 },
  { class = "koord-free", from = 3000, to = 3999 },
}
local CLASS_OF_QOS = { SYSTEM = "koord-prod", LSE = "koord-prod", LSR = "koord-prod", LS = "koord-prod",
  BE = "koord-batch" }
local QOS_OF_KUBE = { Guaranteed = "LSR", Burstable = "LS", BestEffort = "BE" }

-- The priority of a class when only the class is known; without a class it is 0.
M.default_priority = { ["koord-prod"] = 9500, ["koord-mid"] = 7500, ["koord-batch"] = 5500,
  ["koord-free"] = 3500 }

function M.key(pod) return (pod.metadata.namespace or "") .. "/" .. pod.metadata.name end

-- Whether a pod holds resources of its node, or is about to.
function M.active(pod)
  local phase = dig(pod, "status", "phase")
  return phase == "Running" or phase == "Pending"
end

local function sum_positive(list, into)
  for _, name in ipairs { "cpu", "memory" } do
    local q = list and list[name]
    local n = q and kube.to_milli(q) or 0
    if n > 0 then into[name] = (into[name] or 0) + n end
  end
end

-- The QoS class as Kubernetes computes it, for pods whose status does not have it yet.
local function computed_qos(pod)
  local holders = {}
  if dig(pod, "spec", "resources") then
    holders[1] = pod.spec
  else
    for _, list in ipairs { "containers", "initContainers" } do
      for _, c in ipairs(dig(pod, "spec", list) or {}) do holders[#holders + 1] = c end
    end
  end
  local requests, limits, all_limited = {}, {}, true
  for _, holder in ipairs(holders) do
    sum_positive(dig(holder, "resources", "requests"), requests)
    local own = {}
    sum_positive(dig(holder, "resources", "limits"), own)
    all_limited = all_limited and own.cpu ~= nil and own.memory ~= nil
    for name, n in pairs(own) do limits[name] = (limits[name] or 0) + n end
  end
  if next(requests) == nil and next(limits) == nil then return "BestEffort" end
  if all_limited and requests.cpu == limits.cpu and requests.memory == limits.memory then
    return "Guaranteed"
  end
  return "Burstable"
end

-- The QoS class of Kubernetes: Guaranteed, Burstable or BestEffort.
function M.kube_qos(pod)
  local qos = dig(pod, "status", "qosClass")
  if qos == nil or qos == "" then return computed_qos(pod) end
  return qos
end

-- Koordinator's QoS class in the label, or nil.
function M.raw_qos(pod)
  local label = fields.label(pod, "koordinator.sh/qosClass")
  return QOS[label] and label or nil
end

function M.qos(pod) return M.raw_qos(pod) or QOS_OF_KUBE[M.kube_qos(pod)] end

-- The priority class in the label, or, without a label, that of the priority number; nil: neither names one.
function M.raw_class(pod)
  local label = fields.label(pod, "koordinator.sh/priority-class")
  if label ~= nil then return CLASS[label] and label or nil end
  local priority = dig(pod, "spec", "priority")
  for _, band in ipairs(BANDS) do
    if priority and priority >= band.from and priority <= band.to then return band.class end
  end
end

-- The priority class, or the default one of the QoS.
function M.class(pod) return M.raw_class(pod) or CLASS_OF_QOS[M.qos(pod)] end

-- Whether pods of a class use only resources that other classes leave idle.
function M.low_priority(class) return class == "koord-batch" or class == "koord-free" end

-- The request of a pod as the scheduler counts it: containers or initialisation, sidecars, overhead.
function M.request(pod) return amounts.of(kube.requests(pod)) end

local function read(pod)
  local active = M.active(pod)
  local class = active and M.class(pod) or nil
  local counts = active and not M.low_priority(class)
  return { key = M.key(pod), active = active, class = class,
    qos = counts and M.qos(pod) or nil, request = counts and M.request(pod) or nil }
end

-- A cache of facts. The facts of one version of a pod never change. An entry has the last facts of the pods
-- of one place. There are two tables of entries: when the newer one is full, it becomes the older one, and
-- unused entries disappear. An entry is changed in place, since the collector walks through each changed
-- table, and the tables of entries are large.
local PLACES_KEPT = 20000
local newer, older, n_newer = {}, {}, 0

local function nothing() return { list = false, complete = true, uids = {}, versions = {}, facts = {} } end

-- What is remembered of a place, a table of the caller's for as long as somebody asks for it.
---@param place string
function M.recall(place)
  local known = newer[place]
  if known then return known end
  if n_newer >= PLACES_KEPT then newer, older, n_newer = {}, newer, 0 end
  known = older[place] or nothing()
  newer[place], n_newer = known, n_newer + 1
  return known
end

-- Reads the pods of a list of which some are not known in their versions. `complete`: all have a uid and a
-- version.
local function read_changed(list, known, read_one)
  local uids, versions = kube.columns(list, "metadata.uid", "metadata.resourceVersion")
  local out, old_at, complete = {}, {}, true
  for i = 1, #known.facts do old_at[known.uids[i] or i] = i end
  for i = 1, #list do
    local at = uids[i] and versions[i] and old_at[uids[i]]
    out[i] = at and known.versions[at] == versions[i] and known.facts[at] or read_one(list[i])
    complete = complete and uids[i] ~= nil and versions[i] ~= nil
  end
  known.uids, known.versions, known.facts, known.complete = uids, versions, out, complete
end

local function is_known(list, known)
  return known.complete and #list == #known.facts and kube.is_column(list, "metadata.uid", known.uids)
    and kube.is_column(list, "metadata.resourceVersion", known.versions)
end

-- The facts of each pod of a list, in its order: { key, active, class, qos, request }. Callers must not
-- change them. Each version of a pod is read once. An inactive pod has only its key and active, and a batch
-- or free pod has no qos and no request. place: the name of the place of the pods; nil: nothing is cached.
-- The facts of a place are the same table until one of its pods changes. read_one: a function that reads
-- other facts of a pod; a place belongs to one such function.
---@param list table
---@param place string?
---@param read_one (fun(pod: table): table)?
function M.facts(list, place, read_one)
  local known = place and M.recall(place) or nothing()
  -- Lists of a cache are compared object by object, without reading any.
  local cached = type(list) == "userdata" and list
  if cached and known.list == cached then return known.facts end
  known.list = cached
  if not is_known(list, known) then read_changed(list, known, read_one or read) end
  return known.facts
end

-- The NUMA zones in the scheduler's annotation; none when the annotation cannot be parsed.
function M.zones(pod)
  local text = fields.annotation(pod, "scheduling.koordinator.sh/resource-status")
  local status, ids = text and fields.json(text) or {}, {}
  if type(status.numaNodeResources) ~= "table" then return ids end
  for _, zone in ipairs(status.numaNodeResources) do
    local id = type(zone) == "table" and (zone.node or 0)
    if math.type(id) ~= "integer" then return {} end
    ids[#ids + 1] = id
  end
  return ids
end

-- Divides amounts of the pod evenly among its zones, or among all `n` zones when it has none of them. Returns
-- a function from (amount, zone index from 0) to that zone's part.
function M.spread(pod, n)
  local given, count = {}, 0
  for _, id in ipairs(M.zones(pod)) do
    if id >= 0 and id < n then
      given[id] = true
      count = count + 1
    end
  end
  return function(amount, zone)
    if count == 0 then return amounts.share(amount, n) end
    return given[zone] and amounts.share(amount, count) or amounts.new()
  end
end

-- The cost in an annotation. 0: there is none, or Kubernetes does not accept it, as it has a plus, leading
-- zeros, or more than 32 bits.
function M.cost(pod, annotation)
  local text = fields.annotation(pod, annotation) or "0"
  local plain = text == "0" or text:match "^[1-9]%d*$" or text:match "^%-%d+$"
  local n = plain and math.tointeger(tonumber(text))
  return n and n >= -(1 << 31) and n < 1 << 31 and n or 0
end

return M
