-- resourceamplification.lua - the factors by which the scheduler multiplies a node's resources, as a JSON
-- annotation: those of the configuration; the one of cpu times the node's cpu normalization ratio.

local fields = require "fields"
local colocation = require "colocation"
local cpunormalization = require "cpunormalization"
local remembered = require "remembered"

local M = {}

M.KEY = "resource-amplification-config"
M.ANNOTATION = "node.koordinator.sh/resource-amplification-ratio"

local function ratios(v)
  if type(v) ~= "table" then return nil, "expected an object" end
  for name, ratio in pairs(v) do
    if type(ratio) ~= "number" then return nil, ("%s: expected a number"):format(name) end
  end
  return v
end

M.SCHEMA = { enable = "boolean", resourceAmplificationRatio = ratios }

function M.defaults() return { enable = false } end

local function text_of(by_name)
  local names, parts = {}, {}
  for name in pairs(by_name) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = ('"%s":%.2f'):format(name, by_name[name]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local NOTHING = { annotations = {} } -- constant

local function calculate(config, node)
  if config == nil then return nil, "resource amplification has no configuration yet" end
  local strategy = colocation.for_node(config, node)
  local normalization, why = cpunormalization.current(node)
  if why then return nil, why end
  if not strategy.enable and (normalization or 1) <= 1 then return NOTHING end
  local by_name = strategy.enable and fields.copy(strategy.resourceAmplificationRatio) or {}
  local cpu = (by_name.cpu or 0) > 0 and by_name.cpu or 1
  cpu = cpu * (normalization or 1)
  if cpu > 1 then by_name.cpu = cpu end

  local any = false
  for name, ratio in pairs(by_name) do
    if ratio < 1 then
      return nil, ("amplification ratio of %s must be at least 1, got %s"):format(name, ratio)
    end
    any = true
  end
  return { annotations = any and { [M.ANNOTATION] = text_of(by_name) } or {} }
end

-- input: resourceAmplification (the configuration), node. The normalization ratio is the node's current one;
-- a ratio that this pass computes is used in the next pass. Returns { annotations }, empty when nothing is
-- amplified; nil and the reason when a ratio is invalid.
function M.calculate(input)
  local config, own = input.resourceAmplification, remembered.of_node(input.node)
  if own.amplified_by ~= config or config == nil then
    own.amplified_by = config
    own.amplified, own.not_amplified = calculate(config, input.node)
  end
  return own.amplified, own.not_amplified
end

-- Whether the annotation needs a write; old and new: its texts, or nil.
function M.differs(old, new) return (old or "") ~= (new or "") end

return M
