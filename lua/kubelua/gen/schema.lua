-- gen/schema.lua - turns JSON schemas of CRDs and OpenAPI v3 into the types of a group.
--
-- A nested object without a name of its own is named by its path: NodeMetricSpec,
-- NodeMetricSpecMetricCollectPolicy.

local model = require "kubelua.gen.model"

local M = {}

-- No person writes a deeper schema; a JSON text of that depth would be rejected anyway.
local DEEPEST = 64

local ANY, OBJECT = { k = "any" }, { k = "object" }

local function keys(view)
  local list = {}
  for key in pairs(view) do
    if type(key) == "string" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

local function set_of(view)
  local set = {}
  for _, word in ipairs(model.items(view)) do set[word] = true end
  return set
end

-- The path of a field: the path of its object and one more word.
local function step(path, field)
  local out = table.move(path, 1, #path, 1, {})
  out[#out + 1] = model.camel(field)
  return out
end

-- "a" | "b" with a name of its own.
local function enum(at, schema, path)
  local values = {}
  for _, value in ipairs(model.items(schema "enum")) do
    if type(value) ~= "string" then return { k = "string" } end
    values[#values + 1] = value
  end
  if #values == 0 then return { k = "string" } end
  local name = model.unique(at.group, table.concat(path))
  at.group.aliases[name] = { values = values, path = path }
  return { k = "enum", group = at.group, name = name }
end

-- Quantities are marked as "integer or string" with a pattern of their own; a bare mark is IntOrString.
local function int_or_string(schema)
  local pattern = schema "pattern"
  if type(pattern) == "string" and pattern:find("KMGTPE", 1, true) then return { k = "quantity" } end
  return { k = "int_or_string" }
end

local convert

local function class(at, schema, path, depth)
  local required = set_of(schema "required")
  local type_ = { doc = model.doc(schema "description"), fields = {} }
  local more = schema("additionalProperties")
  type_.open = schema("x-kubernetes-preserve-unknown-fields") == true or more ~= nil and more ~= false
  local properties = schema "properties"
  for _, field in ipairs(keys(properties)) do
    local part = properties[field]
    if type(part) ~= "userdata" then
      error(("the schema of %s is %s, and must be an object"):format(field, tostring(part)), 0)
    end
    local of = at.override and depth == 0 and at.override(field, part)
      or convert(at, part, step(path, field), depth + 1)
    type_.fields[#type_.fields + 1] = {
      name = field, type = of, doc = model.doc(part "description"),
      -- A field that the server fills in exists when it is read.
      required = required[field] or part "default" ~= nil,
    }
  end
  return type_
end

local function object(at, schema, path, depth)
  if schema("x-kubernetes-embedded-resource") == true then return OBJECT end
  local properties, more = schema "properties", schema "additionalProperties"
  if properties ~= nil and type(properties) ~= "userdata" then
    error(("the properties of %s are %s, and must be an object"):format(table.concat(path),
      tostring(properties)), 0)
  end
  if properties and #keys(properties) > 0 then
    local name = model.unique(at.group, table.concat(path))
    at.group.types[name] = class(at, schema, path, depth)
    at.group.types[name].path = path
    return { k = "class", group = at.group, name = name }
  elseif more and more ~= true then
    return { k = "map", of = convert(at, more, path, depth + 1) }
  end
  return OBJECT
end

local function type_of(schema) return type(schema) == "userdata" and schema "type" or nil end

local SIMPLE = { boolean = { k = "boolean" }, number = { k = "number" }, integer = { k = "integer" } }

function convert(at, schema, path, depth)
  if depth > DEEPEST then
    error(("%s: the schema of %s is nested deeper than %d levels"):format(at.what, table.concat(path),
      DEEPEST), 0)
  end
  if type(schema) ~= "userdata" then return ANY end
  local ref, all = schema "$ref", model.items(schema "allOf")
  if not ref and #all == 1 and type(all[1]) == "userdata" then ref = all[1] "$ref" end
  if type(ref) == "string" then
    if not at.ref then
      error(("%s: the schema of %s has a $ref (%s), which a CRD cannot have"):format(at.what,
        table.concat(path), ref), 0)
    end
    return at.ref(ref)
  end
  if schema("x-kubernetes-int-or-string") == true or schema("format") == "int-or-string" then
    return int_or_string(schema)
  end
  local kind, one = schema "type", model.items(schema "oneOf")
  -- How a Quantity is published if it has no name.
  if kind == nil and #one == 2 and type_of(one[1]) == "string" and type_of(one[2]) == "number" then
    return { k = "quantity" }
  end
  if kind == "string" then
    if schema("format") == "date-time" then return { k = "time" } end
    return enum(at, schema, path)
  elseif kind == "array" then
    return { k = "list", of = convert(at, schema "items", path, depth + 1) }
  elseif kind == "object" or kind == nil and schema "properties" then
    return object(at, schema, path, depth)
  end
  return SIMPLE[kind] or ANY
end

--- The type of a schema. `at`: group (where nested types go), what (for messages), ref (what $ref means, or
--- nil: there are none), override(field, schema) for the outermost fields.
function M.convert(at, schema, name) return convert(at, schema, { name }, 0) end

--- A class of exactly this name, which the caller has reserved.
function M.class(at, schema, name) return class(at, schema, { name }, 0) end

return M
