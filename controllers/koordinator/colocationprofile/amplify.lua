-- amplify.lua - a node whose resources count for more: its allocatable is what the kubelet said (kept in an
-- annotation) times the ratios of another annotation.

local kube = require "kubelua"
local fields = require "fields"
local nodes = require "lib.nodes"

local M = {}

local RATIOS = "node.koordinator.sh/resource-amplification-ratio"
local RAW = nodes.RAW
local NAMES = { "cpu", "memory" }

local function changed(old, new)
  for _, name in ipairs(NAMES) do
    local before, after = fields.dig(old, "status", "allocatable", name), new[name]
    if (before == nil) ~= (after == nil) or before ~= nil and kube.qty(before) ~= kube.qty(after) then
      return true
    end
  end
  return false
end

local function raw_of(allocatable)
  local raw = {}
  for _, name in ipairs(NAMES) do raw[name] = allocatable[name] end
  return raw
end

-- cpu in thousandths, memory in bytes, cut toward zero.
local function scaled(name, quantity, ratio)
  local milli = math.tointeger(kube.qty(quantity):milli() * ratio // 1) or math.maxinteger
  if name == "cpu" then return kube.milli(milli):canonical() end
  return milli % 1000 == 0 and kube.qty(milli // 1000):canonical() or kube.milli(milli):canonical()
end

-- What an update of a node should carry instead: { raw = text, false to take it away, or nil to leave it;
-- allocatable = { name = text } }. nil and why when an annotation does not read.
function M.desired(node, old)
  local ratios_text = fields.annotation(node, RATIOS)
  if ratios_text == nil or ratios_text == "" then return { raw = false, allocatable = {} } end
  local allocatable = fields.dig(node, "status", "allocatable")
  if allocatable == nil then return { allocatable = {} } end
  local ratios, why = fields.json(ratios_text)
  if not ratios then return nil, ("annotation %s: %s"):format(RATIOS, why) end

  local out = { allocatable = {} }
  local raw
  local known = fields.annotation(node, RAW)
  if known == nil or changed(old, allocatable) then
    raw = raw_of(allocatable)
    if next(raw) then out.raw = kube.encode(kube.object(raw)) end
  else
    raw, why = fields.json(known)
    if not raw then return nil, ("annotation %s: %s"):format(RAW, why) end
  end
  for _, name in ipairs(NAMES) do
    local ratio = ratios[name]
    if ratio ~= nil and type(ratio) ~= "number" then
      return nil, ("annotation %s: %s must be a number"):format(RATIOS, name)
    end
    if ratio and ratio > 1 and raw[name] ~= nil then
      out.allocatable[name] = scaled(name, raw[name], ratio)
    end
  end
  return out
end

M.RAW = RAW

return M
