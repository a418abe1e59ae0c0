-- deviceshare.lua - DeviceShare: allocates GPUs, NPUs, RDMA cards and FPGAs of a node to pods, whole ones or
-- parts. Huawei's NPUs are devices of the type gpu. A Device object (one for each node, from the agent) lists
-- the devices, their amounts and where they are; an annotation of each pod lists its devices.
--
--   devices/request.lua     what a pod asks for
--   devices/inventory.lua   what the node has, without what is taken
--   devices/allocate.lua    which of it the pod gets; partitions.lua, scopes.lua, templates.lua: of GPUs
--   devices/hints.lua       which NUMA nodes suit it: on a node with a NUMA policy all come from the same
--
--   score = Σ weight · free part (or used part) / Σ weight, of a device and of a node

local allocate = require "scheduler.devices.allocate"
local fields = require "fields"
local hints = require "scheduler.devices.hints"
local inventory = require "scheduler.devices.inventory"
local kube = require "kubelua"
local lists = require "lib.lists"
local requests = require "scheduler.devices.request"
local reservation = require "scheduler.reservation"
local scores = require "scheduler.scores"
local templates = require "scheduler.devices.templates"

local dig = fields.dig

local M = { name = "DeviceShare" }

M.KIND = "scheduling.koordinator.sh/v1alpha1/Device"
M.ANNOTATION = inventory.ANNOTATION
M.templates = templates.read

local ISOLATION = "koordinator.sh/gpu-isolation-provider"

-- As scoringStrategy of DeviceShareArgs (LeastAllocated spreads pods over GPUs, MostAllocated fills them),
-- and two more of these args.
M.DEFAULTS = {
  type = "LeastAllocated",
  resources = { { name = requests.RATIO, weight = 1 }, { name = requests.MEMORY, weight = 1 },
    { name = requests.CARDS.rdma, weight = 1 }, { name = requests.CARDS.fpga, weight = 1 } },
  disableDeviceNUMATopologyAlignment = false,
  gpuShareUnsupportedModels = {}, -- list of { vendor, model }, whose GPUs are given only whole
}

-- ---------------------------------------------------------------- a pod on a node

-- Whether the pod requests devices on a node with a Device object. Always false without this plugin's
-- prefilter.
local function asks(info, cycle)
  return next(cycle.devices or {}) ~= nil and dig(cycle.state.devices, info.name) ~= nil
end

-- What allocate.devices needs to know. mask: of the NUMA nodes of the devices, or nil.
local function on(info, cycle, mask)
  return { node = info.node, known = inventory.of(info, cycle.state), requests = cycle.devices,
    joint = cycle.joint, strategy = cycle.args.deviceshare, mask = mask }
end

-- The devices for a Reservation that takes over these pods; it must get all of theirs. there: see `on`.
local function decide_for(owners, there)
  local theirs = inventory.of_pods(owners)
  local out, missing = allocate.devices({ theirs = theirs }, there)
  for type, by_minor in pairs(out and theirs or {}) do
    local got = {}
    for _, one in ipairs(out[type] or {}) do got[one.minor] = true end
    for minor in pairs(by_minor) do
      if not got[minor] then return nil, { ("Insufficient %s devices"):format(type) } end
    end
  end
  return out, missing
end

local function is_aligned(cycle) return not cycle.args.deviceshare.disableDeviceNUMATopologyAlignment end

local function decide(pod, info, cycle, there)
  local owners = reservation.owners(pod, info, cycle)
  if #owners > 0 then return decide_for(owners, there) end
  return allocate.devices({ room = reservation.nominate(pod, info, cycle) }, there)
end

-- The pod's devices on the node, by type; or nil and the reasons.
function M.allocate(pod, info, cycle)
  if not asks(info, cycle) then return {} end
  local mine = cycle.on[info.name]
  if not mine.devices then
    local mask = is_aligned(cycle) and mine.numa_nodes or nil
    mine.devices = { decide(pod, info, cycle, on(info, cycle, mask)) }
  end
  return mine.devices[1], mine.devices[2]
end

