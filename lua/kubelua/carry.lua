-- carry.lua - a controller that a program made, as the text of a script: kube.manager runs scripts, in states
-- of their own on threads of their own, and functions of one state cannot run in another.
--
-- It carries what its functions use, as it is at that time: texts, numbers, booleans, tables of these, other
-- functions and modules. Functions are copied out of their source. Those in the file of `reconcile` keep
-- their lines, so that messages name them.

local core = require "kubelua.core"
local plain = require "kubelua.plain"
local tokens = require "kubelua.reader.tokens"

local M = {}

local LOCALS_MAX = 150                 -- Lua has 200 in a function

---@class (private) kubelua.Carried
---@field private what string          of which controller, for messages
---@field private locals table[]       { name, id, value or fn }, in the order in which they were met
---@field private functions table<function, string>   their names in the text
local Carried = {}
Carried.__index = Carried

function Carried:fail(fmt, ...)
  core.blame(("kube.manager: %s cannot be copied into worker states: %s"):format(self.what, fmt:format(...)))
end

-- ---------------------------------------------------------------- the text of a function

local OPEN = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }
local CLOSE = { ["end"] = true, ["until"] = true }

local function source_of(self, info, where)
  if info.source:sub(1, 1) ~= "@" then return info.source end
  local file = io.open(info.source:sub(2), "rb")
  if not file then self:fail("%s is in %s, which cannot be read any more", where, info.source:sub(2)) end
  local text = file:read "a"
  file:close()
  return text
end

-- The `end` of what begins at list[i].
local function end_of(list, i)
  local depth = 0
  for at = i, #list do
    if OPEN[list[at].type] then depth = depth + 1 end
    if CLOSE[list[at].type] then depth = depth - 1 end
    if depth == 0 then return list[at] end
  end
end

-- The text of a function, from its parameters on, and its line. Two functions that begin and end on the same
-- lines cannot be told apart.
local function text_of(self, fn, where)
  local info = debug.getinfo(fn, "S")
  if info.what == "C" then self:fail("%s is a function of C", where) end
  local text = source_of(self, info, where)
  local found
  local list = tokens.of(text) or {}
  for i, token in ipairs(list) do
    local last = token.type == "function" and token.line == info.linedefined and end_of(list, i)
    if last and last.line == info.lastlinedefined then
      if found then
        self:fail("%s: two functions start on line %d of %s; give each its own line", where,
          info.linedefined, info.short_src)
      end
      local at, own = i + 1, false
      while list[at].type ~= "(" do
        own, at = own or list[at].type == ":", at + 1
      end
      found = text:sub(list[at].from, last.from + 2)
      if own then found = found:gsub("^%((%s*)", list[at + 1].type == ")" and "(self%1" or "(self, %1") end
    end
  end
  if not found then
    self:fail("%s is not where it was, in %s:%d; has the file changed?", where, info.short_src,
      info.linedefined)
  end
  return "function" .. found, info
end

-- ---------------------------------------------------------------- values

local function literal(x)
  if type(x) == "string" then return (("%q"):format(x):gsub("\\\n", "\\n")) end
  if type(x) == "number" then return ("%q"):format(x) end
  return tostring(x)
end

local LIBRARIES = { "string", "table", "math", "utf8", "os", "coroutine" }

-- The expression by which every state knows a value; nil when it has none.
local function known(x)
  for name, v in next, _G do
    if rawequal(v, x) then return name end
  end
  for name, module in next, package.loaded do
    if rawequal(module, x) then return "require " .. literal(name) end
  end
  for _, library in ipairs(LIBRARIES) do
    for name, v in next, _G[library] do
      if rawequal(v, x) then return library .. "." .. name end
    end
  end
  for name, v in next, package.loaded.kubelua do
    if rawequal(v, x) then return ('require "kubelua".%s'):format(name) end
  end
end

