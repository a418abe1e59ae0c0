-- lint.lua - what can be seen in a script's text that would fail when it runs, or that nothing uses. What
-- depends on values is not guessed: names, kinds and URLs count where they are written down.
--
--   a program { path, sources, specs }
--     --each text read into a tree--> findings { file, line, severity, rule, message }

local budget = require "kubelua.reader.budget"
local core = require "kubelua.core"
local kinds = require "kubelua.kinds"
local result = require "kubelua.result"
local suggest = require "kubelua.suggest"
local tree = require "kubelua.reader.tree"

local M = {}

---@class kubelua.Finding
---@field file string
---@field line integer
---@field severity "error"|"warning"   an error fails when the line runs
---@field rule string                  one of M.RULES
---@field message string

--- What is looked for, by the names that findings carry.
M.RULES = {
  ["load"] = "the script does not load",
  ["unknown-ctx"] = "ctx has no such method or field",
  ["unknown-kube"] = "the kubelua module has no such function",
  ["undeclared-kind"] = "a kind is read from the cache but not declared by the controller",
  ["undeclared-param"] = "a param is read but not declared by the controller",
  ["secret-param"] = "a secret is read as a plain param, or a plain param as a secret",
  ["http-not-allowed"] = "ctx.http requests a server that is not in the controller's `http`",
  ["unknown-result-key"] = "a reconcile returns an unknown key",
  ["unused-param"] = "a param is declared but never read",
  ["unused-kind"] = "a kind is declared in `reads` but never read",
  ["unused-index"] = "an index is declared but never used",
  ["unchecked"] = "the script is too large to be checked",
}

-- Those that come from the run, bindings/api/lctx.c.
local FIELDS = { "key", "namespace", "name", "params", "attempt", "generation", "id", "object", "epoch",
  "cluster", "trigger", "memo", "try" }
-- What a function that maps events has of ctx is among these, too.
local names

-- The class is made where there is a run; here nobody runs.
local function names_of_ctx()
  if names then return names end
  local had = core.run
  core.run = setmetatable({}, { __index = function() return function() end end })
  local ok, context = pcall(require, "kubelua.context")
  package.loaded["kubelua.context"], core.run = nil, had
  if not ok then error(context, 0) end
  names = {}
  for name in pairs(context.class) do names[name] = true end
  for _, name in ipairs(FIELDS) do names[name] = true end
  return names
end

-- ---------------------------------------------------------------- what a program declares

local function declared_by(program)
  local d = { kinds = {}, reads = {}, indexes = {}, params = {}, http = {}, controllers = 0 }
  for _, c in ipairs(program.specs) do
    if not c.webhook then
      d.controllers = d.controllers + 1
      if #c.http > 0 then d.http[#d.http + 1] = c.http end
    end
    for _, kind in ipairs(c.kinds) do d.kinds[kind] = true end
    for _, kind in ipairs(c.reads) do d.reads[kind] = c.name end
    for _, index in ipairs(c.indexes) do d.indexes[index] = c.name end
    for name, type in pairs(c.params) do
      -- one name may be two params of two controllers
      d.params[name] = d.params[name] and d.params[name] ~= type and "any" or type
    end
  end
  return d
end

-- ---------------------------------------------------------------- looking

local Look = {}
Look.__index = Look

function Look:say(node, severity, rule, message, ...)
  self.found[#self.found + 1] = { file = self.file, line = node.line, severity = severity, rule = rule,
    message = message:format(...) }
end

-- A parameter of that name, as every example has it.
local function is_ctx(e) return e.t == "name" and e.name == "ctx" and e.def ~= nil and e.def.fn ~= nil end

local function is_kube(e)
  local value = e.t == "name" and e.def and tree.behind(e)
  return value and value.t == "call" and value.fn.t == "name" and value.fn.name == "require"
    and not value.fn.def and tree.text(value.args[1]) == "kubelua"
end

-- "params" of ctx.params, or nil.
local function ctx_field(e)
  if e.t == "index" and is_ctx(e.obj) then return tree.text(e.key) end
end

function Look:unknown(node, name)
  if name and not self.names[name] then
    self:say(node, "error", "unknown-ctx", "ctx.%s: unknown field%s", name,
      suggest.hint(name, self.names))
  end
end

function Look:param(node, name)
  local type = self.declared.params[name]
  self.params_read[name] = true
  if type == "secret" then
    self:say(node, "error", "secret-param", "ctx.params.%s: it is a secret; read it with ctx.secret \"%s\"",
      name, name)
  elseif not type then
    self:say(node, "error", "undeclared-param", "ctx.params.%s: the controller has no such param%s", name,
      next(self.declared.params) and suggest.hint(name, self.declared.params)
        or ("; declare it: params = { %s = ... }"):format(name))
  end
end

