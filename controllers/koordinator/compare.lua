-- compare.lua - runs the node resource policy beside koord-manager and says where the two disagree: what
-- stands on nodes, against what the policy makes of the same inputs. Nodes are not written. The ConfigMap
-- koordinator-system/koordinator-compare has the report, and the inputs of disagreements as cases for `make
-- fixtures`.
--
--   kubelua run controllers/koordinator/compare.lua

local kube = require "kubelua"
local colocation = require "colocation"
local compare = require "compare.node"
local fields = require "fields"
local lasting = require "compare.lasting"
local plan = require "plan"
local report = require "compare.report"
local settings = require "settings"
local sloconfig = require "sloconfig"
local whole = require "lib.whole"

local NODE, POD = "v1/Node", "v1/Pod"
local METRIC = "slo.koordinator.sh/v1alpha1/NodeMetric"
local TOPOLOGY = "topology.node.k8s.io/v1alpha1/NodeResourceTopology"
local REPORT = "koordinator-compare"

local read = sloconfig.reader(settings.new(), settings.sync)

-- What the policy decides of a node, and by what; nil where colocation is off.
local function decide(node, known, ctx)
  local strategy, name = colocation.strategy(known.colocation.cfg, node), node.metadata.name
  if not colocation.enabled(known.colocation.cfg, strategy) then return nil end
  local input = { strategy = strategy, node = node, nodeMetric = ctx:get(METRIC, name) or {},
    nodeResourceTopology = ctx:get(TOPOLOGY, name), now = ctx:now():unix(),
    pods = ctx:list(POD, { index = "node", value = name }),
    cpuNormalization = known.cpuNormalization, resourceAmplification = known.resourceAmplification }
  return input, (plan.calculate(input))
end

-- A case of each calculation in which a node disagrees, as long as there is room.
local function keep_cases(seen, found, input, decided, most)
  for _, one in ipairs(found) do
    local list = seen.cases[one.calc]
    local twice = #list > 0 and list[#list].name == one.object
    local case = not twice and seen.kept < most and compare.case(input, decided, one.calc, found)
    if case then list[#list + 1], seen.kept = case, seen.kept + 1 end
  end
end

-- since: of the disagreements at the last look; seen.since is what they are at this one.
local function look(known, ctx, since)
  local seen = { all = {}, nodes = 0, since = {}, cases = { batchresource = {}, midresource = {} }, kept = 0 }
  for _, node in ipairs(ctx:list(NODE)) do
    local input, decided = decide(node, known, ctx)
    if input then
      local found, until_next = lasting.of(compare.disagreements(input, decided), since, input.now,
        ctx.params.patienceSeconds)
      for key, time in pairs(until_next) do seen.since[key] = time end
      seen.nodes = seen.nodes + 1
      table.move(found, 1, #found, #seen.all + 1, seen.all)
      keep_cases(seen, found, input, decided, ctx.params.cases)
    end
  end
  return seen
end

local function write(ctx, seen)
  local cases = {}
  for calc, list in pairs(seen.cases) do
    if #list > 0 then cases[calc .. ".json"] = kube.encode { calc = calc, cases = list } end
  end
  report.write(ctx, REPORT, report.text(seen.all, seen.nodes, "nodes"), cases)
end

return whole.controller {
  name = "compare-noderesource",
  reads = { NODE, POD, METRIC, TOPOLOGY, sloconfig.KIND },
  indexes = { [POD] = { node = "spec.nodeName" } },
  every = "60s",
  params = {
    patienceSeconds = 300,  -- a disagreement that is younger is not told: koord-manager writes that seldom
    cases = 10,             -- that are kept
  },

  reconcile = function(_, ctx)
    local known = read(ctx)
    if not known.colocation.available then return end
    local seen = look(known, ctx, fields.copy(ctx.memo.since or {}))
    ctx.memo.since = seen.since
    write(ctx, seen)
  end,
}
