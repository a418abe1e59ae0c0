-- csv.lua - the files of published traces: lines of words separated by commas, without quotes.

local core = require "kubelua.core"

local M = {}

local function files_of(dir, word)
  local found, files = {}, core.tree(dir, ".csv")
  if not files then error(("--trace: cannot read %s"):format(dir), 0) end
  for _, path in ipairs(files) do
    if path:match("[^/]*$"):find(word, 1, true) then found[#found + 1] = path end
  end
  return found
end

--- The CSV files of a directory whose names contain a word; raises if there is none.
---@return string[]
function M.files(dir, word)
  local found = files_of(dir, word)
  if #found == 0 then error(("--trace: %s has no file *%s*.csv"):format(dir, word), 0) end
  return found
end

--- The only such file; raises if there is none, or more than one.
function M.find(dir, word)
  local found = files_of(dir, word)
  if #found ~= 1 then
    error(("--trace: %s must have one file *%s*.csv, it has %d"):format(dir, word, #found), 0)
  end
  return found[1]
end

-- The largest number that a trace may have: milli-cores, MiB, seconds. Products of it still fit an integer.
local MOST = 1e9

local function split(line)
  local out = {}
  for word in (line:gsub("\r$", "") .. ","):gmatch "([^,]*)," do out[#out + 1] = word end
  return out
end

--- An iterator over the lines of a file as lists of words; row.fail(why) raises with file and line,
--- row.text(k, what) and row.number(k, what) read the k-th word; numbers are from 0 to 1e9.
function M.rows(path)
  local file, why = io.open(path, "rb")
  if not file then error("cannot read " .. why, 0) end
  local n = 0
  return function()
    local line = file:read "l"
    n = n + 1
    if not line then return file:close() and nil end
    local row, here = split(line), n
    function row.fail(text) error(("%s:%d: %s"):format(path, here, text), 0) end
    function row.text(k, what) return row[k] or row.fail(("%s is missing"):format(what)) end
    function row.number(k, what)
      local x = tonumber(row[k]) or row.fail(("%s is not a number: %q"):format(what, row[k] or ""))
      if x < 0 or x > MOST then row.fail(("%s must be from 0 to %.0f: %q"):format(what, MOST, row[k])) end
      return x
    end
    return row
  end
end

--- The same with words by the column names of the first line; the wanted columns must exist.
--- row.number(name) reads one. If the first line has none of the names of `order` but as many words, there is
--- no header, and the columns are in that order.
---@param path string
---@param wanted string[]
---@param order string[]?
function M.named(path, wanted, order)
  local next_row, at = M.rows(path), {}
  local head = next_row() or { fail = function(text) error(("%s:1: %s"):format(path, text), 0) end }
  local first
  for i, name in ipairs(head) do at[name] = i end
  if order and #head == #order and not at[order[1]] then
    first, at = head, {}
    for i, name in ipairs(order) do at[name] = i end
  end
  for _, name in ipairs(wanted) do
    if not at[name] then head.fail(("the column %q is missing"):format(name)) end
  end
  return function()
    local words = first or next_row()
    first = nil
    if not words then return nil end
    local row = { fail = words.fail }
    for _, name in ipairs(wanted) do row[name] = words[at[name]] or "" end
    function row.number(name) return words.number(at[name], name) end
    return row
  end
end

--- A name that is valid in Kubernetes.
function M.name(text) return (text:lower():gsub("[^%w.-]", "-"):gsub("^[.-]+", ""):gsub("[.-]+$", "")) end

return M
