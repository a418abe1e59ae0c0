-- testing_http.lua - kube.testing.http: what servers would answer to ctx.http, said by a test.
--
--   local web = kube.testing.http()
--   web:on("GET", "https://dns.example.com/v1/records/{host}", { status = 404 })
--   local t = kube.testing.start { script = "dns-record.lua", http = web }
--   assert.equal("www.shop", web:requests("PUT")[1].vars.host)
--
-- No request leaves the process. `http` of the controller is held as in life.

local core = require "kubelua.core"
local options = require "kubelua.options"

local M = {}

---@class kubelua.TestingRequest
---@field method string
---@field url string                     without its query
---@field query table<string, string|string[]>
---@field headers table<string, string|string[]>   names in lower case; secrets as they are
---@field json any                       the body, where it was given as `json`
---@field body string?                   where it was given as `body`
---@field vars table<string, string>     what the pattern's {names} stand for

---@class kubelua.TestingReply
---@field status? integer                200 unless said
---@field headers? table<string, string|string[]>
---@field json? any
---@field body? string
---@field error? "timeout"|"unreachable"|"closed"   no answer comes
---@field message? string                of that error

---@alias kubelua.TestingAnswer integer|kubelua.TestingReply|fun(request: kubelua.TestingRequest): integer|kubelua.TestingReply

---@class kubelua.TestingHttp
---@field private stubs table[]
---@field private seen kubelua.TestingRequest[]
local Web = {}
Web.__index = Web
Web.__name = "kubelua.TestingHttp"

local REPLY = { status = "integer", headers = "table", json = "any", body = "string", error = "string",
  message = "string" }
local ERRORS = { timeout = "no answer in time", unreachable = "connection refused",
  closed = "the connection ended early" }

-- ---------------------------------------------------------------- patterns

local function plain(text) return (text:gsub("%p", "%%%0")) end

