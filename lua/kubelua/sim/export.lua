-- export.lua - a simulation for others to run: what it began with and what happened to its objects, for KWOK;
-- the pods that came, and for how long, for SimKube. What a simulation found can be confirmed with it on a
-- real API server.
--
--   kwok      start.yaml      nodes and pods of the beginning, for kubectl apply
--             recording.yaml  the same with every later change, for kwokctl snapshot replay (and --recording)
--   simkube   nodes.yaml      the nodes, for kubectl apply
--             trace.sktrace   pods as they came and went by themselves: evictions are for SimKube to see

local core = require "kubelua.core"
local msgpack = require "kubelua.sim.msgpack"
local simkube = require "kubelua.sim.trace_simkube"
local suggest = require "kubelua.suggest"
local world = require "kubelua.sim.world"

local M = {}

local NODE, POD = "v1/Node", "v1/Pod"
local PLURALS = { Node = "nodes", Pod = "pods", NodeMetric = "nodemetrics" }
-- The kinds of the beginning, owners before what they own.
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

-- What an API server gives of its own is not in a manifest.
local function manifest(view)
  local o = core.copy(view)
  o.metadata.resourceVersion, o.metadata.managedFields, o.metadata.generation = nil, nil, nil
  return o
end

-- Which a cluster can be given: no owner that is not there, and no marks of the old one.
local function fresh(view)
  local o = manifest(view)
  o.metadata.uid, o.metadata.creationTimestamp, o.metadata.ownerReferences = nil, nil, nil
  return o
end

-- KWOK takes care of nodes that are marked so.
local function fake(o)
  o.metadata.annotations = o.metadata.annotations or {}
  o.metadata.annotations["kwok.x-k8s.io/node"] = "fake"
  return o
end

local function yaml(o) return "---\n" .. core.to_yaml(core.value(o, "an object")):gsub("\n*$", "\n") end

--- Listens to a simulation that is about to begin.
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

-- Lists of objects that a strategic merge patch merges, by the field that tells items apart.
local MERGED = { conditions = "type", addresses = "type", ownerReferences = "uid", containers = "name",
  volumes = "name" }

local function text(v) return core.encode(core.value(v, "a part")) end
local function same(a, b) return text(a) == text(b) end

local diff

local function diff_list(name, before, after)
  local out, old, stays = {}, {}, {}
  local key = name == "finalizers" and "" or MERGED[name]
  local function id(item) return key == "" and item or item[key] end
  for _, item in ipairs(before) do old[id(item)] = item end
  for _, item in ipairs(after) do
    stays[id(item)] = true
    local had = old[id(item)]
    if not had or not same(had, item) then out[#out + 1] = item end
  end
  for _, item in ipairs(before) do
    if not stays[id(item)] and key ~= "" then out[#out + 1] = { [key] = item[key], ["$patch"] = "delete" } end
  end
  return out
end

-- A patch that makes `after` of `before`, nil: nothing. strategic: lists are merged as built-in kinds say.
function diff(before, after, strategic)
  local out = {}
  for name, x in pairs(after) do
    local had = before[name]
    local both = type(x) == "table" and type(had) == "table" and x ~= core.null and had ~= core.null
    if had == nil or not both and x ~= had then
      out[name] = x
    elseif both and not same(had, x) then
      local lists = #had > 0 or #x > 0
      if lists and strategic and (MERGED[name] or name == "finalizers") then
        out[name] = diff_list(name, had, x)
      else
        out[name] = lists and x or diff(had, x, strategic) or {}
      end
    end
  end
  for name, had in pairs(before) do
    if after[name] == nil then
      out[name] = core.null
    elseif name == "finalizers" and strategic then
      local stays, gone = {}, {}
      for _, item in ipairs(after[name]) do stays[item] = true end
      for _, item in ipairs(had) do
        if not stays[item] then gone[#gone + 1] = item end
      end
      if #gone > 0 then out["$deleteFromPrimitiveList/finalizers"] = gone end
    end
  end
  return next(out) ~= nil and out or nil
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

-- The namespaces of all objects, but for those that every cluster has.
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
    local node = view.kind == "Node"
    if view.kind ~= "ReplicaSet" and view.kind ~= "NodeMetric" then
      start[#start + 1] = yaml(node and fake(fresh(view)) or fresh(view))
    end
    tape[#tape + 1] = yaml(node and fake(manifest(view)) or manifest(view))
    now[key_of(view)] = manifest(view)
  end
  for _, e in ipairs(self.events) do
    local seconds, what, view = e[1], e[2], e[3]
    local key = key_of(view)
    local o = manifest(view)
    if what == "DELETED" then
      if now[key] then tape[#tape + 1] = change(seconds, "delete", view) end
      now[key] = nil
    elseif not now[key] then
      tape[#tape + 1] = change(seconds, "create", view, view.kind == "Node" and fake(manifest(view)) or o)
      now[key] = o
    else
      local patch = diff(now[key], o, view.kind ~= "NodeMetric")
      if patch then tape[#tape + 1] = change(seconds, "patch", view, patch) end
      now[key] = o
    end
  end
  return { { "start.yaml", table.concat(start) }, { "recording.yaml", table.concat(tape) } }
end

-- ---------------------------------------------------------------- SimKube

-- When each pod has left by itself, by what it was called when it came.
local function lefts(w)
  local out = {}
  for p = 1, w.pods.n do
    local base = w.pods.name[p]:gsub("%-r%d+$", "")
    if w.pods.left[p] then out[w.pods.namespace[p] .. "/" .. base] = w.pods.left[p] end
  end
  return out
end

-- What a pod is like when it comes. SimKube runs pods without owners.
local function bare(w, p)
  local o = w:manifest(p)
  local m = o.metadata
  m.resourceVersion, m.managedFields, m.generation = nil, nil, nil
  m.uid, m.creationTimestamp, m.ownerReferences, o.status = nil, nil, nil, nil
  m.name, m.namespace, o.spec.nodeName = w.pods.name[p], w.pods.namespace[p], nil
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
    local o = bare(w, p)
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
    if view.kind == "Node" then nodes[#nodes + 1] = yaml(fake(fresh(view))) end
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

--- What to do with them, for people.
function M.words(format, dir) return NEXT[format]:format(dir, dir) end

return M
