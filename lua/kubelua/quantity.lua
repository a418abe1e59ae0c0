-- quantity.lua - what scripts do with quantities beyond their arithmetic: comparing several, and what a pod
-- asks for.

local core = require "kubelua.core"

local M = {}

local qty = core.qty

-- Quantities among the arguments make all of them quantities; numbers alone stay numbers.
local function extreme(what, better, ...)
  local n = select("#", ...)
  if n == 0 then core.blame(what .. ": expected at least one value") end
  local args, exact = { ... }, false
  for i = 1, n do
    if args[i] == nil then core.blame(("%s: argument %d is nil"):format(what, i)) end
    exact = exact or type(args[i]) ~= "number"
  end
  local best
  for i = 1, n do
    local x = exact and qty(args[i]) or args[i]
    if best == nil or better(x, best) then best = x end
  end
  return best
end

--- The largest of several quantities, their texts, or numbers.
---@param ... kubelua.quantity|string|number
---@return kubelua.quantity|number
function M.max(...) return extreme("kube.max", function(a, b) return a > b end, ...) end

--- The smallest.
---@param ... kubelua.quantity|string|number
---@return kubelua.quantity|number
function M.min(...) return extreme("kube.min", function(a, b) return a < b end, ...) end

-- ---------------------------------------------------------------- what a pod asks for

local function add(sum, list)
  for name, q in pairs(list or {}) do sum[name] = sum[name] and sum[name] + qty(q) or qty(q) end
end

local function raise(most, list)
  for name, q in pairs(list) do
    if not most[name] or q > most[name] then most[name] = q end
  end
end

local function field(o, a, b)
  o = o and o[a]
  if b and o ~= nil then o = o[b] end
  return o
end

-- As the scheduler counts (k8s.io/component-helpers/resource PodRequests): the containers together, or the
-- widest moment of initialisation, whichever is more; sidecars (restartable init containers) stay, so they
-- count in both. Requests of the whole pod replace the sums they name. The overhead comes on top.
local function total(pod, what)
  local spec = field(pod, "spec") or {}
  local running, sidecars, widest = {}, {}, {}
  for _, c in ipairs(field(spec, "containers") or {}) do add(running, field(field(c, "resources"), what)) end
  for _, c in ipairs(field(spec, "initContainers") or {}) do
    local wants = field(field(c, "resources"), what)
    local moment = {}
    if field(c, "restartPolicy") == "Always" then
      add(running, wants)
      add(sidecars, wants)
      add(moment, sidecars)
    else
      add(moment, wants)
      add(moment, sidecars)
    end
    raise(widest, moment)
  end
  raise(running, widest)
  for name, q in pairs(field(field(spec, "resources"), what) or {}) do running[name] = qty(q) end
  return running, spec
end

--- What the pod requests of each resource: a table from name to quantity.
---@param pod kubelua.view|table
---@return table<string, kubelua.quantity>
function M.requests(pod)
  local sum, spec = total(pod, "requests")
  add(sum, field(spec, "overhead"))
  return sum
end

--- What the pod may use at most of each resource; a resource that some container does not limit counts for
--- those that do.
---@param pod kubelua.view|table
---@return table<string, kubelua.quantity>
function M.limits(pod)
  local sum, spec = total(pod, "limits")
  -- The overhead of a resource counts only where there is a limit; a limit of 0 is none.
  for name, q in pairs(field(spec, "overhead") or {}) do
    if sum[name] and sum[name] ~= qty(0) then sum[name] = sum[name] + qty(q) end
  end
  return sum
end

return M
