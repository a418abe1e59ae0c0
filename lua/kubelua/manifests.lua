-- manifests.lua - files of objects, applied and deleted: YAML of many documents, JSON, lists, directories,
-- "-" for standard input.
--
-- Everything is read and looked at before the first request. Definitions and namespaces go first, and a
-- kind that was defined here is waited for before an object of it is sent. Errors name the file and the
-- document.

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"
local wait = require "kubelua.wait"

local M = {}

local CRD = "CustomResourceDefinition"
-- Kinds that other objects live in, or are defined by.
local FIRST = { Namespace = 1, [CRD] = 2 }
local SERVED_WITHIN = 60      -- seconds from a definition to its kind in discovery

-- ---------------------------------------------------------------- reading

local function fail(where, fmt, ...)
  error(core.error { kind = "invalid", message = where .. ": " .. fmt:format(...) }, 0)
end

local function open(path)
  if not io then
    core.blame "only standalone programs can read files; a controller script has its modules and its params"
  end
  if path == "-" then return io.stdin end
  local file, problem = io.open(path, "rb")
  if not file then error(core.error { kind = "io", message = "cannot read " .. problem }, 0) end
  return file
end

--- The documents of a file, which is read whole, and its name for messages.
local function documents(path)
  local name, file = path == "-" and "standard input" or path, open(path)
  local ok, result = pcall(core.yaml, file, name)
  if path ~= "-" then file:close() end
  if ok then return result, name end
  if core.is_error(result) then error(result, 0) end
  fail(name, "%s", result)
end

M.documents = documents

local function add(out, document, where)
  if not core.is_view(document) then
    fail(where, "expected an object, got %s", core.encode(document))
  end
  local kind, items = document("kind"), document("items")
  if type(kind) ~= "string" or type(document("apiVersion")) ~= "string" then
    fail(where, "the object needs an apiVersion and a kind")
  end
  if kind:find "List$" and core.is_view(items) then
    for i, item in ipairs(items) do add(out, item, ("%s, items[%d]"):format(where, i)) end
    return
  end
  local name = document("metadata.name")
  if name ~= nil and type(name) ~= "string" then
    fail(where, "metadata.name of the %s must be a string, got %s: write it in quotes%s", kind,
      core.encode(name),
      type(name) == "boolean" and ", since YAML takes yes, no, on, off, y and n for booleans" or "")
  end
  if type(name) ~= "string" and type(document("metadata.generateName")) ~= "string" then
    fail(where, "the %s has no metadata.name", kind)
  end
  out[#out + 1] = { object = document, where = where, kind = object.kind_of(document),
    order = FIRST[kind] or 3 }
end

local function files_of(path)
  if path == "-" then return { "-" } end
  local files, why = core.files(path)
  if not files then
    error(core.error { kind = "io", message = ("cannot read %s: %s"):format(path, why) }, 0)
  end
  if #files == 0 then fail(path, "this directory has no .yaml, .yml or .json file") end
  return files
end

--- The objects of files, of directories' .yaml, .yml and .json files, or of standard input ("-"), in the
--- order in which they can be applied; each with where it stood. `reads`: the documents of one file,
--- the file's name for messages, and a word for what they are ("document").
---@param paths string|string[]
---@param reads (fun(path: string): kubelua.view[], string, string?)?
---@return {object: kubelua.view, where: string, kind: string}[]
function M.read(paths, reads)
  local out = {}
  if type(paths) == "string" then paths = { paths } end
  for _, path in ipairs(paths) do
    for _, file in ipairs(files_of(path)) do
      local docs, name, word = (reads or documents)(file)
      for i, document in ipairs(docs) do
        local where = #docs > 1 and ("%s, %s %d"):format(name, word or "document", i) or name
        if document ~= nil and document ~= core.null then add(out, document, where) end
      end
    end
  end
  if #out == 0 then fail(table.concat(paths, ", "), "it contains no objects") end
  for i, m in ipairs(out) do m.order = m.order * 1e9 + i end
  table.sort(out, function(a, b) return a.order < b.order end)
  return out
end

-- ---------------------------------------------------------------- applying

-- A structured error stays one, and gets its origin.
local function located(where, o, fn, ...)
  local ok, result = pcall(fn, ...)
  if ok then return result end
  if not core.is_error(result) then error(result, 0) end
  local moved = {}
  for key, value in pairs(result) do moved[key] = value end
  moved.message = ("%s (%s %s): %s"):format(where, object.kind_of(o), o("metadata.name"),
    result.message or "failed")
  error(core.error(moved), 0)
end

-- Waits until discovery has the kinds of a definition.
local function served(client, crd, deadline)
  for _, version in ipairs(crd.spec.versions) do
    while version.served do
      local kind = ("%s/%s/%s"):format(crd.spec.group, version.name, crd.spec.names.kind)
      local ok, err = pcall(client.resource, client, kind)
      if ok then break end
      if not core.is_error(err) or core.monotonic() >= deadline then error(err, 0) end
      clock.sleep(0.1)
      client.core:forget()
    end
  end
end

