-- control.lua - how commands reach a running kubelua: they find its control socket and send requests
-- (docs/operations.md has the API).
--
--   local process = control.connect(env)            -- --socket, --pid, or the only one there is
--   process:get("/v1/why", { kind = "v1/Pod" })     -- the answer, decoded; a refusal is raised with its
-- message
--   process:post("/v1/reload", { script = "a.lua" })

local clock = require "kubelua.clock"
local common = require "kubelua.cli.common"
local core = require "kubelua.core"

local M = {}

local POLL = 0.1 -- seconds between two questions

--- Calls `what` until it returns something true, for this many seconds and at least once. Returns its last
--- result.
---@generic T
---@param seconds number
---@param what fun(): T
---@return T
function M.until_said(seconds, what)
  local said = what()
  for _ = 1, seconds / POLL do
    if said then break end
    clock.sleep(POLL)
    said = what()
  end
  return said
end

--- For a command's options.
M.options = {
  { "--socket", "PATH", "the control socket of the process (default: your only running kubelua)" },
  { "--pid", "PID", "the process ID of the process" },
}

---@class kubelua.cli.Process
---@field path string of its socket
---@field private ask fun(...): integer?, string
local Process = {}
Process.__index = Process

local function escape(text)
  return (tostring(text):gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function target(path, query)
  local parts = {}
  for name, value in pairs(query or {}) do parts[#parts + 1] = escape(name) .. "=" .. escape(value) end
  table.sort(parts)
  return #parts > 0 and path .. "?" .. table.concat(parts, "&") or path
end

-- opts.seconds: how long it may take (30; 0: as long as it wants)
function Process:call(method, path, query, body, opts)
  local code, text = self.ask(self.path, method, target(path, query),
    body ~= nil and core.encode(body) or nil, opts and opts.seconds)
  if not code then error(("the process at %s does not answer: %s"):format(self.path, text), 0) end
  local ok, answer = pcall(core.decode, text)
  if not ok then
    error(("the answer of the process at %s is not JSON: %s"):format(self.path, text:sub(1, 200)), 0)
  end
  if code >= 300 then
    error(answer("error") or ("the process at %s answers %d"):format(self.path, code), 0)
  end
  return answer
end

--- What it answers, as a view. Raises its refusal.
---@return kubelua.view
function Process:get(path, query, opts) return self:call("GET", path, query, nil, opts) end

--- The same for what changes something.
---@return kubelua.view
function Process:post(path, body, opts) return self:call("POST", path, nil, body, opts) end

local function process(env, path) return setmetatable({ path = path, ask = env.control.call }, Process) end

-- "pid 4711  run controllers/a.lua"
local function describe(env, entry)
  local ok, about = pcall(function() return process(env, entry.path):get("/v1/", nil, { seconds = 2 }) end)
  if not ok then return ("  pid %d  (%s)"):format(entry.pid, common.message(about)) end
  local scripts = {}
  for i, script in ipairs(about("scripts") or {}) do scripts[i] = script end
  return ("  --pid %d  %s %s"):format(about.pid, about("command") or "", table.concat(scripts, " "))
end

--- The process that the options mean.
---@return kubelua.cli.Process
function M.connect(env)
  local socket, pid = env.options.socket, env.options.pid
  if socket and pid then common.usage "--socket and --pid exclude each other" end
  if socket then return process(env, socket) end
  if pid and not pid:find "^%d+$" then common.usage("--pid %s is not a process ID", pid) end
  local found = env.control.sockets()
  if #found == 1 and not pid then return process(env, found[1].path) end
  local lines = {}
  for i, entry in ipairs(found) do
    if pid and (entry.path:match "(%d+)%.sock$" == pid or entry.pid == tonumber(pid)) then
      return process(env, entry.path)
    end
    lines[i] = describe(env, entry)
  end
  if #found == 0 then
    error("you have no running kubelua here: start one with `kubelua run SCRIPT.lua`, or give its \z
      control socket, which its log names, with --socket PATH", 0)
  end
  error(("%s; choose one with --pid:\n%s"):format(pid and ("you have no kubelua with process ID \z
    %s"):format(pid)
    or "several kubelua processes run here",
    table.concat(lines, "\n")), 0)
end

return M
