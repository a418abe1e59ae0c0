-- devices.lua - the GPUs, NPUs and RDMA cards of a node: the sums over its healthy devices, which the agent
-- reports as a Device with the node's name, and labels with the model of the GPUs.

local kube = require "kubelua"
local fields = require "fields"
local remembered = require "remembered"

local dig = fields.dig

local M = {}

local GPU, CORE, SHARED = "koordinator.sh/gpu", "koordinator.sh/gpu-core", "koordinator.sh/gpu.shared"
local RDMA = "koordinator.sh/rdma"
local WHOLE = 100 -- a device is offered in hundredths

M.GPU_MEMORY = "koordinator.sh/gpu-memory"
M.NAMES = { GPU, CORE, "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp", M.GPU_MEMORY,
  "koordinator.sh/gpu-memory-ratio", SHARED, RDMA }

local VENDOR = "node.koordinator.sh/gpu-vendor"
M.LABELS = { VENDOR, "node.koordinator.sh/gpu-model", "node.koordinator.sh/gpu-driver-version" }

-- Resets all resources of RDMA cards, or all of the other devices.
local function withdrawn(of_rdma)
  local resets = {}
  for _, name in ipairs(M.NAMES) do
    if (name == RDMA) == of_rdma then resets[name] = true end
  end
  return { resets = resets }
end

local NO_RDMA, NO_OTHERS = withdrawn(true), withdrawn(false) -- constant

local function both(gpu, rdma)
  local out = { resources = {}, resets = {}, labels = gpu.labels }
  for _, one in ipairs { gpu, rdma } do
    for name, quantity in pairs(one.resources or {}) do out.resources[name] = quantity end
    for name in pairs(one.resets or {}) do out.resets[name] = true end
  end
  return out
end

local NO_DEVICES = both(NO_OTHERS, NO_RDMA) -- constant

local function healthy(device, kind)
  local out = {}
  for _, one in ipairs(dig(device, "spec", "devices") or {}) do
    if one.type == kind and one.health == true then out[#out + 1] = one end
  end
  return out
end

local function sum(list)
  local total = {}
  for _, one in ipairs(list) do
    for name, quantity in pairs(one.resources or {}) do
      total[name] = total[name] and total[name] + kube.qty(quantity) or kube.qty(quantity)
    end
  end
  return total
end

local function labels_of(device)
  local out
  for _, name in ipairs(M.LABELS) do
    local text = fields.label(device, name)
    if text ~= nil then
      out = out or {}
      out[name] = text
    end
  end
  return out
end

local function usable(input)
  local own = remembered.of_node(input.node)
  if own.usable == nil then own.usable = dig(input.node, "status", "allocatable") ~= nil end
  if own.usable then return true end
  return nil, "device resources need a node with allocatable resources"
end

-- input: node, device (the node's Device, or nil), sync_gpu_shared. Only GPUs of NVIDIA, and those without a
-- vendor, have the wrapper resource koordinator.sh/gpu. Returns { resources, labels } or { resets }; nil
-- and why.
function M.gpu(input)
  local ok, why = usable(input)
  if not ok then return nil, why end
  local list = healthy(input.device, "gpu")
  if #list == 0 then return NO_OTHERS end
  local resources = sum(list)
  local vendor = fields.label(input.device, VENDOR) or ""
  if vendor == "" or vendor == "nvidia" then resources[GPU] = resources[CORE] or kube.qty(0) end
  if input.sync_gpu_shared then resources[SHARED] = kube.qty(WHOLE * #list) end
  return { resources = resources, labels = labels_of(input.device) }
end

-- The same for RDMA cards; each is 100 of koordinator.sh/rdma.
local function rdma(input)
  local list = healthy(input.device, "rdma")
  if #list == 0 then return NO_RDMA end
  return { resources = { [RDMA] = kube.qty(WHOLE * #list) } }
end

-- Both.
function M.calculate(input)
  local gpu, why = M.gpu(input)
  if not gpu then return nil, why end
  return input.device and both(gpu, rdma(input)) or NO_DEVICES
end

return M
