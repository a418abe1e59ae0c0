-- http_ways_spec.lua - ctx.http over TLS, proxies and reused connections; and where its requests are
-- recorded: metrics, why, the log of writes, the shadow, replay.

local controller = require "support.controller"
local http = require "support.http"
local identities = require "support.identities"
local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

describe("ctx.http", function()
  local server, client
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
  end)
  lazy_teardown(function() if server then server:stop() end end)

  local function namespace() return controller.namespace(client, "ways") end

  it("trusts the given CA, presents the given certificate, and separates connections by both", function()
    local ca, other = identities.ca "spec-web-ca", identities.ca "spec-other-ca"
    local cert = identities.certificate(ca, "/CN=web", "IP:127.0.0.1,DNS:dns.example.com")
    local mine = identities.certificate(ca, "/CN=kubelua")
    local web = http.web(cert.crt, cert.key, ca.crt)
    finally(function() web:stop() end)
    local t = http.start(server, client, namespace(), { web.url }, "--allow-http")
    local function ask(more)
      return t:ask(([[local ca, cert, key, other = %q, %q, %q, %q
        return http:get(url .. "/echo", { tls = { %s } }).json.peer]]):format(process.read(ca.crt),
        process.read(mine.crt), process.read(mine.key), process.read(other.crt), more))
    end
    local good = "ca = ca, cert = cert, key = key"
    local peer = ask(good)
    assert.is_number(peer)
    assert.equal(peer, ask(good))                                     -- the connection is used again
    assert.is_number(ask(good .. ", server_name = 'dns.example.com'"))
    for _, bad in ipairs { "", "ca = other, cert = cert, key = key", "ca = ca",
      good .. ", server_name = 'web.example.com'", "ca = 'no PEM', cert = cert, key = key" } do
      local e = ask(bad).error
      assert.is_table(e, bad)
      assert.match("GET https://127.0.0.1:%d+/echo: ", e.message)
    end
    assert.is_nil(t:log():find("PRIVATE KEY", 1, true))
    t:finish()
  end)

  it("goes through the proxy of the environment, unless NO_PROXY or the request excludes it", function()
    local web = http.web()
    finally(function() web:stop() end)
    local ns = namespace()
    local path = process.write(process.tmpname ".lua", http.script(ns, { "http://dns.example.com", web.url }))
    local run = controller.start_with({ "HTTP_PROXY=" .. web.url, "NO_PROXY=127.0.0.1" }, server, path,
      "--allow-http")
    local t = http.of(run, client, ns)
    assert.equal("a text", t:ask "return http:get(url .. '/v1/records').body")
    assert.match("GET http://dns.example.com/v1/records ", web:seen())
    assert.equal("/echo", t:ask(("return http:get(%q).json.path"):format(web.url .. "/echo")))
    local e = t:ask("return http:get(url .. '/direct', { proxy = '', timeout = '5s' })").error
    assert.is_table(e)
    assert.is_nil(web:seen():find("/direct", 1, true))
    t:finish()
  end)

  it("is counted, shown by why, and its writes are in the write log", function()
    local web = http.web()
    finally(function() web:stop() end)
    local port, socket, effects = servers.free_port(), process.tmpname ".sock", process.tmpname ".effects"
    local ns = namespace()
    local t = http.start(server, client, ns, { web.url }, "--allow-http", "--metrics-bind-address",
      "127.0.0.1:" .. port,
      "--control", socket, "--effects", effects)
    assert.equal(200, t:ask [[http:get(url .. "/echo?key=hush")
      return http:post(url .. "/echo", { json = { n = 1 } }).status]])
    t:ask "return http:get(url .. '/status/404', { expect = 404 }).status"
    local metrics = process.run(("curl -fsS http://127.0.0.1:%d/metrics"):format(port))
    local host = web.url:match "//(.*)"
    for _, line in ipairs { '{code="200",host="%s",method="GET"} 1', '{code="200",host="%s",method="POST"} 1',
      '{code="404",host="%s",method="GET"} 1' } do
      assert.truthy(metrics:find("rest_client_requests_total" .. line:format(host), 1, true),
        metrics:match("[^\n]*" .. host:gsub("%p", "%%%0") .. ".*"))
    end
    local why = process.run(("%s why --socket %s cm %s/ask-1 --runs 5"):format(KUBELUA, socket, ns))
    assert.match("GET " .. web.url .. "/echo%?%.%.%.", why)
    assert.match("POST " .. web.url .. "/echo", why)
    assert.is_nil(why:find("hush", 1, true))
    t:finish()
    local log = process.read(effects)
    assert.match("POST", log)
    assert.truthy(log:find(web.url .. "/echo", 1, true), log)
    assert.is_nil(log:find("hush", 1, true))
    assert.is_nil(log:find('"GET"', 1, true))
  end)

  it("sends only reads from the shadow, and compares requests in a replay", function()
    local web = http.web()
    finally(function() web:stop() end)
    local ns, socket, tape = namespace(), process.tmpname ".sock", process.tmpname ".tape"
    local function script(word, more)
      return ([[
local kube = require "kubelua"
return kube.controller { name = "twice", resource = "v1/ConfigMap", namespaces = { %q }, http = %q,
  reconcile = function(map, ctx)
    if not map("data.ask") then return end
    ctx.http:get(%q .. "/text")
    %s
    ctx.http:post(%q .. "/echo/%s", { json = { n = 1 } })
    ctx.log:info("done %s")
  end }
]]):format(ns, web.url, web.url, more or "", web.url, word, word)
    end
    client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { ask = "x" } }
    local t = http.start_script(server, client, ns, script "live", "--allow-http", "--control", socket,
      "--record", tape)
    t.run:wait_for_log(60, "done live")
    local candidate = process.write(process.tmpname ".lua",
      script("candidate", ("ctx.http:get(%q .. '/text?more')"):format(web.url)))
    local said = process.run(("%s shadow --socket %s %s --all 2>&1"):format(KUBELUA, socket, candidate))
    assert.truthy(said:find("(1 run)", 1, true), said)
    assert.truthy(web:seen():find("GET /text?more", 1, true))
    assert.is_nil(web:seen():find("/echo/candidate", 1, true))
    t:finish()
    local before = web:seen()
    local same, code = process.run(("%s replay %s %s"):format(KUBELUA, tape, t.run.script_path))
    assert.equal(0, code, same)
    local next_one = process.write(process.tmpname ".lua", script "other")
    local differs
    differs, code = process.run(("%s replay %s %s"):format(KUBELUA, tape, next_one))
    assert.equal(1, code, differs)
    assert.truthy(differs:find(web.url .. "/echo/other", 1, true), differs)
    assert.equal(before, web:seen())
  end)
end)
