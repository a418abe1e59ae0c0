-- ttl.lua - a store of objects that are known for a while: what was put longer than the time to live ago is
-- not there any more.
--
--   local seen = kube.ttl_store("5m")
--   seen:put(pod); seen:get "default/a"

local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"

local M = {}

---@class kubelua.TTLStore
---@field private core userdata
local Store = {}
Store.__index = Store

local function default_key(o)
  local name, namespace = o("metadata.name"), o("metadata.namespace")
  return namespace and namespace .. "/" .. tostring(name) or name
end

local function key_of(self, what, x)
  if type(x) == "string" then return x end
  local key = self.key(core.is_view(x) and x or core.value(object.normalize(x, what), "the object"))
  if type(key) ~= "string" or key == "" then
    core.blame(("%s: the object has no key: the key function returned %s"):format(what, tostring(key)))
  end
  return key
end

--- Stores an object; its time to live starts now.
---@param o kubelua.view|kubelua.Object
function Store:put(o)
  local value = core.is_view(o) and o or core.value(object.normalize(o, "store:put"), "the object")
  self.core:put(self.clock(), key_of(self, "store:put", value), value)
end

--- The object under a key, or the one that has the same key; nil when there is none, or its time is over.
---@param key string|kubelua.view|kubelua.Object
---@return kubelua.view?
function Store:get(key) return self.core:get(self.clock(), key_of(self, "store:get", key)) end

--- Whether it was there.
---@param key string|kubelua.view|kubelua.Object
---@return boolean
function Store:delete(key) return self.core:delete(self.clock(), key_of(self, "store:delete", key)) end

--- All objects, ordered by their expiry, the next first.
---@return kubelua.view[]
function Store:list() return self.core:list(self.clock()) end

---@return string[]
function Store:keys()
  local out = {}
  for i, o in ipairs(self:list()) do out[i] = self.key(o) end
  return out
end

---@return integer
function Store:len() return self.core:len(self.clock()) end

Store.__len = Store.len

--- A store whose objects live for `ttl` after each put. `key` says what an object is called
--- ("namespace/name" when absent); `clock`, which tests may own, says the seconds.
---@param ttl kubelua.Duration
---@param opts {key?: (fun(o: kubelua.view): string), clock?: (fun(): number)}|(fun(o: kubelua.view): string)|nil
---@return kubelua.TTLStore
function M.ttl_store(ttl, opts)
  if type(opts) == "function" then opts = { key = opts } end
  opts = options.check("kube.ttl_store", opts, { key = "function", clock = "function" })
  local seconds = core.duration(ttl)
  if seconds <= 0 then
    core.blame(("kube.ttl_store: the time to live must be above zero, got %s"):format(tostring(ttl)))
  end
  return setmetatable({ core = core.ttl(seconds), key = opts.key or default_key,
    clock = opts.clock or core.monotonic }, Store)
end

return M
