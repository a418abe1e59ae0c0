-- marks.lua - the annotations of a pod or a Reservation that list its processors, NUMA nodes and devices.

local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local numa = require "scheduler.numa"

local M = {}

-- The annotations for the result of cycle.got: { [name] = text, or false to remove it }; others stay as they
-- are. pod: the pod, or template.says of a Reservation.
function M.texts(got, pod)
  local status, spec = numa.texts(got.numa, pod)
  return { [deviceshare.ANNOTATION] = deviceshare.text(got.devices) or false, [numa.STATUS] = status or false,
    [numa.SPEC] = spec }
end

function M.says(object, texts)
  for name, text in pairs(texts) do
    if (fields.annotation(object, name) or false) ~= text then return false end
  end
  return true
end

-- Writes the annotations into an object that may be changed.
function M.write(object, texts)
  for name, text in pairs(texts) do object.metadata.annotations[name] = text or nil end
end

-- A copy of an object with the annotations.
function M.on(object, texts)
  local metadata = fields.copy(object.metadata)
  metadata.annotations = metadata.annotations or {}
  local out = { metadata = metadata, spec = object.spec, status = object.status }
  M.write(out, texts)
  return out
end

return M
