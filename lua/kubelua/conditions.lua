-- conditions.lua - status conditions by the rules of metav1.Condition: one of each type, checked before it
-- is sent, and lastTransitionTime moves when the status does and at no other time.
--
-- merge is a function of (old, new, now, generation); the others change a draft, or a plain table.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.Condition
---@field type string                  "Ready", "example.com/Synced"
---@field status "True"|"False"|"Unknown"|boolean
---@field reason string                one word in CamelCase
---@field message string?
---@field lastTransitionTime string?   the time of the last status change (default: now)
---@field observedGeneration integer?
---@field observed_generation boolean? true: that of the object; false: none

local KEYS = {
  type = true, status = true, reason = true, message = true, lastTransitionTime = true,
  observedGeneration = true, observed_generation = true,
}
local STATUSES = { "True", "False", "Unknown" }
-- metav1.Condition's own limits.
local TYPE_MAX, REASON_MAX, MESSAGE_MAX = 316, 1024, 32768

-- ---------------------------------------------------------------- what may stand in one

local function is_type(text)
  local prefix, name = text:match "^([^/]*)/([^/]*)$"
  name = name or text
  if prefix and not (prefix .. "."):find "^[a-z0-9%-.]+$" then return false end
  for label in ((prefix or "a") .. "."):gmatch "(.-)%." do
    if not label:find "^[a-z0-9]" or not label:find "[a-z0-9]$" then return false end
  end
  return name:find "^[%w][-%w_.]*$" ~= nil and name:find "%w$" ~= nil
end

