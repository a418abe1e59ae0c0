-- settings.lua - the three configurations of nodes in the ConfigMap slo-controller-config; the last valid
-- ones are kept.
--   known = { colocation = { cfg, available, errorStatus }, cpuNormalization = cfg or nil,
--     resourceAmplification = cfg or nil }

local fields = require "fields"
local colocation = require "colocation"
local cpunormalization = require "cpunormalization"
local resourceamplification = require "resourceamplification"

local M = {}

function M.new() return { colocation = { cfg = {}, available = false, errorStatus = false } } end

-- One of the two smaller configurations: the defaults when it is absent, the known one when it is invalid.
local function sync(module, known, config_map)
  local text = fields.dig(config_map, "data", module.KEY)
  if text == nil then return module.defaults() end
  local parsed, why = colocation.parse(text, module.SCHEMA)
  if not parsed then return known, module.KEY .. ": " .. why end
  return fields.merge(module.defaults(), parsed, module.WHOLE)
end

-- The configurations after reading the ConfigMap (nil: there is none), and the reasons why parts of it were
-- rejected.
function M.sync(known, config_map)
  local out, refused = {}, {}
  local next_colocation, _, why = colocation.sync(known.colocation, config_map)
  out.colocation = next_colocation
  if why then refused[#refused + 1] = colocation.KEY .. ": " .. why end
  out.cpuNormalization, why = sync(cpunormalization, known.cpuNormalization, config_map)
  refused[#refused + 1] = why
  out.resourceAmplification, why = sync(resourceamplification, known.resourceAmplification, config_map)
  refused[#refused + 1] = why
  return out, refused
end

return M
