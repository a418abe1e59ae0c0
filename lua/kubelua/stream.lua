-- stream.lua - conversations with pods: logs, exec, attach, port-forward. They are methods of the client;
-- this file has their words and C (core/session/session.h) their bytes. Nothing is buffered without bound:
-- a reader that rests holds the pod back.
--
--   for line in c:logs("web-0", { follow = true, tail = 10 }) do print(line) end
--   local r = c:exec("default/web-0", { "sh", "-c", "date; exit 3" })      --> r.stdout, r.stderr, r.code

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local options = require "kubelua.options"
local request = require "kubelua.request"

local M = {}

---@class kubelua.Client
local Client = {}
M.methods = Client

-- A line that is longer is handed out in pieces of this size: a log of one endless line must not fill the
-- memory.
local LINE_MAX = 1 << 20
-- What exec collects of each of stdout and stderr unless `limit` says otherwise.
local OUTPUT_MAX = 16 << 20

local LOGS = {
  container = "string", follow = "boolean", previous = "boolean", since = "duration", since_time = "moment",
  tail = "integer",
  timestamps = "boolean", limit_bytes = "integer", raw = "boolean", resume = "boolean",
}
local EXEC = { container = "string", stdin = "input", tty = "boolean", timeout = "duration",
  limit = "integer", protocol = "string" }
local STREAM = { container = "string", stdin = "boolean", tty = "boolean", protocol = "string" }
local FORWARD = { address = "string" }

-- ---------------------------------------------------------------- words

-- A pod as a name, "namespace/name", or the object itself.
local function pod_of(self, what, pod)
  if type(pod) == "table" or core.is_view(pod) then
    local meta = pod.metadata
    local name = meta and meta.name
    if type(name) ~= "string" then core.blame(what .. ": the pod has no metadata.name") end
    return meta.namespace or self.core:namespace(), name
  end
  local namespace, name = request.key(what, "v1/Pod", pod)
  return namespace or self.core:namespace(), name
end

local function check_command(what, command)
  if type(command) == "string" then
    core.blame(("%s: a command must be a list of words; for a shell command write { \"sh\", \"-c\", \z
      %q }"):format(
      what, command))
  elseif type(command) ~= "table" or #command == 0 then
    core.blame(("%s: the command must be a list of words such as { \"ls\", \"-l\" }, got %s"):format(what,
      type(command) == "table" and "an empty one" or type(command)))
  end
  for i, word in ipairs(command) do
    if type(word) ~= "string" then
      core.blame(("%s: word %d of the command is %s, not a string"):format(what, i, type(word)))
    end
  end
end

local function at_least(what, opts, name, least)
  local n = opts[name]
  if n and n < least then
    core.blame(("%s: option '%s' must be at least %d, got %d"):format(what, name, least, n))
  end
end

local function failure(session, kind, fmt, ...)
  return core.error { kind = kind, message = fmt:format(...), verb = session.verb, resource = "v1/Pod",
    key = session.ns .. "/" .. session.pod }
end

-- ---------------------------------------------------------------- logs

local Log = {}
Log.__index = Log

function Log:close()
  if self.session then self.session:close() end
  self.session, self.over = nil, true
end

Log.__close = Log.close

-- The next bytes, or nil at the end.
function Log:chunk()
  while not self.over do
    self.session = self.session or self.core:session(self.op)
    local channel, bytes = self.session:read()
    if channel then return bytes end
    if channel == nil then self:close() end
  end
  return nil
end

-- The next line without its newline, or nil. What has no newline at the end is a line too.
function Log:line()
  while true do
    local at = self.rest:find("\n", self.from, true)
    if at or #self.rest - self.from + 1 >= LINE_MAX then
      local stop = at and at - 1 or self.from + LINE_MAX - 1
      local line = self.rest:sub(self.from, stop)
      self.from = at and at + 1 or stop + 1
      return line
    end
    local bytes = self:chunk()
    if not bytes then
      local last = self.rest:sub(self.from)
      self.rest, self.from = "", 1
      return last ~= "" and last or nil
    end
    self.rest, self.from = self.rest:sub(self.from) .. bytes, 1
  end
end

local PASSING = { closed = true, unreachable = true, timeout = true, throttled = true, server = true }
local PAUSE_FIRST, PAUSE_MOST = 0.25, 10    -- seconds

