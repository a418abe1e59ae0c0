-- strategy.lua - what each node's agent enforces: the spec of its NodeSLO, from five keys of the ConfigMap
-- slo-controller-config. Each key is merged from general to specific; later wins:
--   defaults < clusterStrategy < the first of nodeStrategies whose selector matches the node
-- and a node's annotation may give its network bandwidth. An invalid key keeps its last valid value, without
-- effect on the others.

local kube = require "kubelua"
local fields = require "fields"
local schema = require "nodeslo.schema"

local M = {}

local BANDWIDTH = "node.koordinator.sh/network-bandwidth"

local function defaults_threshold()
  return {
    enable = false,
    cpuSuppressThresholdPercent = 65,
    cpuSuppressPolicy = "cpuset",
    memoryEvictThresholdPercent = 70,
    cpuEvictPolicy = "evictByRealLimit",
  }
end

local function defaults_cpu_burst()
  return {
    policy = "none",
    cpuBurstPercent = 1000,
    cfsQuotaBurstPercent = 300,
    cfsQuotaBurstPeriodSeconds = -1,
    sharePoolThresholdPercent = 50,
  }
end

-- In Go the bandwidth is a quantity and not a pointer: a strategy without it has "0", and "0" overwrites the
-- value of the more general one.
local function with_bandwidth(system)
  if next(system) ~= nil and system.totalNetworkBandwidth == nil then system.totalNetworkBandwidth = "0" end
  return system
end

local function system_schema(s)
  local checked = {}
  for name, kind in pairs(s.system) do checked[name] = kind end
  checked.totalNetworkBandwidth = function(v)
    local ok, q = pcall(kube.qty, v)
    if not ok then return nil, "expected a quantity, got " .. tostring(v) end
    return q:canonical()
  end
  return checked
end

local function as_is(v) return v end

-- The four keys that are merged: their names in the ConfigMap and in NodeSLO's spec.
local MERGED = {
  { key = "resource-threshold-config", field = "resourceUsedThresholdWithBE", defaults = defaults_threshold,
    schema = function(s) return s.threshold end, complete = as_is },
  { key = "resource-qos-config", field = "resourceQOSStrategy", defaults = function() return {} end,
    schema = function(s) return s.qos end, complete = as_is },
  { key = "cpu-burst-config", field = "cpuBurstStrategy", defaults = defaults_cpu_burst,
    schema = function(s) return s.cpu_burst end, complete = as_is },
  { key = "system-config", field = "systemStrategy",
    defaults = function() return { totalNetworkBandwidth = "0" } end,
    schema = system_schema, complete = with_bandwidth },
}
local SYSTEM, HOST_APPLICATIONS = "system-config", "host-application-config"

local BY_KEY = {}
for _, one in ipairs(MERGED) do BY_KEY[one.key] = one end

-- ---------------------------------------------------------------- from the ConfigMap

local ENTRY = { name = "string", nodeSelector = "object" }

-- A document { [top], [list] = { { name, nodeSelector, ... } } } with checked parts.
local function document(text, top, list, entry)
  local raw, why = fields.json(text)
  if not raw then return nil, why end
  return fields.typed(raw, { [top.name] = top.kind, [list] = fields.list_of(entry) })
end

local function merge_key(one, text, schemas)
  local own = one.schema(schemas)
  local entry = {}
  for _, part in ipairs { own, ENTRY } do
    for name, kind in pairs(part) do entry[name] = kind end
  end
  local cfg, why = document(text, { name = "clusterStrategy", kind = own }, "nodeStrategies", entry)
  if not cfg then return nil, why end
  local cluster = one.defaults()
  if cfg.clusterStrategy then cluster = fields.merge(cluster, cfg.clusterStrategy) end
  local out = { clusterStrategy = cluster }
  for i, node in ipairs(cfg.nodeStrategies or {}) do
    local name, selector = node.name, node.nodeSelector
    node.name, node.nodeSelector = nil, nil
    local merged = fields.merge(cluster, one.complete(node))
    merged.name, merged.nodeSelector = name, selector
    out.nodeStrategies = out.nodeStrategies or {}
    out.nodeStrategies[i] = merged
  end
  return out
