-- client.lua - the client for any Lua state: its calls block. ctx in a reconcile has the same calls and
-- yields.
--
--   local c = kube.connect()
--   for pod in c:each("v1/Pod", { namespace = "default" }) do print(pod.metadata.name) end
--
-- An absent object is nil; other failures raise a structured error (kube.try turns it into nil, err).

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local discovery = require "kubelua.discovery"
local object = require "kubelua.object"
local options = require "kubelua.options"
local pager = require "kubelua.pager"
local patch = require "kubelua.patch"
local request = require "kubelua.request"
local suggest = require "kubelua.suggest"
local verbs = require "kubelua.verbs"

local M = {}

---@class kubelua.Client: kubelua.Verbs
---@field private core userdata
local Client = {}
-- Of the instances; not the class itself, so that none of them leads to it.
local CLIENT = { __index = Client, __name = "kubelua.Client" }

local CONNECT = {
  server = "string", kubeconfig = "string", context = "string", cluster = "string", user = "string",
  namespace = "string",
  token = "string", token_file = "string", username = "string", password = "string", as = "string",
  as_uid = "string", as_groups = "table", as_extra = "table",
  ca_file = "string", ca_data = "string", cert_file = "string", cert_data = "string", key_file = "string",
  key_data = "string", proxy = "string",
  tls_server_name = "string", insecure = "boolean", disable_compression = "boolean", timeout = "string",
  http1 = "boolean", protobuf = "boolean", allow_http = "boolean",
  user_agent = "string", field_manager = "string", cache_dir = "path", cache_ttl = "duration",
  check = "boolean",
  qps = "number", burst = "integer", on_warning = "handler",
}

--- A client of the cluster from the options, KUBECONFIG, the pod's service account, or ~/.kube/config, in
--- this order.
---@param opts kubelua.ConnectOptions?
---@return kubelua.Client
function M.connect(opts)
  opts = options.check("kube.connect", opts, CONNECT)
  local warn = opts.on_warning
  if type(warn) == "string" and warn ~= "log" and warn ~= "none" then
    core.blame(("kube.connect: on_warning must be \"log\", \"none\" or a function, got %q"):format(warn))
  end
  for _, name in ipairs { "qps", "burst" } do
    if opts[name] and not (opts[name] > 0 and opts[name] < math.huge) then
      core.blame(("kube.connect: %s must be more than 0, got %s; leave it out for no limit")
        :format(name, opts[name]))
    end
  end
  if opts.burst and not opts.qps then
    core.blame("kube.connect: burst needs qps")
  end
  if warn == nil or warn == "log" then
    return setmetatable({ core = core.connect(opts), on_warning = false }, CLIENT)
  end
  local rest = { quiet = true }
  for name, value in pairs(opts) do rest[name] = value end
  return setmetatable({ core = core.connect(rest), on_warning = type(warn) == "function" and warn }, CLIENT)
end

--- The calls of a client over another transport: `core` has its connection functions.
---@param wire table
---@return kubelua.Client
function M.over(wire) return setmetatable({ core = wire, on_warning = false }, CLIENT) end

-- ---------------------------------------------------------------- sending

-- Every poll waits a slice in C; between two of them hooks run, so ^C works.
local function await(call)
  while true do
    local done, body = call:poll()
    if done then return body end
  end
end

local function tell_warnings(self)
  for _, w in ipairs((self.core:warnings())) do self.on_warning(w.text, w.call) end
end

local function send(self, op)
  -- A list or watch without a namespace means all namespaces, a deletion of many must name one; all other
  -- calls use the context's.
  if not op.ns and not request.is_many(op) then op.default_ns = self.core:namespace() end
  if not self.on_warning then return await(self.core:begin(op)) end
  local ok, result = pcall(await, self.core:begin(op))
  tell_warnings(self)
  if ok then return result end
  error(result, 0)
end

local function get(self, op)
  local ok, result = pcall(send, self, op)
  if ok then return result end
  if request.is_absent(result) then return nil end
  error(result, 0)
end

--- The discovery entry of a kind; raises when the server has no such kind.
---@param kind string
---@return kubelua.Resource
function Client:resource(kind)
  local found = self.core:resource(kind)
  if not found then
    await(self.core:resolve(kind))
    found = self.core:resource(kind)
  end
  return found
end

local function has(self, kind, subresource)
  for _, name in ipairs(self:resource(kind).subresources) do
    if name == subresource then return true end
  end
  return false
end

-- ---------------------------------------------------------------- reading

--- The object, or nil when it is absent: c:get("v1/Pod", "default", "a") or c:get("v1/Pod", "default/a"); a
--- name alone is in the context's namespace. Options come last: { subresource = "scale" }, { metadata_only =
--- true }.
---@param kind string
---@param namespace_or_key string
---@param name_or_opts string|kubelua.GetOptions|nil
---@param opts kubelua.GetOptions?
---@return kubelua.view?
function Client:get(kind, namespace_or_key, name_or_opts, opts)
  return get(self, request.get("c:get", kind, namespace_or_key, name_or_opts, opts))
