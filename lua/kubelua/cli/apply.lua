-- apply.lua - kubelua apply: server-side apply of files, one line for each object with the result.

local clock = require "kubelua.clock"
local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local diff = require "kubelua.cli.diff"
local object = require "kubelua.object"
local report = require "kubelua.cli.report"

local M = {}

M.options = {
  { "--filename", "FILE|DIR|-", "the objects: a file, a directory, or - for standard input (may be repeated)",
    type = "list", brief = "-f" },
  { "--force", nil, "take fields that other managers own", type = "flag" },
  { "--field-manager", "NAME", "field manager (kubelua)" },
  { "--dry-run", "server", "let the server process the request without storing it", type = "maybe",
    values = "server none" },
  { "--validate", "HOW", "unknown fields: strict (refuse), warn or ignore (strict)",
    values = "strict warn ignore" },
  { "--diff", nil, "say what changed, too", type = "flag" },
  common.OUTPUT,
}

local VALIDATE = { strict = "Strict", warn = "Warn", ignore = "Ignore" }

-- A kind whose definition was just applied takes a moment to be served.
local SERVED_WITHIN = 30    -- seconds

local function not_served(err) return core.is_error(err) and (err.kind == "not_found" or err.code == 404) end

local function patiently(c, fn)
  local deadline = os.time() + SERVED_WITHIN
  while true do
    local ok, result = pcall(fn)
    if ok then return result end
    if not not_served(result) or os.time() >= deadline then error(result, 0) end
    clock.sleep(0.2)
    c.core:forget()
  end
end

local function became(before, after, dry)
  if not before then return "created" end
  local same
  if dry then
    same = #diff.diff(before, after) == 0
  else
    same = before.metadata.resourceVersion == after.metadata.resourceVersion
  end
  return same and "unchanged" or "configured"
end

local function whole(value) return value == nil and "none" or core.encode(value) end

-- What --load put on an embedded server came out of files, too: their next version takes the fields over.
local LOADED = "kubelua-load"

local function only_loaded(err)
  if not core.is_error(err) or not err.conflicts then return false end
  for _, conflict in ipairs(err.conflicts) do
    if conflict.manager ~= LOADED then return false end
  end
  return #err.conflicts > 0
end

local function put(c, o, write)
  local ok, result = pcall(c.apply, c, o, write)
  if not ok and only_loaded(result) then
    write.force = true
    ok, result = pcall(c.apply, c, o, write)
  end
  if not ok then error(result, 0) end
  return result
end

local function one(c, env, manifest, how)
  local thing = common.identify(c, env, manifest)
  local o = core.copy(manifest.object)
  o.metadata = o.metadata or {}
  o.metadata.namespace = thing.namespace
  o = core.value(o, "the object")      -- the server validates the fields
  local write = { dry_run = how.dry or nil, validation = how.validation, manager = how.manager }
  local before, after
  if thing.name then
    before = common.get(c, thing.kind, thing.namespace, thing.name)
    write.force = how.force
    after = put(c, o, write)
  elseif o("metadata.generateName") then
    after = c:create(o, write)
  else
    error("the object has no metadata.name", 0)
  end
  thing.name = after.metadata.name
  local word = became(before, after, how.dry)
  local row = how.report:tell(thing, word, "%s %s%s", common.called(thing.resource, thing.name), word,
    how.dry and " (dry run)" or "")
  if before and env.options.diff then
    row.changes = core.array {}
    for i, d in ipairs(diff.shown(before, after)) do
      row.changes[i] = d
      how.report:say("  %s", diff.line(d, whole))
    end
  end
end

function M.run(env)
  local o = env.options
  if #env.words > 0 then common.usage("takes no arguments, got %s: name files with -f", env.words[1]) end
  local how = {
    dry = common.dry_run(env, "server") ~= nil, validation = VALIDATE[o.validate or "strict"],
    manager = o.field_manager, force = o.force, report = report.new(env),
  }
  local manifests = common.manifests(env)
  local c <close> = common.connect(env)
  local defined = {}
  for _, manifest in ipairs(manifests) do
    local kind = manifest.object.kind
    local function try() return one(c, env, manifest, how) end
    local ok, result
    if defined[kind] then
      ok, result = pcall(patiently, c, try)
    else
      ok, result = pcall(try)
    end
    if ok then
      if kind == "CustomResourceDefinition" and not how.dry then
        defined[manifest.object("spec.names.kind") or ""] = true
      end
    else
      local hint = core.is_error(result) and result.kind == "conflict" and not how.force
        and "; --force takes those fields over" or ""
      local given = manifest.object
      how.report:fail({ kind = object.kind_of(given), namespace = given("metadata.namespace"),
        name = given("metadata.name") }, "%s: %s%s", manifest.where, common.message(result), hint)
    end
  end
  return how.report:finish { dryRun = how.dry }
end

return M
