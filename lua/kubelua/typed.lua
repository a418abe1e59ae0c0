-- typed.lua - the library behind generated clientsets (kubelua gen): groups of resources over any client,
-- with the verbs that each resource really has.
--
--   library --clientset(c)--> clientset --slo_v1alpha1--> group --nodemetrics--> resource
--                                                              resource:get(name) is c:get(kind, name)
--           --informers(c)--> the same with :informer() and :lister()
--           --listers(factory)--> the same with :list{...}, :get(...)
--           --slo_v1alpha1--> builders: NodeMetric("n"){ spec = ... } a manifest whose fields are checked
--
-- A client is whatever has the calls: kube.connect(), ctx in a reconcile (reads from the cache), ctx.live.
-- What is generated is only tables of text; they load when a group is first used. A word that is not there
-- is answered with the nearest one.

local core = require "kubelua.core"
local fields = require "kubelua.fields"
local suggest = require "kubelua.suggest"

local M = {}

-- ---------------------------------------------------------------- what a resource can do

local VERBS = "create delete deletecollection get list patch update watch"

-- Each call: the verb of the API that it needs, or the subresource; who lacks it says so.
local NEEDS = {
  get = "get", list = "list", each = "list", watch = "watch", create = "create", update = "update",
  patch = "patch", apply = "patch",
  delete = "delete", delete_collection = "deletecollection", table = "list", wait_for = "watch",
  create_or_update = "update",
  create_or_patch = "patch",
}
local THROUGH = {
  update_status = "status", patch_status = "status", apply_status = "status",
  get_scale = "scale", scale = "scale", evict = "eviction", bind = "binding", token = "token",
  logs = "log", exec = "exec", exec_stream = "exec", attach = "attach", port_forward = "portforward",
  port_stream = "portforward",
  update_ephemeralcontainers = "ephemeralcontainers", patch_ephemeralcontainers = "ephemeralcontainers",
  update_resize = "resize", patch_resize = "resize", update_approval = "approval", approve = "approval",
  deny = "approval",
  finalize = "finalize",
}

local function has_word(words, word) return (" " .. words .. " "):find(" " .. word .. " ", 1, true) ~= nil end

local function offers(resource, call)
  if NEEDS[call] then return has_word(resource.verbs or VERBS, NEEDS[call]) end
  return THROUGH[call] ~= nil and has_word(resource.subresources or "", THROUGH[call])
end

-- ---------------------------------------------------------------- arguments

local function split_kind(kind) return kind:match "^(.+)/([^/]+)$" end

-- The object that a call was given, as one of this resource: kind and namespace are ours to fill in.
local function complete(self, what, o)
  if type(o) == "userdata" then return o end
  if type(o) ~= "table" then
    core.blame(("%s: expected an object (a table or a view), got %s"):format(what, type(o)))
  end
  local api_version, kind = split_kind(self.resource.kind)
  -- the short form
  if o.kind == self.resource.kind and o.apiVersion == nil and o.metadata == nil then return o end
  if o.kind ~= nil and o.kind ~= kind or o.apiVersion ~= nil and o.apiVersion ~= api_version then
    core.blame(("%s: the object is a %s %s, but this resource is for %s %s"):format(
      what, tostring(o.apiVersion), tostring(o.kind), api_version, kind))
  end
  local out = {}
  for key, value in pairs(o) do out[key] = value end
  out.apiVersion, out.kind = api_version, kind
  local ns = self.namespace
  if ns then
    local metadata = {}
    for key, value in pairs(out.metadata or {}) do metadata[key] = value end
    if metadata.namespace ~= nil and metadata.namespace ~= ns then
      core.blame(("%s: the object is in namespace %s, but this client is for %s"):format(what,
        tostring(metadata.namespace), ns))
    end
    metadata.namespace = ns
    out.metadata = metadata
  end
  return out
end

