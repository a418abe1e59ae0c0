-- secrets.lua - hides a Secret's data on a screen that others see, and in a file that is passed
-- on.

local core = require "kubelua.core"

local M = {}

-- kubectl's record of the last apply repeats the data.
local APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
local STAND_IN = { data = "cmVkYWN0ZWQ=", stringData = "redacted" }

---@param o kubelua.view|table
---@return boolean
local function is_secret(o)
  local kind, version = o.kind, o.apiVersion
  return kind == "Secret" and (version == nil or version == "v1")
end

--- Whether a path of an object ("data.password") leads to secret data. The same rule as kl_diff_is_secret.
---@param o kubelua.view|table
---@param path string
---@return boolean
function M.at(o, path)
  if not is_secret(o) then return false end
  local field = path:match "^%a+"
  return STAND_IN[field] ~= nil or path == "metadata.annotations"
    or path == ("metadata.annotations[%s]"):format(APPLIED)
end

--- The object with each value of a Secret replaced; others as they are.
---@param o kubelua.view
---@return kubelua.view|table
function M.redacted(o)
  if not is_secret(o) then return o end
  local copy = core.copy(o)
  for field, text in pairs(STAND_IN) do
    for key in pairs(copy[field] or {}) do copy[field][key] = text end
  end
  if copy.metadata.annotations then copy.metadata.annotations[APPLIED] = nil end
  return copy
end

return M
