-- config.lua - whether slo-controller-config can be: every changed key reads, its numbers are in their
-- ranges, and no node is selected by two entries of a key.

local kube = require "kubelua"
local colocation = require "colocation"
local fields = require "fields"
local network = require "colocationprofile.network"
local strategy = require "nodeslo.strategy"

local M = {}

-- Keys, and the list that holds what is particular to some nodes.
local LISTS = {
  ["colocation-config"] = "nodeConfigs",
  ["resource-threshold-config"] = "nodeStrategies",
  ["resource-qos-config"] = "nodeStrategies",
  ["cpu-burst-config"] = "nodeStrategies",
  ["system-config"] = "nodeStrategies",
}
M.KEYS = { "colocation-config", "cpu-burst-config", "resource-qos-config", "resource-threshold-config",
  "system-config" }

local QOS, SYSTEM = "resource-qos-config", "system-config"

-- A selector of several expressions stands for each combination of their values; more are not tried.
local COMBINATIONS_MAX = 10000

local RANGES = {}
local function range(min, max, names)
  for name in names:gmatch "%S+" do RANGES[name] = { min = min, max = max } end
end
range(0, 100, [[ cpuSuppressThresholdPercent cpuSuppressMinPercent memoryEvictThresholdPercent
  memoryEvictLowerPercent cpuEvictBESatisfactionUpperPercent cpuEvictBESatisfactionLowerPercent
  cpuEvictBEUsageThresholdPercent cpuEvictThresholdPercent cpuEvictLowerPercent minLimitPercent
  lowLimitPercent throttlingPercent wmarkRatio pageCacheLimitPercent catRangeStartPercent
  catRangeEndPercent mbaPercent
  sharePoolThresholdPercent midCPUThresholdPercent midMemoryThresholdPercent midUnallocatedPercent
  midStaticCPUReservedPercent midStaticMemoryReservedPercent ]])
range(0, nil, [[ cpuReclaimThresholdPercent memoryReclaimThresholdPercent batchCPUThresholdPercent
  batchMemoryThresholdPercent cpuAllocatableEvictThresholdPercent cpuAllocatableEvictLowerPercent
  memoryAllocatableEvictThresholdPercent memoryAllocatableEvictLowerPercent ]])
range(1, nil, [[ metricAggregateDurationSeconds metricReportIntervalSeconds degradeTimeMinutes
  updateTimeThresholdSeconds cpuEvictTimeWindowSeconds minFreeKbytesFactor ]])
range(0, 1, "schedIdle priorityEnable oomKillGroup memcgReapBackGround pageCacheLimitEnabled")
range(-1, 2, "groupIdentity")
range(1, 1000, "wmarkScalePermill")
range(-25, 50, "wmarkMinAdj")
range(0, 12, "priority")
range(0, 7999, "allocatableEvictPriorityThreshold")
range(1, 10000, "cpuBurstPercent")
range(100, nil, "cfsQuotaBurstPercent")
range(-1, nil, "cfsQuotaBurstPeriodSeconds")
range(1, 400, "watermarkScaleFactor")

-- The first setting must be below the second. As upstream, neither may be set alone.
local BELOW = {
  memoryEvictLowerPercent = "memoryEvictThresholdPercent",
  cpuEvictLowerPercent = "cpuEvictThresholdPercent",
  cpuEvictBESatisfactionLowerPercent = "cpuEvictBESatisfactionUpperPercent",
  cpuAllocatableEvictLowerPercent = "cpuAllocatableEvictThresholdPercent",
  memoryAllocatableEvictLowerPercent = "memoryAllocatableEvictThresholdPercent",
  catRangeStartPercent = "catRangeEndPercent",
}

local ABOVE = {}
for low, high in pairs(BELOW) do ABOVE[high] = low end

-- Why a setting does not go together with the one that it is compared with.
local function wrong_pair(o, name)
  local v, high, low = o[name], BELOW[name], ABOVE[name]
  if type(v) ~= "number" or not (high or low) then return nil end
  if o[high or low] == nil then return ("%s must be set together with %s"):format(name, high or low) end
  if not high or type(o[high]) ~= "number" or v < o[high] then return nil end
  return ("%s must be below %s, got %s and %s"):format(name, high, v, o[high])
end

local function out_of_range(name, v)
  local r = RANGES[name]
  if not r or type(v) ~= "number" or v >= r.min and (not r.max or v <= r.max) then return nil end
  return ("%s must be %s, got %s"):format(name,
    r.max and ("from %d to %d"):format(r.min, r.max) or ("at least %d"):format(r.min), v)
end

-- The name of the first number that is out of range.
local function wrong_number(o)
  local names = {}
  for name in pairs(o) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    local v = o[name]
    local why = type(v) == "table" and wrong_number(v) or out_of_range(name, v) or wrong_pair(o, name)
    if why then return why end
  end
  local diff = o.resourceDiffThreshold
  if type(diff) == "number" and (diff <= 0 or diff > 1) then
    return ("resourceDiffThreshold must be above 0 and at most 1, got %s"):format(diff)
  end
