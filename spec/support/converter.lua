-- converter.lua - Gizmos in two versions, which a conversion webhook (converter.py) converts into each other.
--
--   local hook = converter.start()
--   local gizmos = converter.gizmos(api, group, hook)      -- defined, and served in both versions
--   gizmos.paths.v2, gizmos.make("v2", "a", { width = 3, height = 4 })

local identities = require "support.identities"
local process = require "support.process"
local wait = require "support.wait"

local M = {}

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

--- Starts the webhook: { url, ca (base64), calls() = its requests since the last calls(), stop() }.
function M.start()
  local ca = identities.ca "spec-conversion-ca"
  local cert = identities.certificate(ca, "/CN=converter", "IP:127.0.0.1")
  local hook = process.spawn { "python3", "spec/support/converter.py", cert.crt, cert.key }
  wait.until_true(20, "the conversion webhook", function() return hook:log():match "^%d+\n" end)
  local self = { url = ("https://127.0.0.1:%s/convert"):format(hook:log():match "^%d+"),
    ca = process.run("base64 -w0 " .. ca.crt) }
  local seen = #hook:log():match "^%d+\n"
  function self.calls()
    local log = hook:log()
    local said = log:sub(seen + 1)
    seen = #log
    return said
  end
  function self.stop() hook:stop() end
  return self
end

local function version(name, storage, fields)
  fields.replicas = { type = "integer" }
  return { name = name, served = true, storage = storage,
    subresources = { status = setmetatable({}, { __jsontype = "object" }),
      scale = { specReplicasPath = ".spec.replicas", statusReplicasPath = ".status.replicas" } },
    schema = { openAPIV3Schema = { type = "object",
      properties = { spec = { type = "object", properties = fields },
      status = { type = "object",
        properties = { replicas = { type = "integer" }, seen = { type = "string" } } } } } } }
end

--- The definition; v1 is stored.
function M.definition(group, hook)
  local int = { type = "integer" }
  return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = "gizmos." .. group },
    spec = { group = group, scope = "Namespaced", names = { plural = "gizmos", kind = "Gizmo" },
      versions = { version("v1", true, { size = { type = "string" } }),
        version("v2", false, { width = int, height = int, depth = { type = "integer", default = 7 } }) },
      conversion = { strategy = "Webhook", webhook = { conversionReviewVersions = { "v1" },
        clientConfig = { url = hook.url, caBundle = hook.ca } } } } }
end

function M.gizmos(api, group, hook)
  local r = api:post(CRDS, M.definition(group, hook))
  assert(r.code == 201, r.text)
  local self = { group = group, paths = {}, definition = CRDS .. "/gizmos." .. group }
  for _, v in ipairs { "v1", "v2" } do
    self.paths[v] = ("/apis/%s/%s/namespaces/default/gizmos"):format(group, v)
    wait.until_true(60, "Gizmos of " .. v, function() return api:get(self.paths[v]).code == 200 end)
  end
  function self.make(v, name, spec, annotations, finalizers)
    return { apiVersion = group .. "/" .. v, kind = "Gizmo", spec = spec,
      metadata = { name = name, annotations = annotations, finalizers = finalizers } }
  end
  return self
end

return M
