-- recording.lua - a cluster out of a recording (`kubelua run --record FILE`; of KWOK: kwok.lua): as it was at
-- some moment, and from then on what happened to it, at its time: nodes and pods that came and went, and what
-- nodes reported. What the recorded controllers decided is left out, since those under test decide anew.
--
-- A recording is lines of JSON; core/lab/record.h says what each of them means.

local cluster = require "kubelua.sim.cluster"
local core = require "kubelua.core"
local kwok = require "kubelua.sim.kwok"
local world = require "kubelua.sim.world"

local M = {}

local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local NODE, POD = "v1/Node", "v1/Pod"
-- The most files of a recording beside FILE; the oldest is last.
local OLDER_MAX = 16

--- What is assumed of a recording.
M.ASSUMED = {
  "of the recording: nodes and pods come and go as recorded, with the recorded usage; other changes of \z
    objects, such as those of the recorded controllers, are left out",
  "of the recording: objects have the fields that the recorded controllers kept",
}

-- ---------------------------------------------------------------- files

-- If the recording is still being written, its last line may be incomplete.
local function decoded(line)
  local ok, v = pcall(core.decode, line)
  return ok and v or nil
end

local function wrong(r, why) error(("%s:%d: %s"):format(r.path, r.line, why), 0) end

-- Checks what the following code relies on; the rest of an object is checked by the code for its kind.
local function check_object(r, cache, object)
  local m = core.is_view(object) and object("metadata")
  local ns = core.is_view(m) and m("namespace")
  if not core.is_view(m) or type(m("name")) ~= "string" or (ns ~= nil and type(ns) ~= "string") then
    wrong(r, ("a %s has no name, or a name that is not a string"):format(cache.kind))
  end
end

local take = {}

function take.tape(r, v)
  r.objects, r.caches = {}, {}
  r.began = r.began or v("at") / 1e9
end
function take.cache(r, v)
  if type(v("kind")) ~= "string" then wrong(r, "a cache without a kind") end
  r.caches[v.c] = { kind = v.kind, metadata = v("metadata") }
