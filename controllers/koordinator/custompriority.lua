-- custompriority.lua - Koordinator's CustomPriority: moves pods from expensive kinds of nodes to cheap ones
-- that have room. The policy is descheduling/priority.lua. Without an evictionOrder nothing happens.
--
--   kubelua run controllers/koordinator/custompriority.lua

local descheduling = require "lib.descheduling"
local priority = require "descheduling.priority"

return descheduling.controller {
  name = "custompriority",
  plugin = "CustomPriority",
  interval = 60,
  params = { -- as in CustomPriorityArgs
    paused = false,
    dryRun = false,
    nodeFit = true,
    evictionOrder = {},   -- { name = "on-demand", nodeSelector = { matchLabels = { price = "high" } } }, ...
    mode = "BestEffort",  -- or "DrainNode": all pods of a node, or none
    autoCordon = false,
  },

  pass = function(ctx, settings, cluster)
    settings.nodes, settings.pods_on, settings.evictable = cluster.nodes, cluster.pods_on, cluster.evictable
    local moves, cordons = priority.pass(settings)
    for _, node in ipairs(settings.dryRun and {} or cordons) do
      ctx:patch({ kind = descheduling.NODE, name = node.metadata.name }, { spec = { unschedulable = true } })
    end
    for _, move in ipairs(moves) do cluster.move(move) end
  end,
}
