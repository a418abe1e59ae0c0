-- endpoints.lua - plays the EndpointSlice controller: a slice for each Service with a selector, of the pods
-- that it selects. IPv4, and one slice: as many pods as one can have.

local kube = require "kubelua"
local pods = require "lib.pods"

local SERVICE, POD, SLICE = "v1/Service", "v1/Pod", "discovery.k8s.io/v1/EndpointSlice"
-- discovery.k8s.io's own limit.
local MOST = 1000

local function port_of(port, pod)
  local target = port("targetPort") or port.port
  if type(target) == "number" then return target end
  for _, c in ipairs(pod("spec.containers") or {}) do
    for _, p in ipairs(c("ports") or {}) do
      if p("name") == target then return p.containerPort end
    end
  end
end

local function endpoint(pod)
  local leaving, ready = pod("metadata.deletionTimestamp") ~= nil, pods.is_ready(pod)
  return { addresses = { pod.status.podIP }, nodeName = pod("spec.nodeName"),
    conditions = { ready = ready and not leaving, serving = ready, terminating = leaving },
    targetRef = { kind = "Pod", namespace = pod.metadata.namespace, name = pod.metadata.name,
      uid = pod.metadata.uid } }
end

return kube.controller {
  name = "simulate-endpoints",
  resource = SERVICE,
  owns = { SLICE },
  watches = { [POD] = function(pod, ctx)
    local keys = {}
    for service in ctx:each(SERVICE, { namespace = pod.metadata.namespace }) do
      local selector = service("spec.selector")
      if selector and kube.selector { matchLabels = selector }:matches(pod("metadata.labels") or {}) then
        keys[#keys + 1] = pod.metadata.namespace .. "/" .. service.metadata.name
      end
    end
    return keys
  end },
  reconcile = function(service, ctx)
    local selector = service("spec.selector")
    if not selector or service("metadata.deletionTimestamp") then return end
    local list, ports = kube.array {}, kube.array {}
    for pod in ctx:each(POD, { namespace = ctx.namespace, labels = { matchLabels = selector } }) do
      if pod("status.podIP") and not pods.ended(pod) and #list < MOST then
        if #list == 0 then
          for _, p in ipairs(service("spec.ports") or {}) do
            ports[#ports + 1] = { name = p("name") or "", protocol = p("protocol"), port = port_of(p, pod) }
          end
        end
        list[#list + 1] = endpoint(pod)
      end
    end
    local name = ctx.name .. "-" .. kube.hash(service.metadata.uid):sub(1, 5)
    ctx:apply({ apiVersion = "discovery.k8s.io/v1", kind = "EndpointSlice", addressType = "IPv4",
      metadata = { name = name, namespace = ctx.namespace,
        labels = { ["kubernetes.io/service-name"] = ctx.name,
          ["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io" } },
      endpoints = list, ports = ports }, { force = true })
  end,
}
