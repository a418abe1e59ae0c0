-- shared.lua - kube.shared: what all controllers of a script remember together, on all their workers, and
-- across reloads.
--
--   local n = kube.shared:incr "created"
--   if kube.shared:cas("owner", nil, ctx.key) then ... end
--
-- It is memory of this process, as a variable of a program would be: not stored, and not another replica's.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local run = core.run

local M = {}

---@class kubelua.Shared
local Shared = {}
local shared = setmetatable({}, {
  __index = function(_, name)
    local f = Shared[name]
    if f then return f end
    local names = {}
    for known in pairs(Shared) do names[#names + 1] = known end
    core.blame(("kube.shared has no %s; read values with kube.shared:get(%q)%s"):format(tostring(name),
      tostring(name), suggest.hint(tostring(name), names)))
  end,
  __newindex = function(_, name)
    core.blame(("kube.shared.%s cannot be assigned: use kube.shared:set(%q, value)"):format(tostring(name),
      tostring(name)))
  end,
  __metatable = false,
})

local function check(self, what, name)
  if self ~= shared then
    core.blame(("call kube.shared.%s with a colon: kube.shared:%s(...)"):format(what, what))
  end
  if not run then
    core.blame "kube.shared is for scripts that kubelua runs; a standalone program has variables"
  end
  if type(name) ~= "string" or name == "" then
    core.blame(("kube.shared:%s: the name of a value must be a string, got %s"):format(what,
      name == "" and "an empty one" or type(name)))
  end
end

--- The value of that name, as a view that nobody can change; nil: there is none.
---@param name string
---@return any
function Shared:get(name)
  check(self, "get", name)
  return run.shared_get(name)
end

--- Sets the value of a name, any JSON value; nil removes it.
---@param name string
---@param value any
function Shared:set(name, value)
  check(self, "set", name)
  run.shared_set(name, value)
end

--- Adds to a number atomically; an absent one counts as 0.
---@param name string
---@param by number?               1 unless said
---@return number sum
function Shared:incr(name, by)
  check(self, "incr", name)
  if by == nil then by = 1 end
  if type(by) ~= "number" then
    core.blame(("kube.shared:incr(%q): expected a number, got a %s"):format(name, type(by)))
  end
  return run.shared_add(name, by)
end

--- Sets the value atomically if it equals `old` (nil: if absent): whether it did, and the present value.
---@param name string
---@param old any
---@param new any                  nil forgets it
---@return boolean done
---@return any now
function Shared:cas(name, old, new)
  check(self, "cas", name)
  return run.shared_swap(name, old, new)
end

--- All names, sorted.
---@param prefix string?           only those that begin with it
---@return string[]
function Shared:names(prefix)
  check(self, "names", prefix or "all")
  return run.shared_names(prefix)
end

---@type kubelua.Shared
M.shared = shared

return M
