-- pod-cleanup_test.lua - a day of waiting in a moment.

local kube = require "kubelua"

local POD = "v1/Pod"

describe("pod-cleanup", function()
  local t ---@type kubelua.Testing
  before_each(function() t = kube.testing.start { script = "pod-cleanup.lua" } end)

  local function pod(name, phase, annotations)
    t:load { kind = POD, name = name, annotations = annotations,
      spec = { containers = { { name = "a", image = "a" } } },
      status = { phase = phase } }
    t:settle()
  end

  it("deletes succeeded pods after ten minutes, and failed ones after a day", function()
    pod("good", "Succeeded")
    pod("bad", "Failed")
    pod("busy", "Running")
    t:advance "9m"
    assert.is_truthy(t:get(POD, "good"))
    t:advance "2m"
    assert.is_nil(t:get(POD, "good"))
    assert.is_truthy(t:get(POD, "bad"))
    t:advance "24h"
    assert.is_nil(t:get(POD, "bad"))
    assert.is_truthy(t:get(POD, "busy"))
  end)

  it("uses the annotation, and reports an invalid one", function()
    pod("soon", "Succeeded", { ["examples.kubelua.dev/ttl"] = "30s" })
    pod("odd", "Succeeded", { ["examples.kubelua.dev/ttl"] = "soon" })
    t:advance "31s"
    assert.is_nil(t:get(POD, "soon"))
    assert.equal("fail", t:runs("odd")[1].result)
  end)
end)
