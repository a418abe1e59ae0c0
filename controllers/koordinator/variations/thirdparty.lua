-- thirdparty.lua - splits a node's batch resources between Kubernetes and a third party (Hadoop YARN). SHARE
-- of them is the third party's, also while it uses less; an annotation has the amounts.

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
