--- measure.lua - what one call costs: nanoseconds of processor time (the least of several runs, collection
--- included) and bytes
-- that Lua allocated (collection kept out). For the host's Lua and for the sandbox of a controller alike.

local M = {}

local RUNS = 9
local RUN_FOR = 0.01      -- seconds; far above what os.clock can tell apart
local BYTES_FOR = 60000   -- a batch of this many bytes starts no collection in a heap that was just collected

local function timed(fn, n)
  local began = os.clock()
  fn(n)
  return os.clock() - began
end

local function count() return collectgarbage "count" * 1024 end

-- Two collections: the first runs finalisers, the second takes what they let go.
local function settle()
  collectgarbage()
  collectgarbage()
end

-- Where the collector can be stopped (not in the sandbox) it is, elsewhere the batch is small enough.
local function bytes(fn)
  fn(1)                   -- what is made once is made
  settle()
  local before = count()
  fn(1)
  local one = count() - before
  local n = math.max(1, math.min(1000, BYTES_FOR // math.max(1, one) // 1 | 0))
  settle()
  local stopped = pcall(collectgarbage, "stop")
  before = count()
  fn(n)
  local b = (count() - before) / n
  if stopped then collectgarbage "restart" end
  return b
end

--- fn(n) does the thing n times; `per` things are done each time.
---@return number ns, number bytes
function M.cost(fn, per)
  per = per or 1
  local b = bytes(fn)
  local n = 1
  while timed(fn, n) < RUN_FOR do n = n * 2 end
  local best = math.huge
  for _ = 1, RUNS do best = math.min(best, timed(fn, n)) end
  return best / n / per * 1e9, b / per
end

--- Rows {name, fn, per} as text, one line each.
function M.rows(rows)
  local out = {}
  for _, row in ipairs(rows) do
    local ns, b = M.cost(row[2], row[3])
    out[#out + 1] = ("%-58s %10.0f ns %10.0f B"):format(row[1], ns, b)
  end
  return table.concat(out, "\n")
end

return M
