-- fields.lua - reads objects, annotations and settings that may lack fields. All functions accept a view of a
-- cached object or a plain table: they only index and iterate.

local kube = require "kubelua"

local M = {}

M.dig, M.equal = kube.dig, kube.equal

function M.annotation(o, name) return M.dig(o, "metadata", "annotations", name) end
function M.label(o, name) return M.dig(o, "metadata", "labels", name) end

-- The keys of a table, sorted.
function M.names(map)
  local out = {}
  for name in pairs(map) do out[#out + 1] = name end
  table.sort(out)
  return out
end

-- A plain table that is not shared. JSON nulls are left out, as by Go's omitempty.
function M.copy(v)
  local kind = type(v)
  if kind ~= "table" and kind ~= "userdata" or v == kube.null then return v end
  local t = {}
  for k, x in pairs(v) do
    if x ~= kube.null then t[k] = M.copy(x) end
  end
  return t
end

-- Decodes the JSON object or list in an annotation or a ConfigMap entry, as plain tables. As in Go, the last
-- of repeated keys wins.
function M.json(text)
  local ok, value = pcall(function() return M.copy(kube.decode(text, { duplicates = "last" })) end)
  if not ok then return nil, "not valid JSON: " .. tostring(value) end
  if type(value) ~= "table" then return nil, "not a JSON object" end
  return value
end

-- Settings as Go decodes them: a field of the wrong type fails the whole document, an unknown field is
-- dropped. `schema` maps each known field to a type name, to the schema of an object, or to a function that
-- takes the value and returns it checked, or nil and why.
local checks = {
  boolean = function(v) return type(v) == "boolean" end,
  integer = function(v) return math.type(v) == "integer" end,
  number = function(v) return type(v) == "number" end,
  string = function(v) return type(v) == "string" end,
  object = function(v) return type(v) == "table" and #v == 0 end,
  ["integer or string"] = function(v) return math.type(v) == "integer" or type(v) == "string" end,
}

local function checked(v, kind)
  if type(kind) == "function" then return kind(v) end
  local name = type(kind) == "table" and "object" or kind
  if not checks[name](v) then return nil, ("expected %s, got %s"):format(name, type(v)) end
  if type(kind) == "table" then return M.typed(v, kind) end
  return v
end

function M.typed(raw, schema)
  local out = {}
  for field, kind in pairs(schema) do
    if raw[field] ~= nil then
      local v, why = checked(raw[field], kind)
      if v == nil then return nil, field .. ": " .. why end
      out[field] = v
    end
  end
  return out
end

-- For a schema: a list whose elements are of `kind`.
function M.list_of(kind)
  return function(v)
    if type(v) ~= "table" or #v == 0 and next(v) ~= nil then return nil, "expected a list" end
    local out = {}
    for i, x in ipairs(v) do
      local element, why = checked(x, kind)
      if element == nil then return nil, ("[%d]: %s"):format(i, why) end
      out[i] = element
    end
    return out
  end
end

-- For a schema: an object of any names whose values are of `kind`.
function M.map_of(kind)
  return function(v)
    if not checks.object(v) then return nil, "expected object, got " .. type(v) end
    local out = {}
    for name, x in pairs(v) do
      local value, why = checked(x, kind)
      if value == nil then return nil, ("%s: %s"):format(name, why) end
      out[name] = value
    end
    return out
  end
end

-- Merges `over` into `base`: objects field by field, anything else is replaced; `whole` names the fields
-- whose entries are replaced as a whole (Go merges maps by key, not by field).
function M.merge(base, over, whole)
  local out = M.copy(base)
  for k, v in pairs(over) do
    if type(v) == "table" and type(out[k]) == "table" and #v == 0 and #out[k] == 0 then
      if whole and whole[k] then
        for name, entry in pairs(v) do out[k][name] = M.copy(entry) end
      else
        out[k] = M.merge(out[k], v)
      end
    else
      out[k] = M.copy(v)
    end
  end
  return out
end

-- The entry of `nodeConfigs` for a node is the first whose selector matches: their order matters.
function M.first_match(configs, node)
  local labels = M.dig(node, "metadata", "labels")
  for _, entry in ipairs(configs or {}) do
    if M.selects(entry.nodeSelector, labels) then return entry end
  end
end

-- A metav1.LabelSelector. An absent one selects nothing, an empty one everything, a malformed one nothing.
function M.selects(selector, labels)
  local ok, compiled = pcall(kube.selector, selector)
  return ok and compiled:matches(labels)
end

-- Go's strconv.ParseFloat and ParseBool, as far as people write numbers: no spaces, no hexadecimal.
function M.float(text)
  if not text:match("^[+-]?%d*%.?%d*[eE]?[+-]?%d*$") then return nil end
  local n = tonumber(text)
  return n and n + 0.0
end

local booleans = { ["1"] = true, t = true, T = true, ["true"] = true, TRUE = true, True = true,
  ["0"] = false, f = false, F = false, ["false"] = false, FALSE = false, False = false }

function M.boolean(text) return booleans[text] end

return M
