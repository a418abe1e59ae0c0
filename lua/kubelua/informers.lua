-- informers.lua - shared informers for any Lua state: stores that keep themselves up to date, and handlers
-- that hear of changes.
--
--   local f <close> = kube.informers(c, { namespace = "default", resync = "10m" })
--   local pods = f:informer "v1/Pod"
--   pods:on { add = function(o, initial) ... end, update = function(old, new) ... end, delete = function(o) ... end }
--   f:start()
--   assert(f:wait_synced("30s"))
--   f:run()
--
-- Lists and watches live on the client's watch thread, and so do the stores: reading one never waits.
-- Handlers run where the program calls f:poll or f:run. While it does not, changes of one object become
-- one: a program that was away hears of each object once, with what it knew and what there is now, and its
-- memory is bounded by the number of objects, not of changes.

local core = require "kubelua.core"
local edit = require "kubelua.edit"
local options = require "kubelua.options"
local request = require "kubelua.request"

local M = {}

-- As client-go: looking at everything again more often than this is a busy loop.
local RESYNC_LEAST = 1

---@alias kubelua.Transform fun(o: kubelua.draft): any  edits the object, or returns another; false leaves it out

---@class kubelua.InformerOptions
---@field namespace string?                 all namespaces when absent
---@field labels kubelua.LabelSelector?
---@field fields kubelua.FieldSelector?
---@field keep string[]?                    paths of what is stored of each object; the rest is never decoded
---@field managed_fields boolean?           false drops metadata.managedFields
---@field transform kubelua.Transform?

---@class kubelua.InformersOptions: kubelua.InformerOptions
---@field resync kubelua.Duration?          how often handlers see every object again
---@field tweak (fun(kind: string, opts: kubelua.InformerOptions))?  may change the options of each informer
---@field on_watch_error (fun(kind: string, err: kubelua.Error))?    a list or watch failed; it is tried again
---@field stream boolean?                   begin with the initial events of a watch rather than with lists, where the server can
---@field clock (fun(): number)?            seconds, for resync; a program's tests own it

---@class kubelua.InformerStats
---@field state "idle"|"listing"|"streaming"|"watching"|"waiting"|"parked"|"stopped"
---@field synced boolean
---@field parked boolean             refused or missing; tried again with growing pauses
---@field message string?            the last failure, while it lasts
---@field failure string?            its kind
---@field resourceVersion string
---@field objects integer
---@field bytes integer
---@field lists integer
---@field watches integer
---@field events integer
---@field errors integer

---@class kubelua.EventHandlers
---@field add (fun(o: kubelua.view, initial: boolean))?
---@field update (fun(old: kubelua.view, new: kubelua.view))?     a resync passes the same object twice
---@field delete (fun(o: kubelua.view))?                          its last known state

---@class kubelua.StoreQuery
---@field namespace string?
---@field labels kubelua.LabelSelector?
---@field index string|table<string, any>|nil     a name, or a table { name = value }
---@field value string|string[]|nil               of the index that `index` names
---@field limit integer?

local INFORMER = {
  namespace = "string", labels = "selector", fields = "selector", keep = "table", managed_fields = "boolean",
  transform = "function",
}
local FACTORY = {
  resync = "duration", tweak = "function", on_watch_error = "function", stream = "boolean",
  clock = "function",
}
for name, word in pairs(INFORMER) do FACTORY[name] = word end
local HANDLERS = { add = "function", update = "function", delete = "function" }
local QUERY = { namespace = "string", labels = "selector", index = "index", value = "value",
  limit = "integer" }
local LIST = { labels = "selector", limit = "integer" }

local function period(what, resync)
  if resync == nil then return nil end
  local seconds = core.duration(resync)
  if seconds == 0 then return nil end
  if seconds < RESYNC_LEAST then
    core.blame(("%s: resync must be at least 1s, or 0 for none, got %s"):format(what, tostring(resync)))
  end
  return seconds
end

-- ---------------------------------------------------------------- indexes that are Lua functions

-- Kept by a feed of its own, which is emptied when somebody looks: always as new as the store, at most one
-- entry per object behind.
---@class kubelua.LuaIndex
---@field private fn fun(o: kubelua.view): ...
local Index = {}
Index.__index = Index

