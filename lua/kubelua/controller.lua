-- controller.lua - the spec of a controller: checked at once, with the place of the mistake, and brought
-- into one shape.
--
--   kube.controller { name, resource, when, indexes, watches, owns, reads, fields, managed_fields, workers,
--     concurrency, timeout, resync, params, reconcile }
--
-- The result is data (bindings/script/specs.c reads it) and functions. The functions of watches, indexes and
-- `when` are numbered in the order of their kinds and names, so that every state of a generation gives the
-- same number to the same function.

local checks = require "kubelua.checks"
local core = require "kubelua.core"
local known_kind = require "kubelua.kinds".known
local params = require "kubelua.params"
local request = require "kubelua.request"
local scheduling = require "kubelua.scheduling"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.ControllerSpec
---@field name string                      field manager, lease and metric label: lower case letters, digits and -
---@field resource string|string[]         "example.com/v1/SecretSync", "v1/Node", "deploy"; of a list each kind gets a controller of its own
---@field reconcile fun(obj: kubelua.view, ctx: kubelua.Context): kubelua.Result|kubelua.Verdict|string|number|boolean|nil, any
---@field finalize? fun(obj: kubelua.view, ctx: kubelua.Context): kubelua.Result|kubelua.Verdict|string|number|boolean|nil, any   before a deleted object goes
---@field finalizer? string|string[]       its name, "kubelua.dev/<name>" unless said; a list: and the names that it had before
---@field namespaces? string[]             of which objects are seen
---@field selector? kubelua.Selection      of the resource, asked of the server
---@field when? kubelua.When               which changes of the resource count
---@field indexes? table<string, string|function|table<string, string|function>>
---@field watches? table<string, kubelua.Mapping|{[1]?: kubelua.Mapping, via?: string, when?: kubelua.When, selector?: kubelua.Selection}>
---@field owns? (string[])|table<string, {when?: kubelua.When, force?: boolean, selector?: kubelua.Selection}>
---@field reads? (string[])|table<string, {selector?: kubelua.Selection}>
---@field fields? table                    paths that are kept in the cache, of the resource; or by kind: { ["v1/Pod"] = { "spec.nodeName" } }
---@field metadata? true|string[]          kinds of which only the metadata is fetched; true: the resource
---@field managed_fields? boolean          whether metadata.managedFields are kept in the cache, over --keep-managed-fields
---@field workers? integer                 threads
---@field concurrency? integer             keys in flight per worker
---@field timeout? string|number           wall time of one run
---@field cpu? string|number                processor time of a run between two waits, and of one call of its other functions: "100ms"
---@field memory? string|integer           what one worker's Lua state may hold: "8Mi"
---@field isolate? boolean                 its functions run in processes without files and network; its top level here, too
---@field resync? string|number            how often everything is looked at again
---@field every? string|number             all keys, that often
---@field cron? string|string[]            all keys, at these times of UTC: "0 3 * * mon-fri"
---@field priority? integer|string|fun(obj: kubelua.view): integer?      -49 to 49; a number, a path or a function
---@field serial? string|fun(obj: kubelua.view): string?                 runs of equal texts do not overlap; a path or a function
---@field backoff? {base?: string|number, max?: string|number, jitter?: number, give_up?: integer}
---@field own_writes? boolean|string|number   how long a key waits at most until the cache shows its own writes; false: not at all
---@field leader? boolean|"own"            false: in every replica; "own": a lease of its own
---@field shard? boolean|"namespace"|kubelua.Shard   how --shards divides its keys
---@field on_reload? "all"|"failing"|"none"   which keys run again when new logic has taken over, over --reload-keys
---@field http? string|(string|kubelua.HttpRule)[]   where ctx.http may go: { "https://dns.example.com" }; --allow-http as well
---@field params? table<string, any>   ctx.params: defaults, or rules for what a deployment may set (kubelua.Param)

---@class kubelua.HttpRule
---@field url string                       "https://find.example.com"
---@field reads? string|string[]           methods that change nothing there, beside GET and HEAD: { "POST" }

---@class kubelua.Shard
---@field by "namespace"|"key"
---@field caches? "own"|"all"              of which namespaces each replica keeps the objects; "own" goes with "namespace"

