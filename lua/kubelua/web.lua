-- web.lua - kube.http: requests of a program of one's own to servers that are no API server, with the words
-- of ctx.http. It waits where it is called.
--
--   local r = kube.http:get("https://dns.example.com/v1/records", { query = { host = "a" } })
--   print(r.status, r.json and r.json[1].ip)

local core = require "kubelua.core"
local http = require "kubelua.http"

local M = {}

local web

-- Every poll waits a slice in C; between two of them hooks run, so ^C works.
local function send(op)
  web = web or core.web()
  local call <close> = web:begin(op)
  while true do
    local done, answer = call:poll()
    if done then return answer end
  end
end

--- Nothing has to be allowed here: a program reaches what its user may.
---@type kubelua.Http
M.http = http.methods("kube.http", send)

return M
