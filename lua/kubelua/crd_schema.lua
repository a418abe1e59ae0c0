-- crd_schema.lua - kube.schema: makes the OpenAPI v3 schema of a CustomResourceDefinition from a shorter
-- form.
--
--   kube.schema {
--     host = "string!",                                    -- needed
--     ttl = { "integer", default = 300, min = 60, doc = "seconds" },
--     tags = "string[]", labels = "string{}",
--     ports = { { name = "string!", port = "integer!" }, list = true, key = "name" },
--     backup = { schedule = "string", keep = "integer" },  -- an object of these
--   }

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.SchemaField   [1] is a type ("string", "integer!", "string[]", ...) or a table of fields
---@field required? boolean      the same as ! behind the type
---@field default? any
---@field doc? string
---@field enum? any[]
---@field format? string
---@field pattern? string        a regular expression as Go has them
---@field min? number            of numbers
---@field max? number
---@field min_length? integer    of texts
---@field max_length? integer
---@field min_items? integer     of lists
---@field max_items? integer
---@field list? boolean          a list of [1]
---@field map? boolean           an object with any names, each of [1]
---@field key? string|string[]   of a list of objects: what names an item; the server merges it by that
---@field set? boolean           of a list: each value once
---@field nullable? boolean
---@field immutable? boolean     it stays what it was
---@field rules? {rule: string, message?: string}[]   expressions (CEL) over self and oldSelf

local DIGITS = "(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))"

local TYPES = {
  string = { type = "string" }, integer = { type = "integer" }, number = { type = "number" },
  boolean = { type = "boolean" },
  object = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
  any = { ["x-kubernetes-preserve-unknown-fields"] = true },
  time = { type = "string", format = "date-time" },
  duration = { type = "string", pattern = "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$" },
  quantity = { anyOf = { { type = "integer" }, { type = "string" } }, ["x-kubernetes-int-or-string"] = true,
    pattern = "^(\\+|-)?" .. DIGITS .. "(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?" .. DIGITS .. "))?$" },
  ["int-or-string"] = { anyOf = { { type = "integer" }, { type = "string" } },
    ["x-kubernetes-int-or-string"] = true },
}
-- Our word -> OpenAPI's words for the field, and the Lua type of its values.
local WORDS = {
  default = { "default" }, doc = { "description", "string" }, enum = { "enum", "table" },
  format = { "format", "string" }, pattern = { "pattern", "string" }, min = { "minimum", "number" },
  max = { "maximum", "number" }, min_length = { "minLength", "number" },
  max_length = { "maxLength", "number" }, min_items = { "minItems", "number" },
  max_items = { "maxItems", "number" }, nullable = { "nullable", "boolean" },
}
local OWN = { required = true, list = true, map = true, key = true, set = true, immutable = true,
  rules = true }
local KNOWN = {}
for word in pairs(WORDS) do KNOWN[word] = true end
for word in pairs(OWN) do KNOWN[word] = true end

local DEPTH_MAX = 64

local object_of

local function copied(t)
  local out = {}
  for key, x in pairs(t) do out[key] = type(x) == "table" and copied(x) or x end
  return out
end

local function list_of(items) return { type = "array", items = items } end
local function map_of(values) return { type = "object", additionalProperties = values } end

