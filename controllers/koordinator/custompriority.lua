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
    mode = "BestEffort",  -- or "DrainNode": only nodes all of whose pods have room, until one may not move
    autoCordon = false,
  },

  pass = function(ctx, settings, cluster)
    settings.nodes, settings.pods_on, settings.evictable = cluster.nodes, cluster.pods_on, cluster.evictable
    local moves, cordons = priority.pass(settings)
    local cordoned, stopped = {}, {}
    local function cordon(name, yes)
      ctx:patch({ kind = descheduling.NODE, name = name }, { spec = { unschedulable = yes } })
      cordoned[name] = yes
    end
    for _, node in ipairs(settings.dryRun and {} or cordons) do cordon(node.metadata.name, true) end
    for _, move in ipairs(moves) do
      local moved = stopped[move.node] or cluster.move(move)
      if not moved and settings.mode == "DrainNode" then
        stopped[move.node] = true
        if cordoned[move.node] then cordon(move.node, false) end
      end
    end
  end,
}
