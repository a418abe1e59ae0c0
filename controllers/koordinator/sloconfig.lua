-- sloconfig.lua - reads the ConfigMap slo-controller-config for the controllers that it configures.

local fields = require "fields"

local M = {}

M.KIND, M.NAMESPACE, M.NAME = "v1/ConfigMap", "koordinator-system", "slo-controller-config"

-- For `watches`: a change of this ConfigMap wakes all nodes; other ConfigMaps wake none.
function M.wakes_all_nodes(config_map, ctx)
  local keys = {}
  if config_map.metadata.namespace == M.NAMESPACE and config_map.metadata.name == M.NAME then
    for node in ctx:each "v1/Node" do keys[#keys + 1] = node.metadata.name end
  end
  return keys
end

function M.read(ctx) return ctx:get(M.KIND, M.NAMESPACE, M.NAME) end

-- Returns a function of ctx that returns the current configuration. sync(known, config_map) returns the new
-- configuration and a list of reasons why parts of the ConfigMap were rejected; config_map is nil when there
-- is none. With `shared` (kube.shared) and `remember`, a name in it, the last valid configuration survives
-- reloads of the script.
---@param sync fun(known: table, config_map: any): table, string[]
function M.reader(first, sync, shared, remember)
  local known, seen = first, false -- false: never looked
  return function(ctx)
    local config_map = M.read(ctx)
    local version = fields.dig(config_map, "metadata", "resourceVersion")
    if version == seen then return known end
    if seen == false and shared then known = fields.copy(shared:get(remember)) or first end
    local refused
    known, refused = sync(known, config_map)
    seen = version
    if shared then shared:set(remember, known) end
    for _, why in ipairs(refused) do
      ctx.log:warn(("ConfigMap %s/%s is invalid; its last valid state is used: %s"):format(M.NAMESPACE,
        M.NAME, why))
    end
    return known
  end
end

return M
