-- http.lua - requests to servers that are no API server, as ctx.http has them: from the words of a call to an
-- op (core/client/web.h says what its fields mean), and from its answer to a table.

local core = require "kubelua.core"
local options = require "kubelua.options"

local M = {}

---@class kubelua.HttpTls
---@field ca? string             PEM: who vouches for the server, in place of the system's authorities
---@field cert? string           PEM: our certificate
---@field key? string|kubelua.Secret   PEM: its key
---@field server_name? string    the name that the server's certificate has, where that is not the URL's

---@class kubelua.HttpOptions
---@field query? table<string, string|number|boolean|(string|number|boolean)[]>   added to the URL
---@field headers? table<string, string|number|kubelua.Secret|string[]>
---@field json? any              the body, as JSON
---@field body? string           the body, as it is
---@field timeout? string|number of all of it, 30s unless said
---@field redirects? integer     how many to follow, as far as `http` allows; 0 unless said
---@field max? integer|string    bytes of an answer: "4Mi" unless said, "32Mi" at most
---@field expect? integer|integer[]   statuses that are answers and no errors, beside 2xx and 304
---@field raw? boolean           a JSON answer stays text
---@field tls? kubelua.HttpTls
---@field proxy? string          a URL that `http` allows, too; "" for none. Unless said: as the environment has it

---@class kubelua.HttpAnswer
---@field status integer
---@field url string             after redirects
---@field headers table<string, string|string[]>   names in lower case
---@field json any               of a JSON answer; a view where it is an object or a list
---@field body string?           of any other
---@field dry_run boolean?       true: nothing was sent, for this is a dry run

---@class kubelua.Http
---@field request fun(self: kubelua.Http, method: string, url: string, opts: kubelua.HttpOptions?): kubelua.HttpAnswer
local Http = {}

local OPTIONS = {
  query = "table", headers = "table", json = "any", body = "string", timeout = "duration",
  redirects = "integer", max = "size", expect = "codes", raw = "boolean", tls = "table", proxy = "string",
  on_line = "function", on_chunk = "function",
}
local TLS = { ca = "string", cert = "string", key = "string", server_name = "string" }
local REDIRECTS_MAX, ANSWER_MAX = 10, 32 << 20
-- A longer line is handed over in pieces of this size.
local LINE_MAX = 1 << 20

-- ---------------------------------------------------------------- asking

