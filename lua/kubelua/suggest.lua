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

-- Of more than this nobody reads all.
local SHOWN = 12

--- The end of a message about an unknown word: "; did you mean 'x'?" or "; known are: a, b, c", sorted and
--- cut.
---@param word any
---@param words string[]|table<string, any>  a list, or a table whose keys are the words
---@return string
function M.hint(word, words)
  local list = #words > 0 and words or sorted_keys(words)
  local near = type(word) == "string" and M.nearest(word, list)
  if near then return ("; did you mean '%s'?"):format(near) end
  local texts, had = {}, {}
  for _, known in ipairs(list) do
    local text = tostring(known)
    if not had[text] then texts[#texts + 1] = text end
    had[text] = true
  end
  table.sort(texts)
  local more = #texts - SHOWN
  if more <= 1 then return "; known are: " .. table.concat(texts, ", ") end
  return ("; known are: %s and %d more"):format(table.concat(texts, ", ", 1, SHOWN), more)
end

return M