local function emit(out, first, ...)
  if type(first) == "table" then
    for _, value in ipairs(first) do out[tostring(value)] = true end
  else
    for _, value in ipairs { first, ... } do out[tostring(value)] = true end
  end
  return out
end

local function key_of(o)
  local namespace = o.metadata("namespace")
  return namespace and namespace .. "/" .. o.metadata.name or o.metadata.name
end

function Index:forget(key)
  for value in pairs(self.values[key] or {}) do
    local objects = self.by[value]
    objects[key] = nil
    if next(objects) == nil then self.by[value] = nil end
  end
  self.values[key] = nil
end

function Index:drain()
  while true do
    local _, news, old, now = self.inbox:take()
    if not news then return end
    if old then self:forget(key_of(old)) end
    local o = now and self.informer:transformed(now)
    if o then
      local key, values = key_of(o), emit({}, self.fn(o))
      self.values[key] = values
      for value in pairs(values) do
        self.by[value] = self.by[value] or {}
        self.by[value][key] = o
      end
    end
  end
end

-- ---------------------------------------------------------------- stores

---@class kubelua.Store
---@field private informer kubelua.Informer
local Store = {}
Store.__index = Store

local function sorted(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return list
end

-- What has to be decided here rather than in C: functions, and whatever looks at transformed objects.
local function holds(self, o, ns, labels, terms)
  if ns and o.metadata("namespace") ~= ns then return false end
  if labels and not labels:matches(o) then return false end
  for _, term in ipairs(terms) do
    if not self.informer:index_says(term, key_of(o)) then return false end
  end
  return true
end

local function query(what, opts)
  opts = options.check(what, opts, QUERY)
  local terms = {}
  if type(opts.index) == "table" and opts.value == nil then
    terms = request.terms(what, opts.index)
  elseif type(opts.index) == "string" and opts.value ~= nil then
    terms = request.terms(what, { [opts.index] = opts.value })
  elseif opts.index ~= nil or opts.value ~= nil then
    core.blame(what .. ": index and value go together: { index = \"node\", value = name }, or { index = { \z
      node = name } }")
  end
  return { ns = opts.namespace, labels = request.labels(opts.labels), terms = terms, limit = opts.limit }
end

