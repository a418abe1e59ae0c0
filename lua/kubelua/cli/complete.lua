-- complete.lua - completion at the cursor of `kubelua shell`: kinds and names inside quotes, fields of
-- values, words.
--
-- Typed code is never called: a path like a.b[1].c is looked up step by step.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"

local M = {}

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if",
  "in", "local", "nil", "not",
  "or", "repeat", "return", "then", "true", "until", "while" }

-- Names are fetched when they are needed; the limit of what is shown.
local NAMES_MAX = 200

-- Leaves out names of a server that would end the string at the cursor, or that a terminal would obey.
local function matching(words, prefix)
  local out, seen = {}, {}
  for _, word in ipairs(words) do
    if type(word) == "string" and word:sub(1, #prefix) == prefix and not seen[word]
      and not word:find "[%c\"'\\]" and core.visible(word) == word then
      seen[word] = true
      out[#out + 1] = word
    end
  end
  table.sort(out)
  return out
end

-- ---------------------------------------------------------------- kinds and names

local function kinds(shell)
  if shell.kinds then return shell.kinds end
  local words = {}
  for _, r in ipairs(shell.c:resources()) do
    words[#words + 1] = r.plural
    words[#words + 1] = r.kind
    words[#words + 1] = r.kind:match "[^/]+$"
  end
  shell.kinds = words
  return words
end

local function names(shell, kind)
  local r = shell.c:resource(kind)
  local words = {}
  for _, o in ipairs((shell.c:list(kind, { namespace = r.namespaced and shell.c:namespace() or nil,
    limit = NAMES_MAX }))) do
    words[#words + 1] = o.metadata.name
  end
  return words
end

-- The string that is open at the end of the text: where it begins, and what stands before it.
local function open_string(head)
  local quote, from
  local i = 1
  while i <= #head do
    local ch = head:sub(i, i)
    if quote then
      if ch == "\\" then i = i + 1 elseif ch == quote then quote = nil end
    elseif ch == '"' or ch == "'" then
      quote, from = ch, i
    end
    i = i + 1
  end
  if quote then return from + 1, head:sub(1, from - 1) end
end

local function in_string(shell, head, from, before)
  local prefix = head:sub(from)
  -- get("po", "na: the kind is the string before
  local kind = before:match "[%a_][%w_]*%s*%(%s*[\"']([^\"']+)[\"']%s*,%s*$"
  if kind then return matching(names(shell, kind), prefix), from end
  if before:find "[%a_][%w_]*%s*%(?%s*$" or before:find "%f[%w]kind%s*=%s*$" then
    return matching(kinds(shell), prefix), from
  end
  return {}, from
end

-- ---------------------------------------------------------------- fields

local function method_table(value)
  local meta = debug.getmetatable(value)
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

local function keys(value, methods)
  local out = {}
  local function add(t)
    for k, v in pairs(t) do
      if type(k) == "string" and k:find "^[%a_][%w_]*$" and (not methods or type(v) == "function")
        and k:sub(1, 2) ~= "__" then
        out[#out + 1] = k
      end
    end
  end
  if core.is_view(value) then
    if not methods and not common.is_list(value) then add(value) end
  elseif type(value) == "table" then
    add(value)
  end
  local more = method_table(value)
  if more then add(more) end
  return out
end

local function step(value, key)
  if core.is_view(value) then return value[key] end
  if type(value) == "table" or method_table(value) then
    local found = type(value) == "table" and rawget(value, key)
    if found ~= nil then return found end
    local index = method_table(value)
    if index then return index[key] end
  end
end

-- The value of a path such as a.b[1]["x y"].c
local function look(env, path)
  local first, rest = path:match "^([%a_][%w_]*)(.*)$"
  if not first then return nil end
  local value = rawget(env, first)
  if value == nil then value = _G[first] end
  while rest ~= "" and value ~= nil do
    local key, more = rest:match "^%.([%a_][%w_]*)(.*)$"
    if not key then
      key, more = rest:match "^%[(%d+)%](.*)$"
      key = key and math.tointeger(tonumber(key))
    end
    if not key then key, more = rest:match "^%[[\"']([^\"']*)[\"']%](.*)$" end
    if not key then return nil end
    value, rest = step(value, key), more
  end
  return value
end

-- kube loads most of its functions when they are first named.
local KUBE = { "connect", "recorder", "informers", "controller", "max", "min", "requests", "limits",
  "kind_of", "extract", "retry_on_conflict",
  "set_controller", "set_owner", "controller_of", "add_finalizer", "remove_finalizer", "has_finalizer",
  "base64_encode", "base64_decode", "certificate" }

--- The completions at the end of `head`, and the character from which they replace it.
---@return string[] candidates, integer from
function M.at(shell, head)
  local from, before = open_string(head)
  if from then return in_string(shell, head, from, before) end
  local path, dot, prefix = head:match "([%a_][%w_%.%[%]\"']*)([.:])([%w_]*)$"
  if path then
    local value = look(shell.globals, path)
    local words = value ~= nil and keys(value, dot == ":") or {}
    if path == "kube" then table.move(KUBE, 1, #KUBE, #words + 1, words) end
    return matching(words, prefix), #head - #prefix + 1
  end
  prefix = head:match "[%a_][%w_]*$" or ""
  local words = keys(shell.globals)
  for k in pairs(_G) do words[#words + 1] = k end
  table.move(KEYWORDS, 1, #KEYWORDS, #words + 1, words)
  if prefix == "" and head:find "%S" then return {}, #head + 1 end
  return matching(words, prefix), #head - #prefix + 1
end

return M
