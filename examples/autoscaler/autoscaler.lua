-- autoscaler.lua - sets replicas by the length of a queue, through the scale subresource: any kind that has
-- one.

local kube = require "kubelua"

local CALM = 300 -- seconds of less work before it scales down

local function wanted(scaler, length)
  local n = math.ceil(length / scaler.spec.perReplica)
  return math.max(scaler.spec.min, math.min(scaler.spec.max, n))
end

return kube.controller {
  name = "autoscaler",
  resource = "examples.kubelua.dev/v1/Autoscaler",
  indexes = { queue = function(s) return s.metadata.namespace .. "/" .. s.spec.queue end },
  -- a ConfigMap stands for the queue: data.length
  watches = { ["v1/ConfigMap"] = { via = "queue", when = { "data" } } },

  reconcile = function(scaler, ctx)
    local ns, target = scaler.metadata.namespace, scaler.spec.target
    local queue = ctx:get("v1/ConfigMap", ns, scaler.spec.queue)
    if not queue then return kube.retry("30s", "there is no queue " .. scaler.spec.queue) end
    local scale = ctx.live:get(target.kind, ns, target.name, { subresource = "scale" })
    if not scale then return kube.retry("30s", ("there is no %s %s"):format(target.kind, target.name)) end

    local now, have, want = ctx:now(), scale("spec.replicas") or 0,
      wanted(scaler, tonumber(queue("data.length") or 0))
    if want < have then
      local since = ctx.memo.less and kube.time(ctx.memo.less)
      if not since then
        ctx.memo.less = tostring(now)
        return { requeue_after = CALM }
      end
      if now - since < CALM then return { requeue_after = CALM - (now - since) } end
    end
    ctx.memo.less = nil
    if want ~= have then
      ctx:patch({ kind = target.kind, name = target.name, namespace = ns }, { spec = { replicas = want } },
        { subresource = "scale" })
      ctx:event("Scaled", "%s %s from %d to %d", target.kind, target.name, have, want)
    end
    return { status = { replicas = want } }
  end,
}
