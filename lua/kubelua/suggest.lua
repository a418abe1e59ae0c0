-- suggest.lua - "did you mean": the nearest of the words that would have been right.

local M = {}

-- A word this far away, relative to its length, is no slip of the fingers any more.
local NEAR = 0.4

-- Letters left out, put in, mistaken, or two of them swapped.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local this = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      this[j] = math.min(last[j] + 1, this[j - 1] + 1, last[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        this[j] = math.min(this[j], before[j - 2] + 1)
      end
    end
    before, last = last, this
  end
  return last[#b]
end

--- The nearest word, or nil when none is near. Case and dashes are forgiven.
---@param word string
---@param words string[]
---@return string?
function M.nearest(word, words)
  local function plain(s) return (s:lower():gsub("[-_]", "")) end
  local best, least
  for _, candidate in ipairs(words) do
    local d = distance(plain(word), plain(candidate))
    if not least or d < least then best, least = candidate, d end
  end
  if best and least <= math.max(1, math.floor(#word * NEAR)) then return best end
end

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
