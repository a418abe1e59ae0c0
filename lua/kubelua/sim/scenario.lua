-- scenario.lua - what happens to a simulated cluster, and when: a Lua file that returns
--
--   { at = { ["6h"] = function(s) s:fail_node "node-003" end },
--     every = { ["1h"] = function(s) s:add_job { cpu = "8", memory = "16Gi", time = "10m" } end },
--     expect = { evictions = "<= 5", violation = "<= 0.1%" }, params = { factor = 2 } }
--
-- Functions get an object `s` that acts on the cluster; `expect` is what --budget is on the command line;
-- `params` become s.params, which --set scenario.NAME=VALUE changes.

local client = require "kubelua.client"
local core = require "kubelua.core"
local options = require "kubelua.options"
local suggest = require "kubelua.suggest"

local M = {}

---@class kubelua.SimScenario
---@field client kubelua.Client  every call of a client, answered by the simulated cluster at once
---@field params table<string, any>
---@field private world kubelua.SimWorld
local S = {}
S.__index = S

-- A client of the simulation: each request is answered before the next one.
local function wire(sim)
  return {
    namespace = function() return "default" end,
    resource = function(_, kind) return sim:resource(kind) end,
    resolve = function(_, kind)
      return { poll = function()
        if not sim:resource(kind) then
          error(core.error { kind = "not_found", message = "the simulated cluster has no kind " .. kind }, 0)
        end
        return true
      end }
    end,
    begin = function(_, op)
      local body = sim:call(op)
      return { poll = function() return true, body end }
    end,
  }
end

---@param world kubelua.SimWorld
---@param params table<string, any>  as the scenario has them
---@param changed table<string, any>?
---@return kubelua.SimScenario
function M.hands(world, params, changed)
  local own = {}
  for name, value in pairs(params) do own[name] = value end
  for name, value in pairs(changed or {}) do own[name] = value end
  return setmetatable({ world = world, client = client.over(wire(world.sim)), jobs = 0, params = own }, S)
end

--- The present moment.
---@return kubelua.time
function S:now() return core.time(self.world.start + self.world.time) end

--- The names of all nodes.
---@return string[]
function S:nodes() return { table.unpack(self.world.nodes.name) } end

