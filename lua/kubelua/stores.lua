-- stores.lua - what an informer knows, to read: stores with their indexes, and listers.
--
-- Queries are answered in C, but for indexes that are Lua functions and for informers with a transform: these
-- look at each object here.

local core = require "kubelua.core"
local options = require "kubelua.options"
local request = require "kubelua.request"

local M = {}

---@class kubelua.StoreQuery
---@field namespace string?
---@field labels kubelua.LabelSelector?
---@field index string|table<string, any>|nil     a name, or a table { name = value }
---@field value string|string[]|nil               of the index that `index` names
---@field limit integer?

local QUERY = { namespace = "string", labels = "selector", index = "index", value = "value",
  limit = "integer" }
local LIST = { labels = "selector", limit = "integer" }

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

-- Whether an object fits what Lua has to decide, not C: functions, and queries of transformed objects.
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

--- Whether the store has an object.
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

--- The number of objects.
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

--- Adds an index: by a path ("spec.nodeName"), or by a function that returns a value of an object or a list
--- of values. It covers present objects, too. The index "namespace" is built in.
---@param name string
---@param by string|fun(o: kubelua.view): ...
function Indexer:add_index(name, by)
  if type(name) ~= "string" or name == "" then
    core.blame("indexer:add_index: the name must be a string that is not empty")
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

M.key_of = key_of

--- The store of an informer, which may have indexes.
---@param informer kubelua.Informer
---@return kubelua.Indexer
function M.indexer(informer) return setmetatable({ informer = informer }, Indexer) end

---@param store kubelua.Store
---@return kubelua.Lister
function M.lister(store) return setmetatable({ store = store }, Lister) end

return M
