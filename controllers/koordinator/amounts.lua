-- amounts.lua - cpu and memory of a node, a pod or a zone as two integers: { cpu = milli-cores, memory =
-- milli-bytes }. Quantities become integers here, at the edge, and arithmetic is exact from there on.
-- Memory is counted in thousandths of a byte because sharing it out among NUMA zones leaves fractions.
-- Where Koordinator multiplies by a ratio it does so in float64 and cuts toward zero; Lua's floats are the
-- same, so the results are the same.

local kube = require "kubelua"

local M = {}

local MILLI = 1000
local MILLI_PER_GIGA = 1000000000 * MILLI

local ceil, floor, max, min, tointeger = math.ceil, math.floor, math.max, math.min, math.tointeger

local function trunc(x)
  return tointeger(x < 0 and ceil(x) or floor(x)) or error(("%s does not fit an integer"):format(x), 2)
end

-- Rounds away from zero, as Quantity.Value() and ScaledValue() do.
local function scale_down(n, unit)
  if n < 0 then return -((-n + unit - 1) // unit) end
  return (n + unit - 1) // unit
end

-- Thousandths of one quantity; what is absent counts as nothing.
function M.milli(q) return q == nil and 0 or kube.to_milli(q) end

local function milli(list, name) return M.milli(list and list[name]) end

-- The amounts in a Kubernetes resource list; what is absent counts as nothing.
function M.of(list) return { cpu = milli(list, "cpu"), memory = milli(list, "memory") } end

function M.new(cpu, memory) return { cpu = cpu or 0, memory = memory or 0 } end
function M.add(a, b) return { cpu = a.cpu + b.cpu, memory = a.memory + b.memory } end

-- Adds to `sum` in place; the caller must own that table.
function M.accumulate(sum, a)
  sum.cpu, sum.memory = sum.cpu + a.cpu, sum.memory + a.memory
end

function M.sub(a, b) return { cpu = a.cpu - b.cpu, memory = a.memory - b.memory } end
function M.max(a, b) return { cpu = max(a.cpu, b.cpu), memory = max(a.memory, b.memory) } end
function M.min(a, b) return { cpu = min(a.cpu, b.cpu), memory = min(a.memory, b.memory) } end
function M.floor0(a) return { cpu = max(a.cpu, 0), memory = max(a.memory, 0) } end

-- An equal share for each of `n`, rounded up so that the shares never add up to less than the whole.
function M.share(a, n)
  return { cpu = trunc(ceil(a.cpu / n)), memory = trunc(ceil(a.memory / n)) }
end

function M.bytes(memory) return scale_down(memory, MILLI) end

-- cpu is scaled in milli-cores and memory in whole bytes, each cut toward zero.
function M.scale_cpu(cpu, ratio) return trunc(cpu * ratio) end
function M.scale_memory(memory, ratio) return trunc(M.bytes(memory) * ratio) * MILLI end
function M.scale(a, cpu_ratio, memory_ratio)
  return { cpu = M.scale_cpu(a.cpu, cpu_ratio), memory = M.scale_memory(a.memory, memory_ratio) }
end

-- For messages: gigabytes as Go's ScaledValue(Giga), and a ratio in the shortest digits that read back the
-- same.
function M.giga(memory) return scale_down(memory, MILLI_PER_GIGA) end

function M.ratio(x)
  if x == 1 then return "1" end
  for digits = 1, 17 do
    local text = ("%." .. digits .. "g"):format(x)
    if tonumber(text) == x then return text end
  end
end

return M
