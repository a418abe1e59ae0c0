-- http_spec.lua - kube.http of stock Lua: the client of ctx.http, without its rules.

local http = require "support.http"
local identities = require "support.identities"
local kube = require "kubelua"
local process = require "support.process"


describe("kube.http", function()
  local web
  lazy_setup(function() web = http.web() end)
  lazy_teardown(function() if web then web:stop() end end)

  it("sends the request and returns a table", function()
    local r = kube.http:post(web.url .. "/echo?a=1", { json = { n = 1 }, query = { q = "a b" },
      headers = { ["X-Key"] = "k" } })
    assert.equal(200, r.status)
    assert.equal("POST", r.json.method)
    assert.equal("/echo?a=1&q=a%20b", r.json.path)
    assert.equal('{"n":1}', r.json.body)
    assert.equal("k", r.json.headers["x-key"])
    assert.match("^kubelua/", r.json.headers["user-agent"])
    for _, word in ipairs { "get", "put", "patch", "delete" } do
      assert.equal(word:upper(), kube.http[word](kube.http, web.url .. "/echo").json.method)
    end
    assert.equal("OPTIONS", kube.http:request("options", web.url .. "/echo").json.method)
    assert.equal("\0\xff\xfe", kube.http:get(web.url .. "/bytes").body)
    assert.equal(r.json.peer, kube.http:get(web.url .. "/echo").json.peer)        -- one connection
  end)

  it("raises errors like the API's, and shows no query", function()
    local _, e = kube.try(kube.http.get, kube.http, web.url .. "/status/404?token=hush")
    assert.same({ "not_found", 404, 7, "GET" }, { e.kind, e.code, e.retry_after, e.verb })
    assert.is_nil(tostring(e):find("hush", 1, true))
    assert.equal(404, kube.http:get(web.url .. "/status/404", { expect = 404 }).status)
    _, e = kube.try(kube.http.get, kube.http, web.url .. "/big/1001", { max = 1000 })
    assert.equal("too_big", e.kind)
    _, e = kube.try(kube.http.get, kube.http, web.url .. "/hang", { timeout = "300ms" })
    assert.equal("timeout", e.kind)
    _, e = kube.try(kube.http.get, kube.http, "http://127.0.0.1:1/?token=hush")
    assert.equal("unreachable", e.kind)
    assert.is_nil(tostring(e):find("hush", 1, true))
  end)

  it("explains what is wrong with an invalid request", function()
    assert.error_matches(function() kube.http:get(web.url, { jsno = 1 }) end,
      "kube.http:get: unknown option 'jsno'; did you mean 'json'")
    assert.error_matches(function() kube.http:get() end, "kube.http:get: the URL must be a string")
    for _, url in ipairs { "file:///etc/passwd", "http://a b/", web.url .. "/a/../b" } do
      local _, e = kube.try(kube.http.get, kube.http, url)
      assert.equal("invalid", e.kind, url)
    end
    assert.error_matches(function() kube.htpp:get(web.url) end, "did you mean 'http'")
  end)

  it("follows redirects anywhere, if told to", function()
    local elsewhere = ("http://localhost:%s/echo"):format(web.port)
    local _, e = kube.try(kube.http.get, kube.http, web.url .. "/to?" .. elsewhere)
    assert.equal(302, e.code)
    local r = kube.http:get(web.url .. "/to?" .. elsewhere, { redirects = 1, headers = { ["X-Key"] = "k" } })
    assert.same({ 200, elsewhere }, { r.status, r.url })
    assert.is_nil(r.json.headers["x-key"])                    -- another server is told nothing of ours
  end)

  it("trusts the given CA, and uses a proxy", function()
    local ca = identities.ca "spec-kube-http-ca"
    local cert = identities.certificate(ca, "/CN=web", "IP:127.0.0.1")
    local mine = identities.certificate(ca, "/CN=program")
    local closed = http.web(cert.crt, cert.key, ca.crt)
    finally(function() closed:stop() end)
    local tls = { ca = process.read(ca.crt), cert = process.read(mine.crt), key = process.read(mine.key) }
    assert.equal(200, kube.http:get(closed.url .. "/text", { tls = tls }).status)
    local _, e = kube.try(kube.http.get, kube.http, closed.url .. "/text")
    assert.match("GET https://127.0.0.1:%d+/text: ", e.message)
    local r = kube.http:get("http://dns.example.com/v1/records", { proxy = web.url })
    assert.equal("a text", r.body)
    assert.match("GET http://dns.example.com/v1/records ", web.seen())
  end)

  it("ends with the interpreter, even during a request", function()
    local program = process.write(process.tmpname ".lua", ([[
local kube = require "kubelua"
assert(kube.http:get(%q).status == 200)
local co, polls = coroutine.create(function() kube.http:get(%q) end), 0
debug.sethook(co, function()
  if debug.getinfo(2, "n").name == "poll" then polls = polls + 1 end
  if polls == 2 then error("enough", 0) end
end, "c")
print(select(2, coroutine.resume(co)))
]]):format(web.url .. "/text", web.url .. "/hang"))
    local out, code = process.run(("%s %s 2>&1"):format(process.lua(), process.quote(program)))
    assert.equal(0, code, out)
    assert.equal("enough\n", out)
  end)
end)
