--- conversion.lua - the versions of a kind as functions between them, for the conversion webhook of its
--- definition (kube.crd): one version is the hub, every other one says how an object becomes the hub's, and
--- how the hub's becomes its own.

local core = require "kubelua.core"
local edit = require "kubelua.edit"
local saying = require "kubelua.saying"
local suggest = require "kubelua.suggest"

local run = core.run

local M = {}

---@class kubelua.CrdConversion    one version of kube.crd's conversion
---@field to fun(o: kubelua.draft): table?     an object of this version becomes the hub's; edits or a new one
---@field from fun(o: kubelua.draft): table?   an object of the hub's becomes this version's

local KEYS = { to = true, from = true }

-- The API server waits at most half a minute.
local TIMEOUT = 30

local function check_spoke(fail, name, spoke, versions)
  if not versions[name] then
    fail("conversion: there is no version %s%s", tostring(name), suggest.hint(name, versions))
  end
  if type(spoke) ~= "table" then
    fail("conversion.%s is { to = function(o) ... end, from = function(o) ... end }, got %s", name,
      type(spoke))
  end
  for key in pairs(spoke) do
    if not KEYS[key] then
      fail("conversion.%s: unknown key '%s'%s", name, tostring(key), suggest.hint(key, KEYS))
    end
  end
  for _, key in ipairs { "to", "from" } do
    if type(spoke[key]) ~= "function" then
      fail("conversion.%s.%s must be a function, got %s", name, key, type(spoke[key]))
    end
  end
end

--- Checks what kube.crd was given and returns what the runtime serves: a webhook under the definition's name.
---@param fail fun(fmt: string, ...)
---@param name string             of the definition
---@param conversion table
---@param names string[]          of its versions
---@param stored string           the one that is the hub unless said
function M.declare(fail, name, conversion, names, stored)
  local spokes, versions = core.plain(conversion, "kube.crd: conversion"), {}
  for _, version in ipairs(names) do versions[version] = true end
  local hub = spokes.hub == nil and stored or spokes.hub
  spokes.hub = nil
  if type(hub) ~= "string" or not versions[hub] then
    fail("conversion.hub is one of its versions (%s), got %s", table.concat(names, ", "), tostring(hub))
  end
  for version, spoke in pairs(spokes) do
    check_spoke(fail, version, spoke, versions)
    if version == hub then
      fail("conversion.%s is the hub version and is not converted; set hub = to choose another one", version)
    end
  end
  for _, version in ipairs(names) do
    if version ~= hub and not spokes[version] then
      fail("conversion.%s is missing: { to = function(o) ... end, from = function(o) ... end }", version)
    end
  end
  return { what = "conversion", name = name, webhook = true, converts = true, hub = hub, spokes = spokes,
    versions = names, functions = {}, watches = {}, indexes = {}, owns = {}, kinds = {}, scope = "*",
    operations = core.value(core.array {}, "operations"), entry = core.value(core.object {}, "entry"),
    timeout = TIMEOUT }
end

-- One step: the function edits a draft, which has the new version already, or returns another object.
local function step(fn, o, version)
  local draft = core.draft(o)
  draft.apiVersion = version
  local other = edit.run(fn, draft)
  if other == nil then return core.value(draft, "the converted object") end
  if type(other) ~= "table" and not core.is_view(other) then
    error(("a conversion edits the object or returns one, this one returned a %s"):format(type(other)), 0)
  end
  local t = core.copy(other)
  t.apiVersion = version
  return core.value(t, "the converted object")
end

--- An object as another version of its kind has it.
---@param c table                 of M.declare
---@param o kubelua.view
---@param version string          "v1beta1"
---@return kubelua.view
function M.convert(c, o, version)
  local group, from = tostring(o.apiVersion):match "^(.*)/([^/]+)$"
  c.at = ("%s from %s to %s"):format(o("metadata.name") or "an object", from or tostring(o.apiVersion),
    version)
  if from == version then return o end
  local to, back = c.spokes[from], c.spokes[version]
  if not to and from ~= c.hub or not back and version ~= c.hub then
    error(("its versions are %s"):format(table.concat(c.versions, ", ")), 0)
  end
  if to then o = step(to.to, o, ("%s/%s"):format(group, c.hub)) end
  if back then o = step(back.from, o, ("%s/%s"):format(group, version)) end
  return o
end

--- Handles one ConversionReview: tells the runtime the result for each of its objects.
function M.review(c, request)
  local version, out = request.desiredAPIVersion:match "[^/]+$", {}
  for i, o in ipairs(request.objects) do out[i] = M.convert(c, o, version) end
  run.answer(core.value({ converted = core.array(out) }, "the conversion"))
end

--- Answers with the text of an error, and returns it for the log.
---@return string
function M.raised(c, e)
  local text = ("%s: %s"):format(c.at or "it", saying.shown(e))
  run.answer(core.value({ failed = text }, "the conversion"))
  return text
end

--- Adds the lines of `kubelua check`.
function M.describe(c, line)
  line("hub", c.hub)
  for _, version in ipairs(c.versions) do
    if version ~= c.hub then line("converts", version) end
  end
end

return M
