-- show.lua - shows the demo: what the nodes offer before the policy and after, and then what changes.
--
-- Runs beside the controllers (`kubelua dev --play`), which gives it `dev`. With nobody watching it ends as soon as the
-- cluster has converged; on a terminal it stays.

local kube = require "kubelua"
local cluster = require "cluster"

local dev = dev -- luacheck: ignore 113

local CONVERGE_WITHIN = 60 -- seconds
local LOOK_EVERY = 0.2
local STEADY_LOOKS = 4     -- as many looks in a row must show the same
local FRESH_WITHIN = 60    -- a metric younger than this was renewed by its agent
local SHOW_EVERY = 30

local client = kube.connect { server = dev.server }

local function say(fmt, ...) io.stdout:write(fmt:format(...), "\n") io.stdout:flush() end

local function list(kind)
  local out = {}
  for o in client:each(kind) do out[#out + 1] = o end
  return out
end

-- The nodes as they were loaded. Asking the server would race with the policy.
local function loaded_nodes()
  local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
  local path = here .. "/20-nodes.yaml"
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return kube.yaml(text, path)
end

local before_nodes = loaded_nodes()
local before = cluster.rows(before_nodes, {})

local place = {}
for i, node in ipairs(before_nodes) do place[node.metadata.name] = i end

local function look()
  local nodes, metrics = list "v1/Node", list "slo.koordinator.sh/v1alpha1/NodeMetric"
  table.sort(nodes, function(a, b)
    local pa, pb = place[a.metadata.name] or math.huge, place[b.metadata.name] or math.huge
    if pa ~= pb then return pa < pb end
    return a.metadata.name < b.metadata.name
  end)
  return cluster.rows(nodes, metrics), metrics
end

-- Only what the policy decides: usage moves all the time.
local function offers(rows)
  local parts = {}
  for i, row in ipairs(rows) do
    parts[i] = table.concat({ row.node, row.batch_cpu or "-", row.batch_memory or "-", row.mid_cpu or "-", row.mid_memory or "-", row.note or "" }, " ")
  end
  return table.concat(parts, "\n")
end

local function all_fresh(metrics)
  local now = os.time()
  for _, metric in ipairs(metrics) do
    local updated = metric("status.updateTime")
    if not cluster.silent(metric) and (not updated or now - kube.time(updated):unix() > FRESH_WITHIN) then return false end
  end
  return #metrics > 0
end

-- Waits until every agent has reported, nothing is left to do and the offers stand still. Returns the rows, or nil.
local function settled()
  local last, steady = nil, 0
  for _ = 1, CONVERGE_WITHIN // LOOK_EVERY do
    local rows, metrics = look()
    local now = offers(rows)
    local still = dev.idle() and all_fresh(metrics) and now == last
    steady, last = still and steady + 1 or 0, now
    if steady >= STEADY_LOOKS then return rows end
    if not dev.wait(LOOK_EVERY) then return nil, "stopped" end
  end
  return nil, "late"
end

local function controllers()
  local parts = {}
  for i, c in ipairs(dev.controllers()) do
    parts[i] = ("%s: %s%s"):format(c.name, c.state, c.message and " (" .. c.message .. ")" or "")
  end
  return table.concat(parts, "; ")
end

local function generation()
  local newest = 0
  for _, c in ipairs(dev.controllers()) do newest = math.max(newest, c.generation) end
  return newest
end

local rows, why = settled()
if not rows then
  if why == "stopped" then return 0 end
  io.stderr:write(("demo: the cluster has not settled within %d s; %s\n"):format(CONVERGE_WITHIN, controllers()))
  return 1
end

local offering = 0
for _, row in ipairs(rows) do
  if row.batch_cpu then offering = offering + 1 end
end
say("\n%s", cluster.format(before, rows))
say("%d of %d nodes offer resources to batch and mid pods (cpu in milli-cores).", offering, #rows)
if offering == 0 then
  io.stderr:write(("demo: no node offers anything; %s\n"):format(controllers()))
  return 1
end
if not dev.tty then return 0 end

say([[

The agents keep reporting. Try, from another terminal:
  kubectl --server %s get nodes -o custom-columns=NODE:.metadata.name,BATCH:.status.allocatable.'kubernetes\.io/batch-cpu'
  kubectl --server %s -n koordinator-system edit configmap slo-controller-config   # cpuReclaimThresholdPercent: 80
  $EDITOR controllers/koordinator/batchresource.lua                                # saved is loaded; broken is refused
Ctrl-C ends it.]], dev.server, dev.server)

local shown, seen, at = rows, generation(), os.time()
while dev.wait(1) do
  local newer = generation() > seen
  if newer or os.time() - at >= SHOW_EVERY then
    if newer then
      seen = generation()
      say("\nThe policy was loaded anew (generation %d).", seen)
    end
    local now
    now, why = settled()
    if why == "stopped" then break end
    now = now or look()
    if offers(now) ~= offers(shown) then say("\n%s", cluster.format(shown, now)) end
    shown, at = now, os.time()
  end
end
return 0
