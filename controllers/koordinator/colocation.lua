-- colocation.lua - the colocation strategy of each node, from general to particular, later wins:
--   defaults < "colocation-config" of the ConfigMap < its first nodeConfigs entry that selects the node
--   < the node's annotation < the node's ratio labels
-- A ConfigMap that does not read or is not valid changes nothing: the last good one stays.

local kube = require "kubelua"
local fields = require "fields"
local remembered = require "remembered"

local M = {}

M.KEY = "colocation-config"

function M.defaults()
  return {
    enable = false,
    metricAggregateDurationSeconds = 300,
    metricReportIntervalSeconds = 60,
    metricAggregatePolicy = { durations = { "5m0s", "10m0s", "30m0s" } },
    metricMemoryCollectPolicy = "usageWithoutPageCache",
    cpuReclaimThresholdPercent = 60,
    cpuCalculatePolicy = "usage",
    memoryReclaimThresholdPercent = 65,
    memoryCalculatePolicy = "usage",
    degradeTimeMinutes = 15,
    updateTimeThresholdSeconds = 300,
    resourceDiffThreshold = 0.1,
    midCPUThresholdPercent = 100,
    midMemoryThresholdPercent = 100,
    midUnallocatedPercent = 0,
    midStaticCPUReservedPercent = 0,
    midStaticMemoryReservedPercent = 0,
  }
end

local DEFAULTS = M.defaults()

-- One setting, with its default for a strategy that was never merged with them.
function M.setting(strategy, field)
  local v = strategy[field]
  if v == nil then v = DEFAULTS[field] end
  return v
end

