--- api.lua - raw HTTP to an API server of servers.lua, for specs about the server itself.
--
--   local api = require "support.api" (s)
--   local r = api:post("/api/v1/namespaces", { metadata = { name = "a" } }); assert.equal(201, r.code)
--
-- An answer has code, body (decoded; the text when it is not JSON), text and headers (lower case).

local json = require "dkjson"
local process = require "support.process"
local wire = require "support.wire"

local Api = {}
Api.__index = Api

local function decode(text)
  local value = json.decode(text, 1, nil)
  return type(value) == "table" and value or text
end

-- The arguments of curl for every request to the server.
local function common(s)
  local words = { "--max-time 60" }
  if s.token then
    words[2] = "-H " .. process.quote("Authorization: Bearer " .. s.token)
    words[3] = "--cacert " .. process.quote(s.ca)
  end
  return table.concat(words, " ")
end

-- Most specs read only the code of an answer, so a body is decoded at its first use.
local Answer = {}
function Answer:__index(key)
  if key ~= "body" then return nil end
  local body = decode(self.text)
  rawset(self, "body", body)
  return body
end

-- One answer: the lines of its head, and its body.
local function answer(head, body)
  local r = { headers = {}, text = body }
  for _, line in ipairs(head) do
    local status = line:match "^HTTP/%S+ (%d+)"
    local name, value = line:match "^([^:]+):%s*(.*)"
    if status then r.code = tonumber(status) elseif name then r.headers[name:lower()] = value end
  end
  return r
end

--- `body` is a table (sent as JSON) or a text; `headers` a list of "Name: value". `self.limit`: seconds for
--- each wait, where it is set.
function Api:request(method, path, body, headers)
  local lines, typed = { self.s.token and "Authorization: Bearer " .. self.s.token or nil }, body == nil
  for _, line in ipairs(headers or {}) do
    typed = typed or line:lower():find "^content%-type:" ~= nil
    lines[#lines + 1] = line
  end
  if not typed then lines[#lines + 1] = "Content-Type: application/json" end
  local head, text = wire.send { url = self.s.url .. path, method = method, headers = lines,
    body = type(body) == "table" and json.encode(body) or body, limit = self.limit }
  if not head then error(("%s %s: %s"):format(method, path, text), 2) end
  return setmetatable(answer(head, text), Answer)
end

--- Gets `paths`, a list, in one run of curl. Returns the answers by path, without `body`.
function Api:get_all(paths, headers)
  local config, files = {}, {}
  for i, path in ipairs(paths) do
    files[i] = process.tmpname ".answer"
    config[#config + 1] = ('url = "%s%s"\noutput = "%s"\n'):format(self.s.url, path, files[i])
  end
  local words = { "curl -sS -i --globoff", common(self.s) }
  for _, line in ipairs(headers or {}) do words[#words + 1] = "-H " .. process.quote(line) end
  words[#words + 1] = "-K " .. process.write(process.tmpname ".curl", table.concat(config))
  local said, code = process.run(table.concat(words, " "))
  if code ~= 0 then error(("%d paths: curl ended with %d: %s"):format(#paths, code, said), 2) end
  local out = {}
  for i, path in ipairs(paths) do
    local head, body = process.read(files[i]):match "^(.-)\r\n\r\n(.*)$"
    local lines = {}
    for line in head:gmatch "[^\r\n]+" do lines[#lines + 1] = line end
    out[path] = answer(lines, body)
  end
  return out
end

function Api:get(path, headers) return self:request("GET", path, nil, headers) end
function Api:post(path, body, headers) return self:request("POST", path, body, headers) end
function Api:put(path, body, headers) return self:request("PUT", path, body, headers) end
function Api:delete(path, body) return self:request("DELETE", path, body) end

local TYPES = { merge = "application/merge-patch+json", json = "application/json-patch+json",
  strategic = "application/strategic-merge-patch+json", apply = "application/apply-patch+yaml" }

function Api:patch(kind, path, body)
  return self:request("PATCH", path, body, { "Content-Type: " .. TYPES[kind] })
end

--- Server-side apply of `object` at `path` by `manager`.
function Api:apply(path, manager, object, force)
  return self:patch("apply", ("%s?fieldManager=%s%s"):format(path, manager, force and "&force=true" or ""),
    object)
end

--- The events of a watch of `path` (with its query) within its timeout of one second: a list of {type,
--- object}.
function Api:watched(path)
  local r = self:get(path .. (path:find "?" and "&" or "?") .. "watch=true&timeoutSeconds=1")
  local events = {}
  for line in (r.code == 200 and r.text or ""):gmatch "[^\n]+" do
    events[#events + 1] = assert(json.decode(line), line)
  end
  return events, r
end

return function(s) return setmetatable({ s = s }, Api) end
