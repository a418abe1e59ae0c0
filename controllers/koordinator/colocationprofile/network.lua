-- network.lua - whether the bandwidths that resource-qos-config gives classes of pods can be: a number is a
-- percentage, a text an amount. Each set of settings uses one of them for its requests, and these fit.

local fields = require "fields"
local kube = require "kubelua"

local dig = fields.dig

local M = {}

local CLASSES, SIDES = { "lsrClass", "lsClass", "beClass" }, { "ingress", "egress" }
local MAX = 100

-- An amount that does not fit 64 bits is more than all others.
local function units(text)
  local q = kube.qty(text)
  local fits, n = pcall(q.value, q)
  return fits and n + 0.0 or math.huge
end

local function check_one(name, v)
  if v == nil then return nil end
  if math.type(v) == "integer" then
    return (v < 0 or v > MAX) and ("%s must be from 0 to %d, got %s"):format(name, MAX, v) or nil
  end
  if type(v) == "string" and pcall(kube.qty, v) then return nil end
  return ("%s must be a percentage or an amount, got %s"):format(name, tostring(v))
end

-- Why one value cannot be, or that requests are of both kinds.
local function check_values(strategy)
  local kinds = {}
  for _, class in ipairs(CLASSES) do
    for _, side in ipairs(SIDES) do
      local request = dig(strategy, class, "networkQOS", side .. "Request")
      local why = check_one(side .. "Request", request)
        or check_one(side .. "Limit", dig(strategy, class, "networkQOS", side .. "Limit"))
      if why then return why end
      if request ~= nil then kinds[type(request)] = true end
    end
  end
  return kinds.number and kinds.string and "network requests must all be percentages, or all amounts" or nil
end

-- Whether all requests of one side are more than this.
local function exceeds(strategy, most)
  for _, side in ipairs(SIDES) do
    local sum = 0
    for _, class in ipairs(CLASSES) do
      local request = dig(strategy, class, "networkQOS", side .. "Request")
      if request ~= nil then sum = sum + (type(request) == "string" and units(request) or request) end
    end
    if sum > most then return true end
  end
  return false
end

local function bandwidth(strategy)
  local ok, n = pcall(units, tostring(dig(strategy, "totalNetworkBandwidth") or 0))
  return ok and n or 0
end

-- The bandwidth of the nodes of an entry: that of the system's entry with the same selector.
local function bandwidth_of(entry, system)
  local entries, all = system.nodeStrategies or {}, system.clusterStrategy
  if #entries == 0 and all then return bandwidth(all) end
  for _, one in ipairs(entries) do
    if fields.equal(one.nodeSelector or {}, entry.nodeSelector or {}) then return bandwidth(one) end
  end
  return 0
end

-- Why resource-qos-config cannot be beside this system-config, or nil. As upstream, which compares the sum of
-- either kind with 100 and with the bandwidth: percentages need a bandwidth above their sum, and amounts may
-- be 100 in all.
function M.check(doc, system)
  local all, list = doc.clusterStrategy, {}
  if all then
    list[1] = { all, system.clusterStrategy and bandwidth(system.clusterStrategy) or math.huge }
  end
  for _, entry in ipairs(doc.nodeStrategies or {}) do
    list[#list + 1] = { entry, bandwidth_of(entry, system) }
  end
  for _, one in ipairs(list) do
    local why = check_values(one[1])
    if why then return why end
    if exceeds(one[1], MAX) then return "network requests are more than 100 percent" end
    if exceeds(one[1], one[2]) then return "network requests are more than totalNetworkBandwidth" end
  end
  return nil
end

return M
