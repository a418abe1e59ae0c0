-- stale.lua - writes that meet what the cache has not heard of yet: an object that came, one that went.

local kube = require "kubelua"

local M = {}

local function again(why) error(kube.retry(0, tostring(why)), 0) end

--- Creates an object. Where one of its name is there already, that one, if `mine` says so of it.
---@param object table  with apiVersion and metadata
---@param mine fun(there: kubelua.view): boolean
---@return kubelua.view
function M.create(object, mine, ctx)
  local made, why = ctx.try:create(object)
  if made then return made end
  if why.kind ~= "already_exists" then error(why, 0) end
  local meta = object.metadata
  local there = ctx.live:get(object.apiVersion .. "/" .. object.kind,
    meta.namespace and meta.namespace .. "/" .. meta.name or meta.name)
  if not there then again(why) end
  return mine(there) and there or error(why, 0)
end

--- Patches an object; the run is repeated where that is gone.
function M.patch(object, change, ctx)
  local patched, why = ctx.try:patch(object, change)
  if why and why.kind == "not_found" then again(why) end
  return patched or error(why, 0)
end

return M
