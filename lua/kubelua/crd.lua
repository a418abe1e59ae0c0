-- crd.lua - kube.crd: the definition of a kind beside the controller that reconciles it.
--
--   local Site = kube.crd { group = "example.com", kind = "Site",
--     schema = kube.schema { spec = { host = "string!" }, status = { ready = "boolean" } } }
--   return kube.controller { name = "sites", resource = Site, ... }
--
-- Definitions stand at the top level of a script. `kubelua gen crds` writes them, `kubelua dev` and
-- kube.testing install them; `kubelua run --install-crds` applies them.

local conversion = require "kubelua.conversion"
local core = require "kubelua.core"
local kinds = require "kubelua.kinds"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.CrdVersion
---@field schema? table           of the whole object, without metadata: kube.schema { spec = { ... }, status = { ... } }
---@field served? boolean         true unless said
---@field storage? boolean        the server keeps objects in it; a single version is that one
---@field status? boolean         the subresource; unless said where the schema has a status
---@field scale? {spec: string, status: string, selector?: string}   paths: ".spec.replicas"
---@field columns? (string|{name?: string, path: string, type?: string, doc?: string, wide?: boolean})[]
---@field deprecated? boolean|string   the warning

---@class kubelua.Crd: kubelua.CrdVersion
---@field group string
---@field kind string
---@field plural? string          the kind in lower case with s or es by default
---@field singular? string
---@field short? string|string[]
---@field categories? string[]
---@field scope? "Namespaced"|"Cluster"   "Namespaced" unless said
---@field version? string         "v1" unless said, of one version
---@field versions? table<string, kubelua.CrdVersion>   by name, instead of the fields of one version
---@field conversion? table<string, kubelua.CrdConversion|string>  by version: from it to the hub and back; hub names that, the stored one unless said

local VERSION_KEYS = { schema = "table", served = "boolean", storage = "boolean", status = "boolean",
  scale = "table", columns = "table", deprecated = "any" }
local KEYS = { group = "string", kind = "string", plural = "string", singular = "string", short = "any",
  categories = "table", scope = "string", version = "string", versions = "table",
  conversion = "table" }
for key, type in pairs(VERSION_KEYS) do KEYS[key] = type end

local declared, order, closed = {}, {}, false
local conversions = {}      -- by the definition's name: what the runtime serves

--- The script is loaded: from now on nothing can be defined.
function M.close() closed = true end

local function fail(crd, fmt, ...)
  core.blame(("kube.crd %s: %s"):format(tostring(crd.kind), fmt:format(...)))
end

local function check_keys(crd, t, keys, where)
  for key, x in pairs(t) do
    if not keys[key] then
      fail(crd, "%sunknown key '%s'%s", where, tostring(key), suggest.hint(key, keys))
    end
    if keys[key] ~= "any" and type(x) ~= keys[key] then
      fail(crd, "%s%s must be a %s, got %s", where, key, keys[key], type(x))
    end
  end
end

local function texts(x) return type(x) == "table" and x or { x } end

local function plural_of(kind)
  local word = kind:lower()
  return word:find "[sxz]$" and word .. "es" or word:find "[^aeiou]y$" and word:sub(1, -2) .. "ies"
    or word .. "s"
end

local COLUMN_TYPES = { integer = true, number = true, boolean = true }

-- What the schema says of a path like ".spec.replicas"; "string" otherwise.
local function type_at(schema, path)
  for name in path:gmatch "[^.]+" do
    schema = type(schema.properties) == "table" and schema.properties[name]
    if type(schema) ~= "table" then return "string" end
  end
  return COLUMN_TYPES[schema.type] and schema.type or "string"
end

local function column_of(crd, schema, column)
  local c = type(column) == "string" and { path = column } or column
  if type(c) ~= "table" or type(c.path) ~= "string" then
    fail(crd, "columns: each must be a path, \".spec.host\", or { name, path, type, doc, wide }")
  end
  local path = c.path:sub(1, 1) == "." and c.path or "." .. c.path
  local last = path:match "([%w_]+)[^%w_]*$" or "value"
  return { name = c.name or last:sub(1, 1):upper() .. last:sub(2), jsonPath = path,
    type = c.type or type_at(schema, path), description = c.doc, priority = c.wide and 1 or nil }
end

local function scale_of(crd, scale)
  if type(scale.spec) ~= "string" or type(scale.status) ~= "string" then
    fail(crd, "scale needs spec and status, the paths of replicas: { spec = \".spec.replicas\", status = \z
      \".status.replicas\" }")
  end
  return { specReplicasPath = scale.spec, statusReplicasPath = scale.status,
    labelSelectorPath = scale.selector }
end