-- Lines that go on after a broken connection: each carries its time, so the next request begins at the last
-- one, and as many lines of that time are skipped as were given already.
function Log:resumed()
  while true do
    local ok, line = pcall(self.line, self)
    if ok then
      if not line then return nil end
      local stamp, text = line:match "^(%d%d%d%d%-%d%d%-%d%dT%S+) ?(.*)$"
      self.pause = PAUSE_FIRST
      if not stamp then return line end
      if stamp == self.skip_stamp and self.skip > 0 then
        self.skip = self.skip - 1
      else
        self.seen = stamp == self.last and self.seen + 1 or 1
        self.last = stamp
        return self.timestamps and line or text
      end
    else
      if not (core.is_error(line) and PASSING[line.kind] and self.last) then error(line, 0) end
      if self.session then self.session:close() end
      clock.sleep(line.retry_after or self.pause)
      self.session, self.rest, self.from, self.pause = nil, "", 1, math.min(self.pause * 2, PAUSE_MOST)
      self.op.since_time, self.op.since_seconds, self.op.tail = self.last, nil, nil
      self.skip_stamp, self.skip = self.last, self.seen
    end
  end
end

--- Iterates over the lines of a container's log, without their newlines: for line in c:logs("web-0", {
--- follow = true }) do ... end. Bytes stay as they are, UTF-8 or not. A line of more than 1 MiB comes in
--- pieces of 1 MiB. With `raw` chunks of bytes come as they arrive. With `follow` it goes on until the
--- container ends or the loop breaks; a connection that breaks raises, unless `resume` is set, which takes
--- the log up after the last line that was given. A reader that rests holds the server back; nothing is
--- lost.
---@param pod string|kubelua.Object|kubelua.view  "name", "namespace/name", or the pod
---@param opts kubelua.LogOptions?
---@return fun(): string?
function Client:logs(pod, opts)
  local what = "c:logs"
  local ns, name = pod_of(self, what, pod)
  opts = options.check(what, opts, LOGS)
  at_least(what, opts, "tail", 0)
  at_least(what, opts, "limit_bytes", 1)
  if opts.since and opts.since_time then core.blame(what .. ": since and since_time exclude each other") end
  if opts.resume and opts.raw then
    core.blame(what .. ": resume and raw exclude each other, as resume counts lines")
  end
  local log = setmetatable({
    core = self.core, rest = "", from = 1, pause = PAUSE_FIRST, timestamps = opts.timestamps, skip = 0,
    seen = 0,
    op = {
      verb = "logs", ns = ns, pod = name, container = opts.container, follow = opts.follow,
      previous = opts.previous, tail = opts.tail,
      since_seconds = opts.since and math.max(1, math.ceil(core.duration(opts.since))),
      limit_bytes = opts.limit_bytes,
      since_time = opts.since_time and core.format_time(opts.since_time),
      timestamps = opts.timestamps or opts.resume,
    },
  }, Log)
  local next_one = opts.raw and log.chunk or opts.resume and log.resumed or log.line
  return function() return next_one(log) end, nil, nil, log
end

-- ---------------------------------------------------------------- streams

local NAMES = { [1] = "stdout", [2] = "stderr" }

--- A running command, an attached process or a connection to a port. Close it, or let `local s <close> =
--- ...` do so.
---@class kubelua.Stream
---@field package session userdata
---@field package op table
local Stream = {}
Stream.__index = Stream
Stream.__name = "kubelua.Stream"

local function session_of(self, what)
  if not self.session then core.blame(("%s: the stream was closed"):format(what)) end
  return self.session
end

local function begin(self, op)
  return setmetatable({ session = self.core:session(op), op = op }, Stream)
end

--- The next bytes and where they come from; nil when it has ended. Waits.
---@return string? bytes, "stdout"|"stderr"|nil from
function Stream:read()
  while true do
    local channel, bytes = session_of(self, "stream:read"):read()
    if channel then return bytes, NAMES[channel] end
    if channel == nil then
      self.code = self.code or bytes
      return nil
    end
  end
end

--- The same without waiting: false when there is nothing now.
---@return string|false|nil bytes, "stdout"|"stderr"|nil from
function Stream:try_read()
  local channel, bytes = session_of(self, "stream:try_read"):read(true)
  if channel then return bytes, NAMES[channel] end
  if channel == nil then
    self.code = self.code or bytes
    return nil
  end
  return false
end

