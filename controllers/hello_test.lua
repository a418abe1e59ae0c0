-- hello_test.lua - `kubelua test controllers` runs it: what a test of a controller looks like.

local kube = require "kubelua"

describe("hello", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "hello.lua", objects = {
      { kind = "v1/ConfigMap", name = "card", labels = { hello = "world" } } } }
  end)

  it("greets every object that has the label", function()
    assert.equal("Hello, world!", t:get("v1/ConfigMap", "card").data.greeting)
  end)

  it("leaves other objects alone", function()
    t:create { kind = "v1/ConfigMap", name = "plain", data = { a = "1" } }
    assert.same({ a = "1" }, t:get("v1/ConfigMap", "plain").data)
  end)

  it("greets again when the name changes, with one write", function()
    local before = #t:writes()
    t:patch(t:get("v1/ConfigMap", "card"), function(c) c.metadata.labels.hello = "moon" end)
    assert.equal("Hello, moon!", t:get("v1/ConfigMap", "card").data.greeting)
    assert.equal(1, #t:writes() - before)
  end)

  it("tries again after a failure", function()
    t:fail_next { verb = "patch", kind = "v1/ConfigMap", error = "server" }
    t:create { kind = "v1/ConfigMap", name = "late", labels = { hello = "you" } }
    assert.is_nil(t:get("v1/ConfigMap", "late")("data.greeting"))
    t:until_idle()
    assert.equal("Hello, you!", t:get("v1/ConfigMap", "late").data.greeting)
    assert.equal("error", t:runs("late")[1].result)
  end)
end)
