-- conditions.lua - conditions as built-in kinds have them (a reason may be missing), and times as they are
-- written.

local kube = require "kubelua"

local M = {}

--- The moment of the run as a status has it, in whole seconds.
function M.now(ctx) return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(ctx:now():unix())) end

--- The list with these conditions in it: one of each type, whose lastTransitionTime moves with its status
--- and at no other time.
---@param old table|kubelua.view|nil
---@param news table[]
---@param now string
---@return table
function M.with(old, news, now)
  local list, at = kube.array {}, {}
  for i, c in ipairs(old or {}) do
    list[i] = kube.copy(c)
    at[c.type] = i
  end
  for _, c in ipairs(news) do
    local before = list[at[c.type]]
    local same = before and before.status == c.status
    c.lastTransitionTime = same and before.lastTransitionTime or now
    list[at[c.type] or #list + 1] = c
  end
  return list
end

--- The condition of that type, or nil.
function M.find(o, type)
  for _, c in ipairs(o("status.conditions") or {}) do
    if c.type == type then return c end
  end
end

--- Whether it is "True".
function M.holds(o, type)
  local c = M.find(o, type)
  return c ~= nil and c.status == "True"
end

return M
