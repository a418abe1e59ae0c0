-- explain.lua - explains the state of a simulated object: the last runs of its key with what they logged (the
-- calculation, where a policy logs it at debug level) and wrote, and what the simulation knows about it.

local core = require "kubelua.core"
local plain = require "kubelua.plain"
local scheduler = require "kubelua.sim.scheduler"

local M = {}

-- The most lines that are kept of what a run logged, and of what it wrote.
local LINES_MAX = 40

---@class kubelua.SimExplain
local E = {}
E.__index = E

--- Begins to keep what concerns a key: a node's name, or "namespace/name"; nil: every key.
---@param w kubelua.SimWorld
---@param key string?
function M.new(w, key)
  w.sim:about(key or "*", true)
  return setmetatable({ w = w, key = key, last = {}, now = {}, others = {} }, E)
end

local function lines(text)
  local out = {}
  for line in (text or ""):gmatch "[^\n]+" do out[#out + 1] = line end
  return out
end

-- The key and the controller of a log line.
local function named(fields)
  local padded = " " .. fields .. " "
  return padded:match " key=(%S+) ", padded:match " controller=(%S+) "
end

local function add(list, line)
  for _, other in ipairs(list) do
    if other == line then return end
  end
  if #list < LINES_MAX then list[#list + 1] = line end
end

--- Gathers what has happened since the last call, all at this moment. E.now has it by key and controller,
--- E.last the latest of each.
function E:look()
  local w, now = self.w, {}
  for _, run in ipairs(w.sim:told()) do
    now[run.key] = now[run.key] or {}
    local of = now[run.key]
    local entry = of[run.controller]
    if not entry then
      entry = { controller = run.controller, seconds = w.time, time = w:timestamp(), runs = 0, said = {},
        wrote = {} }
      of[run.controller] = entry
    end
    entry.runs, entry.result = entry.runs + 1, run.result
    entry.message = plain.readable(run.message)
    for _, line in ipairs(lines(run.writes)) do add(entry.wrote, line) end
  end
  for _, log in ipairs(core.stage_logs()) do
    local key, controller = named(log.fields)
    local entry = now[key] and now[key][controller]
    if entry then add(entry.said, plain.readable(log.message)) end
    if log.level ~= "debug" then self.others[#self.others + 1] = log end
  end
  for key, of in pairs(now) do
    self.last[key] = self.last[key] or {}
    for controller, entry in pairs(of) do self.last[key][controller] = entry end
  end
  self.now = now
end

local function cores(n) return (n // 10) / 100 end
local function gib(n) return (n * 100 // (1 << 30)) / 100 end

local function node_facts(w, i)
  local n = w.nodes
  return {
    { "ready", n.ready[i] }, { "cores", cores(n.cpu[i]) }, { "prod pods use", cores(n.prod_used[i]) },
    { "prod pods ask for", cores(n.prod_asked[i]) }, { "batch jobs use", cores(n.batch_used[i]) },
    { "batch jobs want", cores(n.batch_wanted[i]) }, { "batch jobs may use", cores(n.allowed[i]) },
    { "batch jobs ask for", cores(n.batch_asked[i]) }, { "lent to batch", cores(n.batch_cpu[i]) },
    { "the system uses", cores(n.system[i]) }, { "reported use, a mean", cores(n.reported_cpu[i]) },
    { "memory in use, GiB", gib(n.memory_used[i]) }, { "pods", #n.pods[i] },
  }
end

-- What the scheduler wrote on the pod.
local function refusal(w, p)
  local pod = w.sim:call { verb = "get", kind = "v1/Pod", ns = w.pods.namespace[p], name = w.pods.name[p] }
  for _, c in ipairs(pod("status.conditions") or {}) do
    if c.type == "PodScheduled" and c.message then return c.message end
  end
end

local function pod_facts(w, p)
  local pods = w.pods
  local out = {
    { "class", pods.class[p] }, { "asks for cores", cores(pods.cpu[p]) },
    { "asks for GiB", gib(pods.memory[p]) }, { "created", w:timestamp(pods.created[p]) },
    { "restarts", pods.restarts[p] },
  }
  local i = pods.node[p]
  if i ~= 0 then
    out[#out + 1] = { "node", w.nodes.name[i] }
    out[#out + 1] = { "there since", w:timestamp(pods.placed[p]) }
    out[#out + 1] = { "uses cores", cores(pods.used[p]) }
  else
    out[#out + 1] = { "waits, seconds", w.time - pods.created[p] }
    if w:is_for_others(p) then
      out[#out + 1] = { "the scheduler says", refusal(w, p) or "nothing so far" }
      return out
    end
    local reasons = scheduler.refusals(w, p)
    for _, why in ipairs(scheduler.REASONS) do
      if reasons[why] then out[#out + 1] = { "nodes refused: " .. why, reasons[why] } end
    end
  end
  return out
end

--- The facts about a team, { words, value } each, in cores.
---@param q table  as kubelua.sim.quotas keeps it
function M.team_facts(q)
  return { { "min, cores", q.min }, { "max, cores", q.max or "none" }, { "weight", q.weight or "none" },
    { "runtime, cores", q.runtime or "no controller has written it" }, { "used, cores", q.used },
    { "requested by pods that wait, cores", q.waiting } }
end

-- The last eviction of a pod, and what followed; nil if it was never evicted.
local function victim_facts(w, key)
  local found
  for _, e in ipairs(w.evictions) do
    if e[3] == key then found = e end
  end
  if not found then return nil end
  local out = { { "evicted", w:timestamp(found[1]) }, { "from node", w.nodes.name[found[2]] } }
  local heir = w.heirs[key:gsub("%-r%d+$", "")]
  local p = heir and w.pod_of[heir]
  if heir then out[#out + 1] = { "in its place", heir } end
  if p then
    local i = w.pods.node[p]
    out[#out + 1] = { "which is on", i ~= 0 and w.nodes.name[i] or "no node: it waits" }
  end
  return out
end

local function named_facts(list)
  local out = {}
  for k, fact in ipairs(list) do out[k] = { name = fact[1], value = fact[2] } end
  return core.array(out)
end

--- The present facts about a node, a pod, an evicted pod or a team, as a list of { name, value }; nil for an
--- unknown key.
function M.facts(w, key)
  local i, p, team = w.node_of[key], w.pod_of[key], w.quotas:of_key(key)
  local list = i and node_facts(w, i) or p and pod_facts(w, p) or victim_facts(w, key)
    or team and M.team_facts(team)
  return list and named_facts(list)
end

--- The explanation of the key now: { key, time, facts = list of { name, value }, controllers = list of
--- { controller, time, runs, result, message, said, wrote } }.
---@param key string?  the one that it is about
function E:answer(key)
  key = key or self.key
  local w, controllers, facts = self.w, {}, M.facts(self.w, key)
  for _, entry in pairs(self.last[key] or {}) do controllers[#controllers + 1] = entry end
  table.sort(controllers, function(a, b) return a.controller < b.controller end)
  if not facts and #controllers == 0 then
    error(("--explain: at %s no node or pod is called %q, and no controller ran such a key; write a pod \z
      or an ElasticQuota as NAMESPACE/NAME"):format(w:timestamp(), key), 0)
  end
  for _, entry in ipairs(controllers) do
    entry.said, entry.wrote = core.array(entry.said), core.array(entry.wrote)
  end
  return { key = key, time = w:timestamp(), seconds = w.time, facts = facts or core.array {},
    controllers = core.array(controllers) }
end

-- ---------------------------------------------------------------- for people

-- A write is shown as one line with its content, cut to this length where a page explains all keys.
local LINE_MAX = 240
local function short(line) return #line > LINE_MAX and line:sub(1, LINE_MAX) .. "..." or line end

---@return string
function M.text(answer)
  local out = { ("%s at %s:"):format(answer.key, answer.time) }
  for _, fact in ipairs(answer.facts) do
    local x = fact.value
    local shown = type(x) == "number" and ("%.6g"):format(x) or tostring(x)
    out[#out + 1] = ("  %-38s %s"):format(fact.name, shown)
  end
  for _, c in ipairs(answer.controllers) do
    out[#out + 1] = ""
    out[#out + 1] = ("%s, last run at %s, which ended with \"%s\":"):format(c.controller, c.time, c.result)
    if c.message then out[#out + 1] = "  " .. c.message end
    for _, line in ipairs(c.said) do out[#out + 1] = "  " .. line end
    for _, line in ipairs(c.wrote) do out[#out + 1] = "  wrote: " .. short(line) end
    if #c.wrote == 0 then out[#out + 1] = "  wrote nothing" end
  end
  return table.concat(out, "\n") .. "\n"
end

return M
