-- night.lua - nodes lend more at night. It sets cpuReclaimThresholdPercent of Koordinator's colocation
-- strategy to `night` from hour `from` to hour `to` (UTC), and to `day` otherwise. noderesource.lua acts on
-- it.
--
--   kubelua run controllers/koordinator/studies/night.lua --param night=80

local kube = require "kubelua"

local CONFIG = "colocation-config"
local HOUR, DAY = 3600, 86400

-- The percentage at a time, and the seconds until it changes.
local function plan(now, params)
  local from, to = params.from * HOUR, params.to * HOUR
  local into_night = (now - from) % DAY
  local length = (to - from) % DAY
  if into_night < length then return params.night, length - into_night end
  return params.day, DAY - into_night
end

return kube.controller {
  name = "night",
  resource = "v1/ConfigMap",
  namespaces = { "koordinator-system" },
  selector = { fields = "metadata.name=slo-controller-config" },
  params = { day = 55, night = 55, from = 22, to = 6 },

  reconcile = function(map, ctx)
    local percent, seconds = plan(ctx:now():unix(), ctx.params)
    local strategy = kube.decode(map("data", CONFIG) or '{"enable":true}')
    if strategy.cpuReclaimThresholdPercent ~= percent then
      ctx.log:info("nodes lend up to %d %% for the next %.1f hours", percent, seconds / HOUR)
      ctx:patch(map, function(draft)
        local changed = kube.copy(strategy)
        changed.cpuReclaimThresholdPercent = percent
        draft.data[CONFIG] = kube.encode(changed)
      end)
    end
    return { requeue_after = seconds }
  end,
}
