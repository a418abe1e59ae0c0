-- client.lua - the client for any Lua state: it waits where it is called. ctx in a reconcile has the same calls and yields.
--
--   local c = kube.connect()
--   for pod in c:each("v1/Pod", { namespace = "default" }) do print(pod.metadata.name) end
--
-- An absent object is nil; what else goes wrong raises a structured error (kube.try turns it into nil, err).

local core = require "kubelua.core"
local object = require "kubelua.object"
local options = require "kubelua.options"
local patch = require "kubelua.patch"
local request = require "kubelua.request"

local M = {}

---@class kubelua.Client
---@field private core userdata
local Client = {}
Client.__index = Client
Client.__name = "kubelua.Client"

-- Objects per page of a list; the server keeps little, and a lazy loop starts early.
local PAGE = 500

local CONNECT = {
  server = "string", kubeconfig = "string", context = "string", cluster = "string", user = "string", namespace = "string",
  token = "string", as = "string", tls_server_name = "string", insecure = "boolean", timeout = "string", http1 = "boolean",
  user_agent = "string", field_manager = "string",
}

--- A client of the cluster that the options, KUBECONFIG, the pod we run in, or ~/.kube/config name, in this order.
---@param opts kubelua.ConnectOptions?
---@return kubelua.Client
function M.connect(opts)
  opts = options.check("kube.connect", opts, CONNECT)
  return setmetatable({ core = core.connect(opts) }, Client)
end

-- ---------------------------------------------------------------- sending

-- Every poll waits a slice in C; between two of them hooks run, so ^C works.
local function await(call)
  while true do
    local done, body = call:poll()
    if done then return body end
  end
end

local function send(self, op)
  -- A list or watch without a namespace means all of them; everything else the context's own.
  if not op.ns and op.verb ~= "list" and op.verb ~= "watch" then op.default_ns = self.core:namespace() end
  return await(self.core:begin(op))
end

local function get(self, op)
  local ok, result = pcall(send, self, op)
  if ok then return result end
  if request.is_absent(result) then return nil end
  error(result, 0)
end

--- What discovery says about a kind; raises when the server has no such kind.
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

--- The object, or nil when it is absent: c:get("v1/Pod", "default", "a") or c:get("v1/Pod", "default/a"); a name alone is looked
--- for in the context's namespace.
---@param kind string
---@param namespace_or_key string
---@param name string?
---@return kubelua.view?
function Client:get(kind, namespace_or_key, name)
  return get(self, request.get("c:get", kind, namespace_or_key, name))
end

-- One page: its objects, the token of the next page or nil, the resourceVersion.
local function page(self, op, token)
  op.continue_token = token
  local items, continue, version = core.items(send(self, op))
  return items, continue ~= "" and continue or nil, version
end

