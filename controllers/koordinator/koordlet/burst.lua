-- burst.lua - which containers may exceed their cpu limit for a while, and by how much, depending on the load
-- of the processors that pods share.

local fields = require "fields"
local lists = require "lib.lists"

local M = {}

local PERIOD = 100000                 -- of cpu quotas, in microseconds
local COOLING = 0.9                   -- of the threshold: below it the node is idle
local UP, DOWN = 1.2, 0.8             -- the factors by which a quota grows and shrinks in one step
local CONFIG = "koordinator.sh/cpuBurst"
local EXCLUSIVE = { LSE = true, LSR = true }

-- The state of the shared processors: "overload", "cooling" or "idle", and the share in use. Processors of
-- LSE and LSR pods are not shared; the use of BE pods does not count.
function M.state(node)
  local total, used = node.capacity.cpu, node.used.cpu
  for _, pod in ipairs(node.pods) do
    if EXCLUSIVE[pod.qos] then total = total - (pod.asked.cpu or 0) end
    if (EXCLUSIVE[pod.qos] or pod.qos == "BE") and pod.used then used = used - (pod.used.cpu or 0) end
  end
  local part, threshold = total > 0 and used / total or 1.0, node.burst.sharePoolThresholdPercent / 100
  if part >= threshold then return "overload", part end
  return part >= threshold * COOLING and "cooling" or "idle", part
end

-- The node's strategy, overridden by the pod's annotation. An invalid annotation is ignored.
function M.config(pod, strategy)
  local text = fields.annotation(pod, CONFIG)
  local own = text and fields.json(text)
  return own and fields.merge(strategy, own) or strategy
end

local function milli_limit(container)
  local q = fields.dig(container, "resources", "limits", "cpu")
  return q ~= nil and lists.amount("cpu", q) or 0
end

-- What a container may save up (cpu.cfs_burst_us), its quota without burst, and its highest quota, in
-- microseconds; nil for a container without a limit.
function M.container(container, config)
  local limit, policy = milli_limit(container), config.policy
  if limit <= 0 then return nil end
  local base, saved = limit * PERIOD // 1000, 0
  if policy == "auto" or policy == "cpuBurstOnly" then
    saved = math.floor(limit / 1000 * ((config.cpuBurstPercent or 0) / 100) * PERIOD)
  end
  local ceiling = base
  if (policy == "auto" or policy == "cfsQuotaBurstOnly") and (config.cfsQuotaBurstPercent or 0) > 100 then
    ceiling = math.floor(base * config.cfsQuotaBurstPercent / 100)
  end
  return { saved = saved, base = base, ceiling = ceiling }
end

-- The next quota of a container that has `current`: throttled is whether it wanted more (nil: unknown),
-- allowed whether its bucket lets it burst.
function M.next_quota(bounds, current, state, throttled, allowed)
  if bounds.ceiling == bounds.base then return bounds.base end
  local way = "remain"
  if not allowed then
    way = "down"
  elseif throttled then
    way = "up"
  end
  if state == "overload" then way = "down" elseif state ~= "idle" and way == "up" then way = "remain" end
  local target = way == "up" and current * UP or way == "down" and current * DOWN or current
  return math.max(math.min(math.floor(target), bounds.ceiling), bounds.base)
end

-- The pods that may burst now: { state, part, pods = { { pod, saved, base, ceiling } } }, sums over
-- containers; pods of LSE, LSR and BE never do. Nil if the node has no strategy.
function M.decide(node)
  if not node.burst or not node.burst.sharePoolThresholdPercent then return nil end
  local state, part = M.state(node)
  local out = { state = state, part = part, pods = {} }
  for _, pod in ipairs(node.pods) do
    if pod.active and not EXCLUSIVE[pod.qos] and pod.qos ~= "BE" then
      local config, sum = M.config(pod.pod, node.burst), { pod = pod, saved = 0, base = 0, ceiling = 0 }
      for _, container in ipairs(fields.dig(pod.pod, "spec", "containers") or {}) do
        local one = M.container(container, config)
        for name, n in pairs(one or {}) do sum[name] = sum[name] + n end
      end
      if sum.saved > 0 or sum.ceiling > sum.base then out.pods[#out.pods + 1] = sum end
    end
  end
  return out
end

return M
