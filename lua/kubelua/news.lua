-- news.lua - the fields of an Event besides its text, for ctx:event, ctx:warn and kube.recorder alike.

local core = require "kubelua.core"
local object = require "kubelua.object"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.EventNews
---@field reason string                            one word in UpperCamelCase: "SourceMissing"
---@field action string?                           what was done or tried, the same way: "Copy"; "Reconcile" when it is not said
---@field related (kubelua.view|kubelua.Object)?   another object that it is about

local KNOWN = { reason = true, action = true, related = true }

-- The API server's limit for both (apis/core/validation/events.go).
local LONGEST = 128

local function word(what, name, text)
  if type(text) ~= "string" or not text:find "^%u%w*$" then
    core.blame(("%s: the %s must be one word in UpperCamelCase such as \"SourceMissing\", got %s")
      :format(what,
      name, tostring(text)))
  elseif #text > LONGEST then
    core.blame(("%s: the %s may have at most %d characters, got %d"):format(what, name, LONGEST, #text))
  end
  return text
end

--- An object as a view that names itself. `what` is how messages call the call.
function M.object(what, name, o)
  local ok, view = pcall(function() return core.value(object.normalize(o, what), "the object") end)
  if not ok then
    core.blame(("%s: the %s must be an object with apiVersion, kind and metadata.name: %s"):format(what, name,
      tostring(view)))
  end
  if type(view("kind")) ~= "string" or type(view("metadata.name")) ~= "string" then
    core.blame(("%s: the %s must be an object with apiVersion, kind and metadata.name"):format(what, name))
  end
  return view
end

--- The reason alone, or a table that says more.
---@param what string
---@param reason string|kubelua.EventNews
---@return { reason: string, action: string?, related: kubelua.view? }
function M.check(what, reason)
  if type(reason) ~= "table" then return { reason = word(what, "reason", reason) } end
  for key in pairs(reason) do
    if not KNOWN[key] then
      core.blame(("%s: unknown key '%s'%s"):format(what, tostring(key), suggest.hint(key, KNOWN)))
    end
  end
  return {
    reason = word(what, "reason", reason.reason),
    action = reason.action ~= nil and word(what, "action", reason.action) or nil,
    related = reason.related ~= nil and M.object(what, "related object", reason.related) or nil,
  }
end

return M
