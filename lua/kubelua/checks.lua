-- checks.lua - checks shared by the parts of a spec: a mistake names the controller, the key and the way out.
--
-- `self` is the controller under construction (controller.lua); every function raises at the line of the
-- script.

local core = require "kubelua.core"
local kinds = require "kubelua.kinds"
local suggest = require "kubelua.suggest"

local M = {}

-- ---------------------------------------------------------------- what scripts hold and cannot open

local behind = setmetatable({}, { __mode = "k" })

-- A standalone program (stock Lua, a test) is trusted, and may read sealed values; its core has a cluster
-- client.
local trusted = core.connect ~= nil

--- A sealed value of that name for a script to hold and pass back: it is empty, and only the library can get
--- its content. A standalone program may read it, so that its tests can call a controller's functions.
---@param shown? string[]    fields that can be read all the same
---@param text? string       of tostring
function M.seal(name, self, shown, text)
  local readable = {}
  for _, key in ipairs(shown or {}) do readable[key] = true end
  local sealed = setmetatable({}, {
    __name = name,
    __metatable = name,
    __index = function(_, key)
      if readable[key] or trusted then return self[key] end
      core.blame(("%s: %s cannot be read from the script"):format(name, tostring(key)))
    end,
    __newindex = function(_, key)
      core.blame(("%s: %s cannot be set afterwards: put it into the table of the definition"):format(name,
        tostring(key)))
    end,
    __tostring = function() return text or name end,
  })
  behind[sealed] = { name = name, self = self }
  return sealed
end

--- The content of a sealed value of that name, or nil when x is not one.
function M.opened(name, x)
  local b = x ~= nil and behind[x] or nil
  return b and b.name == name and b.self or nil
end

-- ----------------------------------------------------------------

local NOTHING = core.value(core.object {}, "nothing")

function M.fail(self, fmt, ...)
  core.blame(("%s %q: "):format(rawget(self, "what") or "controller", tostring(self.name)) .. fmt:format(...))
end
local fail = M.fail

--- The keys of t are among `known` (a list or a set), list items aside where `items`.
function M.keys(self, where, t, known, items)
  local set = {}
  for key, word in pairs(known) do set[type(key) == "string" and key or word] = true end
  for key in pairs(t) do
    if not set[key] and not (items and math.type(key) == "integer") then
      fail(self, "%s: unknown key '%s'%s", where, tostring(key), suggest.hint(key, set))
    end
  end
end

--- The kind in full of one of its names.
function M.kind(self, where, word)
  if type(word) ~= "string" then
    fail(self, "%s must be a kind such as \"v1/Pod\", got %s", where, type(word))
  end
  local kind, why = kinds.full(word)
  if not kind then fail(self, "%s: %s", where, why) end
  return kind
end

--- A table by kinds, with the kinds in full; list items stay where they are.
function M.by_kind(self, where, t)
  local out, words = {}, {}
  for _, key in ipairs(M.sorted(t)) do
    local kind = math.type(key) == "integer" and key or M.kind(self, where, key)
    if out[kind] ~= nil then
      fail(self, "%s: %q and %q are the same kind; merge them", where, words[kind], key)
    end
    out[kind], words[kind] = t[key], key
  end
  return out
end

--- The servers that ctx.http may reach, in the form of core/http/reach.h: a URL, a table { url, reads }, or a
--- list of these.
function M.http(self, x)
  if x == nil then return nil end
  if type(x) == "string" or type(x) == "table" and x.url ~= nil then x = { x } end
  if type(x) ~= "table" or #x == 0 then
    fail(self, "http must be a list of URLs such as { \"https://dns.example.com\" }, got %s",
      type(x) == "table" and "an empty one" or type(x))
  end
  M.keys(self, "http", x, {}, true)
  local out = {}
  for i, rule in ipairs(x) do
    local where = ("http[%d]"):format(i)
    if type(rule) == "string" then rule = { url = rule } end
    if type(rule) ~= "table" then
      fail(self, "%s must be a URL such as \"https://dns.example.com\", got %s", where, type(rule))
    end
    M.keys(self, where, rule, { "url", "reads" })
    local reads = type(rule.reads) == "string" and { rule.reads } or rule.reads or {}
    local why = type(rule.url) ~= "string" and "its url must be a string, got " .. type(rule.url)
      or rule.url:find " " and "a URL has no spaces" or core.http_rule_problem(rule.url)
    if why then fail(self, "%s: %s", where, why) end
    local words = { rule.url }
    for _, method in ipairs(type(reads) == "table" and reads or { false }) do
      if type(method) ~= "string" or not method:find "^[A-Z]+$" then
        fail(self, "%s.reads must be a list of methods such as { \"POST\" }", where)
      end
      words[#words + 1] = method
    end
    out[i] = table.concat(words, " ")
  end
  return out
end

--- A list of kinds, sorted and without repetitions; nil stays nil.
function M.kinds(self, where, list)
  if list == nil then return nil end
  if type(list) ~= "table" then fail(self, "%s must be a list of kinds, got %s", where, type(list)) end
  local seen, out = {}, {}
  for key, kind in pairs(list) do
    if math.type(key) ~= "integer" then
      fail(self, "%s must be a list: { \"v1/Pod\", ... }; '%s' is a name in it", where, tostring(key))
    end
    kind = M.kind(self, where, kind)
    if not seen[kind] then out[#out + 1] = kind end
    seen[kind] = true
  end
  table.sort(out)
  return out
end

function M.count(self, key, n, least, most)
  if n == nil then return nil end
  if math.type(n) ~= "integer" or n < least or n > most then
    fail(self, "%s must be a whole number from %d to %d, got %s", key, least, most, tostring(n))
  end
  return n
end

function M.duration(self, key, d)
  if d == nil then return nil end
  local ok, seconds = pcall(core.duration, d)
  if not ok or seconds <= 0 then
    fail(self, "%s must be a duration above zero such as \"30s\" or \"10m\", got %s", key, tostring(d))
  end
  return seconds + 0.0
end

function M.boolean(self, key, b)
  if b ~= nil and type(b) ~= "boolean" then fail(self, "%s must be true or false, got %s", key, type(b)) end
  return b
end

--- The message of an error without its place in our code.
function M.reason(e)
  return (tostring(e):gsub("^[^:]+:%d+: ", ""):gsub("^bad argument #%d+ to '.-' %((.*)%)$", "%1"))
end

--- Why a text is not a path, or nil. A view parses its paths.
function M.no_path(text)
  local ok, why = pcall(NOTHING, text)
  if not ok then return M.reason(why) end
end

--- The number under which every state of a generation knows a function of the script.
function M.number(self, fn)
  self.functions[#self.functions + 1] = fn
  return #self.functions
end

--- The keys of t in the order of their texts.
function M.sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

return M
