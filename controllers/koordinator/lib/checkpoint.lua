-- checkpoint.lua - saves the state that a controller learned about an object and cannot read again. It is in
-- a ConfigMap that the object owns. While this process leads, the state in memory is current; after a
-- restart, a reload or a change of leader, the state is loaded from the ConfigMap.
--
--   local kept = checkpoint.keeper { prefix = "recommender-", load = fn, save = fn }
--   local state = kept:state(ctx, object, namespace)    -- load(the saved state, or nil) at the first call
--   kept:keep(ctx, object, namespace, 600)              -- writes save(state) every 600 s, if it changed

local kube = require "kubelua"
local fields = require "fields"

local M = {}

local CONFIG_MAP, ENTRY = "v1/ConfigMap", "state.json"
local FORGOTTEN = 24 * 3600

local Keeper = {}
Keeper.__index = Keeper

-- o: prefix of the ConfigMaps' names, before the object's uid; load, save.
function M.keeper(o)
  return setmetatable({ prefix = o.prefix, load = o.load, save = o.save, known = {} }, Keeper)
end

function Keeper:name(object) return self.prefix .. object.metadata.uid end

local function read(ctx, namespace, name)
  local map = ctx.live:get(CONFIG_MAP, namespace, name)
  local text = fields.dig(map, "data", ENTRY)
  local saved, why = nil, nil
  if text then saved, why = fields.json(text) end
  if why then
    ctx.log:warn(("ConfigMap %s/%s cannot be read and is replaced: %s"):format(namespace, name, why))
  end
  return saved
end

function Keeper:state(ctx, object, namespace)
  local uid, now = object.metadata.uid, ctx:now():unix()
  local entry = self.known[uid] ---@type any
  -- In another epoch, another leader may have changed the ConfigMap.
  if not entry or entry.epoch ~= ctx.epoch then
    entry = { epoch = ctx.epoch, state = self.load(read(ctx, namespace, self:name(object))),
      kept = now }
    self:forget(now)
    self.known[uid] = entry
  end
  return entry.state
end

-- Forgets objects that nobody asked for in a day: they were deleted, or another process has them. Their state
-- stays in the ConfigMap.
function Keeper:forget(now)
  for uid, entry in pairs(self.known) do
    if now - entry.kept > FORGOTTEN then self.known[uid] = nil end
  end
end

function Keeper:keep(ctx, object, namespace, every)
  local entry, now = self.known[object.metadata.uid], ctx:now():unix()
  if now - entry.kept < every then return end
  local text = kube.encode(self.save(entry.state))
  if text ~= entry.text then
    ctx:apply { apiVersion = "v1", kind = "ConfigMap", data = { [ENTRY] = text },
      metadata = { namespace = namespace, name = self:name(object),
        ownerReferences = { { apiVersion = object.apiVersion, kind = object.kind,
          name = object.metadata.name, uid = object.metadata.uid } } } }
  end
  entry.kept, entry.text = now, text
end

return M
