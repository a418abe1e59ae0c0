-- secret-copy_test.lua - copies follow their originals and nobody else's.

local kube = require "kubelua"

local SECRET = "v1/Secret"

describe("secret-copy", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "secret-copy.lua", files = "sample.yaml" }
  end)

  it("copies into every namespace, existing or new", function()
    assert.equal("YWJj", t:get(SECRET, "team-a", "registry").data.token)
    t:create { kind = "v1/Namespace", name = "team-b" }
    assert.equal("YWJj", t:get(SECRET, "team-b", "registry").data.token)
  end)

  it("follows changes and deletion of the original", function()
    t:patch(t:get(SECRET, "default", "registry"), { stringData = { token = "xyz" } })
    assert.equal("eHl6", t:get(SECRET, "team-a", "registry").data.token)
    t:delete(SECRET, "default/registry")
    assert.is_nil(t:get(SECRET, "team-a", "registry"))
    assert.is_nil(t:get(SECRET, "default", "registry"))
  end)

  it("restores a changed copy", function()
    t:patch(t:get(SECRET, "team-a", "registry"), { data = { token = "AAAA" } })
    assert.equal("YWJj", t:get(SECRET, "team-a", "registry").data.token)
  end)

  it("leaves other Secrets alone", function()
    t:create { kind = SECRET, name = "own", namespace = "team-a", stringData = { a = "b" } }
    t:patch(t:get(SECRET, "default", "registry"), { metadata = { labels = { ["secret-copy"] = "no" } } })
    assert.is_nil(t:get(SECRET, "team-a", "registry"))
    assert.is_truthy(t:get(SECRET, "team-a", "own"))
  end)
end)
