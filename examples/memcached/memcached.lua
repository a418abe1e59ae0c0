-- memcached.lua - a Deployment for each Memcached, and conditions that report its state.

local kube = require "kubelua"

local DEPLOYMENT = "apps/v1/Deployment"

local function deployment(cache, image)
  local labels = { ["app.kubernetes.io/name"] = "memcached",
    ["app.kubernetes.io/instance"] = cache.metadata.name }
  return { kind = DEPLOYMENT, name = cache.metadata.name, namespace = cache.metadata.namespace,
    spec = {
      replicas = cache.spec.size,
      selector = { matchLabels = labels },
      template = {
        metadata = { labels = labels },
        spec = {
          securityContext = { runAsNonRoot = true, seccompProfile = { type = "RuntimeDefault" } },
          containers = { {
            name = "memcached", image = image, command = { "memcached", "-m=64", "-o", "modern" },
            ports = { { name = "memcached", containerPort = cache("spec.port") or 11211 } },
            securityContext = { runAsUser = 1001, allowPrivilegeEscalation = false,
              capabilities = { drop = { "ALL" } } },
          } },
        },
      },
    } }
end

return kube.controller {
  name = "memcached",
  resource = "examples.kubelua.dev/v1/Memcached",
  owns = { DEPLOYMENT },
  params = { image = "docker.io/memcached:1.6-alpine" },

  reconcile = function(cache, ctx)
    local made = ctx:apply(deployment(cache, ctx.params.image))
    local ready = made("status.readyReplicas") or 0
    return { status = { conditions = { { type = "Available", status = ready == cache.spec.size,
      reason = ready == cache.spec.size and "AllReady" or "Starting",
      message = ("%d of %d are ready"):format(ready, cache.spec.size) } } } }
  end,
}
