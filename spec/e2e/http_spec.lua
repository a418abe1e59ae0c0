-- http_spec.lua - ctx.http: requests to servers other than the API server, and the rules that restrict them.

local controller = require "support.controller"
local http = require "support.http"
local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

describe("ctx.http", function()
  local server, client, web, t
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    web = http.web()
    t = http.start(server, client, controller.namespace(client, "http"), { web.url,
      "http://localhost:" .. web.port .. "/echo" }, "--allow-http")
  end)
  lazy_teardown(function()
    if t then t:finish() end
    if web then web:stop() end
    if server then server:stop() end
  end)

  it("sends the request and returns a table", function()
    local r = t:ask [[ return http:post(url .. "/echo?a=1", { json = { n = 1, list = { "x" } },
      query = { q = "a b&c", many = { 1, true } },
      headers = { ["X-Key"] = "k", ["X-Many"] = { "1", "2" } } }) ]]
    assert.equal(200, r.status)
    assert.same({ "a", "b" }, r.headers["x-two"])
    assert.equal("POST", r.json.method)
    assert.equal("/echo?a=1&many=1&many=true&q=a%20b%26c", r.json.path)
    assert.same({ n = 1, list = { "x" } }, require("dkjson").decode(r.json.body))
    assert.equal("application/json", r.json.headers["content-type"])
    assert.equal("k", r.json.headers["x-key"])
    assert.equal("2", r.json.headers["x-many"])
    for _, word in ipairs { "get", "put", "patch", "delete" } do
      local said = t:ask(("return http:%s(url .. '/echo', { body = 'text' })"):format(word)).json
      assert.equal(word:upper(), said.method)
      if word ~= "get" then assert.equal("text", said.body) end
    end
    assert.equal("OPTIONS", t:ask "return http:request('options', url .. '/echo').json.method")
    assert.equal("", t:ask "return http:head(url .. '/echo').body")
  end)

  it("returns other bodies unchanged", function()
    assert.equal("a text", t:ask "return http:get(url .. '/text').body")
    assert.equal(3, t:ask "return #http:get(url .. '/bytes').body")
    assert.equal("string", t:ask "return type(http:get(url .. '/echo', { raw = true }).body)")
    assert.match("the answer claims to be JSON but is not",
      t:ask("return http:get(url .. '/broken')").error.message)
  end)

  it("raises an error status like errors of the API", function()
    local e = t:ask("return http:get(url .. '/status/404?token=hidden')").error
    assert.same({ "not_found", 404, 7.0, "GET" }, { e.kind, e.code, e.retry_after, e.verb })
    assert.match("GET " .. web.url .. "/status/404%?%.%.%.: the answer is 404: no:", e.message)
    assert.equal("throttled", t:ask("return http:get(url .. '/status/429')").error.kind)
    assert.equal("rejected", t:ask("return http:get(url .. '/status/409')").error.kind)
    assert.equal("server", t:ask("return http:get(url .. '/status/503')").error.kind)
    assert.equal(404, t:ask "return http:get(url .. '/status/404', { expect = 404 }).status")
  end)

  it("never shows headers or queries", function()
    local e = t:ask("return http:get(url .. '/status/401?key=hush', { headers = { Authorization = \z
      'Bearer sesame-42' } })").error
    assert.equal("unauthorized", e.kind)
    for _, text in ipairs { e.message, e.text, t:log() } do
      assert.is_nil(text:find("sesame", 1, true))
      assert.is_nil(text:find("hush", 1, true))
    end
    assert.match("no: %*%*%*", e.message)
  end)

  it("limits the size and time of answers", function()
    assert.equal(1000, t:ask "return #http:get(url .. '/big/1000', { max = 1000 }).body")
    assert.equal("too_big", t:ask("return http:get(url .. '/big/1001', { max = 1000 })").error.kind)
    assert.equal("too_big", t:ask("return http:get(url .. '/big/5000000')").error.kind)
    assert.equal("timeout", t:ask("return http:get(url .. '/hang', { timeout = '300ms' })").error.kind)
  end)

  it("follows redirects if told to, within the rules", function()
    local target = ("http://localhost:%s/echo"):format(web.port)
    local e = t:ask("return http:get(url .. '/to?/echo')").error
    assert.same({ "server", 302 }, { e.kind, e.code })
    local r = t:ask "return http:post(url .. '/to?/echo', { redirects = 1, body = 'x' })"
    assert.same({ "GET", "", web.url .. "/echo" }, { r.json.method, r.json.body, r.url })
    r = t:ask "return http:post(url .. '/to/307?/echo', { redirects = 1, body = 'x' })"
    assert.same({ "POST", "x" }, { r.json.method, r.json.body })
    -- another server gets nothing that was meant for the first one
    r = t:ask(("return http:get(url .. '/to?%s', { redirects = 1, headers = { ['X-Key'] = 'k', Accept = \z
      'a/b' } })")
      :format(target)).json.headers
    assert.same({ nil, "a/b" }, { r["x-key"], r.accept })
    for _, elsewhere in ipairs { "http://127.0.0.2:" .. web.port .. "/",
      "http://localhost:" .. web.port .. "/text",
      "file:///etc/passwd", "//example.com/", "http://127.0.0.1:1/" } do
      e = t:ask(("return http:get(url .. '/to?%s', { redirects = 3 })"):format(elsewhere)).error
      assert.is_true(e.kind == "forbidden" or e.kind == "invalid", elsewhere .. ": " .. e.kind)
    end
  end)

  it("reaches nothing that no rule names", function()
    for _, other in ipairs { "http://127.0.0.1:1/", "https://127.0.0.1:" .. web.port .. "/",
      "http://localhost:" .. web.port .. "/text", "http://localhost:" .. web.port .. "/echo2" } do
      local e = t:ask(("return http:get(%q)"):format(other)).error
      assert.equal("forbidden", e.kind)
      assert.match("is not in `http` of this controller", e.message)
      assert.matches(('add http = { "%s" }'):format(other:match "^%l+://[^/]+"), e.message, 1, true)
    end
    for _, other in ipairs { web.url:gsub("127", "x@127"), web.url .. "/a/../b", web.url .. "/%2e%2E/b",
      web.url .. "\\a", web.url .. "/a#b", "http://2130706433:" .. web.port, "http://0x7f.1:" .. web.port,
      "ftp://127.0.0.1/", web.url .. "/a b" } do
      assert.equal("invalid", t:ask(("return http:get(%q)"):format(other)).error.kind, other)
    end
    for _, header in ipairs { "Host", "Content-Length", "Proxy-Authorization", "Transfer-Encoding", "a b" } do
      assert.equal("invalid", t:ask(("return http:get(url, { headers = { [%q] = '1' } })"):format(
        header)).error.kind)
    end
    assert.equal("invalid", t:ask("return http:get(url, { headers = { a = 'b\\r\\nc: d' } })").error.kind)
    assert.equal("invalid", t:ask("return http:request('TRACE', url)").error.kind)
    assert.equal("forbidden", t:ask("return http:get(url, { proxy = 'http://127.0.0.1:1' })").error.kind)
  end)
