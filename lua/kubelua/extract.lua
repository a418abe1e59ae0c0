-- extract.lua - what one field manager applied, out of an object's managedFields: to be changed and applied
-- again.
--
--   local mine = kube.extract(deployment, "my-manager")
--   mine.spec.replicas = 5
--   c:apply(mine, { manager = "my-manager" })
--
-- managedFields say it as a tree (FieldsV1): "f:name" a field, "k:{...}" the item of a list with these
-- keys, "v:..." an item by value, "i:3" an item by place, "." the thing itself. What has nothing below it
-- was set whole. An owned list or map that somebody else has filled since comes out empty: what is theirs
-- is not ours to apply.

local core = require "kubelua.core"

local M = {}

local function is_container(x) return type(x) == "userdata" and core.is_view(x) end

-- The entry of a manager; Update entries say who wrote, not who applied.
local function entry_of(o, manager, subresource)
  for _, entry in ipairs(o "metadata.managedFields" or {}) do
    if entry "manager" == manager and entry "operation" == "Apply"
      and (entry "subresource" or "") == subresource then
      return entry
    end
  end
end

local function has_children(tree)
  if not is_container(tree) then return false end
  for name in pairs(tree) do
    if name ~= "." then return true end
  end
  return false
end

-- The same place in the trees of all managers; whoever owns something below it says that the place is taken
-- apart and not one piece.
local function below(trees, name)
  local out = {}
  for _, tree in ipairs(trees) do
    local child = tree[name]
    if child then out[#out + 1] = child end
  end
  return out
end

local function taken_apart(trees)
  for _, tree in ipairs(trees) do
    if has_children(tree) then return true end
  end
  return false
end

local function matches(item, keys)
  if not is_container(item) then return false end
  for name, value in pairs(keys) do
    if item[name] ~= value then return false end
  end
  return true
end

local function is_list(value)
  local following, state, before = pairs(value)
  local first = following(state, before)
  if first == nil then return core.encode(value) == "[]" end
  return math.type(first) == "integer"
end

local extract

-- A list by its items: in the list's order, each once.
local function items(value, tree, trees)
  local out, wanted = {}, {}
  for name in pairs(tree) do
    local kind, text = name:match "^([kvi]):(.*)$"
    if kind then
      wanted[#wanted + 1] = { name = name, kind = kind,
        what = kind == "i" and tonumber(text) or kind ~= "i" and core.decode(text) }
    end
  end
  table.sort(wanted, function(a, b) return a.name < b.name end)
  for i, item in ipairs(value) do
    for _, want in ipairs(wanted) do
      if want.kind == "k" and matches(item, want.what) or want.kind == "v" and item == want.what
        or want.kind == "i" and want.what == i - 1 then
        local child = tree[want.name]
        out[#out + 1] = has_children(child) and extract(item, child, below(trees, want.name))
          or core.copy(item)
        break
      end
    end
  end
  return core.array(out)
end

function extract(value, tree, trees)
  if not has_children(tree) then
    if is_container(value) and taken_apart(trees) then
      return is_list(value) and core.array {} or core.object {}
    end
    return core.copy(value)
  end
  if not is_container(value) then return core.copy(value) end
  if is_list(value) then return items(value, tree, trees) end
  local out = {}
  for name, child in pairs(tree) do
    local field = name:match "^f:(.*)$"
    local part = field and value[field]
    if part ~= nil then out[field] = extract(part, child, below(trees, name)) end
  end
  return core.object(out)
end

--- What `manager` applied to the object (through a subresource, when one is named), with the object's kind,
--- name and namespace: plain tables, to be changed and given to apply. Of a manager that applied nothing
--- only those are left.
---@generic T
---@param o T                       as the server gave it, with its managedFields
---@param manager string
---@param subresource string?       "status", "scale"
---@return T
function M.extract(o, manager, subresource)
  local object = type(o) == "table" and core.value(o, "the object") or o --[[@as any]]
  if type(object) ~= "userdata" or not core.is_view(object) then
    core.blame(("kube.extract: expected an object, got %s"):format(type(o)))
  elseif type(manager) ~= "string" or manager == "" then
    core.blame(("kube.extract: the field manager must be a string that is not empty, got %s"):format(
      manager == "" and '""' or type(manager)))
  elseif subresource ~= nil and type(subresource) ~= "string" then
    core.blame(("kube.extract: the subresource must be a string such as \"status\", got %s"):format(
      type(subresource)))
  end
  if type(object "metadata.name") ~= "string" then
    core.blame "kube.extract: the object has no metadata.name"
  end
  local entry = entry_of(object, manager, subresource or "")
  local out = {}
  if entry then
    local trees = {}
    for _, other in ipairs(object "metadata.managedFields") do
      local tree = other "fieldsV1"
      if tree then trees[#trees + 1] = tree end
    end
    out = extract(object, entry "fieldsV1" or core.value {}, trees)
    if type(out) ~= "table" then out = {} end
  end
  out.apiVersion, out.kind = object "apiVersion", object "kind"
  out.metadata = out.metadata or {}
  out.metadata.name, out.metadata.namespace = object "metadata.name", object "metadata.namespace"
  return out
end

return M
