-- kubelua reload: has a running process load its scripts again, and waits until the new logic runs.

local common = require "kubelua.cli.common"
local control = require "kubelua.cli.control"

local M = {}

M.no_cluster = true
M.options = {
  { "--timeout", "DURATION", "how long the new logic may take to take over (60s); 0s does not wait",
    type = "duration" },
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
  return name .. ": it is not there yet"
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

-- True once all that was taken runs.
local function await(process, loaded, seconds)
  local why
  control.until_said(seconds, function()
    why = waiting(process, loaded)
    return not why
  end)
  if why then
    io.stderr:write(("kubelua reload: the new logic has not taken over in %gs, the old one runs \z
      on: %s\n"):format(seconds, why))
  end
  return not why
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
  local process = control.connect(env)
  local scripts = {}
  for _, s in ipairs(process:post("/v1/reload", {}).scripts) do scripts[#scripts + 1] = s end
  local taken, status = {}, 0                -- what is unchanged may still be on its way, too
  for _, s in ipairs(meant(env, scripts)) do
    local out = s.result == "refused" and io.stderr or io.stdout
    out:write(WORDS[s.result](s), "\n")
    if s.result == "refused" then status = 1 end
    if s.result ~= "refused" then taken[#taken + 1] = s end
  end
  local seconds = env.options.timeout or 60
  if #taken > 0 and seconds > 0 and not await(process, taken, seconds) then status = 1 end
  return status
end

return M