end)

describe("ctx.http without permission", function()
  local server, client, web
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    web = http.web()
  end)
  lazy_teardown(function()
    if web then web:stop() end
    if server then server:stop() end
  end)

  local function asked(rules, question, ...)
    local t = http.start(server, client, controller.namespace(client, "closed"), rules, ...)
    local answer = t:ask(question)
    t:finish()
    return answer, t:log()
  end

  it("sends nothing without --allow-http", function()
    local answer, log = asked({ web.url, "https://dns.example.com" }, "return http:get(url .. '/without')")
    local e = answer.error
    assert.equal("forbidden", e.kind)
    assert.match("%-%-allow%-http of kubelua run or dev", e.message)
    assert.is_nil(web:seen():find("without", 1, true))
    local _, warned = log:gsub("ctx.http is disabled: the script lists servers, but %-%-allow%-http was not \z
      given", "")
    assert.equal(1, warned)
    assert.truthy(log:find(('servers="%s, https://dns.example.com"'):format(web.url), 1, true), log)
  end)

  it("rejects a name that resolves to a loopback or link-local address", function()
    local name = process.run "hostname":match "%S+"
    local loops = process.run("getent hosts " .. process.quote(name)):match "^(%S+)" or ""
    -- "localhost" is this machine's name for itself, and an address is itself
    assert.equal("a text", asked({ "http://localhost:" .. web.port }, "return http:get(url .. '/text').body",
      "--allow-http"))
    if not (loops:find "^127%." or loops == "::1") then
      return pending("the name of this machine is not a loopback address here")
    end
    local e = asked({ ("http://%s:%s"):format(name:lower(), web.port) }, "return http:get(url .. '/rebound')",
      "--allow-http").error
    assert.equal("forbidden", e.kind)
    assert.match("loopback", e.message)
    assert.is_nil(web:seen():find("rebound", 1, true))
  end)

  it("does not turn a read into a write by a redirect", function()
    local ns = controller.namespace(client, "led")
    local t = http.start_script(server, client, ns, [[
local kube = require "kubelua"
return kube.controller { name = "led", resource = "v1/ConfigMap", namespaces = { "]] .. ns .. [[" },
  http = { { url = "]] .. web.url .. [[/to", reads = { "PUT" } }, "]] .. web.url .. [[/echo" },
  reconcile = function(map, ctx)
    if not map("data.ask") then return end
    local _, err = kube.try(ctx.http.put, ctx.http, "]] .. web.url .. [[/to/307?/echo?led", { redirects = 1 })
    ctx.log:info("led %s: %s", err.kind, err.message)
  end }
]], "--allow-http")
    client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { ask = "x" } }
    t.run:wait_for_log(60, "led forbidden: ")
    t:finish()
    assert.match("a redirect led here, where `reads` of `http` does not list PUT", t:log())
    assert.is_nil(web:seen():find("PUT /echo?led", 1, true))
  end)

  it("sends reads alone in a dry run", function()
    local ns = controller.namespace(client, "dry")
    local t = http.start_script(server, client, ns, [[
local kube = require "kubelua"
return kube.controller { name = "dry", resource = "v1/ConfigMap", namespaces = { "]] .. ns .. [[" },
  http = { { url = "]] .. web.url .. [[", reads = { "PUT" } } },
  reconcile = function(map, ctx)
    if not map("data.ask") then return end
    local a = ctx.http:get("]] .. web.url .. [[/dry-get?x=1")
    local b = ctx.http:put("]] .. web.url .. [[/dry-put")
    local c = ctx.http:post("]] .. web.url .. [[/dry-post?x=1", { json = { a = 1 } })
    ctx.log:info("dry %d %d %d %s", a.status, b.status, c.status, c.dry_run)
  end }
]], "--allow-http", "--dry-run")
    client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { ask = "x" } }
    t.run:wait_for_log(60, "dry 200 200 204 true")
    t:finish()
    assert.match('dry run: not sent.-verb=POST url=' .. web.url:gsub("%p", "%%%0") .. "/dry%-post%?%.%.%.",
      t:log())
    assert.match("GET /dry%-get.*PUT /dry%-put", web:seen())
    assert.is_nil(web:seen():find("dry-post", 1, true))
  end)
