-- settings.lua - the settings of a simulated cluster: names, defaults, kinds and descriptions. A setting is
-- written as text on a command line ("batch_cpu=4") and parsed here, once.

local core = require "kubelua.core"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.SimSetting
---@field [1] string  name
---@field [2] string  type: "count", "number", "share", "cpu", "memory" or "duration"
---@field [3] string  default
---@field [4] string  doc

---@type kubelua.SimSetting[]
M.list = {
  { "nodes", "count", "20", "nodes of the generated cluster" },
  { "cpu", "cpu", "32", "of a node" },
  { "memory", "memory", "128Gi", "of a node" },
  { "system_cpu", "cpu", "1", "resources that a node uses for itself" },
  { "system_memory", "memory", "4Gi", "resources that a node uses for itself" },
  { "lent", "share", "0", "share of each node that it lends to batch jobs without a policy" },
  { "prod", "share", "0.7", "share of each node's cpu that prod pods ask for" },
  { "prod_cpu", "cpu", "2", "request of a prod pod" },
  { "prod_memory", "memory", "6Gi", "request of a prod pod" },
  { "apps", "count", "8", "number of apps among prod pods: the load of pods of one app moves together" },
  { "usage", "share", "0.35", "share of its request that a prod pod uses, as a mean over the day" },
  { "swing", "share", "0.5", "how far a day's peak is above that mean; the trough is equally far below" },
  { "noise", "share", "0.1", "deviation of a pod's use from one minute to the next" },
  { "weekend", "share", "0.25", "how much less prod pods use on Saturdays and Sundays" },
  { "batch_rate", "number", "4", "batch jobs for each node and hour" },
  { "batch_cpu", "cpu", "2", "request of a batch job" },
  { "batch_memory", "memory", "4Gi", "request of a batch job" },
  { "batch_time", "duration", "30m", "how long a batch job takes at its full request" },
  { "report_interval", "duration", "60s", "how often a node reports its use" },
  { "report_window", "count", "5", "samples, one for each report, that a reported mean is made of" },
  { "suppress", "share", "0.65", "share of a node that prod pods and batch jobs may use together" },
  { "suppress_floor", "share", "0.02", "share of a node that batch jobs may use in any case" },
  { "load_cpu", "share", "0.65", "the scheduler skips a node whose load would exceed this" },
  { "load_memory", "share", "0.95", "the same for memory" },
  { "hot", "share", "0.7", "share of its cpu above which a node counts as hot" },
  { "start_time", "duration", "30s", "time from the placement of a pod until it works" },
}

local by_name = {}
for _, s in ipairs(M.list) do by_name[s[1]] = s end

--- All of their names.
---@return string[]
function M.names()
  local out = {}
  for i, s in ipairs(M.list) do out[i] = s[1] end
  return out
end

---@param name string
function M.known(name) return by_name[name] ~= nil end

local READ = {
  count = function(text)
    local n = math.tointeger(tonumber(text))
    return n and n >= 1 and n or nil, "a whole number above 0"
  end,
  number = function(text)
    local n = tonumber(text)
    return n and n >= 0 and n < math.huge and n or nil, "a number from 0"
  end,
  share = function(text)
    local n = tonumber(text)
    return n and n >= 0 and n <= 1 and n or nil, "a number from 0 to 1"
  end,
  cpu = function(text)
    local ok, q = pcall(core.qty, text)
    return ok and q:milli() > 0 and q:milli() or nil, "an amount of cpu such as 32 or 500m"
  end,
  memory = function(text)
    local ok, q = pcall(core.qty, text)
    return ok and q:value() > 0 and q:value() or nil, "an amount of memory such as 128Gi"
  end,
  duration = function(text)
    local ok, d = pcall(core.duration, text)
    return ok and d > 0 and d or nil, "a duration such as 30s"
  end,
}

--- The value of a setting; raises for an unknown name and for an invalid text. cpu is in
--- milli-cores, memory in bytes, a duration in seconds.
---@param where string   for messages: "--set"
---@param name string
---@param text string
---@return number
function M.read(where, name, text)
  local s = by_name[name]
  if not s then
    error(("%s: there is no setting %q%s"):format(where, name, suggest.hint(name, M.names())), 0)
  end
  local value, wanted = READ[s[2]](text)
  if not value then error(("%s: %s is %s, got %q"):format(where, name, wanted, text), 0) end
  return value
end

--- The defaults.
---@return table<string, number>
function M.defaults()
  local out = {}
  for _, s in ipairs(M.list) do out[s[1]] = M.read("the defaults", s[1], s[3]) end
  return out
end

--- Reads "nodes=100,cpu=64" into `into`.
---@param where string
---@param text string
---@param into table<string, number>
function M.words(where, text, into)
  for word in text:gmatch "[^,]+" do
    local name, value = word:match "^%s*([%w_]+)%s*=%s*(.-)%s*$"
    if not name then error(("%s: expected NAME=VALUE, got %q"):format(where, word), 0) end
    into[name] = M.read(where, name, value)
  end
end

return M
