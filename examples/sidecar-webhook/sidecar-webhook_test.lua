-- sidecar-webhook_test.lua - a pod with the annotation gets one container, a pod without it none.

local kube = require "kubelua"

local POD = "v1/Pod"

local function pod(name, annotations, containers)
  return { kind = POD, name = name, annotations = annotations,
    spec = { containers = containers or { { name = "app", image = "app" } } } }
end

describe("sidecar-webhook", function()
  local t ---@type kubelua.Testing
  before_each(function() t = kube.testing.start { script = "sidecar-webhook.lua" } end)

  it("adds a container and its volume", function()
    local made = t:create(pod("a", { ["examples.kubelua.dev/log-shipper"] = "yes" }))
    assert.equal(2, #made.spec.containers)
    assert.equal("log-shipper", made.spec.containers[2].name)
    assert.equal("logs", made.spec.volumes[1].name)
  end)

  it("leaves other objects alone", function()
    assert.equal(1, #t:create(pod("b")).spec.containers)
  end)

  it("adds no second container", function()
    local made = t:create(pod("c", { ["examples.kubelua.dev/log-shipper"] = "yes" },
      { { name = "app", image = "app" }, { name = "log-shipper", image = "own" } }))
    assert.equal(2, #made.spec.containers)
  end)
end)
