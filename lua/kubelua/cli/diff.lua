-- diff.lua - differences between two states of an object: paths, with old and new values.
--
-- Views compare by value and equal subtrees are one node, so only differing parts are visited. Elements of a
-- list are identified by a key field (name, type, key, ...), so that a new element at the front is one
-- difference.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local secrets = require "kubelua.cli.secrets"

local M = {}

local NAMES = { "name", "type", "key", "uid", "containerPort", "port", "ip" }

local is_list = common.is_list

local function is_empty(view)
  local loop, state, first = pairs(view)
  return loop(state, first) == nil
end

-- The elements of a list under their names, or nil where they have none or share one.
local function named(list, field)
  local out = {}
  for _, item in ipairs(list) do
    local name = core.is_view(item) and not is_list(item) and item[field]
    if not name or core.is_view(name) or out[name] then return nil end
    out[name] = item
  end
  return out
end

local function by_name(a, b)
  for _, field in ipairs(NAMES) do
    local x, y = named(a, field), named(b, field)
    if x and y then return x, y end
  end
end

local function step(path, key)
  if type(key) == "string" and key:find "^[%a_][%w_%-]*$" then
    return path == "" and key or path .. "." .. key
  end
  return ("%s[%s]"):format(path, tostring(key))
end

local compare

local function members(out, path, a, b, bracket)
  local keys, seen = {}, {}
  for _, side in ipairs { a, b } do
    for key in pairs(side) do
      if not seen[key] then
        seen[key] = true
        keys[#keys + 1] = key
      end
    end
  end
  table.sort(keys, function(x, y)
    if math.type(x) and math.type(y) then return x < y end
    return tostring(x) < tostring(y)
  end)
  for _, key in ipairs(keys) do
    compare(out, bracket and ("%s[%s]"):format(path, tostring(key)) or step(path, key), a[key], b[key])
  end
end

function compare(out, path, a, b)
  if a == b then return end
  if core.is_view(a) and core.is_view(b) and not is_empty(a) and not is_empty(b)
    and is_list(a) == is_list(b) then
    if not is_list(a) then return members(out, path, a, b) end
    local x, y = by_name(a, b)
    return members(out, path, x or a, y or b, true)
  end
  out[#out + 1] = { path = path, old = a, new = b }
end

-- Fields that change with every write and mean nothing themselves.
local QUIET = { ["metadata.resourceVersion"] = true, ["metadata.generation"] = true,
  ["metadata.managedFields"] = true }

local function is_quiet(path)
  if QUIET[path] then return true end
  return path:find("^metadata%.managedFields[.%[]") ~= nil
end

--- The differences from one object to another, sorted by path: { path, old, new }. Bookkeeping of the
--- server is left out.
---@param a kubelua.view
---@param b kubelua.view
---@return { path: string, old: any, new: any }[]
function M.diff(a, b)
  local all, out = {}, {}
  compare(all, "", a, b)
  for _, d in ipairs(all) do
    if not is_quiet(d.path) then out[#out + 1] = d end
  end
  return out
end

local LONGEST = 64    -- characters of a value

local function short(value)
  if value == nil then return "none" end
  local text = core.encode(value)
  local n = utf8.len(text)
  if n and n > LONGEST then text = text:sub(1, utf8.offset(text, LONGEST - 2) - 1) .. "..." end
  return text
end

--- The differences for a program, as M.diff; of a Secret's data it tells `secret` ("added", "removed",
--- "changed") in place of the values.
---@param a kubelua.view
---@param b kubelua.view
---@return { path: string, old: any, new: any, secret: string? }[]
function M.shown(a, b)
  local out = M.diff(a, b)
  for _, d in ipairs(out) do
    if secrets.at(b, d.path) then
      d.secret = d.old == nil and "added" or d.new == nil and "removed" or "changed"
      d.old, d.new = nil, nil
    end
  end
  return out
end

--- One of M.shown as text: "spec.replicas: 1 -> 2".
---@param d { path: string, old: any, new: any, secret: string? }
---@param say? fun(value: any): string short texts unless another function makes them
---@return string
function M.line(d, say)
  say = say or short
  if d.secret then return ("%s: (%s)"):format(d.path, d.secret) end
  return ("%s: %s -> %s"):format(d.path, say(d.old), say(d.new))
end

--- "spec.replicas: 1 -> 2, metadata.labels.a: none -> \"b\""
---@param a kubelua.view
---@param b kubelua.view
---@return string
function M.text(a, b)
  local parts = {}
  for i, d in ipairs(M.shown(a, b)) do parts[i] = M.line(d) end
  return table.concat(parts, ", ")
end

return M
