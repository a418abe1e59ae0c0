-- printer.lua - the server's tables on a terminal: columns, widths, one line per row.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"

local M = {}

local GAP = "   "

-- ---------------------------------------------------------------- from the server

--- The Table of a kind: its columns, its rows { cells, object } and the version of the list.
function M.fetch(c, kind, opts)
  local t = c:table(kind, opts)
  local columns, rows = {}, {}
  for i, column in ipairs(t.columns) do
    columns[i] = { name = column.name, priority = column("priority") or 0 }
  end
  for i, row in ipairs(t.rows) do rows[i] = { cells = row.cells, object = row.object } end
  return { columns = columns, rows = rows, version = t.resourceVersion }
end

local function cell(value)
  if value == nil or value == core.null then return "<none>" end
  if type(value) == "string" then return (value:gsub("[\r\n].*", "...")) end
  if math.type(value) == "float" and value == math.floor(value) then return ("%d"):format(value) end
  if core.is_view(value) then return core.encode(value) end
  return tostring(value)
end

local function labels(object)
  local out = {}
  for name, value in pairs(object("metadata.labels") or {}) do out[#out + 1] = name .. "=" .. value end
  table.sort(out)
  return #out > 0 and table.concat(out, ",") or "<none>"
end

--- Columns and lines of text for rows. how: wide, namespaces, labels, prefix(name).
function M.layout(columns, rows, how)
  local header, at = {}, {}
  if how.namespaces then header[1] = { name = "NAMESPACE" } end
  for i, column in ipairs(columns or {}) do
    if column.priority == 0 or how.wide then
      header[#header + 1] = { name = column.name:upper() }
      at[#at + 1] = i
    end
  end
  if how.labels then header[#header + 1] = { name = "LABELS" } end
  local lines = {}
  for n, row in ipairs(rows) do
    local line = {}
    if how.namespaces then line[1] = row.object("metadata.namespace") or "" end
    for _, i in ipairs(at) do
      local text = cell(row.cells[i])
      if how.prefix and columns[i].name == "Name" then text = how.prefix(text) end
      line[#line + 1] = text
    end
    if how.labels then line[#line + 1] = labels(row.object) end
    lines[n] = line
  end
  return header, lines
end

-- ---------------------------------------------------------------- on the screen

-- The cells come from the cluster: none of them may move the cursor.
local function safe(line)
  for i, text in ipairs(line) do line[i] = common.cell(text) end
  return line
end

local function width(text) return utf8.len(text) or #text end

local function widen(widths, line)
  for i, text in ipairs(line) do widths[i] = math.max(widths[i] or 0, width(text)) end
end

local function write(widths, line)
  local out = {}
  for i, text in ipairs(line) do
    out[#out + 1] = text
    if i < #line then out[#out + 1] = (" "):rep(widths[i] - width(text)) .. GAP end
  end
  io.write(table.concat(out), "\n")
end

local function names(header)
  local out = {}
  for i, column in ipairs(header) do out[i] = column.name end
  return out
end

--- Prints lines below their header, aligned. how: headers
function M.print(header, lines, how)
  local widths = {}
  if how.headers then widen(widths, names(header)) end
  for _, line in ipairs(lines) do widen(widths, safe(line)) end
  if how.headers then write(widths, names(header)) end
  for _, line in ipairs(lines) do write(widths, line) end
end

local Stream = {}
Stream.__index = Stream

--- Prints lines as they come: columns only ever widen.
function M.stream(headers) return setmetatable({ widths = {}, headers = headers }, Stream) end

function Stream:rows(header, lines)
  if self.headers and #lines > 0 then widen(self.widths, names(header)) end
  for _, line in ipairs(lines) do widen(self.widths, safe(line)) end
  if self.headers and #lines > 0 then
    write(self.widths, names(header))
    self.headers = false
  end
  for _, line in ipairs(lines) do write(self.widths, line) end
  io.stdout:flush()
end

--- Sorts by value(item); items without one come first, numbers before texts.
function M.sort(list, value)
  local keyed = {}
  for i, item in ipairs(list) do
    local v = value(item)
    if core.is_view(v) then v = core.encode(v) elseif type(v) == "boolean" then v = tostring(v) end
    keyed[i] = { item = item, value = v, rank = v == nil and 0 or type(v) == "number" and 1 or 2, at = i }
  end
  table.sort(keyed, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    if a.value ~= b.value then return a.value < b.value end
    return a.at < b.at
  end)
  for i, k in ipairs(keyed) do list[i] = k.item end
end

return M