end)

describe("ctx.http beside the rest", function()
  local server, client, web
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    web = http.web()
  end)
  lazy_teardown(function()
    if web then web:stop() end
    if server then server:stop() end
  end)

  local QUESTION = [[
    local r = http:post(url .. "/echo?key=hush", { json = { name = "n", password = "swordfish" },
      headers = { Authorization = "Bearer sesame-42" } })
    return r.json.method .. " " .. r.status ]]

  it("works from an isolated process, whose parent enforces the rules", function()
    local t = http.start(server, client, controller.namespace(client, "pipe"), { web.url }, "--allow-http",
      "--isolate")
    assert.equal("POST 200", t:ask(QUESTION))
    assert.equal("forbidden", t:ask("return http:get('http://127.0.0.1:1/')").error.kind)
    local e = t:ask("return http:get(url .. '/status/404')").error
    assert.same({ "not_found", 404, 7.0 }, { e.kind, e.code, e.retry_after })
    t:finish()
  end)

  it("is recorded without secrets, and replayed without a server", function()
    local tape, ns = process.tmpname ".tape", controller.namespace(client, "tape")
    local t = http.start(server, client, ns, { web.url }, "--allow-http", "--record", tape)
    assert.equal("POST 200", t:ask(QUESTION))
    t:finish()
    local text = process.run("cat " .. tape .. "* | zcat -f 2>/dev/null")
    assert.match('"verb":"http"', text)
    local _, asked = text:gsub('"t":"asked"[^\n]*"verb":"http"[^\n]*', function(line)
      for _, secret in ipairs { "sesame", "swordfish", "hush" } do
        assert.is_nil(line:find(secret, 1, true), line)
      end
    end)
    assert.is_true(asked > 0)
    local before = #web:seen()
    local said, code = process.run(("%s replay %s %s 2>&1"):format(KUBELUA, tape, t.run.script_path))
    assert.equal(0, code, said)
    assert.equal(before, #web:seen())
  end)
end)

describe("the rules of ctx.http", function()
  local function check(rules)
    local path = process.write(process.tmpname ".lua", ([[
local kube = require "kubelua"
return kube.controller { name = "a", resource = "v1/Pod", reconcile = function() end, http = %s }
]]):format(rules))
    return process.run(KUBELUA .. " check " .. path .. " 2>&1")
  end

  it("are shown by check", function()
    assert.match("http +https://a%.example%.com; with %-%-allow%-http",
      (check [[{ "https://a.example.com" }]]))
    assert.match("http +https://b:8443/x, which reads with POST;", (check
      [[{ { url = "https://b:8443/x", reads = "POST" } }]]))
  end)

  it("are shown by rbac", function()
    local path = process.write(process.tmpname ".lua", [[
local kube = require "kubelua"
return kube.controller { name = "a", resource = "v1/Pod", reconcile = function() end,
  http = "https://a.example.com" }
]])
    assert.match("# a reaches https://a%.example%.com, with %-%-allow%-http",
      (process.run(KUBELUA .. " rbac " .. path)))
  end)

  it("are rejected if invalid", function()
    for rule, why in pairs {
      ['"a.example.com"'] = "http%[1%]: it does not begin with http",
      ['{ "https://u:p@a" }'] = "must not contain user and password",
      ['{ "https://a?x=1" }'] = "a rule has no query",
      ['{ "https://*" }'] = "neither a name nor an address",
      ['{ "https://*.0.0.1" }'] = "neither a name nor an address",
      ['{ "https://a POST" }'] = "a URL has no spaces",
      ['{}'] = "http must be a list of URLs",
      ['{ { url = "https://a", raeds = { "POST" } } }'] = "unknown key 'raeds'; did you mean 'reads'",
    } do assert.match(why, (check(rule)), rule) end
  end)
end)
