-- prepare.lua - turns a plan (plan.lua) into the desired resources, annotations and labels of the node, and
-- decides whether a difference needs a write.
--   desired = { resources = { name = integer or false }, annotations = { name = text or false },
--     labels = { name = text } }
-- false: remove it; absent: leave it as it is.

local kube = require "kubelua"
local fields = require "fields"
local amounts = require "amounts"
local batchresource = require "batchresource"
local cpunormalization = require "cpunormalization"
local devices = require "devices"
local midresource = require "midresource"
local remembered = require "remembered"
local resourceamplification = require "resourceamplification"

local dig = fields.dig

local M = {}

local NOTHING = {} -- constant

-- The node's batch resources before third parties (Hadoop YARN) took their part, and the part that they took.
M.ORIGIN = "node.koordinator.sh/originExtendedAllocatable"
M.THIRD_PARTIES = "node.koordinator.sh/thirdPartyAllocations"

-- An amount in thousandths; batch cpu of a faster node is multiplied by its normalization ratio.
function M.normalized(name, quantity, ratio)
  local milli = kube.to_milli(quantity)
  if name == batchresource.CPU and ratio > 1 then milli = amounts.scale_cpu(milli, ratio) end
  return milli
end

function M.ratio(plan)
  local text = plan.annotations and plan.annotations[cpunormalization.ANNOTATION]
  return text and text ~= cpunormalization.OFF and fields.float(text) or 1
end

local function amount(plan, name, ratio)
  local quantity = plan.resources and plan.resources[name]
  if quantity == nil or plan.resets and plan.resets[name] then return false end
  if math.type(quantity) == "integer" and (ratio <= 1 or name ~= batchresource.CPU) then return quantity end
  -- Extended resources are whole numbers; a fraction is rounded up.
  return amounts.bytes(M.normalized(name, quantity, ratio))
end

local BINARY, DECIMAL = { "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" }, { "k", "M", "G", "T", "P", "E" }

-- An amount as Kubernetes prints it, so that the text read back equals the text written. Most numbers are no
-- multiples of a larger unit, and are their own digits.
function M.text(name, n)
  local in_memory = name == batchresource.MEMORY or name == midresource.MEMORY or name == devices.GPU_MEMORY
  local times, units, unit = 1000, DECIMAL, 0
  if in_memory and n % 1024 == 0 then times, units = 1024, BINARY end
  while n ~= 0 and n % times == 0 do n, unit = n // times, unit + 1 end
  return n .. (units[unit] or "")
end

-- The parts of the annotation around the two amounts.
local HEAD, MIDDLE, TAIL = '{"resources":{"' .. batchresource.CPU .. '":"',
  '","' .. batchresource.MEMORY .. '":"', '"}}'

