-- wire.lua - sends one HTTP/1.1 request like curl, but in this process: many requests start no program.
--
--   local head, body = wire.send { url = "https://127.0.0.1:6443/api", method = "GET", headers = {} }
--
-- Each request has its own connection. Certificates are not verified: specs about those run curl.

local errno = require "cqueues.errno"
local socket = require "cqueues.socket"

-- lua_host.c: the module never frees its type of TLS streams.
local keep_loaded = rawget(_G, "keep_loaded")
if keep_loaded then keep_loaded(package.searchpath("_cqueues", package.cpath)) end

local M = {}

local LIMIT = 60            -- seconds for each wait, unless the request has its own
-- Like curl: before a long body it waits a second for "100 Continue". A server that rejects the request may
-- close the connection.
local LONG, WORD, PIECE, LOOK = 1000000, 1, 65536, 0.01
local CONTINUE = "^HTTP/%S+ 1%d%d"

-- The default headers of a request. Servers print JSON for curl as they do for people.
local USUAL = { ["User-Agent"] = "curl/8", Accept = "*/*" }

local function connect(url, limit)
  local scheme, host, port, path = url:match "^(https?)://([^:/]+):(%d+)(.*)$"
  assert(scheme, url)
  local s = assert(socket.connect(host, tonumber(port)))
  s:settimeout(limit)
  s:onerror(function(_, _, why) return why end)
  s:setmode("b", "bf")
  local ok, why = s:connect()
  if ok and scheme == "https" then ok, why = s:starttls() end
  return ok and s, why, host .. ":" .. port, path == "" and "/" or path
end

local function head_of_request(o, host, path)
  local lines = { ("%s %s HTTP/1.1"):format(o.method, path), "Connection: close" }
  local given = {}
  for _, line in ipairs(o.headers) do
    given[line:match "^[^:]+":lower()] = true
    lines[#lines + 1] = line
  end
  if not given.host then lines[#lines + 1] = "Host: " .. host end
  for name, value in pairs(USUAL) do
    if not given[name:lower()] then lines[#lines + 1] = name .. ": " .. value end
  end
  if o.body then lines[#lines + 1] = "Content-Length: " .. #o.body end
  if o.body and #o.body > LONG then lines[#lines + 1] = "Expect: 100-continue" end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- The lines of a head, or nil if it is not complete.
local function read_head(s)
  local lines = {}
  while true do
    local line = s:read "*L"
    if not line then return nil end
    line = line:gsub("\r?\n$", "")
    if line == "" then return lines end
    lines[#lines + 1] = line
  end
end

-- A text with the read method of a connection.
local function reader(text)
  local from = 1
  return { read = function(_, what)
    local last = what == "*L" and text:find("\n", from, true) or what == "*a" and #text
      or what ~= "*L" and from + what - 1
    local part = last and last <= #text and text:sub(from, last) or nil
    from = part and last + 1 or from
    return part
  end }
end

-- The part of the answer that arrives within that many seconds, or nil. All of it is read at once: after the
-- server has closed the connection, the rest in its buffer is lost.
local function early(s, seconds)
  local limit = s:settimeout(seconds)
  local text = s:read(-PIECE)
  s:clearerr()
  s:settimeout(limit)
  return text
end

local function read_chunks(s)
  local parts = {}
  while true do
    local size = tonumber((s:read "*L" or ""):match "^%x+" or "", 16)
    if not size then return table.concat(parts) end       -- the answer was cut off
    local part = size > 0 and s:read(size)
    parts[#parts + 1] = part or nil
    s:read "*L"
    if not part then return table.concat(parts) end
  end
end

local function read_body(s, o, lines)
  local text, code = ("\n" .. table.concat(lines, "\n", 2)):lower(), lines[1]:match "^HTTP/%S+ (%d+)"
  if o.method == "HEAD" or code == "204" or code == "304" then return "" end
  if text:find "\ntransfer%-encoding: *chunked" then return read_chunks(s) end
  local length = tonumber(text:match "\ncontent%-length: *(%d+)")
  if length then return length > 0 and s:read(length) or "" end
  return s:read "*a" or ""
end

-- Sends a long body piece by piece until an answer begins; returns the part of it that arrived, or nil. A
-- server that stops reading closes the connection half a second after its answer. So while a piece cannot be
-- sent, this waits for the answer.
local function send_long(s, body)
  local text = (early(s, WORD) or ""):gsub(CONTINUE .. ".-\r\n\r\n", "")
  local from = 1
  while text == "" and from <= #body do
    local n, why = s:send(body, from, math.min(#body, from + PIECE - 1), "bn")
    from = from + n
    text = early(s, why and LOOK or 0) or ""
    if why and why ~= errno.EAGAIN then break end
  end
  return text ~= "" and text or nil
end

-- Sends the body; returns the head of the answer, and the source of its body.
local function answer_head(s, body)
  if body and #body > LONG then
    local text = send_long(s, body)
    if text then s = reader(text .. (s:read "*a" or "")) end
  elseif body then
    s:write(body)
    s:flush()
  end
  local lines
  repeat lines = read_head(s) until not lines or not lines[1]:find(CONTINUE)
  return lines, s
end

--- Sends a request: { url, method, headers (lines), body (a text, or nil), limit (seconds, or nil) }. Returns
--- the lines of the answer's head and its body; nil and the reason if there was no answer.
function M.send(o)
  local s, why, host, path = connect(o.url, o.limit or LIMIT)
  if not s then return nil, ("no connection to %s: %s"):format(o.url, tostring(why)) end
  s:write(head_of_request(o, host, path))
  s:flush()
  local lines, from = answer_head(s, o.body)
  local body = lines and read_body(from, o, lines)
  s:close()
  if not lines then return nil, "no answer" end
  return lines, body
end

return M