--- Writes to standard input (or the port), waiting for room. Once the other side has ended, what is written
--- goes nowhere, and read says why.
---@param text string
function Stream:write(text)
  if type(text) ~= "string" then
    core.blame(("stream:write: expected a string, got %s"):format(type(text)))
  end
  local session, from = session_of(self, "stream:write"), 1
  while from <= #text do from = from + session:write(text, from) end
end

--- Ends standard input for the other side.
function Stream:close_stdin() session_of(self, "stream:close_stdin"):close_input() end

--- The size of the terminal window, for tty streams.
---@param columns integer
---@param rows integer
function Stream:resize(columns, rows) session_of(self, "stream:resize"):resize(columns, rows) end

--- Reads and drops the rest of the output, and returns the exit status.
---@return integer code
function Stream:wait()
  while self:read() do end -- luacheck: ignore 542
  return self.code
end

--- The protocol that was agreed upon: "v5.channel.k8s.io", say. Waits until the stream is open; raises why
--- it does not open.
---@return string
function Stream:protocol()
  local session = session_of(self, "stream:protocol")
  while not session:opened() and session:read(true) == false do end -- luacheck: ignore 542
  return session:protocol()
end

--- Closes the stream. The container runtime decides whether the command goes on.
function Stream:close()
  if self.session then self.session:close() end
  self.session = nil
end

Stream.__close = Stream.close

local function command_op(self, what, pod, command, opts, input)
  local ns, name = pod_of(self, what, pod)
  check_command(what, command)
  return { verb = "exec", ns = ns, pod = name, container = opts.container, command = command, input = input,
    tty = opts.tty, protocol = opts.protocol }
end

-- The texts of standard input one after the other: the whole, or what a function returns until it returns
-- nil.
local function texts(stdin)
  if type(stdin) ~= "function" then
    local text = stdin
    return function()
      local now = text
      text = nil
      return now
    end
  end
  return function()
    local text = stdin()
    if text ~= nil and type(text) ~= "string" then
      core.blame(("c:exec: stdin must return strings, then nil; it returned %s"):format(type(text)))
    end
    return text
  end
end

-- Feeds standard input to a session between reads.
local Feeder = {}
Feeder.__index = Feeder

function Feeder:step(wait)
  if self.done then return false end
  while self.from > #self.text do
    local text = self.next_text()
    if text == nil then
      self.session:close_input()
      self.done = true
      return false
    end
    self.text, self.from = text, 1
  end
  self.from = self.from + self.session:write(self.text, self.from, not wait)
  return true
end

--- Runs a command in a container and returns what it wrote and its exit status; a status that is not 0
--- raises nothing. `stdin` is text or a function that returns text until it returns nil. Raises when there
--- is no such container, when the time is over (the command may go on) and when more than `limit` bytes (16
--- MiB) come on stdout or stderr: such output is for exec_stream.
---@param pod string|kubelua.Object|kubelua.view
---@param command string[]
---@param opts kubelua.ExecOptions?
---@return { stdout: string, stderr: string, code: integer }
function Client:exec(pod, command, opts)
  opts = options.check("c:exec", opts, EXEC)
  at_least("c:exec", opts, "limit", 1)
  local op = command_op(self, "c:exec", pod, command, opts, opts.stdin ~= nil)
  local timeout = opts.timeout and core.duration(opts.timeout)
  local limit = opts.limit or OUTPUT_MAX
  local stream <close> = begin(self, op)
  local session = stream.session
  local feeder = setmetatable({ session = session, text = "", from = 1,
    next_text = opts.stdin and texts(opts.stdin), done = opts.stdin == nil }, Feeder)
  local pieces, sizes = { {}, {} }, { 0, 0 }
  while true do
    local feeding = feeder:step()
    local channel, bytes = session:read(feeding)
    if channel then
      sizes[channel] = sizes[channel] + #bytes
      if sizes[channel] > limit then
        error(failure(op, "too_big",
          "the command wrote more than %d bytes to %s: raise the limit, or read it with exec_stream",
          limit, NAMES[channel]), 0)
      end
      table.insert(pieces[channel], bytes)
    elseif channel == nil then
      return { stdout = table.concat(pieces[1]), stderr = table.concat(pieces[2]), code = bytes }
    elseif feeding then
      feeder:step(true)
    end
    if timeout and session:age() > timeout then
      error(failure(op, "timeout", "the command did not end within %s", core.format_duration(timeout)), 0)
    end
  end
end

