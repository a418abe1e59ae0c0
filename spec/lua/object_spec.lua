-- object_spec.lua - the forms in which scripts write objects.

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
    assert.same({ apiVersion = "batch/v1", kind = "Job",
      metadata = { generateName = "a-", finalizers = { "example.com/f" } } },
      object.normalize { kind = "batch/v1/Job", generateName = "a-", finalizers = { "example.com/f" } })
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

describe("kube.from_template", function()
  local TEMPLATE = { metadata = { name = "x", labels = { app = "web", tier = "a" }, annotations = { n = "1" },
    finalizers = { "example.com/f" }, uid = "u", creationTimestamp = kube.null },
    spec = { restartPolicy = "Never", containers = { { name = "main" } } }, status = { phase = "Running" } }

  it("takes spec, labels, annotations and finalizers, with overrides", function()
    local before = kube.encode(TEMPLATE)
    for _, template in ipairs { TEMPLATE, kube.decode(kube.encode(TEMPLATE)) } do
      assert.same({
        apiVersion = "v1", kind = "Pod", spec = { restartPolicy = "Never", nodeName = "n1",
          containers = { { name = "main" } } },
        metadata = { name = "a", namespace = "b", labels = { app = "web", tier = "b" },
          annotations = { n = "1" }, finalizers = { "example.com/f" } },
      }, kube.from_template(template, { kind = "v1/Pod", name = "a", namespace = "b", labels = { tier = "b" },
        spec = { nodeName = "n1" } }))
    end
    assert.equal(before, kube.encode(TEMPLATE))
  end)

  it("accepts a template with only a spec", function()
    assert.same({ apiVersion = "batch/v1", kind = "Job", metadata = { name = "a" },
      spec = { parallelism = 2 } },
      kube.from_template({ spec = { parallelism = 2 } }, { apiVersion = "batch/v1", kind = "Job",
        metadata = { name = "a" } }))
  end)

  it("rejects a value that is neither a template nor an object", function()
    assert.error_matches(function() kube.from_template(nil, { kind = "v1/Pod", name = "a" }) end,
      "kube.from_template: the template must be a table or a view, got nil")
    assert.error_matches(function() kube.from_template({}, { name = "a" }) end,
      "kube.from_template: the object has no kind")
  end)
end)
