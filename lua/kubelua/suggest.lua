-- suggest.lua - "did you mean": the nearest of the words that would have been right.

local core = require "kubelua.core"

local M = {}

--- The nearest word, or nil when none is near. Case and dashes are forgiven.
---@param word string
---@param words string[]
---@return string?
function M.nearest(word, words) return core.nearest(word, words) end

local function sorted_keys(set)
  local list = {}
  for word in pairs(set) do list[#list + 1] = word end
  table.sort(list)
  return list
end

--- The end of a message about an unknown word: "; did you mean 'x'?" or "; known are: a, b, c".
---@param word any
---@param words string[]|table<string, any>  a list, or a table whose keys are the words
---@return string
function M.hint(word, words)
  local list = #words > 0 and words or sorted_keys(words)
  local near = type(word) == "string" and M.nearest(word, list)
  if near then return ("; did you mean '%s'?"):format(near) end
  return "; known are: " .. table.concat(list, ", ")
end

return M
