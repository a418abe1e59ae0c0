-- informers.lua - shared informers for any Lua state: stores that keep themselves up to date (stores.lua),
-- and handlers that are called for changes.
--
--   local f <close> = kube.informers(c, { namespace = "default", resync = "10m" })
--   local pods = f:informer "v1/Pod"
--   pods:on { add = function(o, initial) ... end, update = function(old, new) ... end,
--     delete = function(o) ... end }
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
local stores = require "kubelua.stores"

local M = {}

local key_of = stores.key_of

-- As client-go: a more frequent resync would be a busy loop.
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

local function period(what, resync)
  if resync == nil then return nil end
  local seconds = core.duration(resync)
  if seconds == 0 then return nil end
  if seconds < RESYNC_LEAST then
    core.blame(("%s: resync must be at least 1s, or 0 for none, got %s"):format(what, tostring(resync)))
  end
  return seconds
end

-- ---------------------------------------------------------------- handlers

---@class kubelua.Handler
---@field private factory kubelua.Informers
local Handler = {}
Handler.__index = Handler

--- Removes the handler: it is not called again, not even for past events.
function Handler:remove()
  if not self.feed then return end
  self.factory.handlers[self.id] = nil
  self.feed:close()
  self.feed = nil
end

--- Whether the handler has received all objects that existed when it was added.
---@return boolean
function Handler:synced() return self.heard end

local function call(fn, ...)
  if fn then fn(...) end
end

function Handler:tell(news, old, now, initial)
  local informer = self.informer
  if news == "synced" then
    self.heard = true
    return
  end
  old, now = old and informer:transformed(old) or nil, now and informer:transformed(now) or nil
  if old and now then
    call(self.on.update, old, now)
  elseif now then
    call(self.on.add, now, initial)
  elseif old then
    call(self.on.delete, old)
  end
end

-- Seconds until the next resync; asks for the resync when it is due.
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

-- Whether a term holds for the object under a key, by one of our own indexes.
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

--- Whether the store has all objects of the first list.
---@return boolean
function Informer:synced() return self.core:synced() end

---@return kubelua.Store
function Informer:store() return self.indexer_ end

---@return kubelua.Indexer
function Informer:indexer() return self.indexer_ end

---@return kubelua.Lister
function Informer:lister() return stores.lister(self.indexer_) end

--- The informer's state.
---@return kubelua.InformerStats
function Informer:stats() return self.core:stats() end

--- Releases the informer, once for each f:informer(kind) that returned it; after the last it stops.
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

--- Informers of a client, shared within this factory. The options apply to each kind, unless f:informer
--- overrides them.
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
    core.blame(what .. ": these informers were shut down; create new ones with kube.informers")
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
    core.blame "f:informer: remove managed_fields: keep already says what is stored"
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

--- The informer of a kind: the same one for the same kind and options. f:start() starts it.
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
  informer.indexer_ = stores.indexer(informer)
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

--- Starts the informers that have not started yet; call it again after further calls of f:informer.
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
---@param timeout kubelua.Duration?  forever when absent
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

-- Delivers one event, after waiting at most that long; returns whether there was one.
local function deliver(self, seconds)
  local id, news, old, now, initial = self.core:take(seconds)
  if not id then return false end
  if news == "trouble" then
    watch_error(self, id)
  else
    local handler = self.handlers[id]
    if handler then handler:tell(news, old, now, initial) end
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

--- Runs handlers when events arrive, until the time is over or a handler calls f:stop().
---@param timeout kubelua.Duration?  forever when absent
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

--- Ends the running f:run after the handler that calls this.
function Informers:stop() self.stopping = true end

--- Ends all watches and handlers; the stores can still be read. Closing the client does the same.
function Informers:shutdown()
  for _, handler in pairs(self.handlers) do handler:remove() end
  self.stopping, self.closed = true, true
  self.core:close()
end

Informers.__close = Informers.shutdown

return M
