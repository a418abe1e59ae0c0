-- wait.lua - until an object is as it should be: by a watch of this one object, not by asking again and
-- again.
--
--   list it --verdict--> done        else watch from there --each event--> verdict --> done
--      ^---- the watch ended, broke off, or its version was forgotten -----'
--
-- Conditions, as strings, or a function of the object:
--   "Ready"   "Available=False"   "condition=Ready"   "status.phase=Running"   "deleted"   "created"
--   "jsonpath={.status.phase}=Running"   "status.loadBalancer.ingress" (exists)

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"
local request = require "kubelua.request"

local M = {}

local TIMEOUT = 30            -- seconds; what kubectl wait gives
local WATCH_LONGEST = 300     -- seconds that one watch is asked for
local PAUSE_FIRST, PAUSE_MOST = 0.25, 5

-- ---------------------------------------------------------------- conditions

local function condition_of(o, name)
  for _, condition in ipairs(o("status.conditions") or {}) do
    if (condition("type") or ""):lower() == name:lower() then return condition end
  end
end

-- A condition for an older generation does not count yet.
local function is_stale(o, condition)
  local generation = o("metadata.generation")
  local observed = condition("observedGeneration") or o("status.observedGeneration")
  return generation and observed and observed < generation
end

local function by_condition(name, status)
  return function(o)
    local condition = condition_of(o, name)
    return condition and not is_stale(o, condition) and (condition("status") or ""):lower() == status:lower()
  end
end

local function by_path(what, path, wanted)
  local ok, err = pcall(core.decode "{}", path)
  if not ok then core.blame(("%s: condition %q: %s"):format(what, path, tostring(err))) end
  return function(o)
    local value = o(path)
    if wanted == nil then return value ~= nil end
    return value ~= nil and tostring(value) == wanted
  end
end

