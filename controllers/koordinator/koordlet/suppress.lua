-- suppress.lua - how much cpu BE pods may use while other pods need theirs, as processors or as a quota.

local M = {}

local MIN_CPUS, MIN_QUOTA = 2, 2000
local PERIOD = 100000        -- of cpu quotas, in microseconds
local GROWTH, IGNORED = 0.1, 0.01 -- parts of the node: by which they grow at a time; too little to be written
M.UNSET = -1                 -- the quota without a limit

-- The total for BE pods, in milli-cores; it can be below 0. node is as node.lua reads it.
--   capacity * cpuSuppressThresholdPercent - used by others - max(used by the system, reserved)
function M.allowed(node)
  local percent = node.threshold.cpuSuppressThresholdPercent
  local left = node.capacity.cpu * percent // 100 - node.pods_not_be - node.hosts_not_be - node.system
  local least = node.threshold.cpuSuppressMinPercent
  return least and math.max(left, node.capacity.cpu * least // 100) or left
end

-- Policy cpuset: the number of processors, if BE pods have `current` of `total` now.
function M.cpus(allowed, current, total)
  local cpus = math.max(math.ceil(allowed / 1000), MIN_CPUS)
  return math.min(cpus, current + math.ceil(total * GROWTH))
end

-- Policy cfsQuota: the quota in microseconds per 100 ms, if it is `current` now and the node has `cores`. A
-- small difference leaves the current quota.
function M.quota(allowed, current, cores)
  local quota = math.max(allowed * PERIOD // 1000, MIN_QUOTA)
  if math.abs(quota - current) < cores * PERIOD * IGNORED and quota ~= MIN_QUOTA then return current end
  local step = cores * PERIOD * GROWTH
  if current ~= M.UNSET and quota - current > step then return current + math.floor(step) end
  return quota
end

-- The present decision, or nil if the node's strategy is off. What BE pods have now is not in the API, so it
-- is the final value:
--   { allowed, used = by BE pods, limit = in milli-cores, policy, suppressed = whether they use all of it }
function M.decide(node)
  if node.threshold.enable ~= true or not node.threshold.cpuSuppressThresholdPercent then return nil end
  local allowed, used, count = M.allowed(node), 0, 0
  for _, pod in ipairs(node.pods) do
    if pod.be then
      count = count + 1
      used = used + (pod.used and pod.used.cpu or 0)
    end
  end
  local policy = node.threshold.cpuSuppressPolicy or "cpuset"
  local limit
  if policy == "cfsQuota" then
    limit = M.quota(allowed, M.UNSET, node.capacity.cpu // 1000) * 1000 // PERIOD
  else
    limit = math.min(math.max(math.ceil(allowed / 1000), MIN_CPUS) * 1000, node.capacity.cpu)
  end
  return { allowed = allowed, used = used, pods = count, limit = limit, policy = policy,
    suppressed = count > 0 and used >= limit }
end

return M