local function escape(text)
  return (text:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

-- The text of a secret; any other value as it is.
local function bare(x) return core.unsealed(x) or x end

local function scalar(what, where, x)
  if type(x) ~= "string" and type(x) ~= "number" and type(x) ~= "boolean" then
    core.blame(("%s: %s must be a string, a number or a boolean, got %s"):format(what, where, type(x)))
  end
  return tostring(x)
end

local function sorted(what, where, t)
  local names = {}
  for name in pairs(t) do
    if type(name) ~= "string" then
      core.blame(("%s: %s must be a table of names, got a list"):format(what, where))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function with_query(what, url, query)
  if query == nil then return url end
  local parts = {}
  for _, name in ipairs(sorted(what, "query", query)) do
    local value = query[name]
    for _, x in ipairs(type(value) == "table" and value or { value }) do
      parts[#parts + 1] = escape(name) .. "=" .. escape(scalar(what, "query." .. name, x))
    end
  end
  if #parts == 0 then return url end
  return url .. (url:find("?", 1, true) and "&" or "?") .. table.concat(parts, "&")
end

local function headers_of(what, headers)
  local out = {}
  for _, name in ipairs(sorted(what, "headers", headers)) do
    local value = headers[name]
    if type(value) == "table" then
      local list = {}
      for i, x in ipairs(value) do list[i] = scalar(what, ("header %s"):format(name), bare(x)) end
      out[name] = core.array(list)
    else
      out[name] = scalar(what, ("header %s"):format(name), bare(value))
    end
  end
  return core.object(out)
end

local function check(what, opts)
  if opts == nil then return {} end
  local plain = {}
  if type(opts) == "table" then                          -- what has a word of its own here
    for name, value in pairs(opts) do plain[name] = value end
    plain.json, plain.max, plain.expect = nil, nil, nil
  end
  options.check(what, type(opts) == "table" and plain or opts, OPTIONS)
  if opts.json ~= nil and opts.body ~= nil then
    core.blame(what .. ": json and body exclude each other; give one")
  end
  if opts.on_line ~= nil and opts.on_chunk ~= nil then
    core.blame(what .. ": on_line and on_chunk are two ways to read one stream; give one")
  end
  return opts
end

local function tls_of(what, tls)
  if type(tls) ~= "table" then return tls end
  local out = {}
  for name, text in pairs(tls) do out[name] = bare(text) end
  options.check(what .. ": tls", out, TLS)
  return out
end

local function count(what, name, n, most)
  if n ~= nil and (math.type(n) ~= "integer" or n < 0 or n > most) then
    core.blame(("%s: %s must be a whole number from 0 to %d, got %s"):format(what, name, most, tostring(n)))
  end
  return n
end

local function codes(what, x)
  if x == nil then return nil end
  local list = {}
  for i, code in ipairs(type(x) == "table" and x or { x }) do
    if math.type(code) ~= "integer" or code < 200 or code > 599 then
      core.blame(("%s: expect must be a status such as 404, or a list of them, got %s"):format(what,
        tostring(code)))
    end
    list[i] = code
  end
  return core.array(list)
end

local function size(what, x)
  if type(x) == "string" then x = core.qty(x):value() end
  return count(what, "max", x, ANSWER_MAX)
end

local function body_of(order, opts)
  if opts.json ~= nil then
    order.json = opts.json
  elseif opts.body and utf8.len(opts.body) then
    order.text = opts.body
  elseif opts.body then
    order.base64 = core.base64_encode(opts.body)
  end
end

--- The op of a request.
---@param what string  how messages call the call
function M.op(what, method, url, opts)
  if type(method) ~= "string" or not method:find "^%a+$" then
    core.blame(("%s: the method must be a word such as \"GET\", got %s"):format(what, tostring(method)))
  end
  if type(url) ~= "string" or url == "" then
    core.blame(("%s: the URL must be a string such as \"https://dns.example.com/v1\", got %s"):format(what,
      type(url)))
  end
  opts = check(what, opts)
  local order = {
    headers = opts.headers and headers_of(what, opts.headers), tls = tls_of(what, opts.tls),
    proxy = opts.proxy,
    redirects = count(what, "redirects", opts.redirects, REDIRECTS_MAX), max = size(what, opts.max),
    expect = codes(what, opts.expect), raw = opts.raw,
    stream = (opts.on_line or opts.on_chunk) and true or nil,
  }
  body_of(order, opts)
  return {
    verb = "http", kind = "ctx.http", name = with_query(what, url, opts.query), subresource = method:upper(),
    body = core.value(next(order) == nil and core.object {} or order, what), timeout = opts.timeout,
  }
end

-- ---------------------------------------------------------------- answers

--- An answer as a table.
---@return kubelua.HttpAnswer
function M.answer(v, url)
  local out = { status = v.status, url = v.url or url, headers = core.copy(v.headers), json = v.json,
    body = v.body,
    dry_run = v.dry_run }
  if v.base64 then out.body = core.base64_decode(v.base64) end
  return out
end

-- ---------------------------------------------------------------- streams

-- Cuts what comes into lines: a function of the bytes, and of nil at the end. Both tell whether to go on.
local function by_line(fn)
  local rest = ""
  return function(bytes)
    if not bytes then return rest == "" or fn(rest) ~= false end
    rest = rest .. bytes
    local from = 1
    while true do
      local to = rest:find("\n", from, true)
      local line = to and rest:sub(from, to - 1) or #rest - from + 1 >= LINE_MAX and rest:sub(from)
      if not line then break end
      from = to and to + 1 or #rest + 1
      for at = 1, math.max(#line, 1), LINE_MAX do
        if fn(line:sub(at, at + LINE_MAX - 1)) == false then return false end
      end
    end
    rest = rest:sub(from)
    return true
  end
end

local function by_chunk(fn)
  return function(bytes) return not bytes or fn(bytes) ~= false end
end

-- Reads the stream to its end, or until the callback stops it. The stream is always closed afterwards.
---@return kubelua.HttpAnswer
local function read(send, op, head, take)
  local function ask(word)
    return send { verb = "http", kind = op.kind, name = op.name, subresource = op.subresource,
      body = core.value({ [word] = head.stream }, word), timeout = op.timeout }
  end
  local ended = false
  local ok, more = pcall(function()
    while true do
      local got = ask "read"
      ended = got.ended or false
      if ended then return take(nil) end
      if not take(got.base64 and core.base64_decode(got.base64) or got.body) then return false end
    end
  end)
  if not ended then pcall(ask, "close") end
  if not ok then error(more, 0) end
  return { status = head.status, url = head.url or op.name, headers = core.copy(head.headers),
    stopped = not more or nil }
end

-- ---------------------------------------------------------------- the calls

--- Reads: an answer, or an error like one of the API server's: e.code, e.kind, e.message.
---@param url string
---@param opts kubelua.HttpOptions?
---@return kubelua.HttpAnswer
function Http:get(url, opts) return self:request("GET", url, opts) end

---@param url string
---@param opts kubelua.HttpOptions?
---@return kubelua.HttpAnswer
function Http:head(url, opts) return self:request("HEAD", url, opts) end

--- ctx.http:post(url, { json = { name = "a" }, headers = { Authorization = "Bearer " .. token } })
---@param url string
---@param opts kubelua.HttpOptions?
---@return kubelua.HttpAnswer
function Http:post(url, opts) return self:request("POST", url, opts) end

---@param url string
---@param opts kubelua.HttpOptions?
---@return kubelua.HttpAnswer
function Http:put(url, opts) return self:request("PUT", url, opts) end

---@param url string
---@param opts kubelua.HttpOptions?
---@return kubelua.HttpAnswer
function Http:patch(url, opts) return self:request("PATCH", url, opts) end

---@param url string
---@param opts kubelua.HttpOptions?
---@return kubelua.HttpAnswer
function Http:delete(url, opts) return self:request("DELETE", url, opts) end

local METHODS = { GET = "get", HEAD = "head", POST = "post", PUT = "put", PATCH = "patch", DELETE = "delete" }

--- The methods, over a function that sends an op.
---@param what string   how messages call them: "ctx.http"
---@param send fun(op: table): kubelua.view
---@return kubelua.Http
function M.methods(what, send)
  local methods = {}
  for word, method in pairs(Http) do methods[word] = method end
  function methods.request(_, method, url, opts)
    local op = M.op(("%s:%s"):format(what, METHODS[method] or "request"), method, url, opts)
    local head = send(op)
    if not head.stream then return M.answer(head, op.name) end
    return read(send, op, head, opts.on_line and by_line(opts.on_line) or by_chunk(opts.on_chunk))
  end
  return methods
end

return M
