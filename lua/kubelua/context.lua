-- context.lua - ctx: the functions of a reconcile. Reads come from the cache; writes and ctx.live yield until
-- the server has answered, and the worker runs other keys meanwhile. Errors are raised as in the client; an
-- absent object is nil.

local conditions = require "kubelua.conditions"
local core = require "kubelua.core"
local http = require "kubelua.http"
local kinds = require "kubelua.kinds"
local news = require "kubelua.news"
local object = require "kubelua.object"
local options = require "kubelua.options"
local pager = require "kubelua.pager"
local patch = require "kubelua.patch"
local request = require "kubelua.request"
local saying = require "kubelua.saying"
local suggest = require "kubelua.suggest"
local verbs = require "kubelua.verbs"

local run = core.run

local M = {}

---@class kubelua.Trigger
---@field reason "started"|"added"|"changed"|"deleted"|"resync"|"trigger"|"after"|"retry"|"reload"|"leading"|"by hand"|"request"|"unknown"
---@field events integer          the number of events since the previous run; the fields are those of the last one
---@field kind string?            "v1/Secret", of the object whose event it was: added, changed and deleted have one
---@field key string?             its "namespace/name", or "name"
---@field namespace string?
---@field name string?
---@field resourceVersion string?

---@class kubelua.Context: kubelua.Verbs
---@field key string              "namespace/name", or "name"
---@field namespace string?
---@field name string
---@field params kubelua.view     of the spec; an empty view when there are none
---@field attempt integer         1, plus the number of failures in a row
---@field generation integer      of the script
---@field id string               of this run, in every log line
---@field epoch integer           the Lease's leaseTransitions: from 0 on; 0 without election
---@field cluster string?        the key's cluster, by its context's name; nil where the process manages one cluster
---@field trigger kubelua.Trigger what woke this key
---@field memo table<string, any> what is remembered of this object while it is there, also across reloads; fields are set whole, nil removes one
---@field log kubelua.Log
---@field live kubelua.Live       the same reads, from the server
---@field try kubelua.Context      the same calls, which return nil and the error instead of raising it
---@field http kubelua.Http       requests to other servers, within `http` of the table and --allow-http
local Context = {}

-- A stream may live for days, a reconcile lives for seconds.
local STREAMS = { exec = true, exec_stream = true, logs = true, attach = true, port_forward = true,
  port_stream = true }

-- ---------------------------------------------------------------- log

-- A function in place of the format returns it, and is called only if the level is logged.

---@class kubelua.Log
---@field debug fun(self: kubelua.Log, fmt: any, ...: any)
---@field info fun(self: kubelua.Log, fmt: any, ...: any)
---@field warn fun(self: kubelua.Log, fmt: any, ...: any)
---@field error fun(self: kubelua.Log, fmt: any, ...: any)
local Log = {}

-- Tables shared by all runs of a state are read-only.
local function shared(what, methods)
  return setmetatable({}, {
    __index = methods,
    __newindex = function(_, name)
      core.blame(("%s.%s: %s is shared by all runs and cannot be changed"):format(what, tostring(name), what))
    end,
  })
end

-- A table after the format's arguments: fields of the record, as text and as the types of the text.
local TYPES = { integer = "%d", float = "%g", boolean = "%B" }

local function fields_of(level, t)
  local names, text, types = {}, {}, {}
  for name in pairs(t) do
    if type(name) ~= "string" or not name:find "^[%a_][%w_.-]*$" then
      core.blame(("ctx.log:%s: a field name has letters, digits, _, . and -, got %s"):format(level,
        tostring(name)))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local value = t[name]
    text[i] = name .. "=" .. run.quote(tostring(value))
    types[i] = name .. "=" .. (TYPES[math.type(value) or type(value)] or "%s")
  end
  return table.concat(text, " "), table.concat(types, " ")
end

local function wanted(fmt)
  local n = 0
  for _ in fmt:gsub("%%%%", ""):gmatch "%%" do n = n + 1 end
  return n
end

local log = shared("ctx.log", Log)

for _, level in ipairs { "debug", "info", "warn", "error" } do
  local what = "ctx.log:" .. level
  Log[level] = function(self, fmt, ...)
    if self ~= log then
      core.blame(("ctx.log.%s is a method: write ctx.log:%s(\"...\")"):format(level, level))
    end
    if not run.logs(level) then return end
    if type(fmt) == "function" then fmt = fmt() end
    local n = select("#", ...)
    local last = n > 0 and select(n, ...)
    if type(last) == "table" and type(fmt) == "string" and n > wanted(fmt) then
      run.log(level, n == 1 and fmt or saying.format(what, fmt, ...), fields_of(level, last))
    else
      run.log(level, saying.format(what, fmt, ...))
    end
  end
