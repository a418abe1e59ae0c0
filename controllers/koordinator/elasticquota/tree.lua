-- tree.lua - calculates every quota of a tree, from the quotas, the requests and use of their pods, and the
-- total.
--
--   bottom-up   child_request = own pods + the children's requests
--               request = that, or the minimum if it lends nothing
--               a quota requests from its parent its request, capped by max
--   top-down    each level divides its parent's runtime (share.lua); the root's runtime is the cluster's
--               total minus the use of the system and default quotas
--
-- A quota whose parents do not lead to the root (one is missing, or they form a cycle) has requests and no
-- runtime.

local equal = require("fields").equal
local lists = require "lib.lists"
local quota = require "elasticquota.quota"
local share = require "elasticquota.share"

local M = {}

local NOTHING = {}

local function is_sorted(list)
  for i = 2, #list do
    if list[i].name < list[i - 1].name then return false end
  end
  return true
end

-- children[name] = the quotas below it, by name; system and default are outside of the tree.
local function children_of(quotas)
  local children = {}
  for _, q in ipairs(quotas) do
    if not quota.RESERVED[q.name] then
      children[q.parent] = children[q.parent] or {}
      table.insert(children[q.parent], q)
    end
  end
  for _, list in pairs(children) do
    if not is_sorted(list) then table.sort(list, function(a, b) return a.name < b.name end) end
  end
  return children
end

-- A list that was made is not changed, so that one may stand in several places.

-- As lists.mask; the list itself where nothing of it is left out.
local function masked(list, names)
  for name in pairs(list) do
    if names[name] == nil then return lists.mask(list, names) end
  end
  return list
end

-- As lists.cap; the list itself where the limit allows all of it.
local function capped(list, limit)
  for name, n in pairs(list) do
    if limit[name] and n > limit[name] then return lists.cap(list, limit) end
  end
  return list
end

-- A quota's own pods count in the resources of its max; others are ignored.
local function begin(q, pods)
  local sums, max = pods[q.name] or NOTHING, q.max
  local request, used = masked(sums.request or NOTHING, max), masked(sums.used or NOTHING, max)
  return {
    self_request = request,
    self_used = used,
    child_request = request,
    used = used,
    non_preemptible_request = masked(sums.non_preemptible_request or NOTHING, max),
    non_preemptible_used = masked(sums.non_preemptible_used or NOTHING, max),
    allocated = NOTHING,
    guaranteed = NOTHING,
    runtime = NOTHING,
    auto_min = q.min,
  }
end

-- What is passed to the parent unchanged: use is never capped.
local PASSED_ON = { "used", "non_preemptible_request", "non_preemptible_used" }

local function finish_request(q, info, lends)
  info.request = lends and info.child_request or lists.max(info.child_request, q.min)
  info.limit_request = capped(info.request, q.max)
end

-- Adds the sums below a quota to its own.
local function gather(children, info, context)
  local allocated, request = lists.copy(info.self_used), lists.copy(info.child_request)
  for _, what in ipairs(PASSED_ON) do info[what] = lists.copy(info[what]) end
  info.child_request = request
  for _, child in ipairs(children) do
    local below = context.infos[child.name]
    lists.accumulate(request, below.limit_request)
    for _, what in ipairs(PASSED_ON) do lists.accumulate(info[what], below[what]) end
    lists.accumulate(allocated, below.guaranteed)
  end
  return allocated
end

-- Whether a quota, the sums of its own pods and the number of its children are those of the calculation
-- before.
local function stays(q, children, context)
  local before = context.before
  return before and before.by_name[q.name] == q and before.pods[q.name] == context.pods[q.name]
    and #(before.children[q.name] or NOTHING) == #children
end

-- The infos of a quota and of all below it, bottom-up; those of the calculation before where nothing changed.
-- Returns whether that is so.
local function climb(q, context)
  local children = context.children[q.name] or NOTHING
  local same = stays(q, children, context)
  for i = 1, #children do same = climb(children[i], context) and same end
  context.by_name[q.name] = q
  if same then
    context.infos[q.name] = context.before.infos[q.name]
    return true
  end
  local info = begin(q, context.pods)
  context.infos[q.name] = info
  local allocated = #children > 0 and gather(children, info, context) or info.self_used
  finish_request(q, info, q.lends and not context.guarantee)
  if context.guarantee then
    info.allocated = allocated
    info.guaranteed = lists.max(allocated, q.min)
  end
  return false
end

-- The minima of children, in their order, smaller than they say where the parent has less than all.
local function minima(children, total, context)
  local out, list = {}, {}
  for i, child in ipairs(children) do out[i] = child.min end
  if not context.scale_min or share.suffices(total, children) then return out end
  for i, child in ipairs(children) do list[i] = { name = child.name, min = child.min, scales = true } end
  local scaled = share.scaled_min(total, list, context.upstream)
  for i, child in ipairs(children) do out[i] = scaled[child.name] end
  return out
end

