-- scheduling.lua - the keys of a spec that say when and where a key runs: priority, serial, backoff,
-- own_writes, every, cron, leader, shard, on_reload, cpu, memory.

local checks = require "kubelua.checks"
local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

local fail = checks.fail

-- As core/run/spec.h has it: a change never waits for what was only listed.
local PRIORITY_MOST = 49
local DAY = 86400

-- A path or a function of the object.
local function text_of(self, key, x)
  if type(x) == "function" then return { fn = checks.number(self, x) } end
  if type(x) ~= "string" then return nil end
  local why = checks.no_path(x)
  if why then fail(self, "%s: %s", key, why) end
  return { path = x }
end

local function check_priority(self, x)
  if x == nil then return end
  if type(x) == "number" then
    self.priority = checks.count(self, "priority", x, -PRIORITY_MOST, PRIORITY_MOST)
    return
  end
  self.priority_of = text_of(self, "priority", x)
  if not self.priority_of then
    fail(self, "priority must be a number from %d to %d, a path such as \"spec.priority\" or a \z
      function(obj), got %s", -PRIORITY_MOST, PRIORITY_MOST, type(x))
  end
end

local function check_serial(self, x)
  if x == nil then return end
  self.serial = text_of(self, "serial", x)
  if not self.serial then
    fail(self, "serial must be a path such as \"spec.nodeName\" or a function(obj) that returns a \z
      string: runs with equal strings do not overlap; got %s", type(x))
  end
end

local BACKOFF = { "base", "max", "jitter", "give_up" }

local function check_backoff(self, b)
  if b == nil then return end
  if type(b) ~= "table" then
    fail(self, "backoff must be a table such as { base = \"5ms\", max = \"5m\", jitter = 0.1, give_up = 20 \z
      }, got %s", type(b))
  end
  checks.keys(self, "backoff", b, BACKOFF)
  local base, most = checks.duration(self, "backoff.base", b.base),
    checks.duration(self, "backoff.max", b.max)
  if (base or 0.005) > (most or 1000) then
    fail(self, "backoff: base (%gs) is more than max (%gs)", base or 0.005, most or 1000)
  end
  local jitter = b.jitter
  if jitter ~= nil and (type(jitter) ~= "number" or jitter < 0 or jitter > 1) then
    fail(self, "backoff.jitter must be a number from 0 to 1, the random share of a delay, got %s",
      tostring(jitter))
  end
  self.backoff = { base = base or 0.005, max = most or 1000.0, jitter = (jitter or 0.1) + 0.0 }
  self.give_up = checks.count(self, "backoff.give_up", b.give_up, 1, 1000000)
end

local function check_own_writes(self, x)
  if x == nil or x == true then return end
  if x == false then
    self.own_writes = -1.0
  else
    self.own_writes = checks.duration(self, "own_writes", x)
  end
end

local function check_cron(self, x)
  if x == nil then return end
  if type(x) == "string" then x = { x } end
  if type(x) ~= "table" or #x == 0 then
    fail(self, "cron must be a string such as \"0 3 * * *\" or a list of them, got %s", type(x))
  end
  checks.keys(self, "cron", x, {}, true)
  self.cron = {}
  for i, text in ipairs(x) do
    if type(text) ~= "string" then
      fail(self, "cron[%d] must be a string such as \"0 3 * * *\", got %s", i, type(text))
    end
    local why = core.cron_problem(text)
    if why then fail(self, "%s", why) end
    self.cron[i] = text
  end
end

local function check_leader(self, x)
  if x == nil then return end
  if x ~= true and x ~= false and x ~= "own" then
    fail(self, "leader must be true (runs where the process leads), false (runs in every replica) or \z
      \"own\" (its own lease), got %s", tostring(x))
  end
  self.leader = x == true and "manager" or x == false and "none" or "own"
end

local function word(self, where, x, words)
  for _, known in ipairs(words) do if x == known then return x end end
  fail(self, "%s must be %q or %q, got %s%s", where, words[1], words[2], tostring(x),
    type(x) == "string" and suggest.hint(x, words) or "")
end

-- { by = "namespace", caches = "own" }
local function check_shard_table(self, x)
  checks.keys(self, "shard", x, { "by", "caches" })
  self.shard = word(self, "shard.by", x.by, { "namespace", "key" })
  if x.caches == nil then return end
  self.shard_own = word(self, "shard.caches", x.caches, { "own", "all" }) == "own" or nil
  if self.shard_own and self.shard == "key" then
    fail(self, "shard: caches = \"own\" needs by = \"namespace\": the API server can list a namespace, \z
      but not a part of the keys")
  end
end

local function check_shard(self, x)
  if x == nil then return end
  if type(x) == "table" then return check_shard_table(self, x) end
  if x ~= true and x ~= false and x ~= "namespace" then
    fail(self, "shard must be true (by key), \"namespace\" (a namespace stays together), { by = \z
      \"namespace\", caches = \"own\" } or false, got %s%s", tostring(x),
      type(x) == "string" and suggest.hint(x, { "namespace" }) or "")
  end
  self.shard = x == true and "key" or x == false and "never" or x
end

local ON_RELOAD = { all = true, failing = true, none = true }

local function check_on_reload(self, x)
  if x == nil then return end
  if not ON_RELOAD[x] then
    fail(self, "on_reload must be \"all\", \"failing\" or \"none\": the keys that run again after a \z
      reload; got %s%s", tostring(x),
      type(x) == "string" and suggest.hint(x, ON_RELOAD) or "")
  end
  self.on_reload = x
end

-- "8Mi", "500k", or bytes.
local function check_memory(self, x)
  if x == nil then return end
  local ok, q = pcall(core.qty, x)
  local bytes = ok and q:value()
  if not bytes or bytes < 1 << 20 then
    fail(self, "memory must be an amount of at least 1Mi such as \"8Mi\": the library alone uses half of \z
      that; got %s%s", tostring(x),
      type(x) == "string" and x:find "[mM][bB]$" and suggest.hint("Mi", { "Mi" }) or "")
  end
  self.memory = bytes
end

-- A limit below a millisecond would end runs because of a cold cache.
local function check_cpu(self, x)
  self.cpu = checks.duration(self, "cpu", x)
  if self.cpu and self.cpu < 0.001 then
    fail(self, "cpu must be at least a millisecond of processor time such as \"100ms\", got %s",
      type(x) == "number" and ("%g (seconds)"):format(x) or ("%q"):format(x))
  end
end

--- What a run may spend; of webhooks, too.
function M.check_budgets(self, spec)
  check_cpu(self, spec.cpu)
  check_memory(self, spec.memory)
  if spec.isolate ~= nil and type(spec.isolate) ~= "boolean" then
    fail(self, "isolate must be true or false, got %s", type(spec.isolate))
  end
  self.isolate = spec.isolate
end

--- Checks those keys and puts them into self.
function M.check(self, spec)
  check_priority(self, spec.priority)
  check_serial(self, spec.serial)
  check_backoff(self, spec.backoff)
  check_own_writes(self, spec.own_writes)
  self.every = checks.duration(self, "every", spec.every)
  if self.every and self.every < 1 then
    fail(self, "every must be at least one second, got %s; use requeue_after for shorter delays",
      tostring(spec.every))
  end
  if self.every and self.every > 365 * DAY then
    fail(self, "every must be at most a year, got %s", tostring(spec.every))
  end
  check_cron(self, spec.cron)
  check_leader(self, spec.leader)
  check_shard(self, spec.shard)
  check_on_reload(self, spec.on_reload)
  M.check_budgets(self, spec)
end

--- Their lines in the text of `kubelua check`; line(word, text).
function M.describe_budgets(c, line)
  if c.cpu then line("cpu", ("%gs between two waits"):format(c.cpu)) end
  if c.isolate then line("isolate", "in its own processes") end
  if c.memory then line("memory", ("%d bytes per worker"):format(c.memory)) end
end

--- Adds its lines to the text of `kubelua check`; line(word, text).
function M.describe(c, line)
  if c.priority then
    line("priority", c.priority)
  elseif c.priority_of then
    line("priority", c.priority_of.path or "a function")
  end
  if c.serial then line("serial", c.serial.path or "a function") end
  if c.backoff then
    line("backoff", ("%gs to %gs, jitter %g%s"):format(c.backoff.base, c.backoff.max, c.backoff.jitter,
      c.give_up and (", gives up after %d failures"):format(c.give_up) or ""))
  end
  if c.own_writes then
    line("own writes", c.own_writes < 0 and "not waited for"
      or ("waited for, at most %gs"):format(c.own_writes))
  end
  if c.every then line("every", ("%gs"):format(c.every)) end
  for _, text in ipairs(c.cron or {}) do line("cron", text) end
  if c.leader then
    line("leader", ({ manager = "with the process", none = "runs in every replica",
      own = "its own lease" })[c.leader])
  end
  if c.shard then
    line("shard", ({ key = "by key", namespace = "by namespace", never = "not sharded" })[c.shard]
      .. (c.shard_own and "; caches hold a replica's own namespaces" or ""))
  end
  if c.on_reload then
    line("on reload", ({ all = "every key runs again", failing = "keys that failed run again",
      none = "no key runs again" })[c.on_reload])
  end
  M.describe_budgets(c, line)
end

return M