-- {name} and * stand for what has no "/", ** for anything.
local function compile(pattern)
  local names, out, at = {}, { "^" }, 1
  while at <= #pattern do
    local from, to, name = pattern:find("{([%a_][%w_]*)}", at)
    local star, star_end = pattern:find("%*+", at)
    local first = math.min(from or math.huge, star or math.huge)
    if first == math.huge then first = #pattern + 1 end
    out[#out + 1] = plain(pattern:sub(at, first - 1))
    if first == from then
      names[#names + 1] = name
      out[#out + 1] = "([^/]+)"
      at = to + 1
    elseif first == star then
      out[#out + 1] = star_end > star and ".*" or "[^/]*"
      at = star_end + 1
    else
      at = first
    end
  end
  out[#out + 1] = "$"
  return table.concat(out), names
end

local function stub_of(what, method, pattern, answer)
  if type(method) ~= "string" or not (method == "*" or method:find "^%a+$") then
    core.blame(("%s: the method must be a word such as \"GET\", or \"*\", got %s"):format(what,
      tostring(method)))
  end
  if type(pattern) ~= "string" or not pattern:find "^https?://" then
    core.blame(("%s: the URL must begin with http:// or https://, got %s"):format(what, tostring(pattern)))
  end
  if pattern:find("?", 1, true) then
    core.blame(("%s: %s: a pattern cannot contain a query; the function gets it as request.query")
      :format(what,
      pattern))
  end
  local kind = type(answer)
  if math.type(answer) ~= "integer" and kind ~= "table" and kind ~= "function" then
    core.blame(("%s: the answer must be a status, a table or a function, got %s"):format(what, kind))
  end
  local compiled, names = compile(pattern)
  return { method = method:upper(), pattern = pattern, lua = compiled, names = names, answer = answer }
end

local function fits(stub, method, url)
  if stub.method ~= "*" and stub.method ~= method then return nil end
  local found = table.pack(url:match(stub.lua))
  if found[1] == nil then return nil end
  local vars = {}
  for i, name in ipairs(stub.names) do vars[name] = found[i] end
  return vars
end

-- ---------------------------------------------------------------- requests

local function unescape(text)
  return (text:gsub("+", " "):gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function query_of(text)
  local out = {}
  for part in text:gmatch "[^&]+" do
    local name, value = part:match "^([^=]*)=?(.*)$"
    name, value = unescape(name), unescape(value)
    local was = out[name]
    if type(was) == "table" then
      was[#was + 1] = value
    else
      out[name] = was and { was, value } or value
    end
  end
  return out
end

local function request_of(method, url, order)
  local bare, query = url:match "^([^?]*)%??(.*)$"
  local headers = {}
  for name, value in pairs(order("headers") or {}) do headers[name:lower()] = core.copy(value) end
  local base64 = order("base64")
  return { method = method, url = bare, query = query_of(query), headers = headers, json = order("json"),
    body = order("text") or base64 and core.base64_decode(base64), vars = {} }
end

-- ---------------------------------------------------------------- answers

local function checked(stub, reply)
  local what = ("the answer to %s %s"):format(stub.method, stub.pattern)
  if math.type(reply) == "integer" then reply = { status = reply } end
  if type(reply) ~= "table" then
    core.blame(("%s must be a status or a table, got %s"):format(what, type(reply)))
  end
  local shape = {}
  for name, value in pairs(reply) do shape[name] = value end
  shape.json = nil
  options.check(what, shape, REPLY)
  if reply.error and not ERRORS[reply.error] then
    core.blame(("%s: error must be \"timeout\", \"unreachable\" or \"closed\", got %q"):format(what,
      reply.error))
  end
  local status = reply.status or 200
  if status < 200 or status > 599 then
    core.blame(("%s: status must be from 200 to 599, got %d"):format(what, status))
  end
  if reply.json ~= nil and reply.body then
    core.blame(what .. ": json and body exclude each other; give one")
  end
  return reply
end

-- As the stage hands it on: status, headers, body; or nil, word, message.
local function handed(reply)
  if reply.error then return nil, reply.error, reply.message or ERRORS[reply.error] end
  local headers = {}
  for name, value in pairs(reply.headers or {}) do
    headers[name:lower()] = type(value) == "table" and core.array(value) or tostring(value)
  end
  if reply.json ~= nil then
    headers["content-type"] = headers["content-type"] or "application/json"
  end
  return reply.status or 200, core.value(core.object(headers), "the headers"),
    reply.json ~= nil and core.encode(reply.json) or reply.body or ""
end

local function list(stubs)
  local out = {}
  for i, stub in ipairs(stubs) do out[i] = stub.method .. " " .. stub.pattern end
  return #out == 0 and "there is none" or "there are " .. table.concat(out, ", ")
end

--- Of the stage: what a request is answered.
function Web:reply(method, url, order)
  local request = request_of(method, url, order)
  self.seen[#self.seen + 1] = request
  for i = #self.stubs, 1, -1 do
    local stub = self.stubs[i]
    local vars = fits(stub, method, request.url)
    if vars then
      request.vars = vars
      local reply = stub.answer
      if type(reply) == "function" then reply = reply(request) end
      return handed(checked(stub, reply))
    end
  end
  return nil, "unreachable",
    ("the test has no answer for it (kube.testing.http; %s)"):format(list(self.stubs))
end

-- ---------------------------------------------------------------- for tests

--- Sets the answer for a method ("*": any) at a URL, in which {name} and * match text without "/", and **
--- matches anything. If several match, the last one set wins.
---@param method string
---@param pattern string
---@param answer kubelua.TestingAnswer
---@return kubelua.TestingHttp self
function Web:on(method, pattern, answer)
  local stub = stub_of("web:on", method, pattern, answer)
  if type(answer) ~= "function" then checked(stub, answer) end
  self.stubs[#self.stubs + 1] = stub
  return self
end

--- The requests so far, in order: all of them, those of a method, or those whose URL matches a pattern.
---@param method string?
---@param pattern string?
---@return kubelua.TestingRequest[]
function Web:requests(method, pattern)
  local stub = stub_of("web:requests", method or "*", pattern or "https://**", 200)
  if not pattern then stub.lua = "" end
  local out = {}
  for _, request in ipairs(self.seen) do
    if fits(stub, request.method, request.url) then out[#out + 1] = request end
  end
  return out
end

--- Forgets the requests so far.
---@return kubelua.TestingHttp self
function Web:forget()
  self.seen = {}
  return self
end

--- Answers for ctx.http, for `http` of kube.testing.start; a table may give several at once:
--- { ["GET https://dns.example.com/v1/records/{host}"] = { status = 404 } }
---@param answers table<string, kubelua.TestingAnswer>?
---@return kubelua.TestingHttp
function M.http(answers)
  local web = setmetatable({ stubs = {}, seen = {} }, Web)
  local names = {}
  if answers ~= nil and type(answers) ~= "table" then
    core.blame(("kube.testing.http: expected a table of answers, got %s"):format(type(answers)))
  end
  for name in pairs(answers or {}) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    local method, pattern = tostring(name):match "^(%S+)%s+(%S+)$"
    if not method then
      core.blame(("kube.testing.http: a key must be a method and a URL, \"GET https://a.example.com/b\", \z
        got %s")
        :format(tostring(name)))
    end
    web:on(method, pattern, answers[name])
  end
  return web
end

--- Whether a value is what M.http gave.
function M.is(x) return getmetatable(x) == Web end

return M
