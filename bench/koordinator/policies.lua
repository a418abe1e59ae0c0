-- policies.lua - what Koordinator's policies cost: `make -C bench koordinator` (QUICK=1: a fifth of it;
-- SECTIONS=quota: one of them).
-- A line of JSON for each, with the goal beside the figure:
--
--   noderesource   one pass over all nodes, functions alone: seconds of the processor, and MB of Lua
--   nodemetric     NodeMetric updates that the pass of one node answers, a second; p99 in ms; share of a core
--                  when every node reports each minute
--   quota          the runtime of 2,000 quotas in 5 levels, after 1 % of their pods changed: ms; whole_ms
--                  from the beginning
--   lownodeload    one pass over all nodes, after each has reported and none of its pods has changed: ms;
--                  first_ms the first pass, which reads all pods
--   decisions      decisions of the scheduler for pods of 20 workloads, one after the other, a second
--   scheduler      pods bound a second by `kubelua run` on the embedded server; `cpu_s` is the scheduler's
--                  own, with its start, and per_cpu_s the pods for each second of that
--
-- The figures of functions are taken in stock Lua on plain tables, where a script has views of its cache.

package.path = "controllers/koordinator/?.lua;spec/?.lua;lua/?.lua;lua/?/init.lua;build/lua/?.lua;"
  .. package.path
package.cpath = "build/lua/?.so;" .. package.cpath

local balance = require "lownodeload.balance"
local colocation = require "colocation"
local controller = require "support.controller"
local cycle = require "scheduler.cycle"
local filter = require "podmigrationjob.filter"
local forest = require "elasticquota.forest"
local kube = require "kubelua"
local members = require "elasticquota.members"
local plan = require "plan"
local process = require "support.process"
local settings = require "settings"
local servers = require "support.servers"
local snapshot = require "scheduler.snapshot"
local wait = require "support.wait"

local QUICK = os.getenv "QUICK" == "1"
local ONLY = arg[1]
local NOW = 1767225600
local JUST_NOW = "2025-12-31T23:59:30Z"
local NODES, PODS_A_NODE, WORKLOADS = QUICK and 1000 or 5000, 30, 20

local function say(name, figures)
  figures.policy, figures.nodes = name, figures.nodes or NODES
  print(kube.encode(kube.object(figures)))
  io.flush()
end

local function round(x) return math.floor(x * 1000 + 0.5) / 1000 end

local function used(fn)
  collectgarbage()
  local from = os.clock()
  fn()
  return os.clock() - from
end

-- ---------------------------------------------------------------- a cluster

local function node(i)
  local amounts = { cpu = "64", memory = "256Gi", pods = "110" }
  return { metadata = { name = ("n%05d"):format(i), labels = { zone = "z" .. i % 3 } }, spec = {},
    status = { capacity = amounts, allocatable = amounts } }
end

local function pod(name, on, workload)
  local resources = { requests = { cpu = "500m", memory = "1Gi" }, limits = { cpu = "1", memory = "2Gi" } }
  return { metadata = { name = name, namespace = "ns" .. workload % 10, uid = name,
    labels = { app = "app" .. workload, ["koordinator.sh/qosClass"] = "LS" },
    ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r" .. workload, uid = "u",
      controller = true } } },
    spec = { nodeName = on, priority = 9000 + workload,
      containers = { { name = "c", resources = resources } } },
    status = { phase = on and "Running" or "Pending" } }
end

local function metric(n, pods, busy)
  local reports = {}
  for i, p in ipairs(pods) do
    reports[i] = { name = p.metadata.name, namespace = p.metadata.namespace, priority = "koord-prod",
      podUsage = { resources = { cpu = busy and "1500m" or "200m", memory = "512Mi" } } }
  end
  return { metadata = { name = n.metadata.name }, spec = {}, status = { updateTime = JUST_NOW,
    podsMetric = reports, nodeMetric = { nodeUsage = { resources = { cpu = busy and "50" or "10",
      memory = "20Gi" } }, systemUsage = { resources = { cpu = "1", memory = "2Gi" } } } } }
end

local function cluster()
  local out = { nodes = {}, pods_on = {}, metrics = {} }
  for i = 1, NODES do
    local n, list = node(i), {}
    for k = 1, PODS_A_NODE do list[k] = pod(("p%d-%d"):format(i, k), n.metadata.name, (i + k) % WORKLOADS) end
    out.nodes[i], out.pods_on[n.metadata.name] = n, list
    out.metrics[n.metadata.name] = metric(n, list, i % 10 == 0)
  end
  return out