end
function take.object(r, v) r.objects[v.o] = v.v end
function take.put(r, v)
  local cache, object = r.caches[v.c], v("v") or r.objects[v.o]
  if not cache or cache.metadata or not object then return end
  check_object(r, cache, object)
  r.events[#r.events + 1] = { at = r.now, kind = cache.kind, object = object }
end
function take.gone(r, v)
  local cache = r.caches[v.c]
  if type(v("key")) ~= "string" then wrong(r, "the record \"gone\" has no \"key\"") end
  if cache and not cache.metadata then
    r.events[#r.events + 1] = { at = r.now, kind = cache.kind, gone = v.key }
  end
end

-- Lines without a time have the time of the last line that has one.
local function read_file(path, r)
  local file, why = io.open(path, "rb")
  if not file then error("cannot read " .. why, 0) end
  r.path, r.line = path, 1
  local first = decoded(file:read "l" or "")
  if not core.is_view(first) or first("t") ~= "tape" or math.type(first("at")) ~= "integer" then
    error(("%s is not a recording; kubelua run or dev --record FILE writes recordings, and kwokctl snapshot \z
      record"):format(path), 0)
  end
  take.tape(r, first)
  r.now = math.max(r.now or 0, first.at / 1e9)
  for line in file:lines() do
    r.line = r.line + 1
    local what = line:match '^{"t":"(%l+)"'
    local at = line:match '"at":(%d+)'
    if at and (what == "began" or what == "ended") then r.now = math.max(r.now, tonumber(at) / 1e9) end
    local v = take[what] and decoded(line)
    if core.is_view(v) then take[what](r, v) end
  end
  file:close()
end

local function exists(path)
  local file = io.open(path, "rb")
  return file and file:close()
end

--- The existing older files of FILE, the newest first.
---@return string[]
function M.older(path)
  local out = {}
  while #out < OLDER_MAX and exists(("%s.%d"):format(path, #out + 1)) do
    out[#out + 1] = ("%s.%d"):format(path, #out + 1)
  end
  return out
end

-- The text of a recording of KWOK; nil if it is not one.
local function kwok_text(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local first = file:read "l" or ""
  local text = decoded(first) == nil and first .. "\n" .. (file:read "a" or "")
  file:close()
  return text and kwok.is_one(text) and text or nil
end

--- Reads a whole recording: { began, ended = unix times, events = list of { at, kind, object or gone },
--- assumed = what is assumed of it }; raises.
---@param path string  FILE; FILE.1 and so on, which are older, are read before it
function M.read(path)
  local text = kwok_text(path)
  if text then return kwok.read(path, text) end
  local r, older = { events = {} }, M.older(path)
  for n = #older, 1, -1 do read_file(older[n], r) end
  read_file(path, r)
  return { began = r.began, ended = r.now, events = r.events, assumed = M.ASSUMED }
end

-- ---------------------------------------------------------------- the cluster

local function key_of(o)
  local m = o.metadata
  return m("namespace") and m.namespace .. "/" .. m.name or m.name
end

-- Calls fn(...); an error names the object.
local function named(kind, key, fn, ...)
  local ok, why = pcall(fn, ...)
  if not ok then error(("the recording: %s %s: %s"):format(kind, key, tostring(why)), 0) end
end

--- The objects as they were at a moment, and the position of the first event after it.
local function state_at(events, moment)
  local order, now, next_one = {}, {}, 1
  while events[next_one] and events[next_one].at <= moment do
    local e = events[next_one]
    local key = e.kind .. " " .. (e.gone or key_of(e.object))
    if now[key] == nil then order[#order + 1] = key end
    now[key] = e.object or false
    next_one = next_one + 1
  end
  local out = {}
  for _, key in ipairs(order) do
    if now[key] then out[#out + 1] = now[key] end
  end
  return out, next_one
end

--- Sets up its cluster as it was `from` seconds after the beginning.
---@param w kubelua.SimWorld
---@param r { began: number, events: table[], assumed: string[] }
---@param from number
---@return table<string, integer> left_out
function M.begin(w, r, from)
  local objects, next_one = state_at(r.events, r.began + from)
  w.recording = { events = r.events, next = next_one, start = r.began + from, seen = {}, assumed = r.assumed }
  w.uses = {}
  local left_out = cluster.take(w, objects, "the recording")
  for key in pairs(w.pod_of) do w.recording.seen[key] = true end
  for _, o in ipairs(objects) do
    if o.kind == "NodeMetric" then named(METRIC, key_of(o), M.reported, w, o) end
  end
  return left_out
end

local function milli(list, name) return list and list[name] and core.qty(list[name]):milli() or 0 end

--- Takes over a node's report, about its pods and itself.
function M.reported(w, o)
  local nodes, i = w.nodes, w.node_of[o.metadata.name]
  if not i or not o("status.nodeMetric") then return end
  local uses = w.uses
  for _, pod in ipairs(o("status.podsMetric") or {}) do
    local p = w.pod_of[("%s/%s"):format(pod("namespace") or "default", pod("name"))]
    if p then uses[p] = milli(pod("podUsage.resources"), "cpu") end
  end
  local usage = o("status.nodeMetric.nodeUsage.resources")
  nodes.recorded[i] = true
  nodes.system[i] = milli(o("status.nodeMetric.systemUsage.resources"), "cpu")
  nodes.reported_cpu[i] = milli(usage, "cpu")
  nodes.reported_memory[i] = usage and usage.memory and core.qty(usage.memory):value() or 0
  nodes.since_cpu[i], nodes.since_memory[i] = 0, 0
end

--- The reported use of prod pods that existed for all of `seconds` from a moment on (`from` seconds after the
--- beginning): { node, cpu, curve = { second, milli-cores, ... } } each; and the number of prod pods that did
--- not.
---@param r { began: number, events: table[] }
---@return table[], integer
function M.usage(r, from, seconds)
  local start, curves, of, order, out, others = r.began + from, {}, {}, {}, {}, 0
  local function report(e)
    for _, pod in ipairs(e.object("status.podsMetric") or {}) do
      local key = ("%s/%s"):format(pod("namespace") or "default", pod "name")
      local curve = curves[key] or {}
      curves[key] = curve
      curve[#curve + 1], curve[#curve + 2] = e.at - start, milli(pod "podUsage.resources", "cpu")
    end
  end
  for _, e in ipairs(r.events) do
    if e.at > start + seconds then break end
    local key = e.gone or key_of(e.object)
    if e.kind == METRIC and e.object and e.object "status.nodeMetric" then
      named(METRIC, key, report, e)
    elseif e.kind == POD and e.object then
      local p = of[key] or { first = e.at, key = key }
      if not of[key] then order[#order + 1] = p end
      of[key], p.object = p, e.object
    elseif e.kind == POD and of[key] then
      of[key].gone = e.at
      of[key] = nil
    end
  end
  for _, p in ipairs(order) do
    local class, cpu
    named(POD, p.key, function() class, cpu = world.asked_by(p.object) end)
    local node, curve = p.object "spec.nodeName", curves[p.key]
    if class == "prod" and node and curve and cpu > 0 and p.first <= start and not p.gone then
      out[#out + 1] = { node = node, cpu = cpu, curve = curve }
    elseif class == "prod" then
      others = others + 1
    end
  end
  return out, others
end

local changed = {}

changed[NODE] = function(w, o, gone)
  if gone and w.node_of[gone] then
    w.sim:lose(NODE, nil, gone)
    w:lose_node(gone)
  elseif o and not w.node_of[o.metadata.name] then
    w:take_node(o)
    w:put_copy(o)
  end
end

changed[POD] = function(w, o, gone)
  local phase = o and o("status.phase")
  local ended = gone or phase == "Succeeded" or phase == "Failed" or o("metadata.deletionTimestamp")
  local key = gone or key_of(o)
  if ended then
    w:leave(key)
  elseif not w.pod_of[key] and not w.recording.seen[key] then
    w:put_copy(o)
    w:adopt(o)
  end
  w.recording.seen[key] = not ended
end

changed[METRIC] = function(w, o)
  if not o then return end
  w:put_copy(o)
  M.reported(w, o)
end

--- Applies what happened up to now.
---@param w kubelua.SimWorld
function M.pass(w)
  local r = w.recording
  while r.events[r.next] and r.events[r.next].at <= r.start + w.time do
    local e = r.events[r.next]
    r.next = r.next + 1
    if changed[e.kind] then
      named(e.kind, e.gone or key_of(e.object), changed[e.kind], w, e.object, e.gone)
    end
  end
end

return M
