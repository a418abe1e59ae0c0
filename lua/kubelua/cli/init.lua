-- init.lua - kubelua init: a project to begin with, whose check and tests pass.

local annotations = require "kubelua.cli.annotations"
local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local deployment = require "kubelua.deployment"
local object = require "kubelua.object"
local project = require "kubelua.project"
local rbac = require "kubelua.rbac"
local roles = require "kubelua.cli.rbac"

local M = {}

M.no_cluster = true
M.options = {
  { "--kind", "GROUP/VERSION/KIND",
    "the kind it reconciles: a new one such as example.com/v1/Widget, or an existing one such as \z
      apps/v1/Deployment (v1/ConfigMap)" },
  { "--plural", "WORD", "the plural of that kind, if it is irregular" },
  { "--dir", "DIR", "write it there (a directory called NAME)" },
  { "--namespace", "NAME", "the namespace it will run in (NAME-system)", brief = "-n" },
}

local function kind_of(text, plural, client)
  local api, word = text:match "^(.+)/([^/]+)$"
  local group, version = (api or ""):match "^([%w.-]+)/(v%w+)$"
  if not group then group, version = "", (api or ""):match "^(v%w+)$" end
  if not version or not word:find "^%u%w*$" then
    common.usage("--kind must be group/version/Kind such as example.com/v1/Widget, or v1/Kind of the core \z
      group, not %q", text)
  end
  local ok, r = pcall(client.resource, client, text)
  if ok then
    return { group = group, version = version, kind = word, plural = r.plural, custom = false,
      namespaced = r.namespaced }
  end
  if not group:find "%." then
    common.usage("--kind: %q is not a built-in kind, and a custom group must contain a dot: \z
      example.com/v1/%s", text, word)
  end
  local guess = rbac.resolver(client)(text)
  return { group = group, version = version, kind = word, plural = plural or guess.plural, custom = true,
    namespaced = true }
end

local function connect(stage)
  return require "kubelua.client".connect { server = stage:url(), cache_dir = false, on_warning = "none" }
end

-- Whether a server takes the object that the test would make.
local function takes(stage, text, namespaced)
  local o = assert(load(("return { kind = %q, name = 'a', namespace = %s%s }"):format(text,
    namespaced and "'default'" or "nil", project.body(text))))()
  return (pcall(stage.load, stage, core.value(object.normalize(o, "init"), "the object")))
end

local function write(path, text)
  local file, why = io.open(path, "wb")
  if not file then error("cannot write " .. why, 0) end
  local good, problem = file:write(text)
  file:close()
  if not good then error(("cannot write %s: %s"):format(path, problem), 0) end
end

function M.run(env)
  local o, name = env.options, env.words[1]
  if not name then common.usage "give it a name: kubelua init NAME" end
  if env.words[2] then common.usage("one name is enough, got %s", table.concat(env.words, " ")) end
  if #name > 50 or not name:find "^%l[-%l%d]*$" or name:find "-$" then
    common.usage("a name must consist of at most 50 lower case letters, digits and -, and start with a \z
      letter: not %q", name)
  end
  local stage = core.stage(0)
  local client = connect(stage)
  local kind = kind_of(o.kind or "v1/ConfigMap", o.plural, client)
  if not kind.custom then kind.testable = takes(stage, o.kind or "v1/ConfigMap", kind.namespaced) end
  local dir, namespace = o.dir or name, o.namespace or name .. "-system"
  local there = core.tree(dir, "")
  if there and #there > 0 then
    error(("%s is not empty (%s): choose another --dir"):format(dir, there[1]), 0)
  end
  local files, paths = project.files(name, kind, namespace), {}
  for path in pairs(files) do paths[#paths + 1] = path end
  table.sort(paths)
  for _, sub in ipairs { "/deploy", "/.github/workflows", kind.custom and "/crds" or nil } do
    local made, why = env.make_dir(dir .. sub)
    if not made then error(why, 0) end
  end
  for _, path in ipairs(paths) do write(dir .. "/" .. path, files[path]) end
  if kind.custom then stage:load_path(dir .. "/crds") end
  client = connect(stage)            -- who knows nothing of the server as it was
  local objects = roles.objects_of(env, { dir .. "/" .. name .. ".lua" },
    { name = name, namespace = namespace, bind = true, leader_elect = true }, client)
  -- The reasons of rules name files as one sees them within the project.
  local script = name .. ".lua"
  local seen = (dir .. "/" .. script):gsub("%p", "%%%0")
  local manifests = deployment.yaml { name = name, namespace = namespace, lease = name, scripts = { script },
    objects = objects }:gsub(seen, script)
  write(dir .. "/deploy/manifests.yaml", manifests)
  paths[#paths + 1] = "deploy/manifests.yaml"
  for _, path in ipairs(paths) do print("wrote " .. dir .. "/" .. path) end
  annotations.write(env, dir .. "/.annotations")
  print(("wrote %s/.annotations for the editor"):format(dir))
  print(("\n  cd %s && kubelua test\n  kubelua dev %s.lua%s"):format(dir, name,
    kind.custom and " --crds crds" or ""))
  return 0
end

return M
