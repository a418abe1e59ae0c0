-- load_fixtures.lua - the calculations low_node_load, low_node_load_passes, loadaware, numa, devices and
-- placement for fixtures.lua, which passes its comparisons as `tools`.

local kube = require "kubelua"
local balance = require "lownodeload.balance"
local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local filter = require "podmigrationjob.filter"
local lists = require "lib.lists"
local loadaware = require "scheduler.loadaware"
local placement = require "compare.placement"
local numa = require "scheduler.numa"
local pods = require "pods"
local snapshot = require "scheduler.snapshot"
local victims = require "lownodeload.victims"
local workload = require "podmigrationjob.workload"

local CLASSES = { "low", "high", "prodLow", "prodHigh", "bothLow" }
local LIMITS = { low = "low", high = "high", plow = "prod_low", phigh = "prod_high" }

-- Compares the derived loads of a case: { [node] = list } or { [node] = { [limit] = list } }.
local function check_loads(result, derived)
  local loads = {}
  for _, load in ipairs(result.loads) do loads[load.name] = load end
  local function same(what, want, got)
    for name, quantity in pairs(want) do
      if lists.amount(name, quantity) ~= got[name] then
        return ("%s: %s: expected %s, got %s"):format(what, name, tostring(quantity), tostring(got[name]))
      end
    end
  end
  for name, limits in pairs(derived.thresholds) do
    for short, field in pairs(LIMITS) do
      local wrong = same(short .. " of " .. name, limits[short], loads[name][field])
      if wrong then return wrong end
    end
  end
end

local function pods_on(input)
  local out = {}
  for _, pod in ipairs(input.pods) do
    out[pod.spec.nodeName] = out[pod.spec.nodeName] or {}
    table.insert(out[pod.spec.nodeName], pod)
  end
  return out
end

-- The filter of the pods of a case with jobs and workloads.
local function gate_of(input)
  local by_key, loads = {}, {}
  for _, pod in ipairs(input.pods) do by_key[pods.key(pod)] = pod end
  for _, load in ipairs(input.workloads) do
    local unavailable = {}
    for _, key in ipairs(load.unavailable) do unavailable[key] = true end
    loads[load.controller] = { uid = load.controller, replicas = load.replicas, unavailable = unavailable }
  end
  return filter.open(filter.settings(input.args), input.jobs,
    function(job) return by_key[filter.pod_key(job) or ""] end,
    function(pod) return loads[workload.controller_uid(pod) or ""] end)
end

