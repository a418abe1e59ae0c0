-- reservation.lua - the resources of a node that pods cannot use: those that the kubelet reserves, or those
-- in an annotation, whichever are more.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local remembered = require "remembered"

local M = {}

local CPU = 1000
local ANNOTATION = "node.koordinator.sh/reservation"

-- The number of processors in a text such as "0-5,34,46-48"; nil: the text is invalid.
function M.count_cpus(text)
  local seen, n = {}, 0
  for part in (text .. ","):gmatch("([^,]*),") do
    local from, to = part:match("^(%d+)%-(%d+)$")
    if not from then
      from = part:match("^%d+$")
      to = from
    end
    if not from or #to > 6 then return nil end
    for id = math.tointeger(from), math.tointeger(to) do
      if not seen[id] then
        seen[id] = true
        n = n + 1
      end
    end
  end
  return n
end

-- The resources in the annotation, { resources = {...}, reservedCPUs = "0-3" }: reservedCPUs override the
-- amount of cpu. An invalid annotation reserves nothing.
function M.annotated(node)
  local text = fields.annotation(node, ANNOTATION)
  local wanted = text and fields.json(text)
  if not wanted then return amounts.new() end
  local ok, reserved = pcall(amounts.of, wanted.resources)
  if not ok then return amounts.new() end
  if wanted.reservedCPUs ~= nil and wanted.reservedCPUs ~= "" then
    local n = type(wanted.reservedCPUs) == "string" and M.count_cpus(wanted.reservedCPUs)
    if not n then return amounts.new() end
    reserved.cpu = n * CPU
  end
  return reserved
end

-- What pods cannot use of a node, and its capacity. Callers must not change them.
function M.of(node)
  local own = remembered.of_node(node)
  if not own.capacity then
    local cpu, memory, given_cpu, given_memory = kube.milli_pick(node, "status.capacity.cpu",
      "status.capacity.memory", "status.allocatable.cpu", "status.allocatable.memory")
    local capacity, given = amounts.new(cpu, memory), amounts.new(given_cpu, given_memory)
    own.reserved = amounts.max(amounts.floor0(amounts.sub(capacity, given)), M.annotated(node))
    own.capacity = capacity
  end
  return own.reserved, own.capacity
end

return M
