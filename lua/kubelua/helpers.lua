-- helpers.lua - what people reach for beside the verbs, hooked into the client, and into ctx where it makes
-- sense there. What they are made of loads when it is first used: every worker has a state of its own.

local core = require "kubelua.core"
local options = require "kubelua.options"
local request = require "kubelua.request"

local M = {}

-- A module that loads at the first access to one of its members.
local function later(name)
  return setmetatable({}, { __index = function(_, key) return require(name)[key] end })
end

local claim = later "kubelua.claim"
local drain = later "kubelua.drain"
local manifests = later "kubelua.manifests"
local owner = later "kubelua.owner"
local upsert = later "kubelua.upsert"
local wait = later "kubelua.wait"

---@class kubelua.Client
local Client = {}

local function hands(c)
  return {
    get = function(kind, ns, name)
      if ns then return c:get(kind, ns, name) end
      return c:get(kind, name)
    end,
    create = function(o) return c:create(o) end,
    update = function(o) return c:update(o) end,
    patch = function(o, fn) return c:patch(o, fn) end,
    place = function(kind) return c:resource(kind).namespaced and c:namespace() or nil end,
  }
end

--- Makes an object be as a function wants it. When it is absent, `o` is edited and created; else the
--- server's object is edited, and replaced if that changed it. Conflicts are raised: see
--- kube.retry_on_conflict.
---@param o kubelua.Object|kubelua.view
---@param fn fun(draft: kubelua.draft)
---@return kubelua.view, "created"|"updated"|"unchanged"
function Client:create_or_update(o, fn)
  return upsert.create_or_update(hands(self), "c:create_or_update", o, fn)
end

--- The same with a merge patch of what changed; changes of the status go to the status subresource by
--- themselves. A conflict runs the function again.
---@param o kubelua.Object|kubelua.view
---@param fn fun(draft: kubelua.draft)
---@return kubelua.view, "created"|"updated"|"updated_status"|"updated_both"|"unchanged"
function Client:create_or_patch(o, fn)
  return upsert.create_or_patch(hands(self), "c:create_or_patch", o, fn)
end

--- Waits until an object meets a condition, and returns it: c:wait_for("v1/Pod", "default/a", "Ready", {
--- timeout = "1m" }). Conditions are "Ready", "Available=False", "status.phase=Running",
--- "jsonpath={.status.phase}=Running", a path alone (it is there), "created", "deleted" (returns true), or
--- a function of the object. Also (kind, namespace, name, condition, opts) and (object, condition, opts).
--- Errors are of kind "timeout", and "not_found" when it goes away meanwhile.
---@param kind string|kubelua.view|kubelua.Object
---@param ... any
---@return kubelua.view|true
function Client:wait_for(kind, ...) return wait.wait_for(self, kind, ...) end

--- Applies CustomResourceDefinitions (a path, an object, a list) and waits until their kinds are served.
---@param what string|kubelua.Object|kubelua.view|(kubelua.Object|kubelua.view)[]
---@param opts {timeout?: kubelua.Duration, force?: boolean, manager?: string}?
---@return kubelua.view[]
function Client:ensure_crd(what, opts) return manifests.ensure_crd(self, what, opts) end

--- Applies the objects of a file, of a directory, or of standard input ("-"): definitions and namespaces
--- first.
---@param path string
---@param opts {force?: boolean, manager?: string, dry_run?: boolean, validation?: string, namespace?: string, timeout?: kubelua.Duration}?
---@return kubelua.view[]
function Client:apply_file(path, opts) return manifests.apply_file(self, path, opts) end

--- Deletes the objects of a file, of a directory, or of standard input, the last first.
---@param path string
---@param opts {propagation?: string, grace?: integer, dry_run?: boolean, namespace?: string, wait?: boolean, timeout?: kubelua.Duration}?
function Client:delete_file(path, opts) return manifests.delete_file(self, path, opts) end

--- Adds a finalizer; returns the server's object.
---@param o kubelua.view|kubelua.Object
---@param name string
---@return kubelua.view
function Client:add_finalizer(o, name)
  return self:patch(o, function(draft) owner.add_finalizer(draft, name) end)
end

--- Removes a finalizer; returns the server's object.
---@param o kubelua.view|kubelua.Object
---@param name string
---@return kubelua.view
function Client:remove_finalizer(o, name)
  return self:patch(o, function(draft) owner.remove_finalizer(draft, name) end)
end

--- Makes one object the controller of another that has none; returns the server's object, nil when it is
--- gone. An object of another controller is an error of kind "already_owned"; one that is being deleted, or
--- whose owner is, of kind "not_adoptable".
---@param controller kubelua.view
---@param o kubelua.view
---@return kubelua.view?
function Client:adopt(controller, o) return claim.adopt(hands(self), "c:adopt", controller, o) end

--- Takes an owner's reference away from an object that it controls; returns the server's object, nil when
--- it is gone.
---@param controller kubelua.view
---@param o kubelua.view
---@return kubelua.view?
function Client:release(controller, o) return claim.release(hands(self), "c:release", controller, o) end

--- Marks a node unschedulable. Returns the node.
---@param node string|kubelua.view|kubelua.Object
---@return kubelua.view
function Client:cordon(node) return drain.cordon(self, "c:cordon", node, true) end

