-- take.lua - chooses processors for a pod among the free ones.
--
--   FullPCPUs      whole cores: in one NUMA node, else in one socket, else in the sockets with the most free
--   SpreadByPCPUs  one processor of each core first: in one NUMA node, else in one socket, else anywhere
--
-- Among nodes or sockets with enough free processors, LeastAllocated takes the one with the most,
-- MostAllocated the one with the fewest. An exclusive pod (PCPULevel, NUMANodeLevel) avoids the cores or
-- nodes of other exclusive pods of the same level while others suffice.

local M = {}

local function by_id(a, b) return a < b end

-- The state of the search: { topology, free = { [id] = cpu }, n = number of missing processors, out = ids,
-- exclusive, cores, nodes = { [id] = true } of exclusive pods, most = whether the fullest comes first }.
local function begin(o)
  local acc = { topology = o.topology, free = {}, n = o.n, out = {}, exclusive = o.exclusive or "",
    cores = {}, nodes = {}, most = o.strategy == "MostAllocated" }
  for id in pairs(o.available) do acc.free[id] = o.topology.cpus[id] end
  for id, exclusive in pairs(o.allocated or {}) do
    local cpu = o.topology.cpus[id]
    if cpu and exclusive == "PCPULevel" then acc.cores[cpu.core] = true end
    if cpu and exclusive == "NUMANodeLevel" then acc.nodes[cpu.node] = true end
  end
  return acc
end

