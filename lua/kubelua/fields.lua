-- fields.lua - what a generated library (kubelua gen) knows of its types, and tables checked against it.
--
-- A type is one line of text, so that a thousand of them cost little until somebody asks: "replicas=i
-- template=@PodTemplateSpec". The word before = is the JSON name, the one behind it the type of the value:
--
--   s string   i integer   n number   b boolean   q quantity   x integer or string   * anything
--   o any object   m metadata   [T a list of T   {T a map to T   @Name a type of this group
--   @core_v1.Name a type of another group
--
-- A line that begins with "* " takes fields that it does not name. A checked table is a copy: an empty {}
-- in it became the list or the object that the type says it is. What is not a table of the script (a view, a
-- draft) comes from a server and passes as it is.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

local METADATA = "annotations={s creationTimestamp=s deletionGracePeriodSeconds=i deletionTimestamp=s \z
  finalizers=[s generateName=s "
  .. "generation=i labels={s managedFields=[* name=s namespace=s ownerReferences=[* resourceVersion=s \z
    selfLink=s uid=s"

local parsed = {}

-- The fields of a type's line, once read, are kept: line -> { open, fields }.
local function read(line)
  local known = parsed[line]
  if not known then
    known = { open = line:sub(1, 1) == "*", fields = {} }
    for name, word in line:gmatch "([^ =]+)=(%S+)" do known.fields[name] = word end
    parsed[line] = known
  end
  return known
end

-- Numbers beyond int64, times and quantities are userdata, too.
local function is_opaque(value)
  return type(value) == "userdata" and not core.is_view(value) and not core.is_draft(value)
end

local function is_integer(value)
  return math.type(value) == "integer" or is_opaque(value) and not core.is_quantity(value)
end

local function wrong(at, wanted, value)
  local is = type(value)
  if is == "number" then is = "the number " .. tostring(value)
  elseif is == "string" then is = ("the string %q"):format(#value > 40 and value:sub(1, 40) .. "..." or value)
  elseif is == "boolean" then is = tostring(value) end
  core.blame(("%s: %s must be %s, got %s"):format(at.what, at.path, wanted, is))
end

local SCALARS = {
  s = { "a string", function(v) return type(v) == "string" or is_opaque(v) end },
  i = { "an integer", is_integer },
  n = { "a number", function(v) return type(v) == "number" or is_integer(v) end },
  b = { "a boolean", function(v) return type(v) == "boolean" end },
  q = { "a quantity such as \"500m\" or 2", function(v)
    return type(v) == "string" or type(v) == "number" or core.is_quantity(v)
  end },
  x = { "an integer or a string", function(v) return type(v) == "string" or is_integer(v) end },
}

local check

-- Where we are in the table: at.path grows while the walk goes down and is put back behind it.
local function below(at, suffix, group, word, value)
  local path = at.path
  at.path = path == "" and suffix:gsub("^%.", "") or path .. suffix
  local out = check(at, group, word, value)
  at.path = path
  return out
end

local function check_list(at, group, word, value)
  local out, n = {}, #value
  for key in pairs(value) do
    if math.type(key) ~= "integer" or key < 1 or key > n then
      core.blame(("%s: %s must be a list, and has the key %s"):format(at.what, at.path, tostring(key)))
    end
  end
  for i = 1, n do out[i] = below(at, ("[%d]"):format(i), group, word, value[i]) end
  return n == 0 and core.array(out) or out
end

local function check_map(at, group, word, value)
  local out = {}
  for key, x in pairs(value) do
    if type(key) ~= "string" then
      core.blame(("%s: %s is a map from strings, and has the key %s"):format(at.what, at.path, tostring(key)))
    end
    out[key] = below(at, "." .. key, group, word, x)
  end
  return next(out) == nil and core.object(out) or out
end

local function check_fields(at, group, line, value)
  local type_, out = read(line), {}
  for key, x in pairs(value) do
    local word = type(key) == "string" and type_.fields[key]
    if word then
      out[key] = below(at, "." .. key, group, word, x)
    elseif type_.open and type(key) == "string" then
      out[key] = x
    elseif type(key) ~= "string" then
      core.blame(("%s: %s is an object, and has the key %s"):format(at.what,
        at.path == "" and "it" or at.path, tostring(key)))
    else
      core.blame(("%s: %s has no field '%s'%s"):format(at.what, at.path == "" and at.name or at.path, key,
        suggest.hint(key, type_.fields)))
    end
  end
  return next(out) == nil and core.object(out) or out
end

-- The line of a type, and the group in which its words are to be read.
local function lookup(at, group, name)
  local other, own = name:match "^([%w_]+)%.(.+)$"
  if other then group, name = at.groups(other), own end
  local line = group.types[name]
  if not line then
    error(("%s: the generated type %s is missing; run kubelua gen again"):format(at.what, name), 0)
  end
  return group, line
end

function check(at, group, word, value)
  if value == core.null then return value end
  local sigil = word:sub(1, 1)
  local scalar = SCALARS[sigil]
  if scalar then
    if not scalar[2](value) then wrong(at, scalar[1], value) end
    return value
  elseif word == "*" then
    return value
  end
  local list = sigil == "["
  if type(value) == "userdata" and (core.is_view(value) or core.is_draft(value)) then return value end
  if type(value) ~= "table" then wrong(at, list and "a list" or "an object", value) end
  if list then return check_list(at, group, word:sub(2), value) end
  if sigil == "{" then return check_map(at, group, word:sub(2), value) end
  if word == "o" then return next(value) == nil and core.object {} or value end
  if word == "m" then return check_fields(at, group, METADATA, value) end
  local owner, line = lookup(at, group, word:sub(2))
  return check_fields(at, owner, line, value)
end

--- A copy of `value` that fits the type `name` of `group`; what does not fit is blamed on the caller, with
--- its path.
---@param what string                          how messages call it: "koordinator.slo_v1alpha1.NodeMetric"
---@param groups fun(name: string): table      the library's groups by name
---@param group table
---@param name string
---@param value any
---@return table
function M.check(what, groups, group, name, value)
  return check({ what = what, path = "", name = name, groups = groups }, group, "@" .. name, value)
end

return M
