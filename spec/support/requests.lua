--- requests.lua - sends raw requests to the embedded server and to a real one, and compares the answers.
--
--   local requests = require "support.requests"
--   requests.describe("both servers answer", rows, function(api) ... make what the rows need ... end,
--     function(api) ... remove it ... end)
--
-- A row is { code =, method =, path =, headers = list, body = table or text, head = true where the body of
-- the answer does not count }. Each is one `it`: both servers answer with `code`, and alike in body, type,
-- warnings and the other headers of HEADERS, except for what is chance (uids, times, versions). Without a
-- real server the rows are pending.

local both = require "support.both"
local busted = require "busted"
local json = require "dkjson"
local luassert = require "luassert"
local new_api = require "support.api"
local servers = require "support.servers"

local M = {}

-- What is compared of an answer.
local HEADERS = { "content-type", "cache-control", "warning", "retry-after", "x-content-type-options",
  "allow", "location", "vary" }

-- A text whose times and versions do not count.
local function plain(text)
  return (text:gsub("%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ", "TIME")
    :gsub('resourceVersion: "%d+"', "resourceVersion: VERSION")
    :gsub("serverAddress: %S+", "serverAddress: ADDRESS"))
end

local function seen(r, head)
  local answer = { code = r.code, body = head and "" or plain(r.text) }
  -- a patched object, whose keys have an order
  r.text = r.text:gsub([[\"{\\\"%a.-}\": ]], "OBJECT: ")
  for _, name in ipairs(HEADERS) do answer[name] = r.headers[name] end
  if head then return answer end
  if r.text:find "^{.*\n{" then -- frames of a watch
    answer.body = {}
    for line in r.text:gmatch "[^\n]+" do answer.body[#answer.body + 1] = json.decode(line, 1, json.null) end
  elseif type(r.body) == "table" then
    answer.body = json.decode(r.text, 1, json.null)
  end
  return both.scrub(answer)
end

--- Sends `rows` to both servers; `before(api)` and `after(api)` make and remove what they need on each.
function M.describe(what, rows, before, after)
  servers.only_real(function(_, real)
    busted.describe(what, function()
      local apis = {}

      busted.lazy_setup(function()
        for i, s in ipairs { servers.embedded {}, real {} } do
          apis[i] = new_api(s)
          apis[i].server = s
          before(apis[i])
        end
      end)
      busted.lazy_teardown(function()
        for _, api in ipairs(apis) do
          after(api)
          api.server:stop()
        end
      end)

      for _, r in ipairs(rows) do
        local path = #r.path > 200 and r.path:sub(1, 200) .. "..." or r.path
        local body = type(r.body) == "table" and json.encode(r.body) or r.body or ""
        local headers = table.concat(r.headers or {}, ", ")
        busted.it(("%s %s %s %s"):format(r.method, path, headers, body), function()
          local answers = {}
          for i, api in ipairs(apis) do
            answers[i] = seen(api:request(r.method, r.path, r.body, r.headers), r.head)
          end
          luassert.equal(r.code, answers[2].code, json.encode(answers[2].body))
          both.same(answers[2], answers[1])
        end)
      end
    end)
  end)
end

return M
