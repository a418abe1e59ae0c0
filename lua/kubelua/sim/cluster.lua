-- cluster.lua - makes a simulated cluster: generates it from settings, or reads it from the output of
-- `kubectl get -o yaml`.

local core = require "kubelua.core"
local dice = require "kubelua.sim.dice"
local manifests = require "kubelua.manifests"

local M = {}

local CONFIG_NAMESPACE, CONFIG = "koordinator-system", "slo-controller-config"
local COLOCATION = "colocation-config"

local function amounts_of(cpu, memory)
  return { cpu = ("%dm"):format(cpu), memory = ("%d"):format(memory), pods = "250" }
end

-- What a node can give away, with the share that it lends.
local function allocatable_of(w, cpu, memory)
  local out, lent = amounts_of(cpu, memory), w.settings.lent
  if lent > 0 then
    out["kubernetes.io/batch-cpu"] = ("%d"):format(cpu * lent // 1)
    out["kubernetes.io/batch-memory"] = ("%d"):format(memory * lent // 1)
  end
  return out
end

--- An empty node: cpu in milli-cores, memory in bytes; allocatable: both again, if less than the capacity.
---@param allocatable { cpu: integer, memory: integer }?
function M.add_node(w, name, cpu, memory, allocatable)
  local rest = allocatable or { cpu = cpu, memory = memory }
  local nodes, i = w.nodes, w:add_node {
    apiVersion = "v1", kind = "Node",
    metadata = { name = name, labels = { ["kubernetes.io/hostname"] = name } },
    spec = core.object {},
    status = { capacity = amounts_of(cpu, memory),
      allocatable = allocatable_of(w, rest.cpu, rest.memory),
      conditions = { { type = "Ready", status = "True", reason = "Simulated" } } },
  }
  local lent = w.settings.lent
  nodes.batch_cpu[i], nodes.batch_memory[i] = rest.cpu * lent // 1, rest.memory * lent // 1
  return i
end

--- Nodes, each with prod pods up to the share of the node that the settings give.
---@param w kubelua.SimWorld
function M.generate(w)
  local s, n = w.settings, 0
  for i = 1, s.nodes do
    local at = M.add_node(w, ("node-%03d"):format(i), s.cpu, s.memory)
    -- nodes differ: the setting is the mean of their shares
    local share = math.min(1, s.prod * (1 + 0.15 * dice.normal(w.seed, i, 4)))
    local asked, filled = 0, 0
    while asked + s.prod_cpu <= w.nodes.cpu[at] * share and filled + s.prod_memory <= w.nodes.memory[at] do
      local app = ("app-%d"):format(1 + n % s.apps)
      n, asked, filled = n + 1, asked + s.prod_cpu, filled + s.prod_memory
      w:add_pod { name = ("%s-%d"):format(app, n), class = "prod", app = app, cpu = s.prod_cpu,
        memory = s.prod_memory, node = at }
    end
  end
  w:put_workloads()
end

--- Jobs that arrive at random within the next `seconds`, at the rate per node and hour of the settings.
---@param w kubelua.SimWorld
---@param seconds number
function M.arrivals(w, seconds)
  local s = w.settings
  w.owed = (w.owed or 0) + s.batch_rate * w.nodes.n * seconds / 3600
    * (0.5 + dice.unit(w.seed, math.tointeger(w.time // 1), 5))
  while w.owed >= 1 do
    w.owed = w.owed - 1
    w.jobs = (w.jobs or 0) + 1
    w:add_pod { name = ("job-%d"):format(w.jobs), namespace = "batch", class = "batch", app = "batch",
      cpu = s.batch_cpu, memory = s.batch_memory,
      work = s.batch_time * (0.5 + dice.unit(w.seed, w.jobs, 6)) }
  end
end

-- ---------------------------------------------------------------- snapshots

local SKIPPED = { ["v1/Event"] = true, ["events.k8s.io/v1/Event"] = true,
  ["coordination.k8s.io/v1/Lease"] = true }

-- What the simulation reads of a Node and a Pod, in this order.
local OBJECTS = {
  Node = { "spec", "status", "status.capacity", "status.allocatable" },
  Pod = { "spec", "status" },
}

local function wrong(path, want, v)
  error(("%s must be %s, got %s"):format(path, want, tostring(v):sub(1, 60)), 0)
end

local function is_object(v)
  if not core.is_view(v) then return false end
  local step, state, first = pairs(v)
  return type((step(state, first))) ~= "number"
end

local function shaped(o)
  for _, path in ipairs(OBJECTS[o.kind]) do
    local v = o(path)
    if v ~= nil and not is_object(v) then wrong(path, "an object", v) end
  end
  local ns = o "metadata.namespace"
  if ns ~= nil and type(ns) ~= "string" then wrong("metadata.namespace", "a string", ns) end
end

-- Calls fn(w, o); an error names the object.
local function taken(what, w, o, fn)
  local ok, why = pcall(shaped, o)
  if ok then ok, why = pcall(fn, w, o) end
  if not ok then error(("%s: %s %q: %s"):format(what, o.kind, o.metadata.name, tostring(why)), 0) end
end

local function take_node(w, o)
  w:take_node(o)
  w:put_copy(o)
  w:saw_node(o, "ADDED")
end

local function take_pod(w, o)
  w:put_copy(o)
  w:adopt(o)
end

--- Makes a cluster of objects; returns the counts of skipped objects by kind. `what`: a name for messages.
---@param w kubelua.SimWorld
---@param objects table[]
---@param what string
---@return table<string, integer>
function M.take(w, objects, what)
  local pods, left_out = {}, {}
  for _, o in ipairs(objects) do
    local kind = ("%s/%s"):format(o.apiVersion, o.kind)
    if kind == "v1/Node" then
      taken(what, w, o, take_node)
    elseif kind == "v1/Pod" then
      pods[#pods + 1] = o
    elseif o.kind == "CustomResourceDefinition" then
      w.sim:load(o)
    elseif SKIPPED[kind] or not w.sim:resource(kind) then
      left_out[kind] = (left_out[kind] or 0) + 1
    else
      w:put_copy(o)
    end
  end
  for _, o in ipairs(pods) do
    local phase = o("status.phase")
    if phase ~= "Succeeded" and phase ~= "Failed" then taken(what, w, o, take_pod) end
  end
  if w.nodes.n == 0 then error(what .. " has no nodes: a simulation needs some", 0) end
  return left_out
end

local SKIPPED_KINDS = {}
for kind in pairs(SKIPPED) do SKIPPED_KINDS[#SKIPPED_KINDS + 1] = kind end

-- A pipe can be read only once and may be slow, so it is read as a whole.
local function is_seekable(path)
  local file = path ~= "-" and io.open(path, "rb")
  local seeks = file and file:seek "end"
  if file then file:close() end
  return seeks and seeks > 0
end

--- Loads the objects of files and directories as M.take does. A file is read piece by piece: what nobody
--- needs is not kept.
function M.load(w, paths)
  local objects, dropped = {}, {}
  for _, path in ipairs(paths) do
    local list = manifests.read(path, function(file)
      if not is_seekable(file) then return manifests.documents(file) end
      local found, counts = core.objects(file, SKIPPED_KINDS)
      for kind, n in pairs(counts) do dropped[kind] = (dropped[kind] or 0) + n end
      return found, file, "object"
    end)
    for _, d in ipairs(list) do objects[#objects + 1] = d.object end
  end
  local left_out = M.take(w, objects, "the snapshot")
  for kind, n in pairs(dropped) do
    if n > 0 then left_out[kind] = (left_out[kind] or 0) + n end
  end
  return left_out
end

-- ---------------------------------------------------------------- the policy's configuration

--- The colocation settings of the ConfigMap, with `changes` applied. If the cluster has no ConfigMap, one is
--- made, with colocation enabled.
---@param w kubelua.SimWorld
---@param changes table<string, any>
function M.configure(w, changes)
  if w.sim.still or next(changes) == nil and w.from_snapshot then return end
  local ok, found = pcall(w.sim.call, w.sim,
    { verb = "get", kind = "v1/ConfigMap", ns = CONFIG_NAMESPACE, name = CONFIG })
  local data = ok and found.data and core.copy(found.data) or {}
  local strategy = data[COLOCATION] and core.copy(core.decode(data[COLOCATION])) or { enable = true }
  for name, value in pairs(changes) do strategy[name] = value end
  data[COLOCATION] = core.encode(core.value(strategy, "the colocation strategy"))
  if not ok then w:put { apiVersion = "v1", kind = "Namespace", metadata = { name = CONFIG_NAMESPACE } } end
  w:put { apiVersion = "v1", kind = "ConfigMap",
    metadata = { name = CONFIG, namespace = CONFIG_NAMESPACE }, data = data }
end

return M