end

local function host_applications(text, schemas)
  local list = fields.list_of(schemas.application)
  return document(text, { name = "applications", kind = list }, "nodeConfigs",
    { name = "string", nodeSelector = "object", applications = list })
end

-- The merged configuration of a key; if it is invalid, `old` and why.
function M.merge(key, old, config_map, upstream)
  local one, text = BY_KEY[key], fields.dig(config_map, "data", key)
  if text == nil then return one and { clusterStrategy = one.defaults() } or {} end
  local cfg, why
  if one then
    cfg, why = merge_key(one, text, schema.of(upstream))
  else
    cfg, why = host_applications(text, schema.of(upstream))
  end
  if not cfg then return old, ("%s: %s"):format(key, why) end
  return cfg
end

-- The state before anything has been read.
function M.new() return (M.sync({}, nil, "main")) end

-- The next state, from the previous one and the ConfigMap (nil: it is missing): { [key] = configuration },
-- and the reasons why keys were rejected.
function M.sync(known, config_map, upstream)
  local out, refused = {}, {}
  for _, one in ipairs(MERGED) do
    out[one.key], refused[#refused + 1] = M.merge(one.key, known[one.key], config_map, upstream)
  end
  out[HOST_APPLICATIONS], refused[#refused + 1] = M.merge(HOST_APPLICATIONS, known[HOST_APPLICATIONS],
    config_map, upstream)
  return out, refused
end

-- ---------------------------------------------------------------- for one node

-- The strategy of a key for a node; nil and why if the node's annotation is invalid.
function M.select(key, cfg, node)
  if key == HOST_APPLICATIONS then
    local entry = fields.first_match(cfg.nodeConfigs, node)
    return fields.copy(entry and entry.applications or not entry and cfg.applications) or {}
  end
  local strategy = fields.copy(fields.first_match(cfg.nodeStrategies, node) or cfg.clusterStrategy)
  strategy.name, strategy.nodeSelector = nil, nil
  local bandwidth = key == SYSTEM and fields.annotation(node, BANDWIDTH)
  if bandwidth then
    local ok, q = pcall(kube.qty, bandwidth)
    if not ok then return nil, ("annotation %s: %s is not a quantity"):format(BANDWIDTH, bandwidth) end
    strategy.totalNetworkBandwidth = q:canonical()
  end
  return strategy
end

-- NodeSLO's definition sets these defaults; a spec without them would always differ from the stored one.
local NETWORK_DEFAULTS = { ingressRequest = 0, ingressLimit = 100, egressRequest = 0, egressLimit = 100 }

local function fill_network(qos)
  for _, class in ipairs(schema.classes) do
    local network = fields.dig(qos, class, "networkQOS")
    for name, v in pairs(network and NETWORK_DEFAULTS or {}) do
      if network[name] == nil then network[name] = v end
    end
  end
end

-- The whole spec; extensions belong to others and stay as they are. Returns it, and why parts of it are
-- missing.
function M.spec(known, node, old)
  local out, missing = {}, {}
  for _, one in ipairs(MERGED) do
    out[one.field], missing[#missing + 1] = M.select(one.key, known[one.key], node)
  end
  fill_network(out.resourceQOSStrategy)
  local applications = M.select(HOST_APPLICATIONS, known[HOST_APPLICATIONS], node)
  if #applications > 0 then out.hostApplications = applications end
  out.extensions = old and fields.copy(old.extensions)
  return out, missing
end

-- Whether two specs mean the same: "0" and 0 are equal quantities, an empty list equals an absent one.
function M.same(a, b)
  local function plain(spec)
    local out = fields.copy(spec)
    local system = out.systemStrategy
    if system and system.totalNetworkBandwidth ~= nil then
      system.totalNetworkBandwidth = kube.qty(system.totalNetworkBandwidth):canonical()
    end
    if out.hostApplications and #out.hostApplications == 0 then out.hostApplications = nil end
    return out
  end
  return fields.equal(plain(a), plain(b))
end

return M
