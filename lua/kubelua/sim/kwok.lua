-- kwok.lua - a cluster from the output of `kwokctl snapshot record`: YAML documents, first the initial
-- objects, then a ResourcePatch for each change, with the time since the first change.
--
-- A change of an existing object is a strategic merge patch.

local core = require "kubelua.core"

local M = {}

local API = "action.kwok.x-k8s.io/"
-- A recording of KWOK does not say when it began: it gets the same Thursday as generated clusters.
local BEGAN = core.time("2026-01-01T00:00:00Z"):unix()
-- The kinds whose changes are of interest, as a ResourcePatch names them.
local KINDS = { ["/pods"] = "v1/Pod", ["/nodes"] = "v1/Node",
  ["slo.koordinator.sh/nodemetrics"] = "slo.koordinator.sh/v1alpha1/NodeMetric" }

M.ASSUMED = {
  "of the recording of KWOK: it began at 2026-01-01T00:00:00Z",
  "of the recording of KWOK: nodes, pods and NodeMetrics come and go as recorded; other changes of objects \z
    are left out",
}

--- Whether a text is such a recording.
function M.is_one(text) return text:find(API, 1, true) ~= nil end

-- ---------------------------------------------------------------- documents

local function fail(r, why) error(("%s, document %d: %s"):format(r.path, r.document, why), 0) end

local function text_at(r, v, path, what)
  local text = v(path)
  if type(text) ~= "string" or text == "" then fail(r, ("%s: expected %s"):format(path, what)) end
  return text
end

local function key_of(name, namespace) return namespace and namespace .. "/" .. name or name end

-- Checks that an object has a name; returns its kind and its key.
local function checked(r, o)
  local group, kind = text_at(r, o, "apiVersion", "a version"), text_at(r, o, "kind", "a kind")
  local namespace = o "metadata.namespace"
  if namespace ~= nil and type(namespace) ~= "string" then
    fail(r, "metadata.namespace: expected a string")
  end
  return group .. "/" .. kind, key_of(text_at(r, o, "metadata.name", "a name"), namespace)
end

-- Records that the object changed to this one (nil: was deleted). r.now[kind .. " " .. key]: its form now.
local function tell(r, at, kind, key, object)
  r.now[kind .. " " .. key] = object
  local gone = not object and key or nil
  r.events[#r.events + 1] = { at = BEGAN + at, kind = kind, object = object, gone = gone }
end

local method = {}

function method.create(r, at, kind, key, template)
  local its_kind, its_key = checked(r, template)
  if its_kind ~= kind or its_key ~= key then
    fail(r, ("target: expected %s %s, which the template is"):format(its_kind, its_key))
  end
  tell(r, at, kind, key, template)
end

function method.patch(r, at, kind, key, template)
  local have = r.now[kind .. " " .. key]
  if not have then fail(r, ("there is no %s %s to patch"):format(kind, key)) end
  local ok, object = pcall(core.patched, have, template)
  if not ok then fail(r, "template: " .. tostring(object)) end
  local its_kind, its_key = checked(r, object)
  if its_kind ~= kind or its_key ~= key then fail(r, "template: a patch keeps kind and name") end
  tell(r, at, kind, key, object)
end

function method.delete(r, at, kind, key)
  if r.now[kind .. " " .. key] then tell(r, at, kind, key, nil) end
end

-- A ResourcePatch as { at, kind, key, method, template, document }; nil if its kind is left out.
local function read_change(r, v)
  local how, at = text_at(r, v, "method", "create, patch or delete"), v "durationNanosecond"
  if not method[how] then fail(r, ("method: expected create, patch or delete, got %q"):format(how)) end
  if math.type(at) ~= "integer" or at < 0 then
    fail(r, "durationNanosecond: expected nanoseconds since the first change")
  end
  local group, namespace = v "resource.group", v "target.namespace"
  if namespace ~= nil and type(namespace) ~= "string" then fail(r, "target.namespace: expected a string") end
  local kind = KINDS[("%s/%s"):format(group or "", text_at(r, v, "resource.resource", "a plural name"))]
  local template = v "template"
  if how ~= "delete" and not core.is_view(template) then fail(r, "template: expected an object") end
  r.ended = math.max(r.ended, at / 1e9)
  local key = key_of(text_at(r, v, "target.name", "a name"), namespace)
  return kind and { at = at / 1e9, kind = kind, key = key, method = how, template = template,
    document = r.document }
end

--- Reads such a recording as kubelua.sim.recording reads those of `kubelua run`; raises with the document.
---@param path string
---@param text string  what the file has
function M.read(path, text)
  local r, changes = { path = path, now = {}, events = {}, ended = 0, document = 0 }, {}
  local ok, documents = pcall(core.yaml, text, path)
  if not ok then error(core.is_error(documents) and documents.message or tostring(documents), 0) end
  for i, v in ipairs(documents) do
    r.document = i
    if v ~= nil and v ~= core.null then
      if not core.is_view(v) then fail(r, "expected an object") end
      local version = v "apiVersion"
      if type(version) == "string" and version:sub(1, #API) == API and v "kind" == "ResourcePatch" then
        changes[#changes + 1] = read_change(r, v)
      else
        local kind, key = checked(r, v)
        tell(r, 0, kind, key, v)
      end
    end
  end
  table.sort(changes, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.document < b.document
  end)
  for _, c in ipairs(changes) do
    r.document = c.document
    method[c.method](r, c.at, c.kind, c.key, c.template)
  end
  return { began = BEGAN, ended = BEGAN + r.ended, events = r.events, assumed = M.ASSUMED }
end

return M
