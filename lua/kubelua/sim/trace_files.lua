-- trace_files.lua - what trace formats share beside CSV: reading whole files, sorting samples.

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

--- Sorts { { time, number } ... }. Equal times have the same order whatever the order of the files.
---@param list { [1]: number, [2]: number }[]
function M.sort(list)
  table.sort(list, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
end

return M
