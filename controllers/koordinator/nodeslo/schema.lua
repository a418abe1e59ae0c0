-- schema.lua - the fields of NodeSLO's strategies and their types, as fields.typed expects them: what Go
-- would decode. A field that an upstream version lacks is dropped there, so it is dropped here.

local fields = require "fields"

local M = {}

local function of(kind, names)
  local out = {}
  for name in names:gmatch "%S+" do out[name] = kind end
  return out
end

local function join(...)
  local out = {}
  for _, part in ipairs { ... } do
    for name, kind in pairs(part) do out[name] = kind end
  end
  return out
end

local THRESHOLD = join(
  of("boolean", "enable"),
  of("string", "cpuSuppressPolicy cpuEvictPolicy"),
  of("integer", [[ cpuSuppressThresholdPercent cpuSuppressMinPercent memoryEvictThresholdPercent
    memoryEvictLowerPercent cpuEvictBESatisfactionUpperPercent cpuEvictBESatisfactionLowerPercent
    cpuEvictBEUsageThresholdPercent cpuEvictTimeWindowSeconds cpuEvictThresholdPercent cpuEvictLowerPercent
    evictEnabledPriorityThreshold allocatableEvictPriorityThreshold cpuAllocatableEvictThresholdPercent
    cpuAllocatableEvictLowerPercent memoryAllocatableEvictThresholdPercent
    memoryAllocatableEvictLowerPercent ]]))

local CPU_BURST = join(
  of("string", "policy"),
  of("integer", [[ cpuBurstPercent cfsQuotaBurstPercent cfsQuotaBurstPeriodSeconds
    sharePoolThresholdPercent ]]))

local CPU_QOS = join(of("boolean", "enable coreExpeller"), of("integer", "groupIdentity schedIdle"))
local RESCTRL_QOS = join(of("boolean", "enable"),
  of("integer", "catRangeStartPercent catRangeEndPercent mbaPercent"))
local NETWORK_QOS = join(of("boolean", "enable"),
  of("integer or string", "ingressRequest ingressLimit egressRequest egressLimit"))
local BLKIO = join(of("boolean", "enableUserModel"),
  of("integer", [[ readIOPS writeIOPS readBPS writeBPS readLatency writeLatency readLatencyPercent
    writeLatencyPercent ioWeightPercent modelReadBPS modelWriteBPS modelReadSeqIOPS modelWriteSeqIOPS
    modelReadRandIOPS modelWriteRandIOPS ]]))
local BLKIO_QOS = {
  enable = "boolean",
  blocks = fields.list_of { name = "string", type = "string", ioCfg = BLKIO },
}
local MEMORY_QOS = join(of("boolean", "enable"),
  of("integer", [[ minLimitPercent lowLimitPercent throttlingPercent wmarkRatio wmarkScalePermill
    wmarkMinAdj priorityEnable priority oomKillGroup ]]))
local PAGE_CACHE = join(of("boolean", "pageCacheEnable pageCacheReclaimSync"),
  of("integer", "pageCacheLimitPercent pageCacheLimitSize"))

local CLASSES = "lsrClass lsClass beClass systemClass cgroupRoot"

local function qos(memory)
  local class = { cpuQOS = CPU_QOS, memoryQOS = memory, blkioQOS = BLKIO_QOS, resctrlQOS = RESCTRL_QOS,
    networkQOS = NETWORK_QOS }
  return join(of(class, CLASSES), { policies = of("string", "cpuPolicy netQOSPolicy") })
end

local SYSTEM = join(
  of("integer", [[ minFreeKbytesFactor watermarkScaleFactor memcgReapBackGround schedGroupIdentityEnabled
    schedIdleSaverWmark ]]),
  { totalNetworkBandwidth = "integer or string", schedFeatures = fields.map_of "boolean" })

local APPLICATION = join(of("string", "name priority qos"), {
  cgroupPath = of("string", "base parentDir relativePath"),
  strategy = {},
})

M.classes = {}
for name in CLASSES:gmatch "%S+" do M.classes[#M.classes + 1] = name end

local BY_VERSION = {
  ["v1.8.0"] = { threshold = THRESHOLD, cpu_burst = CPU_BURST, qos = qos(MEMORY_QOS), system = SYSTEM,
    application = APPLICATION },
  main = { threshold = THRESHOLD, cpu_burst = CPU_BURST, qos = qos(join(MEMORY_QOS, PAGE_CACHE)),
    system = join(SYSTEM, of("integer", "pageCacheLimitEnabled")), application = APPLICATION },
}

-- The schemas of an upstream version, "v1.8.0" or "main".
function M.of(upstream)
  return BY_VERSION[upstream]
    or error(("param upstream must be \"v1.8.0\" or \"main\", got %q"):format(tostring(upstream)), 2)
end

return M
