-- sessions.lua - sessions of kubectl: files of commands ("$ ", continued by "> ") and of kubectl's output
-- with a real server, with "[exit N]" after a failure.
--
--   local steps = sessions.parse(process.read "spec/fixtures/kubectl/look.txt")
--   local text = sessions.transcript(steps, sessions.run(server, steps, "a-namespace"), "a-namespace")
--
-- $NS is a namespace of its own. What differs from run to run is written as a word: TIME, AGE, UID, RV, IP,
-- PORT.

local process = require "support.process"
local servers = require "support.servers"

local M = {}

local MARK = "--------next--------"

--- The commands of a session.
---@return { command: string, shown: string, output: string }[]
function M.parse(text)
  local steps = {}
  for line in text:gmatch "([^\n]*)\n" do
    local start, more = line:match "^%$ (.*)$", line:match "^> ?(.*)$"
    local step = steps[#steps]
    if start then
      steps[#steps + 1] = { command = start, shown = line, output = "" }
    elseif more and step.output == "" then
      step.command = step.command .. "\n" .. more
      step.shown = step.shown .. "\n" .. line
    elseif step then
      step.output = step.output .. line .. "\n"
    elseif line ~= "" then
      error("a session begins with a command: " .. line)
    end
  end
  return steps
end

--- Runs a whole session in one shell: what each command printed.
---@return string[]
function M.run(server, steps, ns)
  local config = process.write(process.tmpname ".kubeconfig", process.read(server.kubeconfig))
  local script = { 'export HOME="$(mktemp -d)"', "export KUBECONFIG=" .. process.quote(config),
    "export PATH=" .. process.quote(assert(servers.assets())) .. ':"$PATH"', "export NS=" .. ns,
    "kubectl config set-context --current --namespace=$NS >/dev/null" }
  for _, step in ipairs(steps) do
    script[#script + 1] = step.command
    script[#script + 1] = "code=$?; if [ $code != 0 ]; then echo \"[exit $code]\"; fi; echo " .. MARK
  end
  script[#script + 1] = 'rm -rf "$HOME"'
  local path = process.write(process.tmpname ".sh", table.concat(script, "\n") .. "\n")
  local text, outputs, from = process.run("timeout 300 bash " .. path .. " 2>&1 </dev/null"), {}, 1
  for i = 1, #steps do
    local at, last = text:find(MARK .. "\n", from, true)
    outputs[i] = text:sub(from, (at or 0) - 1)
    from = (last or #text) + 1
  end
  return outputs
end

local UUID = "%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x"

-- Replaces the parts that differ from run to run by words; column gaps are normalized, as widths depend on
-- the contents.
local function settle(text, ns)
  local out = text:gsub("\r", ""):gsub(ns:gsub("%-", "%%-"), "$NS"):gsub(UUID, "UID")
  out = out:gsub("%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d[.%d]*Z", "TIME")
  out = out:gsub("%a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d [+-]%d%d%d%d", "TIME")
  out = out:gsub("%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d[.%d]* [+-]%d%d%d%d", "TIME")
  out = out:gsub('([rR]esourceVersion\\?"?: ?\\?"?)%d+', "%1RV"):gsub("resource version %d+",
    "resource version RV"):gsub("(resource version to be %d+, was) %d+", "%1 RV")
  out = out:gsub("(kubectl%-edit%-)%d+", "%1N"):gsub("/(%u+)%-%d+/", "/%1-N/")
  out = out:gsub("%f[%d]10%.%d+%.%d+%.%d+", "IP"):gsub("%f[%d]3%d%d%d%d%f[%D]", "PORT"):gsub("/tmp/tmp%.%w+",
    "$HOME")
  out = out:gsub("%f[%w]%d+m?%d*s%f[%W]", "AGE"):gsub("<invalid>", "AGE")
  out = out:gsub("%f[%w]%d%d%dd%f[%W]", "AGE") -- of an object with a date
  out = out:gsub("(%S)  +", "%1   "):gsub("%s*\n", "\n"):gsub("%s+$", "")
  return out == "" and "" or out .. "\n"
end

--- The text of a session: the commands, each with its output.
function M.transcript(steps, outputs, ns)
  local out = {}
  for i, step in ipairs(steps) do out[i] = step.shown .. "\n" .. settle(outputs[i], ns) end
  return table.concat(out)
end

-- Verbs whose command is named by the next word.
local FAMILIES = { apply = { ["edit-last-applied"] = true, ["set-last-applied"] = true,
  ["view-last-applied"] = true } }
for _, verb in ipairs { "auth", "certificate", "create", "rollout", "set", "top" } do
  FAMILIES[verb] = true
end

--- How many different commands of kubectl are in a command line, by verb ("get", "create job").
---@param seen table<string, true> commands that were counted before; the new ones join them
---@param verbs table<string, integer> the numbers so far
function M.tally(command, seen, verbs)
  for line in command:gmatch "kubectl (%l[^;|&]*)" do
    if not seen[line] then
      seen[line] = true
      local verb, object = line:match "^[%l-]+", line:match "^[%l-]+ (%l[%l-]+)" or ""
      local family = FAMILIES[verb]
      if object ~= "" and (family == true or family and family[object]) then verb = verb .. " " .. object end
      verbs[verb] = (verbs[verb] or 0) + 1
    end
  end
end

return M
