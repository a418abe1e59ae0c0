-- webhook.lua - the spec of an admission webhook: checked at once, and brought into the shape that
-- bindings/script/specs.c reads; and a request through it.
--
--   kube.webhook { name, resource, operations, subresources, scope, namespaces, namespace_selector,
--     object_selector, match_conditions, match_policy, reinvocation, failure_policy, timeout, side_effects,
--     reads, fields, workers, concurrency, cpu, memory, params, mutate | validate }

local checks = require "kubelua.checks"
local core = require "kubelua.core"
local kinds = require "kubelua.kinds"
local params = require "kubelua.params"
local saying = require "kubelua.saying"
local scheduling = require "kubelua.scheduling"
local suggest = require "kubelua.suggest"

local run = core.run

local M = {}

---@class kubelua.WebhookSpec
---@field name string                      its path, and the name of its configuration: "pod-defaults", "pods.example.com"
---@field resource string|string[]         what is looked at: "apps/v1/Deployment", "deploy", "v1/Pod/exec", or "*"
---@field operations? string[]             "CREATE", "UPDATE", "DELETE", "CONNECT"; { "CREATE", "UPDATE" } unless said
---@field subresources? string[]           of each resource, as well
---@field scope? "*"|"Namespaced"|"Cluster"
---@field namespaces? string[]             objects in these only
---@field namespace_selector? string|table "a=b", or matchLabels, matchExpressions of the object's namespace
---@field object_selector? string|table    "a=b", or matchLabels, matchExpressions of the object
---@field match_conditions? {name: string, expression: string}[]  expressions (CEL) that the API server asks
---@field match_policy? "Equivalent"|"Exact"
---@field reinvocation? "Never"|"IfNeeded" whether a mutating webhook is asked again after others changed the object
---@field failure_policy? "Fail"|"Ignore"  what the API server does when there is no decision; "Fail" unless said
---@field timeout? string|number           "10s" unless said, 30 s at most
---@field side_effects? "None"|"NoneOnDryRun"
---@field reads? string[]                  kinds that req:get and req:list see in the cache
---@field fields? table                    what of these is kept, by kind
---@field workers? integer                 threads
---@field concurrency? integer             requests in flight per worker
---@field cpu? string|number               processor time of one request between two waits: "100ms"
---@field memory? string|integer           what one worker's Lua state may hold: "8Mi"
---@field isolate? boolean                 its functions run in processes without files and network; its top level here, too
---@field params? table<string, any>       req.params: defaults, or rules for what a deployment may set (kubelua.Param)
---@field mutate? fun(obj: kubelua.draft, req: kubelua.AdmissionRequest): any, string?
---@field validate? fun(obj: kubelua.view, req: kubelua.AdmissionRequest): any, string?

---@class kubelua.Webhook
---@field name string
local NAME = "kubelua.Webhook"

local KEYS = {
  name = true, resource = true, operations = true, subresources = true, scope = true, namespaces = true,
  namespace_selector = true,
  object_selector = true, match_conditions = true, match_policy = true, reinvocation = true,
  failure_policy = true, timeout = true,
  side_effects = true, reads = true, fields = true, workers = true, concurrency = true, cpu = true,
  memory = true, isolate = true, params = true, mutate = true, validate = true,
}
local OPERATIONS = { "CREATE", "UPDATE", "DELETE", "CONNECT" }
-- A webhook's name in its configuration is a domain of three words at least.
local DOMAIN = ".webhooks.kubelua"
local TIMEOUT_MAX = 30

local fail = checks.fail

-- ---------------------------------------------------------------- the spec

local function check_name(name)
  if type(name) ~= "string" then
    core.blame(("kube.webhook: name must be a string, got %s"):format(type(name)))
  end
  local why = core.name_problem("dns1123_subdomain", name)
  if why then
    core.blame(("webhook %q: %s (it becomes a path, and the name of a configuration)"):format(name, why))
  end
end

local function one_of(self, key, x, words, default)
  if x == nil then return default end
  for _, word in ipairs(words) do if x == word then return x end end
  fail(self, "%s must be one of %s, got %s%s", key, table.concat(words, ", "), tostring(x),
    suggest.hint(x, words))
end

local function texts(self, key, list)
  if list == nil then return nil end
  if type(list) ~= "table" then fail(self, "%s must be a list of strings, got %s", key, type(list)) end
  for i, x in pairs(list) do
    if math.type(i) ~= "integer" or type(x) ~= "string" then
      fail(self, "%s must be a list of strings, got %s in it", key, tostring(x))
    end
  end
  return list
