-- testing_http_spec.lua - kube.testing.http: the answers to ctx.http in a test.

local kube = require "kubelua"

local API = "https://dns.example.com"
local CARD = { kind = "v1/ConfigMap", name = "a", data = { n = "0" } }

-- A controller that runs this body once for each ConfigMap, and writes the result into data.said.
local function source(body, more)
  return ([[local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/ConfigMap", http = "https://dns.example.com", %s
  params = { key = { type = "secret", optional = true } },
  reconcile = function(o, ctx)
    if o.data.said then return end
    local http, API = ctx.http, "https://dns.example.com"
    local said, e = kube.try(function() %s end)
    ctx:patch(o, { data = { said = e and e.kind .. ": " .. e.message or tostring(said) } })
  end }]]):format(more or "", body)
end

describe("kube.testing.http", function()
  local started
  local function start(web, body, more)
    started = kube.testing.start { source = source(body, more), objects = { CARD }, http = web,
      params = { key = "sesame" } }
    return started
  end
  local function said(...) return start(...):get("v1/ConfigMap", "a").data.said end
  after_each(function()
    if started then started:stop() end
    started = nil
  end)

  it("answers by method and pattern, the last match first", function()
    local web = kube.testing.http { ["GET " .. API .. "/v1/{what}/{name}"] = { json = { n = 1 } } }
    web:on("GET", API .. "/v1/records/*", function(r) return { json = { n = 2, q = r.query.q } } end)
    assert.equal("1", said(web, "return http:get(API .. '/v1/zones/a').json.n"))
    started:stop()
    assert.equal("2 b c",
      said(web, [[local j = http:get(API .. '/v1/records/a', { query = { q = "b c" } }).json
        return ("%d %s"):format(j.n, j.q)]]))
    assert.same({ what = "zones", name = "a" }, web:requests("GET", API .. "/v1/zones/*")[1].vars)
    assert.equal(2, #web:requests())
    assert.equal(0, #web:requests "POST")
    assert.equal(0, #web:forget():requests())
  end)

  it("shows requests, secrets included", function()
    local web = kube.testing.http { ["* " .. API .. "/**"] = 204 }
    assert.equal("204", said(web, [[http:put(API .. "/a/b", { json = { list = { 1 } },
      headers = { ["X-Key"] = ctx.secret "key", Many = { "1", "2" } } })
      http:post(API .. "/c?x=%20y&x=2", { body = "\0\xff" })
      return http:delete(API .. "/a").status]]))
    local put, post = web:requests()[1], web:requests()[2]
    assert.same({ "PUT", API .. "/a/b", "sesame" }, { put.method, put.url, put.headers["x-key"] })
    assert.same({ "1", "2" }, put.headers.many)
    assert.equal(1, put.json.list[1])
    assert.equal("\0\xff", post.body)
    assert.same({ " y", "2" }, post.query.x)
  end)

  it("gives the same result as a server with this answer", function()
    local web = kube.testing.http {
      ["GET " .. API .. "/gone"] = { status = 404, body = "no such record" },
      ["GET " .. API .. "/moved"] = { status = 302, headers = { Location = "/text" } },
      ["GET " .. API .. "/away"] = { status = 302, headers = { Location = "https://other.example.com/" } },
      ["GET " .. API .. "/text"] = { body = "0123456789", headers = { ["X-Two"] = { "a", "b" } } },
      ["GET " .. API .. "/busy"] = { status = 429, headers = { ["Retry-After"] = 7 } },
      ["GET " .. API .. "/slow"] = { error = "timeout" },
      ["GET " .. API .. "/off"] = { error = "unreachable", message = "nobody at home" },
    }
    for body, answer in pairs {
      ["return http:get(API .. '/gone')"] = "not_found: GET https://dns.example.com/gone: the answer is \z
        404: no such record",
      ["return http:get(API .. '/gone', { expect = 404 }).status"] = "404",
      ["return http:get(API .. '/moved')"] = "server: .*leads elsewhere",
      ["return http:get(API .. '/moved', { redirects = 1 }).url"] = API .. "/text",
      ["return http:get(API .. '/away', { redirects = 1 }).url"] = "forbidden: .*not in `http`",
      ["return http:get(API .. '/text', { max = 9 })"] = "too_big: .*more than 9 bytes",
      ["return http:get(API .. '/text').headers['x-two'][2]"] = "b",
      ["return http:get(API .. '/busy')"] = "throttled: ",
      ["return http:get(API .. '/slow')"] = "timeout: GET https://dns.example.com/slow: no answer in time",
      ["return http:get(API .. '/off')"] = "unreachable: .*nobody at home",
      ["return http:get('https://other.example.com/')"] = "forbidden: .*not in `http` of this controller",
      ["return http:get(API .. '/what')"] = "test has no answer for it .*GET https://dns.example.com/away",
    } do
      assert.match((answer:gsub("%-", "%%-")), said(web, body), body)
      started:stop()
    end
  end)

  it("fails the test in which one of its functions raises", function()
    local web = kube.testing.http { ["GET " .. API .. "/a"] = function() error "what a question" end }
    local ok, e = pcall(start, web, "return http:get(API .. '/a')")
    assert.is_false(ok)
    assert.match("testing_http_spec.lua:%d+: what a question", e)
    web = kube.testing.http { ["GET " .. API .. "/a"] = function() return { staus = 200 } end }
    ok, e = pcall(start, web, "return http:get(API .. '/a')")
    assert.is_false(ok)
    assert.match("unknown option 'staus'; did you mean 'status'", e)
  end)

  it("has many requests at once, and a sleep between two", function()
    local web = kube.testing.http { ["GET " .. API .. "/{n}"] = function(r) return { json = r.vars } end }
    local t = kube.testing.start { http = web,
      source = source [[local n = http:get(API .. "/" .. o.metadata.name).json.n
        ctx:sleep "10s"
        return n .. http:get(API .. "/later").json.n]] }
    started = t
    for i = 1, 20 do t:create { kind = "v1/ConfigMap", name = "m" .. i, data = { n = "0" } } end
    assert.equal(20, #web:requests())
    t:advance "10s"
    assert.equal("m7later", t:get("v1/ConfigMap", "m7").data.said)
    assert.equal(40, #web:requests())
  end)

  it("is absent without stubs, and rejects invalid ones", function()
    assert.match("forbidden: .*kube.testing.start { http = kube.testing.http%(%) }",
      said(nil, "return http:get(API .. '/a')"))
    for why, fn in pairs {
      ["a method and a URL"] = function() kube.testing.http { [API] = 200 } end,
      ["a pattern cannot contain a query"] = function() kube.testing.http():on("GET", API .. "/?a=b",
        200) end,
      ["must begin with http"] = function() kube.testing.http():on("GET", "dns", 200) end,
      ["status must be from 200 to 599, got 42"] = function() kube.testing.http():on("GET", API, 42) end,
      ["error must be"] = function() kube.testing.http():on("GET", API, { error = "oops" }) end,
      ["must be a result of kube.testing.http%(%)"] = function()
        kube.testing.start { source = source "", http = {} }
      end,
    } do
      local ok, e = pcall(fn)
      assert.is_false(ok)
      assert.match(why, e)
    end
  end)
end)