end

-- ---------------------------------------------------------------- reading

local LIST = { namespace = "string", labels = "selector", fields = "selector", index = "index",
  value = "value", limit = "integer" }

-- The full name of the kind that a script names, if it is known by now; otherwise the word as it is, so that
-- the server or the cache says what is wrong with it.
local function in_full(word)
  return kinds.known(word) or type(word) == "string" and run.kind(word) or word
end

-- A name alone means the key's own namespace for namespaced kinds.
local function place(self, kind, namespace)
  if namespace then return namespace end
  local resource = run.resource(kind)
  return resource.namespaced and self.namespace or nil
end

--- From the cache: the object or nil. ctx:get("v1/Secret", "name"), (kind, namespace, name), (kind,
--- "namespace/name")
---@param kind string       or another name of it: "secrets", "deploy", "deployments.apps"
---@param namespace_or_key string
---@param name string?
---@return kubelua.view?
function Context:get(kind, namespace_or_key, name, ...) -- luacheck: no self
  kind = in_full(kind)
  local o = run.get(kind, namespace_or_key, name, ...)
  if o ~= false then return o end
  local op = request.get("ctx:get", kind, namespace_or_key, name, ...)      -- says what is wrong with them
  return run.get(kind, op.ns or op.name, op.ns and op.name)
end

local NOTHING = {}

-- Whether a query is { index = name, value = text } and nothing else, as most are: then it is in the words of
-- the cache.
local function is_plain(opts)
  if type(opts) ~= "table" or getmetatable(opts) then return false end
  local n = 0
  for _ in next, opts do n = n + 1 end
  return n == 2 and type(opts.index) == "string" and type(opts.value) == "string"
end

local function query(what, opts)
  if opts == nil then return NOTHING end
  if is_plain(opts) then return opts end
  options.check(what, opts, LIST)
  local index, value, terms = opts.index, opts.value, nil
  if type(index) == "table" and value == nil then
    terms, index = request.terms(what, index), nil
  elseif type(index) ~= "string" or value == nil then
    if index ~= nil or value ~= nil then
      core.blame(what .. ": index and value go together: { index = \"node\", value = name }, or { index = { \z
        node = name } }")
    end
  elseif type(value) ~= "string" then
    terms, index, value = request.terms(what, { [index] = value }), nil, nil
  end
  return {
    ns = opts.namespace, labels = request.labels(opts.labels), fields = request.fields(opts.fields),
    index = index,
    value = value, terms = terms, limit = opts.limit,
  }
end

--- From the cache: a list of objects, sorted by key, as they are now.
---@param kind string
---@param opts {namespace?: string, labels?: any, fields?: any, index?: string|table, value?: string|string[], limit?: integer}?
---@return kubelua.view[]
function Context:list(kind, opts) -- luacheck: no self
  return run.list(in_full(kind), query("ctx:list", opts))
end

--- From the cache: iterates over the present objects.
---@param kind string
---@param opts table?
---@return fun(): kubelua.view?
function Context:each(kind, opts) -- luacheck: no self
  return run.each(in_full(kind), query("ctx:each", opts))
end

-- ---------------------------------------------------------------- sending

local function send(op)
  if op.verb ~= "http" then op.kind = in_full(op.kind) end
  return run.call(op)
end

local function get_live(op)
  local ok, result = pcall(send, op)
  if ok then return result end
  if request.is_absent(result) then return nil end
  error(result, 0)
end

---@class kubelua.Live
local Live = {}

--- From the server: the object or nil.
---@param kind string
---@param namespace_or_key string
---@param name_or_opts string|kubelua.GetOptions|nil
---@param opts kubelua.GetOptions?
---@return kubelua.view?
function Live:get(kind, namespace_or_key, name_or_opts, opts) -- luacheck: no self
  return get_live(request.get("ctx.live:get", kind, namespace_or_key, name_or_opts, opts))
end

--- From the server: all objects, page by page, and the resourceVersion of the list.
---@param kind string
---@param opts kubelua.ListOptions?
---@return kubelua.view[] items, string? resourceVersion
function Live:list(kind, opts) -- luacheck: no self
  local op = request.list("ctx.live:list", kind, opts)
  if op.limit and op.limit > 0 then
    local items, _, version = core.items(send(op))
    return items, version
  end
  return pager.all(send, op)