end

-- ---------------------------------------------------------------- functions

local function plan_of(c, n, strategy)
  local name = n.metadata.name
  return plan.calculate { strategy = strategy, node = n, nodeMetric = c.metrics[name], now = NOW,
    pods = c.pods_on[name] }
end

local function strategy_of()
  local config = { data = { [colocation.KEY] = '{"enable":true}' } }
  local known = settings.sync(settings.new(), config)
  return colocation.strategy(known.colocation.cfg, node(1))
end

local function noderesource(c)
  local strategy = strategy_of()
  local seconds = used(function()
    for _, n in ipairs(c.nodes) do plan_of(c, n, strategy) end
  end)
  say("noderesource", { pods = NODES * PODS_A_NODE, cpu_s = round(seconds), goal_cpu_s = 2 })
end

local function nodemetric(c)
  local strategy, took = strategy_of(), {}
  local seconds = used(function()
    for i, n in ipairs(c.nodes) do
      local from = os.clock()
      plan_of(c, n, strategy)
      took[i] = os.clock() - from
    end
  end)
  table.sort(took)
  say("nodemetric", { updates_per_s = NODES // seconds, p99_ms = round(took[#took * 99 // 100] * 1000),
    core_percent_at_one_a_minute = round(seconds / 60 * 100), goal_core_percent = 3 })
end

