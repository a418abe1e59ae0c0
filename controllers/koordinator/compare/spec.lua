-- spec.lua - where the spec of an object that the original keeps differs from the one that the policy would
-- write, field by field.

local fields = require "fields"
local kube = require "kubelua"

local M = {}

local function is_map(value) return type(value) == "table" and #value == 0 end

local function text(value) return type(value) == "table" and kube.encode(value) or tostring(value) end

local function walk(path, theirs, ours, found)
  if is_map(theirs) and is_map(ours) then
    local names = {}
    for name in pairs(fields.merge(theirs, ours)) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      walk(path == "" and name or path .. "." .. name, theirs[name], ours[name], found)
    end
  elseif not fields.equal(theirs, ours) and text(theirs) ~= text(ours) then
    found[#found + 1] = { name = path, theirs = theirs ~= nil and text(theirs) or nil,
      ours = ours ~= nil and text(ours) or nil,
      reason = theirs == nil and "only here" or ours == nil and "only there" or "another value" }
  end
end

-- { object = the node, name = kind and path, theirs, ours, reason } of each field in which they differ;
-- theirs is nil where there is no object.
function M.disagreements(node, kind, theirs, ours)
  if theirs == nil then
    return { { object = node, name = kind, reason = "only here", ours = "an object" } }
  end
  local found = {}
  walk("", theirs, ours, found)
  for _, one in ipairs(found) do one.object, one.name = node, kind .. " " .. one.name end
  return found
end

return M
