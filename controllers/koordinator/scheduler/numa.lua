-- numa.lua - NodeNUMAResource: allocates NUMA nodes and exclusive processors of a node to pods. LSE and LSR
-- pods of class prod get whole processors; a policy of the node, of its kubelet or of the pod keeps a pod's
-- resources together. An annotation of each pod lists its processors and NUMA nodes.
--
-- The filter already runs the allocation (numa/place.lua), so no node is chosen on which it fails later.
--
-- A Reservation gets processors and NUMA nodes like its pod would, and has the same annotation. The part of
-- them that its pods do not use is closed to other pods. A pod that is nominated to the Reservation takes the
-- Reservation's first, then those of the node; if the Reservation is Restricted, only the former.
--
-- info.numa, of a node with a NodeResourceTopology, is { topology, placed = a list of the shares of pods and
-- rooms, of = { [entry of info.pods] = its share }, rests = { [uid of a room] = its unused share }, views =
-- { [uid of a room, or ""] = view of numa/place.lua } }.

local cpus = require "scheduler.numa.cpus"
local fields = require "fields"
local lists = require "lib.lists"
local place = require "scheduler.numa.place"
local pods = require "pods"
local reservation = require "scheduler.reservation"
local reserved = require "scheduler.reservation.reserved"
local scores = require "scheduler.scores"
local shares = require "scheduler.numa.shares"
local template = require "scheduler.reservation.template"
local topology = require "scheduler.numa.topology"

local dig = fields.dig

local M = { name = "NodeNUMAResource" }

M.KIND = topology.KIND
M.STATUS, M.SPEC = shares.STATUS, shares.SPEC
M.texts = shares.texts

local TOPOLOGY_SPEC = "scheduling.koordinator.sh/numa-topology-spec"
local BIND_POLICY = "node.koordinator.sh/cpu-bind-policy"
local TOPOLOGY_POLICY = "node.koordinator.sh/numa-topology-policy"
local STRATEGY = "node.koordinator.sh/numa-allocate-strategy"
local FULL, SPREAD = "FullPCPUs", "SpreadByPCPUs"
local OF_NODE = { FullPCPUsOnly = FULL, SpreadByPCPUs = SPREAD }
local MILLI = 1000
local PLAIN = { request = { cpu = MILLI }, n = 1, bind = false, numa_policy = "" } -- of a pod without wishes
local NOTHING = { cpus = {}, zones = {} }
local INTEGER = "the requested CPUs must be integer"
local NOT_IN_ROOM = "pod has a nominated reservation but cannot be allocated within its NUMA scope"

-- As NodeNUMAResourceArgs.
M.DEFAULTS = {
  defaultCPUBindPolicy = FULL,
  scoringStrategy = { type = "LeastAllocated",
    resources = { { name = "cpu", weight = 1 }, { name = "memory", weight = 1 } } },
  numaScoringStrategy = { type = "LeastAllocated",
    resources = { { name = "cpu", weight = 1 }, { name = "memory", weight = 1 } } },
}

-- ---------------------------------------------------------------- the shares of a node

