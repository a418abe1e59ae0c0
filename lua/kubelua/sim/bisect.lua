-- bisect.lua - the first decision in which two simulations differ. Both begin with the same cluster and the
-- same random numbers. So they are equal up to that decision, and the difference is caused by the policies
-- (or the setting).
--
-- A decision is a run of a key: its result and its writes.

local core = require "kubelua.core"
local plain = require "kubelua.plain"
local run = require "kubelua.sim.run"

local M = {}

---@class kubelua.SimDecision
---@field at string          the moment
---@field seconds number     the same, since the beginning
---@field controller string
---@field key string
---@field result string
---@field message string?
---@field wrote string[]     a line for each write, with its content

-- JSON with sorted member names: equal values give equal text, whatever the order of Lua's tables.
local function ordered(v)
  if type(v) ~= "table" then return core.encode(core.value(v, "a part")) end
  local parts = {}
  if #v > 0 then
    for i, x in ipairs(v) do parts[i] = ordered(x) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local names = {}
  for name in pairs(v) do names[#names + 1] = name end
  if #names == 0 then return core.encode(v) end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = ("%s:%s"):format(core.encode(name), ordered(v[name])) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function in_order(line)
  local words, content = line:match "^(.-) ([{[].*)$"
  local ok, v = pcall(core.decode, content or "")
  return ok and content and words .. " " .. ordered(core.copy(v)) or line
end

local function lines(text)
  local out = {}
  for line in (text or ""):gmatch "[^\n]+" do out[#out + 1] = in_order(line) end
  return out
end

-- An iterator over the decisions of a cell: a function that returns the next one, or nil.
local function decisions(cell)
  return coroutine.wrap(function()
    run.run(cell, nil, function(w)
      for _, r in ipairs(w.sim:told()) do
        coroutine.yield { at = w:timestamp(), seconds = w.time, controller = r.controller, key = r.key,
          result = r.result, message = plain.readable(r.message), wrote = lines(r.writes) }
      end
    end)
  end)
end

-- moved: moments are compared relative to the beginning of their own simulation.
local function text(d, moved)
  if not d then return "" end
  local at = moved and ("%g"):format(d.seconds) or d.at
  local all = table.concat({ at, d.controller, d.key, d.result, d.message or "",
    table.unpack(d.wrote) }, "\n")
  return moved and all:gsub("%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:[%d.]+Z", "-") or all
end

-- Whether two cells begin at different moments of a recording or a trace.
local function apart(a, b)
  local x, y = a.recording or a.trace, b.recording or b.trace
  return x ~= nil and y ~= nil and x.from ~= y.from
end

--- The n-th decision of a cell, from 1, or nil.
---@param cell kubelua.SimCell
---@param n integer
---@return kubelua.SimDecision?
function M.decision(cell, n)
  local next_one = decisions(cell)
  for _ = 1, n - 1 do
    if not next_one() then return nil end
  end
  return next_one()
end

--- Where two cells diverge: { n, a, b, moved }, the number of the first decision that differs and both
--- decisions (nil: that simulation had ended); or nil and the number of decisions. If the cells begin at two
--- moments of a recording, their decisions are compared without times.
---@param a kubelua.SimCell
---@param b kubelua.SimCell
---@param progress fun(seconds: number)?
function M.first(a, b, progress)
  local left, right, n, moved = decisions(a), decisions(b), 0, apart(a, b)
  while true do
    n = n + 1
    local x, y = left(), right()
    if not x and not y then return nil, n - 1 end
    if text(x, moved) ~= text(y, moved) then return { n = n, a = x, b = y, moved = moved } end
    if progress then progress(x.seconds) end
  end
end

local function said(name, d)
  if not d then return { name .. " has ended" } end
  local out = { ("%s: %s %s at %s ended with \"%s\"%s"):format(name, d.controller, d.key, d.at, d.result,
    d.message and ": " .. d.message or "") }
  for _, line in ipairs(d.wrote) do out[#out + 1] = "  wrote: " .. line end
  if #d.wrote == 0 then out[#out + 1] = "  wrote nothing" end
  return out
end

--- The text for a terminal.
---@param found { n: integer, a: kubelua.SimDecision?, b: kubelua.SimDecision? }
---@param names string[]  of both
---@return string
function M.text(found, names)
  local out = { found.n == 1 and "the first decision differs"
    or ("the first %d decisions are the same, the next one differs"):format(found.n - 1) }
  table.move(said(names[1], found.a), 1, 1 + (found.a and math.max(1, #found.a.wrote) or 0), #out + 1, out)
  table.move(said(names[2], found.b), 1, 1 + (found.b and math.max(1, #found.b.wrote) or 0), #out + 1, out)
  local one = found.b or found.a
  out[#out + 1] = ("why: the same command with --explain %s --at %ds, once for each"):format(one.key,
    math.max(1, one.seconds // 1))
  return table.concat(out, "\n") .. "\n"
end

--- A case for `make fixtures`: the second cell is expected to decide as the first one did; with two moments,
--- the first cell is expected to repeat its decision.
---@param cell kubelua.SimCell  that one
---@return string JSON
function M.fixture(found, cell)
  local want = found.a
  local what = found.moved and "two moments of a recording differ"
    or "a policy differs from the one before it"
  return core.encode(core.value({
    calc = "decision",
    description = ("The first decision of a simulation in which %s. Paths are from where the simulation was \z
      run."):format(what),
    cases = { { name = ("%s %s at %s"):format(want.controller, want.key, want.at),
      source = "kubelua sim --bisect",
      input = { cell = cell, n = found.n },
      expect = { decision = { at = want.at, controller = want.controller, key = want.key,
        result = want.result, wrote = core.array(want.wrote) } } } },
  }, "a case")) .. "\n"
end

return M
