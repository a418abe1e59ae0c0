-- gen.lua - kubelua gen: typed clientsets from CustomResourceDefinitions, or from a live server (kubelua.gen
-- does the work).

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local main = require "kubelua.gen.main"

local M = {}

M.options = {
  { "--crds", "FILE|DIR", "read CustomResourceDefinitions from here (may be repeated)", type = "list" },
  { "--from-cluster", nil, "read the API of the cluster, built-in groups included", type = "flag" },
  { "--groups", "GROUP,...", "read only these API groups of the cluster; the core group is called core" },
  { "--out", "DIR", "write the modules here, or with crds the file (stdout)" },
  { "--name", "MODULE", "the name for require (the last part of --out)" },
  { "--lazy", nil, "load a group when it is first used (not for modules beside a controller script)",
    type = "flag" },
  { "--also", "NAME", "your own module in --out, which the library exports under its name (may be repeated)",
    type = "list" },
  { "--attribution", "TEXT", "a comment for the top of every file" },
}

local function paths(env)
  local list = {}
  for _, path in ipairs(env.options.crds) do
    local found, why = core.files((path:gsub("(.)/+$", "%1")))
    if not found then error(("cannot read %s: %s"):format(path, why), 0) end
    if #found == 0 then error(("%s has no file that ends in .yaml, .yml or .json"):format(path), 0) end
    table.move(found, 1, #found, #list + 1, list)
  end
  return list
end

-- kubelua gen crds: the definitions that scripts bring, as YAML.
local function definitions(env)
  local o = env.options
  local scripts = table.move(env.words, 2, #env.words, 1, {})
  if #scripts == 0 then common.usage "name the scripts: kubelua gen crds SCRIPT.lua..." end
  local parts, seen = {}, {}
  for _, program in ipairs((env.programs(scripts, {}))) do
    if program.error then error(program.error, 0) end
    for _, definition in ipairs(program.crds or {}) do
      local text = core.to_yaml(definition):gsub("\n+$", "") .. "\n"
      if not seen[text] then parts[#parts + 1] = text end
      seen[text] = true
    end
  end
  if #parts == 0 then
    error(("%s: found no definition, such as kube.crd { ... }"):format(table.concat(scripts, ", ")), 0)
  end
  local text = table.concat(parts, "---\n")
  if not o.out then
    io.write(text)
    return 0
  end
  local file, why = io.open(o.out, "wb")
  if not file then error("cannot write " .. why, 0) end
  local ok
  ok, why = file:write(text)
  if not (ok and file:close()) then error(("cannot write %s: %s"):format(o.out, tostring(why)), 0) end
  return 0
end

function M.run(env)
  local o = env.options
  if env.words[1] == "crds" then return definitions(env) end
  if #env.words > 0 then
    common.usage("takes no arguments, got %s (definitions are read with --crds)", env.words[1])
  end
  if not o.crds and not o.from_cluster then
    common.usage "give the definitions: --crds DIR, or --from-cluster"
  end
  if o.crds and o.from_cluster then common.usage "--crds and --from-cluster exclude each other" end
  if not o.out then common.usage "name the directory for the modules: --out DIR" end
  if o.groups and not o.from_cluster then common.usage "--groups needs --from-cluster" end
  local wanted
  for group in (o.groups or ""):gmatch "[^,%s]+" do
    wanted = wanted or {}
    wanted[group] = true
  end
  for _, name in ipairs(o.also or {}) do
    if not name:find "^%l[%w_]*$" then
      common.usage("--also takes the name of a module in lower case, not %q", name)
    end
  end
  local summary, notes = main.run {
    paths = o.crds and paths(env), connect = env.connect, groups = wanted, out = o.out, name = o.name,
    lazy = o.lazy,
    attribution = o.attribution, also = o.also,
    make_dir = function(path)
      local made, why = env.make_dir(path)
      if not made then error(why, 0) end
    end,
  }
  for _, note in ipairs(notes) do common.complain(env, "%s", note) end
  print(summary)
  return 0
end

return M
