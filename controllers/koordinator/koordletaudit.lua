-- koordletaudit.lua - reports what the agents of nodes (koordlets) would do now, and does nothing: which cpu
-- they would suppress, which pods they would evict and why, which may burst. The policy is in koordlet/, as
-- pure functions of Node, NodeMetric, NodeSLO and pods.
--
--   kubelua run controllers/koordinator/koordletaudit.lua

local kube = require "kubelua"
local fields = require "fields"
local node_of = require "koordlet.node"
local report = require "koordlet.report"

local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local SLO = "slo.koordinator.sh/v1alpha1/NodeSLO"
local CONDITION = "koordinator.sh/Reactions"

local function read(node, ctx)
  local name = node.metadata.name
  local metric, slo = ctx:get(METRIC, name), ctx:get(SLO, name)
  local updated = fields.dig(metric, "status", "updateTime")
  if not slo or not updated then return nil, "it has no NodeSLO or no NodeMetric with a report" end
  local left = ctx.params.nodeMetricExpirationSeconds - (ctx:now() - kube.time(updated))
  if left < 0 then return nil, "its report is too old" end
  local known, why = node_of.read { node = node, metric = metric, slo = slo,
    pods = ctx:list(POD, { index = "node", value = name }) }
  return known, why, left
end

local function condition(findings, why)
  local messages = {}
  for i, finding in ipairs(findings or {}) do messages[i] = finding.message end
  local first = findings and findings[1]
  return { type = CONDITION,
    status = not findings and "Unknown" or first ~= nil,
    reason = not findings and "NoReport" or first and first.reason or "Quiet",
    message = findings and table.concat(messages, "; ") or why }
end

return kube.controller {
  name = "koordlet-audit",
  resource = NODE,
  when = { "labels", "annotations", "status.capacity", "status.allocatable" },
  watches = { [METRIC] = "same-name", [SLO] = "same-name" },
  indexes = { [POD] = { node = "spec.nodeName" } },
  workers = 1,
  params = {
    upstream = "main",                  -- or "v1.8.0", which knows no annotation eviction-priority
    nodeMetricExpirationSeconds = 180,
    condition = false,                  -- write the node's condition koordinator.sh/Reactions, too
    gates = {                           -- as your agents have them; upstream has the evictions off
      BECPUSuppress = true, CPUBurst = true, TellBurst = false,
      BECPUEvict = true, CPUEvict = true, CPUAllocatableEvict = true,
      BEMemoryEvict = true, MemoryEvict = true, MemoryAllocatableEvict = true,
    },
  },

  reconcile = function(node, ctx)
    local known, why, left = read(node, ctx)
    local findings = known and report.findings(known, fields.copy(ctx.params.gates), ctx.params.upstream)
    local now = findings and report.fingerprint(findings) or ""
    if now ~= (ctx.memo.told or "") then
      for _, finding in ipairs(findings or {}) do ctx:event(finding.reason, "%s", finding.message) end
      ctx.memo.told = now
    end
    -- A report expires without an event: look again then.
    local status = ctx.params.condition and { conditions = { condition(findings, why) } } or nil
    return { status = status, requeue_after = left and left + 1 or nil }
  end,
}
