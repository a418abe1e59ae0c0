-- pools.lua - the pools of nodes of LowNodeLoadArgs, in order. The first has the thresholds of the args
-- themselves; the others are `nodePools`, which inherit from the args what they leave out.

local fields = require "fields"

local M = {}

--- Params of controllers that work with them, as in LowNodeLoadArgs.
M.PARAMS = {
  numberOfNodes = 0,
  nodeMetricExpirationSeconds = 180,
  nodeFit = true,
  evictableNamespaces = {},
  podSelectors = {},
  -- For all nodes: unnamed thresholds never matter, except memory's limit of 100 %.
  lowThresholds = {},
  highThresholds = {},
  prodLowThresholds = {},
  prodHighThresholds = {},
  useDeviationThresholds = false,
  nodeSelector = {},
  resourceWeights = {},
  nodePools = { {
    name = "all",
    lowThresholds = { cpu = 45, memory = 55 },
    highThresholds = { cpu = 75, memory = 80 },
  } },
}

local INHERITED = { "lowThresholds", "highThresholds", "prodLowThresholds", "prodHighThresholds" }
local CONDITION = { timeout = "1m", consecutiveAbnormalities = 5, consecutiveNormalities = 3 }

local function filled(list) return list ~= nil and next(list) ~= nil and list or nil end

-- Each resource weighs 1 unless the args say more.
local function weights_of(settings)
  local weights = { cpu = 1, memory = 1 }
  for _, which in ipairs { "lowThresholds", "highThresholds" } do
    for name in pairs(settings[which] or {}) do weights[name] = 1 end
  end
  for name, weight in pairs(settings.resourceWeights or {}) do
    if weight > 0 or not weights[name] then weights[name] = weight end
  end
  return weights
end

local function condition_of(own, args)
  if own == nil then return args end
  local out = fields.copy(own)
  for _, name in ipairs { "consecutiveAbnormalities", "consecutiveNormalities" } do
    if (out[name] or 0) == 0 then out[name] = args[name] end
  end
  return out
end

function M.of(settings)
  local condition = condition_of(filled(settings.anomalyCondition), CONDITION)
  local all = { name = "all nodes", nodeSelector = filled(settings.nodeSelector),
    anomalyCondition = condition, resourceWeights = weights_of(settings),
    useDeviationThresholds = settings.useDeviationThresholds }
  for _, which in ipairs(INHERITED) do all[which] = settings[which] end
  local out = { all }
  for _, pool in ipairs(settings.nodePools or {}) do
    local own = fields.copy(pool)
    for _, which in ipairs(INHERITED) do own[which] = own[which] or settings[which] end
    own.resourceWeights = own.resourceWeights or all.resourceWeights
    own.anomalyCondition = condition_of(filled(own.anomalyCondition), condition)
    out[#out + 1] = own
  end
  return out
end

return M
