-- result.lua - what a reconcile may return or raise, and what becomes of it.
--
--   nothing, true              done
--   30, "30s"                  done; the key runs again after that time
--   kube.retry("5s", why)      an expected wait
--   kube.fail(why)             no more runs until the object changes
--   nil, "why"                 a failure, retried with backoff; so is a raised error
--   { apply, force, delete, status, events, error, fail, requeue_after, requeue, ... }
--
-- The effects of a table are sent in the order apply, delete, status, events, after the function has
-- returned and only when all of it is sound. What the queue hears then is the first of these that is there:
-- error, fail, requeue_after, requeue.
--
-- Effects reach the world through their `hands` (lua/kubelua/context.lua):
--   { apply = function(ctx, what, object, force) -> op, delete = function(ctx, what, object) -> op,
--     send = function(op),
--     status = function(ctx, object, status), priority = function(n) }

local conditions = require "kubelua.conditions"
local core = require "kubelua.core"
local news = require "kubelua.news"
local request = require "kubelua.request"
local saying = require "kubelua.saying"
local suggest = require "kubelua.suggest"

local M = {}

--- What a reconcile may return: effects, and what is next.
---@class kubelua.Result
---@field apply? table|kubelua.view             objects to apply, one or a list
---@field force? boolean                        take the fields that are applied from other managers
---@field delete? table|kubelua.view            { kind, namespace, name, ... }, an object, or a list of either
---@field status? table|kubelua.view            keys that are merged into the status; conditions by their types
---@field observed_generation? boolean          set status.observedGeneration, too
---@field events? table                         { type, reason, message, action, related }, one or a list
---@field error? any                            after the effects: an error, tried again with backoff
---@field fail? any                             after the effects: no more until the object changes
---@field requeue_after? kubelua.Duration       look again then: the way to ask for another run
---@field requeue? boolean                      again, with growing backoff
---@field priority? integer                     of the key when it comes back

---@class kubelua.Verdict
local Verdict = {}
Verdict.__name = "kubelua.Verdict"
Verdict.__tostring = function(v) return ("kube.%s: %s"):format(v.word, v.why or v.after) end

-- A larger number is a mistake: priorities are only compared.
local PRIORITY_MAX = 1000000

local KEYS = {
  requeue_after = true, requeue = true, error = true, fail = true, priority = true, status = true,
  observed_generation = true, apply = true, force = true,
  delete = true, events = true,
}
M.KEYS = KEYS
local EVENT_KEYS = { type = true, reason = true, message = true, action = true, related = true }
local DELETE_KEYS = { kind = true, namespace = true, name = true, propagation = true, uid = true,
  resourceVersion = true }

local function seconds(x, what)
  local ok, n = pcall(core.duration, x)
  if not ok or n < 0 then
    error(("%s must be seconds or a duration such as \"30s\", not negative, got %s"):format(what,
      tostring(x)), 0)
  end
  return n + 0.0
end

--- An expected wait: no error, no backoff. Returned or raised.
---@param after string|number
---@param why string?
---@return kubelua.Verdict
function M.retry(after, why)
  return setmetatable({ word = "retry", after = seconds(after, "kube.retry"),
    why = why and saying.shown(why) }, Verdict)
end

--- A terminal failure: no more tries until the object changes. Returned or raised.
---@param why string
---@return kubelua.Verdict
function M.fail(why)
  return setmetatable({ word = "fail", why = why and saying.shown(why) or "failed" }, Verdict)
end

-- ---------------------------------------------------------------- checking before anything is sent

