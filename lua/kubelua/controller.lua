-- controller.lua - the spec of a controller: checked at once, with the place of the mistake, and brought into one shape.
--
--   kube.controller { name, resource, when, indexes, watches, owns, reads, fields, managed_fields, workers, concurrency, timeout, resync,
--     params, reconcile }
--
-- What comes out is data (bindings/program.c reads it) and functions; the functions of watches, indexes and `when` are numbered
-- in the order of their kinds and names, so that every state of a generation gives the same number to the same function.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.ControllerSpec
---@field name string                      field manager, lease and metric label: lower case letters, digits and -
---@field resource string                  "example.com/v1/SecretSync", "v1/Node"
---@field reconcile fun(obj: kubelua.view, ctx: kubelua.Context): any, string?
---@field when? (string[])|(fun(now: kubelua.view, old: kubelua.view): boolean)  "generation", "labels", "annotations", "resourceVersion" or paths
---@field indexes? table<string, string|function|table<string, string|function>>
---@field watches? table<string, "owner"|"same-name"|{via: string}|fun(obj: kubelua.view, ctx: kubelua.Context): (string|table)[]|nil>
---@field owns? string[]
---@field reads? string[]
---@field fields? table                    paths that are kept in the cache, of the resource; or by kind: { ["v1/Pod"] = { "spec.nodeName" } }
---@field managed_fields? boolean          whether metadata.managedFields are kept in the cache, over --keep-managed-fields
---@field workers? integer                 threads
---@field concurrency? integer             keys in flight per worker
---@field timeout? string|number           wall time of one run
---@field resync? string|number            how often everything is looked at again
---@field params? table                    ctx.params

---@class kubelua.Controller
local Controller = {}
Controller.__name = "kubelua.Controller"
Controller.__index = Controller

local KEYS = {
  name = true, resource = true, reconcile = true, when = true, indexes = true, watches = true, owns = true, reads = true,
  workers = true, concurrency = true, timeout = true, resync = true, params = true, fields = true, managed_fields = true,
}
-- In the design, not in this version. Refused by name rather than taken for a typing mistake.
local LATER = {
  finalize = "finalizers", memory = "memory budgets", cpu = "processor budgets", namespaces = "namespace selection",
  selector = "selectors", priority = "priorities", backoff = "backoff policies", serial = "mutex groups", cron = "cron triggers",
  every = "interval triggers", finalizer = "finalizers",
}
local NOTHING = core.value(core.object {}, "nothing")
local WORDS = { "generation", "labels", "annotations", "resourceVersion" }

-- ---------------------------------------------------------------- small checks

local function fail(self, fmt, ...)
  core.blame(("controller %q: "):format(tostring(self.name)) .. fmt:format(...))
end

local function check_keys(spec)
  for key in pairs(spec) do
    if LATER[key] then
      core.blame(("controller %q: `%s` (%s) is not in this version of kubelua; leave it out"):format(tostring(spec.name), key, LATER[key]))
    elseif not KEYS[key] then
      core.blame(("controller %q: unknown key '%s'%s"):format(tostring(spec.name), tostring(key), suggest.hint(key, KEYS)))
    end
  end
end

local function check_name(name)
  if type(name) ~= "string" then core.blame(("kube.controller: name must be a text, got %s"):format(type(name))) end
  if #name > 63 or not name:find "^[a-z0-9][-a-z0-9]*$" or name:find "-$" then
    core.blame(("controller %q: a name is lower case letters, digits and -, starts and ends with a letter or digit, 63 at most "
      .. "(it names the field manager, the lease and the metrics)"):format(name))
  end
end

local function check_kind(self, where, kind)
  if type(kind) ~= "string" then fail(self, "%s must be a kind such as \"v1/Pod\", got %s", where, type(kind)) end
  local api, word = kind:match "^(.+)/([^/]+)$"
  local version = api and (api:match "^[%w.-]+/(v%w+)$" or api:match "^(v%w+)$")
  if not version or not word:find "^%u%w*$" then
    fail(self, "%s: %q is no kind; write \"v1/Pod\" or \"group/version/Kind\" such as \"apps/v1/Deployment\"", where, kind)
  end
  return kind
end

