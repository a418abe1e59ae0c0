-- saying.lua - what scripts say to people: their formats, with their mistakes told at their line, and
-- raised values as text.

local core = require "kubelua.core"

local M = {}

-- Of a raised table so much is shown.
local SHOWN_MOST = 1000

-- ---------------------------------------------------------------- formats

local function nth(n) return ("argument %d of the format"):format(n) end

-- string.format's own words count the format as its first argument.
local function explain(why)
  local n, reason = why:match "bad argument #(%d+) to '[^']*format' %((.*)%)$"
  if not n then return (why:gsub("^[^\n]-:%d+: ", ""):gsub(" to '[^']*format'$", "")) end
  n = math.tointeger(n) - 1
  if reason == "no value" then return nth(n) .. " is missing" end
  return ("%s: %s"):format(nth(n), reason)
end

--- fmt:format(...), where views and quantities are their text. `what` is called so in what is said about a
--- mistake: "ctx.log:info".
---@param what string
---@return string
function M.format(what, fmt, ...)
  local n = select("#", ...)
  if n == 0 then return tostring(fmt) end
  if type(fmt) ~= "string" then
    core.blame(("%s: the format must be a string, got %s"):format(what, type(fmt)))
  end
  local args = { ... }
  for i = 1, n do
    if type(args[i]) == "userdata" then args[i] = tostring(args[i]) end
  end
  local ok, text = pcall(string.format, fmt, table.unpack(args, 1, n))
  if not ok then core.blame(("%s(%q): %s"):format(what, fmt, explain(text))) end
  return text
end

-- ---------------------------------------------------------------- raised values

-- Errors of the API are tables, too; their metatable is protected, and what getmetatable gives is its name.
local function says_itself(e)
  local meta = getmetatable(e)
  return type(e) ~= "table" or meta ~= nil and (type(meta) ~= "table" or meta.__tostring ~= nil)
end

-- What JSON has no word for is its text.
local function part(v)
  if type(v) == "table" and says_itself(v) or not pcall(core.value, v, "it") then return tostring(v) end
  return v
end

local function plain(t)
  local out = {}
  for key, v in pairs(t) do out[tostring(key)] = part(v) end
  return out
end

local function json(t)
  local ok, value = pcall(core.value, t, "it")
  if not ok then ok, value = pcall(core.value, plain(t), "it") end
  return ok and core.encode(value) or tostring(t)
end

--- What was raised, as text: a table that does not say itself as JSON, of which the beginning.
---@return string
function M.shown(e)
  if says_itself(e) then return tostring(e) end
  local text = json(e)
  if #text <= SHOWN_MOST then return text end
  return (text:sub(1, SHOWN_MOST):gsub("[\xC0-\xFF][\x80-\xBF]*$", "")) .. ("... (%d bytes)"):format(#text)
end

return M
