-- dump.lua - kubelua dump: every object of a server as one list for --load, kubectl and people. It is written
-- as it is read, one line per object, and never held in memory.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local secrets = require "kubelua.cli.secrets"

local M = {}

M.options = {
  { "--redact-secrets", nil, "replace each value in Secrets by \"redacted\"",
    type = "flag" },
}

-- Definitions before their objects, namespaces before their content.
local RANK = { ["apiextensions.k8s.io/v1/CustomResourceDefinition"] = 1, ["v1/Namespace"] = 2 }

-- Kinds that are generated, and duplicate names of a kind.
local LEFT_OUT = { ["events.k8s.io/v1/Event"] = true, ["autoscaling/v1/HorizontalPodAutoscaler"] = true,
  ["metrics.k8s.io/v1beta1/NodeMetrics"] = true, ["metrics.k8s.io/v1beta1/PodMetrics"] = true }

-- Marks the APIServices that a server makes by itself.
local AUTOMATIC = "kube-aggregator.kubernetes.io/automanaged"

local function listable(r)
  for _, verb in ipairs(r.verbs or {}) do
    if verb == "list" then return true end
  end
  return false
end

local function kinds(c)
  local out, failed = {}, nil
  local resources, errors = c:resources()
  for group, why in pairs(errors) do failed = failed or ("%s: %s"):format(group, why) end
  if failed then error("an incomplete dump is useless; kinds that failed: " .. failed, 0) end
  for _, r in ipairs(resources) do
    local kind = r.kind   -- "apps/v1/Deployment"
    if listable(r) and not LEFT_OUT[kind] then out[#out + 1] = kind end
  end
  table.sort(out, function(a, b)
    local x, y = RANK[a] or 3, RANK[b] or 3
    if x ~= y then return x < y end
    return a < b
  end)
  return out
end

local function write(text)
  local ok, why = io.write(text)
  if not ok then error("cannot write the dump: " .. why, 0) end
end

function M.run(env)
  if #env.words > 0 then common.usage("takes no arguments, got %s", env.words[1]) end
  env.connect.cache_ttl = "0s"   -- a kind that is not known yet would be missing silently
  local c <close> = common.connect(env)
  local n = 0
  write('{"kind":"List","apiVersion":"v1","metadata":{},"items":[')
  for _, kind in ipairs(kinds(c)) do
    for o in c:each(kind) do
      if not o("metadata.labels", AUTOMATIC) then
        local shown = env.options.redact_secrets and secrets.redacted(o) or o
        write((n > 0 and ",\n" or "\n") .. core.encode(shown))
        n = n + 1
      end
    end
  end
  write "\n]}\n"
  common.remark("%d objects", n)
end

return M
