-- merge.lua - merges the hints of a pod's resources into the NUMA nodes of the pod. A hint is { mask = bits
-- of NUMA nodes, preferred, score }; the policy decides which result is accepted:
--
--   BestEffort      any; all NUMA nodes, if the resources cannot be together
--   Restricted      all resources in the same NUMA nodes
--   SingleNUMANode  all resources in one NUMA node

local M = {}

local UNALIGNED = "Unaligned NUMA Hint cause "

local function count(mask)
  local n = 0
  while mask ~= 0 do mask, n = mask & (mask - 1), n + 1 end
  return n
end

M.count = count

-- The numbers of the NUMA nodes of a mask.
function M.bits(mask)
  local out = {}
  for bit = 0, 62 do
    if mask & (1 << bit) ~= 0 then out[#out + 1] = bit end
  end
  return out
end

-- All masks of one or more of these NUMA nodes, those with fewer nodes first.
function M.masks(nodes)
  local out = {}
  local function add(from, mask, n)
    if n == 0 then
      out[#out + 1] = mask
      return
    end
    for i = from, #nodes do add(i + 1, mask | 1 << nodes[i], n - 1) end
  end
  for n = 1, #nodes do add(1, 0, n) end
  return out
end

local function narrower(a, b)
  local n, m = count(a), count(b)
  if n ~= m then return n < m end
  return a < b
end

-- Whether the mask is allowed for a pod with exclusive NUMA nodes. o.status: { [NUMA node] = "idle", "single"
-- (its pods have only this one) or "shared" }.
local function exclusive_ok(mask, o)
  if o.exclusive ~= "Required" then return true end
  local bits = M.bits(mask)
  for _, bit in ipairs(bits) do
    if o.status[bit] == (#bits > 1 and "single" or "shared") then return false end
  end
  return true
end

-- Merges one hint of each resource: the NUMA nodes that all of them have.
local function combine(permutation, o)
  local mask, preferred, widest = o.all, true, 0
  for _, hint in ipairs(permutation) do
    if hint.mask ~= permutation[1].mask or not hint.preferred then preferred = false end
    mask = mask & hint.mask
    widest = math.max(widest, count(hint.mask))
  end
  return { mask = mask, preferred = preferred, apart = widest ~= count(mask), score = 0 }
end

local function better(a, b)
  if a.preferred ~= b.preferred then return a.preferred end
  if narrower(a.mask, b.mask) then return true end
  return count(a.mask) == count(b.mask) and a.score > b.score
end

local function consider(best, permutation, o)
  local merged = combine(permutation, o)
  if merged.mask == 0 then return best end
  if not exclusive_ok(merged.mask, o) then merged.preferred = false end
  for _, hint in ipairs(permutation) do
    if hint.mask == merged.mask then merged.score = merged.score + hint.score end
  end
  return better(merged, best) and merged or best
end

local function each_permutation(all, at, chosen, f)
  if at > #all then return f(chosen) end
  for _, hint in ipairs(all[at]) do
    chosen[at] = hint
    each_permutation(all, at + 1, chosen, f)
  end
end

-- Only permutations with equal masks can be preferred, so these are tried first, and all others only if none
-- is.
local function best_of(all, o)
  local best = { mask = o.all, preferred = false, score = 0 }
  for _, first in ipairs(all[1] or {}) do
    local same = { first }
    for i = 2, #all do
      for _, hint in ipairs(all[i]) do
        if hint.mask == first.mask then same[i] = hint end
      end
    end
    if #same == #all then best = consider(best, same, o) end
  end
  if best.preferred or o.policy ~= "BestEffort" then return best end
  best = { mask = o.all, preferred = false, score = 0 }
  each_permutation(all, 1, {}, function(permutation) best = consider(best, permutation, o) end)
  return best
end

-- A mask as upstream prints it: binary, padded to an even number of digits.
local function show(mask)
  local digits, width = "", 2
  for shift = 2, 60, 2 do
    if mask > 1 << shift then width = shift + 2 end
  end
  while mask > 0 do digits, mask = (mask & 1) .. digits, mask >> 1 end
  return ("0"):rep(width - #digits) .. digits
end

local function summary(names, hints)
  local out = {}
  for i, name in ipairs(names) do
    local preferred, possible = {}, {}
    for _, hint in ipairs(hints[name]) do
      possible[#possible + 1] = show(hint.mask)
      if hint.preferred then preferred[#preferred + 1] = show(hint.mask) end
    end
    out[i] = ("%s prefer [%s] among [%s]"):format(name, table.concat(preferred, " "),
      table.concat(possible, " "))
  end
  return out
end

-- hints: { [resource] = list of hints }, an empty list for a resource that fits nowhere. o: { policy, all =
-- mask of the node's NUMA nodes, exclusive = "Required" or other, status }. Returns the mask; nil: the pod
-- needs no particular NUMA nodes; or false and a list of reasons.
function M.merge(hints, o)
  local names, all, reasons = {}, {}, {}
  for name in pairs(hints) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    all[i] = hints[name]
    if #hints[name] == 0 then reasons[#reasons + 1] = "Unsatisfied NUMA " .. name end
  end
  if #names == 0 then -- no resource depends on NUMA nodes
    if o.policy ~= "BestEffort" and not exclusive_ok(o.all, o) then return false, { UNALIGNED } end
    return o.policy ~= "SingleNUMANode" and o.all or nil
  end
  if o.policy == "BestEffort" then
    if #reasons > 0 then return o.all end
    local best = best_of(all, o)
    return best.apart and o.all or best.mask
  end
  if #reasons > 0 then return false, reasons end
  if o.policy == "SingleNUMANode" then
    for i, list in ipairs(all) do
      local single = {}
      for _, hint in ipairs(list) do
        if hint.preferred and count(hint.mask) == 1 then single[#single + 1] = hint end
      end
      all[i] = single
    end
  end
  local best = best_of(all, o)
  if best.preferred and o.policy == "SingleNUMANode" and best.mask == o.all then return nil end
  if best.preferred then return best.mask end
  local joint = o.policy == "Restricted" and " & " or ","
  return false, { UNALIGNED .. table.concat(summary(names, hints), joint) }
end

return M
