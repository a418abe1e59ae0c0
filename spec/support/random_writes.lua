-- random_writes.lua - rows for both.lua: writes of a kind, made by chance from a seed.
--
-- A kind's fields come from the OpenAPI definitions of the project. Each row creates, updates, patches in the
-- four ways, applies or deletes one of two objects, or writes its status; managers, options and preconditions
-- vary. The same seed gives the same rows.

local json = require "dkjson"
local both = require "support.both"
local kinds = require "support.written"
local process = require "support.process"

local M = {}

-- ---------------------------------------------------------------- chance

local function chance_of(seed)
  local state = seed * 2654435761 % 4294967296 + 1
  local function below(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 33) % n
  end
  local self = { below = below }
  function self.one(list) return list[below(#list) + 1] end
  function self.in_ten(n) return below(10) < n end
  return self
end

-- ---------------------------------------------------------------- fields

local definitions, by_resource

-- Fields that are unlike kube-apiserver's when a write sets them: owners of those of a feature that is off,
-- and of list items without their key; checks of volumes that only old clusters have.
local UNLIKE = { terminatingReplicas = true, secrets = true, nodeAllocatableUpdatePeriodSeconds = true,
  configSource = true, gitRepo = true, globalDefault = true, dataSource = true }

-- The keys of a table in order: the same seed picks the same ones.
local function keys_of(t, wanted)
  local keys = {}
  for key in pairs(t) do
    if wanted(key) then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

local function load()
  if definitions then return end
  definitions, by_resource = {}, {}
  for line in assert(process.read "core/openapi/definitions.txt"):gmatch "[^\n]+" do
    local name, text = line:match "^(%S+) ({.*})$"
    if name then
      local definition = json.decode(text)
      definitions[name] = definition
      for _, gvk in ipairs(definition["x-kubernetes-group-version-kind"] or {}) do
        local api = gvk.group == "" and "/api/" .. gvk.version
          or ("/apis/%s/%s"):format(gvk.group, gvk.version)
        local low = gvk.kind:lower()
        for _, plural in ipairs { low, low .. "s", low .. "es", (low:gsub("y$", "ies")) } do
          by_resource[api .. "/" .. plural] = by_resource[api .. "/" .. plural]
            or { definition = definition, kind = gvk.kind, version = api:gsub("^/apis?/", "") }
        end
      end
    end
  end
end

local POLICIES = { "Foreground", "Background", "Orphan", "Nope" }

local function resolved(schema)
  while schema["$ref"] or (schema.allOf and #schema.allOf == 1) do
    local ref = schema["$ref"] or schema.allOf[1]["$ref"]
    schema = assert(definitions[ref:match "[^/]+$"], ref)
  end
  return schema
end

local TEXTS = { "", "a", "b-c", "A_", "x.y/z", "10", "50%", "1Gi", "100m", "2026-01-01T00:00:00Z", "10.0.0.9",
  "None", "Always", "TCP", "/a/b" }
local NUMBERS = { 0, 1, 2, 3, 7, -1, 80, 65536, 2147483647 }

local function value_of(c, schema, depth)
  schema = resolved(schema)
  if schema.enum then return c.one(schema.enum) end
  if schema.oneOf or not schema.type then return c.in_ten(5) and c.one(TEXTS) or c.one(NUMBERS) end
  if schema.type == "string" then
    if schema.format == "date-time" then return "2026-01-01T00:00:00Z" end
    return schema.format == "byte" and "YQ==" or c.one(TEXTS)
  end
  if schema.type == "integer" or schema.type == "number" then return c.one(NUMBERS) end
  if schema.type == "boolean" then return c.in_ten(5) end
  if schema.type == "array" then
    if depth == 0 then return nil end
    local item = value_of(c, schema.items, depth - 1)
    if type(item) == "table" and resolved(schema.items).properties and resolved(schema.items).properties.name
      and c.in_ten(8) then item.name = c.one { "c", "a" } end
    if item == nil then return nil end
    return { item }
  end
  local out = {}
  local names = keys_of(schema.properties or {}, function(name) return not UNLIKE[name] end)
  if schema.additionalProperties and schema.additionalProperties ~= true then
    if c.in_ten(8) then
      out[c.one { "a", "b", "cpu", "memory" }] = value_of(c, schema.additionalProperties, 0)
    end
  elseif #names > 0 then
    for _ = 1, depth == 0 and 1 or c.below(2) + 1 do
      local name = c.one(names)
      local x = value_of(c, schema.properties[name], math.max(depth - 1, 0))
      if x ~= nil then out[name] = x end
    end
  end
  -- What is sent empty moves the generation of some kinds in kube-apiserver; here it does not.
  if next(out) == nil then return nil end
  return out
end

local METADATA = { { labels = { a = "b" } }, { labels = { a = "c", d = "e" } }, { labels = both.NULL },
  { annotations = { x = "y" } }, { annotations = { x = both.NULL } }, { finalizers = { "a.b/c" } },
  { finalizers = both.NULL }, { finalizers = both.NONE }, { generateName = "m-" },
  { ownerReferences = { { apiVersion = "v1", kind = "Pod", name = "x", uid = "u" } } },
  { ownerReferences = both.NONE } }

-- A small part of an object of the kind.
local function part(c, of, status)
  if c.in_ten(3) then return { metadata = both.merge({}, c.one(METADATA)) } end
  local names = keys_of(of.definition.properties, function(name)
    local known = name == "metadata" or name == "apiVersion" or name == "kind"
    return not known and not UNLIKE[name] and (status or name ~= "status" or c.in_ten(1))
  end)
  if #names == 0 then return {} end
  local name = status and of.definition.properties.status and c.in_ten(8) and "status" or c.one(names)
  return { [name] = value_of(c, of.definition.properties[name], c.below(3) + 1) }
end

-- A merge patch as a JSON patch: each scalar, list or null in it is an operation.
local function operations(value, path, out)
  for _, key in ipairs(keys_of(value, function() return true end)) do
    local x, at = value[key], path .. "/" .. tostring(key):gsub("~", "~0"):gsub("/", "~1")
    if type(x) == "table" and x ~= both.NULL and #x == 0 and not getmetatable(x) and next(x) then
      operations(x, at, out)
    else
      local gone = x == both.NULL
      out[#out + 1] = { op = gone and "remove" or "add", path = at, value = not gone and x or nil }
    end
  end
  return out
end

-- ---------------------------------------------------------------- rows

-- In a real cluster without controllers their finalizers stay.
local HELD = { persistentvolumes = true, persistentvolumeclaims = true, volumeattributesclasses = true,
  namespaces = true }

--- Adds `n` writes of the kind to `rows`.
function M.add(rows, kind, ns, seed, n)
  load()
  local c, all = chance_of(seed), kinds.path(kind, ns)
  local of = assert(by_resource[kind[1] .. "/" .. kind[2]], kind[2])
  local function typed(name, more)
    local o = { apiVersion = of.version, kind = of.kind, metadata = { name = name } }
    return both.merge(both.merge(o, kind[3]), more)
  end
  for i = 1, n do
    local name = kinds.name(kind, ns, i > 2 and c.one { "m", "m", "n" } or "m")
    local status = kind[4] and c.in_ten(3)
    local one = all .. "/" .. name .. (status and "/" .. kind[4] or "")
    local query = { "fieldManager=" .. c.one { "a", "a", "b", "c" } }
    if c.in_ten(1) then query[#query + 1] = "dryRun=All" end
    if c.in_ten(1) then query[#query + 1] = "fieldValidation=Strict" end
    local function add(what, method, path, body)
      rows[#rows + 1] = { ("%s %d.%d: %s"):format(kind[2], seed, i, what), method,
        path .. "?" .. table.concat(query, "&"), body, loose = true }
    end
    local what = i == 1 and 0 or c.below(20)
    if what < 2 then
      add("create", "POST", all, typed(name, i > 1 and c.in_ten(7) and part(c, of) or nil))
    elseif what < 6 then
      add(status and "update status" or "update", "PUT", one, typed(name, part(c, of, status)))
    elseif what < 9 then
      add("merge", "PATCH", one, part(c, of, status))
    elseif what < 11 then
      add("strategic", "STRATEGIC", one, part(c, of, status))
    elseif what < 13 then
      add("json", "JSON", one, json.encode(operations(part(c, of, status), "", {})))
    elseif what < 18 then
      if c.in_ten(5) then query[#query + 1] = "force=true" end
      local config = part(c, of, status)
      config.apiVersion, config.kind = of.version, of.kind
      config.metadata = both.merge({ name = name }, config.metadata)
      if c.in_ten(4) and not status then config = both.merge(typed(name), config) end
      add("apply", "APPLY", one, config)
    elseif not HELD[kind[2]] then
      local options = {}
      if c.in_ten(3) then options.propagationPolicy = c.one(POLICIES) end
      if c.in_ten(2) then options.preconditions = c.one { { uid = "x" }, { resourceVersion = "1" } } end
      if c.in_ten(2) then options.gracePeriodSeconds = c.one { 0, 1, 30 } end
      if c.in_ten(1) then options.orphanDependents = c.in_ten(5) end
      one = all .. "/" .. name
      add("delete", "DELETE", one, next(options) and options or nil)
    end
  end
  rows[#rows + 1] = { ("%s %d: left"):format(kind[2], seed), "GET", all .. "?fieldSelector=metadata.name%3D"
    .. kinds.name(kind, ns, "m") }
end

return M
