-- verbs.lua - what people do every day beyond get and put: subresources by their own names, for the client
-- and for ctx alike.
--
--   { send = function(op) -> view or nil, get = function(op) -> view or nil }
-- is what this needs of its caller; `what` is how messages call the call: "c:evict", "ctx:evict".

local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"
local request = require "kubelua.request"
local suggest = require "kubelua.suggest"

local M = {}

local EVICT = {
  grace = "integer", propagation = "string", uid = "string", resource_version = "string",
  resourceVersion = "string", dry_run = "boolean", timeout = "duration",
}
local SCALE = { manager = "string", dry_run = "boolean", resource_version = "string",
  resourceVersion = "string", timeout = "duration" }
local BIND = { annotations = "table", labels = "table", dry_run = "boolean", timeout = "duration" }
local TOKEN = { audiences = "table", expiration = "duration", bound = "table", timeout = "duration" }
local DECIDE = { reason = "string", message = "string", manager = "string", dry_run = "boolean",
  timeout = "duration" }
local FINALIZE = { dry_run = "boolean", timeout = "duration" }

-- Read-and-write rounds before a conflict is raised.
local ATTEMPTS = 8

-- Which object a call means, of a kind that the call knows: (object, options), (key, options) or
-- (namespace, name, options).
local function target(what, kind, x, a, b)
  if type(x) == "string" then
    local namespace, name, opts = request.key(what, kind, x, a, b)
    return namespace, name, opts
  elseif x == nil or type(x) == "number" or type(x) == "boolean" then
    core.blame(("%s: expected an object or its key, got %s"):format(what, type(x)))
  end
  local o = core.value(object.normalize(x, what), "the object")
  local word = kind:match "[^/]+$"
  if o("kind") ~= word then
    core.blame(("%s: expected a %s, got %s"):format(what, word, tostring(o("kind"))))
  end
  if b ~= nil then
    core.blame(("%s: expected (object, options) or (namespace, name, options)"):format(what))
  end
  local name = o("metadata.name")
  if not name then core.blame(("%s: the object has no metadata.name"):format(what)) end
  return o("metadata.namespace"), name, a, o
end

local function absent_is(value, self, op)
  local ok, result = pcall(self.send, op)
  if ok then return result end
  if request.is_absent(result) then return value end
  error(result, 0)
end

-- ---------------------------------------------------------------- pods

function M.evict(self, what, pod, a, b)
  local namespace, name, opts = target(what, "v1/Pod", pod, a, b)
  opts = options.check(what, opts, EVICT)
  local delete = core.object { gracePeriodSeconds = opts.grace, propagationPolicy = opts.propagation }
  local version = options.version(opts)
  if opts.uid or version then
    delete.preconditions = { uid = opts.uid, resourceVersion = version }
  end
  if opts.dry_run then delete.dryRun = { "All" } end
  absent_is(nil, self, {
    verb = "create", kind = "v1/Pod", ns = namespace, name = name, subresource = "eviction",
    dry_run = opts.dry_run, timeout = opts.timeout,
    body = core.value {
      apiVersion = "policy/v1", kind = "Eviction", metadata = { name = name, namespace = namespace },
      deleteOptions = delete,
    },
  })
  return true
end

function M.bind(self, what, pod, node, opts)
  local namespace, name, _, o = target(what, "v1/Pod", pod)
  if type(node) ~= "string" or node == "" then
    core.blame(("%s: the node must be a string that is not empty, got %s"):format(what, type(node)))
  end
  opts = options.check(what, opts, BIND)
  self.send {
    verb = "create", kind = "v1/Pod", ns = namespace, name = name, subresource = "binding",
    dry_run = opts.dry_run, timeout = opts.timeout,
    body = core.value {
      apiVersion = "v1", kind = "Binding", target = { apiVersion = "v1", kind = "Node", name = node },
      metadata = { name = name, namespace = namespace, uid = o and o("metadata.uid"),
        annotations = opts.annotations, labels = opts.labels },
    },
  }
  return true
end

-- ---------------------------------------------------------------- scale

local function scale_of(self, kind, namespace, name, timeout)
  return self.get { verb = "get", kind = kind, ns = namespace, name = name, subresource = "scale",
    timeout = timeout }
end

local function scale_target(what, kind, a, b, c, d)
  if type(kind) ~= "string" then
    local o = core.value(object.normalize(kind, what), "the object")
    if not o("metadata.name") then core.blame(("%s: the object has no metadata.name"):format(what)) end
    return object.kind_of(o), o("metadata.namespace"), o("metadata.name"), a, b
  elseif type(b) == "string" then
    local namespace, name = request.key(what, kind, a, b)
    return kind, namespace, name, c, d
  end
  local namespace, name = request.key(what, kind, a)
  return kind, namespace, name, b, c
end

function M.scale(self, what, ...)
  local kind, namespace, name, replicas, opts = scale_target(what, ...)
  if replicas == nil or type(replicas) == "table" then
    core.blame(("%s: the number of replicas is missing: %s(kind, key, 3); get_scale reads it"):format(what,
      what))
  elseif math.type(replicas) ~= "integer" or replicas < 0 then
    core.blame(("%s: the number of replicas must be an integer from 0 on, got %s"):format(what,
      tostring(replicas)))
  end
  opts = options.check(what, opts, SCALE)
  local version = options.version(opts)
  return self.send {
    verb = "patch", kind = kind, ns = namespace, name = name, subresource = "scale", patch_type = "merge",
    timeout = opts.timeout,
    field_manager = opts.manager, dry_run = opts.dry_run,
    body = core.value { metadata = version and { resourceVersion = version },
      spec = { replicas = replicas } },
  }
