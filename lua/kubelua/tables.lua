-- tables.lua - small things about tables and views of any kind: compare, look into, lay over each other,
-- hash, fill into a text; and the times of a schedule.

local core = require "kubelua.core"

-- Whether one can look into it: times and quantities are one value each, and null is none.
local has_parts = core.has_parts

local M = {}

-- A view has the names of null fields, and nil as their values.
local function is_there(x) return x ~= nil and x ~= core.null end

local function same_parts(a, b)
  for k, v in pairs(a) do
    if is_there(v) and not M.equal(v, b[k]) then return false end
  end
  return true
end

local function covers(a, b)
  for k, v in pairs(b) do
    if is_there(v) and not is_there(a[k]) then return false end
  end
  return true
end

--- Whether two values are the same all the way down, views and tables alike. A field that is null counts as
--- absent.
---@param a any
---@param b any
---@return boolean
function M.equal(a, b)
  if a == b then return true end
  return has_parts(a) and has_parts(b) and same_parts(a, b) and covers(a, b)
end

local function is_list(t) return #t > 0 or next(t) == nil and core.encode(t) == "[]" end

local function lay(onto, over)
  for k, v in pairs(over) do
    local mine = onto[k]
    if v == core.null then
      onto[k] = nil
    elseif type(v) == "table" and type(mine) == "table" and not is_list(v) and not is_list(mine) then
      lay(mine, v)
    else
      onto[k] = v
    end
  end
end

--- A new table with the fields of all arguments; later ones override earlier ones: objects field by field,
--- lists and scalars whole. kube.null removes a field; nil is skipped.
---@param ... table|kubelua.view|nil
---@return table
function M.merge(...)
  local out = {}
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if x ~= nil and not has_parts(x) then
      core.blame(("kube.merge: argument %d must be a table or a view, got %s"):format(i, type(x)))
    end
    if x ~= nil then lay(out, core.copy(x)) end
  end
  return out
end

-- Letters and digits that make no words, as Kubernetes has them in names.
local LETTERS = "bcdfghjklmnpqrstvwxz2456789"
local FNV_BASIS, FNV_PRIME = -3750763034362895579, 1099511628211
local HASH_LENGTH = 10
-- Of the value as JSON: more than an object of the API server may be, and 0.5 s.
local HASH_MOST = 4 * 1024 * 1024

--- A hash for use in names: ten letters and digits, the same for equal values on every machine and forever.
--- Other values almost certainly have another one. Not for secrets.
---@param x any
---@return string
function M.hash(x)
  local hash = FNV_BASIS
  local text = core.encode(core.copy(x)) -- a copy: the names of a view are in an order of its own
  if #text > HASH_MOST then
    core.blame(("kube.hash: a value may have at most 4 MiB as JSON, got %d bytes"):format(#text))
  end
  for i = 1, #text do hash = (hash ~ text:byte(i)) * FNV_PRIME end
  hash = (hash ~ hash >> 32) * FNV_PRIME
  hash = (hash ~ hash >> 29) >> 1 -- 63 bits: ten letters take 48
  local out = {}
  for i = 1, HASH_LENGTH do
    local n = hash % #LETTERS
    out[i], hash = LETTERS:sub(n + 1, n + 1), hash // #LETTERS
  end
  return table.concat(out)
end

local function at_path(what, values, path)
  local x = values
  for step in path:gmatch "[^.]+" do
    x = core.dig(x, math.tointeger(tonumber(step)) or step)
  end
  if not is_there(x) then return "" end
  if has_parts(x) then return core.encode(x) end
  if type(x) == "function" then core.blame(("%s: {{ %s }} is a function"):format(what, path)) end
  return tostring(x)
end

--- The text with each {{ a.b.1 }} replaced by the value at that path of `values`: empty if absent, JSON
--- for an object or a list.
---@param text string
---@param values table|kubelua.view
---@return string
function M.template(text, values)
  if type(text) ~= "string" then
    core.blame(("kube.template: the text must be a string, got %s"):format(type(text)))
  end
  if not has_parts(values) then
    core.blame(("kube.template: the values must be a table or a view, got %s"):format(type(values)))
  end
  local out, at = {}, 1
  while true do
    local from, to, path = text:find("{{%s*([^{}%s]+)%s*}}", at)
    local open = text:find("{{", at, true)
    if open and open ~= from then
      local _, line = text:sub(1, open):gsub("\n", "")
      core.blame(("kube.template: line %d: %q is no {{ path.to.a.value }}"):format(line + 1,
        text:sub(open, open + 20)))
    end
    if not from then break end
    out[#out + 1] = text:sub(at, from - 1)
    out[#out + 1] = at_path("kube.template", values, path)
    at = to + 1
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

---@class kubelua.Cron
---@field next fun(self: kubelua.Cron, after: kubelua.time|string|number): kubelua.time        after then
---@field previous fun(self: kubelua.Cron, before: kubelua.time|string|number): kubelua.time   before then

--- A schedule such as "30 3 * * mon-fri" or "@daily", in UTC, as in `cron` of a controller:
--- kube.cron("@hourly"):next(ctx:now()).
---@param schedule string
---@return kubelua.Cron
function M.cron(schedule)
  local problem = core.cron_problem(schedule)
  if problem then core.blame(("kube.cron: %s"):format(problem)) end
  local function at(when, is_next)
    return core.time(core.cron_time(schedule, core.time(when):unix(), is_next))
  end
  return {
    next = function(_, after) return at(after, true) end,
    previous = function(_, before) return at(before, false) end,
  }
end

return M
