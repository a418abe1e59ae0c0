-- topology.lua - parses a NodeResourceTopology into
--   { cpus = { [id] = { id, core, node, socket } }, n_cpus, per_core, per_node, per_socket
--     reserved = set of processors that no pod gets
--     zones = list of { node, resources = list of amounts }, by node
--     policy      of the kubelet: "", "BestEffort", "Restricted" or "SingleNUMANode"
--     full_only   whether the kubelet allocates only whole cores
--     ratios      amplification by resource, or nil }
-- Invalid annotations count as absent.

local cpus = require "scheduler.numa.cpus"
local fields = require "fields"
local lists = require "lib.lists"

local M = {}

M.KIND = "topology.node.k8s.io/v1alpha1/NodeResourceTopology"
M.RATIOS = "node.koordinator.sh/resource-amplification-ratio"

local PREFIX = "node.koordinator.sh/"
local POLICIES = { BestEffort = "BestEffort", Restricted = "Restricted",
  SingleNUMANodePodLevel = "SingleNUMANode" }
local SOCKET = 16 -- bits of a core's number, which is unique only within its socket
local ZONES = 63  -- the number of zones that fit into a mask

local function json_of(object, name)
  local text = fields.annotation(object, name)
  return text and fields.json(text) or {}
end

local function add_cpus(out, object)
  local cores, nodes, sockets, counts = {}, {}, {}, { core = 0, node = 0, socket = 0 }
  local function seen(set, key, what)
    if not set[key] then set[key], counts[what] = true, counts[what] + 1 end
  end
  local detail = json_of(object, PREFIX .. "cpu-topology").detail
  for _, one in ipairs(type(detail) == "table" and detail or {}) do
    local socket, node = one.socket or 0, one.node or 0
    local core = socket << SOCKET | (one.core or 0)
    out.cpus[one.id or 0] = { id = one.id or 0, core = core, node = node, socket = socket }
    seen(cores, node << 40 | core, "core")
    seen(nodes, socket << SOCKET | node, "node")
    seen(sockets, socket, "socket")
  end
  out.n_cpus = cpus.size(out.cpus)
  for what, n in pairs(counts) do out["per_" .. what] = n > 0 and out.n_cpus // n or 0 end
end

local function add_all(into, text)
  for id in pairs(cpus.parse(text) or {}) do into[id] = true end
end

-- The reserved processors: those of the kubelet's pods, of the kubelet, of the node's reservation and of
-- SYSTEM pods.
local function reserved(object, kubelet)
  local out, system = {}, json_of(object, PREFIX .. "system-qos-resource")
  for _, pod in ipairs(json_of(object, PREFIX .. "pod-cpu-allocs")) do
    if pod.managedByKubelet and (pod.uid or "") ~= "" then add_all(out, pod.cpuset) end
  end
  add_all(out, kubelet.reservedCPUs)
  add_all(out, json_of(object, PREFIX .. "reservation").reservedCPUs)
  if system.cpusetExclusive ~= false then add_all(out, system.cpuset) end
  return out
end

local function zones_of(object, out)
  local zones, taken = {}, {}
  for id in pairs(out.reserved) do
    local cpu = out.cpus[id]
    if cpu then taken[cpu.node] = (taken[cpu.node] or 0) + 1000 end
  end
  for _, zone in ipairs(fields.dig(object, "zones") or {}) do
    local node = zone.type == "Node" and math.tointeger(tonumber((zone.name or ""):match "^.*node%-(%d+)$"))
    if node and node < ZONES then
      local resources = {}
      for _, one in ipairs(zone.resources or {}) do
        resources[one.name] = lists.amount(one.name, one.allocatable or "0")
      end
      if (resources.cpu or 0) > 0 then resources.cpu = resources.cpu - (taken[node] or 0) end
      zones[#zones + 1] = { node = node, resources = resources }
    end
  end
  table.sort(zones, function(a, b) return a.node < b.node end)
  return zones
end

-- { [resource] = ratio } in the annotation; nil: it is absent; nil and the reason: it is invalid.
function M.ratios(object)
  local text = fields.annotation(object, M.RATIOS)
  if text == nil then return nil end
  local ratios, why = fields.json(text)
  if not ratios then return nil, why end
  for name, ratio in pairs(ratios) do
    if type(ratio) ~= "number" then return nil, name .. " must be a number" end
  end
  return ratios
end

function M.read(object)
  local kubelet = json_of(object, "kubelet.koordinator.sh/cpu-manager-policy")
  local out = { cpus = {} }
  add_cpus(out, object)
  out.reserved = reserved(object, kubelet)
  out.zones = zones_of(object, out)
  out.policy = ""
  for _, policy in ipairs(fields.dig(object, "topologyPolicies") or {}) do
    if POLICIES[policy] then
      out.policy = POLICIES[policy]
      break
    end
  end
  local options = type(kubelet.options) == "table" and kubelet.options or {}
  out.full_only = kubelet.policy == "static" and options["full-pcpus-only"] == "true"
  out.ratios = M.ratios(object)
  return out
end

return M
