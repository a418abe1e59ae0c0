-- scopes.lua - GPUs that are near each other: behind one PCIe switch, or else in one NUMA node, or else
-- anywhere on the node. The smallest scope wins that has enough of them; of several, the one that is in use
-- already, so that others stay free. A hint's requiredTopologyScope limits how wide the scope may be.

local fields = require "fields"
local requests = require "scheduler.devices.request"

local M = {}

local SCOPES = requests.SCOPES

M.FEW = "Insufficient GPU Devices"

local function has(free, each)
  for name, n in pairs(each) do
    if n > (free[name] or 0) then return false end
  end
  return true
end

M.has = has

-- The scopes of a stock: { level, minors, within = list of scopes }; nil: the Device does not say where each
-- GPU is.
local function tree_of(stock)
  local all, by_node = { level = SCOPES.Node, minors = fields.names(stock.about) }, {}
  for _, minor in ipairs(all.minors) do
    local about = stock.about[minor]
    if not about.placed then return nil end
    by_node[about.node] = by_node[about.node] or {}
    local switches = by_node[about.node]
    switches[about.pcie] = switches[about.pcie] or {}
    table.insert(switches[about.pcie], minor)
  end
  all.within = {}
  for i, node in ipairs(fields.names(by_node)) do
    local one = { level = SCOPES.NUMANode, minors = {}, within = {} }
    for k, pcie in ipairs(fields.names(by_node[node])) do
      local minors = by_node[node][pcie]
      one.within[k] = { level = SCOPES.PCIe, minors = minors, within = {} }
      table.move(minors, 1, #minors, #one.minors + 1, one.minors)
    end
    table.sort(one.minors)
    all.within[i] = one
  end
  return #all.minors > 0 and all or nil
end

local function in_use(scope, pool)
  for _, minor in ipairs(scope.minors) do
    if pool.busy[minor] then return 1 end
  end
  return 0
end

-- The GPUs of the scope for the request: the first whole ones, or the shared one with the best score; and
-- that score.
local function pick(scope, pool, request, score)
  local out, best, most = {}, nil, -1
  for _, minor in ipairs(scope.minors) do
    if pool.open[minor] and has(pool.free[minor], request.each) then
      if not request.shared then
        out[#out + 1] = minor
        if #out == request.count then return out, most end
      else
        local points = score(minor)
        if points > most then best, most = minor, points end
      end
    end
  end
  if best then return { best }, most end
  return nil
end

local function better(a, b, shared)
  if a.level ~= b.level then return a.level > b.level end
  if a.in_use ~= b.in_use then return a.in_use > b.in_use end
  return shared and a.points > b.points
end

-- The best choice in the scope, { minors, level, in_use, points }, or nil. above: the number of scopes around
-- this one with GPUs in use.
local function within(scope, pool, request, score, above)
  if #scope.minors < request.count then return nil end
  local used, best = above + in_use(scope, pool), nil
  for _, narrower in ipairs(scope.within) do
    local one = within(narrower, pool, request, score, used)
    if one and (not best or better(one, best, request.shared)) then best = one end
  end
  if best or (request.scope or 0) > scope.level then return best end
  local minors, points = pick(scope, pool, request, score)
  return minors and { minors = minors, level = scope.level, in_use = used, points = points }
end

-- The minors of the GPUs for the request; nil: where they are does not matter; nil and the reason: there are
-- too few. score(minor): of a GPU that is shared.
function M.minors(pool, request, score)
  local tree, why = tree_of(pool.stock), nil
  if not tree then
    why = "node(s) missing GPU Device Topology Tree"
  elseif request.shared and request.count > 1 then
    why = "node(s) Unsupported Multi-Shared GPU"
  end
  if why then return nil, request.scope and why or nil end
  pool.open = {}
  for _, minor in ipairs(pool.minors) do
    pool.open[minor] = next(pool.stock.total[minor]) ~= nil or nil
  end
  local found = within(tree, pool, request, score, 0)
  if found then return found.minors end
  return nil, request.scope and "Insufficient Topology Scoped GPU Devices" or M.FEW
end

return M
