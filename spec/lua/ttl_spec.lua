-- ttl_spec.lua - a store with time to live, with a controlled clock.

local kube = require "kubelua"

describe("a store with time to live", function()
  local now
  local function clock() return now end
  before_each(function() now = 1000 end)

  local function map(name, n)
    return { kind = "v1/ConfigMap", namespace = "a", name = name, data = { n = n } }
  end

  it("keeps an object for its time, and each put restarts it", function()
    local s = kube.ttl_store("10s", { clock = clock })
    s:put(map("x", "1"))
    s:put(map("y", "1"))
    now = 1009
    assert.equal("1", s:get("a/x").data.n)
    assert.equal("1", s:get(map "x").data.n)
    s:put(map("x", "2"))
    now = 1010
    assert.equal("2", s:get("a/x").data.n)
    assert.is_nil(s:get "a/y")
    assert.same({ "a/x" }, s:keys())
    assert.equal(1, s:len())
    assert.equal(1, #s)
    assert.equal("x", s:list()[1].metadata.name)
    assert.is_true(s:delete "a/x")
    assert.is_false(s:delete "a/x")
    assert.equal(0, #s:list())
  end)

  it("has keys of the caller's choice, and the real clock by default", function()
    local s = kube.ttl_store("1h", function(o) return o.data.n end)
    s:put(kube.decode '{"metadata":{"name":"x"},"data":{"n":"seven"}}')
    assert.equal("x", s:get("seven").metadata.name)
    assert.is_nil(s:get "x")
  end)

  it("refuses what makes no sense", function()
    assert.error_matches(function() kube.ttl_store(0) end, "must be above zero", 1, true)
    assert.error_matches(function()
      kube.ttl_store("1s", { clok = print })
    end, "did you mean 'clock'?", 1, true)
    assert.error_matches(function()
      kube.ttl_store("1s", function() end):put(map "x")
    end, "the object has no key", 1, true)
    assert.error_matches(function() kube.ttl_store "1s":put(7) end, "expected an object", 1, true)
  end)
end)