end

local function sender(self)
  return function(op) return send(self, op) end
end

--- All objects of a kind, as a list of views, and the resourceVersion of the list.
---@param kind string
---@param opts kubelua.ListOptions?
---@return kubelua.view[] items, string? resourceVersion
function Client:list(kind, opts)
  local op = request.list("c:list", kind, opts)
  if op.limit and op.limit > 0 then
    local items, _, version = core.items(send(self, op))
    return items, version
  end
  return pager.all(sender(self), op)
end

--- Iterates over all objects of a kind, page by page: for pod in c:each("v1/Pod") do ... end
---@param kind string
---@param opts kubelua.ListOptions?
---@return fun(): kubelua.view?
function Client:each(kind, opts)
  return pager.each(sender(self), request.list("c:each", kind, opts))
end

--- A list as the server prints it: { columns = {{ name =, type =, priority = }, ...}, rows = {{ cells =
--- {...}, object = ... }, ...} }.
---@param kind string
---@param opts kubelua.TableOptions?
---@return {columns: kubelua.view[], rows: kubelua.view[], resourceVersion: string?}
function Client:table(kind, opts)
  local op = request.table("c:table", kind, opts)
  local out = { columns = {}, rows = {} }
  local function take(answer)
    if not answer then out.rows = {} return end
    if answer.kind ~= "Table" then
      error(core.error { kind = "server", verb = "list", resource = kind,
        message = ("c:table: the server answered with a %s instead of a Table")
        :format(tostring(answer.kind)) }, 0)
    end
    if #out.columns == 0 then
      for _, column in ipairs(answer.columnDefinitions) do out.columns[#out.columns + 1] = column end
    end
    for _, row in ipairs(answer.rows or {}) do out.rows[#out.rows + 1] = row end
    out.resourceVersion = answer("metadata.resourceVersion")
  end
  if op.limit and op.limit > 0 then take(send(self, op)) else pager.all(sender(self), op, take) end
  return out
end

-- ---------------------------------------------------------------- watching

local function raise_status(op, status)
  error(core.error {
    code = status("code"), reason = status("reason"), message = status("message") or "the watch failed",
    details = status("details"),
    kind = status("code") == 410 and "gone" or "server", verb = "watch", resource = op.kind, key = op.ns,
  }, 0)
end

-- Transient failures of a watch that has worked: a broken connection, a restarting or busy server.
local PASSING = { closed = true, unreachable = true, timeout = true, throttled = true, server = true }
local PAUSE_FIRST, PAUSE_MOST = 0.25, 10    -- seconds

-- A resumable watch: `op.rv` is its version, `pause` the delay after the next failure in a row, `worked`
-- whether the server ever answered it.
local Watch = {}
Watch.__index = Watch

function Watch:close()
  if self.current then self.current:close() end
  self.current = nil
end

Watch.__close = Watch.close

-- A watch that never worked is retried like any request of client-go: after the server's Retry-After, or
-- after a broken connection.
local FIRST_TRIES = 10

local function worth_trying(self, err)
  if not core.is_error(err) or not PASSING[err.kind] then return false end
  if self.worked and self.op.rv then return true end
  self.tries = (self.tries or 0) + 1
  return self.tries <= FIRST_TRIES and (err.kind == "closed" or err.kind == "timeout"
    or err.retry_after ~= nil)
end

-- Whether an error is retried; waits before that.
function Watch:rest(err)
  if not worth_trying(self, err) then return false end
  clock.sleep(err.retry_after or self.worked and self.pause or 1)
  self.pause = math.min(self.pause * 2, PAUSE_MOST)
  return true
end

function Watch:next()
  while true do
    self.current = self.current or self.client.core:watch(self.op)
    local ok, event, o = pcall(self.current.next, self.current)
    if not ok then
      self:close()
      if not self:rest(event) then error(event, 0) end
    elseif event == nil then                  -- a clean end
      self:close()
      self.worked = true
      if self.once then return nil end
    elseif event == "ERROR" then
      self:close()
      raise_status(self.op, o)
    elseif event then
      self.pause, self.worked = PAUSE_FIRST, true
      self.op.rv = o("metadata.resourceVersion") or self.op.rv
      if event ~= "BOOKMARK" or self.bookmarks then return event, o end
    end
  end
end

--- Iterates over events: for event, object in c:watch("v1/Pod") do ... end, with "ADDED", "MODIFIED" and
--- "DELETED". Without resource_version it begins with an ADDED for each object that exists. It runs until the
--- loop breaks, or until `timeout`. A watch that the server ends, or that breaks, is resumed; an expired
--- version raises (code 410).
---@param kind string
---@param opts kubelua.WatchOptions?
---@return fun(): string?, kubelua.view?
function Client:watch(kind, opts)
  local op = request.watch("c:watch", kind, opts)
  self:resource(kind)
  local watch = setmetatable({
    client = self, op = op, pause = PAUSE_FIRST, bookmarks = opts and opts.bookmarks,
    once = opts and opts.timeout,
  }, Watch)
  return function() return watch:next() end, nil, nil, watch
end

-- ---------------------------------------------------------------- writing

--- Creates an object, in a manifest's form or in the short form. Returns the server's object.
---@param o kubelua.Object|kubelua.view
---@param opts kubelua.WriteOptions?
---@return kubelua.view
function Client:create(o, opts) return send(self, request.create("c:create", o, opts)) end

--- Replaces an object; with metadata.resourceVersion only while it is still that version.
---@param o kubelua.Object|kubelua.view
---@param opts kubelua.WriteOptions?
---@return kubelua.view
function Client:update(o, opts) return send(self, request.update("c:update", o, opts)) end

--- Server-side apply: the fields given become ours. `force` takes them from other managers.
---@param o kubelua.Object|kubelua.view
---@param opts kubelua.ApplyOptions?
---@return kubelua.view
function Client:apply(o, opts) return send(self, request.apply("c:apply", o, opts)) end

local function patcher(self)
  return {
    send = function(op) return send(self, op) end,
    get = function(op) return get(self, op) end,
    has = function(kind, subresource) return has(self, kind, subresource) end,
  }
end

--- Changes an object. A function edits a draft, and a conflict runs it again on the fresh object; a table
--- is the patch itself.
---@param o kubelua.Object|kubelua.view
---@param change fun(draft: kubelua.draft)|table
---@param opts kubelua.PatchOptions?
---@return kubelua.view
function Client:patch(o, change, opts) return patch.patch(patcher(self), "c:patch", o, change, opts) end

--- Changes the status, through the status subresource. A table holds the status fields to set.
---@param o kubelua.Object|kubelua.view
---@param change fun(draft: kubelua.draft)|table
---@param opts kubelua.PatchStatusOptions?
---@return kubelua.view
function Client:patch_status(o, change, opts)
  return patch.patch_status(patcher(self), "c:patch_status", o, change, opts)
end

--- Deletes an object; an absent object is success. c:delete("v1/Pod", "default", "a"), c:delete("v1/Pod",
--- "default/a"), c:delete(pod)
---@param kind string|kubelua.Object|kubelua.view
---@param a any  key, namespace or options
---@param b any  name or options
---@param c any  options
---@return true
function Client:delete(kind, a, b, c)
  local ok, result = pcall(send, self, request.delete("c:delete", kind, a, b, c))
  if ok or request.is_absent(result) then return true end
  error(result, 0)
end

-- evict, scale and others: as in ctx.
verbs.add(Client, "c:", patcher)

-- ---------------------------------------------------------------- the server

--- Any path of the API: c:raw("GET", "/version"). `body` is a table, a view, or text.
---@param method string
---@param path string
---@param body any
---@param content_type string?
---@return any
function Client:raw(method, path, body, content_type)
  if body ~= nil and type(body) ~= "string" then body = core.encode(body) end
  return self.core:raw(method, path, content_type or body and "application/json" or nil, body)
end

--- The server's version: gitVersion and more.
---@return kubelua.view
function Client:version() return self:raw("GET", "/version") end

--- The resources of the server, each in its group's preferred version; and the group versions whose discovery
--- failed, with the reasons: a service that is down only hides its own.
---@param filter kubelua.ResourceFilter?
---@return kubelua.ResourceInfo[], table<string, string>
function Client:resources(filter)
  return discovery.resources(self.core, function(kind)
    await(self.core:resolve(kind))
  end, "c:resources", filter)
end

--- The server's warnings since the last call, each text once: {{ text =, call = }, ...}; and the number of
--- dropped ones. Empty when on_warning is a function.
---@return {text: string, call: string}[] warnings, integer missed
function Client:warnings() return self.core:warnings() end

--- The context's namespace, or "default".
---@return string
function Client:namespace() return self.core:namespace() end

--- The server's URL.
---@return string
function Client:server() return self.core:server() end

--- Cancels running requests and joins the client's threads. The end of the Lua state does the same.
function Client:close() self.core:close() end

CLIENT.__close = Client.close

require("kubelua.helpers").into_client(Client)
-- A script's state has no streams; its clients are other clusters (peer.lua).
if core.connect then
  for name, method in pairs(require "kubelua.stream".methods) do Client[name] = method end
end

-- An unknown field of a client is a typo.
setmetatable(Client, { __index = function(_, name)
  if type(name) ~= "string" or name:find "^__" then return nil end
  core.blame(("c:%s: unknown method of a client%s"):format(name, suggest.hint(name, Client)))
end })

--- The text form of an object's kind, "apps/v1/Deployment".
M.kind_of = object.kind_of

return M
