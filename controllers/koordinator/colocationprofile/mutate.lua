-- mutate.lua - what ClusterColocationProfiles make of a new pod: labels, annotations, scheduler, priority and
-- QoS, and with them cpu and memory that count as batch or mid. Pods are plain tables here.

local kube = require "kubelua"
local fields = require "fields"
local lists = require "lib.lists"
local pods = require "pods"
local strategic = require "lib.strategic"

local M = {}

local SKIP_RESOURCES = "config.koordinator.sh/skip-update-resources"
local EXTENDED_SPEC = "node.koordinator.sh/extended-resource-spec"
local QOS, PRIORITY = "koordinator.sh/qosClass", "koordinator.sh/priority"

local NAMES = {
  ["koord-batch"] = { cpu = "kubernetes.io/batch-cpu", memory = "kubernetes.io/batch-memory" },
  ["koord-mid"] = { cpu = "kubernetes.io/mid-cpu", memory = "kubernetes.io/mid-memory" },
}
local ORDER = { "cpu", "memory" }

-- ---------------------------------------------------------------- which profiles

-- An absent or empty selector matches. So does one that does not read, and one that asks for labels nobody
-- knows: Koordinator skips a profile only when it is sure that it does not match.
local function matches(selector, labels, unknown)
  if selector == nil then return true end
  local ok, compiled = pcall(kube.selector, fields.copy(selector))
  if not ok or unknown and next(fields.copy(selector)) ~= nil then return true end
  return compiled:matches(labels or {})
end

