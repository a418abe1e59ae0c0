-- sim_queue_spec.lua - the pods of a simulation that wait for a node: who is offered when, and how often.

local dice = require "kubelua.sim.dice"
local queue = require "kubelua.sim.queue"

local CLASSES = { "prod", "mid", "batch" }
local PRIORITY = { prod = 3, mid = 2, batch = 1 }

local function columns() return { class = {}, cpu = {}, memory = {} } end

local function put(q, pods, p, class, cpu, others)
  pods.class[p], pods.cpu[p], pods.memory[p] = class, cpu, 1
  q:add(p, others)
end

-- What a list says in which each pod is asked about by itself.
local function by_rule(pods, waits, others, room)
  table.sort(waits, function(a, b)
    local x, y = PRIORITY[pods.class[a]], PRIORITY[pods.class[b]]
    if x ~= y then return x > y end
    return a < b
  end)
  local placed, left, nowhere = {}, {}, {}
  for _, p in ipairs(waits) do
    local shape = queue.shape_of(pods.class[p], pods.cpu[p], pods.memory[p])
    if not others[p] and not nowhere[shape] and room(p) then
      placed[#placed + 1] = p
    else
      nowhere[shape] = nowhere[shape] or not others[p]
      left[#left + 1] = p
    end
  end
  return placed, left
end

describe("the queue of pods that wait", function()
  for seed = 1, 20 do
    it("offers them as if each were asked about by itself, seed " .. seed, function()
      local pods, others, waits = columns(), {}, {}
      local q, last = queue.new(pods), 0
      for round = 1, 30 do
        for k = 1, 12 do
          local p = last + 1
          last = p
          others[p] = dice.unit(seed, p, 1) < 0.1
          put(q, pods, p, CLASSES[1 + dice.unit(seed, p, 2) * 3 // 1 | 0], 1 + dice.unit(seed, p, 3) * 4 // 1,
            others[p])
          waits[#waits + 1] = p
          if k % 4 == 0 then
            local at = 1 + dice.unit(seed, p, 4) * #waits // 1 | 0
            q:remove(table.remove(waits, at))
          end
        end
        local function rooms()
          local free = dice.unit(seed, round, 5) * 30
          return function(p)
            if pods.cpu[p] > free then return false end
            free = free - pods.cpu[p]
            return true
          end
        end
        local want, left = by_rule(pods, waits, others, rooms())
        local placed, fits = {}, rooms()
        q:offer(function(p)
          local ok = fits(p)
          if ok then placed[#placed + 1] = p end
          return ok
        end)
        assert.same(want, placed)
        assert.same(left, q:list())
        assert.equal(#left, q.n)
        waits = left
      end
    end)
  end

  it("asks once about many of one shape that fit nowhere", function()
    local pods = columns()
    local q, asked = queue.new(pods), 0
    for p = 1, 1000 do put(q, pods, p, "batch", 1 + p % 2) end
    for _ = 1, 3 do q:offer(function() asked = asked + 1; return false end) end
    assert.equal(6, asked)
    assert.equal(1000, q.n)
  end)

  it("forgets whom it has not", function()
    local pods = columns()
    local q = queue.new(pods)
    q:remove(1)
    put(q, pods, 1, "prod", 1)
    q:remove(1)
    q:remove(1)
    assert.same({ 0, {} }, { q.n, q:list() })
    q:offer(function() error "nobody waits" end)
    assert.same({}, q.lines)
  end)
end)