local function established(client, crd, timeout)
  local deadline = core.monotonic() + timeout
  local refused
  local result = wait.wait_for(client, crd, function(o)
    for _, condition in ipairs(o("status.conditions") or {}) do
      if condition.type == "Established" and condition.status == "True" then return true end
      if condition.type == "NamesAccepted" and condition.status == "False" then
        refused = condition("message") or condition("reason")
        return true
      end
    end
  end, { timeout = timeout })
  if refused then
    error(core.error { kind = "conflict", resource = object.kind_of(crd), key = crd.metadata.name,
      message = "its names are taken: " .. refused }, 0)
  end
  served(client, result, deadline)
  return result
end

-- Those of a file, each with a name: what the server names is new each time, which nobody can apply or
-- delete.
local function named(path)
  local all = M.read(path)
  for _, m in ipairs(all) do
    if not m.object("metadata.name") then
      fail(m.where, "the %s has no metadata.name; an object with generateName can only be created",
        m.object.kind)
    end
  end
  return all
end

local APPLY = { force = "boolean", manager = "string", dry_run = "boolean", validation = "string",
  namespace = "string", timeout = "duration" }

local function with_namespace(client, m, namespace)
  if not namespace or m.object("metadata.namespace") or not client:resource(m.kind).namespaced then
    return m.object
  end
  local o = core.copy(m.object)
  o.metadata.namespace = namespace
  return core.value(o)
end

--- Applies all objects of a file or directory; M.read lists the accepted forms. Returns the server's
--- objects, in the order in which they were sent.
function M.apply_file(client, path, opts)
  if type(path) ~= "string" or path == "" then
    core.blame "c:apply_file: expected the name of a file or directory, or \"-\""
  end
  opts = options.check("c:apply_file", opts, APPLY)
  local write = { force = opts.force, manager = opts.manager, dry_run = opts.dry_run,
    validation = opts.validation }
  local timeout = core.duration(opts.timeout or SERVED_WITHIN)
  local out = {}
  for _, m in ipairs(named(path)) do
    out[#out + 1] = located(m.where, m.object, function()
      local o = client:apply(with_namespace(client, m, opts.namespace), write)
      if m.object.kind == CRD and not opts.dry_run then return established(client, o, timeout) end
      return o
    end)
  end
  return out
end

local DELETE = { propagation = "string", grace = "integer", dry_run = "boolean", namespace = "string",
  wait = "boolean", timeout = "duration" }

--- Deletes all objects of a file or directory, the last first; what is absent is fine. With `wait` until
--- they are gone.
function M.delete_file(client, path, opts)
  if type(path) ~= "string" or path == "" then
    core.blame "c:delete_file: expected the name of a file or directory, or \"-\""
  end
  opts = options.check("c:delete_file", opts, DELETE)
  local list = named(path)
  local how = { propagation = opts.propagation, grace = opts.grace, dry_run = opts.dry_run }
  for i = #list, 1, -1 do
    local m = list[i]
    located(m.where, m.object, function()
      local known, err = pcall(client.resource, client, m.kind)
      if not known then
        if core.is_error(err) and err.kind == "not_found" then return end      -- its definition went already
        error(err, 0)
      end
      local o = with_namespace(client, m, opts.namespace)
      local metadata = o.metadata
      client:delete(m.kind, metadata("namespace") or metadata.name,
        metadata("namespace") and metadata.name or how, metadata("namespace") and how or nil)
    end)
  end
  if not opts.wait or opts.dry_run then return end
  for i = #list, 1, -1 do
    local m = list[i]
    located(m.where, m.object, function()
      if pcall(client.resource, client, m.kind) then
        wait.wait_for(client, with_namespace(client, m, opts.namespace), "deleted",
          { timeout = opts.timeout })
      end
    end)
  end
end

--- Makes sure that definitions are there, and served: of a file or directory, an object, or a list of
--- objects.
function M.ensure_crd(client, what, opts)
  opts = options.check("c:ensure_crd", opts, { timeout = "duration", force = "boolean", manager = "string" })
  local timeout = core.duration(opts.timeout or SERVED_WITHIN)
  local list = {}
  if type(what) == "string" then
    list = M.read(what)
  else
    local many = type(what) == "table" and what.kind == nil and what or { what }
    for i, o in ipairs(many) do
      o = core.value(object.normalize(o, "c:ensure_crd"), "the definition")
      list[i] = { object = o, where = ("definition %d"):format(i) }
    end
    if #list == 0 then
      core.blame "c:ensure_crd: expected a path, a CustomResourceDefinition, or a list of them"
    end
  end
  for _, m in ipairs(list) do
    if m.object.kind ~= CRD then
      core.blame(("c:ensure_crd: %s is a %s, not a CustomResourceDefinition; c:apply_file takes any \z
        kind"):format(m.where, tostring(m.object.kind)))
    end
  end
  local out = {}
  local write = { force = opts.force ~= false, manager = opts.manager }
  for i, m in ipairs(list) do out[i] = located(m.where, m.object, client.apply, client, m.object, write) end
  for i, m in ipairs(list) do out[i] = located(m.where, m.object, established, client, out[i], timeout) end
  return out
end

return M
