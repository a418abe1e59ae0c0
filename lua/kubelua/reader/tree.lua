-- tree.lua - a Lua text as a tree, for what is said of scripts without running them (kubelua check, rbac).
--
-- A node has `t`, its kind, and `line`:
--   expressions  name { name, def }  string, number { value }  nil  true  false  vararg
--                function { params, body }  table { items = { { key, name, value } } }
--                index { obj, key }  call { fn, args }
--                method { obj, name, args }  binary { op, a, b }  unary { op, a }
--   statements   local { defs, values }  assign { targets, values }  return { values }  block { body }
--                loop { parts, body }  if { conditions, blocks }  do { parts }
-- A name's `def` is where it was declared: { name, line, value (of a local, where one name has one value),
-- fn and number (a parameter of that function) }; of globals it is nil. `t.def.set` is true where it is
-- assigned again. a.b is index with a string as key.

local tokens = require "kubelua.reader.tokens"

local M = {}

-- Lua itself compiles no deeper nesting.
local DEPTH_MAX = 240

local LEFT = {
  ["or"] = 1, ["and"] = 2, ["<"] = 3, [">"] = 3, ["<="] = 3, [">="] = 3, ["~="] = 3, ["=="] = 3, ["|"] = 4,
  ["~"] = 5, ["&"] = 6, ["<<"] = 7, [">>"] = 7, [".."] = 9, ["+"] = 10, ["-"] = 10, ["*"] = 11, ["/"] = 11,
  ["//"] = 11, ["%"] = 11, ["^"] = 14,
}
local RIGHT = setmetatable({ [".."] = 8, ["^"] = 13 }, { __index = LEFT })
local UNARY, UNARY_POWER = { ["not"] = true, ["-"] = true, ["#"] = true, ["~"] = true }, 12
local PLAIN = { ["nil"] = "nil", ["true"] = "true", ["false"] = "false", ["..."] = "vararg" }

local Parser = {}
Parser.__index = Parser

function Parser:peek(type) return self.list[self.at].type == type end

function Parser:take(type)
  local token = self.list[self.at]
  if type and token.type ~= type then error { line = token.line } end
  self.at = self.at + 1
  return token
end

function Parser:accept(type) return self:peek(type) and self:take() or nil end

function Parser:node(t, fields)
  fields.t, fields.line = t, fields.line or self.list[self.at].line
  return fields
end

function Parser:deeper()
  self.depth = self.depth + 1
  if self.depth > DEPTH_MAX then error { line = self.list[self.at].line } end
end

-- ---------------------------------------------------------------- scopes

function Parser:open() self.scope = { above = self.scope, names = {} } end

function Parser:close() self.scope = self.scope.above end

function Parser:declare(name, line)
  local def = { name = name, line = line }
  self.scope.names[name] = def
  return def
end

function Parser:find(name)
  local scope = self.scope
  while scope do
    if scope.names[name] then return scope.names[name] end
    scope = scope.above
  end
end

-- ---------------------------------------------------------------- expressions

