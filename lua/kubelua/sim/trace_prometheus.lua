-- trace_prometheus.lua - a cluster from what Prometheus recorded of it: answers to `query_range`, one file
-- for each of the queries below. Pods come, go and use as they did.
--
-- A long span needs several files per query, such as cpu-1.json and cpu-2.json: Prometheus returns at most
-- 11,000 samples per series. The output of `promtool query range --format json` is accepted, too.

local core = require "kubelua.core"
local csv = require "kubelua.sim.csv"
local dice = require "kubelua.sim.dice"
local files = require "kubelua.sim.trace_files"

local M = {}

--- The files and their queries: metrics of kube-state-metrics and of the kubelet (cAdvisor).
M.QUERIES = {
  { "nodes", 'sum by (node, resource) (kube_node_status_capacity{resource=~"cpu|memory"})' },
  { "allocatable", 'sum by (node, resource) (kube_node_status_allocatable{resource=~"cpu|memory"})' },
  { "pods", 'kube_pod_info unless on (namespace, pod, uid) \z
    (kube_pod_status_phase{phase=~"Succeeded|Failed"} == 1)' },
  { "requests", 'sum by (namespace, pod, resource) (kube_pod_container_resource_requests{\z
    resource=~"cpu|memory|kubernetes_io_(batch|mid)_(cpu|memory)"})' },
  { "cpu", 'sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!=""}[5m]))' },
  { "memory", 'sum by (namespace, pod) (container_memory_working_set_bytes{container!=""})' },
  { "system", 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m])) - \z
    sum by (node) (rate(container_cpu_usage_seconds_total{container!=""}[5m]))' },
}

M.ASSUMED = {
  "of Prometheus: pods of priority class koord-batch, koord-free or koord-mid, or with requests of batch or \z
    mid resources, are jobs that use all of their request while they exist; others are prod pods",
  "of Prometheus: prod pods have their recorded usage and node; between two samples their usage is that \z
    of the earlier one; pods without samples follow the settings",
  "of Prometheus: nodes exist from the beginning to the end; labels, taints and quotas are not recorded",
}

