-- trace_files.lua - what trace formats share beside CSV: reading whole files, sorting samples. Samples are
-- one flat list { second, number, second, number ... }: a table for each would take three times the memory.

local M = {}

--- The content of a file; nil for a directory. Raises if it cannot be opened.
---@param path string
---@return string?
function M.content(path)
  local file, why = io.open(path, "rb")
  if not file then error("cannot read " .. why, 0) end
  local text = file:read "a"
  file:close()
  return text
end

local function is_sorted(list)
  for k = 3, #list, 2 do
    local before, at = list[k - 2], list[k]
    if before > at or before == at and list[k - 1] > list[k + 1] then return false end
  end
  return true
end

--- Sorts samples by time. Equal times have the same order whatever the order of the files.
---@param list number[]
function M.sort(list)
  if is_sorted(list) then return end
  local places, old = {}, table.move(list, 1, #list, 1, {})
  for k = 1, #list, 2 do places[#places + 1] = k end
  table.sort(places, function(a, b)
    return old[a] < old[b] or old[a] == old[b] and old[a + 1] < old[b + 1]
  end)
  for i, k in ipairs(places) do list[2 * i - 1], list[2 * i] = old[k], old[k + 1] end
end

return M
