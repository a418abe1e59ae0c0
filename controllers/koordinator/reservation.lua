-- reservation.lua - the resources of a node that pods cannot use: those that the kubelet reserves, or those
-- in an annotation, whichever are more.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"

local dig = fields.dig

local M = {}

local CPU = 1000

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
  local text = fields.annotation(node, "node.koordinator.sh/reservation")
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

local function reserved_of(node)
  local withheld = amounts.sub(amounts.of(dig(node, "status", "capacity")),
    amounts.of(dig(node, "status", "allocatable")))
  return amounts.max(amounts.floor0(withheld), M.annotated(node))
end

-- The last node that was asked for: several calculations ask for the same. A cached object does not change.
local last, last_reserved

function M.of(node)
  if not kube.is_view(node) then return reserved_of(node) end
  if not rawequal(node, last) then last, last_reserved = node, reserved_of(node) end
  return last_reserved
end

return M