local function find(self, what, opts)
  local q = query(what, opts)
  local informer = self.informer
  local mine, theirs = {}, {}
  for _, term in ipairs(q.terms) do
    local set = informer.indexes[term[1]] and mine or theirs
    set[#set + 1] = term
  end
  if not informer.transform and #mine == 0 then return informer.core:list(q) end
  local limit, ns, labels, out = q.limit, q.ns, q.labels and core.selector(q.labels), {}
  q.terms, q.limit = theirs, nil
  if informer.transform then q.labels, q.ns = nil, nil else labels, ns = nil, nil end
  for _, term in ipairs(mine) do informer.indexes[term[1]]:drain() end
  for _, o in ipairs(informer.core:list(q)) do
    if limit and #out >= limit then break end
    o = informer:transformed(o)
    if o and holds(self, o, ns, labels, mine) then out[#out + 1] = o end
  end
  return out
end

--- The object under a key, or nil: s:get("default/a"), s:get("default", "a"), s:get(object)
---@param key string|kubelua.view|kubelua.Object
---@param name string?
---@return kubelua.view?
function Store:get(key, name)
  if type(key) ~= "string" then
    local metadata = key.metadata or core.blame "store:get: expected a key or an object"
    key, name = metadata.namespace or metadata.name, metadata.namespace and metadata.name
  end
  local o = self.informer.core:get(name and key .. "/" .. name or key)
  return o and self.informer:transformed(o) or nil
end

--- Whether an object is there.
function Store:has(key, name) return self:get(key, name) ~= nil end

--- All objects, or those that a query selects, sorted by key: one moment of the store.
---@param opts kubelua.StoreQuery?
---@return kubelua.view[]
function Store:list(opts) return find(self, "store:list", opts) end

--- All keys, sorted.
---@return string[]
function Store:keys()
  if not self.informer.transform then return self.informer.core:keys() end
  local out = {}
  for i, o in ipairs(self:list()) do out[i] = key_of(o) end
  return out
end

--- How many objects there are.
---@return integer
function Store:len()
  if self.informer.transform then return #self:list() end
  return self.informer.core:len()
end

Store.__len = Store.len

--- A store with named indexes.
---@class kubelua.Indexer: kubelua.Store
local Indexer = setmetatable({}, { __index = Store })
Indexer.__index = Indexer
Indexer.__len = Store.len

--- Adds an index: by a path ("spec.nodeName"), or by a function that returns an object's values, or a list
--- of them. Objects that are there already are indexed, too. The index "namespace" is built in.
---@param name string
---@param by string|fun(o: kubelua.view): ...
function Indexer:add_index(name, by)
  if type(name) ~= "string" or name == "" then
    core.blame("indexer:add_index: the name must be a text that is not empty")
  end
  local informer = self.informer
  if informer.paths[name] or informer.indexes[name] or name == "namespace" then
    if informer.paths[name] == by then return end
    core.blame(("indexer:add_index: %s has an index %q already"):format(informer.kind, name))
  end
  if type(by) == "string" and not informer.transform then
    informer.core:add_index(name, by)
    informer.paths[name] = by
    return
  elseif type(by) == "string" then
    local path = by
    by = function(o)
      local value = o(path)
      if core.is_view(value) then return table.unpack(core.copy(value)) end
      return value
    end
  elseif type(by) ~= "function" then
    core.blame(("indexer:add_index: index %q must be a path or a function, got %s"):format(name, type(by)))
  end
  local inbox = core.inbox()
  local index = setmetatable({ informer = informer, fn = by, values = {}, by = {}, inbox = inbox }, Index)
  index.feed = informer.core:feed(inbox)
  informer.indexes[name] = index
end

local function lua_index(self, what, name)
  local index = self.informer.indexes[name]
  if index then index:drain() end
  if not index and name ~= "namespace" and not self.informer.paths[name] then
    local known = { namespace = true }
    for _, set in ipairs { self.informer.paths, self.informer.indexes } do
      for word in pairs(set) do known[word] = true end
    end
    core.blame(("%s: %s has no index %q; there are: %s"):format(what, self.informer.kind, tostring(name),
      table.concat(sorted(known), ", ")))
  end
  return index
end

--- The objects that have a value in an index, sorted by key.
---@param name string
---@param value string
---@return kubelua.view[]
function Indexer:by_index(name, value)
  local index = lua_index(self, "indexer:by_index", name)
  if not index then
    return find(self, "indexer:by_index", name == "namespace" and { namespace = value }
      or { index = name, value = value })
  end
  local objects, out = index.by[value] or {}, {}
  for i, key in ipairs(sorted(objects)) do out[i] = objects[key] end
  return out
end

--- The keys of these objects.
---@param name string
---@param value string
---@return string[]
function Indexer:index_keys(name, value)
  local out = {}
  for i, o in ipairs(self:by_index(name, value)) do out[i] = key_of(o) end
  return out
end

--- All values that an index has, sorted.
---@param name string
---@return string[]
function Indexer:index_values(name)
  local index = lua_index(self, "indexer:index_values", name)
  if index then return sorted(index.by) end
  local path, set = self.informer.paths[name] or "metadata.namespace", {}
  for _, o in ipairs(self:list()) do
    local value = o(path)
    if core.is_view(value) then
      emit(set, core.copy(value))
    elseif value ~= nil then
      set[tostring(value)] = true
    end
  end
  return sorted(set)
end

-- ---------------------------------------------------------------- listers

---@class kubelua.NamespaceLister
---@field private store kubelua.Store
---@field private namespace string
local NamespaceLister = {}
NamespaceLister.__index = NamespaceLister

---@param name string
---@return kubelua.view?
function NamespaceLister:get(name) return self.store:get(self.ns, name) end

---@param opts {labels?: kubelua.LabelSelector, limit?: integer}?
---@return kubelua.view[]
function NamespaceLister:list(opts)
  opts = options.check("lister:list", opts, LIST)
  return find(self.store, "lister:list", { namespace = self.ns, labels = opts.labels, limit = opts.limit })
end

--- Reads of one informer: what client-go's listers are.
---@class kubelua.Lister
---@field private store kubelua.Store
local Lister = {}
Lister.__index = Lister

--- l:get("default/a"), l:get("default", "a"); a name alone for kinds without namespaces. nil when absent.
---@param key string
---@param name string?
---@return kubelua.view?
function Lister:get(key, name) return self.store:get(key, name) end

---@param opts kubelua.StoreQuery?
---@return kubelua.view[]
function Lister:list(opts) return find(self.store, "lister:list", opts) end

--- The same reads within one namespace.
---@param ns string
---@return kubelua.NamespaceLister
function Lister:namespace(ns)
  if type(ns) ~= "string" or ns == "" then core.blame "lister:namespace: expected the name of a namespace" end
  return setmetatable({ store = self.store, ns = ns }, NamespaceLister)
end

-- ---------------------------------------------------------------- handlers

---@class kubelua.Handler
---@field private factory kubelua.Informers
local Handler = {}
Handler.__index = Handler

--- From now on it hears nothing, not even of what has happened already.
function Handler:remove()
  if not self.feed then return end
  self.factory.handlers[self.id] = nil
  self.feed:close()
  self.feed = nil
end

--- Whether it has heard of everything that was there when it came.
---@return boolean
function Handler:synced() return self.heard end

local function call(fn, ...)
  if fn then fn(...) end
end

function Handler:tell(news, old, now, flag)
  local informer = self.informer
  if news == "synced" then
    self.heard = true
    return
  end
  old, now = old and informer:transformed(old) or nil, now and informer:transformed(now) or nil
  if old and now then
    call(self.on.update, old, now)
  elseif now then
    call(self.on.add, now, news == "add" and flag)
  elseif old then
    call(self.on.delete, old)
  end
end

-- Seconds until the next resync; it is asked for when its time has come.
function Handler:resync(now)
  if not self.period or not self.heard then return math.huge end
  self.due = self.due or now + self.period
  if now >= self.due then
    self.feed:resync()
    self.due = now + self.period
  end
  return self.due - now
end

-- ---------------------------------------------------------------- informers

---@class kubelua.Informer
---@field kind string
---@field private core userdata
local Informer = {}
Informer.__index = Informer

-- The object as the program sees it: `transform` is asked once per version, as long as somebody keeps what
-- it answered. A failure leaves the object out and is told, again when it is looked at again.
function Informer:transformed(o)
  local transform = self.transform
  if not transform then return o end
  local id = (o.metadata("uid") or key_of(o)) .. " " .. (o.metadata("resourceVersion") or "")
  local seen = self.seen[id]
  if seen ~= nil then return seen.o or nil end
  local result
  local draft = core.draft(o)
  local ok, err = pcall(function() result = edit.run(transform, draft) end)
  if not ok then
    self.factory:trouble(self, core.error {
      kind = "script", verb = "transform", resource = self.kind, key = key_of(o), message = tostring(err),
    })
    result = false
  elseif result == nil then
    result = core.value(draft)
  elseif result ~= false and not core.is_view(result) then
    result = core.value(result, "what transform returned")
  end
  seen = { o = result }
  self.seen[id] = seen
  if result then self.kept[result] = seen end
  return result or nil
end

-- What one of our indexes says of the object under a key.
function Informer:index_says(term, key)
  local op, values = term[2], self.indexes[term[1]].values[key] or {}
  if op == "exists" then return next(values) ~= nil end
  if op == "!" then return next(values) == nil end
  local any = false
  for i = 3, #term do any = any or values[term[i]] == true end
  if op == "=" or op == "in" then return any end
  return not any
end

--- Calls functions for what happens, from f:poll or f:run. A handler that comes late is told of what there
--- is, with initial = true.
---@param handlers kubelua.EventHandlers
---@param opts {resync?: kubelua.Duration}?
---@return kubelua.Handler
function Informer:on(handlers, opts)
  if type(handlers) ~= "table" then
    core.blame(("informer:on: expected a table of functions, got %s"):format(type(handlers)))
  end
  options.check("informer:on", handlers, HANDLERS)
  opts = options.check("informer:on", opts, { resync = "duration" })
  if next(handlers) == nil then core.blame "informer:on: give at least one of add, update, delete" end
  local resync = opts.resync
  if resync == nil then resync = self.factory.resync end
  local handler = setmetatable({
    factory = self.factory, informer = self, on = handlers, period = period("informer:on", resync),
    heard = false,
  }, Handler)
  handler.feed, handler.id = self.core:feed()
  self.factory.handlers[handler.id] = handler
  return handler
end

--- Whether the store holds what there is.
---@return boolean
function Informer:synced() return self.core:synced() end

---@return kubelua.Store
function Informer:store() return self.indexer_ end

---@return kubelua.Indexer
function Informer:indexer() return self.indexer_ end

---@return kubelua.Lister
function Informer:lister() return setmetatable({ store = self.indexer_ }, Lister) end

--- How it is.
---@return kubelua.InformerStats
function Informer:stats() return self.core:stats() end

--- Lets go of it, once for each f:informer(kind) that gave it; after the last it stops.
function Informer:release()
  if self.users == 0 then return end
  self.users = self.users - 1
  if self.users > 0 then return end
  self.factory:forget(self)
end

-- ---------------------------------------------------------------- factories

---@class kubelua.Informers
---@field private client kubelua.Client
local Informers = {}
Informers.__index = Informers
Informers.__name = "kubelua.Informers"

--- Informers of a client, shared within this factory. What the options say holds for each kind, unless
--- f:informer says otherwise.
---@param client kubelua.Client
---@param opts kubelua.InformersOptions?
---@return kubelua.Informers
function M.informers(client, opts)
  if type(client) ~= "table" or not client.core then
    core.blame "kube.informers: expected a client, as kube.connect gives"
  end
  opts = options.check("kube.informers", opts, FACTORY)
  period("kube.informers", opts.resync)
  return setmetatable({
    client = client, opts = opts, resync = opts.resync, clock = opts.clock or core.monotonic,
    core = client.core:informers(opts.stream),
    handlers = {},      -- by the number of their feed
    informers = {},     -- by what was wanted
    by_id = {},         -- by what the C side calls them
    unstarted = {},
  }, Informers)
end

local function open(self, what)
  if self.closed then
    core.blame(what .. ": these informers were shut down; make new ones with kube.informers")
  end
end

-- What an informer is made of: the factory's options, this call's, and what `tweak` makes of them.
local function wanted(self, kind, opts)
  local merged = {}
  for name in pairs(INFORMER) do merged[name] = self.opts[name] end
  for name, value in pairs(opts) do merged[name] = value end
  if self.opts.tweak then
    self.opts.tweak(kind, merged)
    options.check("kube.informers: tweak", merged, INFORMER)
  end
  if merged.keep and merged.managed_fields ~= nil then
    core.blame "f:informer: keep says what is stored; managed_fields beside it means nothing"
  end
  return merged
end

local function label(kind, op, transform)
  return table.concat({ kind, op.ns or "", op.labels or "", op.fields or "",
    tostring(op.keep and core.encode(op.keep)), tostring(transform) }, "\n")
end

-- "v1/Pod" and "apps/v1/Deployment" stand for themselves, and may be missing yet. Other names ("pods",
-- "deploy", "apps/Deployment") are looked up now.
local function full(self, kind)
  local first, rest = kind:match "^([^/]+)/(.+)$"
  if rest and (rest:find("/", 1, true) or first:find "^v%d[%l%d]*$") then return kind end
  local r = self.client:resource(kind)
  return (r.group ~= "" and r.group .. "/" or "") .. r.version .. "/" .. r.kind
end

--- The informer of a kind: the same one for the same kind and options. It begins with f:start().
---@param kind string
---@param opts kubelua.InformerOptions?
---@return kubelua.Informer
function Informers:informer(kind, opts)
  open(self, "f:informer")
  request.list("f:informer", kind)       -- says what is wrong with the kind
  kind = full(self, kind)
  local want = wanted(self, kind, options.check("f:informer", opts, INFORMER))
  local keep = want.keep
  if keep == nil and want.managed_fields == false then keep = true end
  local op = { kind = kind, ns = want.namespace, labels = request.labels(want.labels),
    fields = request.fields(want.fields), keep = keep }
  local name = label(kind, op, want.transform)
  local informer = self.informers[name]
  if informer then
    informer.users = informer.users + 1
    return informer
  end
  informer = setmetatable({
    kind = kind, factory = self, core = self.core:informer(op), name = name, users = 1,
    transform = want.transform,
    paths = {}, indexes = {}, seen = setmetatable({}, { __mode = "v" }),
    kept = setmetatable({}, { __mode = "k" }),
  }, Informer)
  informer.indexer_ = setmetatable({ informer = informer }, Indexer)
  self.informers[name] = informer
  self.by_id[informer.core:id()] = self.by_id[informer.core:id()] or informer
  self.unstarted[informer] = true
  return informer
end

--- The lister of a kind's informer.
---@param kind string
---@param opts kubelua.InformerOptions?
---@return kubelua.Lister
function Informers:lister(kind, opts) return self:informer(kind, opts):lister() end

function Informers:forget(informer)
  for _, handler in pairs(self.handlers) do
    if handler.informer == informer then handler:remove() end
  end
  for _, index in pairs(informer.indexes) do index.feed:close() end
  self.informers[informer.name] = nil
  self.unstarted[informer] = nil
  local id = informer.core:id()
  if self.by_id[id] == informer then self.by_id[id] = nil end
  informer.core:close()
end

function Informers:trouble(informer, err)
  if self.opts.on_watch_error then self.opts.on_watch_error(informer.kind, err) end
end

--- Starts the informers that have not started yet; call it again after asking for more.
function Informers:start()
  open(self, "f:start")
  self.core:start()
  self.unstarted = {}
end

local function why_not(self)
  local reasons = {}
  for _, informer in pairs(self.informers) do
    if not informer:synced() then
      reasons[#reasons + 1] = informer.kind .. ": " .. (informer:stats().message or "still being listed")
    end
  end
  table.sort(reasons)
  return table.concat(reasons, "; ")
end

--- Waits until the stores hold what there is. false, and what is missing, when the time is over. Handlers
--- do not run meanwhile.
---@param timeout kubelua.Duration?  for ever when absent
---@return boolean synced, string? why
function Informers:wait_synced(timeout)
  open(self, "f:wait_synced")
  if next(self.unstarted) then
    core.blame(("f:wait_synced: the informer of %s was not started; call f:start() first"):format(
      next(self.unstarted).kind))
  end
  local deadline = timeout and core.monotonic() + core.duration(timeout) or math.huge
  while true do
    local left = deadline - core.monotonic()
    if self.core:wait(math.max(left, 0)) then return true end
    if left <= 0 then return false, why_not(self) end
  end
end

local function watch_error(self, id)
  local informer = self.by_id[id]
  if not informer or not self.opts.on_watch_error then return end
  local stats = informer:stats()
  if stats.message then
    self:trouble(informer, core.error { kind = stats.failure, verb = "watch", resource = informer.kind,
      message = stats.message })
  end
end

-- One event, waited for as long as said; whether there was one.
local function deliver(self, seconds)
  local id, news, old, now, flag = self.core:take(seconds)
  if not id then return false end
  if news == "trouble" then
    watch_error(self, id)
  else
    local handler = self.handlers[id]
    if handler then handler:tell(news, old, now, flag) end
  end
  return true
end

-- Asks for the resyncs that are due; seconds until the next.
local function resync(self)
  local now, soonest = self.clock(), math.huge
  for _, handler in pairs(self.handlers) do soonest = math.min(soonest, handler:resync(now)) end
  return soonest
end

--- Runs the handlers of what has happened until now, without waiting. What a handler raises comes out here;
--- its event is over then.
---@return integer events
function Informers:poll()
  open(self, "f:poll")
  self.due = resync(self)      -- kube.manager sets its clock by that
  local count = 0
  for _ = 1, self.core:pending() do
    if self.closed or not deliver(self, 0) then break end
    count = count + 1
  end
  return count
end

--- Runs handlers as things happen, until the time is over or a handler calls f:stop().
---@param timeout kubelua.Duration?  for ever when absent
function Informers:run(timeout)
  local deadline = timeout and core.monotonic() + core.duration(timeout) or math.huge
  open(self, "f:run")
  self.stopping = false
  while not self.stopping do
    local left = deadline - core.monotonic()
    if left <= 0 then
      self:poll()
      break
    end
    deliver(self, math.max(0, math.min(left, resync(self))))
  end
end

--- Ends the f:run that is under way, after the handler that calls this.
function Informers:stop() self.stopping = true end

--- Ends all watches and handlers; what the stores know can still be read. Closing the client does the same.
function Informers:shutdown()
  for _, handler in pairs(self.handlers) do handler:remove() end
  self.stopping, self.closed = true, true
  self.core:close()
end

Informers.__close = Informers.shutdown

return M
