-- quota_fixtures.lua - the calculations elastic_quota, quota_overuse_revoke and quota_profile for
-- fixtures.lua, which passes its comparisons as `tools`.

local lists = require "lib.lists"
local quota = require "elasticquota.quota"
local revoke = require "elasticquota.revoke"
local root = require "quotaprofile.root"
local share = require "elasticquota.share"
local tree = require "elasticquota.tree"

local NAMES = {
  runtime = "runtime", request = "request", childRequest = "child_request", limitRequest = "limit_request",
  autoScaleMin = "auto_min", guaranteed = "guaranteed", allocated = "allocated", used = "used",
  sharedWeight = "weight",
}

local function nodes_of(input)
  local nodes = {}
  for i, node in ipairs(input.nodes) do
    nodes[i] = { name = node.name, weight = node.sharedWeight, request = node.request, min = node.min,
      guarantee = node.guarantee, lends = node.allowLentResource }
  end
  return nodes
end

local function pods_of(input)
  local pods = {}
  local function sums(name)
    pods[name] = pods[name] or { request = {}, used = {} }
    return pods[name]
  end
  for name, list in pairs(input.podRequests) do sums(name).request = lists.of(list) end
  for name, list in pairs(input.podUsed or {}) do sums(name).used = lists.of(list) end
  return pods
end

local function calculated(input)
  local quotas = {}
  for i, object in ipairs(input.quotas) do quotas[i] = quota.read(object) end
  return tree.calculate {
    quotas = quotas, pods = pods_of(input), total = lists.of(input.totalResource),
    scale_min = input.scaleMinQuotaEnabled == true, guarantee = input.guaranteeUsage == true,
    upstream = input.upstream or "main",
  }
end

return function(calcs, tools)
  -- Upstream does not assert fields that a case does not list; zero equals absent.
  local function subset(what, want, got)
    for name, quantity in pairs(want) do
      local n = got[name] or 0
      if n ~= lists.amount(name, quantity) then
        return ("%s: %s: expected %s, got %s"):format(what, name, tostring(quantity), lists.text(name, n))
      end
    end
  end

  calcs.elastic_quota = tools.by_op {
    redistribute = function(input, expect)
      return tools.some_of("runtime", expect.runtime,
        share.redistribute(input.total, nodes_of(input), "main"))
    end,
    scaledMin = function(input, expect)
      local children = {}
      for i, child in ipairs(input.children) do
        children[i] = { name = child.name, min = lists.of(child.min), scales = child.enableScale }
      end
      local scaled = share.scaled_min(lists.of(input.total), children, "main")
      for name, want in pairs(expect.scaledMin) do
        local wrong = subset("scaledMin of " .. name, want, scaled[name] or {})
        if wrong then return wrong end
      end
    end,
    runtime = function(input, expect)
      local infos = calculated(input)
      for _, object in ipairs(input.quotas) do
        infos[object.metadata.name].weight = quota.read(object).weight
      end
      for name, want in pairs(expect.quotas) do
        for field, list in pairs(want) do
          local mine = NAMES[field] or error("no such field of a quota: " .. field, 0)
          local wrong = subset(field .. " of " .. name, list, infos[name] and infos[name][mine] or {})
          if wrong then return wrong end
        end
      end
    end,
  }

  calcs.quota_overuse_revoke = function(input, expect)
    local pods, used = {}, {}
    for i, pod in ipairs(input.assignedPods) do
      pods[i] = pod
      used = lists.add(used, lists.of(require("kubelua").requests(pod)))
    end
    local names = {}
    for i, pod in ipairs(revoke.victims(pods, used, lists.of(input.runtime))) do
      names[i] = pod.metadata.name
    end
    if expect.revokeCount and #names ~= expect.revokeCount then
      return ("expected %d pods, got %d"):format(expect.revokeCount, #names)
    end
    return tools.when(expect.revoke, function(want) return tools.value("revoke", want, names) end)
  end

  calcs.quota_profile = function(input, expect)
    local desired = root.desired(input.profile, input.nodes)
    return tools.first(
      tools.when(expect.min, function(want) return subset("min", want, desired.min) end),
      tools.when(expect.max, function(want) return subset("max", want, desired.max) end),
      tools.when(expect.totalResource, function(want)
        return subset("totalResource", want, desired.total)
      end),
      tools.when(expect.unschedulableResource, function(want)
        return subset("unschedulableResource", want, desired.unschedulable)
      end),
      tools.when(expect.labels, function(want) return tools.some_of("labels", want, desired.labels) end))
  end
end