-- Divides a resource among children, whose runtimes get their part. context.nodes are filled anew each time.
local function divide(resource, children, mins, runtimes, total, context)
  local infos, guarantee, nodes = context.infos, context.guarantee, context.nodes
  for i = 1, #children do
    local child, node = children[i], nodes[i]
    if not node then
      node = {}
      nodes[i] = node
    end
    local info = infos[child.name]
    node.name = child.name
    node.weight = child.weight[resource] or 0
    node.request = info.limit_request[resource] or 0
    node.min = mins[i][resource] or 0
    node.guarantee = info.guaranteed[resource] or 0
    node.lends = child.lends and not guarantee
  end
  share.divide(total[resource] or 0, nodes, #children, context.upstream)
  for i = 1, #children do runtimes[i][resource] = nodes[i].runtime end
end

-- Whether the level below a quota is divided as in the calculation before: the same total among the same
-- children, who ask for the same.
local function divided(name, children, total, keys, context)
  local before = context.before
  local level = before and before.levels[name]
  if not level or not equal(level.total, total) or not equal(level.keys, keys)
    or #before.children[name] ~= #children then
    return nil
  end
  for i = 1, #children do
    local child = children[i]
    local now, was = context.infos[child.name], before.infos[child.name]
    if before.by_name[child.name] ~= child then return nil end
    if now ~= was and not (equal(now.limit_request, was.limit_request)
      and equal(now.guaranteed, was.guaranteed)) then
      return nil
    end
  end
  return level.runtimes
end

-- The runtimes of the children, in their order, as the level before was divided.
local function keep(children, runtimes, context)
  for _, child in ipairs(children) do
    local now, was = context.infos[child.name], context.before.infos[child.name]
    if now ~= was then now.runtime, now.auto_min = was.runtime, was.auto_min end
  end
  return runtimes
end

-- What a quota gets: in its info, or in a copy where that is one of the calculation before and says
-- otherwise.
local function settle(q, runtime, min, context)
  local info = context.infos[q.name]
  if context.before and context.before.infos[q.name] == info then
    if equal(info.runtime, runtime) and equal(info.auto_min, min) then return end
    info = lists.copy(info)
    context.infos[q.name] = info
  end
  info.runtime, info.auto_min = runtime, min
end

local function divide_all(children, total, keys, context)
  local mins, runtimes = minima(children, total, context), {}
  for i = 1, #children do runtimes[i] = {} end
  for resource in pairs(keys) do divide(resource, children, mins, runtimes, total, context) end
  for i, child in ipairs(children) do settle(child, masked(runtimes[i], child.max), mins[i], context) end
  return runtimes
end

-- Divides `total` among the children of a quota in the resources `keys`, and so on below them.
local function descend(name, total, keys, context)
  local children = context.children[name]
  if children == nil then return end
  local runtimes = divided(name, children, total, keys, context)
  runtimes = runtimes and keep(children, runtimes, context) or divide_all(children, total, keys, context)
  context.levels[name] = { total = total, keys = keys, runtimes = runtimes }
  for i, child in ipairs(children) do descend(child.name, runtimes[i], child.max, context) end
end

-- Quotas without a path to the root: only the sums of their own pods.
local function orphans(quotas, context)
  for _, q in ipairs(quotas) do
    if not quota.RESERVED[q.name] and context.infos[q.name] == nil then
      local info = begin(q, context.pods)
      finish_request(q, info, q.lends and not context.guarantee)
      info.orphan = true
      context.infos[q.name] = info
    end
  end
end

local function by_name(quotas, name)
  for _, q in ipairs(quotas) do
    if q.name == name then return q end
  end
  return quota.unlimited(name)
end

local function all_keys(quotas)
  local keys = {}
  for _, q in ipairs(quotas) do
    if not quota.RESERVED[q.name] then
      for name in pairs(q.max) do keys[name] = true end
    end
  end
  return keys
end

local function root_info(context)
  local info = begin({ name = quota.ROOT, min = NOTHING, max = NOTHING }, NOTHING)
  info.request = NOTHING
  for name in pairs(context.top) do
    local below = context.infos[name]
    info.request = lists.add(info.request, below.limit_request)
    for _, what in ipairs(PASSED_ON) do info[what] = lists.add(info[what], below[what]) end
  end
  return info
end

-- input: quotas   of one tree, as quota.read gives them (members.lua divides them by tree)
--        pods     { [quota name] = { request, used, non_preemptible_request, non_preemptible_used } }
--        total    what the tree may divide, as a list
--        scale_min, guarantee, upstream   the settings of the same names (elasticquota.lua)
--        before    what the last calculation returned second, or nil: quotas and sums that are the same
--          tables as there count as unchanged
-- Returns { [quota name] = { request, child_request, limit_request, used, runtime, auto_min, allocated,
-- guaranteed, non_preemptible_request, non_preemptible_used, self_request, self_used, orphan } }, the
-- reserved ones among them, and what `before` takes. Nothing in these tables may be changed.
function M.calculate(input)
  local before = input.before
  local goes_on = before and before.scale_min == input.scale_min and before.guarantee == input.guarantee
    and before.upstream == input.upstream
  local context = {
    before = goes_on and before or nil,
    pods = input.pods or NOTHING,
    children = children_of(input.quotas),
    infos = {},
    by_name = {},
    levels = {},
    nodes = {},
    top = { [quota.SYSTEM] = true, [quota.DEFAULT] = true },
    scale_min = input.scale_min,
    guarantee = input.guarantee,
    upstream = input.upstream,
  }
  for _, q in ipairs(context.children[quota.ROOT] or NOTHING) do
    climb(q, context)
    context.top[q.name] = true
  end
  local total = input.total
  for _, name in ipairs { quota.SYSTEM, quota.DEFAULT } do
    local q = by_name(input.quotas, name)
    local info = begin(q, context.pods)
    finish_request(q, info, q.lends)
    info.runtime = q.max
    context.infos[name] = info
    total = lists.sub(total, info.used)
  end
  orphans(input.quotas, context)
  local root = root_info(context)
  root.runtime = total
  context.infos[quota.ROOT] = root
  descend(quota.ROOT, total, all_keys(input.quotas), context)
  context.before = nil
  return context.infos, context
end

return M
