-- metrics.lua - kube.counter, kube.gauge and kube.histogram: metrics of a script, in /metrics beside those of
-- the runtime.
--
--   local made = kube.counter { name = "made_total", help = "Records made.", labels = { "zone" } }
--   ...
--   made:inc(1, { zone = "eu" })
--
-- They are declared at the top level of a script, so that they are known before it runs. Their values are in
-- C and outlive reloads (core/metrics/custom.h).

local checks = require "kubelua.checks"
local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local run = core.run

local M = {}

---@class kubelua.MetricOptions
---@field name string          as Prometheus wants it, such as "dns_records_made_total"
---@field help string          one line
---@field labels? string[]     their names; every call gives all of them
---@field series? integer      how many there may be, 1000 by default; what is beyond is dropped and counted

---@class kubelua.HistogramOptions: kubelua.MetricOptions
---@field buckets? number[]    upper bounds, ascending; Prometheus' own, of 5 ms to 10 s, by default

local KEYS = { name = true, help = true, labels = true, series = true }
local HISTOGRAM_KEYS = { buckets = true }
for key in pairs(KEYS) do HISTOGRAM_KEYS[key] = true end

local SERIES, SERIES_MAX = 1000, 10000
local METRICS_MAX, LABELS_MAX, BUCKETS_MAX = 200, 10, 50
-- Characters: both stand in /metrics.
local NAME_MAX, HELP_MAX = 200, 1000

-- prometheus.DefBuckets of client_golang
local BUCKETS = { .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10 }

-- Names that the runtime's own metrics have.
local OURS = {
  "kubelua_", "controller_runtime_", "workqueue_", "rest_client_", "leader_election_", "certwatcher_",
  "process_",
}

local fail = checks.fail

local declared, count, closed = {}, 0, false

-- A program, such as a test that loads a script: it may declare metrics, but nothing is counted.
local program = core.connect ~= nil

--- The script is loaded: from now on nothing can be declared.
function M.close() closed = true end

-- ---------------------------------------------------------------- declaring

