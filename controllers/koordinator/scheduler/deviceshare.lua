-- deviceshare.lua - DeviceShare: which GPUs of a node a pod gets, whole ones or parts. A Device (one for each
-- node, by the agent) says what each GPU has; an annotation of each pod says what it has of which.
--
--   count     = gpu.shared, or gpu-memory-ratio / 100 where that is several whole GPUs, or 1
--   per GPU   = what is asked for / count; nvidia.com/gpu: n is 100 · n of gpu-core and gpu-memory-ratio
--   takes     : the `count` GPUs that have it free, those of the best score first
--   score     = Σ weight · part that stays free (or is used) / Σ weight, of a GPU and of a node
--
-- info.gpus is { total, free }, both { [minor] = list of amounts }.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local scores = require "scheduler.scores"

local dig = fields.dig

local M = { name = "DeviceShare" }

M.KIND = "scheduling.koordinator.sh/v1alpha1/Device"
M.ANNOTATION = "scheduling.koordinator.sh/device-allocated"

local PREFIX = "koordinator.sh/"
local GPU, SHARED, CORE = PREFIX .. "gpu", PREFIX .. "gpu.shared", PREFIX .. "gpu-core"
local MEMORY, RATIO = PREFIX .. "gpu-memory", PREFIX .. "gpu-memory-ratio"
local WHOLE = { "nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu" }
local NAMES = { WHOLE[1], WHOLE[2], WHOLE[3], GPU, SHARED, CORE, MEMORY, RATIO }
local NPU = "huawei.com/npu-"
local MAX = 100

-- As DeviceShareArgs.scoringStrategy: LeastAllocated spreads pods over GPUs, MostAllocated fills them.
M.DEFAULTS = {
  type = "LeastAllocated",
  resources = { { name = RATIO, weight = 1 }, { name = MEMORY, weight = 1 } },
}

-- ---------------------------------------------------------------- what a pod asks for

-- The names that may be asked for together, with and without gpu.shared.
local VALID = {}
for _, name in ipairs { WHOLE[1], WHOLE[2], WHOLE[3], GPU, MEMORY, RATIO } do VALID[name] = true end
for _, memory in ipairs { MEMORY, RATIO } do
  VALID[CORE .. " " .. memory] = true
  for _, shared in ipairs { SHARED, SHARED .. " " .. CORE } do VALID[shared .. " " .. memory] = true end
end

local function whole(n) return n <= MAX or n % MAX == 0 end

