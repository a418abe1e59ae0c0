-- fragmentationaware.lua - Koordinator's FragmentationAware: from nodes where requests for one resource are
-- much higher than for another, evicts the pod that evens it out most (descheduling/fragmentation.lua).
--
--   kubelua run controllers/koordinator/fragmentationaware.lua

local descheduling = require "lib.descheduling"
local fragmentation = require "descheduling.fragmentation"

return descheduling.controller {
  name = "fragmentationaware",
  plugin = "FragmentationAware",
  interval = 60,
  params = { -- as in FragmentationAwareArgs
    paused = false,
    dryRun = false,
    nodeFit = true,
    resources = { "cpu", "memory" },
    imbalanceThreshold = 0.15,
    minImprovementThreshold = 0.02,
  },

  pass = function(_, settings, cluster)
    settings.nodes, settings.pods_on, settings.evictable = cluster.nodes, cluster.pods_on, cluster.evictable
    for _, move in ipairs(fragmentation.pass(settings)) do cluster.move(move) end
  end,
}
