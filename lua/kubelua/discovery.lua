-- discovery.lua - which resources the server has, in the words of `kubectl api-resources`.

local core = require "kubelua.core"
local options = require "kubelua.options"

local M = {}

local FILTER = { group = "string", version = "string", verb = "string", category = "string",
  namespaced = "boolean" }

local function has(list, word)
  for _, x in ipairs(list) do
    if x == word then return true end
  end
  return false
end

local function fits(r, filter)
  return (filter.group == nil or r.group == filter.group)
    and (filter.version == nil or r.version == filter.version)
    and (filter.verb == nil or has(r.verbs, filter.verb))
      and (filter.category == nil or has(r.categories, filter.category))
    and (filter.namespaced == nil or r.namespaced == filter.namespaced)
end

-- Everything discovery knows. A server that lacks v1/Pod, or whose core group fails, has resources all the
-- same.
local function known(client, resolve)
  local all, failed = client:resources()
  if all then return all, failed end
  local ok, err = pcall(resolve, "v1/Pod")
  all, failed = client:resources()
  if not all then
    error(ok and core.error { kind = "server", message = "discovery said nothing" } or err, 0)
  end
  return all, failed
end

--- The resources that fit, core first, each once in its group's preferred version (in that one, with
--- `version`); and the group versions whose discovery failed, with the reasons.
---@param client userdata
---@param resolve fun(kind: string)
---@param what string
---@param filter table?
---@return kubelua.ResourceInfo[], table<string, string>
function M.resources(client, resolve, what, filter)
  filter = options.check(what, filter, FILTER)
  local all, failed = known(client, resolve)
  local out, seen = {}, {}
  for _, r in ipairs(all) do
    local id = r.group .. "/" .. r.plural
    if (filter.version or not seen[id]) and fits(r, filter) then
      r.name, r.kind = r.kind, (r.group ~= "" and r.group .. "/" or "") .. r.version .. "/" .. r.kind
      out[#out + 1] = r
    end
    seen[id] = true
  end
  return out, failed
end

return M