--- Marks a node schedulable again. Returns the node.
---@param node string|kubelua.view|kubelua.Object
---@return kubelua.view
function Client:uncordon(node) return drain.cordon(self, "c:uncordon", node, false) end

--- Cordons a node and evicts its pods, as kubectl drain does, and waits until they are gone. Returns the
--- evicted pods. Pods that it may not evict are an error (kind "refused") before the first eviction.
---@param node string|kubelua.view|kubelua.Object
---@param opts kubelua.DrainOptions?
---@return kubelua.view[]
function Client:drain(node, opts) return drain.drain(self, node, opts) end

--- The client's class gets them.
function M.into_client(class)
  for name, fn in pairs(Client) do class[name] = fn end
end

-- ---------------------------------------------------------------- ctx

-- A name alone means the key's own namespace, as everywhere in ctx; what is read is read from the server.
local function live_hands(ctx)
  return {
    get = function(kind, ns, name)
      if ns then return ctx.live:get(kind, ns, name) end
      return ctx.live:get(kind, name)
    end,
    create = function(o) return ctx:create(o) end,
    update = function(o) return ctx:update(o) end,
    patch = function(o, fn) return ctx:patch(o, fn) end,
    place = function(kind) return core.run.resource(kind).namespaced and ctx.namespace or nil end,
    believed = core.run.believed, elided = core.run.elided,
  }
end

---@class kubelua.Context
local Context = {}

--- Creates or updates an object by a function, as c:create_or_update does. A conflict runs the key again.
---@param o kubelua.Object|kubelua.view
---@param fn fun(draft: kubelua.draft)
---@return kubelua.view, "created"|"updated"|"unchanged"
function Context:create_or_update(o, fn)
  return upsert.create_or_update(live_hands(self), "ctx:create_or_update", o, fn)
end

--- The same with a merge patch of what changed, as c:create_or_patch does.
---@param o kubelua.Object|kubelua.view
---@param fn fun(draft: kubelua.draft)
---@return kubelua.view, "created"|"updated"|"updated_status"|"updated_both"|"unchanged"
function Context:create_or_patch(o, fn)
  return upsert.create_or_patch(live_hands(self), "ctx:create_or_patch", o, fn)
end

--- Makes the object of this run the controller of one that has none, as c:adopt does. A conflict runs the
--- key again, quietly.
---@param o kubelua.view
---@return kubelua.view?
function Context:adopt(o) return claim.adopt(live_hands(self), "ctx:adopt", self.object, o) end

--- Removes the owner reference to the object of this run from one that it controls.
---@param o kubelua.view
---@return kubelua.view?
function Context:release(o) return claim.release(live_hands(self), "ctx:release", self.object, o) end

local CLAIM = { labels = "selector", namespace = "string", match = "function" }

--- The objects of a kind that are ours: those that we control and that match, orphans that match and are
--- adopted now. What we control and does not match is released. From the cache. for _, pod in
--- ipairs(ctx:claim("v1/Pod", { labels = obj.spec.selector })) do ... end
---@param kind string
---@param opts {labels: kubelua.LabelSelector?, match: (fun(o: kubelua.view): any)?, namespace: string?}
---@return kubelua.view[]
function Context:claim(kind, opts)
  opts = options.check("ctx:claim", opts, CLAIM)
  if opts.labels == nil and opts.match == nil then
    core.blame "ctx:claim: give labels = (a selector), or match = function(o); without one it would \z
      adopt every orphan"
  end
  local text = opts.labels ~= nil and (request.labels(opts.labels) or "")
  if text == "" then core.blame "ctx:claim: the selector is empty, and would adopt every orphan" end
  local selector = text and core.selector(text)
  local function matches(o)
    return (not selector or selector:matches(o("metadata.labels") or {}))
      and (not opts.match or opts.match(o))
  end
  return claim.claim(live_hands(self), "ctx:claim", self.object,
    self:list(kind, { namespace = opts.namespace or self.namespace }), matches)
end

Context.add_finalizer = Client.add_finalizer
Context.remove_finalizer = Client.remove_finalizer

local OWNED = { namespace = "string", labels = "selector", fields = "selector", index = "index",
  value = "value" }

---@class kubelua.OwnedOptions   as of ctx:list
---@field namespace? string
---@field labels? any
---@field fields? any
---@field index? string|table
---@field value? string|string[]

--- The objects of a kind that our object controls, from the cache. Nothing is written; objects that
--- `ctx:claim` would adopt are not among them.
---@param kind string
---@param opts kubelua.OwnedOptions?
---@return kubelua.view[]
function Context:owned(kind, opts)
  opts = options.check("ctx:owned", opts, OWNED)
  local mine, uid = {}, self.object.metadata.uid
  for _, o in ipairs(self:list(kind, { namespace = opts.namespace or self.namespace, labels = opts.labels,
    fields = opts.fields, index = opts.index, value = opts.value })) do
    local controller = owner.controller_of(o)
    if controller and controller.uid == uid then mine[#mine + 1] = o end
  end
  return mine
end

--- ctx gets those that do not wait for others.
function M.into_context(class)
  for name, fn in pairs(Context) do class[name] = fn end
end

return M
