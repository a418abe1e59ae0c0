-- partitions.lua - sets of GPUs that are connected with each other. The Device lists those of its node in the
-- annotation gpu-partitions, by the number of GPUs; NVIDIA's H100, H800 and H20 have known ones:
--
--   {"2": [{"minors": [0, 1], "gpuLinkType": "NVLink", "ringBusBandwidth": "400Gi", "allocationScore": 1}]}
--
-- Whole GPUs are taken as one partition, if one is free. A pod with the annotation gpu-partition-spec, and
-- any pod on a node whose policy is Honor, gets nothing else; other pods get any GPUs then.

local fields = require "fields"
local lists = require "lib.lists"
local templates = require "scheduler.devices.templates"

local M = {}

local TABLE = "scheduling.koordinator.sh/gpu-partitions"
local POLICY = "node.koordinator.sh/gpu-partition-policy"
local HOPPER = { H100 = true, H800 = true, H20 = true }
local EIGHT = { [8] = 10000, [4] = 100, [2] = 1 } -- what a free partition of so many GPUs is worth
local SIZES = { 8, 4, 2 }

local PARTITION = { minors = fields.list_of "integer", gpuLinkType = "string",
  ringBusBandwidth = "integer or string", allocationScore = "integer" }

local function mask_of(minors)
  local mask = 0
  for _, minor in ipairs(minors) do mask = mask | 1 << minor end
  return mask
end

-- The partitions of one number of GPUs in groups of equal allocationScore, the lowest first, as upstream.
local function grouped(list)
  local groups, by_score = {}, {}
  for _, one in ipairs(list) do
    local score = one.allocationScore or 0
    if not by_score[score] then
      by_score[score] = { score = score }
      groups[#groups + 1] = by_score[score]
    end
    local minors, bandwidth = one.minors or {}, one.ringBusBandwidth
    table.insert(by_score[score], { minors = minors, mask = mask_of(minors), score = score,
      bandwidth = bandwidth and lists.amount("bandwidth", bandwidth) })
  end
  table.sort(groups, function(a, b) return a.score < b.score end)
  return groups
end

local function hopper()
  local out = {}
  for _, n in ipairs { 1, 2, 4, 8 } do
    local list = {}
    for from = 0, 7, n do
      local minors = {}
      for i = 1, n do minors[i] = from + i - 1 end
      list[#list + 1] = { minors = minors, allocationScore = 1 }
    end
    out[n] = grouped(list)
  end
  return out
end

-- The annotation's partitions by their number of GPUs; nil for none, and for an annotation that is not valid.
local function of_device(device)
  local text = fields.annotation(device, TABLE)
  local said = text and text ~= "" and fields.json(text)
  local checked = said and fields.map_of(fields.list_of(PARTITION))(said)
  if not checked then return nil end
  local out = {}
  for n, list in pairs(checked) do out[math.tointeger(tonumber(n)) or n] = grouped(list) end
  return out
end

-- The partitions of the node's GPUs, { [number of GPUs] = groups }, or nil; and whether the node gives whole
-- GPUs only by them.
local function on(node, device)
  local known = of_device(device)
  if known then return known, fields.label(device, POLICY) == "Honor" end
  local vendor, model = templates.model_of(node)
  known = (vendor == "" or vendor == "nvidia") and HOPPER[model] and hopper() or nil
  return known, fields.label(node, POLICY) == "Honor"
end

-- How much the partition leaves whole: the worth of the partitions of at least `count` GPUs that stay free.
local function worth(partition, known, busy, count)
  local taken, sum = busy | partition.mask, 0
  for _, n in ipairs(SIZES) do
    local groups = n >= count and known[n]
    for _, other in ipairs(groups and groups[1] or {}) do
      if other.mask & taken == 0 then sum = sum + EIGHT[n] * other.score end
    end
  end
  return sum
end

-- The partitions of a group that are wholly free and as fast as the pod needs.
local function free_of(group, pool, busy, wanted)
  local out, there = {}, 0
  for _, minor in ipairs(pool.minors) do
    if not lists.is_zero(pool.stock.total[minor]) then there = there | 1 << minor end
  end
  for _, one in ipairs(group) do
    local fast = not wanted or one.bandwidth and wanted <= one.bandwidth
    if one.mask & busy == 0 and one.mask & there == one.mask and fast then out[#out + 1] = one end
  end
  return out
end

local function choose(known, request, pool)
  if not known then return nil, "node(s) missing GPU Partition Table" end
  local groups, wish = known[request.count], request.partition or {}
  if not groups then return nil, "node(s) Unsupported number of GPU requests" end
  local busy = mask_of(fields.names(pool.busy))
  for _, group in ipairs(groups) do
    local best, most
    for _, one in ipairs(free_of(group, pool, busy, wish.bandwidth)) do
      local value = worth(one, known, busy, request.count)
      if not best or value > most then best, most = one, value end
    end
    if best then return best.minors end
    if wish.restricted then break end
  end
  return nil, "Insufficient Partitioned GPU Devices"
end

-- The minors of a partition for whole GPUs; nil: the pod may have any GPUs; nil and the reason: it gets none.
function M.minors(pool, request, node)
  if request.shared then return nil end
  local known, honored = on(node, pool.stock.device)
  local minors, why = choose(known, request, pool)
  if minors then return minors end
  return nil, (honored or request.partition) and why or nil
end

return M
