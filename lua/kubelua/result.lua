-- result.lua - what a reconcile may return or raise, and what becomes of it.
--
--   nothing, true                      done                      kube.retry("5s", why)   an expected wait
--   30, "30s"                          look again then           kube.fail(why)          no more until the object changes
--   { requeue_after, status, apply, delete, events }             nil, "why"; a raised error: failure, again with backoff
--
-- The effects of a table are sent in the order apply, delete, status, events, after the function has returned and only when all
-- of it is sound.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.Verdict
local Verdict = {}
Verdict.__name = "kubelua.Verdict"
Verdict.__tostring = function(v) return ("kube.%s: %s"):format(v.word, v.why or v.after) end

local KEYS = { requeue_after = true, status = true, apply = true, delete = true, events = true }
local EVENT_KEYS = { type = true, reason = true, message = true, action = true, related = true }
local DELETE_KEYS = { kind = true, namespace = true, name = true }

local function seconds(x, what)
  local ok, n = pcall(core.duration, x)
  if not ok or n < 0 then
    error(("%s must be seconds or a duration such as \"30s\", not negative, got %s"):format(what, tostring(x)), 0)
  end
  return n + 0.0
end

--- An expected wait: no error, no backoff. Returned or raised.
---@param after string|number
---@param why string?
---@return kubelua.Verdict
function M.retry(after, why)
  return setmetatable({ word = "retry", after = seconds(after, "kube.retry"), why = why and tostring(why) }, Verdict)
end

--- A failure for good: not tried again until the object changes. Returned or raised.
---@param why string
---@return kubelua.Verdict
function M.fail(why)
  return setmetatable({ word = "fail", why = why and tostring(why) or "failed" }, Verdict)
end

-- ---------------------------------------------------------------- checking before anything is sent

local function as_list(x, what)
  if type(x) ~= "table" then error(("result.%s must be a table, got %s"):format(what, type(x)), 0) end
  return #x > 0 and x or next(x) == nil and {} or { x }
end

local function known(t, keys, what)
  for key in pairs(t) do
    if not keys[key] then error(("%s: unknown key '%s'%s"):format(what, tostring(key), suggest.hint(key, keys)), 0) end
  end
end

local function text(t, key, what)
  if type(t[key]) ~= "string" or t[key] == "" then error(("%s.%s must be a text, got %s"):format(what, key, type(t[key])), 0) end
end

local function check_effects(r)
  known(r, KEYS, "result")
  local out = { after = r.requeue_after ~= nil and seconds(r.requeue_after, "result.requeue_after") or nil }
  if r.status ~= nil then
    if type(r.status) ~= "table" and not core.is_view(r.status) then
      error(("result.status must be a table of status fields, got %s"):format(type(r.status)), 0)
    end
    out.status = core.value(r.status, "result.status")
  end
  out.apply, out.delete, out.events = {}, {}, {}
  if r.apply ~= nil then
    out.apply = core.is_view(r.apply) and { r.apply } or as_list(r.apply, "apply")
    for i, o in ipairs(out.apply) do
      if type(o) ~= "table" and not core.is_view(o) then error(("result.apply[%d] must be an object, got %s"):format(i, type(o)), 0) end
    end
  end
  if r.delete ~= nil then
    out.delete = as_list(r.delete, "delete")
    for i, d in ipairs(out.delete) do
      local what = ("result.delete[%d]"):format(i)
      if type(d) ~= "table" then error(("%s must be {kind, namespace, name}, got %s"):format(what, type(d)), 0) end
      known(d, DELETE_KEYS, what)
      text(d, "kind", what)
      text(d, "name", what)
    end
  end
  if r.events ~= nil then
    out.events = as_list(r.events, "events")
    for i, e in ipairs(out.events) do
      local what = ("result.events[%d]"):format(i)
      if type(e) ~= "table" then error(("%s must be {type, reason, message}, got %s"):format(what, type(e)), 0) end
      known(e, EVENT_KEYS, what)
      text(e, "reason", what)
      text(e, "message", what)
      if e.type ~= nil and e.type ~= "Normal" and e.type ~= "Warning" then
        error(("%s.type must be Normal or Warning, got %s"):format(what, tostring(e.type)), 0)
      end
    end
  end
  return out
end

-- ---------------------------------------------------------------- sending

local function send(ctx, obj, e)
  for _, o in ipairs(e.apply) do ctx:apply(o) end
  for _, d in ipairs(e.delete) do
    if d.namespace then ctx:delete(d.kind, d.namespace, d.name) else ctx:delete(d.kind, d.name) end
  end
  if e.status then ctx:merge_status(obj, e.status) end
  for _, v in ipairs(e.events) do
    local say = v.type == "Warning" and ctx.warn or ctx.event
    say(ctx, { reason = v.reason, action = v.action, related = v.related }, "%s", v.message)
  end
end

local NONSENSE = "reconcile returned %s; it may return nothing, seconds or a duration (\"30s\"), a table of "
  .. "{requeue_after, status, apply, delete, events}, kube.retry(...) or kube.fail(...)"

--- What bindings/program.c is told: a word, seconds, a message.
---@return "done"|"after"|"retry"|"fail"|"error" word, number? seconds, string? message
function M.settle(ctx, obj, r, why)
  if r == nil and why ~= nil then return "error", nil, tostring(why) end
  if r == nil or r == true then return "done", nil, nil end
  if type(r) == "number" or type(r) == "string" then return "after", seconds(r, "the requeue that reconcile returned"), nil end
  if getmetatable(r) == Verdict then return r.word, r.after, r.why end
  if type(r) ~= "table" then error(NONSENSE:format(core.is_view(r) and "an object" or "a " .. type(r)), 0) end
  local effects = check_effects(r)
  local ok, err = pcall(send, ctx, obj, effects)
  if not ok then error(type(err) == "string" and "what reconcile returned: " .. err or err, 0) end
  if effects.after then return "after", effects.after, nil end
  return "done", nil, nil
end

--- The same for what was raised.
---@return string word, number? seconds, string? message
function M.verdict(e)
  if getmetatable(e) == Verdict then return e.word, e.after, e.why end
  if core.is_error(e) and e.code == 409 and e.kind ~= "already_exists" then return "conflict", nil, tostring(e) end
  return "error", nil, tostring(e)
end

return M