local function valid(asked, names)
  if not VALID[table.concat(names, " ")] then return false end
  for _, name in ipairs { GPU, CORE, RATIO } do
    local n, shared = asked[name], asked[SHARED]
    if n and shared and (n % shared ~= 0 or n // shared > MAX) then return false end
    if n and not shared and not whole(n) then return false end
  end
  return true
end

-- What a pod asks of GPUs: { count, each = list of amounts }, nil for nothing, nil and why for what makes no
-- sense.
function M.request(requests)
  local asked, names = {}, {}
  for name, n in pairs(requests) do
    if n > 0 and name:sub(1, #NPU) == NPU then return nil end -- not allocated here
  end
  for _, name in ipairs(NAMES) do
    if (requests[name] or 0) > 0 then asked[name], names[#names + 1] = requests[name], name end
  end
  if #names == 0 then return nil end
  if not valid(asked, names) then
    return nil, "invalid resource device requests: [" .. table.concat(names, " ") .. "]"
  end
  local percent = asked[GPU]
  for _, name in ipairs(WHOLE) do percent = percent or asked[name] and asked[name] * MAX end
  if percent then asked = { [CORE] = percent, [RATIO] = percent } end
  local ratio = asked[RATIO] or 0
  local count = asked[SHARED] or ratio > MAX and ratio % MAX == 0 and ratio // MAX or 1
  local each = {}
  for _, name in ipairs { CORE, RATIO, MEMORY } do each[name] = asked[name] and asked[name] // count end
  return { count = count, each = each }
end

-- ---------------------------------------------------------------- what a node has

-- The GPUs that a pod has: a list of { minor, resources }.
local function gpus_of(entry)
  if entry.devices then return entry.devices end
  local text = fields.annotation(entry.pod, M.ANNOTATION)
  local list = dig(text and fields.json(text), "gpu")
  return type(list) == "table" and list or {}
end

local function gpus(info, state)
  if info.gpus then return info.gpus end
  local total, free = {}, {}
  for _, device in ipairs(dig(state.devices, info.name, "spec", "devices") or {}) do
    if device.type == "gpu" then
      local minor = device.minor or 0
      total[minor] = device.health == true and lists.of(device.resources) or {}
      free[minor] = lists.copy(total[minor])
    end
  end
  for _, entry in pairs(info.pods) do
    for _, gpu in ipairs(gpus_of(entry)) do
      local left = free[gpu.minor or 0]
      for name, n in pairs(left and lists.of(gpu.resources) or {}) do
        if left[name] then left[name] = math.max(left[name] - n, 0) end
      end
    end
  end
  info.gpus = { total = total, free = free }
  return info.gpus
end

-- ---------------------------------------------------------------- scores

local function points(used, total, strategy)
  if strategy.type == "MostAllocated" then return math.min(used, total) * MAX // total end
  return used <= total and (total - used) * MAX // total or 0
end

-- The score of amounts that have a total, of which some are free, when the request comes to what is used.
local function score_of(each, total, free, strategy)
  local sum, weights = 0, 0
  for _, resource in ipairs(strategy.resources) do
    local name = resource.name
    local all = total[name] or 0
    if all > 0 then
      local used = all - (free[name] or 0) + (each[name] or 0)
      sum, weights = sum + resource.weight * points(used, all, strategy), weights + resource.weight
    end
  end
  return weights > 0 and sum // weights or 0
end

local function sum_of(by_minor)
  local sum = {}
  for _, list in pairs(by_minor) do lists.accumulate(sum, list) end
  return sum
end

-- ---------------------------------------------------------------- allocation

local function has(free, each)
  for name, n in pairs(each) do
    if n > (free[name] or 0) then return false end
  end
  return true
end

-- Of memory and its ratio each follows from the other and the GPU.
local function complete(each, total)
  local out, memory = lists.copy(each), total[MEMORY] or 0
  if out[RATIO] and not out[MEMORY] then
    out[MEMORY] = out[RATIO] * memory // MAX
  elseif out[MEMORY] and not out[RATIO] and memory > 0 then
    out[RATIO] = math.floor(out[MEMORY] / memory * MAX)
  end
  return out
end

-- The GPUs of the node for the pod: a list of { minor, resources } by minor, or nil where they are too few. A
-- node without a Device has none to tell apart.
function M.allocate(info, cycle)
  local request = cycle.gpus
  if not request or not dig(cycle.state.devices, info.name) then return {} end
  local known = cycle.on[info.name].allocated
  if known ~= nil then return known or nil end
  local has_of, fitting = gpus(info, cycle.state), {}
  for minor, free in pairs(has_of.free) do
    if next(free) and has(free, request.each) then
      fitting[#fitting + 1] = { minor = minor,
        score = score_of(request.each, has_of.total[minor], free, cycle.args.deviceshare) }
    end
  end
  table.sort(fitting, function(a, b)
    if a.score ~= b.score then return a.score > b.score end
    return a.minor < b.minor
  end)
  local chosen = #fitting >= request.count and table.move(fitting, 1, request.count, 1, {}) or nil
  if chosen then
    table.sort(chosen, function(a, b) return a.minor < b.minor end)
    for i, one in ipairs(chosen) do
      chosen[i] = { minor = one.minor,
        resources = lists.texts(complete(request.each, has_of.total[one.minor])) }
    end
  end
  cycle.on[info.name].allocated = chosen or false
  return chosen
end

-- The text of the annotation, or nil for no GPU.
function M.text(devices)
  if not devices or #devices == 0 then return nil end
  local parts = {}
  for i, one in ipairs(devices) do
    parts[i] = ('{"minor":%d,"resources":%s}'):format(one.minor, kube.encode(kube.object(one.resources)))
  end
  return '{"gpu":[' .. table.concat(parts, ",") .. "]}"
end

-- ---------------------------------------------------------------- the plugin

function M.prefilter(_, cycle)
  local request, why = M.request(cycle.request)
  cycle.gpus = request
  return why
end

function M.filter(_, info, cycle)
  if M.allocate(info, cycle) then return nil end
  return { "Insufficient gpu devices" }
end

function M.silent(_, cycle) return not cycle.gpus end

function M.score(_, info, cycle)
  local node = gpus(info, cycle.state)
  return score_of(cycle.gpus.each, sum_of(node.total), sum_of(node.free), cycle.args.deviceshare)
end

M.normalize = scores.stretch

return M