--- Begins a command and returns its streams, for conversations and for output without bound:
--- local s <close> = c:exec_stream("web-0", { "cat" }, { stdin = true }); s:write "x"; s:close_stdin();
--- print(s:read())
---@param pod string|kubelua.Object|kubelua.view
---@param command string[]
---@param opts kubelua.StreamOptions?
---@return kubelua.Stream
function Client:exec_stream(pod, command, opts)
  opts = options.check("c:exec_stream", opts, STREAM)
  return begin(self, command_op(self, "c:exec_stream", pod, command, opts, opts.stdin))
end

--- The streams of a container's own first process. `stdin` works where the container was made with it.
---@param pod string|kubelua.Object|kubelua.view
---@param opts kubelua.StreamOptions?
---@return kubelua.Stream
function Client:attach(pod, opts)
  local ns, name = pod_of(self, "c:attach", pod)
  opts = options.check("c:attach", opts, STREAM)
  return begin(self, { verb = "attach", ns = ns, pod = name, container = opts.container, input = opts.stdin,
    tty = opts.tty, protocol = opts.protocol })
end

-- ---------------------------------------------------------------- ports

local function port_number(what, x, least)
  local n = math.tointeger(tonumber(x))
  if not n or n < least or n > 65535 then
    core.blame(("%s: a port must be a number from %d to 65535, or \"LOCAL:REMOTE\"; got %s"):format(what,
      least,
      tostring(x)))
  end
  return n
end

--- Ports of a pod on this machine. They are served by a thread of the client's, whatever the script does
--- meanwhile.
---@class kubelua.Forward
---@field ports table<integer, integer>  the local port of each of the pod's
local Forward = {}
Forward.__index = Forward
Forward.__name = "kubelua.Forward"

--- "127.0.0.1:34567" for a port of the pod; without a port, for the only one.
---@param port integer?
---@return string
function Forward:address(port)
  port = port or next(self.ports)
  local found = self.ports[port]
  if not found then core.blame(("forward:address: port %s is not forwarded"):format(tostring(port))) end
  return ("%s:%d"):format(self.host, found)
end

--- Open connections, all connections so far, and the reason of the last failed one.
---@return { open: integer, total: integer, failure: string? }
function Forward:state()
  local open, total, why = 0, 0, nil
  for _, f in ipairs(self.all) do
    local now, ever, text = f:state()
    open, total, why = open + now, total + ever, text or why
  end
  return { open = open, total = total, failure = why }
end

--- Stops listening and closes what is open.
function Forward:close()
  for _, f in ipairs(self.all) do f:close() end
  self.all = {}
end

Forward.__close = Forward.close

--- Forwards local ports to a pod: c:port_forward("web-0", 80), { 80, 443 }, or "8080:80" to choose the local
--- port. Each connection to a local port has a connection of its own to the server. Close the result, or let
--- it be collected.
---@param pod string|kubelua.Object|kubelua.view
---@param ports integer|string|(integer|string)[]
---@param opts { address: string? }?  where to listen, 127.0.0.1
---@return kubelua.Forward
function Client:port_forward(pod, ports, opts)
  local what = "c:port_forward"
  local ns, name = pod_of(self, what, pod)
  opts = options.check(what, opts, FORWARD)
  if type(ports) ~= "table" then ports = { ports } end
  if #ports == 0 then core.blame(what .. ": name a port, such as 80 or \"8080:80\"") end
  local host = opts.address or "127.0.0.1"
  local wanted = {}
  for i, port in ipairs(ports) do
    local here, there = tostring(port):match "^(%d*):(%d+)$"
    wanted[i] = { here and here ~= "" and port_number(what, here, 0) or 0,
      port_number(what, there or port, 1) }
  end
  local forward = setmetatable({ ports = {}, all = {}, host = host }, Forward)
  for i, pair in ipairs(wanted) do
    local ok, f = pcall(self.core.forward, self.core, {
      verb = "port_forward", ns = ns, pod = name, port = pair[2],
      listen = (host:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(host, pair[1]),
    })
    if not ok then
      forward:close()
      error(f, 0)
    end
    forward.all[i], forward.ports[pair[2]] = f, f:port()
  end
  return forward
end

--- One connection to a port of a pod, as a stream to read and write.
---@param pod string|kubelua.Object|kubelua.view
---@param port integer
---@return kubelua.Stream
function Client:port_stream(pod, port)
  local ns, name = pod_of(self, "c:port_stream", pod)
  return begin(self, { verb = "port_forward", ns = ns, pod = name,
    port = port_number("c:port_stream", port, 1) })
end

return M
