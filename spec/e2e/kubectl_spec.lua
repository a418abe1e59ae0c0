--- What people see of unmodified kubectl: sessions of spec/fixtures/kubectl, typed at the embedded server
--- and at the real one.
--
-- A session is a file of commands ("$ ", continued by "> ") and of what the real server made kubectl print,
-- with "[exit N]" where it failed. $NS is a namespace of its own. What differs from run to run is written
-- as a word: TIME, AGE, UID, RV, IP, PORT. After a change, KL_RECORD=1 writes the sessions anew from the
-- real server's answers.

local process = require "support.process"
local servers = require "support.servers"

local DIR = "spec/fixtures/kubectl"
local MARK = "--------next--------"

local function sessions()
  local out = {}
  for path in process.run("ls " .. DIR .. "/*.txt"):gmatch "%S+" do
    out[#out + 1] = path:match "([^/]+)%.txt$"
  end
  return out
end

-- The commands of a session, each with the lines that it is expected to print.
local function parse(text)
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

-- One shell for a whole session: its output, cut where the next command begins.
local function run(server, steps, ns)
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
  for _ = 1, #steps do
    local at, last = text:find(MARK .. "\n", from, true)
    outputs[#outputs + 1] = text:sub(from, (at or 0) - 1)
    from = (last or #text) + 1
  end
  return outputs
end

local UUID = "%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x"

-- What differs from run to run becomes a word; columns are as wide as what is in them, so gaps are alike.
local function settle(text, ns)
  local out = text:gsub("\r", ""):gsub(ns:gsub("%-", "%%-"), "$NS"):gsub(UUID, "UID")
  out = out:gsub("%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d[.%d]*Z", "TIME")
  out = out:gsub("%a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d [+-]%d%d%d%d", "TIME")
  out = out:gsub("([rR]esourceVersion\"?: \"?)%d+", "%1RV"):gsub("resource version %d+",
    "resource version RV")
  out = out:gsub("%f[%d]10%.%d+%.%d+%.%d+", "IP"):gsub("%f[%d]3%d%d%d%d%f[%D]", "PORT"):gsub("/tmp/tmp%.%w+",
    "$HOME")
  out = out:gsub("%f[%w]%d+m?%d*s%f[%W]", "AGE"):gsub("<invalid>", "AGE")
  out = out:gsub("(%S)  +", "%1   "):gsub("%s*\n", "\n"):gsub("%s+$", "")
  return out == "" and "" or out .. "\n"
end

local function transcript(steps, outputs)
  local out = {}
  for i, step in ipairs(steps) do out[i] = step.shown .. "\n" .. outputs[i] end
  return table.concat(out)
end

local count = 0

servers.each(function(name, start)
  describe("kubectl against " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    for _, session in ipairs(sessions()) do
      it("prints what it should: " .. session, function()
        local path = ("%s/%s.txt"):format(DIR, session)
        local steps = parse(process.read(path))
        count = count + 1
        local ns = ("kubectl-%d-%d"):format(os.time() % 1000000, count)
        local outputs = run(s, steps, ns)
        for i, output in ipairs(outputs) do outputs[i] = settle(output, ns) end
        local got = transcript(steps, outputs)
        if os.getenv "KL_RECORD" and s.shared then process.write(path, got) end
        local differs = process.run(("diff -U 4 %s %s"):format(path,
          process.write(process.tmpname ".txt", got)))
        assert(differs == "", "\n" .. differs)
      end)
    end
  end)
end)