-- As Go prints a duration of whole seconds: "5m0s".
local function duration_text(seconds)
  local whole = math.tointeger(seconds)
  if not whole then return ("%gs"):format(seconds) end
  local text = ("%ds"):format(whole % 60)
  if whole >= 60 then text = ("%dm%s"):format(whole // 60 % 60, text) end
  if whole >= 3600 then text = ("%dh%s"):format(whole // 3600, text) end
  return text
end

local function duration(v)
  local ok, seconds = pcall(kube.duration, v)
  if type(v) ~= "string" or not ok then return nil, "expected a duration, got " .. tostring(v) end
  return duration_text(seconds)
end

local STRATEGY = {
  enable = "boolean",
  metricAggregateDurationSeconds = "integer",
  metricReportIntervalSeconds = "integer",
  metricAggregatePolicy = { durations = fields.list_of(duration) },
  metricMemoryCollectPolicy = "string",
  cpuReclaimThresholdPercent = "integer",
  cpuCalculatePolicy = "string",
  memoryReclaimThresholdPercent = "integer",
  memoryCalculatePolicy = "string",
  degradeTimeMinutes = "integer",
  updateTimeThresholdSeconds = "integer",
  resourceDiffThreshold = "number",
  midReclaimMode = "string",
  midCPUThresholdPercent = "integer",
  midMemoryThresholdPercent = "integer",
  midUnallocatedPercent = "integer",
  midStaticCPUReservedPercent = "integer",
  midStaticMemoryReservedPercent = "integer",
  batchCPUThresholdPercent = "integer",
  batchMemoryThresholdPercent = "integer",
  extensions = "object",
}

local function above(limit) return function(v) return v > limit end end
local function percent(v) return v >= 0 and v <= 100 end
local function not_negative(v) return v >= 0 end

local VALID = {
  metricAggregateDurationSeconds = above(0),
  metricReportIntervalSeconds = above(0),
  metricMemoryCollectPolicy = function(v) return v ~= "" end,
  cpuReclaimThresholdPercent = not_negative,
  memoryReclaimThresholdPercent = not_negative,
  midStaticCPUReservedPercent = not_negative,
  midStaticMemoryReservedPercent = not_negative,
  degradeTimeMinutes = above(0),
  updateTimeThresholdSeconds = above(0),
  resourceDiffThreshold = above(0),
  midCPUThresholdPercent = percent,
  midMemoryThresholdPercent = percent,
  midUnallocatedPercent = percent,
  batchCPUThresholdPercent = not_negative,
  batchMemoryThresholdPercent = not_negative,
}

-- True, or false and the first setting (by name) that is out of its range.
function M.valid(strategy)
  if strategy == nil then return false, "there is no strategy" end
  local wrong
  for field, holds in pairs(VALID) do
    local v = strategy[field]
    if v ~= nil and not holds(v) and (not wrong or field < wrong) then wrong = field end
  end
  if wrong then return false, ("%s must not be %s"):format(wrong, tostring(strategy[wrong])) end
  return true
end

-- A document of this shape: strategy fields at the top, nodeConfigs of the same fields with a name and a
-- selector. Shared with the two configurations beside this one, which differ only in their fields.
function M.parse(text, schema)
  local raw, why = fields.json(text)
  if not raw then return nil, why end
  local cfg
  cfg, why = fields.typed(raw, schema)
  if not cfg then return nil, why end
  if raw.nodeConfigs ~= nil then
    if type(raw.nodeConfigs) ~= "table" then return nil, "nodeConfigs: expected a list" end
    cfg.nodeConfigs = {}
    for i, entry in ipairs(raw.nodeConfigs) do
      if type(entry) ~= "table" then return nil, ("nodeConfigs[%d]: expected an object"):format(i) end
      local own
      own, why = fields.typed(entry, schema)
      if not own then return nil, ("nodeConfigs[%d].%s"):format(i, why) end
      own.name, own.nodeSelector = entry.name, entry.nodeSelector
      cfg.nodeConfigs[i] = own
    end
  end
  return cfg
end

-- Only the strategy of an entry or a document, without what says where it applies.
local function strategy_in(cfg)
  local s = fields.copy(cfg)
  s.nodeConfigs, s.nodeSelector, s.name = nil, nil, nil
  return s
end

-- What was made of a configuration and one of its entries (false: none of them) is made once. Configurations
-- change now and then: of so many, all are made anew.
local MADE_MOST = 16
local made, n_made = {}, 0

local function made_of(cfg)
  if not made[cfg] then
    if n_made == MADE_MOST then made, n_made = {}, 0 end
    made[cfg], n_made = {}, n_made + 1
  end
  return made[cfg]
end

-- `cfg` with the first entry of its nodeConfigs that selects the node laid over it. Nobody may change it.
function M.for_node(cfg, node, whole)
  local entry = cfg.nodeConfigs and fields.first_match(cfg.nodeConfigs, node) or false
  local known = made_of(cfg)
  if not known[entry] then
    local strategy = strategy_in(cfg)
    known[entry] = entry and fields.merge(strategy, strategy_in(entry), whole) or strategy
  end
  return known[entry]
end

-- The step from what was known to what the ConfigMap says now (nil: there is none).
-- cache is { cfg, available, errorStatus }; returns the next one, whether cfg changed, and why it was
-- refused.
function M.sync(cache, config_map)
  local function refuse(why)
    return { cfg = cache.cfg, available = cache.available, errorStatus = true }, false, why
  end
  local function accept(cfg, failed)
    local changed = not fields.equal(cache.cfg, cfg)
    return { cfg = changed and cfg or cache.cfg, available = true, errorStatus = failed }, changed
  end

  if config_map == nil then return accept(M.defaults(), true) end
  local text = fields.dig(config_map, "data", M.KEY)
  if text == nil or text == "" then return accept(M.defaults(), false) end

  local parsed, why = M.parse(text, STRATEGY)
  if not parsed then return refuse(why) end
  local cluster = fields.merge(M.defaults(), strategy_in(parsed))
  local ok, wrong = M.valid(cluster)
  if not ok then return refuse(wrong) end

  local cfg = fields.copy(cluster)
  for i, entry in ipairs(parsed.nodeConfigs or {}) do
    -- An entry that would make its nodes' strategy invalid is ignored: those nodes follow the cluster.
    local merged = fields.merge(cluster, strategy_in(entry))
    if not M.valid(merged) then merged = fields.copy(cluster) end
    merged.name, merged.nodeSelector = entry.name, entry.nodeSelector
    cfg.nodeConfigs = cfg.nodeConfigs or {}
    cfg.nodeConfigs[i] = merged
  end
  return accept(cfg, false)
end

local OWN = "node.koordinator.sh/colocation-strategy"
local RATIO_LABELS = {
  ["node.koordinator.sh/cpu-reclaim-ratio"] = "cpuReclaimThresholdPercent",
  ["node.koordinator.sh/memory-reclaim-ratio"] = "memoryReclaimThresholdPercent",
  ["node.koordinator.sh/mid-static-cpu-reserved-ratio"] = "midStaticCPUReservedPercent",
  ["node.koordinator.sh/mid-static-memory-reserved-ratio"] = "midStaticMemoryReservedPercent",
}

-- The strategy as this node's annotation and labels bend it: itself where they do not. An annotation that
-- does not read is ignored.
function M.bend(strategy, node)
  local text = fields.annotation(node, OWN)
  local own, labels = text and M.parse(text, STRATEGY), fields.dig(node, "metadata", "labels") or {}
  local out = own and fields.merge(strategy, strategy_in(own)) or strategy
  for label, field in pairs(RATIO_LABELS) do
    local v = labels[label]
    local ratio = v ~= nil and fields.float(v)
    -- Cut, not rounded: "0.29" means 28 percent, as it does in Koordinator.
    if ratio and ratio >= 0 then
      if out == strategy then out = fields.copy(strategy) end
      out[field] = math.tointeger(ratio * 100 // 1)
    end
  end
  return out
end

-- The strategy of a node. As long as neither cfg nor the node changes, it is made once. Nobody may change it.
function M.strategy(cfg, node)
  if cfg == nil or node == nil then return nil end
  local own = remembered.of_node(node)
  if own.cfg ~= cfg then own.cfg, own.strategy = cfg, M.bend(M.for_node(cfg, node), node) end
  return own.strategy
end

-- Whether colocation is on for the node. The cluster's switch is the main one: no node can turn itself on
-- alone.
function M.enabled(cfg, strategy)
  return cfg.enable == true and strategy ~= nil and strategy.enable == true
end

return M
