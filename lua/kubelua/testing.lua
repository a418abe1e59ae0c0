-- testing.lua - kube.testing: scripts against an API server of the test's own, in time that only the test
-- moves.
--
--   local t = kube.testing.start { script = "hello.lua",
--     objects = { { kind = "v1/ConfigMap", name = "a", labels = { hello = "you" } } } }
--   t:settle()
--   assert.equal("Hello, you!", t:get("v1/ConfigMap", "a").data.greeting)
--
-- The controllers run as in life: the same workers, caches, queue and requests. But a key runs only inside
-- settle, advance and until_idle, one after the other, by name, after everything that came of the one
-- before has been heard of; so the same test runs the same way each time. Servers are kept for the next
-- test of the same definitions, and emptied.

local core = require "kubelua.core"
local manifests = require "kubelua.manifests"
local object = require "kubelua.object"
local options = require "kubelua.options"
local pure = require "kubelua.pure"
local stubs = require "kubelua.testing_http"
local suggest = require "kubelua.suggest"

local M = {}

-- A Thursday. Tests that print dates print the same ones forever.
local EPOCH = "2026-01-01T00:00:00Z"
-- The test's own client: faults do not meet it.
local AGENT = "kubelua-testing"
-- Virtual time that until_idle may let pass.
local PATIENCE = 600

---@class kubelua.Testing
---@field client kubelua.Client      a client of the test's own, in whose requests no ordered fault shows
---@field namespace string           where names without a namespace are
---@field private stage userdata
local T = {}
T.__index = T
T.__name = "kubelua.Testing"

---@class kubelua.TestingOptions
---@field script? string
---@field scripts? string[]
---@field source? string               the text of a script
---@field crds? string|string[]        files or directories of definitions
---@field objects? table               one, or a list
---@field files? string|string[]       of objects
---@field params? table                over those of the table
---@field namespace? string            where names without a namespace are
---@field watch_namespace? string      as kubelua run --namespace
---@field now? string|number|kubelua.time
---@field parked? boolean              a kind may be missing
---@field http? kubelua.TestingHttp    what ctx.http is answered: kube.testing.http()
---@field simulate? boolean|string|string[]  stand-ins for a cluster beside the scripts: true for all, or names
---@field settle? boolean              false: nothing has run when start returns

---@class kubelua.TestingFailure
---@field verb? string
---@field kind? string
---@field resource? string             plural, where the kind is not known
---@field subresource? string
---@field namespace? string
---@field name? string
---@field error? "conflict"|"not_found"|"already_exists"|"forbidden"|"unauthorized"|"invalid"|"throttled"|"gone"|"timeout"|"server"|"unavailable"
---@field code? integer
---@field reason? string
---@field message? string
---@field retry_after? integer          seconds
---@field times? integer

---@class kubelua.TestingFault: kubelua.TestingFailure
---@field verb? string|string[]
---@field group? string
---@field path? string                 a pattern of a shell: "/apis/apps/*"
---@field agent? string                how the User-Agent of a client begins
---@field except? string               and not of this one; the test's own client unless given
---@field probability? number
---@field lasts? string                how long the rule counts
---@field half? boolean                half of an answer comes, and the connection is closed
---@field stale? integer               a list is as it was so many changes ago
---@field cut? "end"|"reset"|"half"|"expired"  a watch ends, `events` and `after` say when
---@field stall? string                a watch is silent for that long, from the same moment on
---@field events? integer
---@field after? string
---@field lag? string                  frames of a watch come so much later
---@field bookmarks? string            "none", or by how much they are late
---@field twice? number                probability that an event comes again
---@field old? number                  ... that an older one follows
---@field hits? integer                of t:faults()

---@class kubelua.TestingRun
---@field controller string
---@field key string
---@field result "done"|"after"|"requeue"|"retry"|"conflict"|"error"|"fail"
---@field message string?             of an error, retry or fail
---@field after number?               seconds until the next run that it asked for
---@field attempt integer             failures in a row, plus one
---@field at kubelua.time             virtual

-- ---------------------------------------------------------------- stages: a server each, for one set of
-- definitions