--- All objects of a kind, as a list of views, and the resourceVersion of the list.
---@param kind string
---@param opts kubelua.ListOptions?
---@return kubelua.view[] items, string? resourceVersion
function Client:list(kind, opts)
  local op = request.list("c:list", kind, opts)
  if op.limit then
    local items, _, version = page(self, op)
    return items, version
  end
  op.limit = PAGE
  local all, token, version = page(self, op)
  while token do
    local ok, items, next_token = pcall(page, self, op, token)
    if ok then
      table.move(items, 1, #items, #all + 1, all)
      token = next_token
    elseif core.is_error(items) and items.code == 410 then
      -- The server forgot our place: once more from the start, in one piece.
      op.limit = nil
      all, token, version = page(self, op)
    else
      error(items, 0)
    end
  end
  return all, version
end

--- Iterates over all objects of a kind, page by page: for pod in c:each("v1/Pod") do ... end
---@param kind string
---@param opts kubelua.ListOptions?
---@return fun(): kubelua.view?
function Client:each(kind, opts)
  local op = request.list("c:each", kind, opts)
  local left = op.limit
  if not left or left > PAGE then op.limit = PAGE end
  local items, i, token, started = {}, 0, nil, false
  return function()
    if left == 0 then return nil end
    while i >= #items do
      if started and not token then return nil end
      items, token = page(self, op, token)
      i, started = 0, true
    end
    i = i + 1
    if left then left = left - 1 end
    return items[i]
  end
end

-- ---------------------------------------------------------------- watching

local function raise_status(op, status)
  error(core.error {
    code = status("code"), reason = status("reason"), message = status("message") or "the watch failed", details = status("details"),
    kind = status("code") == 410 and "gone" or "server", verb = "watch", resource = op.kind, key = op.ns,
  }, 0)
end

-- What passes by itself, once a watch has worked: the connection broke, the server restarts or is busy.
local PASSING = { closed = true, unreachable = true, timeout = true, throttled = true, server = true }
local PAUSE_FIRST, PAUSE_MOST = 0.25, 10    -- seconds

-- A watch that goes on: `op.rv` is where it stands, `pause` how long it rests after the next failure in a row, `worked` whether
-- the server ever answered it.
local Watch = {}
Watch.__index = Watch

function Watch:close()
  if self.current then self.current:close() end
  self.current = nil
end

Watch.__close = Watch.close

-- Whether an error is worth another try; rests before that.
function Watch:rest(err)
  if not (core.is_error(err) and PASSING[err.kind] and self.worked and self.op.rv) then return false end
  local left = err.retry_after or self.pause
  while left > 0 do left = self.client.core:pause(left) end
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

--- Iterates over what happens: for event, object in c:watch("v1/Pod") do ... end, with "ADDED", "MODIFIED" and "DELETED".
--- Without resource_version it begins with an ADDED for each object that exists. It goes on until the loop breaks; with `timeout`
--- until then. A watch that the server ends, or that breaks off, is taken up where it was; a version that the server has forgotten
--- raises (code 410).
---@param kind string
---@param opts kubelua.WatchOptions?
---@return fun(): string?, kubelua.view?
function Client:watch(kind, opts)
  local op = request.watch("c:watch", kind, opts)
  self:resource(kind)
  local watch = setmetatable({
    client = self, op = op, pause = PAUSE_FIRST, bookmarks = opts and opts.bookmarks, once = opts and opts.timeout,
  }, Watch)
  return function() return watch:next() end, nil, nil, watch
end

-- ---------------------------------------------------------------- writing

--- Creates an object, in a manifest's form or in short. Returns the server's object.
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

--- Changes an object. A function edits a draft, and a conflict runs it again on the fresh object; a table is the patch itself.
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
function Client:patch_status(o, change, opts) return patch.patch_status(patcher(self), "c:patch_status", o, change, opts) end

--- Deletes an object; that it is absent is success. c:delete("v1/Pod", "default", "a"), c:delete("v1/Pod", "default/a"), c:delete(pod)
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

--- What the server says about itself: gitVersion and more.
---@return kubelua.view
function Client:version() return self:raw("GET", "/version") end

--- All resources of the server, each in its group's preferred version; subresources are left out.
---@return kubelua.ResourceInfo[]
function Client:resources()
  local out = {}
  local function add(path, api_version)
    for _, r in ipairs(self:raw("GET", path).resources) do
      if not r.name:find("/", 1, true) then
        local verbs = {}
        for _, verb in ipairs(r("verbs") or {}) do verbs[#verbs + 1] = verb end
        out[#out + 1] = { kind = api_version .. "/" .. r.kind, plural = r.name, namespaced = r.namespaced, verbs = verbs }
      end
    end
  end
  add("/api/v1", "v1")
  for _, group in ipairs(self:raw("GET", "/apis").groups) do
    local version = group.preferredVersion.groupVersion
    -- An aggregated API whose server is down must not hide the others.
    local ok, err = pcall(add, "/apis/" .. version, version)
    if not ok and not core.is_error(err) then error(err, 0) end
  end
  return out
end

--- The context's namespace, or "default".
---@return string
function Client:namespace() return self.core:namespace() end

--- The server's URL.
---@return string
function Client:server() return self.core:server() end

--- Ends requests under way and joins the client's threads. The end of the state does the same.
function Client:close() self.core:close() end

Client.__close = Client.close

--- The text form of an object's kind, "apps/v1/Deployment".
M.kind_of = object.kind_of

return M