function Look:secret(node, name)
  local type = self.declared.params[name]
  self.params_read[name] = true
  if not type then
    self:say(node, "error", "undeclared-param", "ctx.secret %q: the controller has no such param%s", name,
      next(self.declared.params) and suggest.hint(name, self.declared.params)
        or ("; declare it: params = { %s = { type = \"secret\" } }"):format(name))
  elseif type ~= "secret" and type ~= "any" then
    self:say(node, "error", "secret-param", "ctx.secret %q: the param is not a secret; it is ctx.params.%s",
      name, name)
  end
end

local READS = { get = true, list = true, each = true, owned = true }

function Look:read(node)
  local kind = tree.text(node.args[1])
  if not kind then
    self.dynamic = true
    return
  end
  local why
  kind, why = kinds.full(kind, self.own)
  if not kind then
    self:say(node, "error", "undeclared-kind", "ctx:%s: %s", node.name, why)
    return
  end
  self.kinds_read[kind] = true
  if node.name ~= "owned" and not self.declared.kinds[kind] then
    self:say(node, "error", "undeclared-kind", "ctx:%s: the controller does not keep %s in its cache: add \z
      reads = { %q }, or ask the server with ctx.live", node.name, kind, kind)
  end
end

local HTTP = { get = 1, head = 1, post = 1, put = 1, patch = 1, delete = 1, request = 2 }

function Look:reach(node)
  local at = HTTP[node.name]
  if not at then
    self:say(node, "error", "unknown-ctx", "ctx.http:%s: unknown method%s", node.name,
      suggest.hint(node.name, HTTP))
    return
  end
  if #self.declared.http == 0 then
    self:say(node, "error", "http-not-allowed", "ctx.http:%s: the controller may not reach any server; add \z
      http = { \"https://...\" } to its table", node.name)
    return
  end
  local url = tree.text(node.args[at])
  if not url then return end
  for _, rules in ipairs(self.declared.http) do
    if core.http_rule_for(url, rules) then return end
  end
  self:say(node, "error", "http-not-allowed", "ctx.http:%s: %s is not in `http` of the controller", node.name,
    url:match "^[^?]*")
end

-- Each shape of an expression, once: `seen` are those whose parts have been judged with them.
local Of = {}

-- Where ctx goes itself, it may be called otherwise, and what is done with it is not seen: but for functions
-- of the program that call it so.
function Of.name(self, node)
  if is_ctx(node) and not self.judged[node] then self.dynamic, self.all_params = true, true end
end

local function called(fn)
  if fn.t == "name" then return fn.name end
  return fn.t == "index" and tree.text(fn.key) or nil
end

function Look:handed_on(name, args, first)
  for i, arg in ipairs(args) do
    local taken = is_ctx(arg) and name and self.takers[name]
    if taken and taken[i + first] then self.judged[arg] = true end
  end
end

function Of.method(self, node)
  if is_ctx(node.obj) then self.judged[node.obj] = true end
  self:handed_on(node.name, node.args, 1)
  if is_ctx(node.obj) then
    self:unknown(node, node.name)
    if READS[node.name] then self:read(node) end
    if node.name == "at" or node.name == "live" then self.dynamic = true end
  elseif ctx_field(node.obj) == "try" then
    self:unknown(node, node.name)
    if READS[node.name] then self:read(node) end
  elseif ctx_field(node.obj) == "http" then
    self:reach(node)
  end
end

function Of.index(self, node)
  self.judged[node.obj] = is_ctx(node.obj) or self.judged[node.obj]
  if is_ctx(node.obj) then
    self:unknown(node, tree.text(node.key))
    if tree.text(node.key) == "params" and not self.judged[node] then self.all_params = true end
  elseif ctx_field(node.obj) == "params" then
    local name = tree.text(node.key)
    self.judged[node.obj] = name ~= nil
    if name then self:param(node, name) end
  elseif is_kube(node.obj) then
    local name = tree.text(node.key)
    local ok, why = pcall(function() return name == nil or self.kube[name] ~= nil end)
    if not ok then
      self:say(node, "error", "unknown-kube", "%s", (tostring(why):gsub("^[^\n]-:%d+: ", "")))
    end
  end
end

function Of.call(self, node)
  self:handed_on(called(node.fn), node.args, 0)
  local field = ctx_field(node.fn)
  local name = tree.text(node.args[1])
  if field == "secret" then
    if name then self:secret(node, name) else self.all_params = true end
  elseif field == "params" and name then
    self.judged[node.fn] = true
    self:param(node, name:match "^[^.%[]+")
  end
end

function Of.string(self, node) self.texts[node.value] = (self.texts[node.value] or 0) + 1 end

-- What the functions named reconcile and finalize return themselves.
function Look:returns(fn)
  tree.each(fn.body, function(node)
    if node.t == "function" then return false end
    local value = node.t == "return" and #node.values == 1 and node.values[1]
    if not value or value.t ~= "table" then return end
    for _, item in ipairs(value.items) do
      if item.name and not result.KEYS[item.name] then
        self:say(item, "error", "unknown-result-key", "a result has no key '%s'%s", item.name,
          suggest.hint(item.name, result.KEYS))
      end
    end
  end)
end

function Of.table(self, node)
  for _, item in ipairs(node.items) do
    local asks = item.name == "index" and item.value.t == "table" and item.value.items or {}
    for _, part in ipairs(asks) do
      if part.name then self.asked[part.name] = true end
    end
  end
  if not tree.field(node, "resource") then return end
  for _, word in ipairs { "reconcile", "finalize" } do
    local fn = tree.behind(tree.field(node, word))
    if fn and fn.t == "function" and not self.judged[fn] then
      self.judged[fn] = true
      self:returns(fn)
    end
  end
end

-- ---------------------------------------------------------------- a program

-- Names of functions of the program -> the places at which they take something that they call ctx.
local function takers_in(trees)
  local out = {}
  local function take(name, fn)
    for _, def in ipairs(name and fn and fn.t == "function" and fn.params or {}) do
      if def.name == "ctx" then
        out[name] = out[name] or {}
        out[name][def.number] = true
      end
    end
  end
  for _, one in ipairs(trees) do
    tree.each(one.tree, function(node)
      if node.t == "local" then
        for i, def in ipairs(node.defs) do take(def.name, node.values[i]) end
      elseif node.t == "assign" then
        for i, target in ipairs(node.targets) do take(called(target), node.values[i]) end
      elseif node.t == "table" then
        for _, item in ipairs(node.items) do take(item.name, item.value) end
      end
    end)
  end
  return out
end

-- Where a table of the texts has this key in this field: the line of a declaration. `full` is what a key
-- stands for.
local function place_of(trees, field, name, full)
  for _, one in ipairs(trees) do
    local line
    tree.each(one.tree, function(node)
      local t = not line and node.t == "table" and tree.field(node, field)
      for _, item in ipairs(t and t.t == "table" and t.items or {}) do
        local text = tree.text(item.value)
        if full(item.name) == name or full(text) == name then line = item.line end
      end
    end)
    if line then return one.path, line end
  end
  return trees[1].path, 1
end

local function unused(look, trees, declared)
  local function as_written(key) return key end
  local function in_full(key) return type(key) == "string" and kinds.full(key, look.own) or nil end
  local function say(rule, field, name, message, ...)
    local path, line = place_of(trees, field, name, field == "reads" and in_full or as_written)
    look.found[#look.found + 1] = { file = path, line = line, severity = "warning", rule = rule,
      message = message:format(...) }
  end
  for name in pairs(declared.params) do
    if not look.all_params and not look.params_read[name] then
      say("unused-param", "params", name, "params.%s is declared but never read", name)
    end
  end
  for kind in pairs(declared.reads) do
    if not look.dynamic and not look.kinds_read[kind] then
      say("unused-kind", "reads", kind, "reads: %s is never read from the cache", kind)
    end
  end
  for index in pairs(declared.indexes) do
    -- its declaration is a name, or a text in brackets
    if not look.texts[index] and not look.asked[index] then
      say("unused-index", "indexes", index, "indexes: the index %s is never used", index)
    end
  end
end

-- The names of the kinds that the script defines (kube.crd).
local function names_of(crds)
  local words = {}
  for _, crd in ipairs(crds or {}) do
    local said, group = crd.spec.names, crd.spec.group
    local all = { said.plural, said.singular, table.unpack(core.copy(said.shortNames or {})) }
    for _, v in ipairs(crd.spec.versions) do
      if v.storage then kinds.define(("%s/%s/%s"):format(group, v.name, said.kind), all, words) end
    end
  end
  return words
end

local function look_at(program)
  local declared = declared_by(program)
  local look = setmetatable({ found = {}, declared = declared, names = names_of_ctx(), params_read = {},
    kinds_read = {}, judged = {}, texts = {}, asked = {}, own = names_of(program.crds),
    kube = require "kubelua" }, Look)
  local trees = {}
  for _, source in ipairs(program.sources) do
    local one = tree.of(source.text)
    if one then trees[#trees + 1] = { path = source.path, tree = one } end
  end
  look.takers = takers_in(trees)
  for _, one in ipairs(trees) do
    look.file = one.path
    tree.each(one.tree, function(node)
      if Of[node.t] then Of[node.t](look, node) end
    end)
  end
  if #trees == #program.sources and declared.controllers == #program.specs then
    unused(look, trees, declared)
  end
  table.sort(look.found, function(a, b)
    if a.file ~= b.file then return a.file < b.file end
    if a.line ~= b.line then return a.line < b.line end
    return a.message < b.message
  end)
  return look.found
end

--- What there is to say of a program: { path, sources = { { path, text } }, specs = { { name, webhook, kinds,
--- reads, indexes, params = { name = type }, http } } }.
---@param clock? fun(): number  the processor time so far, in seconds (os.clock)
---@return kubelua.Finding[]
function M.program(program, clock)
  local in_time, found = budget.within(function() return look_at(program) end, clock)
  if in_time then return found end
  return { { file = program.path, line = 1, severity = "warning", rule = "unchecked",
    message = ("it loads, but is too large to be checked further: that takes more than %d s"):format(
      budget.SECONDS) } }
end

return M
