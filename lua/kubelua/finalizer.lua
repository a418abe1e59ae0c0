-- finalizer.lua - the finalizer of a controller that has `finalize`: the runtime adds it, waits for the
-- work, and takes it away.
--
--   object     ours in it     what is done
--   alive      no             add (guarded), then reconcile
--   alive      yes            reconcile
--   deleted    yes            finalize; when that is done: remove (guarded)
--   deleted    no             nothing: somebody else's work holds it
--
-- Guarded: the patch names the uid and the resourceVersion it was made from, so that it never meets another
-- object of the same name nor overwrites another's finalizer. A conflict in adding runs the key again,
-- quietly. One in removing looks at the object anew: finalize runs again only when somebody changed what is
-- wanted of it (metadata.generation).

local core = require "kubelua.core"
local edit = require "kubelua.edit"
local request = require "kubelua.request"

local M = {}

-- Few others remove their finalizers at the same time.
local ATTEMPTS = 8

local function has(o, names)
  for _, finalizer in ipairs(o("metadata.finalizers") or {}) do
    if names[finalizer] then return true end
  end
  return false
end

--- The finalizers of an object without `names` (a set), and with `name` if any at the end.
---@param o kubelua.view
---@param names table<string, true>
---@param name string?
---@return string[]
local function without(o, names, name)
  local list = core.array {}
  for _, finalizer in ipairs(o("metadata.finalizers") or {}) do
    if not names[finalizer] then list[#list + 1] = finalizer end
  end
  list[#list + 1] = name
  return list
end

--- Decides what to do. `name` is our finalizer, `former` are earlier names of it.
---@param o kubelua.view
---@param name string
---@param former string[]?
---@return "add"|"reconcile"|"finalize"|"nothing"
function M.plan(o, name, former)
  local current, old = { [name] = true }, {}
  for _, f in ipairs(former or {}) do old[f] = true end
  if o("metadata.deletionTimestamp") then
    return (has(o, current) or has(o, old)) and "finalize" or "nothing"
  end
  return has(o, current) and not has(o, old) and "reconcile" or "add"
end

--- The guarded merge patch that replaces the finalizers of `o` by `finalizers`.
local function guarded(o, finalizers)
  local metadata = o.metadata
  return { metadata = {
    uid = metadata.uid, resourceVersion = metadata.resourceVersion,
    finalizers = #finalizers > 0 and finalizers or core.null,
  } }
end

local function patch(kind, o, finalizers)
  return {
    verb = "patch", kind = kind, ns = o("metadata.namespace"), name = o.metadata.name, patch_type = "merge",
    body = core.value(guarded(o, finalizers)),
  }
end

M.has, M.without, M.guarded = has, without, guarded

local function names_of(c)
  local names = { [c.finalizer] = true }
  for _, former in ipairs(c.former or {}) do names[former] = true end
  return names
end

-- The object with our finalizer, as the cache would show it; nil when it is gone.
local function add(hands, c, o)
  local finalizers = without(o, names_of(c), c.finalizer)
  local ok, answer = pcall(hands.send, patch(c.resource, o, finalizers))
  if not ok then
    if request.is_absent(answer) then return nil end
    error(answer, 0)
  end
  if not hands.is_cut(c) then return answer end
  return edit.view(function(draft)
    draft.metadata.finalizers = finalizers
    draft.metadata.resourceVersion = answer.metadata.resourceVersion
  end, o)
end

local function remove(hands, c, o)
  local names, wanted = names_of(c), o("metadata.generation")
  for attempt = 1, ATTEMPTS do
    local ok, err = pcall(hands.send, patch(c.resource, o, without(o, names)))
    if ok or request.is_absent(err) then return end
    if not core.is_error(err) or err.code ~= 409 or attempt == ATTEMPTS then error(err, 0) end
    local fresh = hands.get { verb = "get", kind = c.resource, ns = o("metadata.namespace"),
      name = o.metadata.name }
    if not fresh or fresh.metadata.uid ~= o.metadata.uid or not has(fresh, names) then return end
    if fresh("metadata.generation") ~= wanted then error(err, 0) end
    o = fresh
  end
end

-- Objects from which ours was taken, by uid. Nobody can add a finalizer to what is being deleted, so one
-- that is still seen there is the cache's past. The two tables take turns, so that old ones are forgotten.
local FINISHED_MAX = 1000
local finished, before, count = {}, {}, 0

local function finish(uid)
  if count >= FINISHED_MAX then finished, before, count = {}, finished, 0 end
  finished[uid], count = true, count + 1
end

--- One run of a controller with `finalize`. `settle(hands, ctx, obj, result, why)` is what becomes of a
--- result (lua/kubelua/result.lua); hands beside those of results: get = function(op) -> view or nil,
--- is_cut = function(controller) -> whether its objects are kept whole.
function M.run(hands, settle, c, obj, ctx)
  local plan = M.plan(obj, c.finalizer, c.former)
  local uid = obj.metadata.uid
  if plan == "nothing" or finished[uid] or before[uid] then return end
  if plan == "add" then
    obj = add(hands, c, obj)
    if not obj then return end
  end
  if plan ~= "finalize" then return settle(hands, ctx, obj, c.reconcile(obj, ctx)) end
  -- What the result writes into the status is seen by the removal.
  local latest = obj
  local mine = setmetatable({
    status = function(...)
      latest = hands.status(...)
      return latest
    end,
  }, { __index = hands })
  local word, after, why = settle(mine, ctx, obj, c.finalize(obj, ctx))
  if word ~= nil and word ~= "done" then return word, after, why end
  remove(hands, c, latest)
  finish(uid)
end

return M
