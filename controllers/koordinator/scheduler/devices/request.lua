-- request.lua - the devices that a pod asks for, from its resource requests and three annotations:
--
--   device-allocate-hint    by type: { selector, vfSelector, allocateStrategy, requiredTopologyScope,
--                           exclusivePolicy }
--   device-joint-allocate   { deviceTypes, requiredScope }: types whose devices belong together
--   gpu-partition-spec      { allocatePolicy, ringBusBandwidth }: GPUs that are connected with each other
--
-- A request of a type:
--   { count, each = list of amounts of one device,
--     for_all      one of each device of the node instead of `count`
--     selector     of the devices' labels, or nil; vfs: the one of their virtual functions
--     GPUs alone:
--     shared       whether a part of a GPU is asked for
--     by_template  whether the part must match a template (templates.lua)
--     partition    { restricted, bandwidth }, or nil
--     scope        what all GPUs must have in common, as a level of SCOPES, or nil }

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"

local M = {}

local SCHEDULING, PREFIX = "scheduling.koordinator.sh/", "koordinator.sh/"
local GPU, SHARED, CORE = PREFIX .. "gpu", PREFIX .. "gpu.shared", PREFIX .. "gpu-core"
local MEMORY, RATIO = PREFIX .. "gpu-memory", PREFIX .. "gpu-memory-ratio"
local WHOLE = { "nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu" }
local NPU_CORE, NPU_CPU, NPU_DVPP = "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp"
local NAMES = { WHOLE[1], WHOLE[2], WHOLE[3], GPU, SHARED, CORE, NPU_CORE, NPU_CPU, NPU_DVPP, MEMORY, RATIO }
local MAX = 100

M.MEMORY, M.RATIO = MEMORY, RATIO
M.CARDS = { fpga = PREFIX .. "fpga", rdma = PREFIX .. "rdma" } -- types with one resource, in hundredths
M.TYPES = { "fpga", "gpu", "rdma" }
M.SCOPES = { Node = 1, NUMANode = 2, PCIe = 3, Device = 4 }

-- ---------------------------------------------------------------- amounts

-- The valid combinations of names in a request, with and without gpu.shared.
local VALID = {}
for _, name in ipairs { WHOLE[1], WHOLE[2], WHOLE[3], GPU, MEMORY, RATIO } do VALID[name] = true end
for _, memory in ipairs { MEMORY, RATIO } do
  VALID[CORE .. " " .. memory] = true
  for _, shared in ipairs { SHARED, SHARED .. " " .. CORE } do VALID[shared .. " " .. memory] = true end
end
VALID[NPU_CORE .. " " .. RATIO] = true
local NPU_PARTS = {
  [table.concat({ SHARED, NPU_CORE, NPU_CPU, MEMORY }, " ")] = true,
  [table.concat({ SHARED, NPU_CORE, NPU_CPU, NPU_DVPP, MEMORY }, " ")] = true,
}

local function whole(n) return n <= MAX or n % MAX == 0 end