-- (name, ...) of a client that is bound to a namespace, else the arguments as they are.
local function placed(self, what, a, ...)
  if self.namespace and type(a) == "string" then
    if a:find("/", 1, true) or type((...)) == "string" then
      core.blame(("%s: this client is for namespace %s and takes the name alone, got %q"):format(what,
        self.namespace, a))
    end
    return self.namespace, a, ...
  end
  if not self.resource.namespaced and type((...)) == "string" then
    core.blame(("%s: %s is cluster-scoped and takes a name alone"):format(what, self.resource.kind))
  end
  return a, ...
end

local function in_namespace(self, what, opts)
  if not self.namespace then return opts end
  local out = { namespace = self.namespace }
  if opts ~= nil and type(opts) ~= "table" then
    core.blame(("%s: expected a table of options, got %s"):format(what, type(opts)))
  end
  for key, value in pairs(opts or {}) do
    if key == "namespace" and value ~= self.namespace then
      core.blame(("%s: this client is for namespace %s; leave the option out, or use the resource without a \z
        namespace"):format(what, self.namespace))
    end
    out[key] = value
  end
  return out
end

-- An object to patch can be named by its name alone.
local function target(self, what, o)
  if type(o) ~= "string" then return complete(self, what, o) end
  local ns, name = o:match "^([^/]+)/([^/]+)$"
  if ns and self.namespace or not ns and o:find("/", 1, true) then
    core.blame(("%s: the name %q is neither a name nor \"namespace/name\""):format(what, o))
  end
  local api_version, kind = split_kind(self.resource.kind)
  return { apiVersion = api_version, kind = kind, metadata = { name = name or o,
    namespace = ns or self.namespace } }
end

-- A function edits what is there, so an object that is only named is read first.
local function existing(self, what, o, change)
  local named = target(self, what, o)
  if type(o) ~= "string" or type(change) ~= "function" then return named end
  local metadata = named.metadata
  local key = metadata.namespace and metadata.namespace .. "/" .. metadata.name or metadata.name
  local found = self.client:get(self.resource.kind, key)
  if found then return found end
  error(core.error {
    code = 404, kind = "not_found", reason = "NotFound", verb = "patch", resource = self.resource.kind,
    key = key,
    message = ("%s %q not found"):format(self.resource.kind, key),
  }, 0)
end

local function with(opts, more)
  local out = {}
  for key, value in pairs(opts or {}) do out[key] = value end
  for key, value in pairs(more) do out[key] = value end
  return out
end

-- ---------------------------------------------------------------- the calls

local CALLS = {}

-- A call that not every client has: ctx has no exec.
local function own(self, what, call)
  local ok, method = pcall(function() return self.client[call] end)
  if not ok or type(method) ~= "function" then
    core.blame(("%s: this client has no %s"):format(what, call))
  end
  return method
end

function CALLS.get(self, what, ...) return self.client:get(self.resource.kind, placed(self, what, ...)) end
function CALLS.list(self, what, opts)
  return self.client:list(self.resource.kind, in_namespace(self, what, opts))
end
function CALLS.each(self, what, opts)
  return self.client:each(self.resource.kind, in_namespace(self, what, opts))
end
function CALLS.watch(self, what, opts)
  return own(self, what, "watch")(self.client, self.resource.kind, in_namespace(self, what, opts))
end
function CALLS.create(self, what, o, opts) return self.client:create(complete(self, what, o), opts) end
function CALLS.update(self, what, o, opts) return self.client:update(complete(self, what, o), opts) end
function CALLS.apply(self, what, o, opts) return self.client:apply(complete(self, what, o), opts) end

function CALLS.patch(self, what, o, change, opts)
  return self.client:patch(existing(self, what, o, change), change, opts)
end

function CALLS.delete(self, what, a, ...)
  if type(a) == "string" then return self.client:delete(self.resource.kind, placed(self, what, a, ...)) end
  return self.client:delete(complete(self, what, a), ...)
end

function CALLS.delete_collection(self, what, opts)
  return own(self, what, "delete_collection")(self.client, self.resource.kind, in_namespace(self, what, opts))
end

function CALLS.table(self, what, opts)
  return own(self, what, "table")(self.client, self.resource.kind, in_namespace(self, what, opts))
end

function CALLS.wait_for(self, what, name, ...)
  local method = own(self, what, "wait_for")
  if type(name) == "string" and self.namespace then
    if name:find("/", 1, true) then
      core.blame(("%s: this client is for namespace %s and takes the name alone, got %q"):format(what,
        self.namespace, name))
    end
    name = self.namespace .. "/" .. name
  end
  return method(self.client, self.resource.kind, name, ...)
end

for _, call in ipairs { "create_or_update", "create_or_patch" } do
  CALLS[call] = function(self, what, o, change)
    return own(self, what, call)(self.client, complete(self, what, o), change)
  end
end

function CALLS.patch_status(self, what, o, change, opts)
  return self.client:patch_status(existing(self, what, o, change), change, opts)
end

for call, subresource in pairs(THROUGH) do
  local verb = call:match "^(%a+)_"
  if verb == "update" then
    CALLS[call] = function(self, what, o, opts)
      return self.client:update(complete(self, what, o), with(opts, { subresource = subresource }))
    end
  elseif verb == "apply" then
    CALLS[call] = function(self, what, o, opts)
      return self.client:apply(complete(self, what, o), with(opts, { subresource = subresource }))
    end
  elseif verb == "patch" and not CALLS[call] then
    CALLS[call] = function(self, what, o, change, opts)
      return self.client:patch(existing(self, what, o, change), change,
        with(opts, { subresource = subresource }))
    end
  end
end

-- Calls that the client has under the same name, with (kind, key, ...).
for _, call in ipairs { "get_scale", "scale" } do
  CALLS[call] = function(self, what, ...)
    return own(self, what, call)(self.client, self.resource.kind, placed(self, what, ...))
  end
end

-- Calls about one pod, service account, namespace or signing request; a name becomes the object.
for _, call in ipairs { "evict", "bind", "token", "logs", "exec", "exec_stream", "attach", "port_forward",
  "port_stream", "finalize", "approve", "deny" } do
  CALLS[call] = function(self, what, o, ...)
    return own(self, what, call)(self.client, target(self, what, o), ...)
  end
end

-- ---------------------------------------------------------------- a resource

local Resource = {}
Resource.__name = "kubelua.typed.Resource"

local function why_not(self, call)
  local at = ("%s.%s"):format(self.label, self.plural)
  if THROUGH[call] then
    core.blame(("%s has no %s: %s has no %s subresource"):format(at, call, self.resource.kind, THROUGH[call]))
  elseif NEEDS[call] then
    core.blame(("%s has no %s: the server offers only %s of %s"):format(at, call, self.resource.verbs,
      self.resource.kind))
  end
  local names = {}
  for name in pairs(CALLS) do
    if offers(self.resource, name) then names[#names + 1] = name end
  end
  table.sort(names)
  core.blame(("%s.%s: unknown method%s"):format(at, tostring(call), suggest.hint(call, names)))
end

-- the key of what a resource knows; no field of it can be mistaken for a call
local STATE = {}

local function new_resource(state) return setmetatable({ [STATE] = state }, Resource) end

function Resource.__index(proxy, call)
  local self = rawget(proxy, STATE)
  if not CALLS[call] or not offers(self.resource, call) then why_not(self, call) end
  local run, what = CALLS[call], ("%s.%s:%s"):format(self.label, self.plural, call)
  local function method(receiver, ...)
    if receiver ~= proxy then
      core.blame(("%s is a method: write %s(...), with a colon"):format(what, what))
    end
    -- A call that this client cannot do: ctx has no watch, a lister of another version no scale.
    return run(self, what, ...)
  end
  rawset(proxy, call, method)
  return method
end

function Resource.__newindex(proxy, name)
  core.blame(("%s.%s.%s: a resource of a clientset cannot be changed"):format(rawget(proxy, STATE).label,
    rawget(proxy, STATE).plural, tostring(name)))
end

function Resource.__tostring(proxy)
  local self = rawget(proxy, STATE)
  return ("%s.%s%s"):format(self.label, self.plural, self.namespace and ("(%q)"):format(self.namespace) or "")
end

-- cs.scheduling_v1alpha1.podgroups("team-a"): the same for one namespace.
function Resource.__call(proxy, namespace)
  local self = rawget(proxy, STATE)
  local what = ("%s.%s"):format(self.label, self.plural)
  if not self.resource.namespaced then
    core.blame(("%s: %s is cluster-scoped and takes no namespace"):format(what, self.resource.kind))
  end
  if type(namespace) ~= "string" or namespace == "" then
    core.blame(("%s: the namespace must be a string that is not empty, got %s"):format(what,
      namespace == "" and '""' or type(namespace)))
  end
  return new_resource(with(self, { namespace = namespace }))
end

-- ---------------------------------------------------------------- listers and informers

-- What of a factory belongs to one resource.
local function informer_of(factory, resource)
  return {
    informer = function(_, opts) return factory:informer(resource.kind, opts) end,
    lister = function(_, opts) return factory:lister(resource.kind, opts) end,
  }
end

-- ---------------------------------------------------------------- groups

-- A table of names that loads its members when they are first used, and answers a wrong name with the
-- nearest.
local function directory(label, names, make, more, close)
  return setmetatable({}, {
    __name = "kubelua.typed.Directory", __close = close,
    __index = function(t, name)
      if names[name] == nil then
        local value = more and more(name)
        if value ~= nil then return value end
        core.blame(("%s.%s: unknown field%s"):format(label, tostring(name),
          suggest.hint(name, names)))
      end
      local value = make(name, names[name])
      rawset(t, name, value)
      return value
    end,
    __newindex = function(_, name)
      core.blame(("%s.%s: a generated library cannot be changed"):format(label, tostring(name)))
    end,
    __pairs = function(t)
      local sorted, i = {}, 0
      for name in pairs(names) do sorted[#sorted + 1] = name end
      table.sort(sorted)
      return function()
        i = i + 1
        if sorted[i] then return sorted[i], t[sorted[i]] end
      end
    end,
  })
end

local Library = {}

local function group_of(library, name)
  local group = library.loaded[name]
  if not group then
    group = library.load(name)
    if type(group) ~= "table" or type(group.resources) ~= "table" or type(group.types) ~= "table" then
      error(("%s: the module of group %s is not what kubelua gen writes; run it again"):format(library.name,
        name), 0)
    end
    library.loaded[name] = group
  end
  return group
end

local function tree(library, label, make, more, close)
  return directory(label, library.groups, function(name)
    local at = label .. "." .. name
    return directory(at, group_of(library, name).resources, function(plural, resource)
      return make(at, plural, resource)
    end)
  end, more, close)
end

local function check_client(what, client)
  local kind = type(client)
  if kind ~= "table" and kind ~= "userdata" or core.is_view(client) then
    core.blame(("%s: expected a client (kube.connect()) or a reconcile's ctx, got %s"):format(what, kind))
  end
end

function Library.clientset(library, client)
  check_client(library.short .. ".clientset", client)
  return tree(library, library.short, function(label, plural, resource)
    return new_resource { client = client, label = label, plural = plural, resource = resource }
  end)
end

-- What is not a group is the factory's own: start, wait_synced, run, shutdown.
local function factorys(factory)
  return function(name)
    local method = factory[name]
    if type(method) ~= "function" then return nil end
    return function(_, ...) return method(factory, ...) end
  end
end

function Library.informers(library, client, opts)
  check_client(library.short .. ".informers", client)
  local factory = require("kubelua").informers(client, opts)
  return tree(library, library.short .. ".informers", function(_, _, resource)
    return informer_of(factory, resource)
  end, factorys(factory),
    function() factory:shutdown() end)
end

function Library.listers(library, factory)
  check_client(library.short .. ".listers", factory)
  return tree(library, library.short .. ".listers", function(_, _, resource)
    return factory:lister(resource.kind)
  end)
end

-- ---------------------------------------------------------------- builders

local function manifest(library, group, what, type_name, resource, name, namespace, body)
  local api_version, kind = split_kind(resource.kind)
  local out = fields.check(what, function(other) return group_of(library, other) end, group, type_name, body)
  if out.apiVersion ~= nil and out.apiVersion ~= api_version or out.kind ~= nil and out.kind ~= kind then
    core.blame(("%s: the table is a %s %s, but this makes %s %s"):format(what,
      tostring(out.apiVersion), tostring(out.kind), api_version, kind))
  end
  out.apiVersion, out.kind = api_version, kind
  local metadata = out.metadata or {}
  for key, value in pairs { name = name, namespace = namespace } do
    if metadata[key] ~= nil and metadata[key] ~= value then
      core.blame(("%s: metadata.%s is %q, but the argument is %q"):format(what, key, tostring(metadata[key]),
        value))
    end
    metadata[key] = value
  end
  if not resource.namespaced and metadata.namespace then
    core.blame(("%s: %s is cluster-scoped and takes no namespace"):format(what, resource.kind))
  end
  out.metadata = metadata
  return out
end

-- NodeMetric("n"){ ... }, PodGroup("n", "ns"){ ... } and Deployment{ metadata = ..., ... }
local function builder(library, group, what, type_name, resource)
  return function(name, namespace)
    if type(name) == "table" then
      return manifest(library, group, what, type_name, resource, nil, nil, name)
    end
    for word, value in pairs { name = name or false, namespace = namespace } do
      if type(value) ~= "string" or value == "" then
        core.blame(("%s: the %s must be a string that is not empty, got %s"):format(what, word,
          value == "" and '""' or tostring(value)))
      end
    end
    if namespace and not resource.namespaced then
      core.blame(("%s: %s is cluster-scoped and takes no namespace"):format(what, resource.kind))
    end
    return function(body)
      if type(body) ~= "table" then
        core.blame(("%s: expected a table of its fields, got %s"):format(what, type(body)))
      end
      return manifest(library, group, what, type_name, resource, name, namespace, body)
    end
  end
end

-- A part of an object: PodSpec{ ... } checks it and gives a copy.
local function part(library, group, what, type_name)
  return function(body)
    if type(body) ~= "table" then
      core.blame(("%s: expected a table of its fields, got %s"):format(what, type(body)))
    end
    return fields.check(what, function(other) return group_of(library, other) end, group, type_name, body)
  end
end

local function builders(library, name)
  local group = group_of(library, name)
  local by_type = {}
  for _, resource in pairs(group.resources) do
    local _, kind = split_kind(resource.kind)
    by_type[resource.type or kind] = resource
  end
  local label = library.short .. "." .. name
  return directory(label, group.types, function(type_name)
    local what, resource = label .. "." .. type_name, by_type[type_name]
    if resource then return builder(library, group, what, type_name, resource) end
    return part(library, group, what, type_name)
  end)
end

-- ---------------------------------------------------------------- the library

--- A table that answers a wrong name with the nearest one, and cannot be changed.
---@generic T
---@param label string
---@param constants T
---@return T
function M.constants(label, constants)
  return setmetatable({}, {
    __index = function(_, name)
      local value = constants[name]
      if value == nil then
        core.blame(("%s.%s: unknown constant%s"):format(label, tostring(name),
          suggest.hint(name, constants)))
      end
      return value
    end,
    __newindex = function(_, name)
      core.blame(("%s.%s: a generated library cannot be changed"):format(label, tostring(name)))
    end,
    __pairs = function() return function(_, name) return next(constants, name) end end,
  })
end

--- What a generated module returns. `load` gives the tables of a group, and those modules that `also` names.
---@param spec {name: string, groups: string[], also?: string[], load: fun(name: string): table}
---@return any
function M.library(spec)
  local library = { name = spec.name, short = spec.name:match "[^.]+$", load = spec.load, groups = {},
    loaded = {} }
  for _, name in ipairs(spec.groups) do library.groups[name] = true end
  local names = { clientset = true, informers = true, listers = true }
  for name in pairs(library.groups) do names[name] = true end
  local also = {}
  for _, name in ipairs(spec.also or {}) do also[name], names[name] = true, true end
  return directory(library.short, names, function(name)
    if also[name] then return spec.load(name) end
    local call = Library[name]
    if call then return function(...) return call(library, ...) end end
    return builders(library, name)
  end)
end

return M