-- Makes a reason from a free text: "not ready yet" -> "NotReadyYet".
local function as_reason(text)
  local words = {}
  for word in text:gmatch "%w+" do words[#words + 1] = word:sub(1, 1):upper() .. word:sub(2) end
  local made = table.concat(words)
  return made:find "^%a" and made or "Reconciled"
end

--- Why a condition is invalid, or nil.
---@param c table
---@return string?
function M.problem(c)
  for key in pairs(c) do
    if not KEYS[key] then return ("unknown key '%s'%s"):format(tostring(key), suggest.hint(key, KEYS)) end
  end
  if type(c.type) ~= "string" then
    return ("type must be a string such as \"Ready\", got %s"):format(type(c.type))
  end
  if #c.type > TYPE_MAX or not is_type(c.type) then
    return ("type must be a word such as \"Ready\" or \"example.com/Synced\", got %q"):format(c.type)
  end
  local status = c.status
  if type(status) ~= "boolean" and status ~= "True" and status ~= "False" and status ~= "Unknown" then
    return ("status of %s must be \"True\", \"False\" or \"Unknown\", got %s%s"):format(c.type,
      type(status) == "string" and ("%q"):format(status) or type(status),
      type(status) == "string" and suggest.hint(status, STATUSES) or "")
  end
  local reason = c.reason
  if type(reason) ~= "string" then
    return ("reason of %s is missing: one word in CamelCase that says why it is %s, such as \z
      \"MinimumReplicasAvailable\""):format(c.type, tostring(status))
  elseif #reason > REASON_MAX or not reason:find "^%a[%w_,:]*$" or not reason:find "[%w_]$" then
    return ("reason of %s must be one word in CamelCase, got %q; did you mean %q?"):format(c.type, reason,
      as_reason(reason))
  end
  if c.message ~= nil and type(c.message) ~= "string" then
    return ("message of %s must be a string, got %s"):format(c.type, type(c.message))
  end
  if c.message and #c.message > MESSAGE_MAX then
    return ("message of %s may have at most %d characters, got %d"):format(c.type, MESSAGE_MAX, #c.message)
  end
  if c.observedGeneration ~= nil and (math.type(c.observedGeneration) ~= "integer"
    or c.observedGeneration < 0) then
    return ("observedGeneration of %s must be a whole number from 0 on, got %s"):format(c.type,
      tostring(c.observedGeneration))
  end
  if c.observed_generation ~= nil and type(c.observed_generation) ~= "boolean" then
    return ("observed_generation of %s must be true or false, got %s"):format(c.type,
      type(c.observed_generation))
  end
  if c.lastTransitionTime ~= nil and not pcall(core.time, c.lastTransitionTime) then
    return ("lastTransitionTime of %s must be a time, got %s"):format(c.type, tostring(c.lastTransitionTime))
  end
end

--- Whether a field called `conditions` is a list of them: a CRD may use that name for something else.
function M.are_conditions(list)
  if type(list) ~= "table" and not core.is_view(list) then return false end
  local first = list[1]
  return (type(first) == "table" or core.is_view(first)) and first.type ~= nil and first.status ~= nil
end

--- The first invalid one of several, with its place; or nil.
function M.problems(list)
  if not M.are_conditions(list) then return nil end
  for i, c in ipairs(list) do
    local problem = type(c) ~= "table" and not core.is_view(c)
      and ("expected a condition as a table, got %s"):format(type(c)) or M.problem(c)
    if problem then return ("conditions[%d]: %s"):format(i, problem) end
  end
end

-- ---------------------------------------------------------------- merging

local function status_text(status)
  if type(status) == "boolean" then return status and "True" or "False" end
  return status
end

-- RFC 3339 in whole seconds, as metav1.Time is.
local function timestamp(time) return core.format_time(math.floor(core.time(time):unix())) end

--- A default observed_generation, set only if the kind has the field; it is not a reason to write.
M.MAYBE = "maybe"

-- Merges one condition: the old one when nothing changed, else a new table.
local function merged(old, c, now, generation)
  local status, message = status_text(c.status), c.message or ""
  local observed = c.observedGeneration
  if observed == nil and c.observed_generation ~= false then
    -- Set, or kept up to date where it was set before.
    if c.observed_generation or old and old.observedGeneration then observed = generation end
  end
  local moved = not old or old.status ~= status
  local same = not moved and old.reason == c.reason and (old.message or "") == message
  if same and (old.observedGeneration == observed or c.observed_generation == M.MAYBE
    and old.observedGeneration == nil) then
    return old, false
  end
  local at = moved and (c.lastTransitionTime or now) or old.lastTransitionTime or now
  return {
    type = c.type, status = status, reason = c.reason, message = message, observedGeneration = observed,
    lastTransitionTime = timestamp(at),
  }, true
end

--- Old conditions (a list, a view of one, or nil) with the new ones in their places; new types come last.
---@param old table|kubelua.view|nil
---@param new kubelua.Condition[]
---@param now string|number|kubelua.time
---@param generation integer?  of the object
---@return table[] list, boolean changed
function M.merge(old, new, now, generation)
  local list, at, changed = core.array {}, {}, false
  for i, c in ipairs(old or {}) do
    list[i] = c
    if c.type ~= nil then at[c.type] = at[c.type] or i end
  end
  for _, c in ipairs(new) do
    local i = at[c.type] or #list + 1
    local became, did = merged(list[i], c, now, generation)
    list[i], at[c.type] = became, i
    changed = changed or did
  end
  return list, changed
end

-- ---------------------------------------------------------------- for scripts

-- The status that holds the conditions, made when it is not there yet, and the generation of the object
-- when it is known.
local function place(what, target)
  if core.is_view(target) then
    core.blame(what .. ": a view cannot be changed; do this in the function of ctx:patch_status, or with \z
      kube.copy(view)")
  end
  if type(target) ~= "table" and not core.is_draft(target) then
    core.blame(("%s: expected a status, or an object with one, as a draft or a table, got %s"):format(what,
      type(target)))
  end
  local metadata = target.metadata
  if metadata == nil and target.apiVersion == nil then return target, nil end
  if target.status == nil then target.status = core.object {} end
  return target.status, metadata and metadata.generation
end

-- The time of a run; elsewhere that of the test, which kubelua.testing puts here, or the machine's.
M.clock = os.time
local function now()
  if core.run then return core.run.now() end
  return M.clock()
end

local function list_of(what, o)
  if type(o) ~= "table" and not core.is_view(o) and not core.is_draft(o) then
    core.blame(("%s: expected an object, its status or its conditions, got %s"):format(what, type(o)))
  end
  if o[1] ~= nil then return o end
  if o.conditions ~= nil then return o.conditions end
  local status = o.status
  return type(status) ~= "string" and status and status.conditions or nil
end

--- Sets one condition in a status, or in the status of an object: by its type. lastTransitionTime stays
--- while the status does. status.conditions may be absent. True when something changed.
--- ctx:patch_status(obj, function(o) kube.set_condition(o, { type = "Ready", status = "True", reason =
--- "Synced" }) end)
---@param target kubelua.draft|table
---@param condition kubelua.Condition
---@return boolean changed
function M.set_condition(target, condition)
  if type(condition) ~= "table" then
    core.blame(("kube.set_condition: expected a condition as a table, got %s"):format(type(condition)))
  end
  local problem = M.problem(condition)
  if problem then core.blame("kube.set_condition: " .. problem) end
  local status, generation = place("kube.set_condition", target)
  if condition.observed_generation and condition.observedGeneration == nil and generation == nil then
    core.blame "kube.set_condition: observed_generation = true needs the object for its generation: pass \z
      the draft of the object instead of its status"
  end
  local list, changed = M.merge(status.conditions, { condition }, now(), generation)
  if changed then status.conditions = core.copy(list) end
  return changed
end

--- The condition of a type, or nil: of an object, a status, or a list of conditions.
---@param o kubelua.view|kubelua.draft|table
---@param name string
---@return kubelua.Condition?
function M.find_condition(o, name)
  for _, c in ipairs(list_of("kube.find_condition", o) or {}) do
    if c.type == name then return c end
  end
end

--- Removes the condition of a type. False when it was absent.
---@param target kubelua.draft|table
---@param name string
---@return boolean
function M.remove_condition(target, name)
  local status = place("kube.remove_condition", target)
  local kept, found = core.array {}, false
  for _, c in ipairs(status.conditions or {}) do
    if c.type == name then found = true else kept[#kept + 1] = core.copy(c) end
  end
  if found then status.conditions = kept end
  return found
end

return M
