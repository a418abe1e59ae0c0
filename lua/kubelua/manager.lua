-- manager.lua - kube.manager: controllers, informers and a loop in a program.
--
--   local m <close> = kube.manager { client = c, controllers = { "web.lua", kube.controller { ... } } }
--   m:start()
--   m:run()                          -- or m:step(0) when m:fd() is readable, in a loop of another library
--
-- Controllers run as under kubelua run: in closed states, on threads of their own, whether the program steps
-- or not; those that the program made go there as scripts (carry.lua). What is for the program itself runs
-- inside m:step, on its thread: handlers of its informers, and on_change.

local carry = require "kubelua.carry"
local controller = require "kubelua.controller"
local core = require "kubelua.core"
local options = require "kubelua.options"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.Manager
---@field private core userdata
---@field private bell userdata
local Manager = {}

-- A file, as `kubelua run` takes it; the text of one; or what kube.controller returned.
---@alias kubelua.ManagerScript string|kubelua.ManagerSource|kubelua.Controller|kubelua.Controller[]

---@class kubelua.ManagerOptions
---@field client kubelua.Client
---@field controllers? kubelua.ManagerScript[]   files, texts, and what kube.controller returned
---@field informers? kubelua.Informers|kubelua.Informers[]   whose handlers m:step runs; started with it
---@field on_change? fun(m: kubelua.Manager)   the state of a controller may be another one
---@field params? table                over those of the scripts
---@field namespace? string            only this one
---@field workers? integer             of each controller, whatever it says
---@field grace? kubelua.Duration      what m:stop leaves to reconciles under way; "30s" unless said
---@field dry_run? boolean|"server"    nothing is written
---@field election? kubelua.ManagerElection
---@field metrics? string              "127.0.0.1:8080": /metrics is served there
---@field health? string               likewise /healthz, /livez and /readyz
---@field log? "debug"|"info"|"warn"|"error"   to stderr, for the whole process; nothing unless said

---@class kubelua.ManagerSource
---@field name string                  stands in messages
---@field source string                the text of a script

---@class kubelua.ManagerElection
---@field name string                  of the Lease
---@field namespace? string            the context's unless said
---@field identity? string             host_pid_random unless said
---@field lease? kubelua.Duration      "15s"
---@field renew? kubelua.Duration      "10s"
---@field retry? kubelua.Duration      "2s"

---@class kubelua.ManagedController
---@field name string
---@field state "waiting for caches"|"waiting for leadership"|"running"|"paused"|"parked"|"stopped"
---@field message string?              why
---@field generation integer           of its script
---@field runs integer
---@field errors integer
---@field ready integer                keys that wait for a worker
---@field delayed integer              keys that wait for a time
---@field running integer              keys that are reconciled
---@field failing integer              keys whose last run failed

local OPTIONS = {
  client = "table", controllers = "table", informers = "table", on_change = "function", params = "table",
  namespace = "string", workers = "integer", grace = "duration", dry_run = "path", election = "table",
  metrics = "string", health = "string", log = "string",
}
local ELECTION = { name = "string", namespace = "string", identity = "string", lease = "duration",
  renew = "duration", retry = "duration" }
local SOURCE = { name = "string", source = "string" }

-- The script of what kube.controller returned, a list of it for several kinds; nil when it is something else.
local function carried(entry)
  local c = controller.opened(entry)
  if c then return carry.script(c.name, c.given, c.manager and { c.resource } or c.resource) end
  if type(entry) ~= "table" or getmetatable(entry) ~= nil then return nil end
  local kinds, given = {}, nil
  for i, each in ipairs(entry) do
    local of = controller.opened(each)
    if not of or given and of.given ~= given then return nil end
    kinds[i], given = of.resource, of.given
  end
  return given and carry.script(given.name, given, kinds)
end

