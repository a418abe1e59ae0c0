-- scheduler.lua - places pending pods: a pod fits where the node has room for all of its requests, is ready,
-- and is not loaded above a threshold (LoadAwareScheduling: reported use, pods placed since, and the pod
-- itself); the node with the most room is chosen.

local queue = require "kubelua.sim.queue"

local M = {}

-- LoadAwareScheduling's estimated scaling factors: the share of its request that a pod is assumed to use.
local ESTIMATE_CPU, ESTIMATE_MEMORY = 0.85, 0.70

local function fits(nodes, i, class, cpu, memory)
  if class == "prod" then
    return nodes.prod_asked[i] + cpu <= nodes.cpu[i]
      and nodes.prod_memory_asked[i] + memory <= nodes.memory[i]
  end
  return nodes.batch_asked[i] + cpu <= nodes.batch_cpu[i]
    and nodes.batch_memory_asked[i] + memory <= nodes.batch_memory[i]
end

--- The reasons why a node is rejected, in the order of the checks.
M.REASONS = { "not ready", "unschedulable", "insufficient resources", "load above the threshold" }

-- The score of a node, or nil and the number of the reason in M.REASONS.
local function judge(w, i, class, cpu, memory)
  local nodes, s = w.nodes, w.settings
  if not nodes.ready[i] then return nil, M.REASONS[1] end
  if nodes.cordoned and nodes.cordoned[i] then return nil, M.REASONS[2] end
  if not fits(nodes, i, class, cpu, memory) then return nil, M.REASONS[3] end
  local load = (nodes.reported_cpu[i] + nodes.since_cpu[i] + cpu * ESTIMATE_CPU) / nodes.cpu[i]
  local full = (nodes.reported_memory[i] + nodes.since_memory[i] + memory * ESTIMATE_MEMORY) / nodes.memory[i]
  if load > s.load_cpu or full > s.load_memory then return nil, M.REASONS[4] end
  return 2 - load - full
end

--- How many nodes each filter rejects for a pod.
---@return table<string, integer>
function M.refusals(w, p)
  local pods, reasons = w.pods, {}
  for i = 1, w.nodes.n do
    local _, why = judge(w, i, pods.class[p], pods.cpu[p], pods.memory[p])
    if why then reasons[why] = (reasons[why] or 0) + 1 end
  end
  return reasons
end

-- ---------------------------------------------------------------- the best node of many

-- Pods of one shape (class, cpu, memory) get the same scores. While the pods of one moment are placed, only
-- nodes that got a pod are scored again: a rank has each node's score, and the best of each block of nodes.
-- `got`: the nodes that got a pod, in order; each rank knows how many of them it has processed.
local BLOCK = 64
-- To score one node again and to find the best of its block costs what it costs to score about eight nodes.
local AGAIN = 8

