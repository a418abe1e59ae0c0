-- trace_unified.lua - Alibaba's trace of 2023, of its unified scheduler: nodes, pods with their QoS class,
-- and the usage of pods. Its CSV files have these columns, by the names in the first line, or, without such a
-- line, in the order of NODE, META and USAGE. Each table may have many files, one for each hour:
--
--   node_resource_usage   time, node, its cores and memory, its usage
--   pod_meta_info         time of creation, pod, its requests, QoS class
--   pod_resource_usage    time, node, pod, app, its usage
--
-- Amounts are from 0 to 1, or -1 when missing. Times are seconds from the start; negative ones are before it.

local csv = require "kubelua.sim.csv"
local files = require "kubelua.sim.trace_files"

local M = {}

local NODE = { "collect_timestamp", "node_name", "node_cpu_usage", "node_memory_util",
  "node_memory_total_bytes", "node_network_bandwidth", "node_network_receive_bps",
  "node_network_transmit_bps", "node_cpu_cores", "node_disk_io_usage" }
local META = { "create_timestamp", "pod", "cpu", "memory", "disk", "cpu_limit", "memory_limit", "disk_limit",
  "qos" }
local USAGE = { "collect_timestamp", "node_name", "pod", "app_group", "pod_cpu_limit_usage",
  "pod_cpu_request_util", "pod_memory_util", "pod_memory_usage_bytes", "pod_disk_read_bps_total",
  "pod_disk_write_bps_total", "pod_disk_read_iops_total", "pod_disk_write_iops_total",
  "pod_network_transmit_bytes_ps_total", "pod_network_receive_bytes_ps_total", "cpu_psi", "mem_psi",
  "disk_psi", "web_qps", "qps", "rt" }

M.ASSUMED = {
  "of the trace: an amount of 1 is the setting cpu or memory, as the trace does not say how its amounts \z
    were scaled; a cpu_request_util of 1 is the whole request",
  "of the trace: pods of qos BE are batch jobs that run at full speed while they have samples; \z
    all others are prod pods; pods without samples are left out",
  "of the trace: between two samples, a pod's usage is that of the earlier one",
}

local function rows_of(dir, word, wanted, order)
  local paths, at = csv.files(dir, word), 0
  local next_row
  return function()
    while true do
      local row = next_row and next_row()
      if row then return row end
      at = at + 1
      if not paths[at] then return nil end
      next_row = csv.named(paths[at], wanted, order)
    end
  end
end

local function seconds(row, name)
  local t = tonumber(row[name]) or row.fail(("%s is not a number: %q"):format(name, row[name]))
  if math.abs(t) > 1e9 then row.fail(("%s must be from -1e9 to 1e9: %q"):format(name, row[name])) end
  return t
end

-- A number from 0 to 1; nil: missing.
local function amount(row, name)
  local x = tonumber(row[name]) or row.fail(("%s is not a number: %q"):format(name, row[name]))
  if x == -1 then return nil end
  if not (x >= 0 and x <= 1) then row.fail(("%s must be from 0 to 1, or -1: %q"):format(name, row[name])) end
  return x
end

--- The nodes of the trace; the first row with a node's size counts.
function M.nodes(dir, settings)
  local out, seen = {}, {}
  for row in rows_of(dir, "node_resource_usage", { "node_name", "node_memory_total_bytes", "node_cpu_cores" },
    NODE) do
    local cores, memory = amount(row, "node_cpu_cores"), amount(row, "node_memory_total_bytes")
    if not seen[row.node_name] and (cores or 0) > 0 and memory then
      seen[row.node_name] = true
      out[#out + 1] = { id = row.node_name, name = csv.name(row.node_name),
        cpu = cores * settings.cpu // 1 | 0, memory = memory * settings.memory // 1 | 0 }
    end
  end
  return out
end

-- Returns { node, app, first, last, uses, held } of each pod on the kept nodes, by pod, the time of the last
-- sample, and the shortest time between two samples (or 60). Samples from `to` on do not count; `uses` has
-- those after `from`, and `held` is the usage of the last one before.
local function samples(dir, kept, from, to)
  local out, latest, step = {}, -math.huge, math.huge
  for row in rows_of(dir, "pod_resource_usage", { "collect_timestamp", "node_name", "pod", "app_group",
    "pod_cpu_request_util" }, USAGE) do
    local t, share = seconds(row, "collect_timestamp"), amount(row, "pod_cpu_request_util")
    if kept[row.node_name] and t < to then
      local p = out[row.pod] or { node = row.node_name, app = row.app_group, first = t, last = t, uses = {} }
      out[row.pod] = p
      if t ~= p.last then step = math.min(step, math.abs(t - p.last)) end
      p.first, p.last, latest = math.min(p.first, t), math.max(p.last, t), math.max(latest, t)
      if share and t > from then
        p.uses[#p.uses + 1], p.uses[#p.uses + 2] = t - from, share
      elseif share and (not p.before or t > p.before) then
        p.before, p.held = t, share
      end
    end
  end
  return out, latest, step < math.huge and step or 60
end

--- The pods that exist on the kept nodes ({ [id] = its position }) at some moment between `from` and `to`.
function M.pods(dir, settings, kept, _, from, to)
  local of, latest, step = samples(dir, kept, from, to)
  local out, seen = {}, {}
  for row in rows_of(dir, "pod_meta_info", { "create_timestamp", "pod", "cpu", "memory", "qos" }, META) do
    local p, created = of[row.pod], seconds(row, "create_timestamp")
    local ends = p and (p.last + step < latest and p.last + step or math.huge)
    if p and not seen[row.pod] and ends > from then
      seen[row.pod] = true
      local batch, cpu = row.qos == "BE", (amount(row, "cpu") or 0) * settings.cpu // 1 | 0
      local starts = math.min(p.first, math.max(created, from))
      for k = 2, #p.uses, 2 do p.uses[k] = cpu * p.uses[k] end
      if p.held then p.uses[#p.uses + 1], p.uses[#p.uses + 2] = 0, cpu * p.held end
      files.sort(p.uses)
      out[#out + 1] = { name = csv.name(row.pod), class = batch and "batch" or "prod",
        namespace = batch and "batch" or "default", app = csv.name(p.app ~= "" and p.app or row.pod),
        cpu = cpu, memory = (amount(row, "memory") or 0) * settings.memory // 1 | 0,
        created = math.max(0, starts - from), ends = ends - from,
        on = (not batch or starts <= from) and kept[p.node] or nil, uses = not batch and p.uses or nil,
        labels = row.qos == "LSR" and { ["koordinator.sh/qosClass"] = "LSR" } or nil }
    end
  end
  return out
end

return M
