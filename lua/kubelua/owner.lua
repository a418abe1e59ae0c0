-- owner.lua - owner references and finalizers, by the rules of Kubernetes' garbage collector and of
-- controller-runtime's controllerutil.
--
-- Calls change a draft, or a plain table: kube.set_controller(deployment, config_map).

local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"

local M = {}

local OPTIONS = { block = "boolean" }

-- Metadata of what may be changed. A table in short form becomes a manifest first: owners have no short form.
local function writable(what, o)
  if core.is_view(o) then
    core.blame(what .. ": a view cannot be changed; do this in the function of c:patch, or with \z
      kube.copy(view)")
  end
  if not core.is_draft(o) and type(o) ~= "table" then
    core.blame(("%s: expected a draft or a table, got %s"):format(what, type(o)))
  end
  if type(o) == "table" and o.metadata == nil then
    local manifest = object.normalize(o, what)
    for key in pairs(o) do o[key] = nil end
    for key, value in pairs(manifest) do o[key] = value end
    o.metadata = o.metadata or {}
  end
  return o.metadata
end

local function readable(what, o)
  if type(o) ~= "table" and not core.is_view(o) and not core.is_draft(o) then
    core.blame(("%s: expected an object, got %s"):format(what, type(o)))
  end
  return o.metadata or core.object {}
end

local function describe(o, metadata)
  local ns = metadata.namespace
  return ("%s %s"):format(object.kind_of(o) or "the object",
    ns and ns .. "/" .. tostring(metadata.name) or tostring(metadata.name))
end

-- The fields of a reference to the owner, which has to come from the server.
local function identity(what, owner)
  local metadata = readable(what, owner)
  local api, kind = owner.apiVersion, owner.kind
  if type(api) ~= "string" or type(kind) ~= "string" or not metadata.name then
    core.blame(what .. ": the owner has no apiVersion, kind and metadata.name: it must be an object of \z
      the server")
  elseif not metadata.uid then
    core.blame(("%s: %s has no uid: an owner must be an object that was read from the server"):format(what,
      describe(owner, metadata)))
  end
  return { apiVersion = api, kind = kind, name = metadata.name, uid = metadata.uid }, metadata.namespace
end

local function group(api_version) return api_version:match "^(.*)/" or "" end

-- Versions and uids aside, as controllerutil compares them: a re-created owner takes its old place.
local function same(a, b)
  return a.kind == b.kind and a.name == b.name and group(a.apiVersion or "") == group(b.apiVersion or "")
end

-- Ownership crosses no namespaces, and does not go from a namespaced owner up: the garbage collector would
-- delete such an object.
local function check_scope(what, owner, owner_ns, o, ns)
  if not owner_ns or owner_ns == ns then return end
  local of = ("%s %s/%s"):format(owner.kind, owner_ns, owner.name)
  if not ns then
    core.blame(("%s: %s has no namespace and cannot be owned by %s: a cluster-scoped object can only \z
      have cluster-scoped owners; set the namespace if the object is namespaced")
      :format(what, describe(o, o.metadata), of))
  end
  core.blame(("%s: %s cannot be owned by %s: an owner lives in the same namespace or is \z
    cluster-scoped"):format(what, describe(o, o.metadata), of))
end

local function set(what, owner, o, controller, opts)
  opts = options.check(what, opts, OPTIONS)
  local metadata = writable(what, o)
  local ref, owner_ns = identity(what, owner)
  check_scope(what, ref, owner_ns, o, metadata.namespace)
  if controller then
    ref.controller = true
    ref.blockOwnerDeletion = opts.block ~= false
  elseif opts.block ~= nil then
    ref.blockOwnerDeletion = opts.block
  end
  local refs, at = core.copy(metadata.ownerReferences or core.array {}), nil
  for i, old in ipairs(refs) do
    if same(old, ref) then
      at = at or i
    elseif controller and old.controller == true then
      error(core.error {
        kind = "already_owned", resource = object.kind_of(o), key = metadata.name,
        message = ("%s is already controlled by %s %s"):format(describe(o, metadata), tostring(old.kind),
          tostring(old.name)),
      }, 0)
    end
  end
  refs[at or #refs + 1] = ref
  metadata.ownerReferences = refs
  return o
end

--- Makes `owner` the controller of an object: its only one. Another controller is an error of kind
--- "already_owned".
---@generic T
---@param owner kubelua.view|kubelua.Object   as the server has it
---@param o T                                 a draft, or a table
---@param opts {block?: boolean}?             block = false: the owner's deletion in the foreground does not wait for the object
---@return T
function M.set_controller(owner, o, opts) return set("kube.set_controller", owner, o, true, opts) end

--- Makes `owner` one of an object's owners.
---@generic T
---@param owner kubelua.view|kubelua.Object
---@param o T
---@param opts {block?: boolean}?
---@return T
function M.set_owner(owner, o, opts) return set("kube.set_owner", owner, o, false, opts) end

--- Removes an owner. False when it was not an owner.
---@param owner kubelua.view|kubelua.Object
---@param o kubelua.draft|table
---@return boolean
function M.remove_owner(owner, o)
  local metadata = writable("kube.remove_owner", o)
  local ref = { apiVersion = owner.apiVersion, kind = owner.kind,
    name = readable("kube.remove_owner", owner).name }
  local kept, found = core.array {}, false
  for _, old in ipairs(core.copy(metadata.ownerReferences or core.array {})) do
    if same(old, ref) then found = true else kept[#kept + 1] = old end
  end
  if found then metadata.ownerReferences = #kept > 0 and kept or nil end
  return found
end

--- The owner reference of an object's controller, or nil.
---@param o kubelua.view|kubelua.Object
---@return {apiVersion: string, kind: string, name: string, uid: string}?
function M.controller_of(o)
  for _, ref in ipairs(readable("kube.controller_of", o).ownerReferences or {}) do
    if ref.controller == true then return ref end
  end
end

--- Whether `owner` is one of an object's owners, by its uid.
---@param o kubelua.view|kubelua.Object
---@param owner kubelua.view|kubelua.Object
---@return boolean
function M.is_owned_by(o, owner)
  local uid = readable("kube.is_owned_by", owner).uid
  for _, ref in ipairs(readable("kube.is_owned_by", o).ownerReferences or {}) do
    if uid and ref.uid == uid then return true end
  end
  return false
end

-- ---------------------------------------------------------------- finalizers

-- Kubernetes' own finalizers have no domain.
local STANDARD = { orphan = true, foregroundDeletion = true, kubernetes = true }

local function check_finalizer(what, name)
  if type(name) ~= "string" or not STANDARD[name] and not name:find "^[^/%s]+/[^/%s]+$" then
    core.blame(("%s: a finalizer must be \"domain/name\", got %s"):format(what, tostring(name)))
  end
end

--- Whether an object has a finalizer.
---@param o kubelua.view|kubelua.Object
---@param name string
---@return boolean
function M.has_finalizer(o, name)
  for _, finalizer in ipairs(readable("kube.has_finalizer", o).finalizers or {}) do
    if finalizer == name then return true end
  end
  return false
end

--- Adds a finalizer to a draft or a table. False when it was already there.
---@param o kubelua.draft|table
---@param name string
---@return boolean
function M.add_finalizer(o, name)
  check_finalizer("kube.add_finalizer", name)
  local metadata = writable("kube.add_finalizer", o)
  if M.has_finalizer(o, name) then return false end
  local finalizers = core.copy(metadata.finalizers or core.array {})
  finalizers[#finalizers + 1] = name
  metadata.finalizers = finalizers
  return true
end

--- Removes a finalizer, every occurrence of it. False when it was absent.
---@param o kubelua.draft|table
---@param name string
---@return boolean
function M.remove_finalizer(o, name)
  local metadata = writable("kube.remove_finalizer", o)
  if not M.has_finalizer(o, name) then return false end
  local kept = core.array {}
  for _, finalizer in ipairs(metadata.finalizers) do
    if finalizer ~= name then kept[#kept + 1] = finalizer end
  end
  metadata.finalizers = #kept > 0 and kept or nil
  return true
end

return M