-- The profiles that select a pod, by name. `namespace` is the pod's Namespace, nil when nobody knows it.
function M.matching(profiles, pod, namespace)
  local out = {}
  for _, profile in ipairs(profiles) do
    local spec = profile.spec or {}
    if matches(spec.namespaceSelector, fields.dig(namespace, "metadata", "labels"), namespace == nil)
      and matches(spec.selector, pod.metadata.labels, false) then
      out[#out + 1] = profile
    end
  end
  table.sort(out, function(a, b) return a.metadata.name < b.metadata.name end)
  return out
end

-- The percentage of pods to which the profile applies; nil and why when it cannot be parsed.
function M.percent(profile)
  local v = fields.dig(profile, "spec", "probability")
  if v == nil then return 100 end
  if math.type(v) == "integer" then return v end
  local percent = tostring(v):match "^(%d+)%%$"
  if not percent then
    return nil, ("profile %s: probability %q is neither a number nor a percentage"):format(
      profile.metadata.name, tostring(v))
  end
  return math.tointeger(percent)
end

-- ---------------------------------------------------------------- one profile

local function put(map, values)
  for name, v in pairs(values or {}) do map[name] = v end
end

-- In the order of their names, so that equal pods give equal results.
local function copy_keys(map, mapping)
  for _, old in ipairs(lists.names(mapping)) do map[mapping[old]] = map[old] or "" end
end

-- The labels and annotations of a profile. With `once` a suffix that is there already is not added again.
local function put_metadata(meta, spec, once)
  local labels, annotations = meta.labels, meta.annotations
  put(labels, spec.labels)
  put(annotations, spec.annotations)
  copy_keys(labels, spec.labelKeysMapping or {})
  copy_keys(annotations, spec.annotationKeysMapping or {})
  for name, suffix in pairs(spec.labelSuffixes or {}) do
    local label = labels[name]
    if label and not (once and label:sub(-#suffix) == suffix) then labels[name] = label .. suffix end
  end
end

local function put_priority(pod, name, class)
  if class == nil then return nil, ("PriorityClass %s does not exist"):format(name) end
  pod.spec.priorityClassName, pod.spec.priority = name, class.value or 0
  pod.spec.preemptionPolicy = class.preemptionPolicy
  return pod
end

local function set(text) return text ~= nil and text ~= "" end

-- `pod` is changed. Returns the pod (another table when the profile has a patch), or nil and why.
local function apply(pod, profile, world)
  local spec = profile.spec or {}
  pod.metadata.labels, pod.metadata.annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
  put_metadata(pod.metadata, spec, world.once)
  if set(spec.schedulerName) then pod.spec.schedulerName = spec.schedulerName end
  if set(spec.qosClass) then pod.metadata.labels[QOS] = spec.qosClass end
  if set(spec.priorityClassName) then
    local ok, why = put_priority(pod, spec.priorityClassName, world.priority_class(spec.priorityClassName))
    if not ok then return nil, ("profile %s: %s"):format(profile.metadata.name, why) end
  end
  if spec.koordinatorPriority ~= nil then
    pod.metadata.labels[PRIORITY] = ("%d"):format(spec.koordinatorPriority)
  end
  if spec.patch ~= nil then return strategic.merge(pod, spec.patch) end
  return pod
end

-- ---------------------------------------------------------------- resources

local function rename(list, names)
  for _, name in ipairs(ORDER) do
    local quantity = list and list[name]
    if quantity ~= nil then
      list[names[name]] = name == "cpu" and kube.qty(kube.qty(quantity):milli()):canonical() or quantity
      list[name] = nil
    end
  end
end

-- cpu and memory of a batch or mid pod become batch or mid resources; a limit without a request is one. Free
-- pods have no resources of their own, so they keep theirs.
function M.resources(pod)
  local names = NAMES[pods.class(pod)]
  if not names then return end
  for _, kind in ipairs { "initContainers", "containers" } do
    for _, container in ipairs(pod.spec[kind] or {}) do
      local resources = container.resources or {}
      rename(resources.requests, names)
      rename(resources.limits, names)
      for _, name in ipairs(ORDER) do
        local limit = resources.limits and resources.limits[names[name]]
        if limit ~= nil and not (resources.requests and resources.requests[names[name]]) then
          resources.requests = resources.requests or {}
          resources.requests[names[name]] = limit
        end
      end
    end
  end
  rename(pod.spec.overhead, names)
end

-- The batch resources of each container, in an annotation for the agent: the container runtime does not show
-- extended resources. Init containers and the overhead are not in it, as in Koordinator.
function M.extended_spec(pod)
  local containers = {}
  for _, container in ipairs(pod.spec.containers or {}) do
    local own = {}
    for _, side in ipairs { "limits", "requests" } do
      for _, name in ipairs(ORDER) do
        local extended = NAMES["koord-batch"][name]
        local quantity = fields.dig(container, "resources", side, extended)
        if quantity ~= nil then
          own[side] = own[side] or {}
          own[side][extended] = kube.qty(quantity):canonical()
        end
      end
    end
    if next(own) then containers[container.name] = own end
  end
  local old = fields.annotation(pod, EXTENDED_SPEC)
  local wanted = next(containers) and { containers = containers } or {}
  local known = old and fields.json(old) or {}
  if fields.equal(known, wanted) then return end
  pod.metadata.annotations = pod.metadata.annotations or {}
  pod.metadata.annotations[EXTENDED_SPEC] = kube.encode(kube.object(wanted))
end

-- ---------------------------------------------------------------- devices

local GPU, SHARED = "koordinator.sh/gpu", "koordinator.sh/gpu.shared"
local CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
local OF_GPUS = { GPU, SHARED, CORE, RATIO, "koordinator.sh/gpu-memory" }
local WHOLE = 100 -- percent: one whole GPU

local function asks_for_gpus(resources)
  for _, list in ipairs { resources.requests or {}, resources.limits or {} } do
    for _, name in ipairs(OF_GPUS) do
      if list[name] ~= nil then return true end
    end
  end
  return false
end

-- How many GPUs a request is divided among.
local function gpus_of(requests)
  local share = requests[RATIO] or requests[CORE]
  local n = share and lists.amount(RATIO, share) or 0
  return n > WHOLE and n % WHOLE == 0 and n // WHOLE or 1
end

-- What containers want of GPUs, in the names that the scheduler reads: koordinator.sh/gpu becomes cores and
-- memory, and gpu.shared says of how many GPUs. Both are requests and limits.
function M.device_spec(pod)
  for _, container in ipairs(pod.spec.containers or {}) do
    local resources = container.resources or {}
    if asks_for_gpus(resources) then
      local requests, limits = resources.requests or {}, resources.limits or {}
      resources.requests, resources.limits = requests, limits
      local function both(name, n)
        local text = kube.qty(n):canonical()
        requests[name], limits[name] = text, text
      end
      local counted = requests[SHARED] ~= nil
      if requests[GPU] ~= nil then
        local n = lists.amount(GPU, requests[GPU])
        both(CORE, n)
        both(RATIO, n)
        requests[GPU], limits[GPU] = nil, nil
      end
      if not counted then both(SHARED, gpus_of(requests)) end
    end
  end
end

-- ---------------------------------------------------------------- all of it

-- world: priority_class(name) returns it or nil; draw() returns 0 to 99; skip_resources leaves cpu and
-- memory alone; once: see put_metadata. Returns the pod as it should be, a table of its own, and the names of
-- the profiles that were applied; nil and why when the pod must not be admitted.
function M.mutate(pod, matched, world)
  local out, applied, skip = fields.copy(pod), {}, world.skip_resources
  if #matched == 0 then return out, applied end
  for _, profile in ipairs(matched) do
    if fields.annotation(profile, SKIP_RESOURCES) ~= nil then skip = true end
    local percent, why = M.percent(profile)
    if not percent then return nil, why end
    if percent ~= 0 and (percent == 100 or world.draw() <= percent) then
      out, why = apply(out, profile, world)
      if not out then return nil, why end
      applied[#applied + 1] = profile.metadata.name
    end
  end
  if not skip then M.resources(out) end
  return out, applied
end

return M
