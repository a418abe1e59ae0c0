-- disruptions.lua - plays the disruption controller: how many pods each PodDisruptionBudget lets go, which
-- decides evictions, and so `kubectl drain`.

local kube = require "kubelua"
local conditions = require "lib.conditions"
local pods = require "lib.pods"

local BUDGET, POD = "policy/v1/PodDisruptionBudget", "v1/Pod"
local OWNERS = { ReplicaSet = "apps/v1/ReplicaSet", StatefulSet = "apps/v1/StatefulSet" }

-- The expected number of pods: what their controllers want, and each pod without one.
local function expected(list, ctx)
  local n, seen = 0, {}
  for _, pod in ipairs(list) do
    local ref = kube.controller_of(pod)
    local owner = ref and OWNERS[ref.kind] and ctx:get(OWNERS[ref.kind], pod.metadata.namespace, ref.name)
    if not owner then
      n = n + 1
    elseif not seen[ref.uid] then
      seen[ref.uid] = true
      n = n + owner.spec.replicas
    end
  end
  return n
end

return kube.controller {
  name = "simulate-disruptions",
  resource = BUDGET,
  watches = { [POD] = function(pod, ctx)
    local keys = {}
    for budget in ctx:each(BUDGET, { namespace = pod.metadata.namespace }) do
      local selector = budget("spec.selector")
      if selector and kube.selector(selector):matches(pod("metadata.labels") or {}) then
        keys[#keys + 1] = pod.metadata.namespace .. "/" .. budget.metadata.name
      end
    end
    return keys
  end },
  reads = { "apps/v1/ReplicaSet", "apps/v1/StatefulSet" },
  reconcile = function(budget, ctx)
    if budget("metadata.deletionTimestamp") or not budget("spec.selector") then return end
    local list, healthy = {}, 0
    for pod in ctx:each(POD, { namespace = ctx.namespace, labels = budget.spec.selector }) do
      if pods.is_active(pod) then
        list[#list + 1] = pod
        if pods.is_ready(pod) then healthy = healthy + 1 end
      end
    end
    local all = expected(list, ctx)
    local least = budget("spec.minAvailable") and kube.share(budget.spec.minAvailable, all, "up")
      or math.max(0, all - kube.share(budget("spec.maxUnavailable") or 0, all, "up"))
    local allowed = #list > 0 and math.max(0, healthy - least) or 0
    ctx:patch_status(budget, { expectedPods = all, currentHealthy = healthy, desiredHealthy = least,
      disruptionsAllowed = allowed, observedGeneration = budget.metadata.generation,
      disruptedPods = kube.null,
      conditions = conditions.with(budget("status.conditions"), { { type = "DisruptionAllowed",
        status = allowed > 0 and "True" or "False", message = "",
        reason = allowed > 0 and "SufficientPods" or "InsufficientPods",
        observedGeneration = budget.metadata.generation } }, conditions.now(ctx)) })
  end,
}
