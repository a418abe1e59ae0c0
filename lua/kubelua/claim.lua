-- claim.lua - which objects belong to an owner: adopts orphans that match, and releases objects that no
-- longer match. By the rules of Kubernetes' ControllerRefManager.
--
--   object is             and it            is
--   another controller's                    left alone (adopt: an error)
--   ours                  matches           ours
--   ours                  does not match    released, unless the owner is being deleted: the garbage
--                                           collector deletes it then
--   nobody's              matches           adopted, unless it or the owner is being deleted
--   nobody's              does not match    left alone
--
-- A patch names the uid and the resourceVersion that it was made from. Before the first adoption the owner is
-- read from the server: the cached one may be deleted, and its successor has another uid. This needs of its
-- caller:
--   { patch = function(o, patch) -> view,
--     get = function(kind, namespace, name) -> view from the server or nil }

local core = require "kubelua.core"
local object = require "kubelua.object"
local owners = require "kubelua.owner"
local request = require "kubelua.request"

local M = {}

local function describe(o)
  local ns = o("metadata.namespace")
  return ("%s %s"):format(object.kind_of(o) or "the object",
    ns and ns .. "/" .. o.metadata.name or o.metadata.name)
end

local function of_server(what, word, o)
  local view = core.value(object.normalize(o, what), "the object")
  if not view("metadata.uid") or not view("metadata.resourceVersion") then
    core.blame(("%s: the %s must be an object that was read from the server: it has no uid and \z
      resourceVersion"):format(what, word))
  end
  return view
end

local function refuse(kind, o, fmt, ...)
  error(core.error { kind = kind, resource = object.kind_of(o), key = o.metadata.name,
    message = fmt:format(...) }, 0)
end

-- The patch of the owner references, or nil when the object is gone.
local function put(self, o, refs)
  local metadata = { uid = o.metadata.uid, resourceVersion = o.metadata.resourceVersion,
    ownerReferences = #refs > 0 and refs or core.null }
  local ok, result = pcall(self.patch, o, { metadata = metadata })
  if ok then return result end
  if request.is_absent(result) then return nil end
  error(result, 0)
end

-- Whether the owner may still adopt. Asked once for each `asked`.
local function check_owner(self, owner, asked)
  if asked.fresh == nil then
    asked.fresh = self.get(object.kind_of(owner), owner("metadata.namespace"), owner.metadata.name) or false
  end
  local fresh = asked.fresh
  if not fresh or fresh.metadata.uid ~= owner.metadata.uid then
    refuse("not_adoptable", owner, "%s is gone and can no longer adopt objects", describe(owner))
  elseif fresh("metadata.deletionTimestamp") then
    refuse("not_adoptable", owner, "%s is being deleted and can no longer adopt objects", describe(owner))
  end
end

--- Makes `owner` the controller of an orphan; returns the server's object, nil when it is gone. An owned
--- object is returned unchanged.
function M.adopt(self, what, owner, o, asked)
  owner, o = of_server(what, "owner", owner), of_server(what, "object", o)
  local controller = owners.controller_of(o)
  if controller and controller.uid == owner.metadata.uid then return o end
  if controller then
    refuse("already_owned", o, "%s is already controlled by %s %s", describe(o), tostring(controller.kind),
      tostring(controller.name))
  end
  if o("metadata.deletionTimestamp") then refuse("not_adoptable", o, "%s is being deleted", describe(o)) end
  local draft = { apiVersion = o.apiVersion, kind = o.kind, metadata = core.copy(o.metadata) }
  owners.set_controller(owner, draft)               -- checks the scope, too
  check_owner(self, owner, asked or {})
  return put(self, o, draft.metadata.ownerReferences)
end

--- Removes the reference to `owner` from an object that it controls; returns the server's object, nil when it
--- is gone. A foreign object is returned unchanged.
function M.release(self, what, owner, o)
  owner, o = of_server(what, "owner", owner), of_server(what, "object", o)
  local controller = owners.controller_of(o)
  if not controller or controller.uid ~= owner.metadata.uid then return o end
  local kept = core.array {}
  for _, ref in ipairs(o.metadata.ownerReferences) do
    if ref.uid ~= owner.metadata.uid then kept[#kept + 1] = core.copy(ref) end
  end
  return put(self, o, kept)
end

-- Claims one: the object when it belongs to the owner, else nil.
local function claim_one(self, what, owner, o, matches, asked)
  local controller = owners.controller_of(o)
  if controller then
    if controller.uid ~= owner.metadata.uid then return nil end
    if matches(o) then return o end
    if not owner("metadata.deletionTimestamp") then M.release(self, what, owner, o) end
    return nil
  end
  if owner("metadata.deletionTimestamp") or o("metadata.deletionTimestamp") or not matches(o) then
    return nil
  end
  return M.adopt(self, what, owner, o, asked)
end

--- Claims each of `list`; the owner's, in order. Every object is tried; then the first error is raised.
---@param matches fun(o: kubelua.view): any
function M.claim(self, what, owner, list, matches)
  owner = of_server(what, "owner", owner)
  local mine, asked, problem = {}, {}, nil
  for _, o in ipairs(list) do
    local ok, result = pcall(claim_one, self, what, owner, o, matches, asked)
    if ok then
      mine[#mine + 1] = result
    elseif not core.is_error(result) then
      error(result, 0)
    else
      problem = problem or result
    end
  end
  if problem then error(problem, 0) end
  return mine
end

return M
