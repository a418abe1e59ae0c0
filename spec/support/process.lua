-- process.lua - child processes of a spec: they end with it, and it can read their logs and exit statuses.
--
--   local p = process.spawn { "build/kubelua", "run", "x.lua", log = "run.log" }
--   p:wait_for_log(5, "caches synced"); p:signal "TERM"; assert.equal(0, p:wait(10))

local wait = require "support.wait"

local M = {}

local TICKS = 100           -- /proc counts hundredths of a second

local Process = {}
Process.__index = Process

local KEEPER = "build/spec/child"
local counter = 0

function M.quote(word) return "'" .. tostring(word):gsub("'", "'\\''") .. "'" end

--- Output (stdout and stderr together) and exit status of a shell command.
function M.run(command)
  local pipe = assert(io.popen("( " .. command .. " ) 2>&1 </dev/null"))
  local out = pipe:read "a"
  local _, how, code = pipe:close()
  return out, how == "signal" and 128 + code or code
end

--- The interpreter that can load the module of this build: Debian's, or one with the sanitizer. An absolute
--- path, or a name in PATH.
function M.lua()
  if (os.getenv "KL_VARIANT" or "release") == "release" then return os.getenv "LUA" or "lua5.4" end
  return M.quote((M.run("realpath " .. M.quote(os.getenv "KL_BUILD" .. "/lua-host")):gsub("%s+$", "")))
end

function M.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
  return path
end

local tmp
--- A directory of this process for the files of specs.
function M.tmpdir()
  if not tmp then
    tmp = os.getenv "KL_TMP"
    if not tmp then tmp = M.run("mktemp -d /tmp/kubelua-spec.XXXXXX"):gsub("%s+$", "") end
    M.run("mkdir -p " .. M.quote(tmp))
  end
  return tmp
end

--- Sets tmpdir to an existing directory.
function M.use_tmpdir(path) tmp = path end

--- A new path in tmpdir.
function M.tmpname(suffix)
  counter = counter + 1
  return ("%s/%d%s"):format(M.tmpdir(), counter, suffix or "")
end

--- Starts a program. `spec` is its list of arguments, with `log` (a path, default: a new one), `env` (extra
--- variables) and `base` (the prefix of the keeper's files, default: a new name).
function M.spawn(spec)
  local base = spec.base or M.tmpname()
  local self = setmetatable({ pidfile = base .. ".pid", rcfile = base .. ".rc",
    log_path = spec.log or base .. ".log",
    name = spec.name or spec[1] }, Process)
  local words = {}
  for name, value in pairs(spec.env or {}) do words[#words + 1] = M.quote(name .. "=" .. value) end
  if #words > 0 then table.insert(words, 1, "env") end
  for _, word in ipairs(spec) do words[#words + 1] = M.quote(word) end
  -- The keeper ends the program when this pipe closes, however this process ends.
  self.pipe = assert(io.popen(("exec %s %s %s %s %s >/dev/null 2>>%s"):format(KEEPER, M.quote(self.pidfile),
    M.quote(self.rcfile),
    M.quote(self.log_path), table.concat(words, " "), M.quote(self.log_path)), "w"))
  self.pid = wait.until_true(10, "start of " .. self.name, function()
    return tonumber(M.read(self.pidfile) or "")
  end)
  return self
end

function Process:log() return M.read(self.log_path) or "" end

function Process:alive() return M.read(self.rcfile) == nil end

function Process:signal(name)
  if self:alive() then M.run(("kill -%s %d"):format(name, self.pid)) end
end

--- Seconds of the processor that it and its children used; 0 once it has ended.
function Process:processor_seconds()
  local user, system, users, systems = (M.read(("/proc/%d/stat"):format(self.pid))
    or ""):match "^.*%) %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%d+) (%d+) (%d+) (%d+)"
  return user and (user + system + users + systems) / TICKS or 0
end

--- Waits up to `seconds` for the exit status (128+n for signal n); nil: the program still runs.
function Process:wait(seconds)
  local ok = pcall(wait.until_true, seconds, "end of " .. self.name, function() return not self:alive() end)
  if not ok then return nil end
  if self.pipe then
    self.pipe:close()
    self.pipe = nil
  end
  return tonumber(M.read(self.rcfile))
end

--- Waits until the log contains `text` (plain); the error shows the log.
function Process:wait_for_log(seconds, text)
  local ok = pcall(wait.until_true, seconds, text, function()
    return self:log():find(text, 1, true) or not self:alive()
  end)
  if not ok or not self:log():find(text, 1, true) then
    error(("%s: its log never said %q%s; the log:\n%s"):format(self.name, text,
      self:alive() and "" or " and it has ended", self:log()), 2)
  end
end

--- Sends TERM and returns the exit status; raises with the log if the program does not end within `seconds`.
function Process:stop(seconds)
  self:signal "TERM"
  local code = self:wait(seconds or 15)
  if not code then
    self:signal "KILL"
    self:wait(5)
    error(("%s did not end within %g s of TERM; its log:\n%s"):format(self.name,
      (seconds or 15) * wait.factor, self:log()), 2)
  end
  return code
end

--- Sends KILL.
function Process:kill()
  self:signal "KILL"
  return self:wait(10)
end

return M
