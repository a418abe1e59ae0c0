-- http_compare_spec.lua - the HTTP requests of a candidate are compared with those of the live logic: in the
-- shadow, and in a replay.

local controller = require "support.controller"
local http = require "support.http"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local SECONDS = 30

local LIVE = [[
  ctx.http:post(url .. "/echo", { json = { name = map.metadata.name, n = 1, token = "sesame-42" },
    headers = { ["X-Run"] = ctx.id, Authorization = "Bearer sesame-43" } })]]
-- By the name of the ConfigMap: the same in other words, to another server, a different one, with a query, or
-- none.
local NEXT = [[
  local name = map.metadata.name
  if name == "silent" then return end
  ctx.http:request("POST", url .. (name == "elsewhere" and "/text" or "/echo"), {
    json = { name = name, n = name == "otherwise" and 2 or 1, token = "sesame-42" },
    query = name == "asks" and { dry = "yes" } or nil,
    headers = { ["X-Run"] = ctx.id .. "x", Authorization = "Bearer sesame-44" } })]]
local NAMES = { "asks", "elsewhere", "otherwise", "same", "silent" }

describe("requests to other servers", function()
  local server, client, web, run, ns
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    web = http.web()
  end)
  before_each(function() ns = controller.namespace(client, "compared") end)
  after_each(function()
    if run then controller.finish(run) end
    run = nil
  end)
  lazy_teardown(function()
    if web then web:stop() end
    if server then server:stop() end
  end)

  local function script(lines)
    return ([[
local kube = require "kubelua"
local url = %q
return kube.controller {
  name = "tells", resource = "v1/ConfigMap", http = { url }, namespaces = { %q }, selector = "told=yes",
  reconcile = function(map, ctx)
%s
  end,
}
]]):format(web.url, ns, lines)
  end

  local function candidate() return process.write(process.tmpname ".lua", script(NEXT)) end

  local function told()
    for _, name in ipairs(NAMES) do
      client:create { kind = "v1/ConfigMap", namespace = ns, name = name, labels = { told = "yes" } }
    end
  end

  local function posts()
    local _, n = web.seen():gsub('"token"', "") -- lines of requests at one time may mix
    return n
  end

  local function keeps_secrets(text) assert.is_nil(text:find("sesame", 1, true), text) end

  it("are compared in the shadow by method, URL and body; the candidate sends none", function()
    local socket = process.tmpname ".sock"
    run = controller.start(server, script(LIVE), "--allow-http", "--control", socket, "--shadow", candidate())
    told()
    local text
    wait.until_true(SECONDS, "the verdicts", function()
      text = process.run(("%s shadow --socket %s"):format(KUBELUA, socket))
      return text:find("1 same, 4 differ, 0 fail", 1, true)
    end)
    local at = web.url:gsub("%p", "%%%0")
    -- Requests to other paths are differences of one kind, told once: of whichever key came first.
    assert.truthy(text:match("elsewhere differs: POST " .. at .. "/echo: sent %-> not sent; POST " .. at
      .. "/text: not sent %-> sent\n    1 more key like this")
      or text:match("asks differs: POST " .. at .. "/echo: sent %-> not sent; POST " .. at
        .. "/echo%?%.%.%.: not sent %-> sent\n    1 more key like this"), text)
    assert.match("otherwise differs: POST " .. at .. "/echo: n: 1 %-> 2", text)
    assert.match("silent differs: POST " .. at .. "/echo: sent %-> not sent", text)
    assert.is_nil(web.seen():find("/text", 1, true))
    keeps_secrets(text)
  end)

  it("are compared in a replay", function()
    local tape = process.tmpname ".rec"
    run = controller.start(server, script(LIVE), "--allow-http", "--record", tape)
    local before = posts()
    told()
    wait.until_true(SECONDS, "five requests", function() return posts() == before + 5 end)
    controller.finish(run)
    run = nil
    local text, code = process.run(("%s replay %s %s 2>&1"):format(KUBELUA, tape,
      process.write(process.tmpname ".lua", script(LIVE))))
    assert.equal(0, code, text)
    assert.match("5 same, 0 differ, 0 fail", text)
    text, code = process.run(("%s replay %s %s 2>&1"):format(KUBELUA, tape, candidate()))
    assert.equal(1, code, text)
    local at = web.url:gsub("%p", "%%%0")
    assert.match("otherwise at [^\n]*: differs\n  POST " .. at .. "/echo: json%.n: 1 %-> 2\n", text)
    assert.match("silent at [^\n]*: differs\n  not any more: POST " .. at .. "/echo", text)
    assert.match("elsewhere at [^\n]*: fails\n  only now: POST " .. at .. "/text", text)
    assert.match("the recording has no answer to POST " .. at .. "/text: the recorded run did not ask", text)
    keeps_secrets(text)
  end)
end)
