-- crd_spec.lua - kube.schema and kube.crd: their results and their errors.

local kube = require "kubelua"
local crd = require "kubelua.crd"

local function why(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  return e
end

describe("kube.schema", function()
  it("makes OpenAPI from types and their constraints", function()
    assert.same({
      type = "object", required = { "host" },
      properties = {
        host = { type = "string", pattern = "^a" },
        ttl = { type = "integer", default = 300, minimum = 60, description = "seconds" },
        tags = { type = "array", items = { type = "string" }, ["x-kubernetes-list-type"] = "set" },
        labels = { type = "object", additionalProperties = { type = "string" } },
        free = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
        size = kube.schema { x = "quantity" }.properties.x,
        ports = { type = "array", ["x-kubernetes-list-type"] = "map",
          ["x-kubernetes-list-map-keys"] = { "name" },
          items = { type = "object", required = { "name" },
            properties = { name = { type = "string" }, port = { type = "integer" } } } },
        backup = { type = "object", properties = { keep = { type = "integer",
          ["x-kubernetes-validations"] = { { rule = "self > 0", message = "more" },
            { rule = "self == oldSelf", message = "it cannot be changed" } } } } },
      },
    }, kube.schema {
      host = { "string!", pattern = "^a" },
      ttl = { "integer", default = 300, min = 60, doc = "seconds" },
      tags = { "string[]", set = true }, labels = "string{}", free = {}, size = "quantity",
      ports = { { name = "string!", port = "integer" }, list = true, key = "name" },
      backup = { keep = { "integer", immutable = true,
        rules = { { rule = "self > 0", message = "more" } } } },
    })
  end)

  it("rejects an unknown key, with the place", function()
    for wrong, word in pairs {
      ["spec.host: unknown type \"strin\"; did you mean 'string'"] = { spec = { host = "strin" } },
      ["a: unknown key 'mni'; did you mean 'min'"] = { a = { "integer", mni = 1 } },
      ["a.min must be a number, got string"] = { a = { "integer", min = "1" } },
      ["a: key and set are for lists"] = { a = { "string", key = "name" } },
      ["a: key \"nam\" is not a field of its items; did you mean 'name'"] = { a = { { name = "string" },
        list = true, key = "nam" } },
      ["a must be a type such as \"string\", or a table, got number"] = { a = 1 },
      ["ends in the middle"] = { a = "string[" },
    } do assert.truthy(why(kube.schema, word):find(wrong, 1, true), why(kube.schema, word)) end
    local deep = {}
    local at = deep
    for _ = 1, 200 do
      at.a = {}
      at = at.a
    end
    at.a = "string"
    assert.match("too deep", why(kube.schema, deep))
  end)
end)

describe("kube.crd", function()
  it("is a definition, and returns the kind", function()
    assert.equal("example.com/v1/Policy", kube.crd { group = "example.com", kind = "Policy", short = "pol",
      schema = kube.schema { spec = { host = "string!" }, status = { ready = "boolean" } },
      columns = { "spec.host", { name = "Ready", path = ".status.ready", type = "boolean", wide = true } },
      scale = { spec = ".spec.n", status = ".status.n" } })
    local all = crd.declared()
    local d = kube.copy(all[#all])
    assert.equal("policies.example.com", d.metadata.name)
    assert.same({ kind = "Policy", listKind = "PolicyList", plural = "policies", singular = "policy",
      shortNames = { "pol" } },
      d.spec.names)
    local v = d.spec.versions[1]
    assert.same({ "v1", true, true }, { v.name, v.served, v.storage })
    assert.same({ specReplicasPath = ".spec.n", statusReplicasPath = ".status.n" }, v.subresources.scale)
    assert.same({}, v.subresources.status)
    assert.same({ "Host", "Ready", "Age" },
      { v.additionalPrinterColumns[1].name, v.additionalPrinterColumns[2].name,
      v.additionalPrinterColumns[3].name })
  end)

  it("gives columns of numbers and booleans the type of their field", function()
    kube.crd { group = "example.com", kind = "Typed", schema = kube.schema {
      spec = { size = "integer", on = "boolean", host = "string", tags = { "string" } } },
      columns = { "spec.size", "spec.on", ".spec.host", ".spec.tags[0]", ".spec.none",
        { path = "spec.size", type = "string" } } }
    local all, types = crd.declared(), {}
    for i, column in ipairs(all[#all].spec.versions[1].additionalPrinterColumns) do types[i] = column.type end
    assert.same({ "integer", "boolean", "string", "string", "string", "string", "date" }, types)
  end)

  it("has several versions, one of which is stored", function()
    assert.equal("example.com/v1beta1/Site",
      kube.crd { group = "example.com", kind = "Site", scope = "Cluster",
      versions = { v1 = { schema = kube.schema {} }, v1beta1 = { storage = true, deprecated = "use v1" } } })
    local all = crd.declared()
    local d = kube.copy(all[#all])
    assert.equal("Cluster", d.spec.scope)
    assert.same({ "v1", false, "v1beta1", true, "use v1" },
      { d.spec.versions[1].name, d.spec.versions[1].storage,
      d.spec.versions[2].name, d.spec.versions[2].storage, d.spec.versions[2].deprecationWarning })
  end)

  it("rejects an invalid definition", function()
    local function wrong(t)
      t.group, t.kind = t.group or "example.com", t.kind or "Site"
      return why(kube.crd, t)
    end
    assert.match("group must be a domain", wrong { group = "example" })
    assert.match("kind must be a word", wrong { kind = "site" })
    assert.match("unknown key 'shema'; did you mean 'schema'", wrong { shema = {} })
    assert.match("scope must be", wrong { scope = "cluster" })
    assert.match("one of them needs storage", wrong { versions = { v1 = {}, v2 = {} } })
    assert.match("both have storage = true",
      wrong { versions = { v1 = { storage = true }, v2 = { storage = true } } })
    assert.match("schema must be in one of the versions", wrong { schema = {}, versions = { v1 = {} } })
    assert.match("schema must describe the whole object", wrong { schema = { type = "string" } })
    assert.match("a name must be like v1", wrong { versions = { one = {} } })
  end)
end)
