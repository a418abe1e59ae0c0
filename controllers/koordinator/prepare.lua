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
local resourceamplification = require "resourceamplification"

local dig = fields.dig

local M = {}

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
  local text = dig(plan.annotations, cpunormalization.ANNOTATION)
  return text and fields.float(text) or 1
end

local function amount(plan, name, ratio)
  local quantity = plan.resources and plan.resources[name]
  if quantity == nil or plan.resets and plan.resets[name] then return false end
  -- Extended resources are whole numbers; a fraction is rounded up.
  return amounts.bytes(M.normalized(name, quantity, ratio))
end

-- An amount as Kubernetes prints it, so that the text read back equals the text written. Most numbers are no
-- multiples of a larger unit, and are their own digits.
function M.text(name, n)
  local in_memory = name == batchresource.MEMORY or name == midresource.MEMORY or name == devices.GPU_MEMORY
  if in_memory and n % 1024 == 0 then
    local kibi = n // 1024
    return kibi % 1024 == 0 and kube.qty(kibi .. "Ki"):canonical() or kibi .. "Ki"
  end
  return n % 1000 == 0 and kube.qty(n):canonical() or ("%d"):format(n)
end

-- The text of ORIGIN. Its entries with names of others are kept. One with ours alone has this form.
local OURS = '^{"resources":{"kubernetes.io/batch%-cpu":"[^"\\]*","kubernetes.io/batch%-memory":"[^"\\]*"}}$'

local function origin_text(node, resources)
  local old = fields.annotation(node, M.ORIGIN)
  local kept = old and not old:find(OURS) and dig(fields.json(old), "resources")
  local by_name, names, parts = type(kept) == "table" and kept or {}, {}, {}
  for _, name in ipairs(batchresource.NAMES) do by_name[name] = M.text(name, resources[name] or 0) end
  for name in pairs(by_name) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = ('"%s":"%s"'):format(name, tostring(by_name[name])) end
  return '{"resources":{' .. table.concat(parts, ",") .. "}}"
end

-- The batch resources that third parties took; nil: the annotation is absent or cannot be parsed.
local function taken(node)
  local text = fields.annotation(node, M.THIRD_PARTIES)
  local list = text and dig(fields.json(text), "allocations")
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

function M.prepare(node, plan)
  local desired, ratio = { resources = {}, annotations = {}, labels = plan.labels or {} }, M.ratio(plan)
  for _, module in ipairs { midresource, batchresource } do
    for _, name in ipairs(module.NAMES) do desired.resources[name] = amount(plan, name, ratio) end
  end
  -- A device resource that the plan does not mention stays.
  for _, name in ipairs(devices.NAMES) do
    local said = plan.resources and plan.resources[name] ~= nil or plan.resets and plan.resets[name]
    if said then desired.resources[name] = amount(plan, name, ratio) end
  end

  local annotations = plan.annotations or {}
  desired.annotations[cpunormalization.ANNOTATION] = annotations[cpunormalization.ANNOTATION]
  desired.annotations[resourceamplification.ANNOTATION] = annotations[resourceamplification.ANNOTATION]
    or false
  desired.annotations[M.ORIGIN] = origin_text(node, desired.resources)

  if desired.resources[batchresource.CPU] and desired.resources[batchresource.MEMORY] then
    local ok, others = pcall(taken, node)
    for _, name in ipairs(batchresource.NAMES) do
      local theirs = ok and others and others[name]
      if theirs then desired.resources[name] = math.max(desired.resources[name] - theirs, 0) end
    end
  end
  return desired
end

-- Writes the desired resources into a draft or a plain table. A quantity that already has the value keeps its
-- text.
function M.write_resources(node, desired)
  for _, list in ipairs { "capacity", "allocatable" } do
    for name, n in pairs(desired.resources) do
      local old = node.status[list][name]
      if n == false then
        if old ~= nil then node.status[list][name] = nil end
      elseif old == nil or kube.to_milli(old) ~= 1000 * n then
        node.status[list][name] = M.text(name, n)
      end
    end
  end
end

-- Writes the desired annotations and labels.
function M.write_annotations(node, desired)
  for name, text in pairs(desired.labels or {}) do
    if fields.label(node, name) ~= text then node.metadata.labels[name] = text end
  end
  for name, text in pairs(desired.annotations) do
    if fields.annotation(node, name) ~= (text or nil) then node.metadata.annotations[name] = text or nil end
  end
end

-- Whether the text of an annotation differs.
function M.annotations_differ(node, desired)
  for name, text in pairs(desired.annotations) do
    if fields.annotation(node, name) ~= (text or nil) then return true end
  end
  return false
end

-- Koordinator's rule: two quantities differ if they are more than `threshold` of the old one apart, or if
-- only one of them exists.
function M.differs(old, new, threshold)
  if old == nil or new == nil then return (old == nil) ~= (new == nil) end
  local before, after = kube.to_milli(old), kube.to_milli(new)
  return math.abs(after - before) > before * threshold
end

function M.need_sync(old, new, names, threshold)
  for _, name in ipairs(names) do
    if M.differs(old and old[name], new and new[name], threshold) then return true end
  end
  return false
end

-- Whether the status needs a write: this process has not written it yet, the last write is too long ago, or a
-- resource differs. `old` and `new` are allocatable lists, `last` and `now` seconds.
function M.need_sync_status(strategy, old, new, last, now)
  return last == nil or now - last > strategy.updateTimeThresholdSeconds
    or M.need_sync(old, new, midresource.NAMES, strategy.resourceDiffThreshold)
    or M.need_sync(old, new, batchresource.NAMES, strategy.resourceDiffThreshold)
    or M.need_sync(old, new, devices.NAMES, strategy.resourceDiffThreshold)
end

local function labels_differ(old, new)
  for name, text in pairs(dig(new, "metadata", "labels") or {}) do
    if fields.label(old, name) ~= text then return true end
  end
  return false
end

function M.need_sync_meta(old, new)
  return labels_differ(old, new)
    or cpunormalization.need_sync_meta(old, new)
    or resourceamplification.need_sync_meta(old, new)
end

-- A node with only the fields that `prepare` decides, to compare it with the existing one.
function M.outcome(node, desired)
  local new = { metadata = { annotations = {}, labels = desired.labels }, status = { allocatable = {} } }
  for _, name in ipairs(devices.NAMES) do
    new.status.allocatable[name] = dig(node, "status", "allocatable", name)
  end
  for name, n in pairs(desired.resources) do new.status.allocatable[name] = n or nil end
  for _, name in ipairs { cpunormalization.ANNOTATION, resourceamplification.ANNOTATION } do
    local text = desired.annotations[name]
    if text == nil then text = fields.annotation(node, name) end
    new.metadata.annotations[name] = text or nil
  end
  return new
end

return M