local idle = {}          -- key of the definitions -> list of {stage, client}
local running = {}       -- those that were started and not stopped, with the number of their start
local starts = 0
local recorder           -- hears of every call, for `kubelua rbac --record`

-- What a test's own code writes is of the time of the test that was started last.
require "kubelua.conditions".clock = function()
  local last
  for t, number in pairs(running) do
    if not last or number > running[last] then last = t end
  end
  return last and last.stage:now() or os.time()
end

local function crds_key(list) return table.concat(list, "\0") end

local function open(crds, wall)
  local pool = idle[crds_key(crds)]
  local found = pool and table.remove(pool)
  if found then
    found.stage:set_now(wall)
    return found
  end
  local stage = core.stage(wall)
  for _, path in ipairs(crds) do
    if stage:load_path(path) == 0 then
      core.blame(("kube.testing: %s contains no definition"):format(path))
    end
  end
  stage:keep()
  return { stage = stage, key = crds_key(crds) }
end

local function give_back(slot)
  if not slot.stage:reset() then return end           -- kinds came or went: the collector has it
  slot.stage:runs()
  slot.stage:calls()
  idle[slot.key] = idle[slot.key] or {}
  table.insert(idle[slot.key], slot)
end

-- ---------------------------------------------------------------- starting

local OPTIONS = {
  script = "input", scripts = "table", source = "string", crds = "value", objects = "value", files = "value",
  params = "table",
  namespace = "string", watch_namespace = "string", now = "moment", parked = "boolean", settle = "boolean",
  http = "table", simulate = "value",
}

local function list_of(x)
  if x == nil then return {} end
  if type(x) ~= "table" then return { x } end
  return x
end

local here                 -- the directory of the test file, for `kubelua test`
--- Paths that are not absolute begin here; "" is the working directory.
---@param dir string
function M.directory(dir) here = dir end

local function path_of(path)
  if here and here ~= "" and path:sub(1, 1) ~= "/" then return here .. "/" .. path end
  return path
end

-- The file that called start, without its directory: what an inline script is called.
local function caller()
  for level = 3, 12 do
    local info = debug.getinfo(level, "S")
    if not info then break end
    local source = info.source:match "^@(.*)"
    if source and not source:find "^kubelua/" then return source end
  end
  return "test.lua"
end

-- "nodes,pods", or "" for all.
local function stand_ins(x)
  if x == true then return "" end
  local names = list_of(x)
  for _, name in ipairs(names) do
    if type(name) ~= "string" then names = {} end
  end
  if #names == 0 then
    core.blame "kube.testing.start: simulate is true for all stand-ins, or names such as { \"nodes\" }"
  end
  return table.concat(names, ",")
end

