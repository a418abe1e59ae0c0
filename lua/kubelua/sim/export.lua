-- export.lua - exports a simulation to other tools: the initial objects and their changes for KWOK; the pods
-- that arrived, and their lifetimes, for SimKube. So a finding of a simulation can be confirmed on a real API
-- server.
--
--   kwok      start.yaml      the initial nodes and pods, for kubectl apply
--             recording.yaml  the same with every later change, for kwokctl snapshot replay (and --recording)
--   simkube   nodes.yaml      the nodes, for kubectl apply
--             trace.sktrace   pods that arrived and ended by themselves: evictions are left to SimKube

local core = require "kubelua.core"
local msgpack = require "kubelua.sim.msgpack"
local simkube = require "kubelua.sim.trace_simkube"
local suggest = require "kubelua.suggest"
local world = require "kubelua.sim.world"

local M = {}

local NODE, POD = "v1/Node", "v1/Pod"
local PLURALS = { Node = "nodes", Pod = "pods", NodeMetric = "nodemetrics" }
-- The kinds of the initial objects, owners first.
local KINDS = { "v1/ConfigMap", "apps/v1/ReplicaSet", NODE, world.METRIC, POD }

---@class kubelua.SimExport
---@field w kubelua.SimWorld
---@field first table[]   views of the objects of the beginning
---@field events { [1]: number, [2]: string, [3]: table }[]  when, what and the object
local E = {}
E.__index = E

-- ---------------------------------------------------------------- objects

local function list_of(w, kind)
  if not w.sim:resource(kind) then return {} end
  return w.sim:call({ verb = "list", kind = kind }).items or {}
end

-- A copy for a manifest, without fields that an API server sets. KWOK simulates nodes with this annotation.
local function manifest(view)
  local o = core.copy(view)
  local m = o.metadata
  m.resourceVersion, m.managedFields, m.generation = nil, nil, nil
  if o.kind == "Node" then
    m.annotations = m.annotations or {}
    m.annotations["kwok.x-k8s.io/node"] = "fake"
  end
  return o
end

-- A manifest for another cluster, without owners that are missing there and without traces of the old one.
local function fresh(view)
  local o = manifest(view)
  o.metadata.uid, o.metadata.creationTimestamp, o.metadata.ownerReferences = nil, nil, nil
  return o
end

local function yaml(o) return "---\n" .. core.to_yaml(core.value(o, "an object")):gsub("\n*$", "\n") end

