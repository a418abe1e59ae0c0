-- namespace-defaults.lua - a quota, limits and a network policy for every namespace with a tier.

local kube = require "kubelua"

local TIER = "examples.kubelua.dev/tier"

local function objects(ns, tier)
  local function of(kind, o)
    o.kind, o.name, o.namespace = kind, "defaults", ns
    return o
  end
  return {
    of("v1/ResourceQuota", { spec = { hard = tier.quota } }),
    of("v1/LimitRange", { spec = { limits = { { type = "Container", defaultRequest = tier.request } } } }),
    of("networking.k8s.io/v1/NetworkPolicy", { spec = { podSelector = {}, policyTypes = { "Ingress" },
      ingress = { { from = { { podSelector = {} } } } } } }),
  }
end

return kube.controller {
  name = "namespace-defaults",
  resource = "v1/Namespace",
  when = { "labels" },
  owns = { "v1/ResourceQuota", "v1/LimitRange", "networking.k8s.io/v1/NetworkPolicy" },
  params = {
    small = { quota = { ["requests.cpu"] = "4", ["requests.memory"] = "8Gi" },
      request = { cpu = "100m", memory = "128Mi" } },
    large = { quota = { ["requests.cpu"] = "64", ["requests.memory"] = "128Gi" },
      request = { cpu = "500m", memory = "512Mi" } },
  },

  reconcile = function(ns, ctx)
    local name = ns("metadata.labels", TIER)
    if not name or ns("metadata.deletionTimestamp") then return end
    local tier = ctx.params[name]
    if not tier then
      ctx:warn("UnknownTier", "there is no tier %s", name)
      return kube.fail("there is no tier " .. name)
    end
    return { apply = objects(ns.metadata.name, kube.copy(tier)) }
  end,
}
