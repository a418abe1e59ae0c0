-- gen/main.lua - kubelua gen: turns definitions into a directory of Lua modules.
--
-- Nothing is written before everything has been read and understood, and a file that kubelua gen did not
-- write is never changed.

local fold = require "kubelua.gen.fold"
local model = require "kubelua.gen.model"
local write = require "kubelua.gen.write"

local M = {}

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function save(path, text)
  local file, why = io.open(path, "wb")
  if not file then error("cannot write " .. why, 0) end
  local ok
  ok, why = file:write(text)
  if not (ok and file:close()) then error(("cannot write %s: %s"):format(path, tostring(why)), 0) end
end

local function is_ours(text) return text:sub(1, #write.MARK) == write.MARK end

-- "koordinator" or "my.koordinator": the argument of require.
local function module_name(options)
  local name = options.name or options.out:gsub("/+$", ""):match "[^/]+$" or ""
  for part in (name .. "."):gmatch "(.-)%." do
    if not part:find "^[%a_][%w_]*$" then
      error(("%q is not a name of a module: give one with --name, such as --name myproject.crds")
        :format(name),
        0)
    end
  end
  return name
end

local function from_cluster(options, name)
  local c <close> = require("kubelua").connect(options.connect)
  return require("kubelua.gen.cluster").library(name, c, options.groups)
end

local function from_files(options, name)
  local library = require("kubelua.gen.crds").library(name, options.paths)
  library.from = "CustomResourceDefinitions"
  return library
end

-- Files that an earlier run wrote and this one does not: the groups that its init.lua names.
local function stale(options, files)
  local list = {}
  local former = read(options.out .. "/init.lua")
  if not former or not is_ours(former) then return list end
  for accessor in former:gmatch "%-%-%-@field ([%w_]+) [%w_.]+%.Builders" do
    local name = accessor .. ".lua"
    local text = not files[name] and read(options.out .. "/" .. name)
    if text and is_ours(text) then list[#list + 1] = name end
  end
  return list
end

local function count(library)
  local resources, types = 0, 0
  for _, group in pairs(library.groups) do
    for _ in pairs(group.resources) do resources = resources + 1 end
    for _ in pairs(group.types) do types = types + 1 end
  end
  return resources, types
end

--- options: paths (of CRDs), or connect and groups (a set, or nil for all); out, name, lazy, attribution;
--- also (names of modules beside the generated ones that the library shows as its own); make_dir(path).
--- Returns a sentence about what was done, and notes.
---@param options table
---@return string summary, string[] notes
function M.run(options)
  local name = module_name(options)
  local library = options.paths and from_files(options, name) or from_cluster(options, name)
  library.lazy, library.also = options.lazy, options.also or {}
  library.attribution = options.attribution and "-- " .. options.attribution:gsub("\n", "\n-- ")
  fold.fold(library)
  local files = write.files(library)
  options.make_dir(options.out)
  local changed, old = {}, stale(options, files)
  for _, file in ipairs(model.sorted(files)) do
    local path = options.out .. "/" .. file
    local text = read(path)
    if text and not is_ours(text) then
      error(("%s was not generated and would be overwritten: choose another --out, or remove it"):format(
        path), 0)
    end
    if text ~= files[file] then changed[#changed + 1] = file end
  end
  for _, file in ipairs(changed) do save(options.out .. "/" .. file, files[file]) end
  for _, file in ipairs(old) do os.remove(options.out .. "/" .. file) end
  local resources, types = count(library)
  return ("%s: %d resources and %d types in %d groups; %d files written, %d unchanged, %d removed"):format(
    options.out, resources, types, #model.sorted(library.groups), #changed, #model.sorted(files) - #changed,
    #old), library.notes
end

return M
