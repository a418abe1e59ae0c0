-- http.lua - a controller for specs that runs the code in ConfigMaps with ctx.http.
--
--   local web = http.web()                                  -- spec/support/web.py
--   local t = http.start(server, client, ns, { web.url }, "--allow-http")
--   assert.equal(200, t:ask("return http:get(url .. '/text').status"))
--
-- A question is Lua over `http` (ctx.http), `url` (of the first rule) and `ctx`. The answer is what it
-- returns, as JSON has it; of an error what is in its table, as { error = { kind, code, message, ... } }.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local wait = require "support.wait"

local M = {}

--- Starts the stand-in for other servers with these arguments. It has url, port, seen() and stop().
function M.web(...)
  local web = process.spawn { "python3", "spec/support/web.py", ... }
  web:wait_for_log(20, "port ")
  local self = { process = web, port = web:log():match "port (%d+)" }
  self.url = ("%s://127.0.0.1:%s"):format(... and "https" or "http", self.port)
  function self.seen() return (web:log():gsub("^port %d+\n", "")) end
  function self.stop() web:stop() end
  return self
end

M.SCRIPT = [[
local kube = require "kubelua"
local RULES = %s
return kube.controller {
  name = "asks", resource = "v1/ConfigMap", http = RULES, namespaces = { %q },%s
  reconcile = function(map, ctx)
    local ask = map("data.ask")
    if not ask or map("data.answer") then return end
    local url = RULES[1]
    if type(url) == "table" then url = url.url end
    local fn = assert(load("local http, url, ctx = ... " .. ask))
    local answer, e = kube.try(function() return kube.object { value = fn(ctx.http, url, ctx) } end)
    if e then
      answer = { error = { kind = e.kind, code = e.code, message = e.message, text = tostring(e),
        retry_after = e.retry_after, verb = e.verb, key = e.key } }
    end
    ctx:patch(map, function(m) m.data.answer = kube.encode(answer) end)
  end,
}
]]

local T = {}
T.__index = T

--- rules: Lua that gives the list, or a list of URLs; more: keys of the table, as text.
function M.script(ns, rules, more)
  if type(rules) == "table" then
    local list = {}
    for i, rule in ipairs(rules) do list[i] = ("%q"):format(rule) end
    rules = "{ " .. table.concat(list, ", ") .. " }"
  end
  return M.SCRIPT:format(rules, ns, more or "")
end

function M.start(server, client, ns, rules, ...)
  return M.start_script(server, client, ns, M.script(ns, rules), ...)
end

function M.start_script(server, client, ns, script, ...)
  return M.of(controller.start(server, script, ...), client, ns)
end

--- For a controller that already runs.
function M.of(run, client, ns) return setmetatable({ run = run, client = client, ns = ns, n = 0 }, T) end

--- Asks a question, and returns the answer.
function T:ask(lua)
  self.n = self.n + 1
  local name = "ask-" .. self.n
  self.client:create { kind = "v1/ConfigMap", namespace = self.ns, name = name, data = { ask = lua } }
  local answer = wait.until_true(60, "an answer to " .. lua, function()
    if not self.run:alive() then error(self.run:log(), 0) end
    return self.client:get("v1/ConfigMap", self.ns, name)("data.answer")
  end)
  local got = kube.copy(kube.decode(answer))
  if got.error then return got end
  return got.value
end

function T:log() return self.run:log() end
function T:finish() controller.finish(self.run) end

return M