local function valid(asked, names)
  local together = table.concat(names, " ")
  if NPU_PARTS[together] then return asked[SHARED] == 1 and (asked[NPU_DVPP] or 0) <= MAX end
  if not VALID[together] then return false end
  for _, name in ipairs { GPU, CORE, RATIO } do
    local n, shared = asked[name], asked[SHARED]
    if n and shared and (n % shared ~= 0 or n // shared > MAX) then return false end
    if n and not shared and not whole(n) then return false end
  end
  return true
end

-- A pod's request of GPUs and NPUs; nil: there is none; nil and a reason: it is invalid.
local function gpu_request(requests)
  local asked, names = {}, {}
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
  for _, name in ipairs { CORE, NPU_CORE, NPU_CPU, NPU_DVPP, RATIO, MEMORY } do
    each[name] = asked[name] and asked[name] // count
  end
  local shared = not each[RATIO] and each[MEMORY] ~= nil or each[RATIO] ~= nil and each[RATIO] < MAX
  return { count = count, each = each, shared = shared, by_template = shared and each[NPU_CORE] ~= nil }
end

-- The same of cards of one type, of which `name` counts hundredths.
local function card_request(requests, name)
  local n = requests[name] or 0
  if n <= 0 then return nil end
  if not whole(n) then return nil, ("invalid resource unit %s: %d"):format(name, n) end
  local count = n > MAX and n // MAX or 1
  return { count = count, each = { [name] = n // count }, n = n, name = name }
end

local function amounts(requests)
  local gpu, why = gpu_request(requests)
  local out = { gpu = gpu }
  for type, name in pairs(M.CARDS) do
    local refusal
    out[type], refusal = card_request(requests, name)
    why = why or refusal
  end
  if why then return nil, why end
  return out
end

-- ---------------------------------------------------------------- annotations

local HINT = { selector = "object", vfSelector = "object", allocateStrategy = "string",
  requiredTopologyScope = "string", exclusivePolicy = "string" }
local JOINT = { deviceTypes = fields.list_of "string", requiredScope = "string" }
local PARTITION = { allocatePolicy = "string", ringBusBandwidth = "integer or string" }

-- The content of an annotation, checked; nil: it is absent; nil and the reason: it is invalid.
local function read(pod, name, what, check)
  local text = fields.annotation(pod, SCHEDULING .. name)
  if text == nil then return nil end
  local said, why = fields.json(text)
  if said then said, why = check(said) end
  if not said then return nil, ("invalid %s annotation, err: %s"):format(what, why) end
  return said
end

local function typed(schema)
  return function(said) return fields.typed(said, schema) end
end

-- The hint's selector `name`, compiled; nil and the reason when it is invalid.
local function selector_of(hint, name, type)
  if hint[name] == nil then return nil end
  local ok, selector = pcall(kube.selector, hint[name])
  if ok then return selector end
  local what = name == "selector" and "Selector" or "VFSelector"
  return nil, ("invalid %s of DeviceHint, deviceType: %s, err: %s"):format(what, type, tostring(selector))
end

-- Several whole cards are no matter of hints.
local function add_strategy(request, hint)
  if not request.n or request.n > MAX then return end
  if hint.allocateStrategy == "ApplyForAll" then
    request.for_all = true
  elseif hint.allocateStrategy == "RequestsAsCount" then
    local alone = hint.exclusivePolicy == "DeviceLevel"
    request.count, request.each = request.n, { [request.name] = alone and MAX or 1 }
  end
end

local function add_hint(request, hint, type)
  local why, no_vfs
  request.selector, why = selector_of(hint, "selector", type)
  request.vfs, no_vfs = selector_of(hint, "vfSelector", type)
  add_strategy(request, hint)
  local scope = hint.requiredTopologyScope or ""
  if type == "gpu" and scope ~= "" then request.scope = M.SCOPES[scope] or 0 end
  return why or no_vfs
end

local function add_partition(gpu, pod)
  if not gpu then return nil end
  local said, why = read(pod, "gpu-partition-spec", "GPUPartitionSpec", typed(PARTITION))
  if said then
    gpu.partition = { restricted = said.allocatePolicy == "Restricted",
      bandwidth = said.ringBusBandwidth and lists.amount("bandwidth", said.ringBusBandwidth) }
  end
  return why
end

-- The requested types whose devices belong together, the one that is allocated first in front: { types,
-- same_pcie }; nil: there is no such wish, or it is invalid, for the returned reason.
local function joint_of(pod, requests)
  local said, why = read(pod, "device-joint-allocate", "DeviceJointAllocate", typed(JOINT))
  if not said then return nil, why end
  local out = { types = {}, same_pcie = said.requiredScope == "SamePCIe" }
  for _, type in ipairs(said.deviceTypes or {}) do
    if requests[type] and not requests[type].for_all then out.types[#out.types + 1] = type end
  end
  return #out.types > 0 and out or nil
end

-- ---------------------------------------------------------------- both

-- The pod's requests by type, and the types that belong together, or nil; nil, nil and the reason when an
-- amount or an annotation is invalid.
function M.of(pod, requests)
  local out, why = amounts(requests)
  if not out or next(out) == nil then return out, nil, why end
  local hints, invalid = read(pod, "device-allocate-hint", "DeviceAllocateHint",
    fields.map_of(HINT))
  why = invalid
  for _, type in ipairs(M.TYPES) do
    local hint = hints and hints[type]
    if hint and out[type] then why = why or add_hint(out[type], hint, type) end
  end
  local joint, not_joint = joint_of(pod, out)
  why = why or not_joint or add_partition(out.gpu, pod)
  if why then return nil, nil, why end
  return out, joint
end

return M
