-- thirdparty.lua - a node's batch resources are split between Kubernetes and a third party (Hadoop YARN):
-- what is not the other's by SHARE is ours even when it takes less. An annotation tells the other its part.

local amounts = require "amounts"
local batch = require "batchresource"
local kube = require "kubelua"
local prepare = require "prepare"

local SHARE = 40 -- percent, the third party's
local ANNOTATION = "kubelua.dev/third-party-share"

local original = prepare.prepare

function prepare.prepare(node, plan)
  local desired, theirs = original(node, plan), {}
  for _, name in ipairs(batch.NAMES) do
    local whole = plan.resources and plan.resources[name]
    if whole and desired.resources[name] then
      local all = amounts.bytes(prepare.normalized(name, whole, prepare.ratio(plan)))
      local part = all * SHARE // 100
      theirs[name] = prepare.text(name, part)
      desired.resources[name] = math.min(desired.resources[name], all - part)
    end
  end
  desired.annotations[ANNOTATION] = next(theirs) and kube.encode(theirs) or false
  return desired
end
