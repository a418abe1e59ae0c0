-- smoothed.lua - batch resources rise slowly and fall at once: each calculation adds the part STEP of a rise,
-- and ignores a rise of less than RISE.

local batch = require "batchresource"
local cpunormalization = require "cpunormalization"
local fields = require "fields"
local kube = require "kubelua"
local prepare = require "prepare"

local STEP = 0.3   -- the part of a rise
local RISE = 0.05  -- the part of the node's current amount

-- The node's current amount, before third parties took their part and without normalization, or nil.
local function before(node, name)
  local text = fields.annotation(node, prepare.ORIGIN)
  local has = fields.dig(text and fields.json(text), "resources", name)
  local faster = fields.annotation(node, cpunormalization.ANNOTATION)
  local ratio = name == batch.CPU and fields.float(faster or "1") or 1
  return has and kube.qty(has):value() / math.max(ratio or 1, 1) or nil
end

local original = batch.calculate

function batch.calculate(input)
  local out, why = original(input)
  for name, new in pairs(out and out.resources or {}) do
    local old = before(input.node, name)
    if old and new > old then
      local rise = (new - old) * STEP
      out.resources[name] = math.floor(new - old > old * RISE and old + math.max(rise, 1) or old)
    end
  end
  return out, why
end