--- Subscribes to a simulation that is about to begin.
---@param w kubelua.SimWorld
function M.new(w)
  local self = setmetatable({ w = w, first = {}, events = {} }, E)
  for _, kind in ipairs(KINDS) do
    for _, view in ipairs(list_of(w, kind)) do self.first[#self.first + 1] = view end
  end
  if w.sim:resource(world.METRIC) then w.sim:follow(world.METRIC) end
  function w.listener(what, view)
    self.events[#self.events + 1] = { w.time, what, view }
  end
  return self
end

-- ---------------------------------------------------------------- KWOK

-- The patch between two objects of a kind, as KWOK applies it; nil when they are equal.
local function patch_of(before, after)
  local make = after.kind == "NodeMetric" and core.merge_patch or core.strategic_patch
  local patch = make(before, after)
  return next(core.copy(patch)) and patch
end

local function change(seconds, how, view, template)
  local group, version = view.apiVersion:match "^(.*)/(.*)$"
  return yaml { apiVersion = "action.kwok.x-k8s.io/v1alpha1", kind = "ResourcePatch",
    resource = { group = group, version = version or view.apiVersion, resource = PLURALS[view.kind] },
    target = { name = view.metadata.name, namespace = view("metadata.namespace") },
    durationNanosecond = (seconds * 1e9 + 0.5) // 1 | 0, method = how, template = template }
end

local function key_of(view)
  return ("%s %s/%s"):format(view.kind, view("metadata.namespace") or "", view.metadata.name)
end

-- The namespaces of all objects, except those that every cluster has.
local function namespaces(self)
  local out, seen = {}, { default = true }
  local function add(view)
    local ns = view("metadata.namespace")
    if ns and not seen[ns] and not ns:find "^kube%-" then
      seen[ns] = true
      out[#out + 1] = ns
    end
  end
  for _, view in ipairs(self.first) do add(view) end
  for _, e in ipairs(self.events) do add(e[3]) end
  table.sort(out)
  for i, ns in ipairs(out) do
    out[i] = yaml { apiVersion = "v1", kind = "Namespace", metadata = { name = ns } }
  end
  return out
end

function E:kwok()
  local start, now = namespaces(self), {}
  local tape = { table.unpack(start) }
  for _, view in ipairs(self.first) do
    if view.kind ~= "ReplicaSet" and view.kind ~= "NodeMetric" then start[#start + 1] = yaml(fresh(view)) end
    now[key_of(view)] = manifest(view)
    tape[#tape + 1] = yaml(now[key_of(view)])
  end
  for _, e in ipairs(self.events) do
    local seconds, what, view = e[1], e[2], e[3]
    local key = key_of(view)
    local had, o = now[key], what ~= "DELETED" and manifest(view) or nil
    if had and not o then
      tape[#tape + 1] = change(seconds, "delete", view)
    elseif o and not had then
      tape[#tape + 1] = change(seconds, "create", view, o)
    elseif o then
      local patch = patch_of(had, o)
      if patch then tape[#tape + 1] = change(seconds, "patch", view, patch) end
    end
    now[key] = o
  end
  return { { "start.yaml", table.concat(start) }, { "recording.yaml", table.concat(tape) } }
end

-- ---------------------------------------------------------------- SimKube

-- When each pod ended by itself, by its original name.
local function lefts(w)
  local out = {}
  for p = 1, w.pods.n do
    local base = w.pods.name[p]:gsub("%-r%d+$", "")
    if w.pods.left[p] then out[w.pods.namespace[p] .. "/" .. base] = w.pods.left[p] end
  end
  return out
end

-- A pod as it was created. SimKube runs pods without owners.
local function created(w, p)
  local o = fresh(w:manifest(p))
  o.metadata.name, o.metadata.namespace = w.pods.name[p], w.pods.namespace[p]
  o.spec.nodeName, o.status = nil, nil
  return o
end

function E:simkube()
  local w, gone, came, index, lives = self.w, lefts(self.w), {}, {}, {}
  local began = w.start // 1 | 0
  local events, at = {}, {}
  local function event(t)
    if not at[t] then
      at[t] = { ts = t, applied_objs = core.array {}, deleted_objs = core.array {} }
      events[#events + 1] = at[t]
    end
    return at[t]
  end
  event(began)
  for p = 1, w.pods.n do
    if w.pods.restarts[p] == 0 and not w.pods.foreign[p] then came[#came + 1] = p end
  end
  for _, p in ipairs(came) do
    local key, from = w.pods.namespace[p] .. "/" .. w.pods.name[p], began + w.pods.created[p] // 1 | 0
    local work, left = w.pods.work[p], gone[key] and began + gone[key] // 1 | 0
    local ends = work and from + math.max(1, work // 1 | 0) or left
    local o = created(w, p)
    table.insert(event(from).applied_objs, o)
    if left and not work then table.insert(event(left).deleted_objs, o) end
    index[key] = 0
    local life = ends and { Finished = { from, ends } } or { Running = from }
    lives[#lives + 1] = { { "v1.Pod", key }, msgpack.map { { 0, { life } } } }
  end
  event(began + w.time // 1 | 0)
  table.sort(events, function(a, b) return a.ts < b.ts end)
  table.sort(lives, function(a, b) return a[1][2] < b[1][2] end)
  local nodes = {}
  for _, view in ipairs(self.first) do
    if view.kind == "Node" then nodes[#nodes + 1] = yaml(fresh(view)) end
  end
  local trace = { version = simkube.VERSION, events = events,
    config = { trackedObjects = { ["v1.Pod"] = { podSpecTemplatePaths = { "" }, trackLifecycle = true } } },
    index = { ["v1.Pod"] = core.object(index) }, pod_lifecycles = msgpack.map(lives) }
  return { { "nodes.yaml", table.concat(nodes) }, { "trace.sktrace", msgpack.encode(trace) } }
end

-- ---------------------------------------------------------------- both

local NEXT = {
  kwok = "kubectl apply -f %s/start.yaml, or kwokctl snapshot replay --path %s/recording.yaml",
  simkube = "kubectl apply -f %s/nodes.yaml, then skctl run NAME --trace-path file://%s/trace.sktrace",
}

--- Reads "kwok:DIR"; raises.
function M.read_option(given)
  local format, dir = given:match "^(%w+):(.+)$"
  if not format then error(("--export: expected kwok:DIR or simkube:DIR, got %q"):format(given), 0) end
  if not NEXT[format] then
    error(("--export: unknown format %q%s"):format(format, suggest.hint(format, NEXT)), 0)
  end
  return format, dir
end

--- The files, { name, content } each, after the simulation has run.
---@param format "kwok"|"simkube"
---@return string[][]
function E:files(format)
  if format == "kwok" then return self:kwok() end
  return self:simkube()
end

--- How to use them: the text for a terminal.
function M.words(format, dir) return NEXT[format]:format(dir, dir) end

return M