return function(calcs, tools)
  local function by_node_name(metrics)
    local out = {}
    for _, metric in ipairs(metrics) do out[metric.metadata.name] = metric end
    return out
  end

  -- Passes with LowNodeLoadArgs, one after the other: the pods that each moves. There may be several outcomes
  -- where the original is not deterministic; or `moved`, all moved pods by name. With jobs and workloads, the
  -- filter of the migration controller applies.
  calcs.low_node_load_passes = function(input, expect)
    local args, detectors, lines, moved = input.args, { node = {}, prod = {} }, {}, {}
    local gate = input.jobs and gate_of(input)
    for i = 1, input.passes do
      local names = {}
      balance.all(args, {
        nodes = input.nodes, pods_on = pods_on(input), metrics = by_node_name(input.nodeMetrics),
        now = kube.time(input.now):unix(), detectors = detectors, budget = input.maxEvictions,
        evictable = function(pod)
          if gate then return not gate.refused(pod) end
          return victims.evictable(pod) and victims.chosen(pod, args)
        end,
        move = function(move)
          if gate and gate.refused(move.pod) then return false end
          if gate then gate.note(move.pod) end
          names[#names + 1] = pods.key(move.pod)
          moved[#moved + 1] = pods.key(move.pod)
          return true
        end,
      })
      lines[i] = table.concat(names, " ")
    end
    if expect.moved then
      table.sort(moved)
      return tools.value("moved", expect.moved, moved)
    end
    local ours = table.concat(lines, "\n")
    for _, outcome in ipairs(expect.outcomes or {}) do
      if outcome == ours then return nil end
    end
    return ("expected one of %s, got %q"):format(tools.show(expect.outcomes), ours)
  end

  calcs.low_node_load = function(input, expect, derived)
    local result = balance.pass {
      pool = input.nodePool, nodes = input.nodes, pods_on = pods_on(input),
      metrics = by_node_name(input.nodeMetrics), now = 0,
      node_fit = input.nodeFit, budget = input.maxEvictions, detectors = { node = {}, prod = {} },
      evictable = function(pod) return victims.evictable(pod) and victims.chosen(pod, input) end,
      move = function() return true end,
    }
    local classes = {}
    for _, class in ipairs(CLASSES) do
      classes[class] = {}
      for i, load in ipairs(result.classes[class]) do classes[class][i] = load.name end
    end
    return tools.first(
      tools.when(derived, function(want)
        return tools.value("classification", want.classification, classes)
      end),
      tools.when(derived, function(want) return check_loads(result, want) end),
      tools.value("evictedCount", expect.evictedCount, #result.moves))
  end

  -- One node: the estimated usage of the pod, the refusal, and the score.
  calcs.loadaware = function(input, expect)
    local node, args = input.node, cycle.args { loadaware = input.args }
    local name = node.metadata.name
    local state = { now = kube.time(input.now):unix(), pods_on = { [name] = input.pods },
      metrics = { [name] = input.nodeMetric } }
    local info, one = snapshot.info(state, node), { state = state, args = args }
    return tools.first(
      tools.value("estimate", expect.estimate, loadaware.estimate(input.pod, args.loadaware)),
      tools.value("refused", expect.refused or {}, loadaware.filter(input.pod, info, one) or {}),
      tools.value("score", expect.score, loadaware.score(input.pod, info, one)))
  end

  -- One node: the refusal of NodeNUMAResource, or the share of the pod, its policy, and the score.
  calcs.numa = function(input, expect)
    local name = input.node.metadata.name
    local state = { now = 0, pods_on = { [name] = input.pods or {} },
      topologies = { [name] = input.topology } }
    local result = cycle.run(input.pod, { input.node }, state, cycle.args { plugins = { numa } })
    if not result.node then
      local refused = result.refused[name]
      local reasons = refused and refused.reasons or { (result.message:match "available: (.*)%.$") }
      table.sort(reasons)
      local want = expect.refused and table.move(expect.refused, 1, #expect.refused, 1, {})
      if want then table.sort(want) end
      -- Our filter refuses what the original refuses only later, with another message.
      return not (want and expect.late) and tools.value("refused", want, reasons) or nil
    end
    if expect.refused then return "expected " .. tools.show(expect.refused) .. ", got the node" end
    local status, spec = numa.texts(result.numa, input.pod)
    local got, zones = status and fields.json(status) or {}, {}
    for i, zone in ipairs(expect.status.numaNodeResources or {}) do
      local mine = (got.numaNodeResources or {})[i]
      zones[i] = tools.first(tools.value("NUMA node", zone.node or 0, mine and mine.node),
        tools.quantities("NUMA node " .. (zone.node or 0), zone.resources, mine and mine.resources))
    end
    return tools.first(
      tools.value("cpuset", expect.status.cpuset, got.cpuset),
      tools.value("NUMA nodes", #(expect.status.numaNodeResources or {}), #(got.numaNodeResources or {})),
      table.unpack(zones, 1, #(expect.status.numaNodeResources or {})))
      or tools.value("spec", expect.spec and fields.json(expect.spec),
        fields.json(spec or fields.annotation(input.pod, numa.SPEC) or "null"))
      or tools.when(expect.score, function(want)
        return tools.value("score", want, cycle.scores(result)[name].by[numa.name])
      end)
  end

  -- One node: the refusal of NodeNUMAResource and DeviceShare together, or the devices of the pod and the
  -- score of the latter.
  calcs.devices = function(input, expect)
    local name = input.node.metadata.name
    local state = { now = 0, pods_on = { [name] = input.pods or {} },
      topologies = { [name] = input.topology }, devices = { [name] = input.device } }
    local strategy = input.most and fields.merge(deviceshare.DEFAULTS, { type = "MostAllocated" }) or nil
    local result = cycle.run(input.pod, { input.node }, state,
      cycle.args { plugins = { numa, deviceshare }, deviceshare = strategy })
    if not result.node then
      local refused, said = result.refused[name], {}
      for _, reason in ipairs(refused and refused.reasons or { result.message:match "available: (.*)%.$" }) do
        said[reason] = true
      end
      -- The original names one type of devices of several, by chance; it refuses some nodes only later, and
      -- under BestEffort it looks at NUMA nodes later.
      local policy = fields.label(input.node, "node.koordinator.sh/numa-topology-policy")
      local late = expect.late or expect.refused and policy == "BestEffort"
      for _, reason in ipairs(late and {} or expect.refused or { "nothing" }) do
        if not said[reason] then
          return "expected " .. reason .. ", got " .. table.concat(fields.names(said), ", ")
        end
      end
      return nil
    end
    if expect.refused then return "expected " .. tools.show(expect.refused) .. ", got the node" end
    local want = fields.copy(expect.devices or {})
    for _, list in pairs(want) do table.sort(list, function(a, b) return a.minor < b.minor end) end
    return tools.first(
      tools.value("devices", want, fields.json(deviceshare.text(result.devices) or "{}")),
      tools.value("score", expect.score, result.fitting[1].by[deviceshare.name] or 0))
  end

  -- A pod and some nodes: the expected node fits, and no other has a higher score.
  calcs.placement = function(input, expect)
    local wrong = placement.verdict(input, expect.node)
    return wrong and ("expected %s, got %s: %s, %s%s"):format(expect.node, wrong.ours or "no node",
      wrong.name,
      wrong.reason, wrong.why and ": " .. wrong.why or "")
  end
end
