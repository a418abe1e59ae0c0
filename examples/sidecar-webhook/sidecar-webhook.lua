-- sidecar-webhook.lua - adds a container to pods with an annotation, before they are stored.

local kube = require "kubelua"

local ASKS = "examples.kubelua.dev/log-shipper"
local SIDECAR = { name = "log-shipper", image = "docker.io/fluent/fluent-bit:3.1",
  volumeMounts = { { name = "logs", mountPath = "/var/log/app", readOnly = true } } }

local function has(list, name)
  for _, x in ipairs(list or {}) do
    if x.name == name then return true end
  end
  return false
end

return kube.webhook {
  name = "sidecar",
  resource = "v1/Pod",
  operations = { "CREATE" },

  mutate = function(pod)
    if pod("metadata.annotations", ASKS) ~= "yes" or has(pod.spec.containers, SIDECAR.name) then return end
    pod.spec.containers[#pod.spec.containers + 1] = kube.copy(SIDECAR)
    local volumes = kube.copy(pod("spec.volumes") or kube.array {})
    if not has(volumes, "logs") then volumes[#volumes + 1] = { name = "logs", emptyDir = kube.object {} } end
    pod.spec.volumes = volumes
  end,
}
