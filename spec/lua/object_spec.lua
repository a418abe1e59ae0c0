-- object_spec.lua - objects as scripts write them.

local kube = require "kubelua"
local object = require "kubelua.object"

describe("the short form of an object", function()
  it("moves names and labels into metadata", function()
    local short = { kind = "apps/v1/Deployment", name = "a", namespace = "b", labels = { c = "d" },
      annotations = { e = "f" }, spec = { x = 1 } }
    assert.same({
      apiVersion = "apps/v1", kind = "Deployment", spec = { x = 1 },
      metadata = { name = "a", namespace = "b", labels = { c = "d" }, annotations = { e = "f" } },
    }, object.normalize(short))
    assert.equal("apps/v1/Deployment", short.kind)
    assert.same({ apiVersion = "v1", kind = "Secret", metadata = { name = "a" } },
      object.normalize { kind = "v1/Secret", name = "a" })
  end)

  it("is not mixed with a manifest", function()
    local manifest = { apiVersion = "v1", kind = "Secret", metadata = { name = "a" }, name = "kept" }
    assert.equal(manifest, object.normalize(manifest))
    local view = kube.decode '{"apiVersion":"v1","kind":"Secret"}'
    assert.equal(view, object.normalize(view))
  end)

  it("says what is missing", function()
    assert.error_matches(function()
      object.normalize({ name = "a" }, "c:create")
    end, "c:create: the object has no kind")
    assert.error_matches(function() object.normalize { kind = "Secret", name = "a" } end, "lacks its version")
    assert.error_matches(function()
      object.normalize { kind = "Secret", metadata = {} }
    end, "has metadata but no apiVersion")
    assert.error_matches(function() object.normalize "x" end, "expected an object")
    assert.error_matches(function() object.normalize(io.stdout) end, "expected an object")
  end)

  it("blames the caller and not the library", function()
    local _, err = pcall(function() object.normalize { name = "a" } end)
    assert.matches("^spec/lua/object_spec.lua:%d+: ", err)
  end)
end)

describe("kube.kind_of", function()
  it("joins apiVersion and kind", function()
    assert.equal("v1/Pod", kube.kind_of(kube.decode '{"apiVersion":"v1","kind":"Pod"}'))
    assert.equal("apps/v1/Deployment", kube.kind_of { apiVersion = "apps/v1", kind = "Deployment" })
    assert.is_nil(kube.kind_of {})
  end)
end)
