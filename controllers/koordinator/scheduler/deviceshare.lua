-- deviceshare.lua - DeviceShare: allocates GPUs, NPUs, RDMA cards and FPGAs of a node to pods, whole ones or
-- parts. Huawei's NPUs are devices of the type gpu; a part of one must match a template of the node's model
-- (state.templates), and the annotation names the template. A Device object (one for each node, from the
-- agent) lists the devices and their amounts; an annotation of each pod lists its devices.
--
--   count      = gpu.shared, or gpu-memory-ratio / 100 for several whole GPUs, or 1; requests of rdma and
--                fpga are hundredths of a card
--   per device = request / count; nvidia.com/gpu: n means gpu-core and gpu-memory-ratio of 100 · n
--   devices    = the `count` devices with enough free, those with the best score first
--   score      = Σ weight · free part (or used part) / Σ weight, of a device and of a node
--
-- A Reservation gets devices like its pod would, and has the same annotation. The part of them that its pods
-- do not use is closed to other pods. A pod that is nominated to the Reservation takes the Reservation's
-- devices first, then those of the node; if the Reservation is Restricted, only the former.
--
-- info.devices is { [type] = { total, free, rests = { [uid of a room] } } }; each of these is { [minor] =
-- list of amounts }.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local reservation = require "scheduler.reservation"
local scores = require "scheduler.scores"

local dig = fields.dig

local M = { name = "DeviceShare" }

M.KIND = "scheduling.koordinator.sh/v1alpha1/Device"
M.ANNOTATION = "scheduling.koordinator.sh/device-allocated"

local PREFIX = "koordinator.sh/"
local GPU, SHARED, CORE = PREFIX .. "gpu", PREFIX .. "gpu.shared", PREFIX .. "gpu-core"
local MEMORY, RATIO = PREFIX .. "gpu-memory", PREFIX .. "gpu-memory-ratio"
local WHOLE = { "nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu" }
local NPU_CORE, NPU_CPU, NPU_DVPP = "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp"
local NAMES = { WHOLE[1], WHOLE[2], WHOLE[3], GPU, SHARED, CORE, NPU_CORE, NPU_CPU, NPU_DVPP, MEMORY, RATIO }
local VENDOR, MODEL = "node.koordinator.sh/gpu-vendor", "node.koordinator.sh/gpu-model"
local NO_TEMPLATE = "no matched GPU shared resource template"
local CARDS = { fpga = PREFIX .. "fpga", rdma = PREFIX .. "rdma" } -- types with one resource, in hundredths
local TYPES = { "fpga", "gpu", "rdma" }
local MAX = 100

-- As DeviceShareArgs.scoringStrategy: LeastAllocated spreads pods over GPUs, MostAllocated fills them.
M.DEFAULTS = {
  type = "LeastAllocated",
  resources = { { name = RATIO, weight = 1 }, { name = MEMORY, weight = 1 },
    { name = CARDS.rdma, weight = 1 }, { name = CARDS.fpga, weight = 1 } },
}

-- ---------------------------------------------------------------- requests

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

-- A pod's request of GPUs and NPUs: { count, each = list of amounts, by_template = whether each must match a
-- template }; nil: there is none; nil and a reason: the request is invalid.
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
  local part = not each[RATIO] and each[MEMORY] or each[RATIO] and each[RATIO] < MAX
  return { count = count, each = each, by_template = part and each[NPU_CORE] ~= nil }
end