local function version_of(crd, name, v, alone)
  local schema = v.schema and core.plain(v.schema, "kube.crd: schema")
    or { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true }
  if schema.type ~= "object" then
    fail(crd, "versions.%s.schema must describe the whole object: kube.schema { spec = { ... } }", name)
  end
  local status = v.status
  if status == nil then status = schema.properties ~= nil and schema.properties.status ~= nil end
  local sub = {}
  if status then sub.status = core.object {} end
  if v.scale then sub.scale = scale_of(crd, v.scale) end
  local columns = {}
  for i, column in ipairs(v.columns or {}) do columns[i] = column_of(crd, schema, column) end
  if #columns > 0 then
    columns[#columns + 1] = { name = "Age", jsonPath = ".metadata.creationTimestamp", type = "date" }
  end
  return {
    name = name, served = v.served ~= false, storage = v.storage or alone or false,
    schema = { openAPIV3Schema = schema }, subresources = next(sub) and sub or nil,
    additionalPrinterColumns = #columns > 0 and columns or nil,
    deprecated = v.deprecated and true or nil,
    deprecationWarning = type(v.deprecated) == "string" and v.deprecated or nil,
  }
end

local function versions_of(crd)
  if not crd.versions then
    return { version_of(crd, crd.version or "v1", crd, true) }
  end
  for key in pairs(VERSION_KEYS) do
    if crd[key] ~= nil then fail(crd, "%s must be in one of the versions", key) end
  end
  local names, out, stored = {}, {}, nil
  for name, v in pairs(crd.versions) do
    if type(name) ~= "string" or type(v) ~= "table" then
      fail(crd, "versions must be tables by name: { v1 = { storage = true, schema = ... } }")
    end
    check_keys(crd, v, VERSION_KEYS, ("versions.%s: "):format(name))
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    if not name:find "^v%d+%l*%d*$" then
      fail(crd, "versions: a name must be like v1 or v1beta1, got %q", name)
    end
    out[i] = version_of(crd, name, crd.versions[name], #names == 1)
    if out[i].storage then
      if stored then fail(crd, "versions: %s and %s both have storage = true", stored, name) end
      stored = name
    end
  end
  if #out == 0 then fail(crd, "versions is empty") end
  if not stored then fail(crd, "versions: one of them needs storage = true") end
  return out
end

local function conversion_of(crd, name, versions, stored)
  local names = {}
  for i, v in ipairs(versions) do names[i] = v.name end
  if #names < 2 then
    fail(crd, "conversion is between versions: versions = { v1 = { ... }, v1beta1 = { ... } }")
  end
  local made = conversion.declare(function(fmt, ...) fail(crd, fmt, ...) end, name, crd.conversion, names,
    stored)
  made.group, made.kind = crd.group, crd.kind
  return made
end

--- Defines a kind, and returns it: "example.com/v1/Site", of the version that is stored.
---@param crd kubelua.Crd
---@return string kind
function M.crd(crd)
  if type(crd) ~= "table" then core.blame(("kube.crd takes a table, got %s"):format(type(crd))) end
  if closed then
    fail(crd, "call it at the top level of a script, so that it is known before the script runs")
  end
  check_keys(crd, crd, KEYS, "")
  if not crd.kind or not crd.kind:find "^%u%w*$" then
    fail(crd, "kind must be a word such as \"Site\", got %s", tostring(crd.kind))
  end
  if not crd.group or not crd.group:find "%." or core.name_problem("dns1123_subdomain", crd.group) then
    fail(crd, "group must be a domain such as \"example.com\", got %s", tostring(crd.group))
  end
  local scope = crd.scope or "Namespaced"
  if scope ~= "Namespaced" and scope ~= "Cluster" then
    fail(crd, "scope must be \"Namespaced\" or \"Cluster\", got %q", scope)
  end
  local plural = crd.plural or plural_of(crd.kind)
  local versions, kind = versions_of(crd), nil
  for _, v in ipairs(versions) do
    if v.storage then kind = ("%s/%s/%s"):format(crd.group, v.name, crd.kind) end
  end
  local name = plural .. "." .. crd.group
  conversions[name] = crd.conversion and conversion_of(crd, name, versions, kind:match "([^/]+)/[^/]+$")
    or nil
  if not declared[name] then order[#order + 1] = name end
  local short, singular = crd.short and texts(crd.short) or nil, crd.singular or crd.kind:lower()
  kinds.define(kind, { plural, singular, table.unpack(short or {}) })
  declared[name] = core.value({
    apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = name },
    spec = {
      group = crd.group, scope = scope,
      names = { kind = crd.kind, listKind = crd.kind .. "List", plural = plural,
        singular = singular, shortNames = short,
        categories = crd.categories },
      versions = versions,
    },
  }, "kube.crd")
  return kind
end

--- What the script has defined: CustomResourceDefinitions; nil: none.
function M.declared()
  local out = {}
  for i, name in ipairs(order) do out[i] = declared[name] end
  return #out > 0 and core.value(core.array(out), "definitions") or nil
end

--- The conversion webhooks of their objects, in the order of the definitions.
function M.conversions()
  local out = {}
  for _, name in ipairs(order) do out[#out + 1] = conversions[name] end
  return out
end

return M
