-- trace_openb.lua - Alibaba's GPU trace of 2023: a CSV file of nodes (sn, cpu_milli, memory_mib, gpu, model)
-- and one of pods (name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, creation_time,
-- deletion_time in seconds). A simulation of time leaves the GPUs out; placement.lua reads them.

local csv = require "kubelua.sim.csv"
local dice = require "kubelua.sim.dice"

local M = {}

local MIB = 1 << 20

--- The most GPUs of a node.
M.GPUS_MAX = 16

M.ASSUMED = {
  "of the trace: GPUs are left out",
  "of the trace: pods of qos BE are batch jobs that run for their lifetime at full speed, all others are \z
    prod pods whose usage follows the settings",
}

function M.nodes(dir)
  local out = {}
  for row in csv.named(csv.find(dir, "node"), { "sn", "cpu_milli", "memory_mib" }) do
    out[#out + 1] = { id = row.sn, name = csv.name(row.sn), cpu = row.number "cpu_milli" // 1 | 0,
      memory = row.number "memory_mib" * MIB // 1 | 0 }
  end
  return out
end

--- The pods that exist at some moment of the span, in the same share as nodes.
function M.pods(dir, _, _, share, from, to)
  local out = {}
  for row in csv.named(csv.find(dir, "pod"),
    { "name", "cpu_milli", "memory_mib", "qos", "creation_time", "deletion_time" }) do
    local created = row.number "creation_time"
    local ends = row.deletion_time ~= "" and row.number "deletion_time" or math.huge
    local here = created < to and ends > from and ends > created
    if here and (share == 1 or dice.unit(0, dice.of(row.name), 7) < share) then
      local batch = row.qos == "BE"
      out[#out + 1] = { name = csv.name(row.name), class = batch and "batch" or "prod",
        namespace = batch and "batch" or "default", app = "app-" .. (1 + dice.of(row.name) % 8),
        cpu = math.max(1, row.number "cpu_milli" // 1 | 0), memory = row.number "memory_mib" * MIB // 1 | 0,
        created = math.max(0, created - from), ends = ends - from }
    end
  end
  return out
end

-- ---------------------------------------------------------------- GPUs

local function whole(row, name) return row.number(name) // 1 | 0 end

--- The nodes with GPUs and without: { cpu, memory, gpus, model }; memory in MiB.
function M.gpu_nodes(dir)
  local out = {}
  for row in csv.named(csv.find(dir, "node"), { "cpu_milli", "memory_mib", "gpu", "model" }) do
    local gpus = whole(row, "gpu")
    if gpus > M.GPUS_MAX then row.fail(("a node has at most %d GPUs"):format(M.GPUS_MAX)) end
    out[#out + 1] = { cpu = whole(row, "cpu_milli"), memory = whole(row, "memory_mib"), gpus = gpus,
      model = row.model }
  end
  return out
end

--- The pods, in the order of the file: { cpu, memory, gpus, milli, models }: milli: thousandths of each GPU;
--- models: names between "|", or "" for any.
function M.gpu_pods(dir)
  local out = {}
  for row in csv.named(csv.find(dir, "pod"),
    { "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec" }) do
    local gpus, milli = whole(row, "num_gpu"), whole(row, "gpu_milli")
    if gpus > M.GPUS_MAX or milli > 1000 or gpus > 1 and milli < 1000 then
      row.fail("a pod takes a part of one GPU (gpu_milli up to 1000), or up to 16 whole ones")
    end
    out[#out + 1] = { cpu = whole(row, "cpu_milli"), memory = whole(row, "memory_mib"), gpus = gpus,
      milli = gpus > 0 and milli or 0, models = row.gpu_spec }
  end
  return out
end

return M
