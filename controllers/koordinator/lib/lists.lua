-- lists.lua - resource lists as tables of integers: { name = amount }, cpu in milli-cores, all others in
-- whole units. Quantities become integers only here, rounded away from zero like Value() and MilliValue() in
-- Koordinator; after that, arithmetic is exact. An absent name is not 0: it has no limit, or is not
-- requested.

local kube = require "kubelua"
local fields = require "fields"

local M = {}

local BINARY = { memory = true, ["ephemeral-storage"] = true, storage = true }

-- A cache of the integers of quantities, as the same texts recur. It is emptied when it is full.
local KEPT = 10000
local millis, values, n_kept = {}, {}, 0

-- The integer of a quantity.
function M.amount(name, quantity)
  local known = name == "cpu" and millis or values
  local n = known[quantity]
  if n then return n end
  local q = kube.qty(quantity)
  n = name == "cpu" and q:milli() or q:value()
  if type(quantity) == "string" then known[quantity], n_kept = n, n_kept + 1 end
  if n_kept == KEPT then millis, values, n_kept = {}, {}, 0 end
  return n
end

local function cell(name, path) return ('%s["%s"]'):format(path, name) end

-- The integers of a resource in the items of a list, which have their resource lists at `path`; nil where an
-- item has none.
function M.given(name, list, path)
  local out = kube.columns(list, cell(name, path))
  for i = 1, #list do out[i] = out[i] and M.amount(name, out[i]) end
  return out
end

local function whole(milli) return milli < 0 and -((-milli + 999) // 1000) or (milli + 999) // 1000 end

-- A sum that does not fit an integer is the largest one: some quotas have no limit.
local function plus(a, b) return b > 0 and a > math.maxinteger - b and math.maxinteger or a + b end

-- The sum of a resource over the items of a list, which have their resource lists at `path`. Koordinator adds
-- quantities. So does this, in thousandths, and rounds the sum to whole units, or for cpu each quantity to
-- thousandths. Only if these do not fit 64 bits, all quantities are rounded before.
function M.sum(name, list, path)
  local fits, milli = pcall(kube.milli_sums, list, cell(name, path))
  if fits then return name == "cpu" and milli or whole(milli) end
  local n = 0
  for _, amount in pairs(M.given(name, list, path)) do n = plus(n, amount) end
  return n
end

-- The list of a Kubernetes resource list or of a pod's requests; empty for nil.
function M.of(list)
  local out = {}
  for name, quantity in pairs(list or {}) do out[name] = M.amount(name, quantity) end
  return out
end

-- An amount as Kubernetes prints it.
function M.text(name, n)
  if name == "cpu" then return kube.milli(n):canonical() end
  local binary = BINARY[name] or name:find("memory", 1, true) or name:find("^hugepages%-")
  if binary and n % 1024 == 0 then return kube.qty(n // 1024 .. "Ki"):canonical() end
  return kube.qty(n):canonical()
end

-- The list as a Kubernetes resource list.
function M.texts(list)
  local out = {}
  for name, n in pairs(list) do out[name] = M.text(name, n) end
  return out
end

-- For annotations: JSON with sorted names.
function M.json(list) return kube.encode(kube.object(M.texts(list))) end

-- The list in an annotation; nil and the reason when it cannot be parsed.
function M.parse(text)
  local raw, why = fields.json(text)
  if not raw then return nil, why end
  local ok, list = pcall(M.of, raw)
  if not ok then return nil, tostring(list) end
  return list
end

M.names = fields.names

function M.copy(list)
  local out = {}
  for name, n in pairs(list) do out[name] = n end
  return out
end

function M.add(a, b)
  local out = M.copy(a)
  M.accumulate(out, b)
  return out
end

-- Adds `list` to `sum`, which is changed.
function M.accumulate(sum, list)
  for name, n in pairs(list) do sum[name] = plus(sum[name] or 0, n) end
end

function M.sub(a, b)
  local out = M.copy(a)
  for name, n in pairs(b) do out[name] = (out[name] or 0) - n end
  return out
end

-- The larger amount of each name; a name that only one list has keeps its amount.
function M.max(a, b)
  local out = M.copy(a)
  for name, n in pairs(b) do
    if out[name] == nil or n > out[name] then out[name] = n end
  end
  return out
end

-- `list` with each amount reduced to its limit; names without a limit are unchanged.
function M.cap(list, limit)
  local out = {}
  for name, n in pairs(list) do out[name] = limit[name] and math.min(n, limit[name]) or n end
  return out
end

-- Only the names that `names` has as keys.
function M.mask(list, names)
  local out = {}
  for name, n in pairs(list) do
    if names[name] ~= nil then out[name] = n end
  end
  return out
end

-- Whether `list` is at most `limit` in the names that both have.
function M.fits(list, limit)
  for name, n in pairs(list) do
    if n > (limit[name] or n) then return false end
  end
  return true
end

-- The same, and the names in which it is not, sorted.
function M.within(list, limit)
  local over = {}
  for name, n in pairs(list) do
    if limit[name] ~= nil and n > limit[name] then over[#over + 1] = name end
  end
  table.sort(over)
  return #over == 0, over
end

-- The names below zero, sorted.
function M.negative(list)
  local out = {}
  for name, n in pairs(list) do
    if n < 0 then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

function M.is_zero(list)
  for _, n in pairs(list) do
    if n ~= 0 then return false end
  end
  return true
end

-- Whether both have the same amounts; here an absent name is 0.
function M.same(a, b) return M.is_zero(M.sub(a, b)) end

-- For messages: "cpu:500m,memory:1Gi".
function M.show(list)
  local parts = {}
  for i, name in ipairs(M.names(list)) do parts[i] = name .. ":" .. M.text(name, list[name]) end
  return #parts > 0 and table.concat(parts, ",") or "<empty>"
end

return M
