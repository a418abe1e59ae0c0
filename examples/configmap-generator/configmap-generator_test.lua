-- configmap-generator_test.lua - the map is created, follows its generator, and is repaired.

local kube = require "kubelua"

local GENERATOR, MAP = "examples.kubelua.dev/v1/ConfigMapGenerator", "v1/ConfigMap"

describe("configmap-generator", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "configmap-generator.lua", crds = "crd.yaml", files = "sample.yaml" }
  end)

  it("creates a ConfigMap that it owns", function()
    local map = t:get(MAP, "motd")
    assert.equal("good morning", map.data.content)
    assert.equal("ConfigMapGenerator", map.metadata.ownerReferences[1].kind)
  end)

  it("follows the generator", function()
    t:patch(t:get(GENERATOR, "motd"), { spec = { content = "good night" } })
    assert.equal("good night", t:get(MAP, "motd").data.content)
  end)

  it("restores a changed or deleted map", function()
    t:patch(t:get(MAP, "motd"), { data = { content = "nonsense" } })
    assert.equal("good morning", t:get(MAP, "motd").data.content)
    t:delete(MAP, "motd")
    assert.equal("good morning", t:get(MAP, "motd").data.content)
  end)
end)