function Parser:list_of()
  local out = { self:expression() }
  while self:accept "," do out[#out + 1] = self:expression() end
  return out
end

function Parser:body(own, line)
  self:open()
  local fn = self:node("function", { params = {}, line = line })
  local function param(name)
    local def = self:declare(name, line)
    def.fn, def.number = fn, #fn.params + 1
    fn.params[#fn.params + 1] = def
  end
  if own then param "self" end
  self:take "("
  while not self:peek ")" do
    if not self:accept "..." then param(self:take("name").value) end
    if not self:accept "," then break end
  end
  self:take ")"
  fn.body = self:block()
  self:take "end"
  self:close()
  return fn
end

function Parser:table()
  local out = self:node("table", { items = {} })
  self:take "{"
  while not self:peek "}" do
    local item = { line = self.list[self.at].line }
    if self:accept "[" then
      item.key = self:expression()
      self:take "]"
      self:take "="
      item.name = item.key.t == "string" and item.key.value or nil
    elseif self:peek "name" and self.list[self.at + 1].type == "=" then
      item.name = self:take().value
      self:take "="
    end
    item.value = self:expression()
    out.items[#out.items + 1] = item
    if not (self:accept "," or self:accept ";") then break end
  end
  self:take "}"
  return out
end

function Parser:arguments()
  if self:peek "string" then return { self:simple() } end
  if self:peek "{" then return { self:table() } end
  self:take "("
  local out = self:peek ")" and {} or self:list_of()
  self:take ")"
  return out
end

function Parser:name(token)
  return self:node("name", { name = token.value, line = token.line, def = self:find(token.value) })
end

function Parser:suffixed()
  local e
  if self:accept "(" then
    e = self:expression()
    self:take ")"
  else
    e = self:name(self:take "name")
  end
  while true do
    local token = self.list[self.at]
    if self:accept "." then
      local key = self:take "name"
      e = self:node("index", { obj = e, line = key.line,
        key = self:node("string", { value = key.value, line = key.line }) })
    elseif self:accept "[" then
      e = self:node("index", { obj = e, key = self:expression(), line = token.line })
      self:take "]"
    elseif self:accept ":" then
      local word = self:take "name"
      e = self:node("method", { obj = e, name = word.value, args = self:arguments(), line = word.line })
    elseif token.type == "(" or token.type == "string" or token.type == "{" then
      e = self:node("call", { fn = e, args = self:arguments(), line = token.line })
    else
      return e
    end
  end
end

function Parser:simple()
  local token = self.list[self.at]
  if token.type == "string" or token.type == "number" then
    self:take()
    return self:node(token.type, { value = token.value, line = token.line })
  end
  if PLAIN[token.type] then
    self:take()
    return self:node(PLAIN[token.type], { line = token.line })
  end
  if token.type == "{" then return self:table() end
  if token.type == "function" then
    self:take()
    return self:body(false, token.line)
  end
  return self:suffixed()
end

function Parser:expression(power)
  self:deeper()
  local token, e = self.list[self.at]
  if UNARY[token.type] then
    self:take()
    e = self:node("unary", { op = token.type, line = token.line, a = self:expression(UNARY_POWER) })
  else
    e = self:simple()
  end
  while true do
    local op = self.list[self.at]
    if not LEFT[op.type] or LEFT[op.type] <= (power or 0) then break end
    self:take()
    e = self:node("binary", { op = op.type, a = e, b = self:expression(RIGHT[op.type]), line = op.line })
  end
  self.depth = self.depth - 1
  return e
end

-- ---------------------------------------------------------------- statements

local Statement = {}

Statement["if"] = function(p)
  local out = p:node("if", { conditions = {}, blocks = {} })
  repeat
    p:take()
    out.conditions[#out.conditions + 1] = p:expression()
    p:take "then"
    out.blocks[#out.blocks + 1] = p:scoped()
  until not p:peek "elseif"
  if p:accept "else" then out.blocks[#out.blocks + 1] = p:scoped() end
  p:take "end"
  return out
end

Statement["while"] = function(p)
  local out = p:node("loop", { parts = {} })
  p:take()
  out.parts[1] = p:expression()
  p:take "do"
  out.body = p:scoped()
  p:take "end"
  return out
end

Statement["repeat"] = function(p)
  local out = p:node("loop", { parts = {} })
  p:take()
  p:open()
  out.body = p:block()
  p:take "until"
  out.parts[1] = p:expression()
  p:close()
  return out
end

Statement["for"] = function(p)
  local out = p:node("loop", {})
  p:take()
  local names = { p:take "name" }
  while p:accept "," do names[#names + 1] = p:take "name" end
  if not p:accept "=" then p:take "in" end
  out.parts = p:list_of()
  p:take "do"
  p:open()
  for i, name in ipairs(names) do p:declare(name.value, name.line).each = { out.parts[1], i } end
  out.body = p:block()
  p:close()
  p:take "end"
  return out
end

Statement["do"] = function(p)
  p:take()
  local out = p:node("block", { body = p:scoped() })
  p:take "end"
  return out
end

Statement["function"] = function(p)
  local line = p:take().line
  local target, own = p:name(p:take "name"), false
  while p:peek "." or p:peek ":" do
    own = p:take().type == ":"
    local key = p:take "name"
    target = p:node("index", { obj = target, line = key.line,
      key = p:node("string", { value = key.value, line = key.line }) })
  end
  if target.def then target.def.set = true end
  return p:node("assign", { targets = { target }, values = { p:body(own, line) }, line = line })
end

Statement["local"] = function(p)
  local line = p:take().line
  if p:accept "function" then
    local name = p:take "name"
    local def = p:declare(name.value, name.line)
    def.value = p:body(false, line)
    return p:node("local", { defs = { def }, values = { def.value }, line = line })
  end
  local names = {}
  repeat
    names[#names + 1] = p:take "name"
    if p:accept "<" then
      p:take "name"
      p:take ">"
    end
  until not p:accept ","
  local values, defs = p:accept "=" and p:list_of() or {}, {}
  for i, name in ipairs(names) do
    defs[i] = p:declare(name.value, name.line)
    defs[i].value = values[i]
  end
  return p:node("local", { defs = defs, values = values, line = line })
end

Statement["return"] = function(p)
  local line = p:take().line
  local out = p:node("return", { values = {}, line = line })
  if not (p:peek "end" or p:peek "else" or p:peek "elseif" or p:peek "until" or p:peek ";"
    or p:peek "end of text") then
    out.values = p:list_of()
  end
  return out
end

Statement["goto"] = function(p)
  p:take()
  p:take "name"
end

Statement["break"] = function(p) p:take() end
Statement[";"] = function(p) p:take() end
Statement["::"] = function(p)
  p:take()
  p:take "name"
  p:take "::"
end

function Parser:plain_statement()
  local line = self.list[self.at].line
  local first = self:suffixed()
  if not (self:peek "=" or self:peek ",") then
    if first.t ~= "call" and first.t ~= "method" then error { line = line } end
    return self:node("do", { parts = { first }, line = line })
  end
  local targets = { first }
  while self:accept "," do targets[#targets + 1] = self:suffixed() end
  self:take "="
  for _, target in ipairs(targets) do
    if target.t ~= "name" and target.t ~= "index" then error { line = line } end
    if target.def then target.def.set = true end
  end
  return self:node("assign", { targets = targets, values = self:list_of(), line = line })
end

local LAST = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true, ["end of text"] = true }

function Parser:block()
  self:deeper()
  local out = {}
  while not LAST[self.list[self.at].type] do
    local read = Statement[self.list[self.at].type]
    local last = self:peek "return"
    if read then out[#out + 1] = read(self) else out[#out + 1] = self:plain_statement() end
    if last then
      self:accept ";"
      if not LAST[self.list[self.at].type] then error { line = self.list[self.at].line } end
    end
  end
  self.depth = self.depth - 1
  return out
end

function Parser:scoped()
  self:open()
  local out = self:block()
  self:close()
  return out
end

--- The tree of a text, a list of statements; nil and a line where it is no Lua, or nests too deep to be read.
---@param text string
---@return table[]? tree, integer? line
function M.of(text)
  local list, line = tokens.of(text)
  if not list then return nil, line end
  local p = setmetatable({ list = list, at = 1, depth = 0 }, Parser)
  local ok, tree = pcall(p.scoped, p)
  if not ok then
    if type(tree) ~= "table" or not tree.line then error(tree, 0) end
    return nil, tree.line
  end
  if not p:peek "end of text" then return nil, list[p.at].line end
  return tree
end

-- ---------------------------------------------------------------- looking

local BACK = { def = true, defs = true, params = true }

--- Calls fn(node) for each node, from the outside in, in the order of the text; where it returns false not
--- for what is inside.
---@param tree table
---@param fn fun(node: table): boolean?
function M.each(tree, fn)
  -- A chain of a hundred thousand sums or calls is as deep: Lua's stack is not for it.
  local coming = { tree }
  while #coming > 0 do
    local node, keys = table.remove(coming), {}
    if not node.t or fn(node) ~= false then
      for key, part in pairs(node) do
        if type(part) == "table" and not BACK[key] then keys[#keys + 1] = key end
      end
      table.sort(keys, function(a, b)
        if type(a) == type(b) then return a > b end
        return type(b) == "number"
      end)
      for _, key in ipairs(keys) do coming[#coming + 1] = node[key] end
    end
  end
end

-- A longer text is not a name, and locals that double each other would not end.
local TEXT_MAX = 65536

--- The text that an expression always is, or nil: a literal, a local that is never set again, a
--- concatenation of such.
---@param e table
---@return string?
function M.text(e)
  if not e then return nil end
  if e.t == "string" then return e.value end
  if e.t == "name" and e.def and e.def.value and not e.def.set then
    if e.def.text == nil then
      e.def.text = false -- while it is being computed
      e.def.text = M.text(e.def.value) or false
    end
    return e.def.text or nil
  end
  if e.t == "binary" and e.op == ".." then
    local a, b = M.text(e.a), M.text(e.b)
    return a and b and #a + #b <= TEXT_MAX and a .. b or nil
  end
end

--- The value of a name in a table constructor, or nil.
---@param e table?
---@param name string
function M.field(e, name)
  if not e or e.t ~= "table" then return nil end
  for _, item in ipairs(e.items) do
    if item.name == name then return item.value end
  end
end

--- The expression behind a local that is never set again.
function M.behind(e)
  local n = 0
  while e and e.t == "name" and e.def and e.def.value and not e.def.set and n < 20 do
    e, n = e.def.value, n + 1
  end
  return e
end

return M