local function take(acc, ids, from, to)
  for i = from or 1, to or #ids do
    local cpu = acc.topology.cpus[ids[i]]
    acc.out[#acc.out + 1] = cpu.id
    acc.free[cpu.id] = nil
    acc.n = acc.n - 1
    if acc.exclusive == "PCPULevel" then acc.cores[cpu.core] = true end
    if acc.exclusive == "NUMANodeLevel" then acc.nodes[cpu.node] = true end
  end
end

local function core_closed(acc, cpu) return acc.exclusive == "PCPULevel" and acc.cores[cpu.core] end
local function node_closed(acc, cpu) return acc.exclusive == "NUMANodeLevel" and acc.nodes[cpu.node] end

-- The free processors for which closed(cpu) is false, as { core, node, socket }, each { [number] = ids }.
local function index(acc, closed)
  local out = { core = {}, node = {}, socket = {} }
  for id, cpu in pairs(acc.free) do
    if not closed(cpu) then
      for what, lists in pairs(out) do
        local list = lists[cpu[what]] or {}
        lists[cpu[what]], list[#list + 1] = list, id
      end
    end
  end
  for _, lists in pairs(out) do
    for _, list in pairs(lists) do table.sort(list, by_id) end
  end
  return out
end

-- Compares numbers of free processors: the strategy's first comes first.
local function before(acc, a, b)
  if acc.most then return a < b end
  return a > b
end

-- The groups, sorted by ranks(number), a list of counts, and then by their number.
local function ordered(acc, groups, ranks)
  local order, rank = {}, {}
  for number in pairs(groups) do
    order[#order + 1] = number
    rank[number] = ranks(number)
  end
  table.sort(order, function(a, b)
    for i, n in ipairs(rank[a]) do
      if n ~= rank[b][i] then return before(acc, n, rank[b][i]) end
    end
    return a < b
  end)
  local out = {}
  for i, number in ipairs(order) do out[i] = groups[number] end
  return out
end

local function socket_of(acc, ids) return acc.topology.cpus[ids[1]].socket end

-- ---------------------------------------------------------------- whole cores

-- The ids of whole free cores, by `what` ("node" or "socket"), core by core.
local function whole_cores(acc, what, closed)
  local known, groups, cores = index(acc, closed), {}, {}
  for core, ids in pairs(known.core) do
    if #ids == acc.topology.per_core then cores[#cores + 1] = { core, ids } end
  end
  table.sort(cores, function(a, b) return a[1] < b[1] end)
  for _, one in ipairs(cores) do
    local ids = one[2]
    local number = acc.topology.cpus[ids[1]][what]
    local list = groups[number] or {}
    groups[number] = list
    for _, id in ipairs(ids) do list[#list + 1] = id end
  end
  return ordered(acc, groups, function(number)
    local ids = groups[number]
    return what == "node" and { #ids, #known.socket[socket_of(acc, ids)] } or { #ids }
  end)
end

local function never() return false end

-- Nodes of other exclusive pods are tried last.
local function full(acc)
  local topology = acc.topology
  if acc.n <= topology.per_node then
    for _, closed in ipairs { function(cpu) return node_closed(acc, cpu) end, never } do
      for _, ids in ipairs(whole_cores(acc, "node", closed)) do
        if #ids >= acc.n then return take(acc, ids, 1, acc.n) end
      end
    end
  end
  local sockets = whole_cores(acc, "socket", never)
  if acc.n <= topology.per_socket then
    for _, ids in ipairs(sockets) do
      if #ids >= acc.n then return take(acc, ids, 1, acc.n) end
    end
  end
  -- Across sockets: first whole sockets, the largest first, then cores of the smallest others.
  local place, left = {}, {}
  for i, ids in ipairs(sockets) do place[ids] = i end
  table.sort(sockets, function(a, b)
    if #a ~= #b then return #a > #b end
    return place[a] < place[b]
  end)
  for _, ids in ipairs(sockets) do
    if acc.n == 0 then return end
    if acc.n >= #ids then take(acc, ids) else left[#left + 1] = ids end
  end
  for i, ids in ipairs(left) do place[ids] = i end
  table.sort(left, function(a, b)
    if #a ~= #b then return #a < #b end
    return place[a] < place[b]
  end)
  for _, ids in ipairs(left) do
    for i = 1, #ids, topology.per_core do
      if acc.n < topology.per_core then return end
      take(acc, ids, i, i + topology.per_core - 1)
    end
  end
end

-- ---------------------------------------------------------------- single processors

-- The first of each core in the first round, the second in the second, and so on.
local function spread(acc, ids)
  if #ids <= acc.topology.per_core then return ids end
  local out, left = {}, ids
  while #left > 0 do
    local seen, later = {}, {}
    for _, id in ipairs(left) do
      local core = acc.topology.cpus[id].core
      if seen[core] then later[#later + 1] = id else out[#out + 1], seen[core] = id, true end
    end
    left = later
  end
  return out
end

local function one_of_each_core(acc, ids)
  local out, seen = {}, {}
  for _, id in ipairs(ids) do
    local core = acc.topology.cpus[id].core
    if not seen[core] then out[#out + 1], seen[core] = id, true end
  end
  return out
end

local function singles(acc, what, exclusive)
  local known = index(acc, function(cpu)
    return exclusive and (core_closed(acc, cpu) or what == "node" and node_closed(acc, cpu))
  end)
  local groups = known[what]
  local free = {}
  for number, ids in pairs(groups) do
    free[number] = #ids
    if exclusive then groups[number] = one_of_each_core(acc, ids) end
  end
  return ordered(acc, groups, function(number)
    local ids = groups[number]
    return what == "node" and { free[number], #known.socket[socket_of(acc, ids)] } or { #ids }
  end)
end

-- In one node, else in one socket.
local function together(acc)
  for _, what in ipairs { "node", "socket" } do
    if acc.n <= acc.topology["per_" .. what] then
      for _, exclusive in ipairs { true, false } do
        for _, ids in ipairs(singles(acc, what, exclusive)) do
          if #ids >= acc.n then return take(acc, spread(acc, ids), 1, acc.n) end
        end
      end
    end
  end
end

-- All free processors, those of sockets with already taken ones first.
local function anywhere(acc, exclusive)
  local known = index(acc, function(cpu)
    return exclusive and (core_closed(acc, cpu) or node_closed(acc, cpu))
  end)
  local have, cores, rank, out = {}, {}, {}, {}
  for _, id in ipairs(acc.out) do
    local socket = acc.topology.cpus[id].socket
    have[socket] = (have[socket] or 0) + 1
  end
  local sign = acc.most and 1 or -1
  for core, ids in pairs(known.core) do
    local cpu = acc.topology.cpus[ids[1]]
    cores[#cores + 1] = core
    rank[core] = { -(have[cpu.socket] or 0), sign * #known.socket[cpu.socket], sign * #known.node[cpu.node],
      #ids, cpu.socket, core }
  end
  table.sort(cores, function(a, b)
    for i, n in ipairs(rank[a]) do
      if n ~= rank[b][i] then return n < rank[b][i] end
    end
    return false
  end)
  for _, core in ipairs(cores) do table.move(known.core[core], 1, #known.core[core], #out + 1, out) end
  return out
end

-- ---------------------------------------------------------------- the search

-- o: { topology, available = set, allocated = { [id] = exclusive policy of its pod }, n, bind = "FullPCPUs",
-- "SpreadByPCPUs" or "", exclusive, strategy }. Returns a list of n ids, ascending; nil when there are not
-- enough.
function M.take(o)
  local acc = begin(o)
  local free = 0
  for _ in pairs(acc.free) do free = free + 1 end
  if acc.n > free then return nil end
  local whole = o.bind == "FullPCPUs"
  if acc.n > 0 and (whole or o.topology.per_core == 1) then full(acc) end
  if acc.n > 0 and not whole then together(acc) end
  for _, exclusive in ipairs { true, false } do
    if acc.n > 0 then
      local ids = spread(acc, anywhere(acc, exclusive))
      take(acc, ids, 1, math.min(acc.n, #ids))
    end
  end
  table.sort(acc.out)
  return acc.out
end

return M
