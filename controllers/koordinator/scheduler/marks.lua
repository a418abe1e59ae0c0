-- marks.lua - what a pod, or a Reservation, got of a node's processors, NUMA nodes and devices, as its
-- annotations say it.

local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local numa = require "scheduler.numa"

local M = {}

-- The annotations for what cycle.got says: { [name] = text, or false for none }; one that is missing stays as
-- it is. pod: the pod, or what a Reservation says as one.
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

-- An object with the annotations, which is otherwise the same.
function M.on(object, texts)
  local metadata = fields.copy(object.metadata)
  metadata.annotations = metadata.annotations or {}
  local out = { metadata = metadata, spec = object.spec, status = object.status }
  M.write(out, texts)
  return out
end

return M