-- One object or a list of them. A list with a hole would lose what stands behind it.
local function as_list(x, what)
  if type(x) == "table" and x[1] ~= nil and x.force ~= nil then
    error(("result.%s is a list and cannot contain force: put it beside the list, { apply = { ... }, \z
      force = true }"):format(what), 0)
  end
  if core.is_view(x) then x = x.kind ~= nil and { x } or x end
  if type(x) == "userdata" then                 -- what ctx:list gave
    local list = {}
    for i, o in ipairs(x) do list[i] = o end
    return list
  end
  if type(x) ~= "table" then error(("result.%s must be a table, got %s"):format(what, type(x)), 0) end
  local last, count = 0, 0
  for key in pairs(x) do
    if math.type(key) == "integer" then last, count = math.max(last, key), count + 1 end
  end
  if last == 0 then return next(x) == nil and {} or { x } end
  for i = 1, last do
    if x[i] == nil then
      error(("result.%s[%d] is nil but [%d] is not: leave out absent items"):format(what, i,
        last), 0)
    end
  end
  return x
end

local function known(t, keys, what)
  for key in pairs(t) do
    if not keys[key] then
      error(("%s: unknown key '%s'%s"):format(what, tostring(key), suggest.hint(key, keys)), 0)
    end
  end
end

local function text(t, key, what)
  if type(t[key]) ~= "string" or t[key] == "" then
    error(("%s.%s must be a string, got %s"):format(what, key, type(t[key])), 0)
  end
end

local function check_status(r)
  local status = r.status
  if r.observed_generation ~= nil and type(r.observed_generation) ~= "boolean" then
    error(("result.observed_generation must be true or false, got %s"):format(type(r.observed_generation)), 0)
  end
  if status == nil then return r.observed_generation and core.value(core.object {}) or nil end
  if type(status) ~= "table" and not core.is_view(status) then
    error(("result.status must be a table of status fields, got %s"):format(type(status)), 0)
  end
  if type(status) == "table" and status[1] ~= nil then
    error("result.status must be a table of status fields, got a list; conditions go into status.conditions",
      0)
  end
  local problem = conditions.problems(status.conditions)
  if problem then error("result.status." .. problem, 0) end
  return core.value(next(status) == nil and core.object {} or status, "result.status")
end

local function check_object(o, what)
  if type(o) ~= "table" and not core.is_view(o) then
    error(("%s must be an object, got %s"):format(what, type(o)), 0)
  end
end

local function check_delete(d, what)
  if core.is_view(d) then return end
  if type(d) ~= "table" then
    error(("%s must be {kind, namespace, name}, got %s"):format(what, type(d)), 0)
  end
  if d.metadata ~= nil then return end           -- an object: it names itself
  known(d, DELETE_KEYS, what)
  text(d, "kind", what)
  text(d, "name", what)
end

local function check_event(e, what)
  if type(e) ~= "table" then
    error(("%s must be {type, reason, message}, got %s"):format(what, type(e)), 0)
  end
  known(e, EVENT_KEYS, what)
  text(e, "message", what)
  if e.type ~= nil and e.type ~= "Normal" and e.type ~= "Warning" then
    error(("%s.type must be Normal or Warning, got %s"):format(what, tostring(e.type)), 0)
  end
  news.check(what, { reason = e.reason, action = e.action, related = e.related })
end

local function each(r, key, check)
  if r[key] == nil then return {} end
  local list = as_list(r[key], key)
  for i, x in ipairs(list) do check(x, ("result.%s[%d]"):format(key, i)) end
  return list
end

-- Why it failed, for good or until it is tried again: a text, or an error of the API.
local function reason(r, key)
  local why = r[key]
  if why == nil or type(why) == "string" or core.is_error(why) then return why end
  error(("result.%s must be a string with the reason, got %s"):format(key, type(why)), 0)
end

local function check_effects(r)
  known(r, KEYS, "result")
  if r.requeue ~= nil and type(r.requeue) ~= "boolean" then
    error(("result.requeue must be true or false, got %s; use requeue_after for a delay")
      :format(type(r.requeue)),
      0)
  end
  if r.force ~= nil and type(r.force) ~= "boolean" then
    error(("result.force must be true (take the fields that it applies from other managers) or \z
      false, got %s"):format(type(r.force)), 0)
  end
  if r.priority ~= nil and (math.type(r.priority) ~= "integer" or math.abs(r.priority) > PRIORITY_MAX) then
    error(("result.priority must be a whole number from %d to %d, got %s"):format(-PRIORITY_MAX, PRIORITY_MAX,
      tostring(r.priority)), 0)
  end
  return {
    after = r.requeue_after ~= nil and seconds(r.requeue_after, "result.requeue_after") or nil,
    requeue = r.requeue,
    error = reason(r, "error"), fail = reason(r, "fail"), priority = r.priority, force = r.force,
    observed = r.observed_generation,
    status = check_status(r), apply = each(r, "apply", check_object),
    delete = each(r, "delete", check_delete),
    events = each(r, "events", check_event),
  }
end

-- ---------------------------------------------------------------- sending

-- Everything becomes a request before the first is sent: a mistake in the last one leaves nothing half done.
local function requests(hands, ctx, e)
  local ops = {}
  for i, o in ipairs(e.apply) do ops[i] = hands.apply(ctx, ("result.apply[%d]"):format(i), o, e.force) end
  for i, d in ipairs(e.delete) do ops[#ops + 1] = hands.delete(ctx, ("result.delete[%d]"):format(i), d) end
  return ops
end

local function send(hands, ctx, obj, e)
  for _, op in ipairs(requests(hands, ctx, e)) do hands.send(op) end
  if e.status then hands.status(ctx, obj, e.status, e.observed) end
  for _, v in ipairs(e.events) do
    local say = v.type == "Warning" and ctx.warn or ctx.event
    say(ctx, { reason = v.reason, action = v.action, related = v.related }, "%s", v.message)
  end
end

local NONSENSE = "reconcile returned %s; it may return nothing, seconds or a duration (\"30s\"), a table of "
  .. "{apply, delete, status, events, requeue_after, ...}, kube.retry(...) or kube.fail(...)"

-- A wait of no length is not a wait: done, as in controller-runtime.
local function after(n)
  if n > 0 then return "after", n, nil end
  return "done", nil, nil
end

-- What was returned as an error. Another cluster may have an object of the same name.
local function returned(ctx, obj, why)
  local kind = not ctx.cluster and obj.kind ~= nil and obj.apiVersion .. "/" .. obj.kind or nil
  return M.verdict(why, kind, ctx.key)
end

--- What bindings/script/program.c is told: a word, seconds, a message.
--- error > fail > requeue_after > requeue > done.
---@return "done"|"after"|"requeue"|"retry"|"fail"|"error"|"conflict" word, number? seconds, string? message
function M.settle(hands, ctx, obj, r, why)
  if why ~= nil and r ~= true then
    if r ~= nil then
      ctx.log:warn "reconcile returned a result and an error; the result is ignored"
    end
    return returned(ctx, obj, why)
  end
  if r == nil or r == true then return "done", nil, nil end
  if type(r) == "number" or type(r) == "string" then
    return after(seconds(r, "the requeue that reconcile returned"))
  end
  if getmetatable(r) == Verdict then return r.word, r.after, r.why end
  if type(r) ~= "table" then error(NONSENSE:format(core.is_view(r) and "an object" or "a " .. type(r)), 0) end
  local effects = check_effects(r)
  local ok, err = pcall(send, hands, ctx, obj, effects)
  if not ok then error(type(err) == "string" and "what reconcile returned: " .. err or err, 0) end
  if effects.priority then hands.priority(effects.priority) end
  if effects.error then
    if effects.after or effects.requeue or effects.fail then
      ctx.log:warn "result.error takes precedence; fail, requeue_after and requeue beside it are ignored"
    end
    return returned(ctx, obj, effects.error)
  end
  if effects.fail then return "fail", nil, saying.shown(effects.fail) end
  if effects.after and effects.after > 0 then return "after", effects.after, nil end
  if effects.requeue then return "requeue", nil, nil end
  return "done", nil, nil
end

-- A stale resourceVersion is over with the next run, and so is an object whose end the cache has not heard
-- of. Fields that another manager has are not.
local function is_stale(e, kind, key)
  if e.kind == "conflict" then return not e.conflicts end
  return kind ~= nil and e.resource == kind and e.key == key and request.is_absent(e)
end

--- The same for what was raised in a run of an object of `kind`.
---@param kind string?  nil: the object may be another cluster's
---@param key string?
---@return string word, number? seconds, string? message
function M.verdict(e, kind, key)
  if getmetatable(e) == Verdict then return e.word, e.after, e.why end
  if core.is_error(e) and is_stale(e, kind, key) then return "conflict", nil, tostring(e) end
  return "error", nil, saying.shown(e)
end

return M