local function programs_of(opts)
  local list = {}
  for _, script in ipairs(list_of(opts.scripts or opts.script)) do
    if type(script) ~= "string" then
      core.blame(("kube.testing.start: script must be a path (its functions run in separate states); put \z
        source text into source = [[ ... ]]; got %s")
        :format(type(script)))
    end
    list[#list + 1] = { path = path_of(script) }
  end
  if opts.source then
    local source = caller()
    list[#list + 1] = { path = (source:match "^(.*/)" or "") .. "source of " .. source:match "[^/]*$",
      text = opts.source }
  end
  if opts.simulate then
    for _, name in ipairs(core.simulated(stand_ins(opts.simulate))) do
      list[#list + 1] = { path = name, simulated = true }
    end
  end
  return list
end

-- What an object without a namespace gets where its kind has one.
local function placed(t, o)
  o = core.value(object.normalize(o, "an object of kube.testing"), "the object")
  local api, kind = o("apiVersion"), o("kind")
  if o("metadata.namespace") or not t.client:resource(api .. "/" .. kind).namespaced then return o end
  local copy = core.copy(o)
  copy.metadata = copy.metadata or {}
  copy.metadata.namespace = t.namespace
  return core.value(copy, "the object")
end

--- Puts objects into the server as they are, status and all: tables in a manifest's form or in short (where
--- {} is an empty list if the kind has a list there), views, lists of them, or paths of YAML files and
--- directories.
---@param ... table|kubelua.view|string
function T:load(...)
  for _, o in ipairs { ... } do
    if type(o) == "string" then
      for _, d in ipairs(manifests.read(path_of(o))) do self.stage:load(placed(self, d.object)) end
    elseif type(o) == "table" and o[1] ~= nil then
      self:load(table.unpack(o))
    else
      self.stage:load(placed(self, o), true)
    end
  end
end

-- A client of the test's server, as another user where one is given.
local function client_of(t, user, groups)
  return require "kubelua.client".connect {
    server = t.stage:url(), user_agent = AGENT, field_manager = "test", cache_dir = false,
    on_warning = "none", namespace = t.namespace, as = user, as_groups = groups,
  }
end

local function missing(t)
  for _, c in ipairs(t.stage:controllers()) do
    -- a stand-in for kinds that nobody has waits forever
    if c.state == "parked" and not c.name:find "^simulate%-" then
      local remedy = c.message:find "has no" and '; give its definition with crds = "DIR"' or ""
      core.blame(("kube.testing.start: controller %q waits: %s%s (parked = true if that is intended)"):format(
        c.name, c.message, remedy))
    end
  end
end

--- Starts controllers on a server of their own; what they do at once is done when it returns (settle =
--- false: not yet).
---@param opts kubelua.TestingOptions
---@return kubelua.Testing
function M.start(opts)
  opts = options.check("kube.testing.start", opts, OPTIONS)
  if type(opts.script) == "table" then
    core.blame "kube.testing.start: put several scripts into scripts = { ... }"
  end
  if opts.http and not stubs.is(opts.http) then
    core.blame "kube.testing.start: http must be a result of kube.testing.http()"
  end
  local crds = {}
  for i, path in ipairs(list_of(opts.crds)) do crds[i] = path_of(path) end
  local slot = open(crds, core.time(opts.now or EPOCH):unix() + 0.0)
  local t = setmetatable({ slot = slot, stage = slot.stage, namespace = opts.namespace or "default", ran = {},
    called = {}, said = {}, others = {} }, T)
  starts = starts + 1
  running[t] = starts
  slot.client = slot.client or client_of(t)
  t.client = slot.client
  local ok, why = pcall(function()
    local programs, params = programs_of(opts), opts.params and core.value(opts.params, "params")
    slot.stage:define(programs, params)
    slot.client.core:forget()          -- a server that was used before may have more kinds now
    for _, path in ipairs(list_of(opts.files)) do t:load(path) end
    if opts.objects then t:load(opts.objects) end
    core.stage_logs()
    slot.stage:start(programs, params, opts.watch_namespace)
    local web = opts.http
    slot.stage:web(web and function(...) return web:reply(...) end)
    if opts.settle ~= false then slot.stage:settle() end
    if not opts.parked then missing(t) end
  end)
  if ok then return t end
  t:stop()
  error(why, 0)
end

--- Stops the controllers and releases their server. `kubelua test` does it after each test.
function T:stop()
  if not self.slot then return end
  running[self] = nil
  local slot = self.slot
  self.stage:stop()
  self.stage:web(nil)
  for _, client in ipairs(self.others) do client:close() end
  if recorder then
    for _, c in ipairs(self:calls()) do recorder(c, self.client) end
  end
  self.slot, self.stage = nil, nil
  give_back(slot)
end

T.__close = T.stop

--- A mark for stop_since: what starts from now on.
---@return integer
function M.mark() return starts end

--- Ends all that has started since a mark.
---@param mark integer
function M.stop_since(mark)
  local late = {}
  for t, number in pairs(running) do
    if number > mark then late[#late + 1] = t end
  end
  for _, t in ipairs(late) do t:stop() end
end

--- From now on fn hears of each request of each controller: its call and the client that can resolve its
--- kind.
---@param fn fun(call: table, client: kubelua.Client)?
function M.record(fn) recorder = fn end

-- ---------------------------------------------------------------- time

local function live(self)
  return self.stage or core.blame "this test has been stopped"
end

--- Runs keys until none is ready and all events have arrived. Time stands still, so failed keys and timers
--- wait.
---@return kubelua.Testing
function T:settle()
  live(self):settle()
  return self
end

--- Settles, and lets time pass until no key fails and no run sleeps; raises what was said last when that
--- takes longer than `limit`.
---@param limit kubelua.Duration?  of virtual time; "10m" unless said
---@return kubelua.Testing
function T:until_idle(limit)
  live(self):rest(limit or PATIENCE)
  return self
end

--- Moves the clock, stops at each moment when something is due, and settles there.
---@param duration kubelua.Duration
---@return kubelua.Testing
function T:advance(duration)
  live(self):advance(duration)
  return self
end

--- The present moment of the test's clock.
---@return kubelua.time
function T:now() return core.time(live(self):now()) end

--- How long until a key would run by itself, or a run that sleeps would go on; after settling. nil when
--- none would.
---@return number? seconds
function T:next() return (live(self):settle()) end

-- ---------------------------------------------------------------- what happened

local function numbers(entry, ...)
  for _, name in ipairs { ... } do
    entry[name] = entry[name] and tonumber(entry[name])
  end
  return entry
end

local LINE = { __tostring = function(l) return ("%s: %s %s"):format(l.level, l.message, l.fields) end }

local function take(self)
  for _, r in ipairs(live(self):runs()) do
    r.at = core.time(tonumber(r.at))
    self.ran[#self.ran + 1] = numbers(r, "after", "attempt")
  end
  for _, c in ipairs(self.stage:calls()) do self.called[#self.called + 1] = c end
  for _, l in ipairs(core.stage_logs()) do self.said[#self.said + 1] = setmetatable(l, LINE) end
end

local function only(list, fits)
  local out = {}
  for _, x in ipairs(list) do
    if fits(x) then out[#out + 1] = x end
  end
  return out
end

--- The runs so far, in order: of a key ("name" or "namespace/name") or of all; and forgets them when asked
--- to.
---@param key string?
---@param opts {controller?: string, forget?: boolean}?
---@return kubelua.TestingRun[]
function T:runs(key, opts)
  if type(key) == "table" then key, opts = nil, key end
  opts = options.check("t:runs", opts, { controller = "string", forget = "boolean" })
  take(self)
  local short = key and not key:find("/", 1, true) and self.namespace .. "/" .. key
  local found = only(self.ran, function(r)
    return (not key or r.key == key or r.key == short)
      and (not opts.controller or r.controller == opts.controller)
  end)
  if opts.forget then self.ran = {} end
  return found
end

--- Every request that controllers sent, reads of ctx.live and Events included: { controller, verb, kind,
--- subresource, namespace, name }.
---@return {controller: string, verb: string, kind: string, subresource: string?, namespace: string?, name: string?}[]
function T:calls()
  take(self)
  return self.called
end

--- Those that change something, without Events and without ctx.http (kube.testing.http has these).
---@return {controller: string, verb: string, kind: string, subresource: string?, namespace: string?, name: string?}[]
function T:writes()
  return only(self:calls(), function(c)
    return c.verb ~= "get" and c.verb ~= "list" and c.verb ~= "watch" and c.verb ~= "http"
      and c.kind ~= "events.k8s.io/v1/Event" and c.kind ~= "v1/Event"
  end)
end

--- What the controllers and the runtime logged: { level, message, fields }, tostring as a line; of one
--- level when asked.
---@param level "debug"|"info"|"warn"|"error"|nil
---@return {level: string, message: string, fields: string}[]
function T:logs(level)
  take(self)
  return only(self.said, function(l) return not level or l.level == level end)
end

--- The Events about objects: { type, reason, note, action, count, about = "Kind/name", controller }.
---@param about string?  only those about the object of this name
---@return {type: string, reason: string, note: string, action: string?, count: integer, about: string, controller: string}[]
function T:events(about)
  live(self):settle()
  local out = {}
  for _, e in ipairs(self.client:list "events.k8s.io/v1/Event") do
    if not about or e("regarding.name") == about then
      out[#out + 1] = { type = e.type, reason = e.reason, note = e("note"), action = e("action"),
        count = e("series.count") or 1,
        about = ("%s/%s"):format(e("regarding.kind"), e("regarding.name")),
        controller = e("reportingController"), at = e("eventTime") or "" }
    end
  end
  table.sort(out, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.reason .. a.note < b.reason .. b.note
  end)
  return out
end

local STORY_RUNS, STORY_LOGS = 12, 12

local function last(list, n)
  return table.move(list, math.max(1, #list - n + 1), #list, 1, {})
end

-- A key that fails in two ways in turn is two lines, not twelve.
local function each_once(lines)
  local short, times = {}, {}
  for _, line in ipairs(lines) do
    if not times[line] then short[#short + 1] = line end
    times[line] = (times[line] or 0) + 1
  end
  for i, line in ipairs(short) do
    if times[line] > 1 then short[i] = ("%s (%d times)"):format(line, times[line]) end
  end
  return short
end

--- What the running tests have to tell when one has failed: last runs, warnings and errors; all logs when
--- `all`.
---@param all boolean?
---@return string
function M.story(all)
  local out = {}
  for t in pairs(running) do
    for _, r in ipairs(last(t:runs(), all and math.huge or STORY_RUNS)) do
      out[#out + 1] = ("%s ran %s: %s%s"):format(r.controller, r.key, r.result,
        r.message and ": " .. r.message or r.after and (" (again in %gs)"):format(r.after) or "")
    end
    local said = only(t:logs(), function(l)
      return all or l.level == "warn" or l.level == "error" and not l.message:find "^reconcile failed"
    end)
    for _, l in ipairs(last(said, all and math.huge or STORY_LOGS)) do out[#out + 1] = tostring(l) end
  end
  return table.concat(each_once(out), "\n")
end

--- The present state of the controllers: { name, state, message, runs, errors }.
---@return {name: string, state: string, message: string?, runs: integer, errors: integer}[]
function T:controllers() return live(self):controllers() end

-- ---------------------------------------------------------------- faults

--- The value of a script's metric (kube.counter, kube.gauge, kube.histogram) with these labels; for a
--- histogram the sum and the number of observations; nil if there is none.
---@param name string
---@param labels? table<string, string|number|boolean>
---@return number? value
---@return integer? count       of a histogram
function T:metric(name, labels)
  local texts
  for label, value in pairs(labels or {}) do
    texts = texts or {}
    texts[label] = tostring(value)
  end
  local value, n = live(self):metric(name, texts)
  if value and n > 0 then return value, n end
  return value
end

local RULE = {
  verb = "value", kind = "string", group = "string", resource = "string", subresource = "string",
  namespace = "string", name = "string", path = "string", agent = "string", except = "string",
  probability = "number", times = "integer", lasts = "string", latency = "value", error = "string",
  code = "integer", reason = "string", message = "string", retry_after = "integer", half = "boolean",
  stale = "integer", cut = "string", events = "integer", after = "string", stall = "string", lag = "string",
  bookmarks = "string", twice = "number", old = "number",
}
local FAILURE = {}
for name in ("verb kind resource subresource namespace name error code reason message retry_after times")
  :gmatch "%S+" do
  FAILURE[name] = RULE[name]
end

-- The rule as the server reads it.
local function rule_of(self, what, given, known)
  local rule = {}
  for name, value in pairs(options.check(what, given, known)) do
    if name == "verb" and value == "apply" then value = "patch" end
    rule[name == "retry_after" and "retryAfter" or name] = value
  end
  if rule.kind then
    local r = self.client:resource(rule.kind)
    rule.kind, rule.resource, rule.group = nil, r.plural, r.group
  end
  rule.except = rule.except or AGENT
  return rule
end

local function add_faults(self, what, rules)
  local wrong = live(self):add_faults(rules)
  if wrong then core.blame(what .. ": " .. wrong) end
  return self
end

--- The next requests of controllers that match are answered with a failure: t:fail_next { verb = "patch",
--- kind = "v1/ConfigMap", error = "conflict", times = 2 }. `error` is one of the kinds of errors, or give
--- `code` and `reason`.
---@param failure kubelua.TestingFailure
---@return kubelua.Testing
function T:fail_next(failure)
  local rule = rule_of(self, "t:fail_next", failure, FAILURE)
  if not rule.error then rule.code = rule.code or 500 end
  rule.times = rule.times or 1
  return add_faults(self, "t:fail_next", rule)
end

--- Adds rules by which the server fails, stalls and lies to controllers, one or a list, with a `seed`:
--- t:faults { seed = 7, { verb = "update", error = "conflict", probability = 0.3 } }. They apply beside
--- earlier rules, until t:clear_faults(). Without an argument: returns the rules, each with its `hits`.
---@param rules? kubelua.TestingFault|kubelua.TestingFault[]|{seed: integer?}
---@return kubelua.Testing|kubelua.TestingFault[]
function T:faults(rules)
  if rules == nil then
    local all = live(self):faults()
    return all.rules
  end
  if type(rules) ~= "table" then
    core.blame("t:faults: expected a rule or a list of rules, got " .. type(rules))
  end
  if #rules == 0 and rules.seed == nil then
    return add_faults(self, "t:faults", rule_of(self, "t:faults", rules, RULE))
  end
  local body = { seed = rules.seed, rules = {} }
  for i, rule in ipairs(rules) do
    body.rules[i] = rule_of(self, ("t:faults: rule %d"):format(i), rule, RULE)
  end
  for name in pairs(rules) do
    if name ~= "seed" and math.type(name) ~= "integer" then
      core.blame(("t:faults: unknown option '%s'%s"):format(tostring(name),
        suggest.hint(name, { seed = true })))
    end
  end
  return add_faults(self, "t:faults", body)
end

--- Removes all rules; the events that they delayed arrive.
---@return kubelua.Testing
function T:clear_faults()
  live(self):clear_faults()
  return self
end

--- The number of failures of fail_next that have not happened yet.
---@return integer
function T:faults_left() return select(2, live(self):faults()) end

-- ---------------------------------------------------------------- objects

--- Each is the client's call of the same name. A write settles afterwards, so that what follows from it has
--- happened.
local READS = { "get", "list" }
local WRITES = { "apply", "create", "update", "patch", "patch_status", "update_status", "delete" }

for _, name in ipairs(READS) do
  T[name] = function(self, kind, ...)
    live(self)
    if name == "get" and select("#", ...) == 1 and type((...)) == "string" and not (...):find("/", 1, true)
      and self.client:resource(kind).namespaced then
      return self.client:get(kind, self.namespace, (...))
    end
    return self.client[name](self.client, kind, ...)
  end
end

for _, name in ipairs(WRITES) do
  T[name] = function(self, first, second, ...)
    live(self)
    local call = self.client[name]
    local result
    if name == "delete" and type(first) == "string" and type(second) == "string"
      and type((...)) ~= "string" and not second:find("/", 1, true)
      and self.client:resource(first).namespaced then
      result = call(self.client, first, self.namespace .. "/" .. second, ...)
    elseif type(first) == "table" and not core.is_view(first) then
      result = call(self.client, placed(self, first), second, ...)
    else
      result = call(self.client, first, second, ...)
    end
    self.stage:settle()
    return result
  end
end

--- The same test with another user for its calls: t:as("jane", "developers"):create { ... }. The server keeps
--- the user in CertificateSigningRequests, and webhooks see the user.
---@param user string
---@param ... string the user's groups; none: system:authenticated alone
---@return kubelua.Testing
function T:as(user, ...)
  live(self)
  local client = client_of(self, user, { ... })
  table.insert(self.others, client)
  return setmetatable({ client = client }, { __index = self })
end

-- ---------------------------------------------------------------- other servers

--- What ctx.http is answered in a test: see testing_http.lua.
M.http = stubs.http

-- ---------------------------------------------------------------- pure functions

---@class kubelua.Pure
---@field controllers table<string, kubelua.ControllerSpec>
---@field functions table<string, function>
---@field modules table<string, any>
---@field convert fun(object: table, version: string): kubelua.view
---@field round_trip fun(object: table)

--- A script in this state, to test its functions without a server: its controllers by name, and all
--- functions that they can reach, by name.
---@param script string
--- convert(object, version) is what the conversion of kube.crd makes of an object; round_trip(object) fails
--- when one that goes to another version of its kind comes back as another.
---@return kubelua.Pure
function M.pure(script) return pure.load(path_of(script)) end

--- The same of a running test.
---@param script string
function T.pure(_, script) return M.pure(script) end

--- What kube.testing is.
M.testing = M

return M
