-- trace_simkube.lua - a trace of SimKube (https://simkube.dev): a file of MessagePack with the objects that
-- own pods, as they were created, changed and deleted, and how long their pods ran. Version 2 of the format:
--
--   { version, config = { trackedObjects = { [kind] = { podSpecTemplatePaths } } },
--     events = { { ts, applied_objs, deleted_objs } ... }, index,
--     pod_lifecycles = { { kind, namespace/name } = { hash = { { Finished = { from, to } } or { Running =
--       from } or "Empty" ... } } } }
--
-- Times are unix seconds, a kind is written "apps/v1.Deployment" or "v1.Pod". Nodes are not in it.

local core = require "kubelua.core"
local csv = require "kubelua.sim.csv"
local dice = require "kubelua.sim.dice"
local files = require "kubelua.sim.trace_files"
local msgpack = require "kubelua.sim.msgpack"
local world = require "kubelua.sim.world"

local M = {}

--- The version of the format that is read and written.
M.VERSION = 2

M.ASSUMED = {
  "of SimKube's trace: it has no nodes, so they are those that --generate describes",
  "of SimKube's trace: pods of Jobs and CronJobs, and those of QoS BE, are batch jobs that run their \z
    lifetime at full speed; all others are prod pods whose usage follows the settings",
  "of SimKube's trace: without lifetimes a Deployment, ReplicaSet or StatefulSet has its replicas, a Job \z
    its parallelism, a Pod itself; others are left out. Of several templates the first counts",
}

-- The path of the pod template in known kinds; for others the trace's config has it.
local TEMPLATES = { ["v1.Pod"] = "", ["apps/v1.Deployment"] = "/spec/template",
  ["apps/v1.ReplicaSet"] = "/spec/template", ["apps/v1.StatefulSet"] = "/spec/template",
  ["apps/v1.DaemonSet"] = "/spec/template", ["batch/v1.Job"] = "/spec/template",
  ["batch/v1.CronJob"] = "/spec/jobTemplate/spec/template" }
local JOBS = { ["batch/v1.Job"] = true, ["batch/v1.CronJob"] = true }
-- The number of pods of an object without known lifetimes.
local NUMBER = { ["v1.Pod"] = "none", ["apps/v1.Deployment"] = "replicas",
  ["apps/v1.ReplicaSet"] = "replicas", ["apps/v1.StatefulSet"] = "replicas",
  ["batch/v1.Job"] = "parallelism" }
-- The most pods of one object.
local PODS_MAX = 1000000

-- ---------------------------------------------------------------- the file

local function fail(t, ...) error(("%s: %s"):format(t.path, string.format(...)), 0) end

local WORDS = { table = "a list or an object", number = "a number", string = "a string" }

local function expect(t, v, kind, what)
  if type(v) ~= kind then fail(t, "%s: expected %s, got %s", what, WORDS[kind], type(v)) end
  return v
end

local function read_object(t, o, at, there)
  expect(t, o, "table", at)
  local m = expect(t, o.metadata, "table", at .. ": metadata")
  local kind = ("%s.%s"):format(expect(t, o.apiVersion, "string", at .. ": apiVersion"),
    expect(t, o.kind, "string", at .. ": kind"))
  local name = expect(t, m.name, "string", at .. ": metadata.name")
  local namespace = m.namespace and expect(t, m.namespace, "string", at .. ": metadata.namespace")
  local key = ("%s %s"):format(kind, namespace and namespace .. "/" .. name or name)
  local of = t.objects[key]
  if not of then
    of = { kind = kind, name = name, namespace = namespace or "default", key = key,
      versions = {}, where = at }
    t.objects[key], t.order[#t.order + 1] = of, of
  end
  of.versions[#of.versions + 1] = { t.now, there and o or false }
end

local function read_lifetimes(t, list)
  expect(t, list, "table", "pod_lifecycles")
  for i, owner in ipairs(list) do
    local at = ("pod_lifecycles %d"):format(i)
    local who = expect(t, owner[1], "table", at .. ": the owner")
    local key = ("%s %s"):format(expect(t, who[1], "string", at .. ": the kind of the owner"),
      expect(t, who[2], "string", at .. ": the name of the owner"))
    local out = {}
    for _, of in ipairs(expect(t, owner[2], "table", at)) do
      for _, life in ipairs(expect(t, of[2], "table", at)) do
        local both = type(life) == "table" and life.Finished
        local from = type(life) == "table" and (life.Running or type(both) == "table" and both[1])
        if life ~= "Empty" then
          out[#out + 1] = { expect(t, from, "number", at .. ": a start"),
            both and expect(t, both[2], "number", at .. ": an end") or math.huge }
        end
      end
    end
    files.sort(out)
    t.lifetimes[key] = out
    for _, life in ipairs(out) do
      if life[2] < math.huge then t.ended = math.max(t.ended, life[2]) end
    end
  end
end

--- Reads a file: { began, ended, ... }, times in unix seconds; raises.
---@param path string
function M.open(path)
  local text = files.content(path)
  if not text then error(("--trace: %s is not a file; simkube:FILE names a trace"):format(path), 0) end
  local t = { path = path, objects = {}, order = {}, lifetimes = {}, config = {} }
  local ok, v = pcall(msgpack.decode, text)
  if not ok then fail(t, "not a trace of SimKube (MessagePack): %s", v) end
  if type(v) ~= "table" or v.version ~= M.VERSION then
    fail(t, "not a trace of SimKube: expected version %d, got %s", M.VERSION,
      tostring(type(v) == "table" and v.version or nil))
  end
  for i, e in ipairs(expect(t, v.events, "table", "events")) do
    local at = ("event %d"):format(i)
    t.now = expect(t, expect(t, e, "table", at).ts, "number", at .. ": ts")
    if t.ended and t.now < t.ended then fail(t, "%s: its ts is before that of the previous event", at) end
    t.began, t.ended = t.began or t.now, t.now
    for k, o in ipairs(expect(t, e.applied_objs, "table", at .. ": applied_objs")) do
      read_object(t, o, ("%s, applied object %d"):format(at, k), true)
    end
    for k, o in ipairs(expect(t, e.deleted_objs, "table", at .. ": deleted_objs")) do
      read_object(t, o, ("%s, deleted object %d"):format(at, k), false)
    end
  end
  if not t.began then fail(t, "the trace has no events") end
  read_lifetimes(t, v.pod_lifecycles)
  local tracked = type(v.config) == "table" and v.config.trackedObjects
  for kind, of in pairs(type(tracked) == "table" and tracked or {}) do
    local paths = type(of) == "table" and of.podSpecTemplatePaths
    t.config[kind] = type(paths) == "table" and paths[1] or nil
  end
  return t
end

-- ---------------------------------------------------------------- its pods

-- The value at a JSON pointer; "*" is the first item of a list.
local function at_pointer(v, pointer)
  for part in pointer:gmatch "/([^/]*)" do
    local key = part:gsub("~1", "/"):gsub("~0", "~")
    if type(v) ~= "table" then return nil end
    local index = key == "*" and 1 or math.tointeger(tonumber(key)) and math.tointeger(tonumber(key)) + 1
    v = index and v[index] or v[key]
  end
  return v
end

-- { class, cpu, memory } of the pods of an object in one of its versions; nil if it has no template.
local function shape(t, of, object)
  local pointer = TEMPLATES[of.kind] or t.config[of.kind]
  local template = type(pointer) == "string" and at_pointer(object, pointer)
  if type(template) ~= "table" then return nil end
  local ok, class, cpu, memory = pcall(function()
    return world.asked_by(core.value({ metadata = template.metadata, spec = template.spec }, "a template"))
  end)
  if not ok then fail(t, "%s: %s", of.where, core.is_error(class) and class.message or tostring(class)) end
  return { JOBS[of.kind] and "batch" or class, cpu, memory }
end

-- The shape of an object's pods at a moment, by its version then, or by its first one.
local function shape_at(t, of, moment)
  local found
  for _, version in ipairs(of.versions) do
    if version[2] and (not found or version[1] <= moment) then found = version end
  end
  if not found then return nil end
  found[3] = found[3] or shape(t, of, found[2]) or false
  return found[3] or nil
end

-- { { from, to } ... } from the numbers of replicas over time: surplus pods end, the youngest first.
local function by_number(t, of)
  local field, all, running = NUMBER[of.kind], {}, {}
  for _, version in ipairs(of.versions) do
    local wanted = version[2] and 1 or 0
    if version[2] and field ~= "none" then
      wanted = type(version[2].spec) == "table" and version[2].spec[field] or 1
      if math.type(wanted) ~= "integer" or wanted < 0 or wanted > PODS_MAX then
        fail(t, "%s: spec.%s: expected a number from 0 to %d", of.where, field, PODS_MAX)
      end
    end
    while #running > wanted do table.remove(running)[2] = version[1] end
    while #running < wanted do
      running[#running + 1] = { version[1], math.huge }
      all[#all + 1] = running[#running]
    end
  end
  return all
end

--- Nodes as settings describe them.
function M.nodes(_, settings)
  local out = {}
  for i = 1, settings.nodes do
    out[i] = { id = i, name = ("node-%03d"):format(i), cpu = settings.cpu, memory = settings.memory }
  end
  return out
end

--- The pods that exist at some moment of the span, in the same share as nodes.
function M.pods(t, _, _, share, from, to)
  local out, start, stop = {}, t.began + from, t.began + to
  for _, of in ipairs(t.order) do
    local lives = t.lifetimes[of.key] or NUMBER[of.kind] and by_number(t, of) or {}
    for k, life in ipairs(lives) do
      local name = of.kind == "v1.Pod" and k == 1 and of.name or ("%s-%d"):format(of.name, k)
      local s = life[1] < stop and life[2] > start and life[2] > life[1] and shape_at(t, of, life[1])
      if s and (share == 1 or dice.unit(0, dice.of(of.namespace .. "/" .. name), 7) < share) then
        out[#out + 1] = { name = csv.name(name), namespace = csv.name(of.namespace), class = s[1],
          app = csv.name(of.name), cpu = s[2], memory = s[3], created = math.max(0, life[1] - start),
          ends = life[2] - start }
      end
    end
  end
  return out
end

return M