-- Finds the best node of block b, the first among equals; false if there is none.
local function rank_block(rank, b)
  local scores, best, score = rank.scores, false, nil
  for i = (b - 1) * BLOCK + 1, math.min(b * BLOCK, #scores) do
    local here = scores[i]
    if here and (not score or here > score) then best, score = i, here end
  end
  rank.best[b] = best
end

local function new_rank(w, class, cpu, memory, got)
  local rank = { class = class, cpu = cpu, memory = memory, scores = {}, best = {}, seen = #got }
  for i = 1, w.nodes.n do rank.scores[i] = judge(w, i, class, cpu, memory) or false end
  for b = 1, (w.nodes.n + BLOCK - 1) // BLOCK do rank_block(rank, b) end
  return rank
end

-- The up-to-date rank of a pod's shape.
local function rank_of(w, p, ranks, shape, got)
  local class, cpu, memory = w.pods.class[p], w.pods.cpu[p], w.pods.memory[p]
  local rank = ranks[shape]
  if not rank or (#got - rank.seen) * AGAIN > w.nodes.n then
    rank = new_rank(w, class, cpu, memory, got)
    ranks[shape] = rank
  end
  for k = rank.seen + 1, #got do
    local i = got[k]
    rank.scores[i] = judge(w, i, class, cpu, memory) or false
    rank_block(rank, (i - 1) // BLOCK + 1)
  end
  rank.seen = #got
  return rank
end

local function best_of(rank)
  local scores, best = rank.scores, nil
  for _, i in ipairs(rank.best) do
    if i and (not best or scores[i] > scores[best]) then best = i end
  end
  return best
end

--- Places all pods that fit. If one finds no node, neither does the next of its shape.
---@param w kubelua.SimWorld
---@return integer placed
function M.run(w)
  if w.pending.n == 0 then return 0 end
  local pods, nodes, ranks, got = w.pods, w.nodes, {}, {}
  w.pending:offer(function(p, shape)
    local i = best_of(rank_of(w, p, ranks, shape, got))
    if not i then return false end
    w:place(p, i)
    nodes.since_cpu[i] = nodes.since_cpu[i] + pods.cpu[p] * ESTIMATE_CPU
    nodes.since_memory[i] = nodes.since_memory[i] + pods.memory[p] * ESTIMATE_MEMORY
    got[#got + 1] = i
    return true
  end)
  return #got
end

-- ---------------------------------------------------------------- nodes that could go

-- The free room of each ready node, by requests. Prod pods that move to a node reduce what it lends to batch
-- pods.
local function rooms(nodes)
  local out = {}
  for i = 1, nodes.n do
    if nodes.ready[i] then
      out[i] = { prod = { nodes.cpu[i] - nodes.prod_asked[i], nodes.memory[i] - nodes.prod_memory_asked[i] },
        batch = { nodes.batch_cpu[i] - nodes.batch_asked[i],
          nodes.batch_memory[i] - nodes.batch_memory_asked[i] } }
    end
  end
  return out
end

-- The first node from `i` on that has room; n + 1 if there is none.
local function first_with_room(room, class, cpu, memory, i, n)
  while i <= n do
    local here = room[i] and room[i][class]
    if here and here[1] >= cpu and here[2] >= memory then break end
    i = i + 1
  end
  return i
end

local function take(room, class, cpu, memory)
  room.batch[1], room.batch[2] = room.batch[1] - cpu, room.batch[2] - memory
  if class == "prod" then room.prod[1], room.prod[2] = room.prod[1] - cpu, room.prod[2] - memory end
end

-- Moves a node's pods, largest first, to nodes with room. False if one fits nowhere; nothing has moved then.
-- Room only shrinks while nodes are emptied. So `from` has, for each shape, the first node where it may still
-- fit, and each shape passes each node once.
local function move(w, node, room, from)
  local pods, list, out = w.pods, { table.unpack(w.nodes.pods[node]) }, {}
  table.sort(list, function(a, b)
    if pods.cpu[a] ~= pods.cpu[b] then return pods.cpu[a] > pods.cpu[b] end
    return a < b
  end)
  for _, p in ipairs(list) do
    local class, cpu, memory = pods.class[p] == "prod" and "prod" or "batch", pods.cpu[p], pods.memory[p]
    local shape = queue.shape_of(class, cpu, memory)
    local to = first_with_room(room, class, cpu, memory, from[shape] or 1, w.nodes.n)
    from[shape] = to
    if to > w.nodes.n then
      for _, m in ipairs(out) do take(room[m[1]], m[2], -m[3], -m[4]) end
      return false
    end
    take(room[to], class, cpu, memory)
    out[#out + 1] = { to, class, cpu, memory }
  end
  return true
end

--- How many nodes could be removed, one after another and those with the fewest requests first, with all
--- their pods moved to the remaining ones. It stops at the first node that cannot be emptied.
---@param w kubelua.SimWorld
---@return integer
function M.spare(w)
  local nodes, room, order, from = w.nodes, rooms(w.nodes), {}, {}
  for i = 1, nodes.n do order[#order + 1] = room[i] and i or nil end
  local function asked(i) return (nodes.prod_asked[i] + nodes.batch_asked[i]) / nodes.cpu[i] end
  table.sort(order, function(a, b)
    if asked(a) ~= asked(b) then return asked(a) < asked(b) end
    return a < b
  end)
  for gone, i in ipairs(order) do
    local mine = room[i]
    room[i] = nil
    if gone == #order or not move(w, i, room, from) then
      room[i] = mine
      return gone - 1
    end
  end
  return 0
end

--- How it differs from a real scheduler: ours, or one under test.
M.NOT_MODELLED = {
  "selectors, affinity, taints, gangs, quotas, reservations and preemption",
  "the scheduler's own delays: a pod that fits is placed at once",
}
M.NOT_MODELLED_OF_OTHERS = {
  "preemption, and the time that the scheduler's decisions take",
}

return M
