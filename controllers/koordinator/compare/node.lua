-- node.lua - where the original's figures of a node differ from ours: batch and mid resources as they stand
-- on its status, against what the policy makes of the same inputs now.

local batch = require "batchresource"
local case = require "compare.case"
local fields = require "fields"
local kube = require "kubelua"
local mid = require "midresource"
local prepare = require "prepare"

local M = {}

local CALCS = { batchresource = batch.NAMES, midresource = mid.NAMES }

-- Where they differ by more than the part (0.1) of the original's figure that it calls a difference:
-- { object, calc, name, theirs, ours, reason, why }; theirs and ours are nil where there is none.
--   input  what plan.calculate took; decided  what it returned
function M.disagreements(input, decided)
  local out, node = {}, input.node
  local desired = prepare.prepare(node, decided)
  for calc, names in pairs(CALCS) do
    for _, name in ipairs(names) do
      local quantity = fields.dig(node, "status", "allocatable", name)
      local theirs, ours = quantity ~= nil and kube.qty(quantity):value() or nil,
        desired.resources[name] or nil
      if prepare.differs(theirs, ours, input.strategy.resourceDiffThreshold) then
        local why = decided.messages[name]
        out[#out + 1] = { object = node.metadata.name, calc = calc, name = name, theirs = theirs, ours = ours,
          reason = case.reason(theirs, ours), why = why and why() }
      end
    end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

-- Whether what stands on the node is what was calculated, so that a case of the calculation can say it.
local function as_calculated(node, decided)
  return prepare.ratio(decided) <= 1
    and fields.annotation(node, prepare.THIRD_PARTIES) == nil
end

-- A case of spec/fixtures/koordinator that expects the original's figures where the two disagree, and ours
-- where they do not; nil where the calculation is not all that made the figures.
function M.case(input, decided, calc, list)
  if not as_calculated(input.node, decided) then return nil end
  local resources, resets = {}, decided.resets or {}
  for _, name in ipairs(CALCS[calc]) do
    resources[name] = not resets[name] and decided.resources[name] or nil
  end
  for _, one in ipairs(list) do
    if one.calc == calc then resources[one.name] = one.theirs end
  end
  local pods = {}
  for i, pod in ipairs(input.pods) do pods[i] = case.bare(pod) end
  return { name = input.node.metadata.name, source = case.SOURCE,
    input = { strategy = fields.copy(input.strategy), node = case.bare(input.node), pods = kube.array(pods),
      nodeMetric = case.bare(input.nodeMetric), nodeResourceTopology = case.bare(input.nodeResourceTopology),
      now = tostring(kube.time(input.now)) },
    expect = next(resources) and { resources = resources } or { reset = CALCS[calc] } }
end

return M