local function card_request(requests, name)
  local n = requests[name] or 0
  if n <= 0 then return nil end
  if not whole(n) then return nil, ("invalid resource unit %s: %d"):format(name, n) end
  local count = n > MAX and n // MAX or 1
  return { count = count, each = { [name] = n // count } }
end

-- A pod's requests of devices, { [type] = { count, each = list of amounts } }; nil and the reason when they
-- are invalid.
function M.requests(requests)
  local gpu, why = gpu_request(requests)
  local out = { gpu = gpu }
  for type, name in pairs(CARDS) do
    local refusal
    out[type], refusal = card_request(requests, name)
    why = why or refusal
  end
  if why then return nil, why end
  return out
end

-- ---------------------------------------------------------------- the devices of a node

-- The devices in a pod's annotation: { [type] = list of { minor, resources } }.
local function read_devices(pod)
  local text = fields.annotation(pod, M.ANNOTATION)
  return text and fields.json(text) or {}
end

-- Subtracts amounts from those left of a device; nil: the device does not exist.
local function take(left, amounts)
  for name, n in pairs(left and amounts or {}) do
    if left[name] then left[name] = math.max(left[name] - n, 0) end
  end
end

-- Subtracts a list of devices from amounts by minor.
local function subtract(by_minor, list)
  for _, one in ipairs(list or {}) do
    local left = by_minor[one.minor or 0]
    take(left, left and lists.of(one.resources))
  end
end

-- Closes the devices of a room that its pods do not use. own: the room's devices; its_pods: those of each
-- pod.
local function hold_rest(known, uid, own, its_pods)
  for _, type in ipairs(TYPES) do
    local rest = {}
    for _, one in ipairs(dig(own, type) or {}) do rest[one.minor or 0] = lists.of(one.resources) end
    for _, has in ipairs(its_pods) do subtract(rest, has[type]) end
    if next(rest) then known[type].rests[uid] = rest end
    for minor, amounts in pairs(rest) do take(known[type].free[minor], amounts) end
  end
end

local function known_of(info, state)
  if info.devices then return info.devices end
  local known = {}
  for _, type in ipairs(TYPES) do known[type] = { total = {}, free = {}, rests = {} } end
  for _, device in ipairs(dig(state.devices, info.name, "spec", "devices") or {}) do
    local of_type = known[device.type]
    if of_type then
      local minor = device.minor or 0
      of_type.total[minor] = device.health == true and lists.of(device.resources) or {}
      of_type.free[minor] = lists.copy(of_type.total[minor])
    end
  end
  local by_room = {}
  for _, entry in pairs(info.pods) do
    local has = entry.devices or read_devices(entry.pod)
    for _, type in ipairs(TYPES) do subtract(known[type].free, has[type]) end
    if entry.uid then
      by_room[entry.uid] = by_room[entry.uid] or {}
      table.insert(by_room[entry.uid], has)
    end
  end
  for _, room in ipairs(info.rooms) do
    if not reservation.is_spent(room) then
      hold_rest(known, room.uid, read_devices(reservation.says(room.object)), by_room[room.uid] or {})
    end
  end
  info.devices = known
  return known
end

-- The free amounts of a type for a pod that uses the room (or nil), and the minors that it takes first, or
-- nil. theirs: by minor, the amounts of the pods that a Reservation takes over.
local function free_for(known, room, theirs)
  local rest = theirs or room and known.rests[room.uid]
  if not rest then return known.free, nil end
  local out = {}
  for minor, free in pairs(known.free) do
    out[minor] = rest[minor] and lists.add(free, lists.mask(rest[minor], free)) or free
  end
  if room and reservation.is_restricted(room) then
    for minor in pairs(out) do
      out[minor] = rest[minor] and lists.mask(lists.cap(out[minor], rest[minor]), rest[minor]) or {}
    end
  end
  return out, rest
end

-- ---------------------------------------------------------------- scores

-- The score of a device or a node with these total and free amounts after the request is added.
local function score_of(each, total, free, strategy)
  local sum, weights = 0, 0
  for _, resource in ipairs(strategy.resources) do
    local name = resource.name
    local all = total[name] or 0
    if all > 0 then
      local used = all - (free[name] or 0) + (each[name] or 0)
      sum, weights = sum + resource.weight * scores.points(strategy, used, all), weights + resource.weight
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

-- Adds the memory to a memory ratio, or the ratio to the memory, from the GPU's total.
local function complete(each, total)
  local out, memory = lists.copy(each), total[MEMORY] or 0
  if out[RATIO] and not out[MEMORY] then
    out[MEMORY] = out[RATIO] * memory // MAX
  elseif out[MEMORY] and not out[RATIO] and memory > 0 then
    out[RATIO] = math.floor(out[MEMORY] / memory * MAX)
  end
  return out
end

-- ---------------------------------------------------------------- templates

-- The templates in data.yaml, { [model] = { [name] = list of amounts } }, with models as "VENDOR-MODEL"; nil
-- and the reason when it is invalid.
function M.templates(text)
  local ok, docs = pcall(kube.yaml, text or "")
  if not ok then return nil, tostring(docs) end
  local out = {}
  local good, why = pcall(function()
    for model, by_name in pairs(fields.copy(docs[1]) or {}) do
      out[model] = {}
      for name, quantities in pairs(by_name) do out[model][name] = lists.of(quantities) end
    end
  end)
  if not good then return nil, tostring(why) end
  return out
end

-- The names of the templates with exactly these amounts, by model.
local function templates_for(each, templates)
  local out = {}
  for model, by_name in pairs(templates or {}) do
    for name, amounts in pairs(by_name) do
      if lists.same(amounts, each) then
        out[model] = out[model] or {}
        table.insert(out[model], name)
      end
    end
  end
  return out
end

-- The name of the template for a part of an NPU on the node; nil: the request needs none, or several match;
-- false: none matches.
local function template_on(info, request)
  if not request.by_template then return nil end
  local model = ("%s-%s"):format(fields.label(info.node, VENDOR) or "", fields.label(info.node, MODEL) or "")
  local names = request.templates[model]
  if not names then return false end
  return #names == 1 and names[1] or nil
end

-- The devices of a type for the pod: a list of { minor, resources }, sorted by minor; nil: there are too few.
local function choose(known, request, strategy, room, theirs)
  local fitting, all, first = {}, free_for(known, room, theirs)
  for minor, free in pairs(all) do
    if next(free) and has(free, request.each) then
      fitting[#fitting + 1] = { minor = minor, first = first and first[minor] ~= nil or false,
        score = score_of(request.each, known.total[minor], free, strategy) }
    end
  end
  if #fitting < request.count then return nil end
  table.sort(fitting, function(a, b)
    if a.first ~= b.first then return a.first end
    if a.score ~= b.score then return a.score > b.score end
    return a.minor < b.minor
  end)
  local chosen = table.move(fitting, 1, request.count, 1, {})
  table.sort(chosen, function(a, b) return a.minor < b.minor end)
  for i, one in ipairs(chosen) do
    chosen[i] = { minor = one.minor,
      resources = lists.texts(complete(request.each, known.total[one.minor])) }
  end
  return chosen
end

-- The devices of several pods, { [type] = { [minor] = list of amounts } }.
local function devices_of(owners)
  local out = {}
  for _, entry in ipairs(owners) do
    local theirs = entry.devices or read_devices(entry.pod)
    for _, type in ipairs(TYPES) do
      for _, one in ipairs(dig(theirs, type) or {}) do
        out[type] = out[type] or {}
        local minor = one.minor or 0
        out[type][minor] = lists.add(out[type][minor] or {}, lists.of(one.resources))
      end
    end
  end
  return out
end

local function decide(info, cycle, room, theirs)
  local out, missing, known = {}, {}, known_of(info, cycle.state)
  for _, type in ipairs(TYPES) do
    local request = cycle.devices[type]
    if request then
      local template = template_on(info, request)
      if template == false then return nil, { NO_TEMPLATE } end
      out[type] = choose(known[type], request, cycle.args.deviceshare, room, theirs and theirs[type])
      for _, one in ipairs(out[type] or {}) do one.template = template end
      if not out[type] then missing[#missing + 1] = ("Insufficient %s devices"):format(type) end
    end
  end
  if #missing > 0 then return nil, missing end
  return out
end

-- The same for a Reservation that takes over these pods; it must get all of their devices.
local function decide_for(owners, info, cycle)
  local theirs = devices_of(owners)
  local out, missing = decide(info, cycle, nil, theirs)
  for type, by_minor in pairs(out and theirs or {}) do
    local got = {}
    for _, one in ipairs(out[type] or {}) do got[one.minor] = true end
    for minor in pairs(by_minor) do
      if not got[minor] then return nil, { ("Insufficient %s devices"):format(type) } end
    end
  end
  return out, missing
end

-- Whether the pod requests devices on a node with a Device object. Always false without this plugin's
-- prefilter.
local function asks(info, cycle)
  return next(cycle.devices or {}) ~= nil and dig(cycle.state.devices, info.name) ~= nil
end

-- The pod's devices on the node, by type; or nil and the reasons.
function M.allocate(pod, info, cycle)
  if not asks(info, cycle) then return {} end
  local mine = cycle.on[info.name]
  if not mine.devices then
    local owners = reservation.owners(pod, info, cycle)
    mine.devices = #owners > 0 and { decide_for(owners, info, cycle) }
      or { decide(info, cycle, reservation.nominate(pod, info, cycle)) }
  end
  return mine.devices[1], mine.devices[2]
end

function M.fits_owners(_, owners, info, cycle)
  return not asks(info, cycle) or decide_for(owners, info, cycle) ~= nil
end

-- A pod fits a room with devices if it can get its devices with that room.
function M.fits_room(_, room, info, cycle)
  if not asks(info, cycle) then return true end
  for _, of_type in pairs(known_of(info, cycle.state)) do
    if of_type.rests[room.uid] then return decide(info, cycle, room) ~= nil end
  end
  return true
end

-- The text of the annotation, or nil for no devices.
function M.text(devices)
  local parts = {}
  for _, type in ipairs(TYPES) do
    local list = {}
    for i, one in ipairs(devices and devices[type] or {}) do
      local more = one.template and (',"extension":{"gpuSharedResourceTemplate":%s}'):format(
        kube.encode(one.template)) or ""
      list[i] = ('{"minor":%d,"resources":%s%s}'):format(one.minor, kube.encode(kube.object(one.resources)),
        more)
    end
    if #list > 0 then parts[#parts + 1] = ('"%s":[%s]'):format(type, table.concat(list, ",")) end
  end
  return #parts > 0 and "{" .. table.concat(parts, ",") .. "}" or nil
end

-- ---------------------------------------------------------------- the plugin

function M.prefilter(_, cycle)
  local requests, why = M.requests(cycle.request)
  cycle.devices = requests or {}
  local gpu = cycle.devices.gpu
  if gpu and gpu.by_template then
    gpu.templates = templates_for(gpu.each, cycle.state.templates)
    if not next(gpu.templates) then why = NO_TEMPLATE end
  end
  return why
end

function M.agrees(_, cycle) return not next(cycle.devices) end

function M.filter(pod, info, cycle)
  local _, missing = M.allocate(pod, info, cycle)
  return missing
end

function M.silent(_, cycle) return not next(cycle.devices) end

function M.score(pod, info, cycle)
  local sum, known, room = 0, known_of(info, cycle.state), reservation.nominate(pod, info, cycle)
  for type, request in pairs(cycle.devices) do
    sum = sum + score_of(request.each, sum_of(known[type].total), sum_of((free_for(known[type], room))),
      cycle.args.deviceshare)
  end
  return sum
end

M.normalize = scores.stretch

return M
