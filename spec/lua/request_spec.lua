-- request_spec.lua - from the arguments of a call to one request.

local kube = require "kubelua"
local request = require "kubelua.request"

local function fields(op)
  local out = {}
  for key, value in pairs(op) do out[key] = kube.is_view(value) and tostring(value) or value end
  return out
end

describe("keys", function()
  it("come as name, namespace/name, or both", function()
    assert.same({ verb = "get", kind = "v1/Pod", name = "a" }, request.get("c:get", "v1/Pod", "a"))
    assert.same({ verb = "get", kind = "v1/Pod", ns = "b", name = "a" },
      request.get("c:get", "v1/Pod", "b/a"))
    assert.same({ verb = "get", kind = "v1/Pod", ns = "b", name = "a" },
      request.get("c:get", "v1/Pod", "b", "a"))
  end)

  it("are rejected if invalid", function()
    assert.error_matches(function() request.get("c:get", nil, "a") end, "c:get: the kind must be a string")
    assert.error_matches(function() request.get("c:get", "v1/Pod") end, "the name must be a string")
    assert.error_matches(function()
      request.get("c:get", "v1/Pod", "")
    end, 'the name must be a string that is not empty, got ""')
    assert.error_matches(function() request.get("c:get", "v1/Pod", "a/b/c") end, "neither a name nor")
    assert.error_matches(function() request.get("c:get", "v1/Pod", "a", 5) end, "expected %(kind, name%)")
    assert.error_matches(function()
      request.get("c:get", "v1/Pod", nil, "x")
    end, "the namespace must be a string")
    assert.error_matches(function() request.get("c:get", "v1/Pod", "a", { x = 1 }) end, "unknown option 'x'")
  end)
end)

describe("an apply", function()
  local function apply(metadata)
    return request.apply("c:apply", { apiVersion = "v1", kind = "Secret", metadata = metadata })
  end

  it("is rejected for a view", function()
    for _, metadata in ipairs {
      { name = "a", managedFields = {} },
      { name = "a", uid = "u", resourceVersion = "1", creationTimestamp = "2026-01-01T00:00:00Z" },
    } do
      for _, o in ipairs { metadata, require("kubelua.core").value(metadata) } do
        assert.error_matches(function() apply(o) end, "^c:apply: v1/Secret a was read from \z
          the server, and its manager would own every field of it: .* kube.extract")
      end
    end
  end)

  it("can require one object and one version of it", function()
    for _, metadata in ipairs {
      { name = "a", uid = "u" }, { name = "a", uid = "u", resourceVersion = "1" },
      { name = "a", uid = "u", resourceVersion = "1", creationTimestamp = kube.null },
    } do
      assert.equal("a", apply(metadata).name)
    end
  end)
end)

describe("lists", function()
  it("take selectors as strings and as tables", function()
    assert.same({ verb = "list", kind = "v1/Pod", ns = "a", labels = "x=y", fields = "spec.nodeName=n1",
      limit = 5 },
      request.list("c:list", "v1/Pod", { namespace = "a", labels = { x = "y" },
        fields = { ["spec.nodeName"] = "n1" }, limit = 5 }))
    assert.equal("a in (b,c)", request.labels { matchExpressions = {
      { key = "a", operator = "In", values = { "c", "b" } } } })
    assert.equal("a!=b", request.labels "a!=b")
    assert.is_nil(request.labels {})
    assert.equal("x=y", request.labels(require("kubelua.core").value { x = "y" }))
    assert.equal("a=b\\,c,d=e", request.fields { d = "e", a = "b,c" })
    for _, odd in ipairs { { a = {} }, { a = print }, { "a=b" } } do
      local ok, why = pcall(request.fields, odd)
      assert.is_false(ok)
      assert.matches("a field selector maps paths to strings, such as", why)
    end
  end)

  it("explain the use of indexes", function()
    assert.same({}, request.terms("ctx:list", {}))
    local terms = request.terms("ctx:list", { a = "x", b = { "x", "y" }, c = true, d = false,
      e = { ne = "x" }, f = { ne = { "x" } } })
    table.sort(terms, function(s, t) return s[1] < t[1] end)
    assert.same({ { "a", "=", "x" }, { "b", "in", "x", "y" }, { "c", "exists" }, { "d", "!" },
      { "e", "!=", "x" }, { "f", "notin", "x" } }, terms)
    local want = "ctx:list: index 'a' must be a string, a list of strings, true %(any value%), \z
      false %(none%) or { ne = %.%.%. }, got "
    for _, x in ipairs { 5, {}, { 1 }, { "x", y = "z", ne = "x" }, { ne = 5 }, { ne = {} } } do
      assert.error_matches(function() request.terms("ctx:list", { a = x }) end, want .. type(x))
    end
    assert.error_matches(function()
      request.terms("ctx:list", { a = { me = "x" } })
    end, "ctx:list: index 'a': unknown word 'me'; did you mean 'ne'%?")
    assert.error_matches(function()
      request.terms("ctx:list", { "a" })
    end, "ctx:list: index must be a name or a table { name = value }, got the key 1")
  end)

  it("accept more options where the caller has more", function()
    assert.equal("list", request.list("ctx:list", "v1/Pod", { index = "node" }, { index = "string" }).verb)
    assert.error_matches(function()
      request.list("c:list", "v1/Pod", { index = "node" })
    end, "unknown option 'index'")
  end)
end)

describe("writes", function()
  it("send a manifest and know its key", function()
    assert.same({
      verb = "apply", kind = "v1/Secret", ns = "b", name = "a", force = true, field_manager = "me",
      check = true,
      body = '{"apiVersion":"v1","data":{},"kind":"Secret","metadata":{"name":"a","namespace":"b"}}',
    }, fields(request.apply("c:apply", { kind = "v1/Secret", name = "a", namespace = "b", data = {} },
      { force = true, manager = "me" })))
    assert.is_nil(request.create("c:create", { kind = "v1/Secret", name = "a" }).name)
    assert.is_false(request.update("c:update",
      kube.decode '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}').check)
    assert.equal("a", request.update("c:update",
      kube.decode '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}').name)
  end)

  it("require a name if the server does", function()
    assert.error_matches(function()
      request.apply("c:apply", { kind = "v1/Secret" })
    end, "c:apply: the object has no metadata.name")
  end)

  it("delete by key or by object", function()
    local want = { verb = "delete", kind = "v1/Pod", ns = "b", name = "a", propagation = "Foreground" }
    assert.same(want, request.delete("c:delete", "v1/Pod", "b", "a", { propagation = "Foreground" }))
    assert.same(want, request.delete("c:delete", "v1/Pod", "b/a", { propagation = "Foreground" }))
    local pod = kube.decode '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"}}'
    assert.same(want, request.delete("c:delete", pod, { propagation = "Foreground" }))
    assert.same({ verb = "delete", kind = "v1/Node", name = "n" },
      request.delete("c:delete", { kind = "v1/Node", name = "n" }))
    assert.error_matches(function()
      request.delete("c:delete", "v1/Pod", "a", { propagation = "x" })
    end, "Foreground, Background or Orphan")
    assert.error_matches(function()
      request.delete("c:delete", "v1/Pod", "a", { uuid = "x" })
    end, "did you mean 'uid'")
  end)
end)
