-- settings.lua - the params of the scheduler, and the kinds that it reads in addition to pods, nodes, quotas
-- and Reservations.

local cluster = require "scheduler.cluster"
local cycle = require "scheduler.cycle"
local deviceshare = require "scheduler.deviceshare"
local fields = require "fields"
local gang = require "scheduler.gang"
local inputs = require "elasticquota.inputs"
local kube = require "kubelua"
local loadaware = require "scheduler.loadaware"
local numa = require "scheduler.numa"
local reservation = require "scheduler.reservation"
local volumelimits = require "scheduler.volumelimits"
local volumes = require "scheduler.volumes"
local whole = require "lib.whole"

local M = {}

local READS = { cluster.METRIC, cluster.BUDGET, gang.KIND, deviceshare.KIND, numa.KIND, cluster.NAMESPACE,
  volumes.CLAIM, volumes.VOLUME, volumes.CLASS, volumelimits.NODE, volumelimits.ATTACHMENT }

-- The kinds for `reads`, with those in `more`; ConfigMaps only of Koordinator's namespace.
function M.reads(more)
  local out = table.move(more or {}, 1, #(more or {}), #READS + 1, { table.unpack(READS) })
  out[cluster.CONFIG_MAP] = { selector = { namespaces = { whole.NAMESPACE } } }
  return out
end

M.PARAMS = kube.merge(inputs.PARAMS, {
  schedulerName = "koord-scheduler",
  percentageOfNodesToScore = 0,    -- the search ends after so many fitting nodes; 0: as in Kubernetes
  weights = cycle.WEIGHTS,         -- of the plugins' scores
  loadaware = loadaware.DEFAULTS,  -- LoadAwareSchedulingArgs
  deviceshare = deviceshare.DEFAULTS, -- scoringStrategy, and more, of DeviceShareArgs
  numa = numa.DEFAULTS,            -- NodeNUMAResourceArgs
  preAllocationConfig = reservation.PREALLOCATION, -- of ReservationArgs
  disableDefaultQuotaPreemption = true, -- no preemption between pods of the default quota
  enable_runtime_quota = true,     -- false: the limit of a quota is its max instead of its runtime
  check_parent_quota = false,      -- the quotas above are checked, too
})

-- The args of a cycle from the params.
function M.args(params)
  params = fields.copy(params)
  return cycle.args {
    weights = params.weights,
    loadaware = params.loadaware,
    deviceshare = params.deviceshare,
    numa = params.numa,
    preallocation = params.preAllocationConfig,
    percentage = params.percentageOfNodesToScore,
    upstream = params.upstream,
    quota = { runtime_quota = params.enable_runtime_quota, check_parents = params.check_parent_quota,
      disable_default_preemption = params.disableDefaultQuotaPreemption },
  }
end

return M
