-- request.lua - from the words of a call to one request (bindings/api/op.c names the fields), for the client
-- and for ctx alike. Nothing is sent here. `what` is how messages call the call: "c:get", "ctx:get".

local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"
local suggest = require "kubelua.suggest"

local M = {}

local GET = { subresource = "string", resource_version = "string", metadata_only = "boolean",
  timeout = "duration" }
local DELETE = {
  propagation = "string", uid = "string", resource_version = "string", resourceVersion = "string",
  grace = "integer", dry_run = "boolean", timeout = "duration",
}
local LIST = {
  namespace = "string", labels = "selector", fields = "selector", limit = "integer",
  resource_version = "string",
  resource_version_match = "string", metadata_only = "boolean", timeout = "duration",
  server_timeout = "duration",
}
local TABLE = { include = "string" }
for name, word in pairs(LIST) do
  if name ~= "metadata_only" then TABLE[name] = word end
end
local DELETE_COLLECTION = {
  namespace = "string", labels = "selector", fields = "selector", resource_version = "string",
  resource_version_match = "string",
  propagation = "string", grace = "integer", dry_run = "boolean", timeout = "duration",
}
local WATCH = {
  namespace = "string", name = "string", labels = "selector", fields = "selector",
  resource_version = "string",
  bookmarks = "boolean", timeout = "duration", metadata_only = "boolean",
}
local WRITE = {
  always = "boolean", manager = "string", dry_run = "boolean", validation = "string", subresource = "string",
  of = "string", timeout = "duration",
}
local APPLY = {
  always = "boolean", force = "boolean", manager = "string", dry_run = "boolean", validation = "string",
  subresource = "string", timeout = "duration",
}
local PROPAGATION = { Foreground = true, Background = true, Orphan = true }
local VALIDATION = { Strict = true, Warn = true, Ignore = true }
local MATCH = { Exact = true, NotOlderThan = true }

-- ---------------------------------------------------------------- arguments

local function check_kind(what, kind)
  if type(kind) ~= "string" or kind == "" then
    core.blame(("%s: the kind must be a string such as \"v1/Pod\" or \"apps/v1/Deployment\", got %s"):format(
      what, type(kind)))
  end
end

local function check_name(what, word, name)
  if type(name) ~= "string" or name == "" then
    core.blame(("%s: the %s must be a string that is not empty, got %s"):format(what, word,
      name == "" and "\"\"" or type(name)))
  end
end

