-- gen/cluster.lua - makes a library from a live API server: discovery has the resources and their verbs,
-- OpenAPI v3 the types.

local crds = require "kubelua.gen.crds"
local kube = require "kubelua"
local model = require "kubelua.gen.model"
local schema = require "kubelua.gen.schema"

local M = {}

-- Types whose JSON differs from their schema, by the end of their name.
local SPECIAL = {
  ["api.resource.Quantity"] = { k = "quantity" },
  ["util.intstr.IntOrString"] = { k = "int_or_string" },
  ["meta.v1.Time"] = { k = "time" },
  ["meta.v1.MicroTime"] = { k = "time" },
  ["meta.v1.FieldsV1"] = { k = "object" },
  ["pkg.runtime.RawExtension"] = { k = "object" },
}

local function special(name)
  for ending, of in pairs(SPECIAL) do
    if name:sub(-#ending) == ending then return of end
  end
end

-- ---------------------------------------------------------------- what the server has

local function group_versions(c, wanted)
  local list = {}
  local function add(group, version)
    if not wanted or wanted[group == "" and "core" or group] then
      list[#list + 1] = { group = group, version = version,
        path = group == "" and "api/" .. version or ("apis/%s/%s"):format(group, version) }
    end
  end
  local known = { core = true }
  add("", "v1")
  for _, group in ipairs(c:raw("GET", "/apis").groups) do
    known[group.name] = true
    for _, version in ipairs(group.versions) do add(group.name, version.version) end
  end
  for group in pairs(wanted or {}) do
    if not known[group] then
      error(("the server has no API group %q%s"):format(group, require("kubelua.suggest").hint(group, known)),
        0)
    end
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  return list
end

-- The resources of one group and version, with their subresources; nil when its server is down.
local function resources(c, at, library)
  local answer, err = kube.try(c.raw, c, "GET", "/" .. at.path)
  if not answer then
    library.notes[#library.notes + 1] = ("%s is left out: %s"):format(at.path,
      tostring(err and err.message or err))
    return nil
  end
  local by_plural, below = {}, {}
  for _, r in ipairs(answer.resources) do
    local plural, subresource = r.name:match "^([^/]+)/(.+)$"
    if plural then
      below[#below + 1] = { plural = plural, name = subresource, kind = r.kind, group = r "group",
        version = r "version" }
    else
      by_plural[r.name] = {
        kind = r.kind, plural = r.name, namespaced = r.namespaced, verbs = {}, short_names = {},
        subresources = {},
      }
      for _, verb in ipairs(r "verbs" or {}) do table.insert(by_plural[r.name].verbs, verb) end
      for _, word in ipairs(r "shortNames" or {}) do table.insert(by_plural[r.name].short_names, word) end
      table.sort(by_plural[r.name].verbs)
    end
  end
  for _, s in ipairs(below) do
    if by_plural[s.plural] then table.insert(by_plural[s.plural].subresources, s.name) end
  end
  for _, r in pairs(by_plural) do table.sort(r.subresources) end
  at.resources, at.below = by_plural, below
  return by_plural
end

-- ---------------------------------------------------------------- types

-- "group/version/Kind" -> name of the schema, in one document.
local function kinds_of(document)
  local by_kind = {}
  for name, part in pairs(document) do
    local gvks = part "x-kubernetes-group-version-kind"
    if gvks and #gvks == 1 then
      by_kind[("%s/%s/%s"):format(gvks[1].group or "", gvks[1].version or "", gvks[1].kind)] = name
    end
  end
  return by_kind
end

-- Where a named schema lives: io.k8s.api.core.v1.PodSpec -> core_v1, PodSpec; what belongs to no group
-- stays where it was found.
local function home(library, known, group, name)
  local word, version, last = name:match "([%w_-]+)%.(v%d%w*)%.([%w_-]+)$"
  if word == "meta" or word and known[word .. "_" .. version] then
    return model.group(library, word, version), last
  end
  return group, (last or name:match "[^.]+$"):gsub("[^%w]", "_")
end

local function resolver(library, known, group, document, path)
  local at = { what = path }
  local resolve

  local function named(name)
    local fixed = special(name)
    if fixed then return fixed end
    local part = document[name]
    if not part then error(("%s: the OpenAPI document has no schema %s"):format(path, name), 0) end
    local properties = part "properties"
    if not properties then
      return schema.convert({ group = group, what = path, ref = resolve }, part, name:match "[^.]+$")
    end
    local owner, last = home(library, known, group, name)
    owner.named = owner.named or {}
    local mine = owner.named[name]
    if not mine then
      local gvks = part "x-kubernetes-group-version-kind"
      mine = model.unique(owner, last)
      owner.named[name], owner.types[mine] = mine, { fields = {} }
      local inner = { group = owner, what = path, ref = resolve }
      if gvks and #gvks == 1 and properties("metadata") then
        inner.override = crds.override
        owner.types[mine] = crds.complete(schema.class(inner, part, mine))
      else
        owner.types[mine] = schema.class(inner, part, mine)
      end
      owner.sources[library.from] = true
    end
    return { k = "class", group = owner, name = mine }
  end

  function resolve(ref) return named(ref:match "^#/components/schemas/(.+)$" or ref) end
  at.named = named
  return at
end

local function index_of(c)
  local ok, index = pcall(c.raw, c, "GET", "/openapi/v3")
  if not ok then
    error("the server has no OpenAPI v3 (Kubernetes 1.24 and newer have it): "
      .. tostring(index.message or index), 0)
  end
  return index
end

local MOVED, TRIES = 301, 5

-- Returns the OpenAPI document of a group version, or nil, and the index, which may be newer than the given
-- one: addresses have a hash of the document, and a server redirects from those of older documents.
local function document_of(c, index, path)
  for try = 1, TRIES do
    local entry = index("paths", path)
    if not entry then return nil, index end
    local document, err = kube.try(c.raw, c, "GET", entry.serverRelativeURL)
    if document then return document, index end
    if err.code ~= MOVED or try == TRIES then error(err, 0) end
    index = index_of(c)
  end
end

local function add(library, at, group, known, published)
  local document = published("components", "schemas")
  if not document then
    library.notes[#library.notes + 1] = at.path .. " is left out: its OpenAPI document has no schemas"
    return
  end
  local by_kind = kinds_of(document)
  local types = resolver(library, known, group, document, at.path)
  for _, plural in ipairs(model.sorted(at.resources)) do
    local r = at.resources[plural]
    local name = by_kind[("%s/%s/%s"):format(at.group, at.version, r.kind)]
    local type_name
    if name and document[name] "properties" then
      type_name = types.named(name).name
    else
      -- A kind without published fields (a CRD that preserves unknown fields) accepts anything.
      type_name = crds.add_kind(group, at.path, r.kind, name and document[name] or kube.decode "{}")
    end
    r.type, r.name = type_name, r.kind
    r.kind = (at.group == "" and "" or at.group .. "/") .. at.version .. "/" .. r.kind
    group.resources[plural] = r
  end
  for _, s in ipairs(at.below) do
    local name = by_kind[("%s/%s/%s"):format(s.group or at.group, s.version or at.version, s.kind)]
    if name then types.named(name) end
  end
  group.sources[library.from] = true
end

--- A library named `name` of the resources of client `c`'s server; `wanted` is a set of groups ("core" is the
--- group without a name), nil means all.
---@param name string
---@param c kubelua.Client
---@param wanted table<string, true>?
---@return table
function M.library(name, c, wanted)
  local library = model.new(name)
  library.from = "the OpenAPI v3 of Kubernetes " .. tostring(c:version().gitVersion)
  local list, kinds = {}, {}
  for _, at in ipairs(group_versions(c, wanted)) do
    if resources(c, at, library) then
      list[#list + 1] = at
      kinds[at.group] = kinds[at.group] or {}
      kinds[at.group][at.version] = {}
      for plural, r in pairs(at.resources) do
        kinds[at.group][at.version][r.kind], kinds[at.group][at.version][plural] = true, true
      end
    end
  end
  local words, known = model.words(kinds), {}
  for _, at in ipairs(list) do known[words[at.group] .. "_" .. at.version] = true end
  local index = index_of(c)
  for _, at in ipairs(list) do
    local document
    document, index = document_of(c, index, at.path)
    if document then
      add(library, at, model.group(library, words[at.group], at.version), known, document)
    else
      library.notes[#library.notes + 1] = at.path .. " is left out: the server has no OpenAPI document of it"
    end
  end
  return library
end

return M
