-- usage.lua - the usage of each container. A NodeMetric has only the usage of the pod, which is divided among
-- the containers that run together in the proportion of their requests. For a single container it is exact.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local nodes = require "lib.nodes"

local M = {}

local dig = fields.dig

-- The names under which containers of the classes request cpu and memory.
local NAMES = {
  cpu = { "cpu", "kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu" },
  memory = { "memory", "kubernetes.io/batch-memory", "kubernetes.io/mid-memory" },
}

local function asked(container, what)
  for _, name in ipairs(NAMES[what]) do
    local q = dig(container, "resources", "requests", name)
    if q ~= nil then return math.max(lists.amount(name, q), 0) end
  end
  return 0
end

-- The containers that run together, with their requests: { name, cpu, memory }.
function M.containers(pod)
  local out = {}
  for _, list in ipairs { "initContainers", "containers" } do
    for _, c in ipairs(dig(pod, "spec", list) or {}) do
      if list == "containers" or c.restartPolicy == "Always" then
        out[#out + 1] = { name = c.name, cpu = asked(c, "cpu"), memory = asked(c, "memory") }
      end
    end
  end
  return out
end

local function part(containers, one, what)
  local sum = 0
  for _, c in ipairs(containers) do sum = sum + c[what] end
  return sum > 0 and one[what] / sum or 1 / #containers
end

-- used: the usage of the pod, { cpu = milli-cores, memory = bytes }. Returns a list of { name, request, cpu,
-- memory }: the requested cpu, and the usage.
function M.split(pod, used)
  local containers, out = M.containers(pod), {}
  for i, c in ipairs(containers) do
    out[i] = { name = c.name, request = c.cpu, cpu = (used.cpu or 0) * part(containers, c, "cpu"),
      memory = (used.memory or 0) * part(containers, c, "memory") }
  end
  return out
end

-- The report in a NodeMetric: its time, and { ["namespace/name"] = { cpu, memory } }; nil: there is none.
function M.reported(metric)
  local updated = dig(metric, "status", "updateTime")
  if updated == nil then return nil end
  return kube.time(updated):unix(), nodes.used_by_pods(metric)
end

return M
