-- topology.lua - which changes of an ElasticQuota its tree allows, and the defaults of a new one. The checks
-- are in Koordinator's order, so that the first complaint is the same.
--
--   world = { quotas     { [name] = quota } as quota.read gives them, without the change
--             bound      function(name, namespaces): whether pods belong to the quota
--             guarantee, update_resource_key   the feature gates ElasticQuotaGuaranteeUsage and
--                        ElasticQuotaEnableUpdateResourceKey }

local fields = require "fields"
local keys = require "elasticquota.keys"
local kube = require "kubelua"
local lists = require "lib.lists"
local quota = require "elasticquota.quota"

local M = {}

local function refuse(text, ...) error({ refused = text:format(...) }, 0) end

local function children(world, name)
  local out = {}
  for _, q in pairs(world.quotas) do
    if q.parent == name and not quota.RESERVED[q.name] then out[#out + 1] = q end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

-- ---------------------------------------------------------------- the quota by itself

local function check_sign(q, what, list)
  local wrong = lists.negative(list)
  if #wrong > 0 then refuse("quota %s: %s is below 0 in %s", q.name, what, table.concat(wrong, ", ")) end
end

local function check_signs(q, object)
  check_sign(q, "spec.max", q.max)
  check_sign(q, "spec.min", q.min)
  local given, weight = quota.given_weight(object)
  if not given and weight then
    refuse("quota %s: annotation %s cannot be parsed: %s", q.name, keys.shared_weight, weight)
  end
  check_sign(q, "annotation " .. keys.shared_weight, weight or {})
end

-- Resources whose maximum must not fall below their use.
local function check_strict(q, object)
  local text = fields.annotation(object, keys.max_strict_check)
  if text == nil or text == "" then return end
  local names, why = fields.json(text)
  if type(names) ~= "table" then
    refuse("quota %s: annotation %s cannot be parsed: %s", q.name, keys.max_strict_check,
      why or "it is not a list")
  end
  local used = lists.of(fields.dig(object, "status", "used"))
  for _, name in ipairs(names or {}) do
    local n, max = used[name], q.max[name]
    if n and not max then refuse("quota %s: %s is in use but not in spec.max", q.name, name) end
    if n and max < n then
      refuse("quota %s: spec.max of %s is %s, less than the %s in use", q.name, name, lists.text(name, max),
        lists.text(name, n))
    end
  end
end

local function check_self(q, object)
  check_signs(q, object)
  for _, name in ipairs(lists.names(q.min)) do
    local min, max = q.min[name], q.max[name]
    if not max then refuse("quota %s: %s is in spec.min but not in spec.max", q.name, name) end
    if min > max then
      refuse("quota %s: spec.min of %s is %s, more than spec.max, %s", q.name, name, lists.text(name, min),
        lists.text(name, max))
    end
  end
  check_strict(q, object)
end

-- ---------------------------------------------------------------- the quota in its tree

local function check_is_parent(world, old, q)
  if not old or old.is_parent == q.is_parent then return end
  if not q.is_parent and #children(world, q.name) > 0 then
    refuse("quota %s has children: label is-parent must stay true", q.name)
  end
  if q.is_parent and world.bound(q.name, old.namespaces) then
    refuse("quota %s has pods: label is-parent must not become true", q.name)
  end
end

local function check_tree(world, old, q)
  if old and old.tree ~= q.tree then
    refuse("quota %s: the tree id must not change, from %q to %q", q.name, old.tree, q.tree)
  end
  local parent = world.quotas[q.parent]
  if q.parent ~= quota.ROOT and parent and parent.tree ~= q.tree then
    refuse("quota %s: tree id %q differs from that of its parent %s, %q", q.name, q.tree, parent.name,
      parent.tree)
  end
  for _, child in ipairs(children(world, q.name)) do
    if child.tree ~= q.tree then
      refuse("quota %s: tree id %q differs from that of its child %s, %q", q.name, q.tree, child.name,
        child.tree)
    end
  end
end

-- Koordinator does not look for cycles; a quota in one would never get anything.
local function check_ring(world, q)
  local seen, above = {}, q.parent
  while above ~= quota.ROOT and world.quotas[above] and not seen[above] do
    if above == q.name then refuse("quota %s: its parent %s is one of its descendants", q.name, q.parent) end
    seen[above] = true
    above = world.quotas[above].parent
  end
end

local function check_parent(world, q)
  if q.parent == quota.ROOT then return end
  local parent = world.quotas[q.parent]
  if not parent then refuse("quota %s: its parent %s does not exist", q.name, q.parent) end
  if not parent.is_parent then
    refuse("quota %s: its parent %s is not labelled is-parent", q.name, q.parent)
  end
  check_ring(world, q)
end

local function included(child, parent)
  for name in pairs(child) do
    if parent[name] == nil then return false end
  end
  return true
end

local function check_pair(world, parent, child)
  if world.update_resource_key then
    if not included(child.max, parent.max) then
      refuse("quota %s: spec.max names resources that its parent %s does not", child.name, parent.name)
    end
  elseif not (included(child.max, parent.max) and included(parent.max, child.max)) then
    refuse("quota %s: spec.max does not name the same resources as that of its parent %s", child.name,
      parent.name)
  end
  if not included(child.min, parent.min) then
    refuse("quota %s: spec.min names resources that its parent %s does not", child.name, parent.name)
  end
end

local function check_keys(world, q)
  if q.parent ~= quota.ROOT then check_pair(world, world.quotas[q.parent], q) end
  for _, child in ipairs(children(world, q.name)) do check_pair(world, q, child) end
end

-- The sum over all children except one.
local function sum(world, name, what, except)
  local out = {}
  for _, child in ipairs(children(world, name)) do
    if child.name ~= except then out = lists.add(out, child[what]) end
  end
  return out
end

-- Whether no resource exceeds the limit; absent counts as 0 here.
local function at_most(a, b)
  for _, n in pairs(lists.sub(a, b)) do
    if n > 0 then return false end
  end
  return true
end

local function check_min(world, q)
  if q.force or q.is_tree_root then return end
  if q.parent ~= quota.ROOT then
    local all, has = lists.add(sum(world, q.parent, "min", q.name), q.min), world.quotas[q.parent].min
    if not at_most(all, has) then
      refuse("quota %s: the children of %s would have a total min of %s, above its min of %s", q.name,
        q.parent, lists.show(all), lists.show(has))
    end
  end
  local all = sum(world, q.name, "min")
  if not at_most(all, q.min) then
    refuse("quota %s: the minima of its children are %s, more than its %s", q.name, lists.show(all),
      lists.show(q.min))
  end
end

-- A larger minimum must fit the guarantee of some ancestor below the root.
local function check_guarantee(world, q)
  if not world.guarantee or q.force or q.tree == "" or q.is_tree_root or at_most(q.min, q.guaranteed) then
    return
  end
  local needed, self = lists.max(q.min, q.guaranteed), q
  repeat
    local parent = world.quotas[self.parent]
    if not parent or self.parent == quota.ROOT then
      refuse("quota %s: no ancestor guarantees its minimum, up to %s", q.name, self.name)
    end
    needed = lists.max(parent.min, lists.add(needed, sum(world, parent.name, "guaranteed", self.name)))
    self = parent
  until at_most(needed, parent.guaranteed)
end

local function check_topology(world, old, q)
  if q.name == quota.ROOT then return end
  check_is_parent(world, old, q)
  check_tree(world, old, q)
  if q.parent == quota.ROOT and not q.is_parent then return end
  check_parent(world, q)
  check_keys(world, q)
  check_min(world, q)
  check_guarantee(world, q)
end

-- ---------------------------------------------------------------- what people do

local function check_namespaces(world, q)
  local index = {}
  for _, other in pairs(world.quotas) do
    for _, namespace in ipairs(other.namespaces) do index[namespace] = other.name end
  end
  for _, namespace in ipairs(q.namespaces) do
    local owner = index[namespace]
    if owner and owner ~= q.name then
      refuse("quota %s: namespace %s belongs to quota %s", q.name, namespace, owner)
    end
  end
end

-- Makes a function that runs the checks and returns true, or false and the first complaint.
local function judge(checks)
  return function(...)
    local ok, why = pcall(checks, ...)
    if not ok and not (type(why) == "table" and why.refused) then error(why, 0) end
    return ok, not ok and why.refused or nil
  end
end

-- M.create(world, object)
M.create = judge(function(world, object)
  local q = quota.read(object)
  local other = world.quotas[q.name]
  if other then
    refuse("quota %s exists, in namespace %s: names are unique in the cluster", q.name, other.namespace)
  end
  check_namespaces(world, q)
  check_self(q, object)
  check_topology(world, nil, q)
end)

-- Whether an update changes something that is checked: controllers' writes do not.
function M.matters(old, new)
  local a, b = quota.read(old), quota.read(new)
  for _, what in ipairs { "parent", "is_parent", "tree" } do
    if a[what] ~= b[what] then return true end
  end
  for _, what in ipairs { "namespaces", "min", "max" } do
    if not fields.equal(a[what], b[what]) then return true end
  end
  return false
end

-- M.update(world, object)
M.update = judge(function(world, object)
  local q = quota.read(object)
  if q.name == quota.ROOT or q.name == quota.SYSTEM then refuse("quota %s must not be changed", q.name) end
  check_namespaces(world, q)
  local old = world.quotas[q.name]
  if not old then refuse("quota %s is not known", q.name) end
  check_self(q, object)
  check_topology(world, old, q)
end)

-- M.delete(world, object, pods): names of pods that are labelled with the quota.
M.delete = judge(function(world, object, pods)
  local name = object.metadata.name
  if quota.RESERVED[name] then refuse("quota %s must not be deleted", name) end
  local below = children(world, name)
  if #below > 0 then refuse("quota %s has %d child quotas", name, #below) end
  if #pods > 0 then
    local more = #pods > 2 and ", ..." or ""
    refuse("quota %s has %d child pods: %s%s", name, #pods, table.concat(pods, ", ", 1, math.min(2, #pods)),
      more)
  end
end)

-- ---------------------------------------------------------------- defaults

-- The text of the weight with exactly the names of max; missing ones default to the maximum. The quantities
-- stay as they are: those of koord-scheduler's own quotas do not fit an integer of thousandths. given: the
-- quantities of the annotation, or nil; max: those of spec.max.
local function weight_text(given, max)
  local fixed = {}
  for name, quantity in pairs(max) do
    fixed[name] = kube.qty(given and given[name] or quantity):canonical()
  end
  return kube.encode(kube.object(fixed))
end

-- Sets the defaults in a draft of a new quota. tree_of(name) returns the tree id of a quota, nil if there is
-- no such quota. Returns true, or false and why.
function M.fill(draft, tree_of)
  if draft.metadata.name == quota.ROOT then return true end
  local q = quota.read(draft)
  if q.tree == "" and q.parent ~= quota.ROOT then
    local tree = tree_of(q.parent)
    if tree == nil then return false, ("quota %s: its parent %s does not exist"):format(q.name, q.parent) end
    if tree ~= "" then draft.metadata.labels[keys.tree_id] = tree end
  end
  draft.metadata.labels[keys.parent] = q.parent

  local max, given, weight = fields.dig(draft, "spec", "max") or {}, quota.given_weight(draft)
  if not given and weight then
    return false, ("quota %s: annotation %s cannot be parsed"):format(q.name, keys.shared_weight)
  end
  if not given or not fields.equal(fields.names(given), fields.names(max)) then
    draft.metadata.annotations[keys.shared_weight] = weight_text(given, max)
  end
  return true
end

-- ---------------------------------------------------------------- pods

-- Pods of a quota with children would take what the children divide; the default quota may have both. q: the
-- pod's quota; nil if it does not matter.
function M.pod(q, pod, old)
  if old and fields.label(old, keys.preemptible) ~= fields.label(pod, keys.preemptible) then
    return false, ("label %s must not change"):format(keys.preemptible)
  end
  if q and q.is_parent and q.name ~= quota.DEFAULT then
    local name = pod.metadata.name or pod.metadata.generateName
    return false, ("pod %s cannot belong to quota %s, which is a parent of quotas"):format(name, q.name)
  end
  return true
end

return M
