-- annotations.lua - reads the LuaLS annotations of lua/kubelua: classes with their fields and methods,
-- aliases, and the signatures of functions. The hunt's grammar is built from them (generate.lua).
--
--   classes[name] = { parents = { name... }, fields = { item... }, methods = { item... },
--                     has = { name = item } }
--   item = { name =, type =, optional =, params = { item... }, result = type or nil,
--            dot = called with a dot }

local M = { classes = {}, aliases = {}, kube = {} }

local function class_of(name)
  local c = M.classes[name]
  if not c then
    c = { name = name, parents = {}, fields = {}, methods = {}, has = {} }
    M.classes[name] = c
  end
  return c
end

-- The type at the beginning of a text, and what follows it. A type ends at a blank or a comma outside of
-- brackets; the result of a fun(...) belongs to it.
local function take_type(text)
  local at, depth, quoted = 1, 0, false
  while at <= #text do
    local c = text:sub(at, at)
    if c == '"' then quoted = not quoted end
    local bracket = not quoted and (c:find "[%(%[{<]" and 1 or c:find "[%)%]}>]" and -1) or 0
    depth = depth + bracket
    if depth < 0 or depth == 0 and not quoted and c:find "[%s,]" then break end
    if depth == 0 and not quoted and c == ":" then at = (text:find("%S", at + 1) or at + 1) - 1 end
    at = at + 1
  end
  return text:sub(1, at - 1), text:sub(at)
end

-- The parts of a text between separators that stand outside of brackets and quotes.
function M.split(text, separator)
  local parts, depth, from, quoted = {}, 0, 1, false
  for at = 1, #text do
    local c = text:sub(at, at)
    if c == '"' then quoted = not quoted end
    if not quoted then
      if c:find "[%(%[{<]" then depth = depth + 1 end
      if c:find "[%)%]}>]" then depth = depth - 1 end
      if c == separator and depth == 0 then
        parts[#parts + 1] = text:sub(from, at - 1)
        from = at + 1
      end
    end
  end
  parts[#parts + 1] = text:sub(from)
  return parts
end

-- "a: string, b?: integer" as items.
function M.items(text)
  local list = {}
  for _, part in ipairs(M.split(text, ",")) do
    local name, optional, type = part:match "^%s*(%[?\"?[%w_%.]+\"?%]?)(%??)%s*:%s*(.-)%s*$"
    if not name then name, optional = part:match "^%s*([%w_%.]+)(%??)%s*$" end
    if name then list[#list + 1] = { name = name, type = type or "any", optional = optional == "?" } end
  end
  return list
end

-- fun(a: A, b: B): C as parameters and result.
function M.signature(text)
  local inside = text:match "^fun(%b())"
  if not inside then return nil end
  local result = text:match "^fun%b()%s*:%s*(.+)$"
  return M.items(inside:sub(2, -2)), result and take_type(result)
end

local function add(class, item)
  if class.has[item.name] then return end
  class.has[item.name] = item
  local list = item.params and class.methods or class.fields
  list[#list + 1] = item
end

local function add_field(class, rest)
  local name, optional, after = rest:match "^([%a_][%w_]*)(%??)%s+(.+)$"
  if not name then return end
  local type = take_type(after)
  local params, result = M.signature(type)
  if params and params[1] and params[1].name == "self" then
    table.remove(params, 1)
    add(class, { name = name, params = params, result = result })
  else
    add(class, { name = name, type = type, optional = optional == "?" })
  end
end

-- What a function of a module is, by the module's name and its own.
local modules = {}

local function learn(module, text)
  local class, params, result = nil, {}, nil
  local variables = { M = class_of("module " .. module) }
  modules[module] = variables.M
  for line in text:gmatch "[^\n]+" do
    local name, rest = line:match "^%-%-%-@class%s+([%w_.]+)(.*)"
    if name then
      class = class_of(name)
      for parent in (rest:match "^:%s*(%S+)" or ""):gmatch "[%w_.]+" do
        class.parents[#class.parents + 1] = parent
      end
    elseif line:find "^%-%-%-@field%s" and class then
      add_field(class, line:match "^%-%-%-@field%s+(.+)")
    elseif line:find "^%-%-%-@alias%s" then
      local alias, type = line:match "^%-%-%-@alias%s+([%w_.]+)%s+(.+)"
      if alias then M.aliases[alias] = take_type(type) end
    elseif line:find "^%-%-%-@param%s" then
      local param, optional, type = line:match "^%-%-%-@param%s+([%w_.]+)(%??)%s+(.+)"
      type = type and take_type(type)
      if type then
        params[#params + 1] = { name = param, type = type,
          optional = optional == "?" or type:find "%?$" ~= nil }
      end
    elseif line:find "^%-%-%-@return%s" then
      result = result or take_type(line:match "^%-%-%-@return%s+(.+)")
    elseif not line:find "^%-%-" then
      local variable = line:match "^local%s+([%a_][%w_]*)%s*="
      if variable and class then variables[variable] = class end
      local of, how, fn = line:match "^function%s+([%a_][%w_]*)([.:])([%a_][%w_]*)%s*%("
      if fn and variables[of] then
        add(variables[of], { name = fn, params = params, result = result, dot = how == "." })
      end
      class, params, result = not variable and class or nil, {}, nil
    end
  end
end

--- Reads files: { [module] = text }, by name in `order`.
function M.read(order, texts)
  for _, module in ipairs(order) do learn(module, texts[module]) end
  for name, module, fn in (texts["names_meta"] or ""):gmatch
    '\nkube%.([%w_]+) = require%("kubelua%.([%w_]+)"%)%.([%w_]+)' do
    local there = modules[module] and modules[module].has[fn]
    if there and there.params then M.kube[name] = there end
  end
  for _, item in ipairs(class_of("kubelua").methods) do M.kube[item.name] = M.kube[item.name] or item end
end

-- Fields or methods (`what`) of a class and of those that it is made of.
function M.all(name, what)
  local list, seen = {}, {}
  local function visit(class)
    if not class or seen[class] then return end
    seen[class] = true
    for _, item in ipairs(class[what]) do list[#list + 1] = item end
    for _, parent in ipairs(class.parents) do visit(M.classes[parent]) end
  end
  visit(M.classes[name])
  return list
end

return M