--- "app=web", or both kinds of selectors
--- `namespaces` only of other kinds than the resource: these in place of the controller's
---@alias kubelua.Selection string|{labels?: string|table, fields?: string|table, namespaces?: string[]}
--- "generation", "labels", "annotations", "resourceVersion" or paths; or a function
---@alias kubelua.When string|(string[])|{selector: string|table}|(fun(now: kubelua.view, old: kubelua.view): boolean)
---@alias kubelua.Mapping "owner"|"same-name"|{via: string}|fun(obj: kubelua.view, ctx: kubelua.Context): (string|table)[]|nil

---@class kubelua.Controller
---@field name string
local NAME = "kubelua.Controller"

local KEYS = {
  name = true, resource = true, reconcile = true, finalize = true, finalizer = true, namespaces = true,
  selector = true, when = true,
  indexes = true, watches = true, owns = true, reads = true, fields = true, metadata = true,
  managed_fields = true, workers = true,
  concurrency = true, timeout = true, cpu = true, memory = true, isolate = true, resync = true, every = true,
  cron = true, priority = true, serial = true, backoff = true,
  own_writes = true, leader = true, shard = true, on_reload = true, params = true, http = true,
}
local WORDS = { "generation", "labels", "annotations", "resourceVersion" }

local fail, check_kind, check_kinds, number, no_path, sorted = checks.fail, checks.kind, checks.kinds,
  checks.number, checks.no_path, checks.sorted

local function check_keys(spec)
  for key in pairs(spec) do
    if not KEYS[key] then
      core.blame(("controller %q: unknown key '%s'%s"):format(tostring(spec.name), tostring(key),
        suggest.hint(key, KEYS)))
    end
  end
end

local function check_name(name)
  if type(name) ~= "string" then
    core.blame(("kube.controller: name must be a string, got %s"):format(type(name)))
  end
  if #name > 63 or not name:find "^[a-z0-9][-a-z0-9]*$" or name:find "-$" then
    core.blame(("controller %q: a name has lower case letters, digits and -, starts and ends with a \z
      letter or digit, and is at most 63 long "
      .. "(it names the field manager, the lease and the metrics)"):format(name))
  end
end

-- ---------------------------------------------------------------- when, indexes, watches

-- A top-level field such as "spec" is a path; a near miss of one of the words is a mistake.
local function is_path(text)
  return text:find "^[%a_]" ~= nil and (text:find "[.%[]" ~= nil or not suggest.nearest(text, WORDS))
end

-- The text of a label selector that was given as text or table.
local function check_labels(self, where, x)
  if type(x) ~= "string" and type(x) ~= "table" then
    fail(self, "%s must be a label selector such as \"app=web\", got %s", where, type(x))
  end
  local ok, text = pcall(request.labels, x)
  local good, selector = true, nil
  if ok and text then good, selector = pcall(core.selector, text) end
  if not ok or not good then fail(self, "%s: %s", where, checks.reason(not ok and text or selector)) end
  return text and tostring(selector) or ""
end

