-- values.lua - what an expression of a program may be, across its modules, without running it.
--
--   a name     what its local is, or what the calls of its function give for the parameter
--   M.x        what a table has under x where it is written: in its braces, or as `M.x = ...`
--   require    what that module returns
--   f(...)     what `return` has first in f
--
-- It knows nothing of loops, of tables that a function fills for its caller, or of metatables. Where it
-- does not know, the expression stands for itself.

local tree = require "kubelua.reader.tree"

local M = {}

-- Expressions that are looked at for one answer: beyond that nothing is known of it.
local STEPS_MAX = 2000

local Program = {}
Program.__index = Program

-- ---------------------------------------------------------------- modules

-- A file is found under each end of its path: the name that `require` takes begins somewhere in it. The
-- shortest path with that end is the nearest to the script.
local function add_module(program, path, list)
  local name, all = path:gsub("%.lua$", ""):gsub("/init$", ""), {}
  for part in name:gmatch "[^/]+" do all[#all + 1] = part end
  for i = 1, #all do
    local word = table.concat(all, ".", i)
    local there = program.modules[word]
    if not there or #there.path > #path then program.modules[word] = { path = path, list = list } end
  end
end

local CALLABLE = { ["function"] = true, name = true, index = true }

local function note_field(program, name, value)
  if name and CALLABLE[value.t] then program.callable[name] = true end
end

-- The fields that statements give to tables of locals.
local function add_assigned(program, node)
  for i, target in ipairs(node.targets) do
    local key = target.t == "index" and tree.text(target.key)
    local owner = key and tree.behind(target.obj)
    if owner and owner.t == "table" then
      local fields = program.assigned[owner] or {}
      program.assigned[owner] = fields
      fields[key] = fields[key] or {}
      -- What a call returns second has no expression of its own.
      table.insert(fields[key], node.values[i] or target)
    end
    note_field(program, key, node.values[i] or target)
    program.called[target] = true
  end
end

--- A program of texts that were parsed, each { path, list = tree.of }.
---@param texts {path: string, list: table[]}[]
function M.program(texts)
  local self = setmetatable({ modules = {}, assigned = {}, callable = {}, called = {}, files = texts },
    Program)
  for _, t in ipairs(texts) do
    add_module(self, t.path, t.list)
    tree.each(t.list, function(node)
      if node.t == "assign" then add_assigned(self, node) end
      for _, item in ipairs(node.t == "table" and node.items or {}) do
        note_field(self, item.name, item.value)
      end
    end)
  end
  return self
end

-- ---------------------------------------------------------------- calls

-- The function that a call calls, and what it gets: pcall(f, ...) and kube.try(f, ...) call f.
local function callee(node)
  if node.t == "method" then
    return { t = "index", obj = node.obj, key = { t = "string", value = node.name }, line = node.line },
      { node.obj, table.unpack(node.args) }
  end
  local fn, args = node.fn, node.args
  local protects = fn.t == "name" and not fn.def and fn.name == "pcall"
    or fn.t == "index" and tree.text(fn.key) == "try"
  if protects and args[1] then return args[1], { table.unpack(args, 2) } end
  return fn, args
end

local function functions(program, e)
  local out = {}
  for _, v in ipairs(program:values(e)) do
    if v.t == "function" then out[#out + 1] = v end
  end
  return out
end

-- Whether it is worth asking. Most fields are never given a function.
local function may_be_function(program, node)
  if node.t == "index" then return program.callable[tree.text(node.key) or ""] end
  return node.t == "name" and node.def and node.def.value
end

-- Who calls each function, and which functions are also handed to somebody: of their parameters nobody knows
-- all values.
local function find_calls(program)
  program.sites, program.handed = {}, {}
  local sites, called = {}, program.called
  for _, t in ipairs(program.files) do
    tree.each(t.list, function(node)
      if node.t == "local" then
        for i, def in ipairs(node.defs) do
          if node.values[i] and not def.set then called[node.values[i]] = true end
        end
      elseif node.t == "call" or node.t == "method" then
        local fn, args = callee(node)
        called[fn] = true
        for _, f in ipairs(functions(program, fn)) do
          sites[f] = sites[f] or {}
          table.insert(sites[f], args)
        end
      end
    end)
  end
  for _, t in ipairs(program.files) do
    tree.each(t.list, function(node)
      if not called[node] and may_be_function(program, node) then
        for _, f in ipairs(functions(program, node)) do program.handed[f] = true end
      end
    end)
  end
  program.sites = sites
end

-- What stands first after each `return` of a function.
local function returned(fn)
  local out = {}
  tree.each(fn.body, function(node)
    if node.t == "function" then return false end
    if node.t == "return" then out[#out + 1] = node.values[1] end
  end)
  return out
end

-- ---------------------------------------------------------------- values

local Look = {}

-- As the last argument these give also those after it.
local MANY = { call = true, method = true, vararg = true }

local function look_at_all(program, list, found)
  for _, e in ipairs(list) do program:look(e, found) end
end

function Look.name(program, e, found)
  local def = e.def
  if not def or def.set then return false end
  if def.value then return program:look(def.value, found) end
  local sites = def.fn and program.sites[def.fn]
  if not sites then return false end
  local whole = not program.handed[def.fn]
  for _, args in ipairs(sites) do
    local arg, last = args[def.number], args[#args]
    if arg then program:look(arg, found) elseif last and MANY[last.t] then whole = false end
  end
  return whole
end

function Look.index(program, e, found)
  local key = tree.text(e.key)
  if not key then return false end
  local whole = true
  for _, owner in ipairs(program:inner(e.obj, found)) do
    local written = owner.t == "table" and tree.field(owner, key)
    local assigned = (program.assigned[owner] or {})[key]
    if written then program:look(written, found) end
    if assigned then look_at_all(program, assigned, found) end
    if not (written or assigned) then whole = false end
  end
  return whole
end

function Look.call(program, e, found)
  local fn, args = callee(e)
  if fn == e.fn and fn.t == "name" and not fn.def and fn.name == "require" then
    local module = program.modules[args[1] and tree.text(args[1]) or ""]
    local last = module and module.list[#module.list]
    if not last or last.t ~= "return" then return false end
    return program:look(last.values[1] or last, found)
  end
  -- The first result of pcall is its own, not the function's.
  if fn ~= e.fn and e.fn.t == "name" then return false end
  local whole = true
  for _, f in ipairs(program:inner(fn, found)) do
    if f.t == "function" then look_at_all(program, returned(f), found) else whole = false end
  end
  return whole
end

function Look.binary(program, e, found)
  if e.op == "or" then
    program:look(e.a, found)
    return program:look(e.b, found)
  end
  if e.op == "and" then return program:look(e.b, found) end
  return false
end

Look["nil"] = function() return true end
Look["false"] = Look["nil"]

-- Adds the values of e to `found`; true, so that those who call it last can say the same.
function Program:look(e, found)
  if found.inside[e] then return true end
  found.steps = found.steps + 1
  found.inside[e] = true
  local whole = found.steps <= STEPS_MAX and Look[e.t] and Look[e.t](self, e, found)
  found.inside[e] = nil
  if not whole and not found.seen[e] then
    found.seen[e] = true
    found[#found + 1] = e
  end
  return true
end

-- The values of a part of what is looked at.
function Program:inner(e, found)
  local inner = { steps = found.steps, seen = {}, inside = found.inside }
  self:look(e, inner)
  found.steps = inner.steps
  return inner
end

--- The expressions that `e` may be, other than nil and false: each either tells its value by itself (a text,
--- a table, a function, a call of something outside), or is one of which no more is known.
---@param e table
---@return table[]
function Program:values(e)
  if not self.sites then find_calls(self) end
  return self:inner(e, { steps = 0, inside = {} })
end

--- The texts that `e` may be, and whether these are all.
---@param e table
---@return string[] texts, boolean whole
function Program:texts(e)
  local out, whole = {}, true
  for _, v in ipairs(self:values(e)) do
    local text = tree.text(v)
    if not text and v.t == "binary" and v.op == ".." then
      local a, b = self:texts(v.a), self:texts(v.b)
      text = #a == 1 and #b == 1 and a[1] .. b[1] or nil
    end
    if text then out[#out + 1] = text else whole = false end
  end
  return out, whole
end

return M
