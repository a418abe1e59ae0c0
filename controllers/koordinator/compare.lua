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
local plan = require "plan"
local report = require "compare.report"
local settings = require "settings"
local sloconfig = require "sloconfig"

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

-- Those that have lasted: the original writes later than it decides, and so by an older report.
local function lasting(found, since, next_since, now, patience)
  local out = {}
  for _, one in ipairs(found) do
    local key = one.node .. " " .. one.name .. " " .. one.reason
    next_since[key] = since[key] or now
    if now - next_since[key] >= patience then out[#out + 1] = one end
  end
  return out
end

local function look(known, ctx, since, next_since)
  local all, cases, nodes, made = {}, { batchresource = {}, midresource = {} }, 0, 0
  for _, node in ipairs(ctx:list(NODE)) do
    local input, decided = decide(node, known, ctx)
    if input then
      nodes = nodes + 1
      local found = lasting(compare.disagreements(input, decided), since, next_since, input.now,
        ctx.params.patienceSeconds)
      for _, one in ipairs(found) do
        local list = cases[one.calc]
        local twice = #list > 0 and list[#list].name == one.node
        local case = not twice and made < ctx.params.cases and compare.case(input, decided, one.calc, found)
        if case then list[#list + 1], made = case, made + 1 end
        all[#all + 1] = one
      end
    end
  end
  return all, cases, nodes
end

local function write(ctx, all, cases, nodes)
  local data = { ["report.txt"] = report.text(all, nodes) }
  for calc, list in pairs(cases) do
    if #list > 0 then data[calc .. ".json"] = kube.encode { calc = calc, cases = list } end
  end
  ctx:apply { apiVersion = "v1", kind = "ConfigMap", data = data,
    metadata = { namespace = sloconfig.NAMESPACE, name = REPORT } }
end

return kube.controller {
  name = "compare-noderesource",
  resource = "v1/Namespace",
  selector = { fields = "metadata.name=" .. sloconfig.NAMESPACE },
  metadata = true,
  reads = { NODE, POD, METRIC, TOPOLOGY, sloconfig.KIND },
  indexes = { [POD] = { node = "spec.nodeName" } },
  every = "60s",
  workers = 1,
  cpu = "20s",
  memory = "2Gi",
  params = {
    patienceSeconds = 300,  -- a disagreement that is younger is not told: koord-manager writes that seldom
    cases = 10,             -- that are kept
  },

  reconcile = function(_, ctx)
    local known = read(ctx)
    if not known.colocation.available then return end
    local next_since = {}
    local all, cases, nodes = look(known, ctx, fields.copy(ctx.memo.since or {}), next_since)
    ctx.memo.since = next_since
    write(ctx, all, cases, nodes)
  end,
}
