-- configmap-generator.lua - keeps a ConfigMap with the content of each ConfigMapGenerator.

local kube = require "kubelua"

return kube.controller {
  name = "configmap-generator",
  resource = "examples.kubelua.dev/v1/ConfigMapGenerator",
  owns = { "v1/ConfigMap" }, -- which get the owner reference, and wake their owner when somebody edits them

  reconcile = function(generator)
    return { apply = { kind = "v1/ConfigMap", name = generator.metadata.name,
      namespace = generator.metadata.namespace,
      data = { content = generator.spec.content } } }
  end,
}