end

--- From the server: iterates over all objects, page by page.
---@param kind string
---@param opts kubelua.ListOptions?
---@return fun(): kubelua.view?
-- luacheck: no self
function Live:each(kind, opts) return pager.each(send, request.list("ctx.live:each", kind, opts)) end

local live = shared("ctx.live", Live)

local patcher = {
  send = send, get = get_live, cut_list = run.cut_list,
  has = function(kind, subresource)
    local resource = run.resource(kind)
    return subresource == "status" and resource.status
  end,
}

-- ---------------------------------------------------------------- writing

local function describe(body)
  return ("%s %s"):format(object.kind_of(body) or "object", body("metadata.name") or "?")
end

-- The owner reference to our object, for kinds in `owns`. Ownership must not cross namespaces, nor lead from
-- a namespaced owner to a cluster-scoped object: the garbage collector would delete such an object at once.
local function owned(self, what, op)
  local owns, force = run.owns(op.kind)
  if not owns then return op end
  -- A controller owns what it creates: it takes the fields that it applies from other managers.
  if op.verb == "apply" and op.force == nil then op.force = force end
  local owner = self.object
  local namespaced = run.resource(op.kind).namespaced
  local owner_ns, ns = owner("metadata.namespace"), namespaced and (op.ns or self.namespace) or nil
  if owner_ns and not namespaced then
    core.blame(("%s: %s is cluster-scoped and cannot be owned by %s in namespace %s; remove it from \z
      owns"):format(
      what, describe(op.body), describe(owner), owner_ns))
  elseif owner_ns and ns ~= owner_ns then
    core.blame(("%s: %s in namespace %s cannot be owned by %s in namespace %s: an owner lives in the same \z
      namespace or is cluster-scoped"):format(
      what, describe(op.body), tostring(ns), describe(owner), owner_ns))
  end
  local body = core.copy(op.body)
  local kept = {}
  for _, ref in ipairs(body.metadata.ownerReferences or {}) do
    if ref.controller and ref.uid ~= owner.metadata.uid then
      core.blame(("%s: %s is already controlled by %s %s"):format(what, describe(op.body), tostring(ref.kind),
        tostring(ref.name)))
    end
    if ref.uid ~= owner.metadata.uid then kept[#kept + 1] = ref end
  end
  kept[#kept + 1] = {
    apiVersion = owner.apiVersion, kind = owner.kind, name = owner.metadata.name, uid = owner.metadata.uid,
    controller = true, blockOwnerDeletion = true,
  }
  body.metadata.ownerReferences = kept
  op.body = core.value(body, "the object")
  return op
end

-- A namespaced object without a namespace lives in the key's.
local function placed(self, op)
  local kind = in_full(op.kind)
  op.ns = place(self, kind, op.ns)
  op.kind = in_full(kind)
  return op
end

--- Server-side apply, as field manager = the controller's name. Sent at once; returns the server's object.
--- Kinds in `owns` are applied with force unless `force = false`; others without. Fields that another
--- manager has then fail the run with an error that names both, in e.conflicts.
---@param o kubelua.Object|kubelua.view
---@param opts {force?: boolean, manager?: string}?
---@return kubelua.view
function Context:apply(o, opts)
  return send(placed(self, owned(self, "ctx:apply", request.apply("ctx:apply", o, opts))))
end

---@param o kubelua.Object|kubelua.view
---@return kubelua.view
function Context:create(o, opts)
  return send(placed(self, owned(self, "ctx:create", request.create("ctx:create", o, opts))))
end

---@param o kubelua.Object|kubelua.view
---@return kubelua.view
function Context:update(o, opts)
  local op = request.update("ctx:update", o, opts)
  local kept = run.kept(op.kind)
  if kept then
    core.blame(("ctx:update: of %s this controller keeps only some fields (%s), and an update would erase \z
      the others; "
      .. "use ctx:patch(object, function(o) ... end), which sends what changed"):format(op.kind, kept))
  end
  return send(placed(self, op))
end

--- Deletes an object; an absent object is success.
function Context:delete(kind, a, b, c)
  local op = request.delete("ctx:delete", kind, a, b, c)
  local ok, result = pcall(send, placed(self, op))
  if ok or request.is_absent(result) then return true end
  error(result, 0)
end

--- Changes an object: a function edits a draft (a 409 runs it again on the fresh object), a table is the
--- patch itself.
---@param o kubelua.view|kubelua.Object
---@param change fun(draft: kubelua.draft)|table
---@param opts {type?: "merge"|"json"|"strategic", subresource?: string, lock?: boolean}?
---@return kubelua.view
-- luacheck: no self
function Context:patch(o, change, opts) return patch.patch(patcher, "ctx:patch", o, change, opts) end

---@param o kubelua.view|kubelua.Object
---@param change fun(draft: kubelua.draft)|table
---@return kubelua.view
-- luacheck: no self
function Context:patch_status(o, change, opts)
  return patch.patch_status(patcher, "ctx:patch_status", o, change, opts)
end

-- evict, scale and the like: as the client has them. What they read, they read from the server.
verbs.add(Context, "ctx:", function(self)
  return {
    send = function(op) return send(request.is_many(op) and op or placed(self, op)) end,
    get = function(op) return get_live(placed(self, op)) end,
  }
end)

-- ---------------------------------------------------------------- status

-- Whether the kind's conditions take observedGeneration, as far as a refusal has shown.
local unobserved = {}

-- The conditions of a result as kube.set_condition takes them, each with the generation that it speaks of.
local function news_of(list, observe)
  local out = core.copy(list)
  for _, c in ipairs(out) do
    if observe and c.observed_generation == nil and c.observedGeneration == nil then
      c.observed_generation = conditions.MAYBE
    end
  end
  return out
end

local function merge_into(draft, status, observe, now)
  if draft("status") == nil then draft.status = {} end
  for key, value in pairs(status) do
    if value == nil then value = core.null end
    if key == "conditions" and conditions.are_conditions(value) then
      local list, changed = conditions.merge(draft.status.conditions, news_of(value, observe), now,
        draft("metadata.generation"))
      if changed then draft.status.conditions = core.copy(list) end
    elseif draft.status[key] ~= value then
      draft.status[key] = value
    end
  end
end

--- Merges the given keys into the status; nothing is sent when nothing changes. `conditions` are merged by
--- their types, as kube.set_condition does. `status` in a result does this.
---@param o kubelua.view
---@param status table|kubelua.view
---@return kubelua.view
function Context:merge_status(o, status)
  local kind = object.kind_of(o)
  local value, now = core.value(status, "the status"), run.now()
  local problem = conditions.problems(value.conditions)
  if problem then core.blame("ctx:merge_status: " .. problem) end
  local function merge(observe)
    return self:patch(o, function(draft) merge_into(draft, value, observe, now) end)
  end
  if unobserved[kind] then return merge(false) end
  local ok, result = pcall(merge, true)
  if ok then return result end
  -- What the kind's schema does not have is refused before anything is sent.
  if type(result) ~= "string" or not result:find "conditions%[%d+%]%.observedGeneration" then
    error(result, 0)
  end
  unobserved[kind] = true
  return merge(false)
end

-- ---------------------------------------------------------------- other clusters

--- Another cluster of this process (kubelua run --context a --context b): the calls of a client, as part of
--- this run. Reads come from that server, a name alone means the key's namespace there, too; writes are
--- ctx's own in every respect.
---@param name string             of the context
---@return kubelua.Client
function Context:at(name) return require("kubelua.peer").at(name) end -- luacheck: no self

-- ---------------------------------------------------------------- events, time

local function record(self, kind, what, reason, fmt, ...)
  local e = news.check(what, reason)
  run.event(kind, e.reason, saying.format(what, fmt, ...), self.object, e.action, e.related)
end

--- A Normal Event about the object: ctx:event("Synced", "copied %d keys", n). In place of the reason a
--- table may say more: { reason = "Synced", action = "Copy", related = secret }
---@param reason string|kubelua.EventNews
function Context:event(reason, fmt, ...) record(self, "Normal", "ctx:event", reason, fmt, ...) end

--- A Warning Event about the object.
---@param reason string|kubelua.EventNews
function Context:warn(reason, fmt, ...) record(self, "Warning", "ctx:warn", reason, fmt, ...) end

--- The runtime's clock.
---@return kubelua.time
function Context:now() return run.now() end -- luacheck: no self

--- Seconds since a timestamp (RFC 3339 text or a time).
---@param timestamp string|kubelua.time
---@return number
function Context:age(timestamp) -- luacheck: no self
  if type(timestamp) == "string" then timestamp = core.time(timestamp) end
  return run.now() - timestamp
end

---@alias kubelua.SecretPart string|number|kubelua.Secret

--- A text to pass on, not to read: tostring shows "***"; format puts it into `text` as the first %s.
---@class kubelua.Secret
---@field format fun(self: kubelua.Secret, text: string, ...: kubelua.SecretPart): kubelua.Secret

--- A param of type "secret", for headers and tls of ctx.http and for the data of a Secret. What
--- kube.base64_encode makes of it is a secret, too. nil: it is optional, and nobody gave it.
---@param name string
---@return kubelua.Secret?
function Context.secret(name)
  if type(name) ~= "string" then
    core.blame(("ctx.secret is called with a dot and a name, ctx.secret \"token\", got %s"):format(
      type(name)))
  end
  local found, kind, names = run.secret(name)
  if found ~= false then return found end
  if kind then
    core.blame(("ctx.secret %q: the param is not a secret; it is ctx.params.%s"):format(name, name))
  end
  core.blame(("ctx.secret %q: unknown secret%s"):format(name,
    #names > 0 and suggest.hint(name, names)
      or ("; declare it, params = { %s = { type = \"secret\" } }"):format(name)))
end

--- Waits; other keys run meanwhile.
---@param duration string|number
function Context:sleep(duration) run.sleep(duration) end -- luacheck: no self

-- ---------------------------------------------------------------- making one

Context.log, Context.live = log, live
Context.http = shared("ctx.http", http.methods("ctx.http", send))

-- Calls fn(self, ...) as kube.try does.
local function finish(ok, ...)
  if ok then return ... end
  if core.is_error(...) then return nil, ... end
  error((...), 0)
end

local function trying(what, self, methods, missing)
  return setmetatable({}, {
    __index = function(_, name)
      local found = methods[name]
      if name == "live" or name == "http" then
        if found then return trying(what .. "." .. name, found, found, missing) end
      elseif type(found) == "function" then
        return function(_, ...) return finish(pcall(found, self, ...)) end
      elseif found ~= nil then
        core.blame(("%s.%s: ctx.try has only methods; write ctx.%s"):format(what, name, name))
      end
      missing(name)
    end,
    __newindex = function(_, name) core.blame(("%s.%s cannot be set"):format(what, tostring(name))) end,
  })
end

local function missing(name)
  if STREAMS[name] then
    core.blame(("ctx.%s: a reconcile cannot use streams; use a Job, or a standalone program with \z
      kube.connect():%s"):format(name, name))
  end
  local names = {}
  for known in pairs(Context) do names[#names + 1] = known end
  core.blame(("ctx.%s: unknown field%s"):format(tostring(name), suggest.hint(name, names)))
end

require("kubelua.helpers").into_context(Context)

-- ---------------------------------------------------------------- for results

-- The functions by which a result is carried out, see lua/kubelua/result.lua.
M.hands = { send = send, priority = run.priority }

function M.hands.apply(ctx, what, o, force)
  local op = placed(ctx, owned(ctx, what, request.apply(what, o, { force = force })))
  op.unread = true
  return op
end

function M.hands.delete(ctx, what, o)
  if core.is_view(o) or o.metadata ~= nil then return placed(ctx, request.delete(what, o)) end
  local opts = { propagation = o.propagation, uid = o.uid, resourceVersion = o.resourceVersion }
  if o.namespace == nil then return placed(ctx, request.delete(what, o.kind, o.name, opts)) end
  return placed(ctx, request.delete(what, o.kind, o.namespace, o.name, opts))
end

function M.hands.status(ctx, o, status, observed)
  if observed and o("metadata.generation") then
    status = core.copy(status)
    status.observedGeneration = o.metadata.generation
  end
  return ctx:merge_status(o, status)
end

M.hands.get = get_live

function M.hands.is_cut(c)
  if run.kept(c.resource) then return true end
  for _, kind in ipairs(c.metadata or {}) do
    if kind == c.resource then return true end
  end
  return false
end

-- The run supplies the fields (bindings/api/lctx.c).
run.context(Context, missing, function(ctx) return trying("ctx.try", ctx, Context, missing) end)

--- The members of ctx by name, for kubelua check.
M.class = Context

-- The functions that map events read the cache, and nothing else.
local READING = { get = Context.get, list = Context.list, each = Context.each, log = log }

local reading = shared("ctx", setmetatable(READING, { __index = function(_, name)
  if name == "namespace" then return nil end
  core.blame(("ctx.%s is not available in a mapping function: it may use get, list, each and log"):format(
    tostring(name)))
end }))

function M.reading() return reading end

return M
