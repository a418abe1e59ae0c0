-- told.lua - explanations that are embedded in a page: nodes hour by hour, the first evicted pods, pods that
-- wait at the end, and teams; these are the most that a page has of each.

local core = require "kubelua.core"
local explain = require "kubelua.sim.explain"
local svg = require "kubelua.sim.svg"

local M = {}

local HOUR = 3600
local NODES_MAX, VICTIMS_MAX, WAITING_MAX = 300, 100, 20

---@class kubelua.SimTold
local T = {}
T.__index = T

--- Explanations of a simulation of `seconds`. Keeps what controllers do from now on.
---@param w kubelua.SimWorld
---@param seconds number
function M.new(w, seconds)
  w.explain = explain.new(w)
  local shown = math.min(w.nodes.n, svg.HEAT_ROWS)
  local period = math.max(1, math.ceil(shown * seconds / HOUR / NODES_MAX)) * HOUR
  return setmetatable({ w = w, period = period, due = period, list = {}, victims = 0 }, T)
end

local function add(self, key, text)
  self.list[#self.list + 1] = { key = key, seconds = self.w.time, text = text }
end

local function nodes(self)
  local w = self.w
  for _, i in ipairs(svg.shown_rows(w.nodes.n)) do
    local name = w.nodes.name[i]
    if w.node_of[name] == i then add(self, name, explain.text(w.explain:answer(name))) end
  end
end

--- Called when time has passed.
function T:pass()
  if self.w.time < self.due then return end
  self.due = self.due + self.period
  nodes(self)
end

-- The controller that has just written about the pod, and what it logged.
local function culprits(w, key)
  local out = {}
  for run_key, of in pairs(w.explain.now) do
    for _, entry in pairs(of) do
      for _, line in ipairs(entry.wrote) do
        if (line .. " "):find(" " .. key .. " ", 1, true) then
          out[#out + 1] = ("%s, run of %s:\n  wrote: %s"):format(entry.controller, run_key, line)
          for _, said in ipairs(entry.said) do
            if said:find(key, 1, true) or run_key == key then out[#out] = out[#out] .. "\n  " .. said end
          end
          break
        end
      end
    end
  end
  table.sort(out)
  return out
end

--- Called when pod p is evicted, while it is still on its node.
function T:victim(p)
  local w, pods = self.w, self.w.pods
  if self.victims >= VICTIMS_MAX then return end
  self.victims = self.victims + 1
  local key = pods.namespace[p] .. "/" .. pods.name[p]
  local function facts_of(what, name)
    return explain.text { key = what, time = w:timestamp(), facts = explain.facts(w, name), controllers = {} }
  end
  local out, node = { facts_of(key, key) }, w.nodes.name[pods.node[p]]
  for _, line in ipairs(culprits(w, key)) do out[#out + 1] = line end
  out[#out + 1] = "\n" .. facts_of("its node " .. node, node)
  add(self, key, table.concat(out, "\n"))
end

local function teams(self)
  local quotas = self.w.quotas
  for _, name in ipairs(quotas.names) do
    local q = quotas.by_name[name]
    local lines = { ("team %s at the end:"):format(name) }
    for _, fact in ipairs(explain.team_facts(q)) do
      lines[#lines + 1] = ("  %-38s %s"):format(fact[1], fact[2])
    end
    lines[#lines + 1] = "runtime is the team's current limit: its min and, by its weight, a share of unused \z
      resources, up to max"
    add(self, "team " .. name, table.concat(lines, "\n") .. "\n")
  end
end

--- All of them, { key, seconds, text } each, and the keys of pods that wait.
function T:answer()
  local w, waiting = self.w, {}
  if self.due - self.period < w.time then nodes(self) end
  for k, p in ipairs(w.pending:list()) do
    if k > WAITING_MAX then break end
    local key = w.pods.namespace[p] .. "/" .. w.pods.name[p]
    waiting[k] = key
    add(self, key, explain.text(w.explain:answer(key)))
  end
  teams(self)
  return core.array(self.list), core.array(waiting)
end

return M