end

function M.get_scale(self, what, ...)
  local kind, namespace, name, opts = scale_target(what, ...)
  opts = options.check(what, opts, { timeout = "duration" })
  return scale_of(self, kind, namespace, name, opts.timeout)
end

-- ---------------------------------------------------------------- tokens

local function reference(what, bound)
  if bound == nil then return nil end
  local o = core.value(object.normalize(bound, what), "the object")
  return { apiVersion = o("apiVersion"), kind = o("kind"), name = o("metadata.name"),
    uid = o("metadata.uid") }
end

function M.token(self, what, account, a, b)
  local namespace, name, opts = target(what, "v1/ServiceAccount", account, a, b)
  opts = options.check(what, opts, TOKEN)
  local answer = self.send {
    verb = "create", kind = "v1/ServiceAccount", ns = namespace, name = name, subresource = "token",
    timeout = opts.timeout,
    body = core.value {
      apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest",
      spec = {
        audiences = core.array(opts.audiences or {}), boundObjectRef = reference(what, opts.bound),
        expirationSeconds = opts.expiration and math.ceil(core.duration(opts.expiration)),
      },
    },
  }
  return answer.status.token, answer.status.expirationTimestamp
end

-- ---------------------------------------------------------------- read, change, write

-- Runs `change` on the object as tables and writes them to the subresource; again when somebody was faster.
local function rewrite(self, op, change)
  for attempt = 1, ATTEMPTS do
    local o = self.get { verb = "get", kind = op.kind, ns = op.ns, name = op.name, timeout = op.timeout }
    if not o then return nil end
    local copy = core.copy(o)
    change(copy)
    op.body = core.value(copy)
    local ok, result = pcall(self.send, op)
    if ok then return result end
    if not core.is_error(result) or result.kind ~= "conflict" or attempt == ATTEMPTS then error(result, 0) end
  end
end

local function must(what, found, name)
  if found then return found end
  error(core.error { code = 404, kind = "not_found", reason = "NotFound",
    message = ("%s: %q not found"):format(what, name) }, 0)
end

--- The finalizers of a namespace's spec, which the ordinary update leaves alone. Without them it may go.
function M.finalize(self, what, namespace, finalizers, opts)
  local _, name = target(what, "v1/Namespace", namespace)
  if finalizers ~= nil and type(finalizers) ~= "table" then
    core.blame(("%s: the finalizers must be a list, got %s"):format(what, type(finalizers)))
  end
  opts = options.check(what, opts, FINALIZE)
  local op = { verb = "update", kind = "v1/Namespace", name = name, subresource = "finalize",
    dry_run = opts.dry_run, timeout = opts.timeout }
  return must(what, rewrite(self, op, function(o) o.spec.finalizers = core.array(finalizers or {}) end), name)
end

--- `decision` is "Approved" or "Denied".
function M.decide(self, what, decision, csr, opts)
  local _, name = target(what, "certificates.k8s.io/v1/CertificateSigningRequest", csr)
  opts = options.check(what, opts, DECIDE)
  local op = {
    verb = "update", kind = "certificates.k8s.io/v1/CertificateSigningRequest", name = name,
    subresource = "approval",
    dry_run = opts.dry_run, field_manager = opts.manager, timeout = opts.timeout,
  }
  return must(what, rewrite(self, op, function(o)
    o.status = o.status or {}
    local conditions = {}
    for _, c in ipairs(o.status.conditions or {}) do
      if c.type ~= decision then conditions[#conditions + 1] = c end
    end
    conditions[#conditions + 1] = {
      type = decision, status = "True", reason = opts.reason or "Kubelua" .. decision,
      message = opts.message or "by " .. what,
    }
    o.status.conditions = conditions
  end), name)
end

-- ---------------------------------------------------------------- hooking up

-- The names that client and ctx share (annotated in types.lua).
local SHARED = {
  evict = M.evict, bind = M.bind, scale = M.scale, get_scale = M.get_scale, token = M.token,
  finalize = M.finalize,
  approve = function(self, what, csr, opts) return M.decide(self, what, "Approved", csr, opts) end,
  deny = function(self, what, csr, opts) return M.decide(self, what, "Denied", csr, opts) end,
  update_status = function(self, what, o, opts)
    return self.send(request.update(what, o, M.status_options(what, opts, { force = true })))
  end,
  apply_status = function(self, what, o, opts)
    return self.send(request.apply(what, o, M.status_options(what, opts, { of = true })))
  end,
  delete_collection = function(self, what, kind, opts)
    return self.send(request.delete_collection(what, kind, opts))
  end,
}

function M.status_options(what, opts, without)
  local out = { subresource = "status" }
  if opts ~= nil and type(opts) ~= "table" then
    core.blame(("%s: expected a table of options, got %s"):format(what, type(opts)))
  end
  for name, value in pairs(opts or {}) do
    if name == "subresource" or name == "of" or without[name] then
      core.blame(("%s: unknown option '%s'%s"):format(what, name,
        suggest.hint(name, { "manager", "dry_run", "validation", "timeout" })))
    end
    out[name] = value
  end
  return out
end

--- Adds the shared verbs to a class whose calls are named `prefix` .. name; `adapter(self)` gives the table
--- at the head of this file.
function M.add(class, prefix, adapter)
  for name, fn in pairs(SHARED) do
    class[name] = function(self, ...) return fn(adapter(self), prefix .. name, ...) end
  end
end

return M
