-- quotas.lua - teams: what each ElasticQuota may use and what its pods use, for measures (used.TEAM,
-- wait.TEAM) and for the page. A pod's quota is the one that its label names, else the one that is called
-- like its namespace.

local core = require "kubelua.core"

local M = {}

local KIND = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota"
local PREFIX = "quota.scheduling.koordinator.sh/"
-- What Koordinator makes for itself.
local RESERVED = { ["koordinator-root-quota"] = true, ["koordinator-system-quota"] = true,
  ["koordinator-default-quota"] = true }

---@class kubelua.SimQuotas
local Q = {}
Q.__index = Q

--- The label of a pod's quota.
M.LABEL = PREFIX .. "name"

---@param w kubelua.SimWorld
function M.new(w)
  return setmetatable({ w = w, known = w.sim:resource(KIND) ~= nil, by_name = {}, names = {} }, Q)
end

-- Cores of a resource list: cpu, or batch-cpu, which is in thousandths.
local function cores(list)
  if not list then return nil end
  if list.cpu then return core.qty(list.cpu):milli() / 1000 end
  local batch = list["kubernetes.io/batch-cpu"]
  return batch and core.qty(batch):value() / 1000
end

local function annotated(view, name)
  local text = view("metadata.annotations", PREFIX .. name)
  local ok, list = pcall(core.decode, text or "")
  return ok and text and cores(core.copy(list)) or nil
end

-- What the object says now.
local function read(view)
  local parent = view("metadata.labels", PREFIX .. "parent")
  local max = cores(view("spec.max"))
  local weight = annotated(view, "shared-weight") or max
  return { name = view.metadata.name, key = ("%s/%s"):format(view.metadata.namespace, view.metadata.name),
    parent = parent ~= "" and not RESERVED[parent or ""] and parent or nil,
    min = cores(view("spec.min")) or 0, max = max, weight = weight, runtime = annotated(view, "runtime") }
end

local function quota_of(self, p)
  local pods = self.w.pods
  local name = pods.quota[p] or pods.namespace[p]
  return self.by_name[name]
end

--- The team whose ElasticQuota is "namespace/name", or nil.
---@param key string
function Q:of_key(key)
  for _, name in ipairs(self.names) do
    if self.by_name[name].key == key then return self.by_name[name] end
  end
end

--- A moment that stands for `seconds`.
function Q:sample(seconds)
  if not self.known then return end
  local w, hours = self.w, seconds / 3600
  for _, view in ipairs(w.sim:call({ verb = "list", kind = KIND }).items) do
    local now = read(view)
    local q = self.by_name[now.name]
    if not q and not RESERVED[now.name] then
      q = { key = now.key, rows = {}, used_hours = 0, waits = {} }
      self.by_name[now.name], self.names[#self.names + 1] = q, now.name
    end
    if q then
      q.parent, q.min, q.max, q.weight, q.runtime = now.parent, now.min, now.max, now.weight, now.runtime
      q.used, q.waiting = 0, 0
    end
  end
  if #self.names == 0 then return end
  local pods = w.pods
  for i = 1, w.nodes.n do
    for _, p in ipairs(w.nodes.pods[i]) do
      local q = quota_of(self, p)
      if q then q.used = q.used + pods.cpu[p] / 1000 end
    end
  end
  for _, p in ipairs(w.pending:list()) do
    local q = quota_of(self, p)
    if q then q.waiting = q.waiting + pods.cpu[p] / 1000 end
  end
  for _, name in ipairs(self.names) do
    local q = self.by_name[name]
    q.used_hours = q.used_hours + q.used * hours
    q.rows[#q.rows + 1] = { time = w.time, used = q.used, waiting = q.waiting,
      runtime = q.runtime or q.max or 0 }
  end
end

--- Pod p has a node after `seconds`.
function Q:placed(p, seconds)
  local q = quota_of(self, p)
  if q then q.waits[#q.waits + 1] = seconds end
end

--- Of each team { name, parent, min, max, weight, used_hours, rows }, by name; thin: of rows.
function Q:result(thin)
  table.sort(self.names)
  local out = {}
  for k, name in ipairs(self.names) do
    local q = self.by_name[name]
    out[k] = { name = name, parent = q.parent, min = q.min, max = q.max, weight = q.weight,
      used_hours = q.used_hours, rows = thin(q.rows) }
  end
  return out
end

return M