end

-- ---------------------------------------------------------------- who is selected

local function label(entry, i) return entry.name and ("%q"):format(entry.name) or ("number %d"):format(i) end

-- { { name, selector, raw } } of the entries of a document; nil and why.
local function entries_of(key, doc)
  local out, list = {}, doc[LISTS[key]] or {}
  if type(list) ~= "table" then return nil, LISTS[key] .. " must be a list" end
  for i, entry in ipairs(list) do
    if type(entry) ~= "table" then return nil, ("entry number %d must be an object"):format(i) end
    local raw = entry.nodeSelector or {}
    if type(raw) ~= "table" then
      return nil, ("entry %s: nodeSelector must be an object"):format(label(entry, i))
    end
    if next(raw.matchLabels or {}) == nil and next(raw.matchExpressions or {}) == nil then
      return nil, ("entry %s: nodeSelector must not be empty"):format(label(entry, i))
    end
    local ok, selector = pcall(kube.selector, raw)
    if not ok then return nil, ("entry %s: %s"):format(label(entry, i), selector) end
    out[i] = { name = label(entry, i), selector = selector, raw = raw }
  end
  return out
end

-- Koordinator tries only some combinations of values (the diagonal), so overlaps slip through there.
local function virtual_nodes(raw)
  local nodes = { fields.copy(raw.matchLabels or {}) }
  for _, e in ipairs(raw.matchExpressions or {}) do
    local values = e.values or {}
    if #values > 0 and #nodes * #values <= COMBINATIONS_MAX then
      local more = {}
      for _, node in ipairs(nodes) do
        for _, value in ipairs(values) do
          local one = fields.copy(node)
          one[e.key] = value
          more[#more + 1] = one
        end
      end
      nodes = more
    end
  end
  return nodes
end

local function conflict(entries, labels)
  local first
  for _, entry in ipairs(entries) do
    if entry.selector:matches(labels) then
      if first then return ("entries %s and %s select the same nodes"):format(first, entry.name) end
      first = entry.name
    end
  end
end

local function overlap(entries)
  for _, entry in ipairs(entries) do
    for _, labels in ipairs(virtual_nodes(entry.raw)) do
      local why = conflict(entries, labels)
      if why then return why end
    end
  end
end

-- ---------------------------------------------------------------- the rules

local function read(key, config_map)
  local doc, why = fields.json(config_map.data[key])
  if not doc then return nil, why end
  if key == colocation.KEY then
    local cache, _, refused = colocation.sync({ cfg = {} }, config_map)
    return not cache.errorStatus and doc or nil, refused
  end
  local _, refused = strategy.merge(key, nil, config_map, "main")
  if refused then return nil, refused:sub(#key + 3) end
  return doc
end

-- Upstream refuses settings of QoS without a key of the system's; here that counts as empty.
local function wrong_network(doc, config_map)
  local text = config_map.data[SYSTEM]
  local system, why = fields.json(text ~= nil and text ~= "" and text or "{}")
  if why then return ("%s: %s"):format(SYSTEM, why) end
  if type(system) ~= "table" then return nil end
  local entries
  entries, why = entries_of(SYSTEM, system)
  if not entries then return ("%s: %s"):format(SYSTEM, why) end
  return network.check(doc, system)
end

-- Why one key cannot be, or nil. nodes: a list of the labels of the nodes that there are.
function M.key(key, config_map, nodes)
  local doc, why = read(key, config_map)
  if not doc then return why end
  why = wrong_number(doc) or key == QOS and wrong_network(doc, config_map)
  if why then return why end
  local entries
  entries, why = entries_of(key, doc)
  if not entries then return why end
  why = overlap(entries)
  for _, labels in ipairs(#entries > 1 and nodes or {}) do why = why or conflict(entries, labels) end
  return why
end

-- Why a new ConfigMap cannot be: the first key that changed and is wrong.
function M.config_map(config_map, old, nodes)
  for _, key in ipairs(M.KEYS) do
    local text = fields.dig(config_map, "data", key)
    if text ~= nil and text ~= "" and text ~= fields.dig(old, "data", key) then
      local why = M.key(key, config_map, nodes)
      if why then return key .. ": " .. why end
    end
  end
end

-- Why a node cannot have these labels: two entries of a key would select it. Keys that do not read are passed
-- over.
function M.node(labels, config_map)
  for _, key in ipairs(M.KEYS) do
    local text = fields.dig(config_map, "data", key)
    local doc = text and fields.json(text)
    local entries = doc and entries_of(key, doc)
    local why = entries and conflict(entries, labels)
    if why then return key .. ": " .. why end
  end
end

return M
