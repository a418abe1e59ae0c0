-- cost-report.lua - the status of a CostReport lists what each namespace requests and costs.

local kube = require "kubelua"

local HOURS_OF_MONTH, GIB = 730, 1 << 30

-- Cores and GiB that the running and pending pods of each namespace request.
local function usage(pods)
  local sums = {}
  for _, pod in ipairs(pods) do
    local phase = pod("status.phase")
    if phase == "Running" or phase == "Pending" then
      local wants, ns = kube.requests(pod), pod.metadata.namespace
      local sum = sums[ns] or { cores = 0, gib = 0, pods = 0 }
      sum.cores = sum.cores + (wants.cpu and wants.cpu:number() or 0)
      sum.gib = sum.gib + (wants.memory and wants.memory:number() or 0) / GIB
      sum.pods = sum.pods + 1
      sums[ns] = sum
    end
  end
  return sums
end

-- Rounded to cents, so that the status changes only when a sum does.
local function cents(x) return ("%.2f"):format(x) end

local function lines(sums, price)
  local out = kube.array {}
  for ns, sum in pairs(sums) do
    out[#out + 1] = { namespace = ns, pods = sum.pods, cores = cents(sum.cores), gib = cents(sum.gib),
      monthly = cents((sum.cores * price.core + sum.gib * price.gib) * HOURS_OF_MONTH) }
  end
  table.sort(out, function(a, b) return a.namespace < b.namespace end)
  return out
end

return kube.controller {
  name = "cost-report",
  resource = "examples.kubelua.dev/v1/CostReport",
  reads = { "v1/Pod" },
  every = "5m",

  reconcile = function(report, ctx)
    local price = { core = tonumber(report.spec.pricePerCoreHour),
      gib = tonumber(report.spec.pricePerGiBHour) }
    if not price.core or not price.gib then return kube.fail "prices are numbers, such as \"0.031\"" end
    return { status = { namespaces = lines(usage(ctx:list "v1/Pod"), price) } }
  end,
}