--- From the words of a condition, or a function, to a function of the object; and what is waited for beyond
--- that, "deleted" or "created".
---@param what string
---@param condition string|fun(o: kubelua.view): any
---@return (fun(o: kubelua.view): any)?, string text, string? special
function M.condition(what, condition)
  if type(condition) == "function" then return condition, "the function's condition" end
  if type(condition) ~= "string" or condition == "" then
    core.blame(('%s: the condition must be a function or a string such as "Ready", "status.phase=Running" \z
      or "deleted", got %s')
      :format(what, type(condition) == "string" and '""' or type(condition)))
  end
  local word = condition:lower()
  if word == "deleted" or word == "delete" then return nil, "its deletion", "deleted" end
  if word == "created" or word == "create" then return function() return true end, "its creation" end
  local text = ("condition %q"):format(condition)
  local path = condition:match "^jsonpath=(.*)$"
  if path then
    path = path:gsub("^'(.*)'", "%1"):gsub("^{%.?(.-)}", "%1")
  elseif not condition:find "^condition=" and condition:match "^[^=]*":find "[.%[]" then
    path = condition
  end
  if path then
    local left, wanted = path:match "^(.-)==?(.*)$"
    return by_path(what, left or path, wanted), text
  end
  local name, status = condition:gsub("^condition=", ""):match "^([^=]+)=?(.*)$"
  if not name then core.blame(("%s: %q is not a condition"):format(what, condition)) end
  return by_condition(name, status == "" and "True" or status), text
end

-- ---------------------------------------------------------------- how far it is

local function summary(o, special)
  if not o then return "it does not exist" end
  if special == "deleted" then
    local finalizers = o("metadata.finalizers")
    if not o("metadata.deletionTimestamp") then return "nobody has deleted it" end
    return finalizers and #finalizers > 0 and "finalizers keep it: "
      .. table.concat(core.copy(finalizers), ", ") or "it is being deleted"
  end
  local parts = {}
  if o("status.phase") then parts[1] = "phase " .. tostring(o.status.phase) end
  for _, condition in ipairs(o("status.conditions") or {}) do
    local why = condition("status") ~= "True" and (condition("message") or condition("reason"))
    parts[#parts + 1] = ("%s=%s%s"):format(condition("type"), condition("status"),
      why and why ~= "" and " (" .. why .. ")" or "")
  end
  return #parts > 0 and table.concat(parts, ", ") or "it has no conditions"
end

-- ---------------------------------------------------------------- the loop

local PASSING = { closed = true, unreachable = true, timeout = true, throttled = true, server = true,
  gone = true }

local Waiter = {}
Waiter.__index = Waiter

function Waiter:left() return self.deadline - core.monotonic() end

-- nil: not yet. Otherwise what wait_for returns.
function Waiter:verdict(o)
  if o then
    self.last, self.seen = o, true
    if self.uid and o("metadata.uid") ~= self.uid then
      self:gone()
      return o             -- the object that was meant is deleted
    end
    if self.special == "deleted" then
      self.uid = self.uid or o("metadata.uid")
      return nil
    end
    return self.holds(o) and o or nil
  end
  if self.special == "deleted" then return true end
  if self.seen then self:gone() end
end

function Waiter:gone()
  if self.special == "deleted" then return end
  error(core.error {
    kind = "not_found", verb = "wait", resource = self.kind, key = self.key,
    message = ("it was deleted while waiting for %s"):format(self.text),
  }, 0)
end

function Waiter:time_is_over()
  error(core.error {
    kind = "timeout", verb = "wait", resource = self.kind, key = self.key,
    message = ("%s did not come within %s: %s"):format(self.text, core.format_duration(self.timeout),
      summary(self.last, self.special)),
  }, 0)
end

function Waiter:rest(err)
  if err and not (core.is_error(err) and PASSING[err.kind]) then error(err, 0) end
  clock.sleep(math.max(0, math.min((core.is_error(err) and err.retry_after) or self.pause, self:left())))
  self.pause = math.min(self.pause * 2, PAUSE_MOST)
end

-- Follows the watch until it ends: what wait_for returns, or nil.
function Waiter:follow(version)
  local watch <close> = self.client.core:watch {
    verb = "watch", kind = self.kind, ns = self.ns, fields = self.fields, rv = version, bookmarks = true,
    timeout_seconds = math.ceil(math.max(1, math.min(self:left(), WATCH_LONGEST))),
  }
  while true do
    local ok, event, o = pcall(watch.next, watch)
    if not ok then return self:rest(event) end
    if event == nil then return nil end
    if event == "ERROR" then return self:rest() end
    if event == false then
      if self:left() <= 0 then self:time_is_over() end
    elseif event ~= "BOOKMARK" then
      self.pause = PAUSE_FIRST
      local result = self:verdict(event ~= "DELETED" and o or nil)
      if result ~= nil then return result end
    end
  end
end

function Waiter:run()
  while true do
    local ok, items, version = pcall(self.client.list, self.client, self.kind,
      { namespace = self.ns, fields = self.fields })
    if ok then
      local result = self:verdict(items[1])
      if result ~= nil then return result end
      if self:left() <= 0 then self:time_is_over() end
      result = self:follow(version)
      if result ~= nil then return result end
    else
      if not self.seen and not PASSING[core.is_error(items) and items.kind] then error(items, 0) end
      self:rest(items)
    end
    if self:left() <= 0 then self:time_is_over() end
  end
end

-- (kind, "ns/name" or name, condition, opts), (kind, ns, name, condition, opts), (object, condition, opts)
local function arguments(what, kind, ...)
  local a, b, c, d = ...
  if type(kind) ~= "string" then
    local base = core.value(object.normalize(kind, what), "the object")
    return object.kind_of(base), base("metadata.namespace"), base("metadata.name"), a, b, base("metadata.uid")
  end
  if type(c) == "string" or type(c) == "function" then return kind, a, b, c, d end
  local ns, name = request.key(what, kind, a)
  return kind, ns, name, b, c
end

--- Waits until an object is as the condition says, and returns it (true for "deleted"). It may be absent at
--- first; that it goes away while another condition is waited for is an error (kind "not_found"), and so is
--- the end of the time (kind "timeout"), which says how far it was.
function M.wait_for(client, kind, ...)
  local what = "c:wait_for"
  local uid, ns, name, condition, opts
  kind, ns, name, condition, opts, uid = arguments(what, kind, ...)
  request.key(what, kind, ns or name, ns and name)
  opts = options.check(what, opts, { timeout = "duration" })
  local timeout = core.duration(opts.timeout or TIMEOUT)
  local holds, text, special = M.condition(what, condition)
  if client:resource(kind).namespaced then ns = ns or client:namespace() else ns = nil end
  return setmetatable({
    client = client, kind = kind, ns = ns, key = ns and ns .. "/" .. name or name,
    fields = "metadata.name=" .. name, holds = holds,
    text = text, special = special, uid = special == "deleted" and uid or nil, timeout = timeout,
    deadline = core.monotonic() + timeout,
    pause = PAUSE_FIRST,
  }, Waiter):run()
end

return M
