-- cpunormalization.lua - the speed of a node's processors relative to the fleet's baseline, as an annotation
-- "1.20". Schedulers compare nodes by it, and offered batch-cpu is multiplied by it.

local fields = require "fields"
local colocation = require "colocation"
local remembered = require "remembered"

local M = {}

M.KEY = "cpu-normalization-config"
M.ANNOTATION = "node.koordinator.sh/cpu-normalization-ratio"

local LABEL = "node.koordinator.sh/cpu-normalization-enabled"
local BASIC_INFO = "node.koordinator.sh/cpu-basic-info"
M.OFF = "1.00"
local IS_OFF = { annotations = { [M.ANNOTATION] = M.OFF } } -- constant
local LEAST, MOST = 1.0, 5.0
local SAME_WITHIN = 0.01

local RATIOS = { baseRatio = "number", hyperThreadEnabledRatio = "number", turboEnabledRatio = "number",
  hyperThreadTurboEnabledRatio = "number" }

local function ratio_model(v)
  if type(v) ~= "table" then return nil, "expected an object" end
  local out = {}
  for model, ratios in pairs(v) do
    if type(ratios) ~= "table" then return nil, ("%s: expected an object"):format(model) end
    local typed, why = fields.typed(ratios, RATIOS)
    if not typed then return nil, ("%s.%s"):format(model, why) end
    out[model] = typed
  end
  return out
end

M.SCHEMA = { enable = "boolean", defaultRatio = "number", ratioModel = ratio_model }
M.WHOLE = { ratioModel = true }

function M.defaults() return { enable = false, ratioModel = {} } end

-- The ratio of a processor model, by which features are switched on.
local function which(info)
  if info.hyperThreadEnabled then
    return info.turboEnabled and "hyperThreadTurboEnabledRatio" or "hyperThreadEnabledRatio"
  end
  return info.turboEnabled and "turboEnabledRatio" or "baseRatio"
end

function M.ratio_from_model(info, strategy)
  local ratios = strategy.ratioModel and strategy.ratioModel[info.cpuModel or ""]
  if not ratios then return nil, ("no ratio is configured for CPU model %q"):format(info.cpuModel or "") end
  local ratio = ratios[which(info)]
  if not ratio then return nil, ("CPU model %q has no %s"):format(info.cpuModel, which(info)) end
  return ratio
end

function M.ratio(info, strategy)
  local ratio, why = M.ratio_from_model(info, strategy)
  return ratio or strategy.defaultRatio, why
end

-- The processor as the node's topology object describes it.
local function basic_info(topology)
  local text = fields.annotation(topology, BASIC_INFO)
  if text == nil then return nil, "the node's NodeResourceTopology has no annotation " .. BASIC_INFO end
  local raw, why = fields.json(text)
  if not raw then return nil, BASIC_INFO .. ": " .. why end
  local info
  info, why = fields.typed(raw, { cpuModel = "string", hyperThreadEnabled = "boolean",
    turboEnabled = "boolean" })
  if not info then return nil, BASIC_INFO .. ": " .. why end
  return info
end

local function calculate(input)
  local config, node = input.cpuNormalization, input.node
  if config == nil then return nil, "cpu normalization has no configuration yet" end
  local strategy = colocation.for_node(config, node, M.WHOLE)
  local enabled, label = strategy.enable, fields.label(node, LABEL)
  if label ~= nil then
    enabled = fields.boolean(label)
    if enabled == nil then return nil, ("label %s must be true or false, not %q"):format(LABEL, label) end
  end
  if not enabled then return IS_OFF end

  local info, why = basic_info(input.nodeResourceTopology)
  if not info then return nil, why end
  local ratio
  ratio, why = M.ratio(info, strategy)
  if not ratio then return nil, why end
  if ratio < LEAST or ratio > MOST then
    return nil, ("cpu normalization ratio %s is not between %s and %s"):format(ratio, LEAST, MOST)
  end
  return { annotations = { [M.ANNOTATION] = ("%.2f"):format(ratio) } }
end

-- input: cpuNormalization (the configuration), node, nodeResourceTopology (may be absent).
-- Returns { annotations }; nil and why if the ratio is unknown: the old annotation stays then.
function M.calculate(input)
  if input.nodeResourceTopology ~= nil then return calculate(input) end
  local own = remembered.of_node(input.node)
  if own.normalized_by ~= input.cpuNormalization or input.cpuNormalization == nil then
    own.normalized_by = input.cpuNormalization
    own.normalized, own.not_normalized = calculate(input)
  end
  return own.normalized, own.not_normalized
end

-- The ratio in a text: nil if there is none; nil and why if it is invalid.
local function ratio_in(text)
  if text == nil then return nil end
  if text == M.OFF then return 1.0 end
  local ratio = fields.float(text)
  if not ratio or ratio <= 0 then
    return nil, ("annotation %s is %q, not a positive number"):format(M.ANNOTATION, text)
  end
  return ratio
end

-- The ratio in the node's annotation, likewise.
function M.current(node) return ratio_in(fields.annotation(node, M.ANNOTATION)) end

-- Whether the annotation needs a write; old and new: its texts, or nil.
function M.differs(old, new)
  local before, unreadable = ratio_in(old)
  if unreadable then return true end
  local after
  after, unreadable = ratio_in(new)
  if unreadable then return false end
  if before == nil or after == nil then return before ~= after end
  return before > after + SAME_WITHIN or before < after - SAME_WITHIN
end

return M
