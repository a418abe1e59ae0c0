-- nodemetrics.lua - plays koordlet's reports: NodeMetrics whose use goes up and down through the day.
--
--   simulate.kubelua.dev/cpu-use: 20%..60%/24h   on a node: from, to, and how long up and down take together
--   simulate.kubelua.dev/memory-use: 50%         or always the same

local kube = require "kubelua"
local conditions = require "lib.conditions"

local METRIC, NODE = "slo.koordinator.sh/v1alpha1/NodeMetric", "v1/Node"
local PREFIX = "simulate.kubelua.dev/"

-- Shares and a period in seconds, or nil: "20%..60%/24h", "50%".
local function curve_of(text)
  local from, to, period = text:match "^(%d+)%%%.%.(%d+)%%/(%w+)$"
  from = from or text:match "^(%d+)%%$"
  local ok, seconds = pcall(kube.duration, period or "24h")
  if not from or not ok or seconds <= 0 then return nil end
  return { from = tonumber(from) / 100, to = tonumber(to or from) / 100, period = seconds }
end

-- At a moment: least at the beginning of a period, most in its middle.
local function share_at(curve, unix)
  local wave = (1 - math.cos(2 * math.pi * (unix % curve.period) / curve.period)) / 2
  return curve.from + (curve.to - curve.from) * wave
end

local function use(node, name, otherwise, ctx)
  local text = node("metadata.annotations", PREFIX .. name .. "-use") or otherwise
  local curve = curve_of(text)
  if not curve then
    ctx:warn("BadAnnotation", "%s%s-use: %q is not a curve such as 20%%..60%%/24h; it counts as %s", PREFIX,
      name, text, otherwise)
    curve = curve_of(otherwise) or { from = 0, to = 0, period = 1 }
  end
  local has = kube.qty(node("status.capacity", name) or "0"):milli()
  local milli = math.floor(has * share_at(curve, ctx:now():unix()))
  return name == "cpu" and milli .. "m" or tostring(milli // 1000)
end

return kube.controller {
  name = "simulate-nodemetrics",
  resource = METRIC,
  reads = { NODE },
  params = {
    cpuUse = { type = "string", default = "20%..60%/24h", doc = "for nodes that do not set their own" },
    memoryUse = { type = "string", default = "30%..50%/24h" },
    report = { type = "duration", default = "60s", doc = "the interval, unless the NodeMetric sets it" },
  },
  reconcile = function(metric, ctx)
    local node = ctx:get(NODE, metric.metadata.name)
    if not node or metric("metadata.deletionTimestamp") then return end
    local every = metric("spec.metricCollectPolicy.reportIntervalSeconds") or kube.duration(ctx.params.report)
    local last = metric("status.updateTime")
    local left = last and every - (ctx:now() - kube.time(last)) or 0
    if left > 0 then return left end
    local resources = { cpu = use(node, "cpu", ctx.params.cpuUse, ctx),
      memory = use(node, "memory", ctx.params.memoryUse, ctx) }
    ctx:patch_status(metric, { updateTime = conditions.now(ctx),
      nodeMetric = { nodeUsage = { resources = resources } } })
    return every
  end,
}
