-- annotations.lua - reads what the sources tell the Lua language server: functions, classes, aliases.
--
-- A block of "---" lines belongs to the function or the class that follows it. `local X` after a class says
-- which class the functions of X are in; `function M.x` counts where names_meta.lua exports it as kube.x.

local M = {}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end
M.read = read

-- "T? rest": a type may hold spaces inside brackets, after a colon and around "|".
local function split_type(text)
  local depth, i = 0, 1
  while i <= #text do
    local c = text:sub(i, i)
    if c:find "[%(%[{<]" then depth = depth + 1 end
    if c:find "[%)%]}>]" then depth = depth - 1 end
    if c == " " and depth == 0 then
      local before, after = text:sub(1, i - 1), text:sub(i + 1)
      if not before:find "[:|,]$" and not after:find "^%s*|" then return before, (after:gsub("^%s+", "")) end
    end
    i = i + 1
  end
  return text, ""
end
M.split_type = split_type

-- name -> where it comes from: { module, name }.
local function exports(dir)
  local out = {}
  for name, module, from in read(dir .. "/names_meta.lua"):gmatch
    'kube%.([%w_]+) = require%("kubelua%.([%w_]+)"%)%.([%w_]+)' do
    local key = module .. "." .. from
    out[key] = out[key] or {}
    table.insert(out[key], name)
  end
  return out
end

local function new_block() return { text = {}, params = {}, returns = {}, fields = {} } end

-- One line of a block, without its dashes.
local function take(block, line)
  local tag, rest = line:match "^@(%w+)%s*(.*)$"
  if not tag then
    table.insert(block.text, (line:gsub("^%s", "")))
  elseif tag == "param" then
    local name, more = rest:match "^(%S+)%s+(.*)$"
    local kind, text = split_type(more or "any")
    table.insert(block.params, { name = name or rest, type = kind, text = text })
  elseif tag == "return" then
    table.insert(block.returns, rest)
  elseif tag == "class" then
    block.class = rest:match "^[%w_.]+"
    block.parents = rest:match "^[%w_.]+: ([%w_., ]*[%w_])"
    block.about = rest:match "^%S+%s%s%s+(.*)$" or rest:match "^%S+ [%w_.]+%s%s%s+(.*)$"
  elseif tag == "field" and not rest:find "^private " then
    local name, more = rest:match "^(%b[])%s+(.*)$"
    if not name then name, more = rest:match "^(%S+)%s+(.*)$" end
    local kind, text = split_type(more)
    table.insert(block.fields, { name = name, type = kind, text = text })
  elseif tag == "alias" then
    local name, more = rest:match "^(%S+)%s*(.*)$"
    block.alias = { name = name, type = select(1, split_type(more)), text = select(2, split_type(more)) }
  elseif tag == "operator" then
    block.operators = block.operators or {}
    table.insert(block.operators, rest)
  elseif tag == "overload" then
    block.overload = rest
  end
end

--- Everything below the library's directory: classes by name, each with `functions` in the order of the
--- sources and `fields`; aliases by name. Functions of require "kubelua" are those of the class "kubelua".
---@param dir string   "lua/kubelua"
---@return {classes: table<string, table>, aliases: table<string, table>, order: string[]}
function M.load(dir)
  local exported = exports(dir)
  local out = { classes = {}, aliases = {}, order = {} }
  local function class(name)
    if not out.classes[name] then
      out.classes[name] = { name = name, text = {}, fields = {}, functions = {} }
      table.insert(out.order, name)
    end
    return out.classes[name]
  end

  local function add(owner, name, call, block, path, line)
    table.insert(class(owner).functions, {
      class = owner, name = name, method = call == ":", text = table.concat(block.text, "\n"),
      params = block.params, returns = block.returns, path = path, line = line,
    })
  end

  local pipe = assert(io.popen(("find '%s' -maxdepth 1 -name '*.lua' | LC_ALL=C sort"):format(dir)))
  for path in pipe:lines() do
    local module = path:match "([%w_]+)%.lua$"
    local vars, block, pending, number = {}, nil, nil, 0
    for line in (read(path) .. "\n"):gmatch "(.-)\n" do
      number = number + 1
      local doc = line:match "^%-%-%-(.*)$"
      if doc and not doc:find "^@meta" and not doc:find "^%-" then
        block = block or new_block()
        take(block, doc)
        if block.alias then
          out.aliases[block.alias.name] = block.alias
        end
      elseif not line:find "^%-%-" then
        if block and block.class then
          local c = class(block.class)
          c.parents, c.about = c.parents or block.parents, c.about or block.about
          c.overload, c.operators = c.overload or block.overload, c.operators or block.operators
          for _, text in ipairs(block.text) do table.insert(c.text, text) end
          for _, field in ipairs(block.fields) do table.insert(c.fields, field) end
          pending = block.class
        end
        local var = line:match "^local ([%w_]+) = "
        if var and pending then
          vars[var] = pending
          pending = nil
        end
        local owner, call, name = line:match "^function ([%w_]+)([.:])([%w_]+)%("
        local documented = block and not block.class and (#block.text > 0 or #block.params > 0
          or #block.returns > 0)
        if owner and vars[owner] and documented then
          add(vars[owner], name, call, block, path, number)
        elseif owner and documented then
          for _, as in ipairs(exported[module .. "." .. name] or {}) do
            add("kubelua", as, ".", block, path, number)
          end
        end
        block = nil
      end
    end
  end
  pipe:close()
  -- exported out of C under a second name; annotated under the first
  for as, name in pairs { json = "decode", to_json = "encode" } do
    for _, f in ipairs(out.classes.kubelua.functions) do
      if f.name == name then
        local copy = {}
        for key, value in pairs(f) do copy[key] = value end
        copy.name = as
        copy.text = ("Another name of `kube.%s`. %s"):format(name, f.text)
        table.insert(out.classes.kubelua.functions, copy)
        break
      end
    end
  end
  return out
end

return M
