-- cut_names_spec.lua - names and paths with a NUL, where C would read a shorter name of another object;
-- values that Go reads as empty; and the addresses under which the embedded server answers.
-- real in asan: names that end early, on both servers

local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"

local count = 0

servers.each(function(name, start)
  describe("a client of " .. name, function()
    local s, api, ns, maps

    lazy_setup(function()
      s = start {}
      api = new_api(s)
      count = count + 1
      ns = ("cut-%d-%d"):format(os.time() % 1000000, count)
      maps = "/api/v1/namespaces/" .. ns .. "/configmaps"
      assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = ns } }).code)
    end)
    lazy_teardown(function()
      api:delete("/api/v1/namespaces/" .. ns)
      s:stop()
    end)

    it("gets no object whose name holds a NUL", function()
      for path, text in pairs {
        [maps] = [[{"metadata": {"name": "n\u0000x"}}]],
        ["/api/v1/namespaces"] = [[{"metadata": {"name": "n\u0000x"}}]],
      } do
        local r = api:post(path, text)
        assert.equal(422, r.code, r.text)
        assert.equal("metadata.name", r.body.details.causes[1].field)
      end
      local r = api:post(maps, [[{"metadata": {"generateName": "n\u0000x"}}]])
      assert.equal(422, r.code, r.text)
      r = api:post(maps, ([[{"metadata": {"name": "a", "namespace": "%s\u0000"}}]]):format(ns))
      assert.equal(400, r.code, r.text)
      r = api:get(maps)
      for _, o in ipairs(r.body.items) do assert.equal("kube-root-ca.crt", o.metadata.name) end
    end)

    it("deletes nothing by a path that holds a NUL", function()
      assert.equal(201, api:post(maps, { metadata = { name = "victim" } }).code)
      assert.is_true(api:delete(maps .. "/victim%00-backup").code >= 400)
      assert.equal(200, api:get(maps .. "/victim").code)
    end)

    it("can test that a key is absent, and send a null strategic patch", function()
      assert.equal(201, api:post(maps, { metadata = { name = "patched" }, data = { a = "1" } }).code)
      local r = api:patch("json", maps .. "/patched", [=[[{"op": "test", "path": "/data/b", "value": null},
        {"op": "add", "path": "/data/b", "value": "2"}]]=])
      assert.equal(200, r.code, r.text)
      assert.equal("2", r.body.data.b)
      r = api:patch("json", maps .. "/patched", [=[[{"op": "test", "path": "/data/b", "value": null}]]=])
      assert.equal(422, r.code, r.text)
      r = api:patch("json", maps .. "/patched", [=[[{"op": "test", "path": "/none/b", "value": null}]]=])
      assert.equal(422, r.code, r.text)
      r = api:patch("strategic", maps .. "/patched", "null")
      assert.equal(200, r.code, r.text)
      assert.same({ a = "1", b = "2" }, r.body.data)
    end)
  end)
end)

describe("the embedded server", function()
  it("on the loopback address answers only to its own host names", function()
    local s = servers.embedded()
    finally(function() s:stop() end)
    local api = new_api(s)
    assert.equal(403, api:request("GET", "/api/v1/namespaces", nil, { "Host: evil.example" }).code)
    assert.equal(403, api:request("GET", "/api/v1/namespaces", nil, { "Host: 127.evil.example:80" }).code)
    for _, host in ipairs { "unix:8080", "[::1]evil", "localhost.evil", "127.0.0.1.evil" } do
      assert.equal(403, api:request("GET", "/api/v1/namespaces", nil, { "Host: " .. host }).code, host)
    end
    assert.equal(200, api:request("GET", "/api/v1/namespaces", nil, { "Host: localhost:8080" }).code)
    assert.equal(200, api:request("GET", "/api/v1/namespaces", nil, { "Host: [::1]:80" }).code)
    assert.is_nil(s:log():find("listens beyond this machine", 1, true), s:log())
  end)

  it("rejects requests from pages of other origins: a browser posts forms to any address", function()
    local s = servers.embedded()
    finally(function() s:stop() end)
    local api = new_api(s)
    local function create(name, origin, type)
      return api:request("POST", "/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace",
        metadata = { name = name } }, { origin, type }).code
    end
    local form = "Content-Type: application/x-www-form-urlencoded"
    for _, origin in ipairs { "https://evil.example", "null", "http://localhost.evil.example:80",
      "http://unix:80", "http://localhost:3000", "http://127.0.0.1" } do
      assert.equal(403, create("by-a-page", "Origin: " .. origin, form), origin)
      assert.equal(403, api:request("PUT", "/kubelua/v1/faults", {}, { "Origin: " .. origin }).code, origin)
    end
    assert.equal(415, create("by-a-page", "Origin: " .. s.url, form))
    assert.equal(201, create("by-a-page", "Origin: " .. s.url, "Content-Type: application/json"))
  end)

  it("on another address logs the access mode", function()
    local kubelua = os.getenv "KUBELUA" or "build/kubelua"
    local listen = "0.0.0.0:" .. servers.free_port()
    local out, code = process.run(("%s apiserver --listen %s 2>&1"):format(kubelua, listen))
    assert.equal(1, code, out)
    assert.is_truthy(out:find("does not authenticate its clients: listen on 127.0.0.1, ask for tokens", 1,
      true), out)
    local p = process.spawn { kubelua, "apiserver", "--listen", listen, "--insecure-anywhere" }
    finally(function() p:stop() end)
    p:wait_for_log(20, "serving http://127.0.0.1:")
    assert.is_truthy(p:log():find("listens beyond this machine and does not authenticate its clients", 1,
      true),
      p:log())
    assert.is_truthy(p:log():find("listen=0.0.0.0:", 1, true), p:log())
  end)
end)
