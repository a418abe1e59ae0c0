-- node.lua - what a node does with its pods, and what its agent (koordlet) reports of it: use follows from
-- demand, batch jobs get what is left (suppression), memory runs out.

local core = require "kubelua.core"
local dice = require "kubelua.sim.dice"

local M = {}

local DAY, HOUR = 86400, 3600
local TAU = 2 * math.pi
-- 2026-01-01 was a Thursday: days 2 and 3 of each week from then on are a weekend.
local function is_weekend(t)
  local d = t // DAY % 7
  return d == 2 or d == 3
end

--- The share of its request that a pod of an app uses at a moment, before noise: a day's wave about the mean.
---@param w kubelua.SimWorld
---@param app string
---@param t number
function M.curve(w, app, t)
  local s = w.settings
  local phase = w.phases[app]
  if not phase then
    phase = 14 + 2 * dice.normal(w.seed, dice.of(app), 2) -- apps are busiest about two in the afternoon
    w.phases[app] = phase
  end
  local wave = s.swing * math.cos(TAU * (t / HOUR - phase) / 24)
  local level = s.usage * (1 + wave) * (w.boost[app] or w.boost["*"] or 1)
  return is_weekend(t) and level * (1 - s.weekend) or level
end

local function demands_of(w, t)
  return setmetatable({}, { __index = function(self, app)
    local v = M.curve(w, app, t)
    self[app] = v
    return v
  end })
end

local NONE = {}

-- What the prod pods of node i use, their memory with the system's, and its batch pods or nil.
local function prod(w, i, minute, curves)
  local pods, s = w.pods, w.settings
  return core.prod_use(w.nodes.pods[i], pods.class, pods.placed, pods.used, pods.cpu, pods.memory, pods.app,
    w.factor, w.uses, w.holds, curves, w.time, minute, s.start_time, s.noise, w.seed,
    s.system_memory)
end

-- What batch jobs may use of a node: whatever the policy allows, prod pods come first.
local function allowed_on(s, cap, system, used)
  local left = math.max(cap - used - system, 0)
  return math.min(math.max(cap * s.suppress - used - system, cap * s.suppress_floor), left)
end

-- Jobs want all that they asked for, and get the same share of it each. Returns the memory of those that go
-- on, and those that have done their work or nil.
local function batch(w, i, jobs, allowed, seconds)
  local pods, nodes, time, start = w.pods, w.nodes, w.time, w.settings.start_time
  local placed, cpu, held_by, work, spent = pods.placed, pods.cpu, pods.memory, pods.work, pods.done
  local wanted, memory, done = 0, 0, nil
  for _, p in ipairs(jobs) do
    if time >= placed[p] + start then wanted = wanted + cpu[p] end
    memory = memory + held_by[p]
  end
  local share = wanted > allowed and allowed / wanted or 1
  for _, p in ipairs(jobs) do
    local works = time >= placed[p] + start
    pods.used[p] = works and cpu[p] * share or 0
    if works then spent[p] = spent[p] + share * seconds end
    if work[p] and spent[p] >= work[p] then
      done = done or {}
      done[#done + 1] = p
      memory = memory - held_by[p]
    end
  end
  nodes.batch_wanted[i], nodes.batch_used[i] = wanted, wanted * share
  return memory, done
end

-- The kernel ends the youngest job first, as its score is the highest.
local function out_of_memory(w, i, jobs, memory)
  for k = #jobs, 1, -1 do
    if memory <= w.nodes.memory[i] then break end
    if w.pods.state[jobs[k]] ~= "gone" then
      memory = memory - w.pods.memory[jobs[k]]
      w:evict(jobs[k], "out of memory")
    end
  end
  return memory
end

--- `seconds` pass on every node.
---@param w kubelua.SimWorld
---@param seconds number
function M.pass(w, seconds)
  local nodes, s = w.nodes, w.settings
  local minute, curves = math.tointeger(w.time // 60), demands_of(w, w.time)
  local ready, cpu, systems, unmet, prod_used = nodes.ready, nodes.cpu, nodes.system, nodes.unmet,
    nodes.prod_used
  for i = 1, nodes.n do
    prod_used[i], nodes.batch_used[i], nodes.batch_wanted[i], unmet[i] = 0, 0, 0, 0
    if ready[i] then
      local used, memory, jobs = prod(w, i, minute, curves)
      local room = cpu[i] - systems[i]
      if used > room then unmet[i], used = used - room, room end
      prod_used[i] = used
      local allowed = allowed_on(s, cpu[i], systems[i], used)
      nodes.allowed[i] = allowed
      if jobs then
        local more, done = batch(w, i, jobs, allowed, seconds)
        for _, p in ipairs(done or NONE) do w:finish(p) end
        memory = memory + more
        if memory > nodes.memory[i] then memory = out_of_memory(w, i, jobs, memory) end
      end
      nodes.memory_used[i] = memory
    end
  end
end

--- The reports of all nodes whose agent works: means over the window.
---@param w kubelua.SimWorld
function M.report(w)
  local nodes, used, window, means = w.nodes, w.pods.used, w.settings.report_window, w.means
  w.reported = w.reported + 1
  local slot = w.reported % window + 1
  local n = math.min(w.reported, window)
  for i = 1, nodes.n do
    if nodes.ready[i] then
      means.pod:take(slot, nodes.pods[i], used)
      local cpu = means.node:add(slot, i, nodes.prod_used[i] + nodes.batch_used[i] + nodes.system[i]) / n
      local in_use = means.memory:add(slot, i, nodes.memory_used[i]) / n
      if nodes.reports[i] and not nodes.recorded[i] then
        nodes.reported_cpu[i], nodes.reported_memory[i] = cpu, in_use
        nodes.since_cpu[i], nodes.since_memory[i] = 0, 0
        w:put_metric(i, { cpu, in_use, nodes.system[i], w.settings.system_memory }, n)
      end
    end
  end
end

--- What of it is not as on a real node.
M.NOT_MODELLED = {
  "cpu sets, NUMA, devices, network and disks",
  "koordlet's own evictions (off by default there) and cpu burst",
  "prediction of prod use by the node's agent, so mid resources stay 0",
  "reports of all nodes come at the same second; pods are ready as soon as they have a node",
  "memory is 70 % of a prod pod's request (unless a trace has its usage) and all of a job's, at every moment",
}

return M