-- Whether a text consists of these parts and amounts, so that it has no entries of others.
local function is_ours(text)
  if text:sub(1, #HEAD) ~= HEAD or text:find("\\", 1, true) then return false end
  local at = text:find('"', #HEAD + 1, true) or 0
  if text:sub(at, at + #MIDDLE - 1) ~= MIDDLE then return false end
  local last = text:find('"', at + #MIDDLE, true)
  return last ~= nil and text:sub(last) == TAIL
end

-- The text of the annotation. Its entries with names of others are kept.
local function origin_text(node, resources)
  local own, old, cpu, memory = remembered.of_node(node), remembered.annotations(node)[M.ORIGIN],
    M.text(batchresource.CPU, resources[batchresource.CPU] or 0),
    M.text(batchresource.MEMORY, resources[batchresource.MEMORY] or 0)
  if own.only_ours == nil then own.only_ours = old == nil or is_ours(old) end
  local ours = HEAD .. cpu .. MIDDLE .. memory .. TAIL
  if own.only_ours or old == ours then return ours end
  local kept, names, parts = dig(fields.json(old), "resources"), {}, {}
  local by_name = type(kept) == "table" and kept or {}
  by_name[batchresource.CPU], by_name[batchresource.MEMORY] = cpu, memory
  for name in pairs(by_name) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = ('"%s":"%s"'):format(name, tostring(by_name[name])) end
  return '{"resources":{' .. table.concat(parts, ",") .. "}}"
end

-- The batch resources that third parties took, of the text of their annotation; nil: it cannot be parsed.
local function taken(text)
  local list = dig(fields.json(text), "allocations")
  if type(list) ~= "table" then return nil end
  local sum = {}
  for _, allocation in ipairs(list) do
    if allocation.priority == "koord-batch" then
      for name, quantity in pairs(allocation.resources or {}) do
        sum[name] = (sum[name] or 0) + kube.qty(quantity):value()
      end
    end
  end
  return sum
end

-- Subtracts from batch resources what third parties took. Nothing, if their annotation is invalid.
local function leave_to_others(node, resources)
  local text = remembered.annotations(node)[M.THIRD_PARTIES]
  if text == nil then return end
  local ok, others = pcall(taken, text)
  for _, name in ipairs(batchresource.NAMES) do
    local theirs = ok and others and others[name]
    if theirs then resources[name] = math.max(resources[name] - theirs, 0) end
  end
end

local DEVICE_PATHS = {}
for _, list in ipairs { "capacity", "allocatable" } do
  for _, name in ipairs(devices.NAMES) do
    DEVICE_PATHS[#DEVICE_PATHS + 1] = ('status.%s["%s"]'):format(list, name)
  end
end

local function has_devices(node)
  local own = remembered.of_node(node)
  if own.has_devices == nil then
    own.has_devices = next { kube.pick(node, table.unpack(DEVICE_PATHS)) } ~= nil
  end
  return own.has_devices
end

local LENT = { midresource.CPU, midresource.MEMORY, batchresource.CPU, batchresource.MEMORY }

function M.prepare(node, plan)
  local given, resets, ratio = plan.resources or NOTHING, plan.resets or NOTHING, M.ratio(plan)
  local resources = {}
  for i = 1, #LENT do resources[LENT[i]] = amount(plan, LENT[i], ratio) end
  -- A device resource that the plan does not mention stays, and a Device may have resources of any name.
  for i = 1, #devices.NAMES do
    local name = devices.NAMES[i]
    if given[name] ~= nil then resources[name] = amount(plan, name, ratio) end
  end
  if next(resets) ~= nil and has_devices(node) then
    for name in next, resets do resources[name] = false end
  end

  local annotations = plan.annotations or {}
  local desired = { resources = resources, labels = plan.labels or {}, annotations = {
    [cpunormalization.ANNOTATION] = annotations[cpunormalization.ANNOTATION],
    [resourceamplification.ANNOTATION] = annotations[resourceamplification.ANNOTATION] or false,
    [M.ORIGIN] = origin_text(node, resources),
  } }
  if resources[batchresource.CPU] and resources[batchresource.MEMORY] then
    leave_to_others(node, resources)
  end
  return desired
end

-- ---------------------------------------------------------------- whether a write is needed

-- Koordinator's rule: two quantities differ if they are more than `threshold` of the old one apart, or if
-- only one of them exists.
function M.differs(old, new, threshold)
  if old == nil or new == nil then return (old == nil) ~= (new == nil) end
  local before, after = kube.to_milli(old), kube.to_milli(new)
  return math.abs(after - before) > before * threshold
end

-- Whether the status needs a write: this process has not written it yet, the last write is too long ago, or a
-- resource differs. `old` is an allocatable list; in `new`, false stands for a resource that goes, and an
-- absent one stays. `last` and `now` in seconds.
function M.need_sync_status(strategy, old, new, last, now)
  if last == nil or now - last > strategy.updateTimeThresholdSeconds then return true end
  for name, n in next, new do
    if M.differs(old[name], n or nil, strategy.resourceDiffThreshold) then return true end
  end
  return false
end

-- Whether the labels or the ratios need a write. Without a ratio for the processors, theirs stays; one that
-- cannot be read always asks for a write, as upstream, which brings the other annotations up to date.
function M.need_sync_meta(node, desired)
  local labels, annotations = remembered.labels(node), remembered.annotations(node)
  for name, text in next, desired.labels do
    if labels[name] ~= text then return true end
  end
  local ratio = annotations[cpunormalization.ANNOTATION]
  return cpunormalization.differs(ratio, desired.annotations[cpunormalization.ANNOTATION] or ratio)
    or resourceamplification.differs(annotations[resourceamplification.ANNOTATION],
      desired.annotations[resourceamplification.ANNOTATION])
end

-- ---------------------------------------------------------------- the writes

-- What changes in one list of amounts. A quantity that already has the value keeps its text.
local function list_patch(old, resources)
  local out
  for name, n in pairs(resources) do
    local quantity = old[name]
    local same = quantity == nil and n == false
      or quantity ~= nil and n and kube.to_milli(quantity) == 1000 * n
    if not same then
      out = out or {}
      out[name] = n and M.text(name, n) or kube.null
    end
  end
  return out
end

-- The merge patch of the status by which the node gets the desired resources; nil: it has them.
function M.status_patch(node, desired)
  local capacity = list_patch(node.status.capacity, desired.resources)
  local allocatable = list_patch(node.status.allocatable, desired.resources)
  return (capacity or allocatable) and { capacity = capacity, allocatable = allocatable } or nil
end

local function texts_patch(old, texts)
  local out
  for name, text in pairs(texts) do
    if (old and old[name]) ~= (text or nil) then
      out = out or {}
      out[name] = text or kube.null
    end
  end
  return out
end

-- The same of the annotations and labels.
function M.meta_patch(node, desired)
  local labels = texts_patch(node.metadata.labels, desired.labels)
  local annotations = texts_patch(node.metadata.annotations, desired.annotations)
  return (labels or annotations) and { metadata = { labels = labels, annotations = annotations } } or nil
end

return M