-- "string[]{}!": the schema, and whether it is needed.
local function of_word(where, word)
  local rest, bang = word:match "^(.-)(!?)$"
  local name, suffixes = rest:match "^([%a-]+)([%[%]{}]*)$"
  local base = name and TYPES[name]
  if not base then
    core.blame(("kube.schema: %s: unknown type %q%s"):format(where, word,
      suggest.hint(name or word, TYPES)))
  end
  local schema = copied(base)
  for pair in suffixes:gmatch ".." do
    if pair == "[]" then
      schema = list_of(schema)
    elseif pair == "{}" then
      schema = map_of(schema)
    else
      core.blame(("kube.schema: %s: a type may be followed by [] for a list, {} for a map and ! for \z
        required, got %q")
        :format(where, word))
    end
  end
  if #suffixes % 2 == 1 then
    core.blame(("kube.schema: %s: %q ends in the middle of [] or {}"):format(where, word))
  end
  return schema, bang == "!"
end

local function add_rule(schema, rule, message)
  local rules = schema["x-kubernetes-validations"] or {}
  rules[#rules + 1] = { rule = rule, message = message }
  schema["x-kubernetes-validations"] = rules
end

local function list_options(where, field, schema)
  if (field.key or field.set) and schema.type ~= "array" then
    core.blame(("kube.schema: %s: key and set are for lists; add list = true"):format(where))
  end
  if field.key then
    local keys = type(field.key) == "table" and field.key or { field.key }
    for _, key in ipairs(keys) do
      if not (schema.items.properties or {})[key] then
        core.blame(("kube.schema: %s: key %q is not a field of its items%s"):format(where, tostring(key),
          suggest.hint(key, schema.items.properties or {})))
      end
    end
    schema["x-kubernetes-list-type"], schema["x-kubernetes-list-map-keys"] = "map", keys
  elseif field.set then
    schema["x-kubernetes-list-type"] = "set"
  end
end

-- A table with [1]: a type, and the rules for it.
local function of_table(where, field, depth)
  for word, x in pairs(field) do
    if word ~= 1 and not KNOWN[word] then
      core.blame(("kube.schema: %s: unknown key '%s'%s"):format(where, tostring(word),
        suggest.hint(word, KNOWN)))
    end
    local wanted = WORDS[word] and WORDS[word][2]
    if wanted and type(x) ~= wanted then
      core.blame(("kube.schema: %s.%s must be a %s, got %s"):format(where, word, wanted, type(x)))
    end
  end
  local schema, needed
  if type(field[1]) == "table" then
    schema = object_of(where, field[1], depth + 1)
  else
    schema, needed = of_word(where, tostring(field[1]))
  end
  if field.list then schema = list_of(schema) end
  if field.map then schema = map_of(schema) end
  for word, to in pairs(WORDS) do
    local x = field[word]
    local empty = word == "default" and schema.type == "array" and type(x) == "table" and next(x) == nil
    if x ~= nil then schema[to[1]] = empty and core.array {} or x end
  end
  list_options(where, field, schema)
  for _, rule in ipairs(field.rules or {}) do
    if type(rule) ~= "table" or type(rule.rule) ~= "string" then
      core.blame(("kube.schema: %s.rules: each must be { rule = \"self > 0\", message = \"...\" }")
        :format(where))
    end
    add_rule(schema, rule.rule, rule.message)
  end
  if field.immutable then add_rule(schema, "self == oldSelf", "it cannot be changed") end
  return schema, needed or field.required
end

local function of_field(where, field, depth)
  if depth > DEPTH_MAX then core.blame(("kube.schema: %s: nested too deeply"):format(where)) end
  if type(field) == "string" then return of_word(where, field) end
  if type(field) ~= "table" then
    core.blame(("kube.schema: %s must be a type such as \"string\", or a table, got %s"):format(where,
      type(field)))
  end
  if field[1] ~= nil then return of_table(where, field, depth) end
  return object_of(where, field, depth + 1)
end

function object_of(where, fields, depth)
  local out, required = { type = "object", properties = {} }, {}
  for name, field in pairs(fields) do
    if type(name) ~= "string" then
      core.blame(("kube.schema: %s: a field needs a name, got %s"):format(where, tostring(name)))
    end
    local schema, needed = of_field(where == "" and name or where .. "." .. name, field, depth)
    out.properties[name] = schema
    if needed then required[#required + 1] = name end
  end
  table.sort(required)
  if #required > 0 then out.required = required end
  if next(out.properties) == nil then
    out.properties, out["x-kubernetes-preserve-unknown-fields"] = nil, true
  end
  return out
end

--- The schema of an object with these fields; see kubelua.SchemaField.
---@param fields table<string, string|table>
---@return table schema   OpenAPI v3, as a version of kube.crd takes it
function M.schema(fields)
  if type(fields) ~= "table" then
    core.blame(("kube.schema takes a table of fields, got %s"):format(type(fields)))
  end
  return object_of("", fields, 0)
end

return M
