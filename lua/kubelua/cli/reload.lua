-- kubelua reload: has a running process load its scripts again, and waits until the new logic runs.

local common = require "kubelua.cli.common"
local control = require "kubelua.cli.control"
local core = require "kubelua.core"

local M = {}

M.no_cluster = true
M.options = {
  { "--timeout", "DURATION", "how long to wait for the new logic to take over (60s); 0s: do not wait",
    type = "duration" },
  common.OUTPUT,
  table.unpack(control.options),
}

-- Why a controller does not run generation `wanted` yet; nil when it does.
local function lacks(states, name, wanted)
  for _, c in ipairs(states) do
    if c.name == name or c.name:sub(-#name - 1) == "/" .. name then
      if c.generation >= wanted and c.state ~= "waiting for caches" then return nil end
      return ("%s: %s"):format(c.name, c("message") or c.state)
    end
  end
  return name .. ": it is not ready yet"
end

local function waiting(process, loaded)
  local states = process:get("/v1/controllers").controllers
  for _, script in ipairs(loaded) do
    for _, name in ipairs(script.controllers) do
      local why = lacks(states, name, script.generation)
      if why then return why end
    end
  end
end

-- Waits until every loaded generation runs; returns why one does not, or nil.
local function await(process, loaded, seconds)
  local why
  control.until_said(seconds, function()
    why = waiting(process, loaded)
    return not why
  end)
  return why
end

local WORDS = {
  taken = function(s)
    return ("%s: generation %d%s"):format(s.script, s.generation, s("message") and ": " .. s.message or "")
  end,
  unchanged = function(s) return ("%s: unchanged, generation %d"):format(s.script, s.generation) end,
  refused = function(s)
    return ("%s: refused, generation %d runs on: %s"):format(s.script, s.generation, s.message)
  end,
}

local function meant(env, scripts)
  if #env.words == 0 then return scripts end
  local chosen, have = {}, {}
  for _, s in ipairs(scripts) do
    have[#have + 1] = s.script
    for _, word in ipairs(env.words) do
      if s.script == word or s.script:sub(-#word - 1) == "/" .. word then chosen[#chosen + 1] = s end
    end
  end
  if #chosen == 0 then
    common.usage("the process has no script %s; it has %s", env.words[1], table.concat(have, ", "))
  end
  return chosen
end

function M.run(env)
  local json, process = common.wants_json(env), control.connect(env)
  local scripts = {}
  for _, s in ipairs(process:post("/v1/reload", {}).scripts) do scripts[#scripts + 1] = s end
  scripts = meant(env, scripts)
  local taken, status = {}, 0                -- what is unchanged may still be on its way, too
  for _, s in ipairs(scripts) do
    local refused = s.result == "refused"
    if refused then status = 1 else taken[#taken + 1] = s end
    if refused or not json then
      (refused and io.stderr or io.stdout):write(common.safe(WORDS[s.result](s)), "\n")
    end
  end
  local seconds = env.options.timeout or 60
  local why = #taken > 0 and seconds > 0 and await(process, taken, seconds) or nil
  if why then
    status = 1
    common.complain(env, "the new logic has not taken over in %gs, the old one runs on: %s", seconds, why)
  end
  if json then common.print_json { scripts = core.array(scripts), waitsFor = why } end
  return status
end

return M
