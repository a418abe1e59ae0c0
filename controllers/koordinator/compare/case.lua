-- case.lua - what cases of spec/fixtures/koordinator and reports have in common, whatever is compared.

local fields = require "fields"

local M = {}

M.SOURCE = "a cluster, compared"

-- An object as a case has it, a copy without its managers; nil of nil.
function M.bare(object)
  local copy = fields.copy(object)
  if copy then copy.metadata.managedFields = nil end
  return copy
end

-- Which way two figures differ; nil: there is none.
function M.reason(theirs, ours)
  if theirs == nil then return "only here" end
  if ours == nil then return "only there" end
  return theirs > ours and "more there" or "less there"
end

return M
