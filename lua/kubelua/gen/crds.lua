-- gen/crds.lua - generates a library from files with CustomResourceDefinitions.

local kube = require "kubelua"
local model = require "kubelua.gen.model"
local schema = require "kubelua.gen.schema"

local M = {}

local DEFINITION = "CustomResourceDefinition"

-- ---------------------------------------------------------------- reading

local function read(path)
  local file, why = io.open(path, "rb")
  if not file then error("cannot read " .. why, 0) end
  local text = file:read "a"
  file:close()
  if not text then error(("cannot read %s"):format(path), 0) end
  return text
end

-- Adds every definition in a file to `out`, and a note for every other object to the library.
local function definitions(library, path, out)
  local ok, documents = pcall(kube.yaml, read(path), path)
  if not ok then
    error(("%s: %s"):format(path, (tostring(documents.message
      or documents):gsub("^" .. path:gsub("%p", "%%%0") .. ":? ?", ""))), 0)
  end
  local function add(o)
    if type(o) ~= "userdata" or type(o "kind") ~= "string" then
      library.notes[#library.notes + 1] = path .. ": a document that is not a Kubernetes object is left out"
    elseif o "kind" == "List" or o "kind" == DEFINITION .. "List" then
      for _, item in ipairs(model.items(o "items")) do add(item) end
    elseif o.kind ~= DEFINITION then
      library.notes[#library.notes + 1] =
        ("%s: a %s is left out: a library has only CustomResourceDefinitions"):format(path, o.kind)
    else
      out[#out + 1] = { path = path, o = o, name = tostring(o "metadata.name" or "?") }
    end
  end
  for _, document in ipairs(documents) do add(document) end
end

-- ---------------------------------------------------------------- checking

local function need(at, path)
  local value = at.o(path)
  if type(value) ~= "string" or value == "" then
    error(("%s: %s %s has no %s"):format(at.path, DEFINITION, at.name, path), 0)
  end
  return value
end

local function check(at)
  local api = at.o "apiVersion"
  if api ~= "apiextensions.k8s.io/v1" then
    error(("%s: %s %s has apiVersion %s; Kubernetes serves only apiextensions.k8s.io/v1 since 1.22: \z
      convert it to that version"):format(at.path, DEFINITION, at.name, tostring(api)), 0)
  end
  at.group, at.kind, at.plural, at.scope = need(at, "spec.group"), need(at, "spec.names.kind"),
    need(at, "spec.names.plural"), need(at, "spec.scope")
  if at.scope ~= "Namespaced" and at.scope ~= "Cluster" then
    error(("%s: %s %s: spec.scope must be Namespaced or Cluster, got %s"):format(at.path, DEFINITION, at.name,
      at.scope), 0)
  end
  if not at.kind:find "^%u%w*$" then
    error(("%s: %s %s: spec.names.kind must begin with an upper-case letter and have only letters and \z
      digits, such as Widget; got %q"):format(at.path, DEFINITION, at.name, at.kind), 0)
  end
  if not at.plural:find "^%l[%l%d-]*$" then
    error(("%s: %s %s: spec.names.plural must be lower case, such as widgets; got %q"):format(at.path,
      DEFINITION, at.name, at.plural), 0)
  end
  if at.name ~= at.plural .. "." .. at.group then
    error(("%s: metadata.name must be \"%s.%s\" (plural and group), got %q"):format(at.path, at.plural,
      at.group, at.name), 0)
  end
  local versions = model.items(at.o "spec.versions")
  if #versions == 0 then error(("%s: %s %s has no spec.versions"):format(at.path, DEFINITION, at.name), 0) end
  at.versions = {}
  local known = {}
  for i, version in ipairs(versions) do
    local name = type(version) == "userdata" and version "name"
    if type(name) ~= "string" or not name:find "^%l[%l%d]*$" then
      error(("%s: %s %s: spec.versions[%d].name must be a version such as v1 or v1beta1"):format(at.path,
        DEFINITION, at.name, i), 0)
    end
    if known[name] then
      error(("%s: %s %s lists version %s twice"):format(at.path, DEFINITION, at.name, name), 0)
    end
    known[name] = true
    if version "served" == true then
      if not version "schema.openAPIV3Schema" then
        error(("%s: %s %s: version %s has no schema.openAPIV3Schema, so its fields are unknown; the schema \z
          { type: object, x-kubernetes-preserve-unknown-fields: true } allows any field"):format(at.path,
          DEFINITION, at.name, name), 0)
      end
      at.versions[#at.versions + 1] = version
    end
  end
  if #at.versions == 0 then
    error(("%s: %s %s serves none of its versions"):format(at.path, DEFINITION, at.name), 0)
  end
end

-- ---------------------------------------------------------------- converting

local TYPE_META = { apiVersion = { k = "string" }, kind = { k = "string" }, metadata = { k = "metadata" } }
local ALWAYS = { "apiVersion", "kind", "metadata" }

--- The type of a field that every object has at its top level; nil for other fields.
function M.override(field) return TYPE_META[field] end

--- Adds those fields to the type of a kind where its schema does not have them.
function M.complete(type_)
  local known = {}
  for _, field in ipairs(type_.fields) do known[field.name] = field end
  for i, name in ipairs(ALWAYS) do
    if not known[name] then table.insert(type_.fields, i, { name = name, type = TYPE_META[name] }) end
  end
  table.sort(type_.fields, function(a, b) return a.name < b.name end)
  for _, field in ipairs(type_.fields) do
    if TYPE_META[field.name] then field.required, field.doc = true, nil end
  end
  return type_
end

--- Adds the type of a kind, read from its schema, to the group, and returns the type's unique name.
function M.add_kind(group, what, kind, description)
  local name = model.unique(group, kind)
  local at = { group = group, what = what, override = M.override }
  local type_
  if type(description) == "userdata" and type(description "properties") == "userdata" then
    local ok
    ok, type_ = pcall(schema.class, at, description, name)
    if not ok then error(("%s: the schema is not valid: %s"):format(what, tostring(type_)), 0) end
  elseif type(description) ~= "userdata" then
    error(("%s: schema.openAPIV3Schema must be an object, got %s"):format(what, tostring(description)), 0)
  else
    type_ = { doc = model.doc(description "description"), fields = {}, open = true }
  end
  group.types[name] = M.complete(type_)
  return name
end

local function columns(version)
  local list = {}
  for _, column in ipairs(model.items(version "additionalPrinterColumns")) do
    if type(column) == "userdata" and type(column "name") == "string" then list[#list + 1] = column.name end
  end
  return list
end

local function strings(list)
  local out = {}
  for _, word in ipairs(model.items(list)) do
    if type(word) == "string" then out[#out + 1] = word end
  end
  return out
end

local function add(library, words, at)
  for _, version in ipairs(at.versions) do
    local group = model.group(library, words[at.group], version.name)
    local what = ("%s: %s %s, version %s"):format(at.path, DEFINITION, at.name, version.name)
    local subresources = {}
    for _, name in ipairs { "status", "scale" } do
      if version("subresources", name) ~= nil then subresources[#subresources + 1] = name end
    end
    group.resources[at.plural] = {
      kind = ("%s/%s/%s"):format(at.group, version.name, at.kind), name = at.kind,
      namespaced = at.scope == "Namespaced",
      subresources = subresources, short_names = strings(at.o "spec.names.shortNames"),
      columns = columns(version),
      deprecated = version "deprecated" == true and tostring(version "deprecationWarning" or "deprecated")
      or nil,
      type = M.add_kind(group, what, at.kind, version "schema.openAPIV3Schema"), plural = at.plural,
    }
    group.sources[at.path:match "[^/]+$"] = true
  end
end

--- The library `name` with the definitions in these files.
---@param name string
---@param paths string[]
---@return table
function M.library(name, paths)
  local library, all = model.new(name), {}
  for _, path in ipairs(paths) do definitions(library, path, all) end
  if #all == 0 then
    error(("no %s in %s"):format(DEFINITION, #paths == 0 and "the input: no file ends in .yaml, .yml or .json"
      or table.concat(paths, ", ")), 0)
  end
  table.sort(all, function(a, b) return a.name < b.name or a.name == b.name and a.path < b.path end)
  local kinds = {}
  for i, at in ipairs(all) do
    check(at)
    if i > 1 and all[i - 1].name == at.name then
      error(("%s: %s %s is already defined in %s"):format(at.path, DEFINITION, at.name, all[i - 1].path), 0)
    end
    kinds[at.group] = kinds[at.group] or {}
    for _, version in ipairs(at.versions) do
      kinds[at.group][version.name] = kinds[at.group][version.name] or {}
      kinds[at.group][version.name][at.kind] = true
      kinds[at.group][version.name][at.plural] = true
    end
  end
  local words = model.words(kinds)
  for _, at in ipairs(all) do add(library, words, at) end
  return library
end

return M
