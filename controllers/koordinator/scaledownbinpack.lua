-- scaledownbinpack.lua - Koordinator's ScaleDownBinPack. It gives the pods of chosen workloads deletion
-- costs, so that a scale-down empties whole nodes; or it migrates these pods at once. The policy is in
-- descheduling/binpack.lua.
--
--   kubelua run controllers/koordinator/scaledownbinpack.lua

local binpack = require "descheduling.binpack"
local descheduling = require "lib.descheduling"
local fields = require "fields"
local victims = require "lownodeload.victims"

local function note(ctx, pod, cost)
  local text = tostring(cost)
  if fields.annotation(pod, binpack.COST) == text then return end
  local meta = pod.metadata
  ctx:patch({ kind = descheduling.POD, namespace = meta.namespace, name = meta.name },
    { metadata = { annotations = { [binpack.COST] = text } } })
end

return descheduling.controller {
  name = "scaledownbinpack",
  plugin = "ScaleDownBinPack",
  interval = 60,
  params = { -- as in ScaleDownBinPackArgs
    paused = false,
    strategy = "CalculateOnly", -- or "EvictDirectly"
    maxPodsToEvict = 0,         -- in one pass; 0: as many as there are
    resources = { "cpu", "memory" },
  },

  pass = function(ctx, settings, cluster)
    settings.nodes, settings.pods_on, settings.evictable = cluster.nodes, cluster.pods_on, cluster.evictable
    settings.target = function(pod) return victims.chosen(pod, { podSelectors = settings.podSelectors }) end
    local ranked, skipped = binpack.rank(settings)
    if settings.strategy == "EvictDirectly" then
      local left = settings.maxPodsToEvict > 0 and settings.maxPodsToEvict or #ranked
      for _, one in ipairs(ranked) do
        if left == 0 then break end
        if cluster.move { pod = one.pod, node = one.node, reason = "scale-down binpack" } then
          left = left - 1
        end
      end
      return
    end
    for i, one in ipairs(ranked) do note(ctx, one.pod, i - 1) end
    for _, pod in ipairs(skipped) do note(ctx, pod, binpack.LAST) end
  end,
}