end

local function check_resources(self, spec)
  local list = spec.resource
  if type(list) == "string" then list = { list } end
  if type(list) ~= "table" or #list == 0 then
    fail(self, "resource is missing: the kinds it handles, such as \"v1/Pod\", { \"apps/v1/Deployment\", \z
      \"v1/Pod/exec\" } or \"*\"")
  end
  local subs = texts(self, "subresources", spec.subresources) or {}
  self.kinds = {}
  local seen = {}
  local function add(word)
    if not seen[word] then self.kinds[#self.kinds + 1] = word end
    seen[word] = true
  end
  for _, word in ipairs(list) do
    local kind, sub = word, nil
    if type(word) == "string" and word ~= "*" then
      local head, tail = word:match "^(.-%f[%u]%u%w*)/(.+)$"
      if head then kind, sub = head, tail end
    end
    if word ~= "*" then kind = checks.kind(self, "resource", kind) end
    if sub and not sub:find "^[%l*]+$" then
      fail(self, "resource: %q: a subresource must be a word such as \"scale\"", word)
    end
    add(sub and kind .. "/" .. sub or kind)
    for _, s in ipairs(subs) do
      if word == "*" then fail(self, "subresources: not possible with \"*\"; name the resources") end
      add(kind .. "/" .. s)
    end
  end
end

local function check_operations(self, list)
  list = texts(self, "operations", list) or { "CREATE", "UPDATE" }
  if #list == 0 then fail(self, "operations is empty: leave it out for CREATE and UPDATE") end
  for _, word in ipairs(list) do
    one_of(self, "operations", word, OPERATIONS)
    if self.mutating and word == "DELETE" then
      fail(self, "operations: an object of a DELETE cannot be mutated; use validate for it")
    end
  end
  self.operations = core.value(core.array(list), "operations")
end

-- One requirement of a label selector's text, as a LabelSelector has it; nil: it has no such thing.
local function requirement(text)
  local key, word, list = text:match "^(%S+) (%l+) %((.*)%)$"
  if key then
    local values = {}
    for value in list:gmatch "[^|]+" do values[#values + 1] = value end
    return { key = key, operator = word == "in" and "In" or "NotIn", values = values }
  end
  local name, sign, value = text:match "^([^=!<>]+)([=!]+)([^=]*)$"
  if name then return { key = name, operator = sign == "!=" and "NotIn" or "In", values = { value } } end
  if text:find "[<>]" then return nil end
  return { key = text:gsub("^!", ""), operator = text:find "^!" and "DoesNotExist" or "Exists" }
end

local function selector_of_text(self, key, text)
  local ok, parsed = pcall(core.selector, text)
  if not ok then fail(self, "%s: %s", key, checks.reason(parsed)) end
  local out = {}
  local flat = tostring(parsed):gsub("%b()", function(values) return (values:gsub(",", "|")) end)
  for part in flat:gmatch "[^,]+" do
    local one = requirement(part)
    if not one then fail(self, "%s: %q: numeric comparison is not supported here", key, part) end
    out[#out + 1] = one
  end
  if #out == 0 then fail(self, "%s is empty: leave it out for all", key) end
  return { matchExpressions = out }
end

local function selector(self, key, x)
  if x == nil then return nil end
  if type(x) == "string" then return selector_of_text(self, key, x) end
  if type(x) ~= "table" then
    fail(self,
      '%s must be "app=web", { matchLabels = {...} } or { matchExpressions = {...} }, got %s', key, type(x))
  end
  checks.keys(self, key, x, { "matchLabels", "matchExpressions" })
  return x
end

local function namespace_selector(self, spec)
  if spec.namespaces == nil then return selector(self, "namespace_selector", spec.namespace_selector) end
  if spec.namespace_selector ~= nil then
    fail(self, "namespaces and namespace_selector exclude each other; leave one out")
  end
  local list = texts(self, "namespaces", spec.namespaces)
  if #list == 0 then fail(self, "namespaces is empty: leave it out for all") end
  return { matchExpressions = { { key = "kubernetes.io/metadata.name", operator = "In", values = list } } }
end

local function check_conditions(self, list)
  if list == nil then return nil end
  if type(list) ~= "table" or #list == 0 then
    fail(self, "match_conditions must be a list of { name, expression }, got %s", type(list))
  end
  for i, c in ipairs(list) do
    local where = ("match_conditions[%d]"):format(i)
    if type(c) ~= "table" then fail(self, "%s must be { name, expression }, got %s", where, type(c)) end
    checks.keys(self, where, c, { "name", "expression" })
    if type(c.name) ~= "string" or type(c.expression) ~= "string" then
      fail(self, "%s needs name and expression, both strings", where)
    end
  end
  return list
end

local function check_function(self, spec)
  local which = spec.mutate and "mutate" or "validate"
  if (spec.mutate == nil) == (spec.validate == nil) then
    fail(self, "it needs either mutate = function(obj, req) or validate = function(obj, req)")
  end
  if type(spec[which]) ~= "function" then
    fail(self, "%s must be a function(obj, req), got %s", which, type(spec[which]))
  end
  self.mutating, self.decide = which == "mutate", spec[which]
end

local function check_timeout(self, x)
  local seconds = checks.duration(self, "timeout", x == nil and 10 or x)
  if seconds > TIMEOUT_MAX or seconds ~= math.floor(seconds) then
    fail(self, "timeout must be whole seconds from 1s to %ds, got %s", TIMEOUT_MAX, tostring(x))
  end
  return seconds
end

local function check_fields(self, fields)
  self.fields = {}
  if fields == nil then return end
  if type(fields) ~= "table" then
    fail(self, "fields must be lists of paths by kind: { [\"v1/Pod\"] = { \"spec.nodeName\" } }, got %s",
      type(fields))
  end
  local read = {}
  for _, kind in ipairs(self.reads or {}) do read[kind] = true end
  for _, key in ipairs(checks.sorted(fields)) do
    local kind = kinds.known(key)
    if not read[kind] then
      fail(self, "fields[%q]: this webhook does not handle that kind%s", tostring(key),
        suggest.hint(key, self.reads or {}))
    end
    read[kind] = nil
    for _, path in ipairs(texts(self, "fields", fields[key])) do
      local why = checks.no_path(path)
      if why then fail(self, "fields: %s", why) end
    end
    self.fields[#self.fields + 1] = { kind = kind, paths = fields[key] }
  end
end

--- Checks a spec and returns the webhook that a script returns, alone or beside controllers.
---@param spec kubelua.WebhookSpec
---@return kubelua.Webhook
function M.webhook(spec)
  if type(spec) ~= "table" then core.blame(("kube.webhook takes a table, got %s"):format(type(spec))) end
  spec = core.plain(spec, "kube.webhook")
  check_name(spec.name)
  local self = { what = "webhook", name = spec.name, webhook = true, functions = {}, watches = {},
    indexes = {}, owns = {} }
  for key in pairs(spec) do
    if not KEYS[key] then fail(self, "unknown key '%s'%s", tostring(key), suggest.hint(key, KEYS)) end
  end
  check_function(self, spec)
  check_resources(self, spec)
  check_operations(self, spec.operations)
  self.scope = one_of(self, "scope", spec.scope, { "*", "Namespaced", "Cluster" }, "*")
  local policy = one_of(self, "failure_policy", spec.failure_policy, { "Fail", "Ignore" }, "Fail")
  self.ignore = policy == "Ignore"
  self.timeout = check_timeout(self, spec.timeout)
  self.reads = checks.kinds(self, "reads", spec.reads)
  check_fields(self, spec.fields)
  self.workers = checks.count(self, "workers", spec.workers, 1, 256)
  self.concurrency = checks.count(self, "concurrency", spec.concurrency, 1, 10000)
  scheduling.check_budgets(self, spec)
  params.declare(self, spec.params)
  if spec.reinvocation ~= nil and not self.mutating then
    fail(self, "reinvocation is only for mutate; validate sees the object after all mutations")
  end
  local _, dots = spec.name:gsub("%.", "")
  self.asked_in = spec.namespaces
  self.entry = core.value({
    name = dots >= 2 and spec.name or spec.name .. DOMAIN,
    admissionReviewVersions = { "v1" },
    failurePolicy = policy,
    sideEffects = one_of(self, "side_effects", spec.side_effects, { "None", "NoneOnDryRun" }, "None"),
    timeoutSeconds = math.tointeger(self.timeout),
    matchPolicy = one_of(self, "match_policy", spec.match_policy, { "Equivalent", "Exact" }, "Equivalent"),
    reinvocationPolicy = self.mutating and one_of(self, "reinvocation", spec.reinvocation,
      { "Never", "IfNeeded" }, "Never") or nil,
    namespaceSelector = namespace_selector(self, spec) or core.object {},
    objectSelector = selector(self, "object_selector", spec.object_selector) or core.object {},
    matchConditions = check_conditions(self, spec.match_conditions),
  }, "the webhook")
  return checks.seal(NAME, self, { "name" }, ("webhook %q"):format(spec.name))
end

--- Whether x came from kube.webhook.
---@param x any
---@return boolean
function M.is_webhook(x) return M.opened(x) ~= nil end

--- What a webhook is made of, for the runtime; nil when x did not come from kube.webhook.
---@param x any
function M.opened(x) return checks.opened(NAME, x) end

--- The lines of `kubelua check`.
function M.describe(h, line)
  line(h.mutating and "mutates" or "validates", table.concat(h.kinds, ", "))
  line("operations", table.concat(core.copy(h.operations), ", "))
  if h.scope ~= "*" then line("scope", h.scope) end
  for _, part in ipairs { "namespace", "object" } do
    local chosen = h.entry[part .. "Selector"]
    if next(core.copy(chosen)) ~= nil then line(part .. "s", tostring(chosen)) end
  end
  for _, kind in ipairs(h.reads or {}) do line("reads", kind) end
  line("on failure", h.ignore and "allowed (Ignore)" or "denied (Fail)")
  line("timeout", ("%gs"):format(h.timeout))
  if h.workers then line("workers", h.workers) end
  scheduling.describe_budgets(h, line)
  params.describe(h, line)
end

-- ---------------------------------------------------------------- what a function may return or raise

---@class kubelua.Denial
---@field why string
---@field code integer
local DENIAL = "kubelua.Denial"

--- A denial of a webhook, returned or raised: the text that the user reads, and an HTTP code (403 unless
--- said).
---@param why string
---@param code integer?
---@return kubelua.Denial
function M.deny(why, code)
  if type(why) ~= "string" or why == "" then
    core.blame("kube.deny: the reason must be a string that the user can read")
  end
  if code ~= nil and (math.type(code) ~= "integer" or code < 400 or code > 599) then
    core.blame(("kube.deny: the code must be from 400 to 599, got %s"):format(tostring(code)))
  end
  return checks.seal(DENIAL, { why = why, code = code or 403 }, { "why", "code" }, why)
end

-- ---------------------------------------------------------------- a request

---@class kubelua.AdmissionRequest
---@field operation "CREATE"|"UPDATE"|"DELETE"|"CONNECT"
---@field old kubelua.view?         the object before; of a DELETE, the object
---@field user string
---@field groups string[]
---@field userinfo kubelua.view     all that is known of the user
---@field dry_run boolean
---@field namespace string?
---@field name string?              absent while generateName has made none
---@field uid string
---@field kind string               "apps/v1/Deployment"
---@field resource string           "deployments"
---@field subresource string?
---@field options kubelua.view?
---@field raw kubelua.view          the whole request
---@field log kubelua.Log
---@field live kubelua.Live         reads from the server
---@field params kubelua.view       of the webhook; an empty view when there are none
---@field secret fun(name: string): kubelua.Secret?   a secret param, as ctx.secret has it
local Request = {}

local function some(x) if x ~= nil and x ~= core.null and x ~= "" then return x end end

local function kind_text(k)
  local group = k("group")
  return (group and group ~= "" and group .. "/" or "") .. k("version") .. "/" .. k("kind")
end

local FIELDS = {
  operation = function(r) return r("operation") end,
  old = function(r) return some(r("oldObject")) end,
  user = function(r) return r("userInfo.username") or "" end,
  groups = function(r) return r("userInfo.groups") or {} end,
  userinfo = function(r) return r("userInfo") end,
  dry_run = function(r) return r("dryRun") == true end,
  namespace = function(r) return some(r("namespace")) end,
  name = function(r) return some(r("name")) end,
  uid = function(r) return r("uid") end,
  kind = function(r) return kind_text(r("kind")) end,
  resource = function(r) return r("resource.resource") end,
  subresource = function(r) return some(r("subResource")) end,
  options = function(r) return some(r("options")) end,
  raw = function(r) return r end,
}

--- From the cache, of a kind in `reads`: the object or nil.
---@param kind string
---@param namespace_or_key string
---@param name string?
---@return kubelua.view?
function Request:get(kind, namespace_or_key, name)
  return rawget(self, "ctx"):get(kind, namespace_or_key, name)
end

--- From the cache, of a kind in `reads`: a list of objects, sorted by key.
---@param kind string
---@param opts table?
---@return kubelua.view[]
function Request:list(kind, opts) return rawget(self, "ctx"):list(kind, opts) end

---@param kind string
---@param opts table?
---@return fun(): kubelua.view?
function Request:each(kind, opts) return rawget(self, "ctx"):each(kind, opts) end

--- A warning for the user, whether the request is allowed or not.
---@param fmt string
function Request:warn(fmt, ...)
  local warnings = rawget(self, "warnings")
  warnings[#warnings + 1] = saying.format("req:warn", fmt, ...)
end

---@return kubelua.time
function Request:now() return rawget(self, "ctx"):now() end

--- An Event about an object, given first; none on a dry run.
---@param about kubelua.view|kubelua.draft
---@param reason string|kubelua.EventNews
---@param fmt string
function Request:event(about, reason, fmt, ...)
  if self.dry_run then return end
  local e = require "kubelua.news".check("req:event", reason)
  run.event("Normal", e.reason, saying.format("req:event", fmt, ...),
    core.value(about, "req:event: the object"), e.action, e.related)
end

-- The members that it shares with ctx.
local OF_CTX = { log = true, live = true, params = true, secret = true }

local WRITES = { apply = true, create = true, update = true, delete = true, patch = true,
  patch_status = true }

Request.__name = "kubelua.AdmissionRequest"
Request.__index = function(self, name)
  local field = FIELDS[name]
  if field then return field(rawget(self, "request")) end
  local method = rawget(Request, name)
  if method then return method end
  if OF_CTX[name] then return rawget(self, "ctx")[name] end
  if WRITES[name] then
    core.blame(("req:%s: a webhook only decides; let a controller act when the object exists"):format(name))
  end
  local known = {}
  for key in pairs(OF_CTX) do known[#known + 1] = key end
  for key in pairs(FIELDS) do known[#known + 1] = key end
  for key in pairs(Request) do if not key:find "^__" then known[#known + 1] = key end end
  core.blame(("req.%s: unknown field%s"):format(tostring(name), suggest.hint(name, known)))
end
Request.__newindex = function(_, name)
  core.blame(("req.%s: the request cannot be changed; edit the object"):format(tostring(name)))
end

-- ---------------------------------------------------------------- deciding

local NONSENSE = "%s returned %s; it may return nothing or true (allowed), false or nil and a reason, or \z
  kube.deny(why, code)"

local function denied(self, why, code)
  return { allowed = false, message = why, code = code, warnings = rawget(self, "warnings") }
end

local function settle(h, req, r, why)
  local denial = checks.opened(DENIAL, r)
  if denial then return denied(req, denial.why, denial.code) end
  if r == false or r == nil and why ~= nil then
    return denied(req, why ~= nil and saying.shown(why) or nil, 403)
  end
  if r ~= nil and r ~= true then
    error(NONSENSE:format(h.mutating and "mutate" or "validate",
      core.is_view(r) and "an object" or "a " .. type(r)), 0)
  end
  return { allowed = true, warnings = rawget(req, "warnings") }
end

local function told(decision)
  if decision.warnings and #decision.warnings == 0 then decision.warnings = nil end
  run.answer(core.value(decision, "the decision"))
end

--- One request: tells the runtime what was decided.
function M.review(h, request, ctx)
  local req = setmetatable({ request = request, ctx = ctx, warnings = {} }, Request)
  local o = some(request("object"))
  if not h.mutating then return told(settle(h, req, h.decide(o or req.old, req))) end
  local draft = core.draft(o)
  local decision = settle(h, req, h.decide(draft, req))
  core.draft_close(draft)
  if decision.allowed then decision.patch = core.json_patch(o, draft) end
  told(decision)
end

--- What was raised: a denial is told and gives nothing; of a failure the text comes back, for the log.
---@return string?
function M.raised(h, e)
  local denial = checks.opened(DENIAL, e)
  if denial then
    run.answer(core.value({ allowed = false, message = denial.why, code = denial.code }, "the decision"))
    return nil
  end
  local text = saying.shown(e)
  run.answer(core.value({ failed = ("webhook %q failed: %s"):format(h.name, text) }, "the decision"))
  return text
end

return M