local function scripts_of(list)
  local out = {}
  for i, entry in ipairs(list or {}) do
    local script = carried(entry)
    if script then
      out[i] = script
    elseif type(entry) == "string" then
      out[i] = { path = entry }
    elseif type(entry) == "table" and entry.source ~= nil then
      options.check(("kube.manager: controllers[%d]"):format(i), entry, SOURCE)
      if not entry.name then
        core.blame(("kube.manager: controllers[%d]: give it a name, which messages use"):format(i))
      end
      out[i] = { path = entry.name, text = entry.source }
    else
      core.blame(("kube.manager: controllers[%d] must be a file, what kube.controller returned, or \z
        { name =, source = }, got %s"):format(i, type(entry)))
    end
  end
  return out
end

local function informers_of(x)
  if x == nil then return {} end
  local list = getmetatable(x) and { x } or x
  for i, f in ipairs(list) do
    if type(f) ~= "table" or (getmetatable(f) or {}).__name ~= "kubelua.Informers" then
      core.blame(("kube.manager: informers[%d] must be what kube.informers gives, got %s"):format(i, type(f)))
    end
  end
  return list
end

local function checked(opts)
  opts = options.check("kube.manager", opts, OPTIONS)
  local c = opts.client
  if type(c) ~= "table" or c.core == nil then
    core.blame "kube.manager: client is missing: kube.manager { client = kube.connect(), ... }"
  end
  if opts.workers and opts.workers < 1 then
    core.blame(("kube.manager: workers must be at least 1, got %d"):format(opts.workers))
  end
  if type(opts.dry_run) == "string" and opts.dry_run ~= "server" then
    core.blame(("kube.manager: dry_run must be true or \"server\", got %q"):format(opts.dry_run))
  end
  if opts.election then
    options.check("kube.manager: election", opts.election, ELECTION)
    if not opts.election.name then
      core.blame "kube.manager: election: name is missing: replicas compete for the Lease of this name"
    end
  end
  return opts
end

local MANAGER = { __index = Manager, __name = "kubelua.Manager" }

--- A manager that runs controllers of a cluster in this process. A client has one manager at most.
---@param opts kubelua.ManagerOptions
---@return kubelua.Manager
function M.manager(opts)
  opts = checked(opts)
  local scripts, informers = scripts_of(opts.controllers), informers_of(opts.informers)
  if opts.log then core.log_to_stderr(opts.log) end
  local order = {}
  for name in pairs(OPTIONS) do order[name] = opts[name] end
  order.params = opts.params and core.value(opts.params, "params")
  local bell = core.bell()
  local self = setmetatable({ core = core.manager(opts.client.core, bell, order), bell = bell,
    informers = informers, on_change = opts.on_change or false, stopped = false }, MANAGER)
  local ok, why = pcall(self.core.add, self.core, scripts)
  if ok then return self end
  self:stop()                          -- the client may have another one
  error(why, 0)
end

--- Starts the controllers and the informers without waiting; m:ready() tells when they run.
function Manager:start()
  self.core:start()
  for _, f in ipairs(self.informers) do
    f:start()
    f.core:ring(self.bell)
  end
  return self
end

-- Handles what is pending; returns how much that was.
local function turn(self)
  local count, due = 0, math.huge
  self.bell:hush()
  if self.core:changed() then
    count = 1
    if self.on_change then self.on_change(self) end
  end
  for _, f in ipairs(self.informers) do
    if not f.closed then
      count = count + f:poll()
      due = math.min(due, f.due)
    end
  end
  self.bell:alarm(due)
  return count
end

-- If a handler raises, the error is passed on, and what still waits rings the bell again.
local function safe_turn(self)
  local ok, count = pcall(turn, self)
  if ok then return count end
  for _, f in ipairs(self.informers) do
    if not f.closed then f.core:ring(self.bell) end
  end
  error(count, 0)
end

--- Runs the pending work of the program's own thread: handlers of its informers, and on_change. If there is
--- none, it waits for some, at most `timeout` (forever when absent). Raises the errors of handlers.
---@param timeout kubelua.Duration?
---@return integer count  how much there was; 0 when the time is over
function Manager:step(timeout)
  local deadline = timeout and core.monotonic() + core.duration(timeout) or math.huge
  local count = safe_turn(self)
  while count == 0 and not self.stopped do
    local left = deadline - core.monotonic()
    if self.bell:wait(math.max(left, 0)) then return safe_turn(self) end
    if left <= 0 then break end
  end
  return count
end

--- A descriptor for a loop of another library: when it is readable, call m:step(0). It is the manager's: do
--- not read or close it.
---@return integer
function Manager:fd() return self.bell:fd() end

--- Steps until the time is over, or a handler calls m:stop().
---@param timeout kubelua.Duration?  forever when absent
function Manager:run(timeout)
  local deadline = timeout and core.monotonic() + core.duration(timeout) or math.huge
  while not self.stopped do
    local left = deadline - core.monotonic()
    if left <= 0 then return end
    self:step(left < math.huge and left or nil)
  end
end

--- Whether each controller runs, or waits for leadership.
---@return boolean
function Manager:ready() return self.core:ready() end

--- Whether this process holds the leases that its controllers need; true without an election.
---@return boolean
function Manager:leading() return self.core:leading() end

--- The state of each controller.
---@return kubelua.ManagedController[]
function Manager:controllers() return self.core:controllers() end

--- Loads the files again: a changed file is the next generation of its controllers, a file that fails is
--- refused, and the old logic runs on.
---@return {script: string, result: "taken"|"unchanged"|"refused", message: string?}[]
function Manager:reload() return self.core:reload() end

--- The metrics of /metrics, in Prometheus' text format.
---@return string
function Manager:metrics() return self.core:metrics() end

--- The bound addresses of /metrics and the probes; nil if not served.
---@return string? metrics, string? health
function Manager:addresses() return self.core:addresses() end

--- Stops the controllers: no new keys run, running reconciles may finish within `grace`, and leases are given
--- back. The call waits for that, at most a few seconds longer than `grace`. ^C interrupts only the wait: the
--- manager goes on stopping, and another m:stop() waits again. The informers belong to the program and stay.
function Manager:stop()
  self.stopped = true
  repeat until self.core:stop()
end

MANAGER.__close = Manager.stop

setmetatable(Manager, { __index = function(_, name)
  if type(name) ~= "string" or name:find "^__" then return nil end
  core.blame(("m:%s: unknown method of a manager%s"):format(name, suggest.hint(name, Manager)))
end })

return M