-- Namespaces as a sorted list without repetitions; nil: all.
local function check_namespaces(self, where, list)
  if list == nil then return nil end
  if type(list) == "string" then list = { list } end
  if type(list) ~= "table" or #list == 0 then
    fail(self, "%s must be a list such as { \"default\" }; leave it out for all; got %s", where,
      type(list) == "table" and "an empty one" or type(list))
  end
  checks.keys(self, where, list, {}, true)
  local out, seen = {}, {}
  for i, ns in ipairs(list) do
    local why = type(ns) ~= "string" and "a name is a string, got " .. type(ns)
      or core.name_problem("dns1123_label", ns)
    if why then fail(self, "%s[%d]: %s", where, i, why) end
    if not seen[ns] then out[#out + 1] = ns end
    seen[ns] = true
  end
  table.sort(out)
  return out
end

-- Selectors of labels and fields, as the server gets them, and namespaces; nil: all.
local function selection(self, where, x)
  if x == nil then return {} end
  if type(x) == "table" and (x.labels ~= nil or x.fields ~= nil or x.label ~= nil or x.field ~= nil
    or x.namespaces ~= nil) then
    checks.keys(self, where, x, { "labels", "fields", "namespaces" })
  else
    x = { labels = x }
  end
  local out = { namespaces = check_namespaces(self, where .. ".namespaces", x.namespaces) }
  if x.labels ~= nil then out.labels = check_labels(self, where, x.labels) end
  if x.fields ~= nil then
    local ok, text = pcall(request.fields, x.fields)
    local why = not ok and text or text and core.field_selector_problem(text)
    if why then fail(self, "%s.fields: %s", where, checks.reason(why)) end
    out.fields = text
  end
  return out
end

local function same_selection(a, b)
  return a.labels == b.labels and a.fields == b.fields
    and table.concat(a.namespaces or {}, ",") == table.concat(b.namespaces or {}, ",")
end

-- A kind has one cache, so everything that names the kind has to give the same selection.
local function select_of(self, place, kind, x)
  local where = ("%s[%q]"):format(place, kind)
  if kind == self.resource then
    if x ~= nil then
      fail(self, "%s.selector: the resource's selector belongs in the controller's own `selector`", where)
    end
    return
  end
  local chosen, before = selection(self, where .. ".selector", x), self.said[kind]
  if before and not same_selection(before, chosen) then
    fail(self, "%s.selector: this controller has one cache of %s, and %s has another selector; use the \z
      same in both", where, kind, before.where)
  end
  if before then return end
  chosen.where, chosen.kind = where, kind
  self.said[kind] = chosen
  if chosen.labels or chosen.fields or chosen.namespaces then
    self.selects[#self.selects + 1] = { kind = kind, labels = chosen.labels, fields = chosen.fields,
      namespaces = chosen.namespaces }
  end
end

-- { words, fn, selector }, or nil when every change counts.
local function check_when(self, where, when)
  if when == nil then return nil end
  if type(when) == "function" then return { fn = number(self, when) } end
  if type(when) == "string" then when = { when } end
  if type(when) ~= "table" then
    fail(self, "%s must be a list such as { \"generation\", \"labels\" } or a function(now, old), got %s",
      where, type(when))
  end
  checks.keys(self, where, when, { "selector" }, true)
  local out = { words = {} }
  if when.selector ~= nil then out.selector = check_labels(self, where .. ".selector", when.selector) end
  for i, word in ipairs(when) do
    if type(word) == "function" and i == 1 and #when == 1 then
      out.fn = number(self, word)
      return out
    end
    if type(word) ~= "string" then fail(self, "%s[%d] must be a string, got %s", where, i, type(word)) end
    local known = false
    for _, w in ipairs(WORDS) do known = known or w == word end
    if not known and not is_path(word) then
      fail(self, "%s: '%s' is neither a path such as \"spec.template\" nor one of the words%s", where, word,
        suggest.hint(word, WORDS))
    end
    local why = not known and no_path(word)
    if why then fail(self, "%s: %s", where, why) end
    out.words[i] = word
  end
  if #out.words == 0 and not out.selector then
    fail(self, "%s is empty: leave it out to see every change", where)
  end
  return out
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
    fail(self, "index %s must be a path such as \"spec.nodeName\" or a function(obj), got %s", name,
      type(how))
  end
  self.indexes[#self.indexes + 1] = index
end

local function check_indexes(self, indexes)
  self.indexes = {}
  if indexes == nil then return end
  if type(indexes) ~= "table" then fail(self, "indexes must be a table, got %s", type(indexes)) end
  local seen = {}
  for _, key in ipairs(sorted(indexes)) do
    local how = indexes[key]
    if type(key) == "string" and (type(how) == "table" or key:find("/", 1, true)) then
      key = check_kind(self, "indexes", key)
      if seen[key] then fail(self, "indexes of %s are listed twice; merge them", key) end
      seen[key] = true
      if type(how) ~= "table" then
        fail(self, "indexes[\"%s\"] must be a table of indexes of that kind: { node = \"spec.nodeName\" \z
          }, got %s", key, type(how))
      end
      for _, name in ipairs(sorted(how)) do add_index(self, key, name, how[name]) end
    else
      add_index(self, self.resource, key, how)
    end
  end
end

local function via_of(self, kind, via)
  local names = {}
  for _, index in ipairs(self.indexes) do
    if index.kind == self.resource then
      names[#names + 1] = index.name
      if index.name == via then return via end
    end
  end
  fail(self, "watches[\"%s\"]: via = \"%s\" must name an index of %s%s", kind, tostring(via), self.resource,
    #names > 0 and suggest.hint(via, names) or ", and there is none: add it to indexes")
end

local function check_watch(self, kind, how)
  local where = ("watches[%q]"):format(kind)
  local watch = { kind = kind }
  if type(how) == "table" then
    checks.keys(self, where, how, { "via", "when", "selector" }, true)
    select_of(self, "watches", kind, how.selector)
    watch.when = check_when(self, where .. ".when", how.when)
    if how.via ~= nil then
      if how[1] ~= nil then
        fail(self, "%s: via and %s exclude each other; keep one", where,
          type(how[1]) == "string" and ("%q"):format(how[1]) or "a function")
      end
      watch.how, watch.via = "via", via_of(self, kind, how.via)
      return watch
    end
    how = how[1]
  else
    select_of(self, "watches", kind)
  end
  if type(how) == "function" then
    watch.how, watch.fn = "function", number(self, how)
  elseif how == "owner" or how == "same-name" then
    watch.how = how
  else
    fail(self, "%s must be \"owner\", \"same-name\", { via = index } or a function, got %s%s", where,
      tostring(how),
      type(how) == "string" and suggest.hint(how, { "owner", "same-name" }) or "")
  end
  return watch
end

local function check_watches(self, watches)
  self.watches = {}
  if watches == nil then return end
  if type(watches) ~= "table" then
    fail(self, "watches must be a table from kinds to mappings, got %s", type(watches))
  end
  if watches[1] ~= nil then
    fail(self, "watches must say which keys a change enqueues: { [%q] = \"owner\" }, \"same-name\", \z
      { via = an index } or function(obj, ctx); got a list", tostring(watches[1]))
  end
  watches = checks.by_kind(self, "watches", watches)
  for _, kind in ipairs(sorted(watches)) do
    self.watches[#self.watches + 1] = check_watch(self, kind, watches[kind])
  end
end

-- A list of kinds, or kinds with { when = ... }.
local function check_owns(self, owns)
  self.owns = {}
  if owns == nil then return end
  if type(owns) ~= "table" then fail(self, "owns must be a list of kinds, got %s", type(owns)) end
  local list, more = {}, {}
  for key, value in pairs(checks.by_kind(self, "owns", owns)) do
    if math.type(key) == "integer" then
      list[#list + 1] = value
    else
      if type(value) ~= "table" then
        fail(self, "owns[%q] must be a table such as { when = { \"generation\" } }, got %s", key, type(value))
      end
      checks.keys(self, ("owns[%q]"):format(key), value, { "when", "force", "selector" })
      if value.force ~= nil and type(value.force) ~= "boolean" then
        fail(self, "owns[%q].force must be true (an apply takes fields from other managers, the default) \z
          or false (it fails then), got %s", key, type(value.force))
      end
      more[key] = value
      list[#list + 1] = key
    end
  end
  for i, kind in ipairs(check_kinds(self, "owns", list)) do
    local said = more[kind] or {}
    select_of(self, "owns", kind, said.selector)
    self.owns[i] = { kind = kind, unforced = said.force == false,
      when = check_when(self, ("owns[%q].when"):format(kind), said.when) }
  end
end

-- The same for kinds that are only read, with { selector = ... }.
local function check_reads(self, reads)
  if reads == nil then return end
  if type(reads) ~= "table" then fail(self, "reads must be a list of kinds, got %s", type(reads)) end
  local list, more = {}, {}
  for key, value in pairs(checks.by_kind(self, "reads", reads)) do
    if math.type(key) == "integer" then
      list[#list + 1] = value
    else
      if type(value) ~= "table" then
        fail(self, "reads[%q] must be a table such as { selector = \"app=web\" }, got %s", key, type(value))
      end
      checks.keys(self, ("reads[%q]"):format(key), value, { "selector" })
      more[key] = value
      list[#list + 1] = key
    end
  end
  self.reads = check_kinds(self, "reads", list)
  for _, kind in ipairs(self.reads) do select_of(self, "reads", kind, (more[kind] or {}).selector) end
end

local function check_selector(self, x)
  local chosen = selection(self, "selector", x)
  if chosen.namespaces then
    fail(self, "selector.namespaces: those of the resource are the controller's own `namespaces`")
  end
  self.select_labels, self.select_fields = chosen.labels, chosen.fields
end

-- ---------------------------------------------------------------- fields

-- The kinds that the controller has in a cache.
local function kinds_of(self)
  local kinds = { [self.resource] = true }
  for _, kind in ipairs(self.reads or {}) do kinds[kind] = true end
  for _, list in ipairs { self.watches, self.indexes, self.owns } do
    for _, entry in ipairs(list) do kinds[entry.kind] = true end
  end
  return kinds
end

-- The words of `when` for a kind, and the paths that scheduling reads.
local function looked_at(self, kind)
  local words = {}
  local function add(when)
    for _, word in ipairs(when and when.words or {}) do words[#words + 1] = word end
  end
  if kind == self.resource then
    add(self.when)
    for _, of in ipairs { self.priority_of or {}, self.serial or {} } do words[#words + 1] = of.path end
  end
  for _, list in ipairs { self.watches, self.owns } do
    for _, entry in ipairs(list) do if entry.kind == kind then add(entry.when) end end
  end
  return words
end

local function add_fields(self, kind, list)
  local where = kind == self.resource and "fields" or ("fields[%q]"):format(kind)
  if type(list) ~= "table" then
    fail(self, "%s must be a list of paths such as { \"spec.nodeName\" }, got %s", where, type(list))
  end
  local kept, seen = {}, {}
  local function add(path)
    if not seen[path] then kept[#kept + 1] = path end
    seen[path] = true
  end
  for key, path in pairs(list) do
    if math.type(key) ~= "integer" then
      fail(self, "%s must be a list of paths; '%s' is a name in it", where, tostring(key))
    end
    if type(path) ~= "string" then
      fail(self, "%s[%d] must be a path such as \"spec.nodeName\", got %s", where, key, type(path))
    end
    local why = no_path(path)
    if why then fail(self, "%s: %s", where, why) end
    if path:find "%[%d+%]" then
      fail(self, "%s: %q: an index cannot be selected alone; without it the path means every item of the \z
        list", where, path)
    end
    add(path)
  end
  -- Fields that the cache itself reads are kept as well.
  for _, index in ipairs(self.indexes) do
    if index.kind == kind and index.path then add((index.path:gsub("%[%d+%]", ""))) end
  end
  for _, word in ipairs(looked_at(self, kind)) do
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
    fail(self, "fields must be a list of paths such as { \"spec.nodeName\" }, or such lists by kind, got %s",
      type(fields))
  end
  local kinds, own, by_kind = kinds_of(self), {}, {}
  for key, value in pairs(fields) do
    local kind = type(key) == "string" and known_kind(key)
    if math.type(key) == "integer" then
      own[key] = value
    elseif kind and kinds[kind] then
      if by_kind[kind] then fail(self, "fields: paths of %s are listed twice; merge them", kind) end
      by_kind[kind] = value
    else
      fail(self, "fields[%q]: this controller has no such kind in a cache%s", tostring(key),
        type(key) == "string" and suggest.hint(key, kinds) or "")
    end
  end
  if next(own) ~= nil or next(fields) == nil then
    if by_kind[self.resource] then
      fail(self, "fields: paths of %s are listed twice; merge them", self.resource)
    end
    by_kind[self.resource] = own
  end
  for _, kind in ipairs(sorted(by_kind)) do add_fields(self, kind, by_kind[kind]) end
end

-- Kinds of which only metadata is fetched: nothing else of them can be kept.
local function check_metadata(self, x, managed)
  if x == nil then return end
  if x == true then x = { self.resource } end
  self.metadata = check_kinds(self, "metadata", x)
  local kinds = kinds_of(self)
  for _, kind in ipairs(self.metadata) do
    if not kinds[kind] then
      fail(self, "metadata: this controller has no %q in a cache%s", kind, suggest.hint(kind, kinds))
    end
    for _, f in ipairs(self.fields) do
      if f.kind == kind then fail(self, "%s is in both metadata and fields; keep one of them", kind) end
    end
    local looked = looked_at(self, kind)
    for _, index in ipairs(self.indexes) do
      if index.kind == kind then looked[#looked + 1] = index.path end
    end
    for _, path in ipairs(looked) do
      if path:find "[.%[]" and not path:find "^metadata[.%[]" then
        fail(self, "metadata: only metadata of %s is fetched, so %q is always absent", kind, path)
      end
    end
    -- managedFields are most of it, and hardly anybody reads them.
    local kept = managed and { "metadata" } or { "metadata.annotations", "metadata.generateName" }
    self.fields[#self.fields + 1] = { kind = kind, paths = kept }
  end
end

-- ---------------------------------------------------------------- the whole

local function check_finalizer(self, name)
  local why = type(name) ~= "string" and "it must be a string, got " .. type(name) or not name:find "/"
    and "it must have a domain: \"example.com/" .. name .. "\""
    or core.name_problem("qualified", name)
  if why then fail(self, "finalizer: %s", why) end
  return name
end

local function check_finalize(self, spec)
  if spec.finalize == nil then
    if spec.finalizer ~= nil then
      fail(self, "finalizer needs a `finalize = function(obj, ctx)`")
    end
    return
  end
  if type(spec.finalize) ~= "function" then
    fail(self, "finalize must be a function(obj, ctx), got %s", type(spec.finalize))
  end
  self.finalize = spec.finalize
  local names = spec.finalizer
  if names == nil then names = "kubelua.dev/" .. (self.manager or self.name) end
  if type(names) ~= "table" then
    self.finalizer = check_finalizer(self, names)
    return
  end
  if #names == 0 then
    fail(self, "finalizer is an empty list: the first is its name, the others are earlier names")
  end
  self.finalizer, self.former = check_finalizer(self, names[1]), {}
  for i = 2, #names do self.former[i - 1] = check_finalizer(self, names[i]) end
end

local function build(spec, name, manager, resource)
  local self = { name = name, manager = manager, functions = {}, selects = {}, said = {}, given = spec }
  if resource == nil then fail(self, "resource is missing: the kind it reconciles, such as \"v1/Node\"") end
  self.resource = check_kind(self, "resource", resource)
  if type(spec.reconcile) ~= "function" then
    fail(self, "reconcile must be a function(obj, ctx), got %s", type(spec.reconcile))
  end
  self.reconcile = spec.reconcile
  check_finalize(self, spec)
  self.namespaces = check_namespaces(self, "namespaces", spec.namespaces)
  check_selector(self, spec.selector)
  self.when = check_when(self, "when", spec.when)
  check_indexes(self, spec.indexes)
  check_watches(self, spec.watches)
  check_owns(self, spec.owns)
  check_reads(self, spec.reads)
  self.said = nil
  scheduling.check(self, spec)
  for _, s in ipairs(self.shard_own and self.selects or {}) do
    if s.namespaces then
      fail(self, "selector.namespaces of %s: shard = { caches = \"own\" } divides caches by namespaces; \z
        keep all of them with caches = \"all\"", s.kind)
    end
  end
  check_fields(self, spec.fields)
  self.managed_fields = checks.boolean(self, "managed_fields", spec.managed_fields)
  check_metadata(self, spec.metadata, self.managed_fields)
  self.workers = checks.count(self, "workers", spec.workers, 1, 256)
  self.concurrency = checks.count(self, "concurrency", spec.concurrency, 1, 10000)
  self.timeout, self.resync = checks.duration(self, "timeout", spec.timeout),
    checks.duration(self, "resync", spec.resync)
  self.http = checks.http(self, spec.http)
  params.declare(self, spec.params)
  return checks.seal(NAME, self, { "name", "resource" }, ("controller %q"):format(name))
end

-- One controller for each kind: "sync" becomes "sync-deployment", and with its group where the word alone
-- says it twice.
local function build_many(spec)
  local words, out = {}, {}
  for _, kind in ipairs(check_kinds(spec, "resource", spec.resource)) do
    local word = kind:match "[^/]+$":lower()
    words[word] = (words[word] or 0) + 1
    out[#out + 1] = kind
  end
  if #out == 0 then
    fail(spec, "resource is an empty list: name the kinds it reconciles, such as \"v1/Node\"")
  end
  for i, kind in ipairs(out) do
    local word, group = kind:match "[^/]+$":lower(), kind:match "^([%w-]+)"
    local name = ("%s-%s"):format(spec.name, words[word] > 1 and word .. "-" .. group or word)
    check_name(name)
    out[i] = build(spec, name, spec.name, kind)
  end
  return out
end

--- Checks a spec and returns the controller that a script returns; a list of them when `resource` is a list.
---@param spec kubelua.ControllerSpec
---@return kubelua.Controller|kubelua.Controller[]
function M.controller(spec)
  if type(spec) ~= "table" then core.blame(("kube.controller takes a table, got %s"):format(type(spec))) end
  spec = core.plain(spec, "kube.controller")
  check_name(spec.name)
  check_keys(spec)
  if type(spec.resource) == "table" then return build_many(spec) end
  return build(spec, spec.name, nil, spec.resource)
end

--- Whether x came from kube.controller.
---@param x any
---@return boolean
function M.is_controller(x) return M.opened(x) ~= nil end

--- What a controller is made of, for the runtime, and the spec as it was `given`; nil when x did not come
--- from kube.controller.
---@param x any
function M.opened(x) return checks.opened(NAME, x) end

return M
