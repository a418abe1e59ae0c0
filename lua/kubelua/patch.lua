-- patch.lua - changing an object: a function edits a draft, what it changed becomes a merge patch, and a
-- 409 runs it again on the fresh object. Also patches that were written by hand.
--
--   { send = function(op) -> view, get = function(op) -> view or nil,
--     has = function(kind, subresource) -> boolean,
--     cut_list = nil or function(kind, object, patch) -> path of a list that may not be replaced, or nil }
-- is what this needs of its caller, the client or ctx.

local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"
local request_words = require "kubelua.request"
local suggest = require "kubelua.suggest"

local M = {}

-- A function that meets this many conflicts in a row is losing a race that it should not run.
local ATTEMPTS = 8

local OPTIONS = { type = "string", subresource = "string", lock = "boolean", manager = "string",
  dry_run = "boolean", force = "boolean", always = "boolean",
  validation = "string", timeout = "duration" }
local STATUS = { lock = "boolean", manager = "string", dry_run = "boolean", validation = "string",
  timeout = "duration" }
local TYPES = { merge = true, json = true, strategic = true }

-- The identity of what is patched: from a view, or from a table in either form. Status and the like may be
-- missing from a table.
local function target(what, o)
  local base = core.is_view(o) and o or core.value(object.normalize(o, what), "the object")
  local metadata = base("metadata")
  local name = metadata and metadata("name")
  local kind = object.kind_of(base)
  if not kind or not name then
    core.blame(("%s: expected an object with kind and metadata.name"):format(what))
  end
  return base, { kind = kind, name = name, ns = metadata("namespace") }
end

local function request(at, body, kind, subresource, opts)
  if at.kind == "v1/Secret" and type(body) == "table" then body = object.with_secrets(body) end
  return {
    verb = "patch", kind = at.kind, ns = at.ns, name = at.name, body = core.value(body, "the patch"),
    patch_type = kind,
    subresource = subresource, field_manager = opts.manager, dry_run = opts.dry_run, force = opts.force,
    always = opts.always,
    field_validation = opts.validation, timeout = opts.timeout,
    check = not core.is_view(body),
  }
end

-- Absent fields can be assigned below while the function runs, in a host's state too.
local function edit(change, draft)
  local before = core.nil_swap(true)
  if before == true then
    change(draft)           -- our own state: nothing to give back, and the traceback stays whole
  else
    local ok, err = pcall(change, draft)
    core.nil_swap(before)
    if not ok then error(err, 0) end
  end
  core.draft_close(draft)
end

-- The patch in two: what belongs to /status and the rest, each nil when empty.
local function split(patch)
  local status, rest
  for key, value in pairs(patch) do
    if value == nil then value = core.null end
    if key == "status" then
      status = { status = value }
    else
      rest = rest or core.object {}
      rest[key] = value
    end
  end
  return status, rest
end

-- The version that the server compares; a patch that sets the version itself keeps its own.
local function locked(part, version)
  if not part or not version then return part end
  local metadata = part.metadata and core.copy(part.metadata) or {}
  metadata.resourceVersion = metadata.resourceVersion or version
  part.metadata = metadata
  return part
end

local function only_status(what, rest)
  for key in pairs(rest) do
    core.blame(("%s: the function also changed '%s', but the status subresource takes only status; use \z
      patch"):format(what, key))
  end
end

-- What the draft says, sent: one request, or two when status and the rest changed. Returns the server's
-- object.
local function submit(self, what, base, at, draft, opts)
  local patch, list_changed = core.draft_patch(draft)
  if not patch then return base end
  local list = list_changed and self.cut_list and self.cut_list(at.kind, base, patch)
  if list then
    core.blame(("%s: the function changed the list %s, whose items are cached with only some fields, and \z
      the patch would erase the others; "
      .. "keep %s whole in `fields`, or change the object from ctx.live:get"):format(what, list, list))
  end
  local version = (list_changed or opts.lock) and base("metadata.resourceVersion")
  local status, rest = split(patch)
  local result = base
  if opts.subresource == "status" then
    if rest then only_status(what, rest) end
    return self.send(request(at, locked(status, version), "merge", "status", opts))
  elseif opts.subresource then
    return self.send(request(at, locked(core.copy(patch), version), "merge", opts.subresource, opts))
  end
  if status and not self.has(at.kind, "status") then
    rest = rest or core.object {}
    rest.status, status = status.status, nil
  end
  if rest then
    result = self.send(request(at, locked(rest, version), "merge", nil, opts))
    version = version and result("metadata.resourceVersion")
  end
  if status then result = self.send(request(at, locked(status, version), "merge", "status", opts)) end
  return result
end

local function with_function(self, what, base, at, change, opts)
  for attempt = 1, ATTEMPTS do
    local draft = core.draft(base)
    edit(change, draft)
    local ok, result = pcall(submit, self, what, base, at, draft, opts)
    if ok then return result end
    if not core.is_error(result) or result.code ~= 409 or attempt == ATTEMPTS then error(result, 0) end
    local uid = base("metadata.uid")
    base = self.get { verb = "get", kind = at.kind, ns = at.ns, name = at.name }
    -- the object is gone, or another one has its name
    if not base or uid and base("metadata.uid") ~= uid then error(result, 0) end
  end
end

local function with_table(self, what, base, at, change, opts)
  local kind = opts.type or "merge"
  if not TYPES[kind] then
    core.blame(("%s: type must be merge, json or strategic, got %q%s"):format(what, kind,
      suggest.hint(kind, TYPES)))
  end
  local body = change
  if opts.lock then
    local version = base("metadata.resourceVersion")
    if kind == "json" then
      body = core.copy(core.value(change))
      table.insert(body, 1, { op = "test", path = "/metadata/resourceVersion", value = version })
    else
      body = locked(core.copy(core.value(change)), version)
    end
  end
  return self.send(request(at, body, kind, opts.subresource, opts))
end

--- `change` is a function that edits a draft, or a patch as a table.
function M.patch(self, what, o, change, opts)
  local base, at = target(what, o)
  opts = options.check(what, opts, OPTIONS)
  request_words.validation(what, opts.validation)
  if type(change) == "function" then
    if opts.type and opts.type ~= "merge" then
      core.blame(("%s: a function makes a merge patch; type = %q needs the patch itself"):format(what,
        opts.type))
    end
    return with_function(self, what, base, at, change, opts)
  elseif type(change) == "table" or core.is_view(change) then
    return with_table(self, what, base, at, change, opts)
  end
  core.blame(("%s: expected a function that edits a draft, or a patch, got %s"):format(what, type(change)))
end

--- `change` is a function that edits the status of a draft, or a table of the status fields to set.
function M.patch_status(self, what, o, change, opts)
  opts = options.check(what, opts, STATUS)
  local rest = { subresource = "status" }
  for name, value in pairs(opts) do rest[name] = value end
  if type(change) == "table" or core.is_view(change) then change = { status = change } end
  return M.patch(self, what, o, change, rest)
end

return M
