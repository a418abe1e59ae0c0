-- janitor_test.lua - an object is deleted in the second in which it expires.

local kube = require "kubelua"

local MAP, SECRET = "v1/ConfigMap", "v1/Secret"

describe("janitor", function()
  local t ---@type kubelua.Testing
  before_each(function() t = kube.testing.start { script = "janitor.lua" } end)

  local function create(kind, name, expires)
    t:create { kind = kind, name = name, annotations = { ["examples.kubelua.dev/expires"] = expires } }
  end

  it("waits until it is time", function()
    create(MAP, "a", "2026-01-01T01:00:00Z")
    create(SECRET, "s", "2026-01-01T02:00:00Z")
    t:create { kind = MAP, name = "kept" }
    t:advance "59m"
    assert.is_truthy(t:get(MAP, "a"))
    t:advance "2m"
    assert.is_nil(t:get(MAP, "a"))
    assert.is_truthy(t:get(SECRET, "s"))
    t:advance "1h"
    assert.is_nil(t:get(SECRET, "s"))
    assert.is_truthy(t:get(MAP, "kept"))
  end)

  it("reports an invalid time, and deletes nothing", function()
    create(MAP, "odd", "tomorrow")
    assert.is_truthy(t:get(MAP, "odd"))
    assert.equal("BadExpiry", t:events("odd")[1].reason)
  end)
end)
