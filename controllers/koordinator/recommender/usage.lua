-- usage.lua - what each container of a pod used. A NodeMetric says what the pod used, so the containers that
-- run together share it in the proportion of what they ask for; where one of them runs alone that is exact.

local fields = require "fields"
local kube = require "kubelua"
local lists = require "lib.lists"
local nodes = require "lib.nodes"

local M = {}

local dig = fields.dig

-- The resources in which a container of any class asks for cpu and memory.
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

-- The containers that run together: { name, cpu, memory = asked for }.
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

-- used: { cpu = milli-cores, memory = bytes } of the pod. Returns a list of { name, request = cpu asked for,
-- cpu, memory }.
function M.split(pod, used)
  local containers, out = M.containers(pod), {}
  for i, c in ipairs(containers) do
    out[i] = { name = c.name, request = c.cpu, cpu = (used.cpu or 0) * part(containers, c, "cpu"),
      memory = (used.memory or 0) * part(containers, c, "memory") }
  end
  return out
end

-- The pods that a NodeMetric reports: when, and { ["namespace/name"] = { cpu, memory } }. nil: none.
function M.reported(metric)
  local updated = dig(metric, "status", "updateTime")
  if updated == nil then return nil end
  return kube.time(updated):unix(), nodes.used_by_pods(metric)
end

return M