local function check_kinds(self, where, list)
  if list == nil then return nil end
  if type(list) ~= "table" then fail(self, "%s must be a list of kinds, got %s", where, type(list)) end
  local seen, out = {}, {}
  for key, kind in pairs(list) do
    if math.type(key) ~= "integer" then fail(self, "%s must be a list: { \"v1/Pod\", ... }; '%s' is a name in it", where, tostring(key)) end
    check_kind(self, where, kind)
    if not seen[kind] then out[#out + 1] = kind end
    seen[kind] = true
  end
  table.sort(out)
  return out
end

local function check_count(self, key, n, least, most)
  if n == nil then return nil end
  if math.type(n) ~= "integer" or n < least or n > most then
    fail(self, "%s must be a whole number from %d to %d, got %s", key, least, most, tostring(n))
  end
  return n
end

local function check_duration(self, key, d)
  if d == nil then return nil end
  local ok, seconds = pcall(core.duration, d)
  if not ok or seconds <= 0 then fail(self, "%s must be a duration above zero such as \"30s\" or \"10m\", got %s", key, tostring(d)) end
  return seconds + 0.0
end

-- ---------------------------------------------------------------- when, indexes, watches

local function number(self, fn)
  self.functions[#self.functions + 1] = fn
  return #self.functions
end

-- Why a text is no path, or nil. A view parses the path that it is asked for.
local function no_path(text)
  local ok, why = pcall(NOTHING, text)
  if not ok then return (tostring(why):gsub("^[^:]+:%d+: ", ""):gsub("^bad argument #%d+ to '.-' %((.*)%)$", "%1")) end
end

-- A field of the top such as "spec" is a path; what is nearly one of the words is a slip.
local function is_path(text) return text:find "^[%a_]" ~= nil and (text:find "[.%[]" ~= nil or not suggest.nearest(text, WORDS)) end

local function check_when(self, when)
  if when == nil then return end
  if type(when) == "function" then
    self.when_fn = number(self, when)
    return
  end
  if type(when) == "string" then when = { when } end
  if type(when) ~= "table" then
    fail(self, "when must be a list such as { \"generation\", \"labels\" } or a function(now, old), got %s", type(when))
  end
  self.when = {}
  for i, word in ipairs(when) do
    if type(word) ~= "string" then fail(self, "when[%d] must be a text, got %s", i, type(word)) end
    local known = false
    for _, w in ipairs(WORDS) do known = known or w == word end
    if not known and not is_path(word) then
      fail(self, "when: '%s' is neither a path such as \"spec.template\" nor one of the words%s", word, suggest.hint(word, WORDS))
    end
    local why = not known and no_path(word)
    if why then fail(self, "when: %s", why) end
    self.when[i] = word
  end
  if #self.when == 0 then fail(self, "when is empty: leave it out to see every change") end
end

local function sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function add_index(self, kind, name, how)
  if type(name) ~= "string" or not name:find "^[%w_.-]+$" then
    fail(self, "indexes: an index has a name of letters, digits, _, . and -, got %s", tostring(name))
  end
  local index = { kind = kind, name = name }
  if type(how) == "function" then
    index.fn = number(self, how)
  elseif type(how) == "string" then
    local why = no_path(how)
    if why then fail(self, "index %s: %s", name, why) end
    index.path = how
  else
    fail(self, "index %s must be a path such as \"spec.nodeName\" or a function(obj), got %s", name, type(how))
  end
  self.indexes[#self.indexes + 1] = index
end

local function check_indexes(self, indexes)
  self.indexes = {}
  if indexes == nil then return end
  if type(indexes) ~= "table" then fail(self, "indexes must be a table, got %s", type(indexes)) end
  for _, key in ipairs(sorted(indexes)) do
    local how = indexes[key]
    if type(key) == "string" and key:find("/", 1, true) then
      check_kind(self, "indexes", key)
      if type(how) ~= "table" then
        fail(self, "indexes[\"%s\"] must be a table of indexes of that kind: { node = \"spec.nodeName\" }, got %s", key, type(how))
      end
      for _, name in ipairs(sorted(how)) do add_index(self, key, name, how[name]) end
    else
      add_index(self, self.resource, key, how)
    end
  end
end

local function via_of(self, kind, how)
  for key in pairs(how) do
    if key ~= "via" then fail(self, "watches[\"%s\"]: unknown key '%s'%s", kind, tostring(key), suggest.hint(key, { "via" })) end
  end
  local names = {}
  for _, index in ipairs(self.indexes) do
    if index.kind == self.resource then
      names[#names + 1] = index.name
      if index.name == how.via then return how.via end
    end
  end
  fail(self, "watches[\"%s\"]: via = \"%s\" must name an index of %s%s", kind, tostring(how.via), self.resource,
    #names > 0 and suggest.hint(how.via, names) or ", and there is none: add it to indexes")
end

local function check_watches(self, watches)
  self.watches = {}
  if watches == nil then return end
  if type(watches) ~= "table" then fail(self, "watches must be a table from kinds to mappings, got %s", type(watches)) end
  for _, kind in ipairs(sorted(watches)) do
    local how = watches[kind]
    check_kind(self, "watches", kind)
    local watch = { kind = kind, how = how }
    if type(how) == "function" then
      watch.how, watch.fn = "function", number(self, how)
    elseif type(how) == "table" then
      watch.how, watch.via = "via", via_of(self, kind, how)
    elseif how ~= "owner" and how ~= "same-name" then
      fail(self, "watches[\"%s\"] must be \"owner\", \"same-name\", { via = index } or a function, got %s%s", kind, tostring(how),
        type(how) == "string" and suggest.hint(how, { "owner", "same-name" }) or "")
    end
    self.watches[#self.watches + 1] = watch
  end
end

-- ---------------------------------------------------------------- fields

-- The kinds that the controller has in a cache.
local function kinds_of(self)
  local kinds = { [self.resource] = true }
  for _, list in ipairs { self.owns or {}, self.reads or {} } do
    for _, kind in ipairs(list) do kinds[kind] = true end
  end
  for _, list in ipairs { self.watches, self.indexes } do
    for _, entry in ipairs(list) do kinds[entry.kind] = true end
  end
  return kinds
end

local function add_fields(self, kind, list)
  local where = kind == self.resource and "fields" or ("fields[%q]"):format(kind)
  if type(list) ~= "table" then fail(self, "%s must be a list of paths such as { \"spec.nodeName\" }, got %s", where, type(list)) end
  local kept, seen = {}, {}
  local function add(path)
    if not seen[path] then kept[#kept + 1] = path end
    seen[path] = true
  end
  for key, path in pairs(list) do
    if math.type(key) ~= "integer" then fail(self, "%s must be a list of paths; '%s' is a name in it", where, tostring(key)) end
    if type(path) ~= "string" then fail(self, "%s[%d] must be a path such as \"spec.nodeName\", got %s", where, key, type(path)) end
    local why = no_path(path)
    if why then fail(self, "%s: %s", where, why) end
    if path:find "%[%d+%]" then
      fail(self, "%s: %q: an index cannot be kept alone; leave it out, and the path means every item of the list", where, path)
    end
    add(path)
  end
  -- What the cache itself looks at is kept as well.
  for _, index in ipairs(self.indexes) do
    if index.kind == kind and index.path then add((index.path:gsub("%[%d+%]", ""))) end
  end
  for _, word in ipairs(kind == self.resource and self.when or {}) do
    if word == "annotations" then add "metadata.annotations" end
    if word ~= "annotations" and word ~= "generation" and word ~= "labels" and word ~= "resourceVersion" then
      add((word:gsub("%[%d+%]", "")))
    end
  end
  table.sort(kept)
  self.fields[#self.fields + 1] = { kind = kind, paths = kept }
end

local function check_fields(self, fields)
  self.fields = {}
  if fields == nil then return end
  if type(fields) ~= "table" then
    fail(self, "fields must be a list of paths such as { \"spec.nodeName\" }, or such lists by kind, got %s", type(fields))
  end
  local kinds, own, by_kind = kinds_of(self), {}, {}
  for key, value in pairs(fields) do
    if math.type(key) == "integer" then
      own[key] = value
    elseif type(key) == "string" and kinds[key] then
      by_kind[key] = value
    else
      fail(self, "fields[%q]: this controller has no such kind in a cache%s", tostring(key),
        type(key) == "string" and suggest.hint(key, kinds) or "")
    end
  end
  if next(own) ~= nil or next(fields) == nil then
    if by_kind[self.resource] then fail(self, "fields: paths of %s stand in two places; put them together", self.resource) end
    by_kind[self.resource] = own
  end
  for _, kind in ipairs(sorted(by_kind)) do add_fields(self, kind, by_kind[kind]) end
end

-- ---------------------------------------------------------------- the whole

--- Checks a spec and returns the controller that a script returns.
---@param spec kubelua.ControllerSpec
---@return kubelua.Controller
function M.controller(spec)
  if type(spec) ~= "table" then core.blame(("kube.controller takes a table, got %s"):format(type(spec))) end
  check_name(spec.name)
  check_keys(spec)
  local self = setmetatable({ name = spec.name, functions = {} }, Controller)
  if spec.resource == nil then fail(self, "resource is missing: the kind it reconciles, such as \"v1/Node\"") end
  self.resource = check_kind(self, "resource", spec.resource)
  if type(spec.reconcile) ~= "function" then
    fail(self, "reconcile must be a function(obj, ctx), got %s", type(spec.reconcile))
  end
  self.reconcile = spec.reconcile
  check_when(self, spec.when)
  check_indexes(self, spec.indexes)
  check_watches(self, spec.watches)
  self.owns, self.reads = check_kinds(self, "owns", spec.owns), check_kinds(self, "reads", spec.reads)
  check_fields(self, spec.fields)
  if spec.managed_fields ~= nil and type(spec.managed_fields) ~= "boolean" then
    fail(self, "managed_fields must be true (kept in the cache) or false, got %s", type(spec.managed_fields))
  end
  self.managed_fields = spec.managed_fields
  self.workers = check_count(self, "workers", spec.workers, 1, 256)
  self.concurrency = check_count(self, "concurrency", spec.concurrency, 1, 10000)
  self.timeout, self.resync = check_duration(self, "timeout", spec.timeout), check_duration(self, "resync", spec.resync)
  if spec.params ~= nil then
    if type(spec.params) ~= "table" then fail(self, "params must be a table, got %s", type(spec.params)) end
    if spec.params[1] ~= nil then fail(self, "params must be a table of names, got a list") end
    self.params = core.value(next(spec.params) == nil and core.object {} or spec.params, "params")
  end
  return self
end

--- Whether x came from kube.controller.
---@param x any
---@return boolean
function M.is_controller(x) return getmetatable(x) == Controller end

return M
