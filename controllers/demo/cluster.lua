-- cluster.lua - plays the demo cluster's agents, and shows its nodes as a table.
-- Pure: the clock and the tick come from outside, so the same tick always gives the same usage.

local kube = require "kubelua"

local M = {}

-- The node whose agent has stopped: its metric is never renewed, so the policy ignores it after a while.
M.SILENT = "demo/agent"

-- ---------------------------------------------------------------- the agents

local WAVE, RIPPLE = 0.30, 0.10 -- how far usage swings: a node's pods together, and each for itself
local WAVE_STEP, RIPPLE_STEP = 0.35, 1.3 -- radians per tick

local function phase(name)
  local h = 2166136261
  for i = 1, #name do h = ((h ~ name:byte(i)) * 16777619) & 0xffffffff end
  return h / 0xffffffff * 2 * math.pi
end

local function swing(node, pod, tick)
  return 1 + WAVE * (math.sin(tick * WAVE_STEP + phase(node)) - math.sin(phase(node)))
    + RIPPLE * (math.sin(tick * RIPPLE_STEP + phase(pod)) - math.sin(phase(pod)))
end

local function amounts(list)
  return { cpu = kube.qty(list.cpu):milli(), memory = kube.qty(list.memory):value() }
end

local KI = 1024

local function resources(cpu, memory)
  return { resources = { cpu = cpu .. "m", memory = memory // KI .. "Ki" } }
end

function M.silent(metric)
  local labels = metric.metadata.labels
  return labels ~= nil and labels[M.SILENT] == "silent"
end

-- The status that the node's agent would report at `now` (RFC 3339 text). `base` is the NodeMetric as it
-- was loaded, not as it was last reported: usage swings about it, by the same amount however often it is
-- asked. At tick 0 it is what base says.
function M.touch(base, now, tick)
  local old, node = base.status, base.metadata.name
  local system = amounts(old.nodeMetric.systemUsage.resources)
  local cpu, memory, list = system.cpu, system.memory, {}
  for i, info in ipairs(old.podsMetric or {}) do
    local key = info.namespace .. "/" .. info.name
    local usage, factor = amounts(info.podUsage.resources), math.max(swing(node, key, tick), 0.05)
    local pod_cpu, pod_memory = usage.cpu * factor // 1 | 0, usage.memory * (1 + (factor - 1) / 4) // 1 | 0
    cpu, memory = cpu + pod_cpu, memory + pod_memory
    list[i] = { namespace = info.namespace, name = info.name, priority = info.priority, qos = info.qos,
      podUsage = resources(pod_cpu, pod_memory) }
  end
  local status = {
    updateTime = now,
    nodeMetric = { nodeUsage = resources(cpu, memory), systemUsage = resources(system.cpu, system.memory) },
    podsMetric = #list > 0 and list or nil,
  }
  for _, kept in ipairs { "prodReclaimableMetric", "hostApplicationMetric" } do status[kept] = old[kept] end
  return status
end

-- ---------------------------------------------------------------- the table

local GI = 1024 * 1024 * 1024

local function gib(list, name)
  local q = list and list[name]
  return q and ("%.1fGi"):format(kube.qty(q):value() / GI)
end

local function cores(list, name)
  local q = list and list[name]
  return q and ("%.4g"):format(kube.qty(q):milli() / 1000)
end

local function whole(list, name)
  local q = list and list[name]
  return q and tostring(kube.qty(q):value())
end

local function both(cpu, memory) return cpu and memory and cpu .. " / " .. memory end

local function note(node, metric)
  local annotations = node.metadata.annotations
  local ratio = annotations and annotations["node.koordinator.sh/cpu-normalization-ratio"]
  if metric and M.silent(metric) then return "agent silent" end
  return ratio and ratio ~= "1.00" and "cpu x" .. ratio or nil
end

-- One row per node, in the order given: node, capacity, usage, batch_cpu, batch_memory, mid_cpu,
-- mid_memory, note. What a node does not offer is nil. batch_cpu and mid_cpu are milli-cores, as on the
-- node.
function M.rows(nodes, metrics)
  local of = {}
  for _, metric in ipairs(metrics) do of[metric.metadata.name] = metric end
  local rows = {}
  for i, node in ipairs(nodes) do
    local metric, status = of[node.metadata.name], node.status
    local capacity, offered = status and status.capacity, status and status.allocatable
    local measured = metric and metric.status and metric.status.nodeMetric
    local used = measured and measured.nodeUsage and measured.nodeUsage.resources
    rows[i] = {
      node = node.metadata.name,
      capacity = both(cores(capacity, "cpu"), gib(capacity, "memory")),
      usage = both(cores(used, "cpu"), gib(used, "memory")),
      batch_cpu = whole(offered, "kubernetes.io/batch-cpu"),
      batch_memory = gib(offered, "kubernetes.io/batch-memory"),
      mid_cpu = whole(offered, "kubernetes.io/mid-cpu"),
      mid_memory = gib(offered, "kubernetes.io/mid-memory"),
      note = note(node, metric),
    }
  end
  return rows
end

local COLUMNS = {
  { "NODE", "node", left = true }, { "CAPACITY", "capacity" }, { "USAGE", "usage" },
  { "BATCH-CPU", "batch_cpu", pair = true }, { "BATCH-MEMORY", "batch_memory", pair = true },
  { "MID-CPU", "mid_cpu", pair = true }, { "MID-MEMORY", "mid_memory", pair = true },
  { "", "note", left = true },
}

-- Aligned text: what nodes offer as "before -> after" (only "after" when rows_before is nil).
function M.format(rows_before, rows_after)
  local before = {}
  for _, row in ipairs(rows_before or {}) do before[row.node] = row end
  local lines, widths = {}, {}
  local function add(cells)
    for i, cell in ipairs(cells) do widths[i] = math.max(widths[i] or 0, #cell) end
    lines[#lines + 1] = cells
  end
  local head = {}
  for i, column in ipairs(COLUMNS) do head[i] = column[1] end
  add(head)
  for _, row in ipairs(rows_after) do
    local cells, old = {}, before[row.node] or {}
    for i, column in ipairs(COLUMNS) do
      local cell = row[column[2]] or (column.left and "" or "-")
      if column.pair and rows_before then cell = (old[column[2]] or "-") .. " -> " .. cell end
      cells[i] = cell
    end
    add(cells)
  end
  local text = {}
  for n, cells in ipairs(lines) do
    local out = {}
    for i, cell in ipairs(cells) do
      local pad = (" "):rep(widths[i] - #cell)
      out[i] = COLUMNS[i].left and cell .. pad or pad .. cell
    end
    text[n] = (table.concat(out, "  "):gsub("%s+$", ""))
  end
  return table.concat(text, "\n") .. "\n"
end

return M
