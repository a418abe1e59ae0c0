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

-- Of one division, and filled anew for the next: who still wants something, the weight, the share and the
-- remainder of each, and their order by remainder.
local hungry, weights, shares, rests, order = {}, {}, {}, {}, {}

local function by_rest(a, b)
  if rests[a] ~= rests[b] then return rests[a] > rests[b] end
  return hungry[a].name < hungry[b].name
end

-- Gives the units that are left to the largest remainders, of equal ones by name.
local function hand_out(left, n)
  local some = 0
  for i = 1, n do
    if weights[i] > 0 then
      some = some + 1
      order[some] = i
    end
  end
  for i = #order, some + 1, -1 do order[i] = nil end
  table.sort(order, by_rest)
  for i = 1, math.min(left, some) do shares[order[i]] = shares[order[i]] + 1 end
end

local function hamilton(total, sum, n)
  local left = total
  for i = 1, n do
    shares[i], rests[i] = M.muldiv(weights[i], total, sum)
    left = left - shares[i]
  end
  if left > 0 then hand_out(left, n) end
end

local function rounded(total, sum, n)
  for i = 1, n do shares[i] = math.tointeger((weights[i] * 1.0 * total / sum + 0.5) // 1) end
end

-- The weights of the hungry, of which it returns the sum. If that does not fit an integer, all weights are
-- halved until it does: only their ratio counts.
local function weigh(n)
  local sum, shift = 0.0, 0
  for i = 1, n do
    weights[i] = math.max(hungry[i].weight, 0)
    sum = sum + weights[i]
  end
  while sum >= 0x1p62 do sum, shift = sum / 2, shift + 1 end
  local whole = 0
  for i = 1, n do
    weights[i] = weights[i] >> shift
    whole = whole + weights[i]
  end
  return whole
end

-- Gives the hungry their shares. Returns what those who reached their request gave back, and how many are
-- hungry still.
local function feed(n)
  local back, still = 0, 0
  for i = 1, n do
    local node = hungry[i]
    local got = node.runtime + shares[i]
    if got < node.request then
      still = still + 1
      hungry[still] = node
    else
      back = back + got - node.request
      got = node.request
    end
    node.runtime = got
  end
  return back, still
end

-- The share of each node, as its field `runtime`. nodes: { name, weight, request, min, guarantee, lends }, of
-- which the first n count.
function M.divide(total, nodes, n, upstream)
  local split = upstream == "v1.8.0" and rounded or hamilton
  local left, some = total, 0
  for i = 1, n do
    local node = nodes[i]
    local min = math.max(node.min, node.guarantee or 0)
    local mine = min
    if node.request > min then
      some = some + 1
      hungry[some] = node
    elseif node.lends then
      mine = node.request
    end
    node.runtime = mine
    left = left - mine
  end
  while left > 0 and some > 0 do
    local sum = weigh(some)
    if sum <= 0 then break end
    split(left, sum, some)
    left, some = feed(some)
  end
end

-- The same as { [name] = amount }.
function M.redistribute(total, nodes, upstream)
  M.divide(total, nodes, #nodes, upstream)
  local runtime = {}
  for _, node in ipairs(nodes) do runtime[node.name] = node.runtime end
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

-- Whether a parent has enough for the minima of its children, in all resources that its list names.
function M.suffices(total, children)
  for name, have in pairs(total) do
    local sum = 0
    for i = 1, #children do sum = sum + (children[i].min[name] or 0) end
    if have < sum then return false end
  end
  return true
end

-- The effective minima if a parent has less than their sum: { [name] = list }. Minima that may not shrink are
-- served first, the others get proportional parts. total: the parent's list; children: {
-- name, min, scales }. Resources that the parent's list does not name are ignored.
function M.scaled_min(total, children, upstream)
  local fixed, shrinking = {}, {}
  for _, child in ipairs(children) do
    local sums = child.scales and shrinking or fixed
    for name, n in pairs(child.min) do sums[name] = (sums[name] or 0) + n end
  end

  local out = {}
  for _, child in ipairs(children) do
    if child.scales then
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
