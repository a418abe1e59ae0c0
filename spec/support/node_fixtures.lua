-- node_fixtures.lua - the calculations nodemetric_spec, nodeslo and those of colocation profiles for
-- fixtures.lua, which passes its comparisons as `tools`.

local kube = require "kubelua"
local colocation = require "colocation"
local devices = require "devices"
local fields = require "fields"
local mutate = require "colocationprofile.mutate"
local nodemetric_spec = require "nodemetric.spec"
local nodeslo = require "nodeslo.strategy"

return function(calcs, tools)
  local by_op, failing, first, value = tools.by_op, tools.failing, tools.first, tools.value

  calcs.nodemetric_spec = by_op {
    getNodeMetricCollectPolicy = function(input, expect)
      local policy, why = nodemetric_spec.policy(input.strategy)
      local wrong, done = failing(expect, policy, why)
      if wrong or done then return wrong end
      return value("policy", expect.policy, policy)
    end,
    getNodeMetricSpec = function(input, expect)
      local known = { cfg = {}, available = false, errorStatus = false }
      local cache = colocation.sync(known, input.configMap)
      local spec, why = nodemetric_spec.desired(cache, input.node, input.oldSpec)
      local wrong, done = failing(expect, spec, spec == nil and why or nil)
      if wrong or done then return wrong end
      return value("spec", expect.spec, spec)
    end,
  }

  -- Bandwidths compare by value: "1G" and 1000000000 are equal.
  local function with_plain_bandwidth(strategy)
    local out = fields.copy(strategy)
    local bandwidth = type(out) == "table" and out.totalNetworkBandwidth
    if bandwidth then out.totalNetworkBandwidth = kube.qty(bandwidth):canonical() end
    return out
  end

  calcs.nodeslo = by_op {
    merge = function(input, expect)
      local cfg, why = nodeslo.merge(input.key, input.oldCfg, input.configMap, "main")
      if (expect.error == true) ~= (why ~= nil) then return "error: " .. tostring(why) end
      return first(
        value("applications", expect.cfg.applications, cfg.applications),
        value("clusterStrategy", with_plain_bandwidth(expect.cfg.clusterStrategy),
          with_plain_bandwidth(cfg.clusterStrategy)),
        value("nodeStrategies", expect.cfg.nodeStrategies, cfg.nodeStrategies))
    end,
    select = function(input, expect)
      local strategy, why = nodeslo.select(input.key, input.cfg, input.node)
      local wrong, done = failing(expect, strategy, why)
      if wrong or done then return wrong end
      return value("strategy", with_plain_bandwidth(expect.strategy), with_plain_bandwidth(strategy))
    end,
    spec = function(input, expect)
      local known = nodeslo.sync(nodeslo.new(), input.configMap, "main")
      local spec = nodeslo.spec(known, input.node, input.oldSpec)
      for field, want in pairs(expect.spec) do
        local wrong = value(field, with_plain_bandwidth(want), with_plain_bandwidth(spec[field] or {}))
        if wrong then return wrong end
      end
    end,
  }
  local function by_name(list, name)
    for _, object in ipairs(list or {}) do
      if object.metadata.name == name then return object end
    end
  end

  local EXTENDED_SPEC = "node.koordinator.sh/extended-resource-spec"

  -- Quantities in a pod and its JSON annotations are compared by value; an empty map counts as absent.
  local function canonical(v, of_list)
    if type(v) ~= "table" then return of_list and kube.qty(v):canonical() or v end
    local out = {}
    for k, x in pairs(v) do
      if k == EXTENDED_SPEC then x = fields.json(x) or x end
      local plain = canonical(x, of_list or k == "requests" or k == "limits" or k == "overhead")
      if type(plain) ~= "table" or next(plain) ~= nil then out[k] = plain end
    end
    return out
  end

  calcs.gpu_device = function(input, expect)
    local result, why = devices.gpu { node = input.node, device = input.device,
      sync_gpu_shared = input.enableSyncGPUSharedResource }
    local wrong, done = failing(expect, result, why)
    if wrong or done then return wrong end
    local resets = {}
    for _, name in ipairs(expect.reset or {}) do resets[name] = true end
    return first(
      tools.quantities("resources", expect.resources or {}, result.resources),
      value("labels", expect.labels, result.labels),
      value("resets", resets, result.resets or {}))
  end

  local function mutated(input)
    local pod, profiles = fields.copy(input.pod), fields.copy(input.profiles or {})
    local matched = mutate.matching(profiles, pod, by_name(input.namespaces, pod.metadata.namespace))
    return mutate.mutate(pod, matched, {
      priority_class = function(name) return by_name(input.priorityClasses, name) end,
      draw = function() return input.rand end,
      skip_resources = input.skipMutatingResourcesFeature,
    })
  end

  calcs.cluster_colocation_profile = function(input, expect)
    local result, why = mutated(input)
    local wrong, done = failing(expect, result, why)
    if wrong or done then return wrong end
    return value("pod", canonical(fields.copy(expect.pod)), canonical(result))
  end

  -- A new pod after the mutating webhook.
  calcs.pod_webhook = function(input, expect)
    local result, why = mutated(input)
    local wrong, done = failing(expect, result, why)
    if wrong or done then return wrong end
    mutate.device_spec(result)
    mutate.extended_spec(result)
    return value("pod", canonical(fields.copy(expect.pod)), canonical(result))
  end
end
