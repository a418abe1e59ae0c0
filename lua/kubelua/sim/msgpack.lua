-- msgpack.lua - reads and writes MessagePack (https://msgpack.org) as Lua values, as far as SimKube's traces
-- need it. Extension types are rejected.
--
-- A map whose keys are texts is a table; any other map is a list of { key, value }, which M.map writes. Null
-- is core.null; an empty list is core.array {}.

local core = require "kubelua.core"

local M = {}

-- Deeper than any object that an API server accepts.
local DEPTH_MAX = 200

-- ---------------------------------------------------------------- read

local function fail(r, why) error(("byte %d: %s"):format(r.at, why), 0) end

local function take(r, format, size)
  if r.at + size - 1 > #r.text then fail(r, "the file ends too early") end
  local v = string.unpack(format, r.text, r.at)
  r.at = r.at + size
  return v
end

local function bytes(r, n)
  if r.at + n - 1 > #r.text then fail(r, "the file ends too early") end
  r.at = r.at + n
  return r.text:sub(r.at - n, r.at - 1)
end

local read

-- Each item takes at least a byte, so a list cannot be longer than the rest of the file.
local function deeper(r, n, depth)
  if n > #r.text - r.at + 1 then fail(r, "the file ends too early") end
  if depth >= DEPTH_MAX then fail(r, ("values are nested more than %d deep"):format(DEPTH_MAX)) end
end

local function list(r, n, depth)
  deeper(r, n, depth)
  local out = {}
  for k = 1, n do out[k] = read(r, depth + 1) end
  return core.array(out)
end

local function map(r, n, depth)
  deeper(r, n, depth)
  local named, pairs_of, all = {}, {}, true
  for k = 1, n do
    local name = read(r, depth + 1)
    pairs_of[k] = { name, read(r, depth + 1) }
    all = all and type(name) == "string"
  end
  if not all then return pairs_of end
  for _, p in ipairs(pairs_of) do named[p[1]] = p[2] end
  return core.object(named)
end

-- By the first byte, from 0xc0 on.
local OF_BYTE = {
  [0xc0] = function() return core.null end,
  [0xc2] = function() return false end,
  [0xc3] = function() return true end,
  [0xc4] = function(r) return bytes(r, take(r, "B", 1)) end,
  [0xc5] = function(r) return bytes(r, take(r, ">I2", 2)) end,
  [0xc6] = function(r) return bytes(r, take(r, ">I4", 4)) end,
  [0xca] = function(r) return take(r, ">f", 4) end,
  [0xcb] = function(r) return take(r, ">d", 8) end,
  [0xcc] = function(r) return take(r, "B", 1) end,
  [0xcd] = function(r) return take(r, ">I2", 2) end,
  [0xce] = function(r) return take(r, ">I4", 4) end,
  [0xcf] = function(r) return take(r, ">i8", 8) end, -- a hash may look negative
  [0xd0] = function(r) return take(r, "b", 1) end,
  [0xd1] = function(r) return take(r, ">i2", 2) end,
  [0xd2] = function(r) return take(r, ">i4", 4) end,
  [0xd3] = function(r) return take(r, ">i8", 8) end,
  [0xd9] = function(r) return bytes(r, take(r, "B", 1)) end,
  [0xda] = function(r) return bytes(r, take(r, ">I2", 2)) end,
  [0xdb] = function(r) return bytes(r, take(r, ">I4", 4)) end,
  [0xdc] = function(r, depth) return list(r, take(r, ">I2", 2), depth) end,
  [0xdd] = function(r, depth) return list(r, take(r, ">I4", 4), depth) end,
  [0xde] = function(r, depth) return map(r, take(r, ">I2", 2), depth) end,
  [0xdf] = function(r, depth) return map(r, take(r, ">I4", 4), depth) end,
}

function read(r, depth)
  local b = take(r, "B", 1)
  if b < 0x80 then return b end
  if b < 0x90 then return map(r, b & 0x0f, depth) end
  if b < 0xa0 then return list(r, b & 0x0f, depth) end
  if b < 0xc0 then return bytes(r, b & 0x1f) end
  if b >= 0xe0 then return b - 0x100 end
  local fn = OF_BYTE[b] or fail(r, ("unknown type 0x%02x"):format(b))
  return fn(r, depth)
end

--- The only value of a text; raises with the position.
---@param text string
function M.decode(text)
  local r = { text = text, at = 1 }
  local v = read(r, 0)
  if r.at <= #text then fail(r, "the value ends here, the file does not") end
  return v
end

-- ---------------------------------------------------------------- write

local MAP = {}

--- A map of { key, value } pairs, in that order.
---@param pairs_of table[]
function M.map(pairs_of) return setmetatable(pairs_of, MAP) end

local write

-- n as a head: in the first byte itself up to `small`, else after one of the bytes for 1 (or none), 2 and 4.
local function head(n, first, small, one, two, four)
  if n < small then return string.pack("B", first | n) end
  if one and n < 0x100 then return string.pack("BB", one, n) end
  if n < 0x10000 then return string.pack(">BI2", two, n) end
  return string.pack(">BI4", four, n)
end

local function write_number(out, x)
  local n = math.tointeger(x)
  if not n then
    out[#out + 1] = string.pack(">Bd", 0xcb, x)
  elseif n >= 0 then
    out[#out + 1] = n <= 0xffffffff and head(n, 0, 0x80, 0xcc, 0xcd, 0xce) or string.pack(">Bi8", 0xcf, n)
  else
    out[#out + 1] = n >= -32 and string.pack("b", n) or string.pack(">Bi8", 0xd3, n)
  end
end

local function write_table(out, v)
  if getmetatable(v) == MAP then
    out[#out + 1] = head(#v, 0x80, 16, nil, 0xde, 0xdf)
    for _, p in ipairs(v) do
      write(out, p[1])
      write(out, p[2])
    end
    return
  end
  local names = {}
  for name in pairs(v) do names[#names + 1] = name end
  if #v > 0 or #names == 0 and core.encode(v) == "[]" then
    out[#out + 1] = head(#v, 0x90, 16, nil, 0xdc, 0xdd)
    for _, x in ipairs(v) do write(out, x) end
    return
  end
  table.sort(names)
  out[#out + 1] = head(#names, 0x80, 16, nil, 0xde, 0xdf)
  for _, name in ipairs(names) do
    write(out, name)
    write(out, v[name])
  end
end

function write(out, v)
  local kind = type(v)
  if v == core.null then
    out[#out + 1] = "\xc0"
  elseif kind == "boolean" then
    out[#out + 1] = v and "\xc3" or "\xc2"
  elseif kind == "number" then
    write_number(out, v)
  elseif kind == "string" then
    out[#out + 1] = head(#v, 0xa0, 32, 0xd9, 0xda, 0xdb)
    out[#out + 1] = v
  else
    write_table(out, v)
  end
end

--- A value as MessagePack; the names of tables are in order, so that equal values are equal texts.
function M.encode(v)
  local out = {}
  write(out, v)
  return table.concat(out)
end

return M
