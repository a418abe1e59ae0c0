-- adopt.lua - migration from updates to server-side apply: fields that other managers wrote by update become
-- one manager's applied fields, so that a field it no longer applies is removed. As client-go's
-- util/csaupgrade.

local core = require "kubelua.core"

local M = {}

-- Both sets of fields (FieldsV1) as one, in `a`.
local function union(a, b)
  for key, below in pairs(b) do
    if a[key] == nil then a[key] = below else union(a[key], below) end
  end
end

local function names_of(what, managers)
  if type(managers) == "string" then managers = { managers } end
  if type(managers) ~= "table" or #managers == 0 then
    core.blame(what .. ": managers must be a name or a list of names")
  end
  local names = {}
  for _, name in ipairs(managers) do names[name] = true end
  return names
end

--- Makes `manager` own, by apply, what `managers` own by update. For the draft of a patch:
--- c:patch(o, function(draft) kube.adopt_fields(draft, "kubectl-client-side-apply", "my-controller") end)
---@param draft kubelua.draft|table
---@param managers string|string[]
---@param manager string
---@param subresource string?  whose fields; none: those of the object itself
---@return boolean changed
function M.adopt_fields(draft, managers, manager, subresource)
  local names = names_of("kube.adopt_fields", managers)
  if type(manager) ~= "string" or manager == "" then
    core.blame "kube.adopt_fields: manager must be the name of the new manager"
  end
  local metadata = draft.metadata
  local entries = metadata and metadata.managedFields
  if not entries or #entries == 0 then return false end
  local kept, mine, adopted = core.array {}, nil, {}
  for _, entry in ipairs(core.copy(entries)) do
    local here = (entry.subresource or "") == (subresource or "")
    if here and entry.operation == "Update" and names[entry.manager] then
      adopted[#adopted + 1] = entry
    else
      if here and entry.operation == "Apply" and entry.manager == manager then mine = entry end
      kept[#kept + 1] = entry
    end
  end
  if #adopted == 0 then return false end
  if not mine then
    mine = table.remove(adopted, 1)
    mine.operation, mine.manager = "Apply", manager
    kept[#kept + 1] = mine
  end
  for _, entry in ipairs(adopted) do
    if entry.apiVersion ~= mine.apiVersion then
      core.blame(("kube.adopt_fields: %s wrote %s and %s applies %s; write the object once in one \z
        version first"):format(
        entry.manager, entry.apiVersion, manager, mine.apiVersion))
    end
    union(mine.fieldsV1, entry.fieldsV1)
  end
  metadata.managedFields = kept
  return true
end

return M