-- The text of the annotation, or nil for no devices.
function M.text(devices)
  local parts = {}
  for _, type in ipairs(requests.TYPES) do
    local list = {}
    for i, one in ipairs(devices and devices[type] or {}) do
      local id = one.id and one.id ~= "" and ',"id":' .. kube.encode(one.id) or ""
      local more = one.extension and ',"extension":' .. kube.encode(kube.object(one.extension)) or ""
      list[i] = ('{"minor":%d,"resources":%s%s%s}'):format(one.minor,
        kube.encode(kube.object(one.resources)), id, more)
    end
    if #list > 0 then parts[#parts + 1] = ('"%s":[%s]'):format(type, table.concat(list, ",")) end
  end
  return #parts > 0 and "{" .. table.concat(parts, ",") .. "}" or nil
end

-- ---------------------------------------------------------------- the plugin

function M.prefilter(pod, cycle)
  local asked, joint, why = requests.of(pod, cycle.request)
  cycle.devices, cycle.joint = asked or {}, joint
  local gpu = cycle.devices.gpu
  if gpu and gpu.by_template then
    gpu.templates = templates.matching(gpu.each, cycle.state.templates)
    if not next(gpu.templates) then why = templates.NONE end
  end
  return why
end

function M.agrees(_, cycle) return not next(cycle.devices) end

-- Why the node's GPUs are not for a pod that shares one; nil: they are.
local function no_sharing(pod, info, args)
  local provider, vendor, model = fields.label(pod, ISOLATION) or "", templates.model_of(info.node)
  if provider ~= "" and provider ~= fields.label(info.node, ISOLATION) then
    return "GPUIsolationProviderHAMICore not found on the node"
  end
  for _, whole in ipairs(args.gpuShareUnsupportedModels or {}) do
    if (whole.vendor or "") == vendor and (whole.model or "") == model then
      return ("model %q of vendor %q does not support GPU Share"):format(model, vendor)
    end
  end
  return nil
end

-- Upstream's filter takes devices by their numbers, and the scheduler takes them by score when the node was
-- chosen. So devices of types that must share PCIe switches must be found in either order: by number, a card
-- in use comes before a free one of its switch, and then another switch gets two cards. (The hints of a NUMA
-- policy have asked by number already.)
local function found_unscored(pod, info, cycle)
  local mine = cycle.on[info.name]
  local joint = cycle.joint and cycle.joint.same_pcie and (not mine.numa_nodes or mine.numa_late)
  if not joint or not asks(info, cycle) then return true end
  local there = on(info, cycle)
  there.strategy = nil
  return decide(pod, info, cycle, there)
end

function M.filter(pod, info, cycle)
  local gpu = cycle.devices.gpu
  local why = gpu and gpu.shared and no_sharing(pod, info, cycle.args.deviceshare)
  if why then return { why } end
  local found, missing = found_unscored(pod, info, cycle)
  if not found then return missing end
  return select(2, M.allocate(pod, info, cycle))
end

function M.hints(_, from, info, cycle)
  if not asks(info, cycle) or not is_aligned(cycle) then return nil end
  local there = on(info, cycle)
  there.strategy = nil -- as upstream: the hints ask whether there are devices, not which are best
  local theirs = from.owners and #from.owners > 0 and inventory.of_pods(from.owners) or nil
  return hints.of({ room = from.room, theirs = theirs }, there)
end

function M.fits_owners(_, owners, info, cycle)
  return not asks(info, cycle) or decide_for(owners, on(info, cycle)) ~= nil
end

-- A pod fits a room with devices if it can get its devices with that room.
function M.fits_room(_, room, info, cycle)
  if not asks(info, cycle) then return true end
  local there = on(info, cycle)
  for _, type in ipairs(requests.TYPES) do
    if there.known[type].rests[room.uid] then return allocate.devices({ room = room }, there) ~= nil end
  end
  return true
end

function M.silent(_, cycle) return not next(cycle.devices) end

local function sum_of(by_minor, minors)
  local sum = {}
  for _, minor in ipairs(minors) do lists.accumulate(sum, by_minor[minor]) end
  return sum
end

-- Of all devices that suit the pod and its NUMA nodes. Under BestEffort upstream scores before it aligns.
function M.score(pod, info, cycle)
  local mine, sum, known = cycle.on[info.name], 0, inventory.of(info, cycle.state)
  local mask = not mine.numa_late and mine.numa_nodes or nil
  local from = { room = reservation.nominate(pod, info, cycle) }
  for type, request in pairs(cycle.devices) do
    local pool = inventory.pool(known[type], type, request, from, mask)
    sum = sum + allocate.score(request.each, sum_of(known[type].total, pool.minors),
      sum_of(pool.free, pool.minors), cycle.args.deviceshare)
  end
  return sum
end

M.normalize = scores.stretch

return M
