-- cycle.lua - decides one pod: its node, and why the other nodes are refused. A cycle changes only its caches
-- in the state, and does no I/O, so a scheduler, a simulator and a spec call the same function.
--
--   local result = cycle.run(pod, nodes, state, args)
--   if result.node then snapshot.assume(state, pod, result.node, cycle.got(result)) end
--
-- A plugin is a table of functions, all of which are optional:
--   name
--   prefilter(pod, cycle)      nil, or why no node will do
--   filter(pod, info, cycle)   nil, or a list of reasons why this node (snapshot.info) will not do
--   agrees(pod, cycle)         whether it refuses the pod no node: it is not asked about any then
--   score(pod, info, cycle)    0 to 100
--   normalize(scores, cycle)   changes the scores of all nodes that fit, { [node name] = score }
--   silent(pod, cycle)         whether it has no score for any node: it is not asked for one then
--   fits_room(pod, room, info, cycle)  whether the pod can have what the plugin keeps in a Reservation's room
--   fits_owners(pod, owners, info, cycle)  whether a Reservation can have what these pods have of it
--   hints(pod, from, info, cycle)  the NUMA nodes that suit the pod, { [name] = list of hints of merge.lua },
--                              or nil; or nil and a list of reasons. from: { room, owners }
--   age(info, now, args)       a value: when time alone changes it, the plugins are asked about the node anew
-- cycle is { state, args, request, infos = of all nodes, on = { [node name] = table } }. `cycle` is theirs to
-- remember in what they know of the pod, cycle.on[info.name] what they know of the pod on that node. There
-- NodeNUMAResource says for all of them: numa_nodes, the mask of the pod's NUMA nodes, nil for any; and
-- numa_late, whether that is of the policy BestEffort.
--
-- Pods that are alike (labels, annotations, owners and spec) are answered alike: filter and score are asked
-- again for a node that changed alone, also in the next state of a scheduler (M.go_on). A plugin that looks
-- at more than that and the one node says so in its prefilter: cycle.unlike = true.

local affinity = require "scheduler.affinity"
local alike = require "scheduler.alike"
local deviceshare = require "scheduler.deviceshare"
local fit = require "scheduler.fit"
local kube = require "kubelua"
local lists = require "lib.lists"
local loadaware = require "scheduler.loadaware"
local numa = require "scheduler.numa"
local ports = require "scheduler.ports"
local quota = require "scheduler.quota"
local reservation = require "scheduler.reservation"
local snapshot = require "scheduler.snapshot"
local spread = require "scheduler.spread"
local volumelimits = require "scheduler.volumelimits"
local volumes = require "scheduler.volumes"

local M = {}

-- In the order of their calls; the first one that refuses a node gives the reason.
M.PLUGINS = { quota, fit.unschedulable, fit.taints, fit.affinity, ports, volumes, volumelimits, reservation,
  fit.resources, fit.balanced, spread, affinity, numa, deviceshare, loadaware }
M.WEIGHTS = { NodeResourcesFit = 1, NodeResourcesBalancedAllocation = 1, LoadAwareScheduling = 1,
  NodeNUMAResource = 1, DeviceShare = 1, Reservation = 5000, InterPodAffinity = 2, PodTopologySpread = 2,
  TaintToleration = 3, NodeAffinity = 2 }

-- Kubernetes stops after enough nodes that fit: of more than 100 nodes a percentage, which falls with the
-- number of nodes.
local ENOUGH, HALF, LEAST, STEP = 100, 50, 5, 125
local KINDS = 64 -- of pods that are remembered at a time: each may have an answer for each node

-- Completes the args of cycles; call it once for many cycles. given, all optional: { plugins = list, weights
-- = { [plugin] = weight }, loadaware = LoadAwareSchedulingArgs, quota, deviceshare = scoringStrategy of
-- DeviceShareArgs, numa = NodeNUMAResourceArgs, preallocation = reservation.PREALLOCATION, percentage =
-- percentageOfNodesToScore (0: that of Kubernetes), upstream = "v1.8.0" or "main" }.
function M.args(given)
  given = given or {}
  return {
    complete = true,
    plugins = given.plugins or M.PLUGINS,
    weights = given.weights or M.WEIGHTS,
    loadaware = loadaware.args(given.loadaware),
    quota = given.quota or {},
    deviceshare = given.deviceshare or deviceshare.DEFAULTS,
    numa = given.numa or numa.DEFAULTS,
    preallocation = given.preallocation or reservation.PREALLOCATION,
    percentage = given.percentage or 100,
    upstream = given.upstream or "main",
  }