-- 5 levels: 4 roots, and below each as many as come to 2,000 in all.
local function quotas(n)
  local list, parents, id = {}, { "koordinator-root-quota" }, 0
  local sizes = { 4, 16, 80, 400, n - 500 }
  for level, size in ipairs(sizes) do
    local here = {}
    for i = 1, size do
      id = id + 1
      local name = "q" .. id
      list[id] = { name = name, namespace = "quotas", parent = parents[(i - 1) % #parents + 1],
        is_parent = level < #sizes, min = { cpu = 10000, memory = 1 << 35 },
        max = { cpu = 900000, memory = 1 << 42 },
        lends = true, weight = { cpu = 900000, memory = 1 << 42 }, namespaces = {} }
      here[i] = name
    end
    parents = here
  end
  return list, parents
end

local function quota()
  local list, leaves = quotas(2000)
  local index, pods = members.index(list), {}
  for i = 1, 10 * #leaves do
    pods[i] = { label = leaves[i % #leaves + 1], namespace = "x",
      request = { cpu = 1000 * (i % 7), memory = 1 << 30 }, assigned = i % 3 > 0, preemptible = true }
  end
  local params = { upstream = "main", multi_quota_tree = true, enable_min_quota_scale = true }
  local total, rounds = { cpu = 64000 * NODES, memory = NODES << 38 }, QUICK and 3 or 10
  local infos
  local whole = used(function()
    for _ = 1, rounds do infos = forest.calculate(index, pods, total, params) end
  end)
  local keep = forest.keeper()
  keep(index, pods, total, params)
  local seconds = used(function()
    for i = 1, rounds do
      for k = i, #pods, 100 do
        local old = pods[k]
        pods[k] = { label = old.label, namespace = "x", request = { cpu = 1000 * (k % 5), memory = 1 << 30 },
          assigned = not old.assigned, preemptible = true }
      end
      infos = keep(index, pods, total, params)
    end
  end)
  assert(infos.q2000.runtime.cpu > 0)
  say("quota", { quotas = #list, levels = 5, ms = round(seconds / rounds * 1000),
    whole_ms = round(whole / rounds * 1000), goal_ms = 20 })
end

local function lownodeload(c)
  local result
  local limits = { maxMigratingPerWorkload = "50%", maxUnavailablePerWorkload = "50%" }
  local function pass(metrics)
    -- Half of a workload's pods may migrate, and any number on a node: all that the thresholds ask for do.
    local load = { uid = "u", replicas = 2 * NODES, unavailable = {} }
    local gate = filter.open(limits, {}, function() end, function() return load end)
    result = balance.pass { nodes = c.nodes, pods_on = c.pods_on, metrics = metrics, now = NOW,
      expiration = 180, node_fit = true,
      evictable = function(p, fact) return not gate.refused(p, fact) end,
      move = function(move)
        if gate.refused(move.pod, move.fact) then return false end
        gate.note(move.pod)
        return true
      end,
      detectors = { node = {}, prod = {} },
      pool = { lowThresholds = { cpu = 40, memory = 50 }, highThresholds = { cpu = 60, memory = 80 } } }
  end
  for _, list in pairs(c.pods_on) do
    for _, one in ipairs(list) do one.metadata.resourceVersion = "1" end -- what is remembered has a version
  end
  local first = used(function() pass(c.metrics) end)
  local later = {}
  for i, n in ipairs(c.nodes) do
    later[n.metadata.name] = metric(n, c.pods_on[n.metadata.name], i % 10 == 0)
  end
  local seconds = used(function() pass(later) end)
  say("lownodeload", { ms = round(seconds * 1000), first_ms = round(first * 1000), moves = #result.moves,
    goal_ms = 300 })
end

local function decisions(c)
  local n = QUICK and 400 or 2000
  local state = { now = NOW, pods_on = c.pods_on, metrics = c.metrics }
  local args, bound = cycle.args { percentage = 0 }, 0
  -- What is summed up of each node is there after the first decision.
  cycle.run(pod("first", nil, 0), c.nodes, state, args)
  local seconds = used(function()
    for i = 1, n do
      local p = pod("new" .. i, nil, i % WORKLOADS)
      local result = cycle.run(p, c.nodes, state, args)
      if result.node then
        snapshot.assume(state, p, result.node, cycle.got(result))
        bound = bound + 1
      end
    end
  end)
  say("decisions", { pods = n, placed = bound, per_s = n // seconds, goal_per_s = 500 })
end

-- ---------------------------------------------------------------- the scheduler on a server

local function clock() return tonumber((process.run "date +%s.%N")) end

-- Seconds of the processor that a process used.
local function cpu_of(pid)
  local text = process.read(("/proc/%d/stat"):format(pid)) or ""
  local user, system = text:match "%) %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%d+) (%d+)"
  return user and (user + system) / 100 or 0
end

local function scheduler()
  local nodes, pods = QUICK and 200 or 1000, QUICK and 500 or 5000
  local server = servers.embedded { crds = { "controllers/koordinator/crds" } }
  local client = controller.client(server)
  for i = 1, nodes do
    local n = node(i)
    client:create { kind = "v1/Node", name = n.metadata.name, labels = n.metadata.labels }
    client:patch_status(client:get("v1/Node", n.metadata.name), n.status)
    -- A server marks new nodes as not ready until somebody says otherwise.
    client:patch(client:get("v1/Node", n.metadata.name), function(draft) draft.spec.taints = nil end)
  end
  for i = 1, pods do
    local p = pod("p" .. i, nil, i % WORKLOADS)
    client:create { kind = "v1/Pod", namespace = "default", name = p.metadata.name,
      labels = p.metadata.labels,
      spec = { schedulerName = "koord-scheduler", containers = { { name = "c", image = "none",
        resources = p.spec.containers[1].resources } } } }
  end
  local run = controller.start(server, "controllers/koordinator/scheduler.lua", "--qps", "10000")
  local from, bound, first = clock(), 0, nil
  wait.until_true(600, "all pods have a node", function()
    bound = #client:list("v1/Pod", { fields = "spec.nodeName!=" })
    if bound > 0 then first = first or { at = clock(), bound = bound } end
    return bound == pods
  end)
  local now = clock()
  local cpu = cpu_of(run.pid)
  say("scheduler", { nodes = nodes, pods = pods, wall_s = round(now - from), cpu_s = cpu,
    per_cpu_s = pods // math.max(cpu, 0.01),
    per_s = (pods - first.bound) // math.max(now - first.at, 0.001), goal_per_s = 500 })
  controller.finish(run)
  server:stop()
end

-- ---------------------------------------------------------------- all of them

local big
for _, one in ipairs { { "quota", quota }, { "noderesource", noderesource }, { "nodemetric", nodemetric },
  { "lownodeload", lownodeload }, { "decisions", decisions }, { "scheduler", scheduler } } do
  if not ONLY or ONLY == one[1] then
    if one[2] ~= quota and one[2] ~= scheduler then big = big or cluster() end
    one[2](big)
  end
end
