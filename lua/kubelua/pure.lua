-- pure.lua - a script's functions for its tests: the script is loaded as a module of the test's state, and
-- what its functions can reach is collected by name.

local controller = require "kubelua.controller"
local conversion = require "kubelua.conversion"
local core = require "kubelua.core"
local crd = require "kubelua.crd"
local plain = require "kubelua.plain"
local webhook = require "kubelua.webhook"

local M = {}

local function read(path)
  local file, why = io.open(path, "rb")
  if not file then core.blame(("cannot read %s"):format(why)) end
  local text = file:read "a"
  file:close()
  return text
end

-- Modules beside the script are found first, and are the script's own: another script may have one of the
-- same name.
local function environment(dir, modules, paths)
  local env = setmetatable({}, { __index = _G })
  function env.require(name)
    if modules[name] ~= nil then return modules[name] end
    if name == "kubelua" or name:find "^kubelua%." then return require(name) end
    for _, path in ipairs { dir .. name:gsub("%.", "/") .. ".lua",
      dir .. name:gsub("%.", "/") .. "/init.lua" } do
      local file = io.open(path, "rb")
      if file then
        file:close()
        paths[#paths + 1] = path
        local chunk = assert(load(read(path), "@" .. path, "t", env))
        local value = chunk(name)
        modules[name] = value == nil and true or value
        return modules[name]
      end
    end
    return require(name)
  end
  return env
end

-- Functions by the names under which other functions know them; of two with one name the one found first.
local function collect(value, name, out, seen)
  if seen[value] then return end
  if type(value) == "function" then
    seen[value] = true
    if name and out[name] == nil then out[name] = value end
    for i = 1, 255 do
      local up, v = debug.getupvalue(value, i)
      if not up then break end
      if type(v) == "function" or type(v) == "table" and up ~= "_ENV" then collect(v, up, out, seen) end
    end
  elseif type(value) == "table" and not core.is_view(value) then
    seen[value] = true
    for k, v in next, value do
      if type(v) == "function" then collect(v, type(k) == "string" and k or nil, out, seen) end
    end
  end
end

-- What converts objects of the kind of `o`, of those that the script has defined.
local function converter_of(conversions, o)
  local group = tostring(o.apiVersion):match "^(.*)/"
  for _, c in ipairs(conversions) do
    if c.group == group and c.kind == o.kind then return c end
  end
  core.blame(("the script has no conversion of %s of %s"):format(tostring(o.kind), tostring(o.apiVersion)))
end

--- See kube.testing.pure: convert(object, version).
local function convert(conversions, object, version)
  local o = core.value(object, "the object")
  return conversion.convert(converter_of(conversions, o), o, version)
end

--- See kube.testing.pure: round_trip(object).
local function round_trip(conversions, object)
  local o = core.value(object, "the object")
  local c, from = converter_of(conversions, o), o.apiVersion:match "[^/]+$"
  for _, version in ipairs(c.versions) do
    local there = conversion.convert(c, o, version)
    local back = conversion.convert(c, there, from)
    if not plain.same(o, back) then
      core.blame(("%s changes on the way to %s and back:\n%s"):format(c.at, version,
        plain.diff(o, back)))
    end
  end
end

--- See kube.testing.pure.
function M.load(path)
  local known = {}
  for _, c in ipairs(crd.conversions()) do known[c] = true end
  local modules, paths = {}, {}
  local dir = path:match "^(.*/)" or ""
  local chunk, why = load(read(path), "@" .. path, "t", environment(dir, modules, paths))
  if not chunk then core.blame(why) end
  local returned = chunk()
  local out, seen = {}, { [_G] = true, [package.loaded] = true }
  for _, module in pairs(package.loaded) do
    if type(module) == "table" then
      seen[module] = true
      for _, v in next, module do
        if type(v) == "function" then seen[v] = true end
      end
    end
  end
  local by_name, list, hooks = {}, {}, {}
  local function take(sealed)
    local hook, c = webhook.opened(sealed), controller.opened(sealed)
    if hook then
      hooks[#hooks + 1] = hook
      return collect(hook.decide, hook.mutating and "mutate" or "validate", out, seen)
    end
    if not c then
      -- a list, perhaps of lists
      for _, inner in ipairs(type(sealed) == "table" and sealed or {}) do take(inner) end
      return
    end
    by_name[c.name] = c
    list[#list + 1] = c
    for _, word in ipairs { "reconcile", "finalize" } do
      if type(c[word]) == "function" then collect(c[word], word, out, seen) end
    end
    for _, fn in ipairs(c.functions) do collect(fn, nil, out, seen) end
  end
  take(returned)
  local conversions = {}
  for _, c in ipairs(crd.conversions()) do
    if not known[c] then conversions[#conversions + 1], hooks[#hooks + 1] = c, c end
  end
  local names = {}
  for name in pairs(modules) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    if type(modules[name]) == "table" then collect(modules[name], nil, out, seen) end
  end
  return { controllers = by_name, list = list, webhooks = hooks, functions = out, modules = modules,
    paths = paths,
    convert = function(object, version) return convert(conversions, object, version) end,
    round_trip = function(object) round_trip(conversions, object) end }
end

return M