--- The apps of the pods on a node: their demand makes it hot.
---@param name string
---@return string[]
function S:apps(name)
  local w, out, seen = self.world, {}, {}
  local i = w.node_of[name] or core.blame(("s:apps: unknown node %q"):format(tostring(name)))
  for _, p in ipairs(w.nodes.pods[i]) do
    local app = w.pods.app[p]
    if not seen[app] then out[#out + 1] = app end
    seen[app] = true
  end
  return out
end

--- The node fails, and its pods start again elsewhere.
---@param name string
function S:fail_node(name) self.world:fail_node(name) end

--- The node returns, empty.
---@param name string
function S:heal_node(name) self.world:heal_node(name) end

--- Cordons the node: no new pod is placed there; on = false: uncordons it.
---@param name string
---@param on boolean?
function S:cordon(name, on)
  local w = self.world
  local i = w.node_of[name] or core.blame(("s:cordon: unknown node %q"):format(tostring(name)))
  w.nodes.cordoned = w.nodes.cordoned or {}
  w.nodes.cordoned[i] = on ~= false
  if w.sim.still then return end
  self.client:patch({ apiVersion = "v1", kind = "Node", metadata = { name = name } },
    { spec = { unschedulable = on ~= false } })
end

--- Cordons the node and evicts its pods.
---@param name string
function S:drain(name)
  self:cordon(name)
  local w = self.world
  for _, p in ipairs({ table.unpack(w.nodes.pods[w.node_of[name]]) }) do w:evict(p, "drained") end
end

--- The node's agent stops reporting; on = false: it starts again. "*": all agents.
---@param name string
---@param on boolean?
function S:silence(name, on)
  local nodes = self.world.nodes
  if name ~= "*" and not self.world.node_of[name] then
    core.blame(("s:silence: unknown node %q"):format(tostring(name)))
  end
  for i = 1, nodes.n do
    if name == "*" or nodes.name[i] == name then nodes.reports[i] = on == false and nodes.ready[i] end
  end
end

local function without_digits(text) return (text:gsub("%d+", "#")) end

-- Refuses the name of an app that has no pod, if it is nearly one that has some. Pods of any other app may
-- come later, and so may those of one that differs only in digits.
local function check_app(w, app)
  local apps = {}
  for p = 1, w.pods.n do apps[w.pods.app[p] or ""] = true end
  if apps[app] or next(apps) == nil then return end
  local known = {}
  for name in pairs(apps) do known[#known + 1] = name end
  local near = suggest.nearest(app, known)
  if not near or without_digits(app) == without_digits(near) then return end
  core.blame(("s:boost: no pod is of the app %q; did you mean '%s'?"):format(app, near))
end

--- From now on pods of an app ("*": all pods) demand `factor` times what their curve says.
---@param app string
---@param factor number
function S:boost(app, factor)
  if type(factor) ~= "number" or not (factor >= 0 and factor < math.huge) then
    core.blame "s:boost: the factor must be a finite number, 0 or more"
  end
  if type(app) ~= "string" then core.blame "s:boost: expected the name of an app, or \"*\"" end
  if app ~= "*" then check_app(self.world, app) end
  self.world.boost[app] = factor
end

local JOB = { cpu = "string", memory = "string", time = "duration", count = "integer", namespace = "string",
  labels = "table" }

local function milli(text) return core.qty(text):milli() end
local function whole(text) return core.qty(text):value() end

local function amount(name, text, read)
  local ok, n = pcall(read, text)
  if ok and n >= 0 then return n end
  core.blame(("s:add_job: %s: %q is not a quantity from 0 on, such as 500m or 2Gi"):format(name, text))
end

--- A batch job, or `count` of them.
---@param o { cpu: string, memory: string, time: kubelua.Duration, count: integer?, namespace: string?, labels: table<string, string>? }
function S:add_job(o)
  o = options.check("s:add_job", o, JOB)
  local cpu, memory = amount("cpu", o.cpu or "1", milli), amount("memory", o.memory or "1Gi", whole)
  for _ = 1, o.count or 1 do
    self.jobs = self.jobs + 1
    self.world:add_pod {
      name = ("scenario-%d"):format(self.jobs), namespace = o.namespace or "batch", class = "batch",
      cpu = cpu, memory = memory, work = core.duration(o.time or "10m"), labels = o.labels,
    }
  end
end

-- ---------------------------------------------------------------- files

local KEYS = { "at", "every", "expect", "params" }

local function moments(path, what, given, least)
  local out = {}
  for text, fn in pairs(given or {}) do
    local ok, seconds = pcall(core.duration, text)
    if not ok then
      error(("%s: %s[%q] is not a duration such as \"6h\""):format(path, what, tostring(text)), 0)
    end
    if seconds < least then
      error(("%s: %s[%q] must be at least %ds"):format(path, what, text, least), 0)
    end
    if type(fn) ~= "function" then
      error(("%s: %s[%q] must be a function, got %s"):format(path, what, text, type(fn)), 0)
    end
    out[#out + 1] = { seconds, fn, text }
  end
  -- "60s" and "1m" are the same moment
  table.sort(out, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[3] < b[3]
  end)
  return out
end

--- Reads a scenario; raises with the file's name.
---@param path string
---@return { at: table[], every: table[], expect: table<string, string>, params: table<string, any> }
function M.read(path)
  local chunk, why = loadfile(path, "t")
  if not chunk then error(("cannot read the scenario: %s"):format(why), 0) end
  local ok, t = pcall(chunk)
  if not ok then error(("the scenario %s: %s"):format(path, tostring(t)), 0) end
  if type(t) ~= "table" then
    error(("the scenario %s must return a table with at, every, expect or params, got %s")
      :format(path, type(t)), 0)
  end
  for key in pairs(t) do
    if key ~= "at" and key ~= "every" and key ~= "expect" and key ~= "params" then
      error(("the scenario %s has no %q%s"):format(path, tostring(key), suggest.hint(tostring(key), KEYS)), 0)
    end
  end
  for _, key in ipairs { "expect", "params" } do
    if t[key] ~= nil and type(t[key]) ~= "table" then
      error(("%s: %s must be a table, got %s"):format(path, key, type(t[key])), 0)
    end
  end
  return { at = moments(path, "at", t.at, 0), every = moments(path, "every", t.every, 1),
    expect = t.expect or {}, params = t.params or {} }
end

return M