local function check_name(d)
  if type(d.name) ~= "string" or not d.name:find "^[%a_:][%w_:]*$" then
    fail(d, "a metric's name has letters, digits and _, such as \"dns_records_made_total\"")
  end
  if #d.name > NAME_MAX then
    fail({ what = d.what, name = d.name:sub(1, 20) .. "..." }, "a name has at most %d characters, got %d",
      NAME_MAX, #d.name)
  end
  for _, prefix in ipairs(OURS) do
    if d.name:sub(1, #prefix) == prefix then
      fail(d, "names that start with %s are reserved for kubelua", prefix)
    end
  end
  if declared[d.name] and not program then
    fail(d, "it is declared twice; declare it once, in a module that others require")
  end
end

-- A histogram has samples of these names, so no other metric may have one of them.
local SAMPLES = { "_bucket", "_sum", "_count" }

local function check_samples(d)
  for _, suffix in ipairs(SAMPLES) do
    local sample, owner = d.name .. suffix, d.name:match("^(.+)" .. suffix .. "$")
    if owner and declared[owner] and declared[owner].type == "histogram" then
      fail(d, "the histogram %s has samples of this name; rename one of the two", owner)
    end
    if d.type == "histogram" and declared[sample] then
      fail(d, "its samples %s would have the name of another metric; rename one of the two", sample)
    end
  end
end

-- A copy of the list, since the script keeps the one it gave.
local function checked_list(d, key, list, most, check)
  if type(list) ~= "table" then fail(d, "%s must be a list, got %s", key, type(list)) end
  local copy = {}
  for i in pairs(list) do
    if math.type(i) ~= "integer" then fail(d, "%s must be a list; it has a %s", key, tostring(i)) end
  end
  if #list > most then fail(d, "%s: got %d, at most %d are allowed", key, #list, most) end
  for i = 1, #list do
    copy[i] = list[i]
    check(("%s[%d]"):format(key, i), copy[i], copy[i - 1])
  end
  return copy
end

local function check_labels(d, labels)
  d.known = {}
  d.labels = checked_list(d, "labels", labels, LABELS_MAX, function(where, label)
    if type(label) ~= "string" or not label:find "^[%a_][%w_]*$" or label:sub(1, 2) == "__" then
      fail(d, "%s: a label's name has letters, digits and _, got %s", where, tostring(label))
    end
    if label == "le" then fail(d, "%s: \"le\" is the label of a histogram's buckets", where) end
    if d.known[label] then fail(d, "%s: %s is listed twice", where, label) end
    d.known[label] = true
  end)
end

local function check_buckets(d, buckets)
  d.buckets = checked_list(d, "buckets", buckets, BUCKETS_MAX, function(where, bound, below)
    if type(bound) ~= "number" or bound ~= bound or math.abs(bound) == math.huge then
      fail(d, "%s must be a number, got %s (the bucket for larger values is implied)", where,
        tostring(bound))
    end
    if below and bound <= below then fail(d, "%s is %s, after %s: they must ascend", where, bound, below) end
  end)
  if #d.buckets == 0 then fail(d, "buckets must be a list of numbers") end
end

local function declare(kind, options, keys)
  if type(options) ~= "table" then
    core.blame(("kube.%s takes a table, { name = ..., help = ... }, got %s"):format(kind,
      options == nil and "nothing" or "a " .. type(options)))
  end
  local d = { what = kind, type = kind, name = options.name, help = options.help }
  if closed then
    fail(d, "call it at the top level of a script, so that it exists before the first run")
  end
  checks.keys(d, "kube." .. kind, options, keys)
  check_name(d)
  if not program then check_samples(d) end
  if type(d.help) ~= "string" or d.help == "" or d.help:find "%c" then
    fail(d, "help must be one line that describes the metric")
  end
  if #d.help > HELP_MAX then fail(d, "help has at most %d characters, got %d", HELP_MAX, #d.help) end
  check_labels(d, options.labels or {})
  if kind == "histogram" then check_buckets(d, options.buckets or BUCKETS) end
  d.series = options.series or SERIES
  if math.type(d.series) ~= "integer" or d.series < 1 or d.series > SERIES_MAX then
    fail(d, "series must be a whole number from 1 to %d, got %s", SERIES_MAX, tostring(d.series))
  end
  count = count + 1
  if count > METRICS_MAX then fail(d, "a script may have %d metrics", METRICS_MAX) end
  declared[d.name] = d
  return d
end

--- What the script declares, by name, as a view; nil for nothing.
function M.declared()
  if next(declared) == nil then return nil end
  local all = {}
  for name, d in pairs(declared) do
    all[name] = {
      type = d.type, help = d.help, series = d.series, labels = core.array(d.labels), buckets = d.buckets,
    }
  end
  return core.value(all, "metrics")
end

--- Lines of `kubelua check`.
function M.describe(say)
  for _, name in ipairs(checks.sorted(declared)) do
    local d = declared[name]
    local labels = #d.labels > 0 and "{" .. table.concat(d.labels, ",") .. "}" or ""
    say("metric", ("%s%s, a %s: %s"):format(name, labels, d.type, d.help))
  end
end

-- ---------------------------------------------------------------- counting

local handles = setmetatable({}, { __mode = "k" })

local function opened(self, kind, method)
  local d = handles[self]
  if not d or d.type ~= kind then
    core.blame(("call %s.%s with a colon: name:%s(...)"):format(kind, method, method))
  end
  return d
end

-- The declaration behind self, and the amount that the call gives.
local function given(self, kind, method, x)
  local d = opened(self, kind, method)
  if type(x) == "table" then
    fail(d, "%s: give the number first, then the labels: name:%s(1, { ... })", method, method)
  end
  if type(x) ~= "number" or x ~= x or math.abs(x) == math.huge then
    fail(d, "%s: expected a number, got %s", method, type(x) == "number" and tostring(x) or type(x))
  end
  return d, x
end

-- The same for a call whose amount is 1 by default.
local function one_given(self, kind, method, x) return given(self, kind, method, x == nil and 1 or x) end

-- All labels, as texts; nil for none.
local function labels_of(d, method, labels)
  if labels == nil then labels = {} end
  if type(labels) ~= "table" then
    fail(d, "%s: labels must be a table such as { zone = \"eu\" }, got %s", method, type(labels))
  end
  local texts
  for name, value in pairs(labels) do
    if not d.known[name] then
      fail(d, "%s: there is no label %s%s", method, tostring(name), suggest.hint(tostring(name), d.known))
    end
    local kind = type(value)
    if kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
      fail(d, "%s: the label %s must be a string, a number or a boolean, got %s", method, name, kind)
    end
    texts = texts or {}
    texts[name] = tostring(value)
  end
  for _, name in ipairs(d.labels) do
    if not (texts and texts[name]) then
      fail(d, "%s: the label %s is missing; each call gives all of them", method, name)
    end
  end
  return texts
end

local function record(d, act, x, method, labels)
  local texts = labels_of(d, method, labels)
  if not program then run.count(d.name, act, x, texts) end
end

---@class kubelua.Counter   only grows
local Counter = {}

--- Adds, 1 by default.
---@param by? number
---@param labels? table<string, string|number|boolean>
function Counter:inc(by, labels)
  local d, n = one_given(self, "counter", "inc", by)
  if n < 0 then
    fail(d, "inc: a counter only grows, got %s; use kube.gauge for values that go up and down", n)
  end
  record(d, "add", n, "inc", labels)
end

---@class kubelua.Gauge     goes up and down
local Gauge = {}

---@param value number
---@param labels? table<string, string|number|boolean>
function Gauge:set(value, labels)
  local d, n = given(self, "gauge", "set", value)
  record(d, "set", n, "set", labels)
end

--- Adds, 1 by default.
---@param by? number
---@param labels? table<string, string|number|boolean>
function Gauge:inc(by, labels)
  local d, n = one_given(self, "gauge", "inc", by)
  record(d, "add", n, "inc", labels)
end

--- Takes off, 1 by default.
---@param by? number
---@param labels? table<string, string|number|boolean>
function Gauge:dec(by, labels)
  local d, n = one_given(self, "gauge", "dec", by)
  record(d, "add", -n, "dec", labels)
end

--- Removes the series with these labels, such as that of a deleted object.
---@param labels? table<string, string|number|boolean>
function Gauge:remove(labels)
  local d = opened(self, "gauge", "remove")
  record(d, "forget", 0, "remove", labels)
end

---@class kubelua.Histogram   how large something was, how often
local Histogram = {}

---@param value number
---@param labels? table<string, string|number|boolean>
function Histogram:observe(value, labels)
  local d, n = given(self, "histogram", "observe", value)
  record(d, "observe", n, "observe", labels)
end

local METHODS = { counter = Counter, gauge = Gauge, histogram = Histogram }

local function handle(d)
  local methods = METHODS[d.type]
  local h = setmetatable({}, {
    __name = "kubelua." .. d.type,
    __metatable = "kubelua." .. d.type,
    __index = function(_, name)
      local f = methods[name]
      if f then return f end
      fail(d, "a %s has no %s%s", d.type, tostring(name), suggest.hint(tostring(name), methods))
    end,
    __newindex = function(_, name) fail(d, "%s cannot be set", tostring(name)) end,
    __tostring = function() return d.type .. " " .. d.name end,
  })
  handles[h] = d
  return h
end

--- A counter: a number that only grows.
---@param options kubelua.MetricOptions
---@return kubelua.Counter
function M.counter(options) return handle(declare("counter", options, KEYS)) end

--- A gauge: a present amount, which may rise and fall.
---@param options kubelua.MetricOptions
---@return kubelua.Gauge
function M.gauge(options) return handle(declare("gauge", options, KEYS)) end

--- A histogram of observations: durations or sizes.
---@param options kubelua.HistogramOptions
---@return kubelua.Histogram
function M.histogram(options) return handle(declare("histogram", options, HISTOGRAM_KEYS)) end

return M
