-- noderesource.lua - Koordinator's node resource controller: writes what a node can lend to mid and batch
-- pods to its status as kubernetes.io/mid-* and batch-*, its GPUs, NPUs and RDMA cards, and the ratios that
-- schedulers use to its annotations. The policy is in the modules beside this file, as pure functions; this
-- file only reads, decides and writes.
--
--   kubelua run controllers/koordinator/noderesource.lua

local kube = require "kubelua"
local batchresource = require "batchresource"
local colocation = require "colocation"
local fields = require "fields"
local midresource = require "midresource"
local nodemetric = require "metric"
local plan = require "plan"
local prepare = require "prepare"
local remembered = require "remembered"
local settings = require "settings"
local sloconfig = require "sloconfig"
local zones = require "zones"

local NODE_METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local DEVICE = "scheduling.koordinator.sh/v1alpha1/Device"
local TOPOLOGY = "topology.node.k8s.io/v1alpha1/NodeResourceTopology"
-- What messages are about, sorted.
local SAID = { batchresource.CPU, batchresource.MEMORY, midresource.CPU, midresource.MEMORY }
local DISABLED = "node colocation is disabled in Config, reason: disableInConfig"

-- When a node's status was last brought up to date, by its name, in seconds. It belongs to one worker of one
-- generation: after a reload each is brought up to date once. With one worker (the default here; it still
-- runs many nodes at a time) that is exactly Koordinator's "never synced by this process"; with more, each
-- worker keeps its own times.
local synced = {}

-- A reload reads the ConfigMap anew, too.
local read = sloconfig.reader(settings.new(), settings.sync)

-- Whether the node has been told its size.
local function is_sized(node)
  local own = remembered.of_node(node)
  if own.sized == nil then
    own.sized = fields.dig(node, "status", "allocatable") ~= nil
      and fields.dig(node, "status", "capacity") ~= nil
  end
  return own.sized
end

local function decide(node, name, known, strategy, topology, ctx, now)
  if not colocation.enabled(known.colocation.cfg, strategy) then return plan.reset(DISABLED) end
  local metric = ctx:get(NODE_METRIC, name) or {}
  local decided, failed = plan.calculate {
    strategy = strategy, node = node, nodeMetric = metric, nodeResourceTopology = topology, now = now,
    pods = ctx:list("v1/Pod", { index = "node", value = name }),
    device = ctx:get(DEVICE, name), sync_gpu_shared = ctx.params.sync_gpu_shared,
    cpuNormalization = known.cpuNormalization, resourceAmplification = known.resourceAmplification,
  }
  ---@cast failed string[]
  for _, why in ipairs(failed) do ctx.log:warn(why) end
  for _, said in ipairs(SAID) do -- the sums, with their numbers
    if decided.messages[said] then ctx.log:debug(decided.messages[said]) end
  end
  return decided, nodemetric.expires(metric, strategy.degradeTimeMinutes, name)
end

return kube.controller {
  name = "noderesource",
  resource = "v1/Node",
  indexes = { ["v1/Pod"] = { node = "spec.nodeName" } },
  watches = {
    [NODE_METRIC] = "same-name",
    [TOPOLOGY] = "same-name",
    [DEVICE] = { "same-name", when = { "generation", "labels" } },
    [sloconfig.KIND] = sloconfig.wakes_all_nodes,
  },
  reads = { "v1/Pod" },
  workers = 1,
  -- Koordinator's feature gate EnableSyncGPUSharedResource, off there, too.
  params = { sync_gpu_shared = false },
  resync = "60s", -- a metric that is no longer renewed sends no event

  reconcile = function(node, ctx)
    local known = read(ctx)
    -- No configuration was ever valid: leave the nodes as they are.
    if not known.colocation.available or not is_sized(node) then return end

    local now, name = ctx:now():unix(), node.metadata.name
    local strategy = colocation.strategy(known.colocation.cfg, node)
    local topology = ctx:get(TOPOLOGY, name)
    local decided, stale_at = decide(node, name, known, strategy, topology, ctx, now)

    if topology and next(zones.changes(topology.zones, decided, strategy.resourceDiffThreshold)) then
      ctx:patch(topology, function(t)
        for i, resources in pairs(zones.changes(t.zones, decided, strategy.resourceDiffThreshold)) do
          t.zones[i].resources = resources
        end
      end)
    end

    local desired = prepare.prepare(node, decided)
    local status = prepare.need_sync_status(strategy, remembered.allocatable(node), desired.resources,
      synced[name], now)
    if status then
      local patch = prepare.status_patch(node, desired)
      if patch then ctx:patch_status(node, patch) end
      synced[name] = now
    end
    if status or prepare.need_sync_meta(node, desired) then
      local patch = prepare.meta_patch(node, desired)
      if patch then ctx:patch(node, patch) end
    end

    -- A fresh metric becomes stale without an event: look again then.
    if stale_at and stale_at >= now then return stale_at - now + 1 end
  end,
}
