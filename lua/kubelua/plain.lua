-- plain.lua - any value as plain Lua, as text, and how two of them differ: what the assertions of `kubelua
-- test` compare and print.

local core = require "kubelua.core"

local M = {}

--- A text as JSON can have it: one that is not UTF-8 is spelled out. Other values as they are.
function M.readable(text)
  return type(text) == "string" and not utf8.len(text) and core.visible(text) or text
end

-- The content of a list or a view; any other value as it is.
local function of(value)
  if core.is_view(value) then return core.copy(value) end
  local meta = getmetatable(value)
  if type(value) == "userdata" and type(meta) == "string" and meta == "kubelua.list" then
    local out = {}
    for i, o in ipairs(value) do out[i] = core.copy(o) end
    return out
  end
  return value
end
M.of = of

--- Whether two values are the same all the way down. Views and tables of the same content are.
function M.same(a, b, seen)
  if rawequal(a, b) or a == b then return true end
  a, b = of(a), of(b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  seen = seen or {}
  if seen[a] == b then return true end
  seen[a] = b
  for k, v in next, a do
    if not M.same(v, rawget(b, k), seen) then return false end
  end
  for k in next, b do
    if rawget(a, k) == nil then return false end
  end
  return true
end

local function sorted(t)
  local keys = {}
  for k in next, t do keys[#keys + 1] = k end
  table.sort(keys, function(x, y)
    if type(x) == type(y) and (type(x) == "number" or type(x) == "string") then return x < y end
    return type(x) < type(y)
  end)
  return keys
end
M.sorted = sorted

local function step(key)
  if math.type(key) == "integer" then return ("[%d]"):format(key) end
  if type(key) == "string" and key:find "^[%a_][%w_]*$" then return "." .. key end
  return ("[%s]"):format(type(key) == "string" and ("%q"):format(key) or tostring(key))
end

local function write(value, out, indent, seen)
  value = of(value)
  if type(value) == "string" then
    out[#out + 1] = ("%q"):format(value):gsub("\\\n", "\\n")
  elseif type(value) ~= "table" then
    out[#out + 1] = tostring(value)
  elseif seen[value] then
    out[#out + 1] = "<the same table>"
  elseif next(value) == nil then
    out[#out + 1] = "{}"
  else
    seen[value] = true
    local inner = indent .. "  "
    out[#out + 1] = "{"
    for _, k in ipairs(sorted(value)) do
      local name = math.type(k) == "integer" and k >= 1 and k <= #value and "" or
        (type(k) == "string" and k:find "^[%a_][%w_]*$" and k
          or ("[%s]"):format(type(k) == "string" and ("%q"):format(k) or tostring(k))) .. " = "
      out[#out + 1] = "\n" .. inner .. name
      write(value[k], out, inner, seen)
      out[#out + 1] = ","
    end
    out[#out + 1] = "\n" .. indent .. "}"
    seen[value] = nil
  end
end

local SHORT = 60
--- A value as a text that Lua would nearly read; small tables in one line.
---@return string
function M.text(value)
  local out = {}
  write(value, out, "", {})
  local long = table.concat(out)
  local short = long:gsub(",?\n%s*}", " }"):gsub("\n%s*", " ")
  return #short <= SHORT and short or long
end

local function differences(expected, got, path, out, seen)
  if M.same(expected, got) then return end
  expected, got = of(expected), of(got)
  if type(expected) ~= "table" or type(got) ~= "table" or seen[expected] then
    out[#out + 1] = ("%s: expected %s, got %s"):format(path == "" and "value" or path:gsub("^%.", ""),
      expected == nil and "nothing" or M.text(expected), got == nil and "nothing" or M.text(got))
    return
  end
  seen[expected] = true
  local keys = {}
  for k in next, expected do keys[k] = true end
  for k in next, got do keys[k] = true end
  for _, k in ipairs(sorted(keys)) do differences(expected[k], got[k], path .. step(k), out, seen) end
end

local LINES = 20
--- Where two values differ, one line for each place; the first ones of many.
---@return string
function M.diff(expected, got)
  local out = {}
  differences(expected, got, "", out, {})
  local more = #out - LINES
  if more > 0 then
    out = table.move(out, 1, LINES, 1, {})
    out[#out + 1] = ("... and %d more places"):format(more)
  end
  return table.concat(out, "\n")
end

return M