end

local function enough(n, percentage)
  if n <= ENOUGH then return n end
  if percentage == 0 then percentage = math.max(HALF - n // STEP, LEAST) end
  return math.max(n * percentage // 100, ENOUGH)
end

-- The message for a pod without a node, as Kubernetes writes it: the number of nodes for each reason.
local function explain(total, counts)
  local parts = {}
  for reason, n in pairs(counts) do parts[#parts + 1] = n .. " " .. reason end
  table.sort(parts)
  local why = #parts > 0 and ": " .. table.concat(parts, ", ") or ""
  return ("0/%d nodes are available%s."):format(total, why)
end

local function prefilter(pod, cycle)
  for _, plugin in ipairs(cycle.args.plugins) do
    local why = plugin.prefilter and plugin.prefilter(pod, cycle)
    if why then return why end
  end
  return nil
end

-- ---------------------------------------------------------------- pods that are alike

-- The plugins that score the pod: { plain, stretched }; the latter normalize the scores of all nodes.
local function scorers(pod, cycle)
  local out, args = { plain = {}, stretched = {} }, cycle.args
  for _, plugin in ipairs(args.plugins) do
    local weight = plugin.score and args.weights[plugin.name] or 0
    if weight ~= 0 and not (plugin.silent and plugin.silent(pod, cycle)) then
      local kind = plugin.normalize and out.stretched or out.plain
      kind[#kind + 1] = { plugin = plugin, name = plugin.name, weight = weight }
    end
  end
  return out
end

-- The plugins that may refuse a node.
local function filters(pod, cycle)
  local out = {}
  for _, plugin in ipairs(cycle.args.plugins) do
    if plugin.filter and not (plugin.agrees and plugin.agrees(pod, cycle)) then out[#out + 1] = plugin end
  end
  return out
end

local function same(a, b)
  for i = 1, math.max(#a, #b) do
    local x, y = a[i], b[i]
    if not x or not y or x.name ~= y.name then return false end
  end
  return true
end

-- Chooses the plugins that are asked about these nodes in this state. Answers from another state do not count
-- if other plugins were asked there.
local function renew(pod, kin, state)
  local cycle = kin.cycle
  if kin.asked == state and kin.of == cycle.infos then return end
  local old, asked, scoring = cycle.scorers, filters(pod, cycle), scorers(pod, cycle)
  local as_before = old and same(cycle.filters, asked) and same(old.plain, scoring.plain)
    and same(old.stretched, scoring.stretched)
  if not as_before then kin.said, kin.of = {}, nil end
  cycle.scorers, cycle.filters, kin.asked = scoring, asked, state
end

local function remember(state, key, kin)
  if not state.kin then state.kin, state.n_kin = {}, 0 end
  local n = state.n_kin + (kin and 1 or 0) - (state.kin[key] and 1 or 0)
  if n <= KINDS then state.kin[key], state.n_kin = kin, n end
end

-- What is known of pods like this one, { cycle, now, asked = the state in which plugins were asked about
-- nodes last, said = of the nodes `of`, in their order, what `look` gives, or false, fitting = those that fit
-- now }, and why no node will do. A Reservation may be for one pod alone, so where there are some no two pods
-- are alike.
local function kin_of(pod, state, args)
  local alone = next(state.reservations_on or {}) ~= nil
  local key = not alone and alike.text(pod)
  local kin = key and state.kin and state.kin[key]
  if kin and kin.now == state.now and kin.cycle.args == args then
    kin.cycle.infos = state.infos_of
    local why = prefilter(pod, kin.cycle)
    if not kin.cycle.unlike then return kin, why end
  end
  local cycle = { state = state, args = args, on = {}, infos = state.infos_of,
    request = lists.of(kube.requests(pod)) }
  kin = { now = state.now, said = {}, fitting = {}, cycle = cycle }
  local why = prefilter(pod, cycle)
  if key then remember(state, key, not cycle.unlike and kin or nil) end
  return kin, why
end

local function refusal(pod, info, cycle)
  for _, plugin in ipairs(cycle.filters) do
    local reasons = plugin.filter(pod, info, cycle)
    if reasons then return { plugin = plugin.name, reasons = reasons } end
  end
  return nil
end

-- The cycle of a pod that fits the node in the current state; nil: it does not fit.
local function tried(pod, info, state, args)
  local cycle = { state = state, args = args, on = { [info.name] = {} }, infos = state.infos_of,
    request = lists.of(kube.requests(pod)) }
  if prefilter(pod, cycle) then return nil end
  cycle.filters = filters(pod, cycle)
  return not refusal(pod, info, cycle) and cycle or nil
end

-- Whether the pod fits the node in the current state.
function M.fits(pod, info, state, args) return tried(pod, info, state, args) ~= nil end

-- What the plugins say of a node: { name, stamp, refused, or by = { [plugin] = its score }, sum = of the
-- plain ones }, in the table of what they said of it before, if there is one. A node that is refused has no
-- sum.
local function look(pod, info, kin, before)
  local cycle, said = kin.cycle, before or { name = info.name, by = {} }
  cycle.on[info.name] = {}
  said.stamp, said.refused, said.sum = info.stamp, refusal(pod, info, cycle), nil
  if not said.refused then
    said.sum = 0
    for _, one in ipairs(cycle.scorers.plain) do
      local n = one.plugin.score(pod, info, cycle)
      said.by[one.name], said.sum = n, said.sum + one.weight * n
    end
    for _, one in ipairs(cycle.scorers.stretched) do
      said.by[one.name] = one.plugin.score(pod, info, cycle)
    end
  end
  return said
end

-- What was said of nodes, in the order of these.
local function said_of(kin, all)
  if kin.of ~= all then
    local by_name, said = {}, {}
    for _, one in ipairs(kin.said) do
      if one then by_name[one.name] = one end
    end
    for at, info in ipairs(all) do said[at] = by_name[info.name] or false end
    kin.said, kin.of = said, all
  end
  return kin.said
end

-- The infos (snapshot.info) of the nodes; cached until the list changes.
local function infos_of(nodes, state)
  local known = state.infos_of
  if known and state.infos_from == nodes and #known == #nodes then return known end
  known = {}
  for i, node in ipairs(nodes) do known[i] = snapshot.info(state, node) end
  state.infos_of, state.infos_from = known, nodes
  return known
end

-- ---------------------------------------------------------------- the decision

-- { [plugin] = { [node name] = score } } of the plugins that normalize, for all nodes that fit.
local function stretch(fitting, cycle)
  local out = {}
  for _, one in ipairs(cycle.scorers.stretched) do
    local scores = {}
    for _, said in ipairs(fitting) do scores[said.name] = said.by[one.name] end
    one.plugin.normalize(scores, cycle)
    out[one.name] = scores
  end
  return out
end

-- The name of the node with the best score, those of plugins that normalize included; the first of several.
local function best_of(fitting, cycle, stretched)
  local best, most, others = nil, nil, cycle.scorers.stretched
  local n_others = #others
  for i = 1, #fitting do
    local said = fitting[i]
    local total = said.sum
    for k = 1, n_others do
      local one = others[k]
      total = total + one.weight * stretched[one.name][said.name]
    end
    if not best or total > most or total == most and said.name < best then best, most = said.name, total end
  end
  return best
end

-- { [node name] = { total, by = { [plugin] = score } } } of the nodes that fit.
function M.scores(result)
  local out, kin = {}, result.kin
  for _, said in ipairs(result.fitting or {}) do
    local one = { total = said.sum, by = {} }
    for _, plain in ipairs(kin.cycle.scorers.plain) do one.by[plain.name] = said.by[plain.name] end
    for _, other in ipairs(kin.cycle.scorers.stretched) do
      local n = result.stretched[other.name][said.name]
      one.by[other.name], one.total = n, one.total + other.weight * n
    end
    out[said.name] = one
  end
  return out
end

-- What was said of the nodes that fit, until there are enough; how many nodes have each reason against them;
-- and the name of the node with the best sum, the first of several. The next pod begins with the node after
-- the last. What was said of a node that did not change since is still so.
local function find(pod, all, kin, result)
  local said, fitting, counts, state = said_of(kin, all), kin.fitting, {}, kin.cycle.state
  local n, n_fitting, best, most = #all, 0, nil, nil
  local wanted, from = enough(n, kin.cycle.args.percentage), state.begin_at or 0
  if wanted == n then from = 0 end
  for i = from + 1, from + n do
    local at = i <= n and i or i - n
    local one, info = said[at], all[at]
    if not one or one.stamp ~= info.stamp then
      one = look(pod, info, kin, one)
      said[at] = one
    end
    local sum = one.sum
    if sum then
      n_fitting = n_fitting + 1
      fitting[n_fitting] = one
      if not best or sum > most or sum == most and one.name < best then best, most = one.name, sum end
      if n_fitting == wanted then
        state.begin_at = i % n
        break
      end
    else
      result.refused[one.name] = one.refused
      for _, reason in ipairs(one.refused.reasons) do counts[reason] = (counts[reason] or 0) + 1 end
    end
  end
  for i = #fitting, n_fitting + 1, -1 do fitting[i] = nil end
  return fitting, counts, best
end

-- nodes: list of Nodes; state: see snapshot.lua. Returns
--   { node         the Node, or nil
--     reservation  the Reservation that the pod uses there, or nil
--     owners       for a Reservation that pre-allocates: the pods that it takes over, as entries of the node
--     devices      the pod's devices, as { [type] = list of { minor, resources } }
--     numa         the pod's processors and NUMA nodes, as numa.allocate returns them
--     message      the reason, if there is no node
--     prefilter    true: the reason holds for every node
--     refused      { [node name] = { plugin, reasons } } of the nodes that do not fit }
-- Among nodes with the same best score, the first by name wins. M.scores(result) returns the scores, until
-- the next run.
function M.run(pod, nodes, state, args)
  if not (args and args.complete) then args = M.args(args) end
  local result, all = { refused = {} }, infos_of(nodes, state)
  local kin, why = kin_of(pod, state, args)
  if why then
    result.prefilter = true
    result.message = ("0/%d nodes are available: %s."):format(#nodes, why)
    return result
  end
  local cycle = kin.cycle
  renew(pod, kin, state)
  local fitting, counts, name = find(pod, all, kin, result)
  result.kin, result.fitting, result.stretched = kin, fitting, stretch(fitting, cycle)
  if #cycle.scorers.stretched > 0 then name = best_of(fitting, cycle, result.stretched) end
  local best = name and state.sums[name]
  if best then
    local room = reservation.nominate(pod, best, cycle)
    result.node, result.reservation = best.node, room and room.object
    result.owners = reservation.owners(pod, best, cycle)
    result.devices = deviceshare.allocate(pod, best, cycle)
    result.numa = numa.allocate(pod, best, cycle)
  else
    result.message = explain(#nodes, counts)
  end
  return result
end

-- Whether the answers of a plugin for a node change with time alone.
local function ages(info, before, now, args)
  for _, plugin in ipairs(args.plugins) do
    if plugin.age and plugin.age(info, before, args) ~= plugin.age(info, now, args) then return true end
  end
  return false
end

-- Takes over into a state, in which nothing was decided yet, what is remembered in the one before: of nodes
-- except `changed`, { [name] = true }, and of pods for which plugins were asked about nodes there. Takes over
-- nothing when the args, the namespaces or the templates are others.
function M.go_on(state, before, changed, args)
  state.args = args
  if not before or before.args ~= args or before.namespaces ~= state.namespaces
    or before.templates ~= state.templates then
    return
  end
  snapshot.inherit(state, before, changed)
  for _, info in pairs(state.sums) do
    if ages(info, before.now, state.now, args) then snapshot.renew(info) end
  end
  for key, kin in pairs(before.kin or {}) do
    if kin.asked == before then
      kin.now, kin.cycle.state = state.now, state
      remember(state, key, kin)
    end
  end
end

-- The pod's share of the result: { uid of the Reservation, devices, numa }.
function M.got(result)
  return { uid = result.reservation and result.reservation.metadata.uid, devices = result.devices,
    numa = result.numa }
end

-- What the pod would get on the node in the current state, as M.got; nil: it does not fit.
function M.place(pod, info, state, args)
  local cycle = tried(pod, info, state, args)
  if not cycle then return nil end
  local room = reservation.nominate(pod, info, cycle)
  return M.got { reservation = room and room.object, devices = deviceshare.allocate(pod, info, cycle),
    numa = numa.allocate(pod, info, cycle) }
end

return M
