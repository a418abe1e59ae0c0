-- cpus.lua - sets of processors, { [id] = true }, and their text, as Linux writes CPU lists: "0-3,8".

local fields = require "fields"

local M = {}

local MOST = 99999 -- a higher number of a processor is invalid

-- The set in a text, and its size; nil: the text is invalid. nil and "" are the empty set.
function M.parse(text)
  local set, n = {}, 0
  if text == nil or text == "" then return set, n end
  if type(text) ~= "string" then return nil end
  for part in (text .. ","):gmatch "([^,]*)," do
    local from, to = part:match "^(%d+)%-(%d+)$"
    if not from then
      from = part:match "^%d+$"
      to = from
    end
    local first, last = math.tointeger(tonumber(from)), math.tointeger(tonumber(to))
    if not first or not last or last > MOST then return nil end
    for id = first, last do
      if not set[id] then set[id], n = true, n + 1 end
    end
  end
  return set, n
end

-- The ids of a set, ascending.
M.list = fields.names

-- The text of an ascending list.
function M.text(list)
  local parts, i = {}, 1
  while i <= #list do
    local j = i
    while list[j + 1] == list[j] + 1 do j = j + 1 end
    parts[#parts + 1] = i == j and tostring(list[i]) or list[i] .. "-" .. list[j]
    i = j + 1
  end
  return table.concat(parts, ",")
end

function M.size(set)
  local n = 0
  for _ in pairs(set) do n = n + 1 end
  return n
end

return M
