-- share.lua - how one level of the quota tree divides one resource, in whole units.
--
-- redistribute: each node first gets its own part (`mine`: the request, or the minimum if the request is
-- larger or if nothing may be lent). The rest goes to nodes that request more, by weight, round by round: a
-- node that reaches its request stops and returns the surplus. `upstream` says how a round is rounded:
--   "main"    the largest remainders get the left-over units (Hamilton), so nothing is lost
--   "v1.8.0"  each share is rounded separately, so the sum may differ from the total by some units

local M = {}

local MAX = math.maxinteger

-- floor(a*b/c) and the remainder by long multiplication, for 0 <= a, b and 0 < c.
local function long_muldiv(a, b, c)
  local q, r = 0, 0
  local bq, br = b // c, b % c
  for bit = 62, 0, -1 do
    q, r = q << 1, r << 1 -- r < c <= 2^63 - 1, so it fits unsigned
    if not math.ult(r, c) then q, r = q + 1, r - c end
    if a >> bit & 1 == 1 then
      q, r = q + bq, r + br
      if not math.ult(r, c) then q, r = q + 1, r - c end
    end
  end
  return q, r
end

-- floor(a*b/c) and its remainder, exact although a*b may need 128 bits. All at least 0, c more, and the
-- result fits.
function M.muldiv(a, b, c)
  if a == 0 or b <= MAX // a then return a * b // c, a * b % c end
  local guess = a * 1.0 * b / c
  -- The guess is off by a few parts in 2^52: if that many c fit an integer, the wrapped difference is
  -- exact.
  if guess < 0x1p62 and c * (guess * 0x1p-50 + 8) < 0x1p62 then
    local q = math.tointeger(guess // 1)
    local r = a * b - q * c
    return q + r // c, r % c
  end
  return long_muldiv(a, b, c)
end

-- Gives the units that are left to the largest remainders, of equal ones by name.
local function hand_out(left, shares, rests, nodes)
  local order = {}
  for i in pairs(rests) do order[#order + 1] = i end
  table.sort(order, function(a, b)
    if rests[a] ~= rests[b] then return rests[a] > rests[b] end
    return nodes[a].name < nodes[b].name
  end)
  for i = 1, math.min(left, #order) do shares[order[i]] = shares[order[i]] + 1 end
end

local function hamilton(total, weights, sum, nodes)
  local shares, rests, left = {}, {}, total
  for i = 1, #nodes do
    local weight, share = weights[i], 0
    if weight > 0 then share, rests[i] = M.muldiv(weight, total, sum) end
    shares[i], left = share, left - share
  end
  if left > 0 then hand_out(left, shares, rests, nodes) end
  return shares
end

local function rounded(total, weights, sum, nodes)
  local shares = {}
  for i in ipairs(nodes) do shares[i] = math.tointeger((weights[i] * 1.0 * total / sum + 0.5) // 1) end
  return shares
end

-- The weights, and their sum. If the sum does not fit an integer, all weights are halved until it does: only
-- their ratio counts.
local function weigh(nodes)
  local weights, sum, shift = {}, 0.0, 0
  for i = 1, #nodes do
    weights[i] = math.max(nodes[i].weight, 0)
    sum = sum + weights[i]
  end
  while sum >= 0x1p62 do sum, shift = sum / 2, shift + 1 end
  local whole = 0
  for i = 1, #weights do
    weights[i] = weights[i] >> shift
    whole = whole + weights[i]
  end
  return weights, whole
end

-- The share of each node: { [name] = amount }. nodes: { name, weight, request, min, guarantee, lends }.
function M.redistribute(total, nodes, upstream)
  local split = upstream == "v1.8.0" and rounded or hamilton
  local runtime, hungry, left = {}, {}, total
  for _, node in ipairs(nodes) do
    local min = math.max(node.min, node.guarantee or 0)
    local mine = min
    if node.request > min then
      hungry[#hungry + 1] = node
    elseif node.lends then
      mine = node.request
    end
    runtime[node.name] = mine
    left = left - mine
  end

  while left > 0 and #hungry > 0 do
    local weights, sum = weigh(hungry)
    if sum <= 0 then break end
    local shares, back, still = split(left, weights, sum, hungry), 0, {}
    for i, node in ipairs(hungry) do
      local got = runtime[node.name] + shares[i]
      if got < node.request then
        still[#still + 1] = node
      else
        back = back + got - node.request
        got = node.request
      end
      runtime[node.name] = got
    end
    left, hungry = back, still
  end
  return runtime
end

-- One child's part of the rest, for children whose minimum may shrink. Koordinator computes it in float64,
-- which can round a large amount up by a unit; "v1.8.0" does the same, "main" is exact, so that the parts
-- never exceed the whole.
local function part(left, min, sum, upstream)
  if sum <= 0 then return 0 end
  if upstream == "v1.8.0" then return math.tointeger(left * 1.0 * min / sum // 1) end
  return (M.muldiv(left, min, sum))
end

-- Whether a parent has less than the minima of its children, in some resource.
local function is_short(total, fixed, shrinking)
  for name, have in pairs(total) do
    if have < (fixed[name] or 0) + (shrinking[name] or 0) then return true end
  end
  return false
end

-- The effective minima: { [name] = list }, those of the children where the parent has enough for their sum.
-- Minima that may not shrink are served first, the others get proportional parts. total: the parent's list;
-- children: { name, min, scales }. Resources that the parent's list does not name are ignored.
function M.scaled_min(total, children, upstream)
  local fixed, shrinking = {}, {}
  for _, child in ipairs(children) do
    local sums = child.scales and shrinking or fixed
    for name, n in pairs(child.min) do sums[name] = (sums[name] or 0) + n end
  end

  local out, short = {}, is_short(total, fixed, shrinking)
  for _, child in ipairs(children) do
    if child.scales and not short then
      out[child.name] = child.min
    elseif child.scales then
      local min = {}
      for name, n in pairs(child.min) do min[name] = n end
      for name, have in pairs(total) do
        local firm, soft = fixed[name] or 0, shrinking[name] or 0
        if have < firm + soft then
          min[name] = have > firm and part(have - firm, child.min[name] or 0, soft, upstream) or 0
        end
      end
      out[child.name] = min
    end
  end
  return out
end

return M