--- Reads (key), (namespace, name) and ("namespace/name"), each with options behind.
---@return string? namespace, string name, table? options
function M.key(what, kind, a, b, c)
  check_kind(what, kind)
  if type(b) == "string" then
    check_name(what, "namespace", a)
    check_name(what, "name", b)
    return a, b, c
  end
  if b ~= nil and type(b) ~= "table" or b == nil and c ~= nil then
    core.blame(("%s: expected (kind, name), (kind, \"namespace/name\") or (kind, namespace, name), then \z
      options"):format(what))
  end
  check_name(what, "name", a)
  local namespace, name = a:match "^([^/]+)/([^/]+)$"
  if namespace then return namespace, name, b end
  if a:find("/", 1, true) then
    core.blame(("%s: the key %q is neither a name nor \"namespace/name\""):format(what, a))
  end
  return nil, a, b
end

--- The text of a label selector that was given as text, as a table of equalities, or as a
--- metav1.LabelSelector.
---@param x string|table|kubelua.view|kubelua.selector|nil
---@return string?
function M.labels(x)
  if x == nil or type(x) == "string" then return x end
  -- A Service has equalities, others a LabelSelector.
  local parts = type(x) == "table" or core.is_view(x)
  if parts and x.matchLabels == nil and x.matchExpressions == nil then x = { matchLabels = core.copy(x) } end
  local selector = core.selector(x)
  if not selector:is_empty() then return tostring(selector) end
end

local PLAIN = { string = true, number = true, boolean = true }

--- The text of a field selector that was given as text or as a table of equalities.
---@param x string|table<string, string|number|boolean>|nil
---@return string?
function M.fields(x)
  if x == nil or type(x) == "string" then return x end
  local terms = {}
  for field, value in pairs(x) do
    if type(field) ~= "string" or not PLAIN[type(value)] then
      local why = [[a field selector maps paths to strings, such as { ["metadata.name"] = "a" }: ]]
        .. "'%s' is a %s"
      core.blame(why:format(tostring(field), type(value)))
    end
    terms[#terms + 1] = field .. "=" .. tostring(value):gsub("[\\,=]", "\\%0")
  end
  table.sort(terms)
  if #terms > 0 then return table.concat(terms, ",") end
end

local TERM = "'%s' must be a string, a list of strings, true (any value), false (none) or { ne = ... }"

local function is_texts(x)
  if type(x) ~= "table" or #x == 0 then return false end
  for i, text in pairs(x) do
    if math.type(i) ~= "integer" or type(text) ~= "string" then return false end
  end
  return true
end

local function term(what, name, x)
  if type(x) == "boolean" then return { name, x and "exists" or "!" } end
  if type(x) == "string" then return { name, "=", x } end
  if is_texts(x) then return { name, "in", table.unpack(x) } end
  if type(x) == "table" and next(x) == "ne" and next(x, "ne") == nil then
    if type(x.ne) == "string" then return { name, "!=", x.ne } end
    if is_texts(x.ne) then return { name, "notin", table.unpack(x.ne) } end
  elseif type(x) == "table" and type(next(x)) == "string" then
    core.blame(("%s: index '%s': unknown word '%s'%s"):format(what, name, next(x),
      suggest.hint(next(x), { "ne" })))
  end
  core.blame(("%s: index " .. TERM .. ", got %s"):format(what, name, type(x)))
end

--- What several indexes must say, as the cache takes it: { node = "n1", phase = { "a", "b" }, owner = true,
--- zone = { ne = "eu" } }.
---@param what string
---@param indexes table<string, string|string[]|boolean|{ne: string|string[]}>
---@return string[][]  each {name, operator, value ...}
function M.terms(what, indexes)
  local out = {}
  for name, x in pairs(indexes) do
    if type(name) ~= "string" then
      core.blame(("%s: index must be a name or a table { name = value }, got the key %s"):format(what,
        tostring(name)))
    end
    out[#out + 1] = term(what, name, x)
  end
  return out
end

local function one_of(what, name, word, words, said)
  if word == nil or words[word] then return word end
  core.blame(("%s: %s must be %s, got %q%s"):format(what, name, said, word, suggest.hint(word, words)))
end

local function propagation(what, word)
  return one_of(what, "propagation", word, PROPAGATION, "Foreground, Background or Orphan")
end

--- "Strict", "Warn" or "Ignore", or nil.
function M.validation(what, word)
  return one_of(what, "validation", word, VALIDATION, "Strict, Warn or Ignore")
end

local function match(what, opts)
  local word = one_of(what, "resource_version_match", opts.resource_version_match, MATCH,
    "Exact or NotOlderThan")
  if word and not opts.resource_version then
    core.blame(("%s: resource_version_match needs resource_version"):format(
      what))
  end
  return word
end

local function seconds(duration)
  return duration and math.ceil(core.duration(duration))
end

local function positive(what, opts, ...)
  for _, name in ipairs { ... } do
    if opts[name] and opts[name] < 0 then
      core.blame(("%s: %s must not be negative, got %d"):format(what, name, opts[name]))
    end
  end
end

-- ---------------------------------------------------------------- reading

function M.get(what, kind, a, b, c)
  local namespace, name, opts = M.key(what, kind, a, b, c)
  opts = options.check(what, opts, GET)
  return {
    verb = "get", kind = kind, ns = namespace, name = name, subresource = opts.subresource,
    rv = opts.resource_version,
    form = opts.metadata_only and "metadata" or nil, timeout = opts.timeout,
  }
end

--- `more` names the options that only some callers have.
function M.list(what, kind, opts, more)
  check_kind(what, kind)
  if type(opts) == "table" and more then
    local known = {}
    for name, word in pairs(LIST) do known[name] = word end
    for name, word in pairs(more) do known[name] = word end
    options.check(what, opts, known)
  else
    opts = options.check(what, opts, LIST)
  end
  positive(what, opts, "limit")
  return {
    verb = "list", kind = kind, ns = opts.namespace, labels = M.labels(opts.labels),
    fields = M.fields(opts.fields),
    limit = opts.limit, rv = opts.resource_version, rv_match = match(what, opts),
    form = opts.metadata_only and "metadata" or nil,
    timeout = opts.timeout, timeout_seconds = seconds(opts.server_timeout),
  }
end

--- A list as the server prints it. `include` is "None", "Metadata" or "Object": what of each object comes
--- beside its cells.
function M.table(what, kind, opts)
  check_kind(what, kind)
  opts = options.check(what, opts, TABLE)
  local rest = {}
  for name, value in pairs(opts) do rest[name] = value end
  rest.include = nil
  local op = M.list(what, kind, rest)
  op.form = "table"
  op.include = one_of(what, "include", opts.include, { None = true, Metadata = true, Object = true },
    "None, Metadata or Object")
  return op
end

function M.watch(what, kind, opts)
  check_kind(what, kind)
  opts = options.check(what, opts, WATCH)
  return {
    verb = "watch", kind = kind, ns = opts.namespace, name = opts.name, labels = M.labels(opts.labels),
    fields = M.fields(opts.fields),
    rv = opts.resource_version, timeout_seconds = seconds(opts.timeout), bookmarks = true,
    form = opts.metadata_only and "metadata" or nil,
  }
end

-- ---------------------------------------------------------------- writing

local function write(verb, what, o, opts, known)
  local manifest = object.normalize(o, what)
  opts = options.check(what, opts, known)
  local body = core.value(manifest, "the object")
  local metadata = body("metadata")
  if opts.of and not opts.subresource then
    core.blame(("%s: of = %q needs a subresource: subresource = \"...\""):format(what,
      opts.of))
  end
  return {
    verb = verb, kind = opts.of or object.kind_of(body), body = body,
    ns = metadata and metadata("namespace"), name = (verb ~= "create" or opts.subresource) and metadata
    and metadata("name") or nil,
    field_manager = opts.manager, force = opts.force, dry_run = opts.dry_run, always = opts.always,
    timeout = opts.timeout,
    field_validation = M.validation(what, opts.validation), subresource = opts.subresource,
    check = type(o) == "table",         -- what the server gave us needs no check
  }
end

local function named(what, op)
  if not op.name then core.blame(("%s: the object has no metadata.name"):format(what)) end
  return op
end

function M.create(what, o, opts) return write("create", what, o, opts, WRITE) end
function M.update(what, o, opts) return named(what, write("update", what, o, opts, WRITE)) end

-- Only a server sets all of these. A uid or a resourceVersion alone is a condition of the apply.
local READ = { "uid", "resourceVersion", "creationTimestamp" }

local function was_read(metadata)
  if metadata("managedFields") ~= nil then return true end
  for _, field in ipairs(READ) do
    if metadata(field) == nil then return false end
  end
  return true
end

--- An apply makes its manager the owner of each field that is in it, so it is refused of a whole object.
function M.apply(what, o, opts)
  local op = named(what, write("apply", what, o, opts, APPLY))
  if was_read(op.body.metadata) then
    core.blame(("%s: %s %s was read from the server, and its manager would own every field of it: apply a \z
      table of the fields that are yours, or what kube.extract gives of it; or use a patch"):format(what,
      op.kind, op.name))
  end
  return op
end

function M.delete(what, kind, a, b, c)
  -- An object can be named by itself: c:delete(pod).
  if type(kind) ~= "string" then
    local o = core.value(object.normalize(kind, what), "the object")
    local metadata = o("metadata")
    kind, a, b, c = object.kind_of(o), metadata and metadata("namespace"), metadata and metadata("name"), a
    if not a then a, b, c = b, c, nil end
  end
  local namespace, name, opts = M.key(what, kind, a, b, c)
  opts = options.check(what, opts, DELETE)
  positive(what, opts, "grace")
  return {
    verb = "delete", kind = kind, ns = namespace, name = name,
    propagation = propagation(what, opts.propagation),
    uid = opts.uid, precondition_rv = options.version(opts), grace_seconds = opts.grace,
    dry_run = opts.dry_run, timeout = opts.timeout,
  }
end

function M.delete_collection(what, kind, opts)
  check_kind(what, kind)
  opts = options.check(what, opts, DELETE_COLLECTION)
  positive(what, opts, "grace")
  return {
    verb = "deletecollection", kind = kind, ns = opts.namespace, labels = M.labels(opts.labels),
    fields = M.fields(opts.fields),
    rv = opts.resource_version, rv_match = match(what, opts),
    propagation = propagation(what, opts.propagation),
    grace_seconds = opts.grace, dry_run = opts.dry_run, timeout = opts.timeout,
  }
end

--- Whether a request concerns many objects.
function M.is_many(op) return op.verb == "list" or op.verb == "watch" or op.verb == "deletecollection" end

-- ---------------------------------------------------------------- answers

--- Whether an error says that this one object is absent, rather than its whole kind.
function M.is_absent(err)
  return core.is_error(err) and err.code == 404 and not (err.message
    or ""):find("could not find the requested resource", 1, true)
    and not (err.message or ""):find("page not found", 1, true)
end

return M
