-- walker.lua - walks through the whole Lua state in which it runs, and names every function and every light
-- userdata (spec/programs/walk.c).
--
-- It also looks where a script cannot: into metatables, upvalues, user values, the registry and the stacks of
-- all coroutines. The name of a value is the first path to it; paths are tried in a fixed order:
--
--   string.format            a value in the script's globals
--   kubelua.core.run.get     a value in a module of the library
--   HELD.each                a value that the script keeps for the walk
--   <kubelua.view>.__index   a value in the metatable with that name
--   f^2, f^name              an upvalue of f, by number or by name
--
-- A Lua function of the library is named by its file only, as its code can be read there. The functions of
-- the script and of the walker are left out. If the script has a table HELD.COLLECT, each C function is put
-- into it under its name.

local debug, phase, under_way, own = ...
local out, done, todo, found = {}, {}, {}, {}
local here = debug.getinfo(1, "S").source

local function say(kind, name)
  local line = ("%s %s %s"):format(phase, kind, name)
  if not out[line] then out[#out + 1] = line end
  out[line] = true
end

local function later(x, name)
  local t = type(x)
  if t == "nil" or t == "boolean" or t == "number" or t == "string" or done[x] or x == own then return end
  done[x] = true
  todo[#todo + 1] = { x, name }
end

-- Texts first, sorted; other keys have no order.
local function keys_of(t)
  local texts, others = {}, {}
  for key in next, t do
    local list = (type(key) == "string" or type(key) == "number") and texts or others
    list[#list + 1] = key
  end
  table.sort(texts, function(a, b) return tostring(a) < tostring(b) end)
  return texts, others
end

local function join(name, key) return name == "" and key or name .. "." .. key end

local function metatable(x, name)
  local mt = debug.getmetatable(x)
  local called = mt and rawget(mt, "__name")
  later(mt, type(called) == "string" and "<" .. called .. ">" or "<of " .. name .. ">")
end

local walk = {}

function walk.table(t, name)
  local texts, others = keys_of(t)
  for _, key in ipairs(texts) do later(rawget(t, key), join(name, tostring(key))) end
  for _, key in ipairs(others) do
    later(key, join(name, "[" .. type(key) .. "]"))
    later(rawget(t, key), join(name, "[" .. type(key) .. "]"))
  end
  metatable(t, name)
end

function walk.userdata(u, name)
  -- only a full userdata can have user values
  if not pcall(debug.setuservalue, u, nil, 255) then return say("pointer", name) end
  metatable(u, name)
  for i = 1, 255 do
    local value, there = debug.getuservalue(u, i)
    if not there then break end
    later(value, name .. ":" .. i)
  end
end

walk["function"] = function(f, name)
  local info = debug.getinfo(f, "S")
  if info.source == here then return end
  if info.what == "C" then
    say("C", name)
    found[name] = f
  end
  if info.what ~= "C" and not info.source:find "^@.*%.script%.lua$" then
    say("Lua", (info.source:gsub("^@", "")))
  end
  for i = 1, 255 do
    local up, value = debug.getupvalue(f, i)
    if not up then break end
    later(value, name .. "^" .. (up == "" and i or up))
  end
end

local function locals(co, level, name)
  for _, step in ipairs { 1, -1 } do
    for i = step, 250 * step, step do
      local what, value = debug.getlocal(co, level, i)
      if not what then break end
      later(value, name .. ":" .. what)
    end
  end
end

-- Levels count from the first call, which is the runtime's: deeper ones come and go.
function walk.thread(co, name)
  local depth = 0
  while debug.getinfo(co, depth, "f") do depth = depth + 1 end
  for level = depth - 1, 0, -1 do
    local at = ("%s@%d"):format(name, depth - 1 - level)
    later(debug.getinfo(co, level, "f").func, at)
    locals(co, level, at)
  end
end

local function flush()
  local at = 1
  while todo[at] do
    local x, name = todo[at][1], todo[at][2]
    walk[type(x)](x, name)
    at = at + 1
  end
  todo = {}
end

-- A function of the script that is under way, and by it the script's globals.
local function upvalue(f, wanted)
  for i = 1, 255 do
    local name, value = debug.getupvalue(f, i)
    if not name then return nil end
    if name == wanted then return value, i end
  end
end

local registry = debug.getregistry()
local script
for level = 0, 200 do
  local info = debug.getinfo(under_way, level, "fS")
  if not info then break end
  if info.source:find "^@.*%.script%.lua$" then script = info.func break end
end

for _, x in ipairs { out, done, todo, found, walk, debug, flush, later, say,
  metatable, keys_of, join, upvalue } do
  done[x] = true
end
for _, f in next, debug do done[f] = true end

-- The well-known names come first, then the values below them.
local env = upvalue(script, "_ENV")
local _, modules = debug.getupvalue(select(2, debug.getupvalue(env.require, 1)), 1)
local queue = {}
local function name_all(t, name)
  for _, key in ipairs((keys_of(t))) do
    local value = rawget(t, key)
    if type(value) == "table" and not done[value] and not debug.getmetatable(value) then
      done[value] = true
      queue[#queue + 1] = { value, join(name, tostring(key)) }
      name_all(value, join(name, tostring(key)))
    elseif type(value) == "function" and not done[value] then
      later(value, join(name, tostring(key)))
    end
  end
end
done[queue], done[name_all] = true, true
local held = rawget(env, "HELD")
local collected = rawget(held, "COLLECT")
done[env], done[held] = true, true
if collected then done[collected] = true end
name_all(env, "")
for _, name in ipairs((keys_of(modules))) do
  local module = modules[name]
  if type(module) == "table" and not done[module] then
    done[module] = true
    queue[#queue + 1] = { module, name }
    name_all(module, name)
  end
end
local globals = debug.getregistry()[2]           -- LUA_RIDX_GLOBALS
done[globals] = true
name_all(globals, "_G")
done[modules] = true
for _, entry in ipairs { { modules, "modules" }, { env, "" }, { globals, "_G" } } do
  queue[#queue + 1] = entry
end
metatable(env, "the environment")
for _, entry in ipairs(queue) do todo[#todo + 1] = entry end
flush()

walk.table(held, "HELD")
flush()

-- Then the metatables of the basic types, what runs, and whatever else the state keeps.
for _, x in ipairs { "", 0, false, print, under_way } do metatable(x, type(x) .. "s") end
metatable(nil, "nil")
flush()
later(under_way, "running")
flush()
local rest = {}
done[rest] = true
for key, value in next, registry do
  local called = type(value) == "table" and rawget(value, "__name")
  rest[#rest + 1] = { type(called) == "string" and "<" .. called .. ">"
    or "registry." .. (type(key) == "string" and key or type(key)), value }
end
table.sort(rest, function(a, b) return a[1] < b[1] end)
for _, entry in ipairs(rest) do
  later(entry[2], entry[1])
  flush()
end
done[registry] = true
metatable(registry, "registry")
flush()

for name, f in next, collected and found or {} do collected[name] = f end

return table.concat(out, "\n") .. "\n"