--- The shell commands that fetch all of it.
---@return string
function M.commands()
  local out = { [[
#!/bin/sh
# usage: PROMETHEUS=http://localhost:9090 START=2026-01-05T00:00:00Z END=2026-01-06T00:00:00Z sh THIS-FILE DIR
set -eu
fetch() {
  curl -fsS -G "$PROMETHEUS/api/v1/query_range" --data-urlencode "query=$2" \
    -d "start=$START" -d "end=$END" -d "step=${STEP:-60}" -o "$1"
}
mkdir -p "$1"
]] }
  for _, q in ipairs(M.QUERIES) do out[#out + 1] = ("fetch \"$1/%s.json\" '%s'\n"):format(q[1], q[2]) end
  return table.concat(out)
end

-- ---------------------------------------------------------------- files

-- The files of a query: NAME.json, or NAME-1.json and so on.
local function files_of(dir, name)
  local out, all = {}, core.tree(dir, ".json")
  if not all then error(("--trace: cannot read %s"):format(dir), 0) end
  for _, path in ipairs(all) do
    local base = path:match "[^/]*$"
    if base == name .. ".json" or base:match("^" .. name .. "%-[^/]*%.json$") then out[#out + 1] = path end
  end
  return out
end

-- The series of a file: a view of a list.
local function series_in(path)
  local text = files.content(path)
  local ok, v = pcall(core.decode, text)
  if not ok then error(("%s: %s"):format(path, core.is_error(v) and v.message or tostring(v)), 0) end
  if core.is_view(v) and (#v > 0 or text:match "^%s*%[") then return v end -- of promtool
  if not core.is_view(v) then error(path .. ": expected an answer of Prometheus, a JSON object", 0) end
  if v "status" == "error" then
    error(("%s: Prometheus answered: %s"):format(path, tostring(v "error")), 0)
  end
  local kind, list = v "data.resultType", v "data.result"
  if kind ~= "matrix" then
    error(("%s: expected the answer of query_range (a matrix), got %s"):format(path,
      type(kind) == "string" and "a " .. kind or "no data.resultType"), 0)
  end
  if not core.is_view(list) then error(path .. ": data.result: expected a list", 0) end
  return list
end

-- The values of a series as samples (see trace_files). A view of each would cost ten times as much.
local function read_values(values, fail)
  if not core.is_view(values) then fail "values: expected a list" end
  local list = core.samples(values)
  if list then return list end
  list = {}
  for k, pair in ipairs(values) do
    local at, text = core.is_view(pair) and pair[1], core.is_view(pair) and pair[2]
    local x = tonumber(text)
    if type(at) ~= "number" or type(text) ~= "string" then
      fail(("values[%d]: expected [seconds, \"number\"]"):format(k))
    end
    if x then
      list[#list + 1], list[#list + 2] = at, x
    elseif text ~= "NaN" and not text:match "^[+-]?Inf$" then
      fail(("values[%d] is not a number: %q"):format(k, text))
    end
  end
  return list
end

-- Calls fn(labels, { unix time, number, ... }, fail) for each series of a query; each has the labels
-- `wanted`.
local function each(dir, query, wanted, fn)
  local paths = files_of(dir, query[1])
  if #paths == 0 then
    error(("--trace: %s has no %s.json, the answer of query_range to: %s"):format(dir, query[1], query[2]), 0)
  end
  for _, path in ipairs(paths) do
    for i, s in ipairs(series_in(path)) do
      local function fail(why) error(("%s: series %d: %s"):format(path, i, why), 0) end
      local labels = core.is_view(s) and s "metric"
      if not core.is_view(labels) then fail "metric: expected an object" end
      for _, name in ipairs(wanted) do
        if type(labels(name)) ~= "string" then
          fail(("the label %q is missing; the query is: %s"):format(name, query[2]))
        end
      end
      fn(labels, read_values(s "values", fail), fail)
    end
  end
end

-- ---------------------------------------------------------------- what they say

-- The maximum.
local function most(list)
  local out = 0
  for k = 2, #list, 2 do out = math.max(out, list[k]) end
  return out
end

-- The samples of each name from all files of a query; cpu in milli-cores, memory in bytes.
local function curves(dir, query, wanted, name_of, factor)
  local out = {}
  each(dir, query, wanted, function(labels, values)
    local name = name_of(labels)
    for k = 2, #values, 2 do values[k] = math.max(0, values[k]) * factor end
    local list = out[name]
    if list then table.move(values, 1, #values, #list + 1, list) else out[name] = values end
  end)
  for _, list in pairs(out) do files.sort(list) end
  return out
end

-- { [node] = { cpu, memory } }, in milli-cores and bytes.
local function sizes(dir, query)
  local out, names = {}, {}
  each(dir, query, { "node", "resource" }, function(labels, values)
    local name = labels.node
    if not out[name] then
      out[name] = { cpu = 0, memory = 0 }
      names[#names + 1] = name
    end
    local what = labels.resource
    if what == "cpu" then out[name].cpu = math.max(out[name].cpu, most(values) * 1000 // 1 | 0) end
    if what == "memory" then out[name].memory = math.max(out[name].memory, most(values) // 1 | 0) end
  end)
  table.sort(names)
  return out, names
end

local function key_of(labels) return labels.namespace .. "/" .. labels.pod end

local OF_SET = { ReplicaSet = "^(.+)%-%w+$", Job = "^(.+)$", StatefulSet = "^(.+)$", DaemonSet = "^(.+)$" }

-- Pods of a Deployment belong to one app, whatever its ReplicaSet.
local function app_of(labels)
  local kind, name = labels "created_by_kind", labels "created_by_name"
  local app = OF_SET[kind] and type(name) == "string" and (name:match(OF_SET[kind]) or name)
  return csv.name(app or labels.pod)
end

local CLASS_OF = { ["koord-batch"] = "batch", ["koord-free"] = "batch", ["koord-mid"] = "mid" }

-- { key, pod, namespace, node, class, app, first, last } of each pod, by its uid: a pending pod is a separate
-- series until it has a node. Also returns the last moment, and the time between samples.
local function pods_in(dir)
  local out, by_id, ended, step = {}, {}, -math.huge, math.huge
  each(dir, M.QUERIES[3], { "namespace", "pod" }, function(labels, values)
    local id = ("%s %s"):format(key_of(labels), labels "uid" or "")
    local p = by_id[id] or { key = key_of(labels), pod = labels.pod, namespace = labels.namespace,
      class = CLASS_OF[labels "priority_class"], app = app_of(labels) }
    if not by_id[id] then out[#out + 1] = p end
    by_id[id] = p
    local node = labels "node"
    if node and node ~= "" then p.node = node end
    for k = 1, #values, 2 do
      local at = values[k]
      p.first, p.last = math.min(p.first or at, at), math.max(p.last or at, at)
      ended = math.max(ended, at)
      local d = k > 1 and at - values[k - 2] or 0
      if d > 0 then step = math.min(step, d) end
    end
  end)
  return out, ended, step < math.huge and step or 60
end

-- { [key] = { [resource] = amount } }, the maximum of a pod's requests.
local function requests_in(dir)
  local out = {}
  each(dir, M.QUERIES[4], { "namespace", "pod", "resource" }, function(labels, values)
    local of = out[key_of(labels)] or {}
    out[key_of(labels)] = of
    of[labels.resource] = math.max(of[labels.resource] or 0, most(values))
  end)
  return out
end

--- Reads a directory: { began, ended, nodes, pods, ... }, times in unix seconds; raises.
function M.open(dir)
  local t = {}
  t.sizes, t.names = sizes(dir, M.QUERIES[1])
  t.allocatable = sizes(dir, M.QUERIES[2])
  t.pods, t.ended, t.step = pods_in(dir)
  t.requests = requests_in(dir)
  local function pod_name(labels) return key_of(labels) end
  t.cpu = curves(dir, M.QUERIES[5], { "namespace", "pod" }, pod_name, 1000)
  t.memory = curves(dir, M.QUERIES[6], { "namespace", "pod" }, pod_name, 1)
  t.system = curves(dir, M.QUERIES[7], { "node" }, function(labels) return labels.node end, 1000)
  t.began = t.ended
  for _, p in ipairs(t.pods) do t.began = math.min(t.began, p.first or t.began) end
  if t.ended == -math.huge then
    error(("--trace: %s has no pods: %s"):format(dir, files_of(dir, "pods")[1]), 0)
  end
  return t
end

-- The part of a curve that is in a span; its first point is the last one before the span.
local function span_of(list, from, to)
  local out, n, before = {}, 0, nil
  list = list or {}
  for k = 1, #list, 2 do
    if list[k] > from then
      if n == 0 and before then out[1], out[2], n = 0, before, 2 end
      if list[k] >= to then return out end
      out[n + 1], out[n + 2], n = list[k] - from, list[k + 1], n + 2
    end
    before = list[k + 1]
  end
  return n == 0 and before and { 0, before } or out
end

--- The nodes, with their own use.
function M.nodes(t, _, from, to)
  local out = {}
  for _, name in ipairs(t.names) do
    local size, has = t.sizes[name], t.allocatable[name] or {}
    out[#out + 1] = { id = name, name = csv.name(name), cpu = size.cpu, memory = size.memory,
      allocatable = has.cpu and { cpu = has.cpu, memory = has.memory },
      system = t.system[name] and span_of(t.system[name], t.began + from, t.began + to) }
  end
  return out
end

-- Class and requests: without a priority class, batch and mid resources tell the class.
local function asked(t, p)
  local has, class = t.requests[p.key] or {}, p.class
  class = class or has.kubernetes_io_batch_cpu and "batch" or has.kubernetes_io_mid_cpu and "mid" or "prod"
  local cpu, memory = has["kubernetes_io_" .. class .. "_cpu"], has["kubernetes_io_" .. class .. "_memory"]
  return class, (cpu or (has.cpu or 0) * 1000) // 1 | 0, (memory or has.memory or 0) // 1 | 0
end

--- The pods that exist at some moment of the span; of those without a node ever, the same share as of nodes.
function M.pods(t, _, kept, share, from, to)
  local out, start = {}, t.began + from
  for _, p in ipairs(t.pods) do
    local first, last = p.first, p.last
    local ends = last and (last < t.ended and last + t.step or math.huge)
    local here = last and first < t.began + to and ends > start
    if here and (p.node and kept[p.node] or not p.node and dice.unit(0, dice.of(p.key), 7) < share) then
      local class, cpu, memory = asked(t, p)
      local prod = class == "prod"
      out[#out + 1] = { name = csv.name(p.pod), namespace = csv.name(p.namespace), class = class, app = p.app,
        cpu = cpu, memory = memory, created = math.max(0, first - start), ends = ends - start,
        on = (prod or first <= start) and kept[p.node] or nil,
        uses = prod and span_of(t.cpu[p.key], start, t.began + to) or nil,
        holds = prod and span_of(t.memory[p.key], start, t.began + to) or nil }
    end
  end
  return out
end

return M