local function known_of(info, cycle)
  if info.numa ~= nil then return info.numa end
  local object = dig(cycle.state.topologies, info.name)
  info.numa = false
  if not object then return false end
  local placed, rests, by_room, of = {}, {}, {}, {}
  for _, entry in pairs(info.pods) do
    local has = entry.numa or shares.read(entry.pod)
    placed[#placed + 1] = has
    of[entry] = has or nil
    local uid = has and entry.uid
    if uid then
      by_room[uid] = by_room[uid] or {}
      table.insert(by_room[uid], has)
    end
  end
  for _, room in ipairs(info.rooms) do
    local own = not reserved.is_spent(room) and shares.read(template.says(room.object))
    if own then
      rests[room.uid] = shares.rest(own, by_room[room.uid] or {})
      placed[#placed + 1] = rests[room.uid]
    end
  end
  info.numa = { topology = topology.read(object), placed = placed, of = of, rests = rests, views = {} }
  return info.numa
end

local function strategy_on(info, cycle)
  return fields.label(info.node, STRATEGY) or cycle.args.numa.numaScoringStrategy.type
end

-- The view of the node for a pod that uses the room, or nil.
local function view_of(known, room, info, cycle)
  local rest = room and known.rests[room.uid]
  local key = rest and room.uid or ""
  local view = known.views[key]
  if not view then
    view = place.view(known.topology, known.placed, topology.ratios(info.node), strategy_on(info, cycle),
      rest, rest and reserved.is_restricted(room))
    known.views[key] = view
  end
  return view
end

-- The view of the node for a Reservation that takes over these pods, and the pods' processors.
local function view_without(known, owners, info, cycle)
  local theirs, placed, is_theirs = { cpus = {}, zones = {} }, {}, {}
  for _, entry in ipairs(owners) do
    local has = known.of[entry]
    if has then
      is_theirs[has] = true
      table.move(has.cpus, 1, #has.cpus, #theirs.cpus + 1, theirs.cpus)
    end
  end
  for _, one in ipairs(known.placed) do
    if not is_theirs[one] then placed[#placed + 1] = one end
  end
  placed[#placed + 1] = theirs
  return place.view(known.topology, placed, topology.ratios(info.node), strategy_on(info, cycle), theirs),
    theirs.cpus
end

-- ---------------------------------------------------------------- the wishes of a pod

-- The bind policy in a pod's annotation, and whether it is required; nil: there is none.
local function policy_of(said, args)
  local function default(policy) return policy == "Default" and args.defaultCPUBindPolicy or policy end
  local preferred, required = said.preferredCPUBindPolicy or "", default(said.requiredCPUBindPolicy or "")
  if preferred == "" then preferred = "Default" end
  local policy = required ~= "" and required or default(preferred)
  if policy ~= FULL and policy ~= SPREAD then return nil end
  return policy, required ~= ""
end

function M.prefilter(pod, cycle)
  local args, asked = cycle.args.numa, cycle.request.cpu or 0
  local spec, why = shares.json_of(pod, M.SPEC)
  local where, not_read = shares.json_of(pod, TOPOLOGY_SPEC)
  if why or not_read then return why or not_read end
  local want = { request = cycle.request, n = asked // MILLI, numa_policy = where.numaTopologyPolicy or "",
    numa_exclusive = where.singleNUMANodeExclusive or "" }
  local qos = pods.raw_qos(pod)
  local own = (qos == "LSE" or qos == "LSR") and pods.class(pod) == "koord-prod"
  if own and asked > 0 then
    want.policy, want.required = policy_of(spec, args)
    if want.policy and asked % MILLI ~= 0 then return INTEGER end
    want.bind, want.exclusive = want.policy ~= nil, want.policy and spec.preferredCPUExclusivePolicy
  end
  want.nothing = not want.bind and want.numa_policy == "" and not pod.preallocates
  cycle.numa = want
  return nil
end

-- The bind policy on a node: that of the node, or else the pod's; `conflict`: the pod requires another one.
-- nil and the reason: the node needs whole processors, and the pod's request has a fraction.
local function bind_on(info, known, want)
  local label = fields.label(info.node, BIND_POLICY)
  local of_node = OF_NODE[label]
  if known and known.topology.full_only then of_node = FULL end
  local asked = want.request.cpu or 0
  if not of_node or asked == 0 then return want end
  local out = { request = want.request, n = want.n, exclusive = want.exclusive, bind = want.bind,
    policy = want.policy, required = want.required }
  if not want.bind and asked % MILLI ~= 0 then return nil, INTEGER end
  out.conflict = want.required and want.policy ~= of_node
  out.bind, out.policy, out.required = true, of_node, true
  return out
end

-- The NUMA policy on a node, "" for none; nil: the pod's policy differs from the node's.
local function together_on(info, known, want)
  local policy = fields.label(info.node, TOPOLOGY_POLICY) or ""
  if policy == "" and known then policy = known.topology.policy end
  if policy ~= "" and want.numa_policy ~= "" and policy ~= want.numa_policy then return nil end
  return policy ~= "" and policy or want.numa_policy
end

-- Whether the node has no policy and no amplified cpu, cached for as long as its objects are the same.
local function is_plain(info, cycle)
  if info.numa_plain == nil then
    local known = known_of(info, cycle)
    local ratios, why = topology.ratios(info.node)
    info.numa_plain = not why and (ratios and ratios.cpu or 0) <= 1 and together_on(info, known, PLAIN) == ""
      and bind_on(info, known, PLAIN) == PLAIN
  end
  return info.numa_plain
end

-- Whether neither the pod nor the node has a wish: most pods, on most nodes.
local function is_free(info, cycle) return cycle.numa.nothing and is_plain(info, cycle) end

-- ---------------------------------------------------------------- scores

-- The score of these amounts with the request `asked`. used: without the pod; cpu: the used cpu, if it
-- differs from used.cpu.
local function score_of(strategy, used, asked, total, cpu)
  local sum, weights = 0, 0
  for _, one in ipairs(strategy.resources) do
    local name = one.name
    local all = total[name] or 0
    local counts = all ~= 0 and (name == "cpu" or name == "memory" or (asked[name] or 0) > 0)
    if counts then
      local before = name == "cpu" and cpu or used[name] or 0
      local n = before + (asked[name] or 0)
      sum, weights = sum + one.weight * scores.points(strategy, n, all), weights + one.weight
    end
  end
  return weights > 0 and sum // weights or 0
end

-- The request of a pod on a node with amplified cpu: exclusive processors count for more.
local function amplified(want, ratio)
  if not want.bind or not ratio or ratio <= 1 then return want.request end
  local out = lists.copy(want.request)
  out.cpu = place.amplify(out.cpu or 0, ratio)
  return out
end

-- ---------------------------------------------------------------- the plugin

-- Why a pod does not fit a node with amplified cpu, on which exclusive processors count for more; nil: it
-- fits.
local function fits_amplified(pod, info, view, want, cycle)
  local asked = want.request.cpu or 0
  if asked == 0 then return nil end
  local ratios, why = topology.ratios(info.node)
  if why then return "node(s) invalid CPU amplification ratio" end
  local ratio = ratios and ratios.cpu or 0
  if ratio <= 1 then return nil end
  local taken = reservation.taken(pod, info, cycle).cpu or 0
  local own = view and cpus.size(view.allocated) * MILLI or 0
  if own > 0 and taken >= own then taken = taken - own + place.amplify(own, ratio) end
  if want.bind then asked = place.amplify(asked, ratio) end
  return asked > (info.allocatable.cpu or 0) - taken and "Insufficient amplified cpu" or nil
end

-- The hints of the other plugins, { [name] = list of hints }; or nil and a list of reasons.
local function hints_of(pod, from, info, cycle)
  local out = {}
  for _, plugin in ipairs(cycle.args.plugins) do
    local hints, reasons
    if plugin.hints then hints, reasons = plugin.hints(pod, from, info, cycle) end
    if reasons then return nil, reasons end
    for name, list in pairs(hints or {}) do out[name] = list end
  end
  return out
end

-- The pod's share of a view: { cpus, zones, exclusive }, with empty lists for a pod without policies, and the
-- mask of its NUMA nodes, nil for any; or nil and a list of reasons. from: { room, owners }, what the view
-- allocates from first.
local function decide_of(view, from, pod, info, cycle)
  local known, want = known_of(info, cycle), cycle.numa
  local policy = together_on(info, known, want)
  if not policy then return nil, { "node(s) NUMA Topology policy not match" } end
  local bound, why = bind_on(info, known, want)
  if not bound then return nil, { why } end
  why = fits_amplified(pod, info, view, bound, cycle)
  if why then return nil, { why } end
  if not bound.bind and policy == "" then return { cpus = {}, zones = {} } end
  if bound.bind then
    if not known or known.topology.n_cpus == 0 then return nil, { "node(s) invalid CPU Topology" } end
    if bound.conflict then
      return nil, { "node(s) cpu bind policy conflicts with pod's required cpu bind policy" }
    end
    if bound.required and bound.policy == FULL and bound.n % known.topology.per_core ~= 0 then
      return nil, { "node(s) requested cpus not multiple cpus per core" }
    end
  elseif not known then
    return nil, { "node(s) missing NUMA resources" }
  end
  local out, reasons, mask
  if policy == "" then
    out, reasons = place.allocate(view, bound, nil)
  else
    local exclusive = want.numa_exclusive
    if exclusive == "" and want.numa_policy ~= "" then exclusive = "Required" end
    local others, none = hints_of(pod, from, info, cycle)
    if not others then return nil, none end
    local asked = amplified(bound, view.ratio)
    out, reasons, mask = place.admit(view, bound, policy, exclusive, function(used, total)
      return score_of(cycle.args.numa.numaScoringStrategy, used, asked, total)
    end, others)
  end
  if out then out.policy = bound.bind and { name = bound.policy, required = bound.required } or nil end
  return out, reasons, mask
end

-- The same with the room, or nil.
local function decide_in(room, pod, info, cycle)
  local known = known_of(info, cycle)
  return decide_of(known and view_of(known, room, info, cycle), { room = room }, pod, info, cycle)
end

-- The same for a Reservation that takes over these pods; it must get all of their processors.
local function decide_for(owners, pod, info, cycle)
  local known = known_of(info, cycle)
  if not known then return decide_of(known, { owners = owners }, pod, info, cycle) end
  local view, theirs = view_without(known, owners, info, cycle)
  local out, reasons, mask = decide_of(view, { owners = owners }, pod, info, cycle)
  local got = {}
  for _, id in ipairs(out and out.cpus or {}) do got[id] = true end
  for _, id in ipairs(out and theirs or {}) do
    if not got[id] then return nil, { place.FEW } end
  end
  return out, reasons, mask
end

function M.fits_owners(pod, owners, info, cycle)
  return not cycle.numa or decide_for(owners, pod, info, cycle) ~= nil
end

-- If the pod does not fit with its room, v1.8.0 allocates from the node alone; later versions refuse the
-- node.
local function decide(pod, info, cycle)
  local owners = pod.preallocates and reservation.owners(pod, info, cycle)
  if owners and #owners > 0 then return decide_for(owners, pod, info, cycle) end
  local known = known_of(info, cycle)
  local room = known and reservation.nominate(pod, info, cycle)
  local out, reasons, mask = decide_in(room, pod, info, cycle)
  if out or not room or not known.rests[room.uid] then return out, reasons, mask end
  if cycle.args.upstream ~= "v1.8.0" then return nil, { NOT_IN_ROOM } end
  return decide_in(nil, pod, info, cycle)
end

-- A pod with an affinity to Reservations fits a room only if its share can come from the room.
function M.fits_room(pod, room, info, cycle)
  if not cycle.affinity or not cycle.numa then return true end
  local known = known_of(info, cycle)
  return not known or not known.rests[room.uid] or decide_in(room, pod, info, cycle) ~= nil
end

-- The pod's share on the node, or nil and the reasons. nil without this plugin's prefilter.
function M.allocate(pod, info, cycle)
  if not cycle.numa then return nil end
  if is_free(info, cycle) then return NOTHING end
  local mine = cycle.on[info.name]
  if not mine.numa then
    local out, reasons, mask = decide(pod, info, cycle)
    mine.numa = { out = out, reasons = reasons }
    mine.numa_nodes = mask
    mine.numa_late = mask and together_on(info, known_of(info, cycle), cycle.numa) == "BestEffort"
  end
  return mine.numa.out, mine.numa.reasons
end

function M.filter(pod, info, cycle)
  local out, reasons = M.allocate(pod, info, cycle)
  return not out and reasons or nil
end

function M.silent(_, cycle) return next(cycle.request) == nil end

-- The total and the used amounts of the pod's NUMA nodes; of the whole node for a pod without NUMA nodes.
local function sums(zones, view, pod, info, cycle)
  if #zones == 0 then return info.allocatable, reservation.taken(pod, info, cycle) end
  local total, used = {}, {}
  for _, mine in ipairs(zones) do
    for _, zone in ipairs(view.zones) do
      if zone.node == mine.node then
        lists.accumulate(total, zone.resources)
        lists.accumulate(used, lists.sub(zone.resources, view.free[zone.node]))
      end
    end
  end
  return total, used
end

-- The free part of the pod's NUMA nodes. For a pod without NUMA nodes, and under BestEffort, where upstream
-- allocates after scoring, that of the whole node.
function M.score(pod, info, cycle)
  if is_free(info, cycle) then
    return score_of(cycle.args.numa.scoringStrategy, reservation.taken(pod, info, cycle), cycle.request,
      info.allocatable)
  end
  local known, got = known_of(info, cycle), M.allocate(pod, info, cycle)
  local view = known and view_of(known, reservation.nominate(pod, info, cycle), info, cycle)
  local policy, ratio = together_on(info, known, cycle.numa), view and view.ratio
  local own = view and cpus.size(view.allocated) * MILLI or 0
  local bound = { request = cycle.request, bind = #got.cpus > 0 }
  local total, used = sums(policy == "BestEffort" and {} or got.zones, view, pod, info, cycle)
  local cpu
  if policy == "" then
    if own > 0 and ratio and ratio > 1 then cpu = (used.cpu or 0) - own + place.amplify(own, ratio) end
  elseif bound.bind then
    cpu = place.amplify(own, ratio) -- upstream counts the processors of the whole node here
  end
  return score_of(cycle.args.numa.scoringStrategy, used, amplified(bound, ratio), total, cpu)
end

return M
