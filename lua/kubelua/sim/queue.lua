-- queue.lua - the pods that wait for a node: first those of the higher class, then those that came first.
-- Pods with one shape (class, cpu, memory) have the same chances. They wait in one line, so that a moment at
-- which none of them fits takes one look, however many there are.

local M = {}

local PRIORITY = { prod = 3, mid = 2, batch = 1 }

---@class kubelua.SimQueue
---@field n integer  how many pods wait
local Q = {}
Q.__index = Q

--- A pod's shape: pods with the same shape get the same scores.
function M.shape_of(class, cpu, memory) return ("%s %a %a"):format(class, cpu, memory) end

--- pods: the columns class, cpu and memory.
---@return kubelua.SimQueue
function M.new(pods) return setmetatable({ pods = pods, lines = {}, order = {}, line_of = {}, n = 0 }, Q) end

--- Adds pod p; pods come in the order of their numbers. others: a scheduler under test places it.
---@param p integer
---@param others boolean?
function Q:add(p, others)
  local pods = self.pods
  local shape = M.shape_of(pods.class[p], pods.cpu[p], pods.memory[p])
  local key = others and "others " .. shape or shape
  local line = self.lines[key]
  if not line then
    line = { key = key, shape = shape, others = others or false, priority = PRIORITY[pods.class[p]],
      first = 1, last = 0 }
    self.lines[key], self.order[#self.order + 1] = line, line
  end
  line.last = line.last + 1
  line[line.last], self.line_of[p], self.n = p, line, self.n + 1
end

-- The place of p in a line, whose numbers ascend.
local function place_of(line, p)
  local low, high = line.first, line.last
  while low < high do
    local middle = (low + high) // 2
    if line[middle] < p then low = middle + 1 else high = middle end
  end
  return low
end

--- Removes pod p, if it waits.
---@param p integer
function Q:remove(p)
  local line = self.line_of[p]
  if not line then return end
  local at = place_of(line, p)
  if at == line.first then
    line[at], line.first = nil, at + 1
  else
    table.move(line, at + 1, line.last + 1, at)
    line.last = line.last - 1
  end
  self.line_of[p], self.n = nil, self.n - 1
end

local function before(a, b)
  if a.priority ~= b.priority then return a.priority > b.priority end
  return a[a.first] < b[b.first]
end

-- Forgets empty lines, and sorts the rest by their first pods.
local function sort(self)
  local order = {}
  for _, line in ipairs(self.order) do
    if line.first <= line.last then
      order[#order + 1] = line
    else
      self.lines[line.key] = nil
    end
  end
  table.sort(order, before)
  self.order = order
end

--- Offers the pods in turn. try(p, shape) says whether it has placed the pod, which then no longer waits; if
--- not, no other pod of its shape is offered. Pods of other schedulers are not offered.
---@param try fun(p: integer, shape: string): boolean
function Q:offer(try)
  sort(self)
  local order, k = table.move(self.order, 1, #self.order, 1, {}), 1
  while order[k] do
    local line = order[k]
    local p = line[line.first]
    if line.others or not try(p, line.shape) then
      k = k + 1
    else
      self:remove(p)
      if line.first > line.last then
        k = k + 1
      else -- the next one's turn may come after pods of other shapes
        local at = k
        while order[at + 1] and before(order[at + 1], line) do
          order[at], at = order[at + 1], at + 1
        end
        order[at] = line
      end
    end
  end
end

--- All of them, in turn.
---@return integer[]
function Q:list()
  local out, line_of = {}, self.line_of
  for _, line in ipairs(self.order) do table.move(line, line.first, line.last, #out + 1, out) end
  table.sort(out, function(a, b)
    local x, y = line_of[a].priority, line_of[b].priority
    if x ~= y then return x > y end
    return a < b
  end)
  return out
end

return M