-- The text of a value. `path` are the keys under which it is in what `where` names.
function Carried:expression(x, where, path, seen)
  local kind = type(x)
  if kind == "nil" or kind == "boolean" or kind == "number" or kind == "string" then return literal(x) end
  local name = known(x)
  if name then return name end
  local at = path == "" and where or ("%s (%s)"):format(where, path)
  if kind == "function" then return self:fn(x, at) end
  if kind ~= "table" or getmetatable(x) ~= nil then
    self:fail("%s is %s; only strings, numbers, booleans, tables of them, functions and modules can be \z
      copied",
      at, kind == "table" and "a table with a metatable" or "a " .. kind)
  end
  if seen[x] then self:fail("%s is a table inside itself", at) end
  seen[x] = true
  local parts = {}
  for _, key in ipairs(plain.sorted(x)) do
    local below = path == "" and tostring(key) or path .. "." .. tostring(key)
    parts[#parts + 1] = ("[%s] = %s"):format(literal(key), self:expression(x[key], where, below, seen))
  end
  seen[x] = nil
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- What a function uses becomes a local of the text, under its own name: functions that share it share that
-- local. Their globals are those of the state.
function Carried:upvalues(fn, where)
  for i = 1, 255 do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    local id, there = debug.upvalueid(fn, i), self.by_name[name]
    if there and there.id ~= id then
      self:fail("its functions use two locals named %q; rename one of them", name)
    elseif not there and name ~= "_ENV" then
      there = { name = name, id = id }
      self.by_name[name] = there
      self.locals[#self.locals + 1] = there
      there.value = self:expression(value, ("the local %q, which %s uses,"):format(name, where), "", {})
    end
  end
end

function Carried:fn(fn, where)
  local name = self.functions[fn]
  if name then return name end
  self.n = self.n + 1
  name = ("_carried_%d"):format(self.n)
  self.functions[fn] = name
  local text, info = text_of(self, fn, where)
  self.texts[#self.texts + 1] = { name = name, text = text, line = info.linedefined, source = info.source }
  self:upvalues(fn, where)
  return name
end

-- ---------------------------------------------------------------- the whole

-- Functions at the lines where they are in `source`; the others behind them.
local function laid_out(self, source)
  table.sort(self.texts, function(a, b)
    local x, y = a.source == source, b.source == source
    if x ~= y then return x end
    return a.line < b.line
  end)
  local out, line = {}, 1
  for _, t in ipairs(self.texts) do
    if t.source == source and t.line > line then
      out[#out + 1] = ("\n"):rep(t.line - line)
      line = t.line
    end
    local text = ("%s = %s "):format(t.name, t.text)
    line = line + select(2, text:gsub("\n", ""))
    out[#out + 1] = text
  end
  return table.concat(out)
end

--- The script of a controller: its text, and the path that messages name and beside which modules are.
---@param name string
---@param spec table            what kube.controller was given
---@param resource string|string[]
---@return {path: string, text: string}
function M.script(name, spec, resource)
  local self = setmetatable({ what = ("controller %q"):format(name), locals = {}, by_name = {},
    functions = {}, texts = {}, n = 0 }, Carried)
  local parts, names, values = {}, { "_" }, {}
  for _, key in ipairs(plain.sorted(spec)) do
    local value = key == "resource" and resource or spec[key]
    parts[#parts + 1] = ("%s = %s"):format(key, self:expression(value, key, "", {}))
  end
  for _, l in ipairs(self.locals) do
    names[#names + 1] = l.name
    values[#values + 1] = ("%s = %s; "):format(l.name, l.value)
  end
  for _, t in ipairs(self.texts) do names[#names + 1] = t.name end
  if #names > LOCALS_MAX then
    self:fail("its functions use %d locals and functions, %d at most", #names, LOCALS_MAX)
  end
  local source = debug.getinfo(spec.reconcile, "S").source
  local text = ("local %s; %s %s return require 'kubelua'.controller { %s }\n"):format(
    table.concat(names, ", "), laid_out(self, source), table.concat(values), table.concat(parts, ", "))
  return { path = source:sub(1, 1) == "@" and source:sub(2) or name .. ".lua", text = text }
end

return M
